//! Writing to a series: the lease, the commit, and what may be deleted.
//!
//! A writer first commits a manifest that differs from the newest one only by a lease; the number of that manifest is
//! part of the identity of every container it writes. `create` refuses a number that is taken, so of two writers one
//! loses. Whoever takes a lease over fences the old writer: its next commit finds its number taken, or a higher one
//! beside it. Nothing is ever judged by its age.
//!
//! Order, always: containers and parts of the manifest, barrier, manifest, its copy, then deletion of what no manifest
//! names any more. A crash in
//! between leaves the last manifest true, and at most objects that no manifest names; the next writer removes them once
//! it holds the lease. The manifest before the newest stays: its number is never free again, so that nobody who slept
//! can take it.

pub(crate) mod commit;
mod loans;
pub(crate) mod newest;
pub(crate) mod parts;
pub(crate) mod remembered;
mod renewals;
mod request;
mod reserve;
mod summary;

pub use commit::older_may_stay;
pub use loans::{Loan, claimed_chunks, loan_chunks, manifests_of_commit};
pub use newest::{
    StoredManifest, lost_containers, manifest_faults, newest_manifest, parts_kept, parts_named, refuse_lost_history,
    verify_history,
};
pub use parts::{CommitSizes, StoredParts, older_parts_bytes, sizes_of_commit};
pub use renewals::{LeaseTerms, PATIENCE_DEFAULT, RENEWALS_MISSED_MIN, RENEWED_EVERY_DEFAULT, Watch};
pub use request::{LeaseRequest, ReserveUse};
pub use reserve::keep_reserve;
pub use summary::SeriesSummary;

use crate::container::{ContainerRecord, SealedContainer};
use crate::manifest::{Lease, Manifest};
use crate::parity::protect;
use crate::repository::Repository;
use crate::storage::{Listing, ObjectName};
use crate::{ContainerId, PartId, SeriesId, StoreError, Time};
use commit::{Committed, Older, commit_after};
use parts::PartNames;
use renewals::Renewals;
use std::collections::{BTreeSet, HashMap};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;

/// The holder of a series' lease, and what acquiring it found.
#[derive(Debug)]
pub struct SeriesWriter<'r> {
    repository: &'r Repository,
    stored: StoredManifest,
    /// Manifest that the next commit is to be made of, where it is not the stored one.
    staged: Option<Manifest>,
    /// The request for the lease, until it is taken.
    expected: Option<LeaseRequest<'r>>,
    lease_sequence: u64,
    next_serial: AtomicU32,
    part_names: PartNames,
    /// Parts that manifests before the stored one name, as far as they are known: its predecessor's, and those of older
    /// ones that were not deleted yet.
    older_parts: BTreeSet<PartId>,
    /// Tells whether a container was put.
    has_put: AtomicBool,
    reserve: ReserveUse,
    /// Size of the reserve if a commit had to use it up.
    reserve_spent: Option<u64>,
    /// Renews the lease as long as it is held.
    renewals: Option<Renewals>,
    /// The reason why the manifest found was read from its copy, if it was. The commits of this writer have two sound
    /// copies again.
    pub read_from_copy: Option<String>,
    /// The lease that was taken over, if one was.
    pub taken_over: Option<Lease>,
    /// Objects without a manifest that were removed.
    pub orphans_removed: u64,
    /// The containers that the manifest names but the storage lacks or holds in another size.
    pub lost: Vec<ContainerId>,
}

impl<'r> SeriesWriter<'r> {
    /// Takes the lease of a series, making the series if there is none, and removes what interrupted writers left
    /// behind.
    ///
    /// At a distance nothing is looked for where the writer before has given its lease back: it has tidied up.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] if a writer holds it that is not known to be dead.
    pub fn acquire(repository: &'r Repository, request: &LeaseRequest<'_>) -> Result<Self, StoreError> {
        Self::take(repository, Found::look(repository, request)?, request)
    }

    /// Looks at a series as [`SeriesWriter::acquire`] does, and takes the lease at once only where there is something
    /// to be made or tidied up: in a new series, in one with a lease, or where it costs little to look closely. Else
    /// the first commit takes it, or [`SeriesWriter::take_lease`] before a container is put.
    ///
    /// # Errors
    /// As [`SeriesWriter::acquire`].
    pub fn acquire_late(repository: &'r Repository, request: LeaseRequest<'r>) -> Result<Self, StoreError> {
        if repository.is_near() {
            return Self::acquire(repository, &request);
        }
        let mut found = Found::look(repository, &request)?;
        let is_ready = |stored: &mut StoredManifest| !found.needs_sweep && stored.manifest.listed;
        let Some(mut stored) = found.stored.take_if(is_ready) else {
            return Self::take(repository, found, &request);
        };
        Ok(Self {
            repository,
            lease_sequence: stored.manifest.sequence + 1,
            part_names: PartNames::under(stored.manifest.sequence + 1),
            older_parts: BTreeSet::new(),
            read_from_copy: stored.from_copy.take(),
            stored,
            next_serial: AtomicU32::new(0),
            has_put: AtomicBool::new(false),
            reserve: request.reserve,
            staged: None,
            expected: Some(request),
            reserve_spent: None,
            renewals: None,
            taken_over: None,
            orphans_removed: 0,
            lost: Vec::new(),
        })
    }

    /// Takes the lease of a series that was looked at.
    fn take(repository: &'r Repository, found: Found, request: &LeaseRequest<'_>) -> Result<Self, StoreError> {
        let taken = Taken::take(repository, found.stored.as_ref(), request)?;
        let mut writer = Self {
            repository,
            staged: None,
            expected: None,
            lease_sequence: taken.stored.manifest.sequence,
            part_names: PartNames::under(taken.stored.manifest.sequence),
            older_parts: taken.older_parts,
            stored: taken.stored,
            next_serial: AtomicU32::new(0),
            has_put: AtomicBool::new(false),
            reserve: request.reserve,
            reserve_spent: taken.reserve_spent,
            renewals: taken.renewals,
            read_from_copy: found.stored.and_then(|stored| stored.from_copy),
            taken_over: found.lease,
            orphans_removed: 0,
            lost: Vec::new(),
        };
        if found.needs_sweep {
            writer.sweep()?;
        }
        Ok(writer)
    }

    /// Takes the lease, if that is still to be done.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] or [`StoreError::Fenced`] if another writer was faster.
    pub fn take_lease(&mut self) -> Result<(), StoreError> {
        let Some(request) = &self.expected else { return Ok(()) };
        let taken = Taken::take(self.repository, Some(&self.stored), request)?;
        self.expected = None;
        (self.stored, self.renewals, self.older_parts) = (taken.stored, taken.renewals, taken.older_parts);
        self.reserve_spent = self.reserve_spent.or(taken.reserve_spent);
        Ok(())
    }

    /// Removes containers and parity that no manifest names, unfinished writes, and renewals of earlier leases; notes
    /// what is lost. Where nothing may be deleted, containers and parity are left to a writer that may.
    ///
    /// Containers of a later lease are left alone: they belong to a writer that took over without this one knowing yet.
    pub fn sweep(&mut self) -> Result<(), StoreError> {
        let storage = self.repository.storage();
        if self.has_put.load(Ordering::Relaxed) {
            // What is still on its way there would not be listed, and come after.
            storage.barrier()?;
        }
        let series = self.series();
        // At a distance the containers of a new series were listed before its first manifest: there are none.
        let is_new = self.is_new_at_distance() && !self.has_put.load(Ordering::Relaxed);
        let listed = if is_new { Vec::new() } else { storage.list_containers(series)? };
        let [parity, renewals] = storage.list_both([Listing::Parity(series), Listing::Renewals(series)])?;
        let known = self.stored.manifest.named_objects();
        let mut removed = storage.remove_unfinished(series, self.stored.manifest.sequence)?;
        let may_delete = self.repository.may_delete();
        removed += self.sweep_parts()? + self.sweep_loans()?;
        for meta in parity.iter().chain(&listed) {
            if may_delete && meta.name.is_of(series, self.lease_sequence) && !known.contains(&meta.name) {
                storage.delete(&meta.name)?;
                removed += 1;
            }
        }
        renewals::sweep(storage, &renewals, self.lease_sequence)?;
        self.orphans_removed = removed;
        self.lost = lost_containers(self.repository, &self.stored.manifest, &listed);
        Ok(())
    }

    /// Removes parts that neither the stored manifest nor one before it names, each as one.
    fn sweep_parts(&self) -> Result<u64, StoreError> {
        if self.is_new_at_distance() || !self.repository.may_delete() {
            return Ok(0);
        }
        let (storage, series) = (self.repository.storage(), self.series());
        let named = self.stored.parts.table.ids();
        let is_orphan =
            |id: &PartId| id.lease <= self.lease_sequence && !named.contains(id) && !self.older_parts.contains(id);
        let listed = storage.list_both([Listing::ManifestParts(series), Listing::ManifestPartCopies(series)])?;
        let orphans: BTreeSet<PartId> =
            listed.iter().flatten().filter_map(|meta| meta.name.part()).filter(is_orphan).collect();
        let removed = orphans.len() as u64;
        if removed > 0 {
            storage.delete_many(&parts::places(series, orphans.into_iter()))?;
        }
        Ok(removed)
    }

    /// Tells whether this writer began the series, at a place where each request takes long.
    fn is_new_at_distance(&self) -> bool {
        self.stored.manifest.sequence == 1 && !self.repository.is_near()
    }

    /// The series written to.
    pub fn series(&self) -> SeriesId {
        self.stored.manifest.series
    }

    /// The newest manifest: this writer's own, with what is staged.
    pub fn manifest(&self) -> &Manifest {
        self.staged.as_ref().unwrap_or(&self.stored.manifest)
    }

    /// Keeps `next` for the next commit, which is to be made of it. That is for changes which may be lost, as they are
    /// found out again, so that they need no commit of their own.
    ///
    /// # Panics
    /// If it names other containers: they would be deleted, or taken for orphans.
    pub fn stage(&mut self, next: Manifest) {
        assert_eq!(next.containers, self.manifest().containers, "containers change by a commit");
        self.staged = Some(next);
    }

    /// The newest manifest as stored.
    pub fn stored(&self) -> &StoredManifest {
        &self.stored
    }

    /// An identity that no other container has or will have.
    pub fn new_container_id(&self) -> ContainerId {
        ContainerId { lease: self.lease_sequence, serial: self.next_serial.fetch_add(1, Ordering::Relaxed) }
    }

    /// Writes a container, and its parity as the repository's settings say; both are durable once a commit succeeds.
    pub fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        let (series, SealedContainer { bytes, record }) = (self.series(), container);
        let percent = self.repository.parity().percent(record.kind);
        let protect = || protect(self.repository.keys(), series, record.id, bytes, percent);
        let parity = thread::scope(|scope| {
            // Where the system gives no thread, it is made afterwards.
            let making = thread::Builder::new().name("parity".to_owned()).spawn_scoped(scope, protect);
            self.put_object(&record.object_name(series), bytes)?;
            making.map_or_else(|_| protect(), |making| making.join().unwrap_or_else(|panic| resume_unwind(panic)))
        });
        match parity? {
            Some(parity) => self.put_object(&ObjectName::Parity(series, record.id), &parity),
            None => Ok(()),
        }
    }

    /// Takes away the parity of a container, and writes this in its place; it is durable after the next barrier.
    pub fn replace_parity(&self, container: ContainerId, object: Option<&[u8]>) -> Result<(), StoreError> {
        let name = ObjectName::Parity(self.series(), container);
        self.repository.storage().delete(&name)?;
        object.map_or(Ok(()), |object| self.put_object(&name, object))
    }

    fn put_object(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StoreError> {
        assert!(self.expected.is_none(), "{name} is put without a lease");
        self.has_put.store(true, Ordering::Relaxed);
        let put = self.repository.storage().put(name, bytes);
        put.map_err(|error| StoreError::from(error).of_writer(&self.stored.manifest.name))
    }

    /// Commits `next` after everything put so far is durable, then removes manifests before the one that was the newest
    /// until now. The lease stays if `keep_lease`; one that was not taken yet is taken by this very commit.
    ///
    /// If `next` keeps chunks no longer, others may have borrowed them: before their containers go, a commit says that
    /// they are going, and the loans are listed. What turns out to be claimed then stays in the manifest. Loans that it
    /// does not name any more are given back after it.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the series over; then nothing was committed. If it fails between
    /// two commits, the first stands: no container is lost by that.
    ///
    /// # Panics
    /// If `next` says that the series does not lend any more.
    pub fn commit(&mut self, next: Manifest, keep_lease: bool, now: Time) -> Result<(), StoreError> {
        let borrowed = (!self.stored.manifest.lenders.is_empty()).then(|| self.stored.manifest.clone());
        self.commit_settled(next, keep_lease, now)?;
        if let Some(before) = borrowed {
            self.give_back_unnamed(&before);
        }
        Ok(())
    }

    fn commit_settled(&mut self, next: Manifest, keep_lease: bool, now: Time) -> Result<(), StoreError> {
        assert!(next.lends || !self.stored.manifest.lends, "a series that lends does so for ever");
        if !self.stored.manifest.lends {
            return self.commit_one(next, keep_lease, now);
        }
        let before = self.stored.manifest.clone();
        if self.repository.keys().write_only_series().is_some() {
            // A client that cannot read loans leaves it to a writer who can.
            let unclaimed = loans::with_all_unclaimed(&before, next);
            return self.commit_one(unclaimed, keep_lease, now);
        }
        let mut manifests = manifests_of_commit(&before, next, |first| {
            first.map_or(Ok(()), |first| self.commit_one(first.clone(), true, now))?;
            claimed_chunks(self.repository, self.series())
        })?;
        manifests.pop().map_or(Ok(()), |last| self.commit_one(last, keep_lease, now))
    }

    fn commit_one(&mut self, mut next: Manifest, keep_lease: bool, now: Time) -> Result<(), StoreError> {
        if self.expected.is_some() && parts::outline(self.repository, &next, &self.stored.parts, true)?.has_new() {
            // The names of parts are those of a lease.
            self.take_lease()?;
        }
        let renewals = self.expected.as_ref().filter(|_| keep_lease).and_then(|request| {
            request.renewed_every.and_then(|every| Renewals::prepare(self.repository, self.series(), every))
        });
        let lease = match &self.expected {
            _ if !keep_lease => None,
            Some(request) => Some(request.lease(self.lease_sequence, renewals.is_some())),
            None => self.stored.manifest.lease.clone(),
        };
        if self.expected.is_some() {
            self.older_parts = verify_history(self.repository, &self.stored.manifest)?.ids();
        }
        let durable = self.repository.storage().barrier();
        durable.map_err(|error| StoreError::from(error).of_writer(&next.name))?;
        next.lease = lease;
        // Taking the lease saw to it, where the record may be written.
        next.listed |= self.repository.may_amend();
        let names = Some(&self.part_names).filter(|_| self.expected.is_none());
        let committed = commit_after(self.repository, Some(&self.stored), next, now, self.reserve, names);
        let mut committed = match &self.expected {
            Some(_) => committed.map_err(|error| who_was_faster(self.repository, self.series(), error))?,
            None => committed?,
        };
        self.expected = None;
        self.staged = None;
        if let Some(renewals) = renewals {
            renewals.begin(self.lease_sequence);
            self.renewals = Some(renewals);
        }
        self.reserve_spent = self.reserve_spent.or(committed.reserve_spent);
        let older = match self.reserve {
            _ if keep_lease => Older::Stay,
            ReserveUse::Keep => Older::GoIfMany,
            // Whoever may spend the reserve makes room.
            ReserveUse::Spend => Older::Go,
        };
        settle(self.repository, &mut committed, older, &self.stored, &mut self.older_parts);
        self.stored = committed.stored;
        if !keep_lease && let Some(renewals) = self.renewals.take() {
            renewals.end(self.repository.storage());
        }
        Ok(())
    }

    /// Commits `next`, then deletes containers that it does not name. A lease that is not to be kept is given back
    /// after that where the next writer would not look for what was left behind.
    ///
    /// # Errors
    /// Those of the commit, and then nothing was deleted; those of deleting, and then the commit stands.
    pub fn commit_and_delete(
        &mut self,
        next: Manifest,
        containers: &[ContainerRecord],
        keep_lease: bool,
        now: Time,
    ) -> Result<(), StoreError> {
        let gives_back_later = !keep_lease && !containers.is_empty() && !self.repository.is_near();
        self.commit(next, keep_lease || gives_back_later, now)?;
        self.delete(containers)?;
        if gives_back_later {
            let unchanged = self.stored.manifest.clone();
            self.commit(unchanged, false, now)?;
        }
        Ok(())
    }

    /// Deletes containers that the newest manifest does not name, with their parity, and passes over those that it
    /// still names because others have, or may have, borrowed of them. Where nothing may be deleted they stay for a
    /// writer that may.
    ///
    /// # Panics
    /// If it names one for another reason: deleting it would lose data.
    pub fn delete(&self, containers: &[ContainerRecord]) -> Result<(), StoreError> {
        let series = self.series();
        let manifest = &self.stored.manifest;
        let named: HashMap<ContainerId, &ContainerRecord> =
            manifest.containers.iter().map(|record| (record.id, record)).collect();
        let mut names = Vec::new();
        for record in containers {
            if let Some(named) = named.get(&record.id) {
                let stays = &manifest.lent | &manifest.unclaimed;
                assert!(named.numbers().is_subset(&stays), "container {} is in use", record.id);
                continue;
            }
            // Parity first: whoever misses the container then does not take it for a lost one that can be healed.
            names.extend([ObjectName::Parity(series, record.id), record.object_name(series)]);
        }
        if names.is_empty() || !self.repository.may_delete() {
            return Ok(());
        }
        Ok(self.repository.storage().delete_many(&names)?)
    }

    /// Gives the lease back without changing anything else, and removes what was written under it. That makes room, so
    /// the reserve may go for it on a full disk; it is put back at once.
    pub fn abandon(mut self, now: Time) -> Result<(), StoreError> {
        if self.expected.is_some() {
            return Ok(());
        }
        self.reserve = ReserveUse::Spend;
        let unchanged = self.stored.manifest.clone();
        self.commit(unchanged, false, now)?;
        if self.repository.is_near() || self.has_put.load(Ordering::Relaxed) {
            self.sweep()?;
        }
        self.repository.storage().barrier()?;
        self.restore_reserve()
    }

    /// Puts back the reserve that commits on a full disk have used up, as far as there is room by now.
    pub fn restore_reserve(&mut self) -> Result<(), StoreError> {
        match self.reserve_spent.take() {
            Some(bytes) => reserve::make_reserve(self.repository, bytes).map(drop),
            None => Ok(()),
        }
    }
}

/// The state of a series, as its next writer finds it.
struct Found {
    stored: Option<StoredManifest>,
    /// The lease that is recorded; it may be taken over.
    lease: Option<Lease>,
    /// Whether something may have been left behind.
    needs_sweep: bool,
}

impl Found {
    /// Finds out whether the lease may be taken.
    fn look(repository: &Repository, request: &LeaseRequest<'_>) -> Result<Self, StoreError> {
        let series = repository.keys().series_id(request.series_name);
        repository.require_reach(series, request.series_name)?;
        let list = || -> Result<_, StoreError> {
            let mut listed = repository.storage().list_containers(series)?;
            if repository.is_near() {
                listed.extend(repository.storage().list(Listing::ManifestParts(series))?);
            }
            Ok(listed)
        };
        let has_ended_well = |stored: &StoredManifest| stored.manifest.lease.is_none();
        // Whoever may write the record lists a new series there: one that is not listed is most likely new to all.
        // A new one is looked at closely in any case.
        let is_new = repository.may_amend() && !repository.config().series.contains_key(&series);
        let looks_closely = is_new || request.looks_closely || repository.is_near();
        let mut containers = if looks_closely { Some(list()?) } else { None };
        // What was listed a moment ago does: who was faster since then is met by the commit. But what containers are
        // held against must not be older than they.
        let was_listed = repository.was_listed_ahead(series);
        let was_nothing = is_new && repository.number_listed(series).is_none() && !repository.is_near();
        let mut stored = match &containers {
            None if was_listed => repository.stored_listed(series)?,
            // Nothing is held against a manifest where there is no container.
            Some(containers) if was_listed && was_nothing && containers.is_empty() => None,
            _ => newest_manifest(repository, series)?,
        };
        if containers.is_none() && !stored.as_ref().is_some_and(has_ended_well) {
            // The containers first: a writer that begins in between is not to be taken for a lost manifest.
            containers = Some(list()?);
            stored = newest_manifest(repository, series)?;
        }
        let lease = stored.as_ref().and_then(|stored| stored.manifest.lease.clone());
        if let (Some(lease), Some(stored)) = (&lease, &stored)
            && !request.may_take_over(lease, stored.manifest.sequence)
        {
            return Err(held(request.series_name, lease));
        }
        let needs_sweep = containers.is_some();
        let sequence = stored.as_ref().map_or(0, |stored| stored.manifest.sequence);
        refuse_lost_history(&containers.unwrap_or_default(), sequence)?;
        Ok(Self { stored, lease, needs_sweep })
    }
}

/// Tidies up after a commit: writes its second copy, and removes what only manifests before its predecessor name. The
/// commit stands; what cannot be tidied up now the next writer removes.
fn settle(
    repository: &Repository,
    committed: &mut Committed,
    older: Older,
    predecessor: &StoredManifest,
    older_parts: &mut BTreeSet<PartId>,
) {
    let (named, kept) = (committed.stored.parts.table.ids(), predecessor.parts.table.ids());
    let gone = older_parts.iter().filter(|id| !named.contains(id) && !kept.contains(id)).copied().collect();
    if let Ok(true) = committed.settle(repository, older, &gone) {
        older_parts.clear();
    }
    older_parts.extend(kept);
}

/// A lease that was just taken.
struct Taken {
    stored: StoredManifest,
    /// As [`SeriesWriter`] has them.
    older_parts: BTreeSet<PartId>,
    reserve_spent: Option<u64>,
    renewals: Option<Renewals>,
}

impl Taken {
    /// Takes the lease, as the successor of this manifest.
    fn take(
        repository: &Repository,
        before: Option<&StoredManifest>,
        request: &LeaseRequest<'_>,
    ) -> Result<Self, StoreError> {
        let older = before.map(|before| verify_history(repository, &before.manifest)).transpose()?;
        let mut older_parts = older.unwrap_or_default().ids();
        let series = repository.keys().series_id(request.series_name);
        let mut leased =
            before.map_or_else(|| Manifest::new(series, request.series_name), |stored| stored.manifest.clone());
        let renewals = request.renewed_every.and_then(|every| Renewals::prepare(repository, series, every));
        let number = before.map_or(1, |stored| stored.manifest.sequence + 1);
        leased.lease = Some(request.lease(number, renewals.is_some()));
        let leased = commit_after(repository, before, leased, request.now, request.reserve, None);
        let mut leased = leased.map_err(|error| who_was_faster(repository, series, error))?;
        if let Some(renewals) = &renewals {
            renewals.begin(number);
        }
        match before {
            Some(before) => settle(repository, &mut leased, Older::Stay, before, &mut older_parts),
            None => drop(leased.settle(repository, Older::Stay, &BTreeSet::new())),
        }
        // Where the record may not be written, a writer that may does so later.
        if repository.may_amend() {
            if !leased.stored.manifest.listed {
                repository.register_series(series, request.series_name)?;
            }
            repository.keep_record_copy()?;
        }
        let Committed { stored, reserve_spent, .. } = leased;
        Ok(Self { stored, older_parts, reserve_spent, renewals })
    }
}

/// The error of a writer that finds the lease held.
fn held(series_name: &str, lease: &Lease) -> StoreError {
    let (holder, since) = (lease.holder.to_string(), lease.since.to_string());
    StoreError::LeaseHeld { series: series_name.to_owned(), holder, since }
}

/// Names the winner of a race for the lease to the one who lost it, as far as it can still be told.
fn who_was_faster(repository: &Repository, series: SeriesId, error: StoreError) -> StoreError {
    let StoreError::Fenced { series: series_name } = &error else {
        return error;
    };
    match newest_manifest(repository, series) {
        Ok(Some(StoredManifest { manifest: Manifest { lease: Some(lease), .. }, .. })) => held(series_name, &lease),
        _ => error,
    }
}

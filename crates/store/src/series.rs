//! Writing to a series: the lease, the commit, and what may be deleted.
//!
//! A writer first commits a manifest that differs from the newest one only by a lease; the number of that manifest is part of
//! the identity of every container it writes. `create` refuses a number that is taken, so of two writers one loses. Whoever takes
//! a lease over fences the old writer: its next commit finds its number taken, or a higher one beside it. Nothing is ever judged
//! by its age.
//!
//! Order, always: containers, barrier, manifest, then deletion of what no manifest names any more. A crash in between leaves the
//! last manifest true, and at most objects that no manifest names; the next writer removes them once it holds the lease.

use crate::container::{ContainerRecord, SealedContainer};
use crate::manifest::{Lease, LeaseHolder, Manifest};
use crate::parity::protect;
use crate::repository::Repository;
use crate::sealed::{ObjectKind, open_object, seal_object};
use crate::secrets::random_bytes;
use crate::storage::{Listing, ObjectMeta, ObjectName, StorageError};
use crate::{ContainerId, SeriesId, StoreError, Time};
use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU32, Ordering};

/// How often a reader looks again when the newest manifest vanishes between listing and reading.
const READ_ATTEMPTS_MAX: u32 = 16;
/// How often a series that must be there is looked for: a listing beside a busy writer may miss both the old and the new manifest.
const LOST_ATTEMPTS: u32 = 3;
/// The least size of the reserve that lets `forget` commit on a full disk.
const RESERVE_BYTES_MIN: u64 = 256 << 10;
/// The reserve holds this many manifests: the lease, the commit, and room to grow.
const RESERVE_MANIFESTS: u64 = 4;

/// A manifest as read, with what the next one must say of it.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    /// The manifest.
    pub manifest: Manifest,
    /// Size of its object in bytes.
    pub object_bytes: u64,
    /// BLAKE3 of the whole object.
    pub hash: [u8; 32],
}

/// What a writer does when the disk has no room for its manifest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ReserveUse {
    /// It fails: a run that only adds would fill the reserve's room and leave none for forgetting.
    Keep,
    /// It gives the reserve up: what it does next makes room.
    Spend,
}

/// Who wants to write, and how to tell whether another writer is gone.
pub struct LeaseRequest<'a> {
    /// The series' name; the series is made if there is none.
    pub series_name: &'a str,
    /// This writer.
    pub holder: LeaseHolder,
    /// `backup`, `forget`, ...
    pub purpose: &'a str,
    /// Now.
    pub now: Time,
    /// Whether a holder is known to be dead, so that its lease may be taken over.
    pub is_dead: &'a dyn Fn(&LeaseHolder) -> bool,
    /// Take the lease over whoever holds it.
    pub take_over: bool,
    /// What to do on a full disk.
    pub reserve: ReserveUse,
}

/// The holder of a series' lease, and what acquiring it found.
#[derive(Debug)]
pub struct SeriesWriter<'r> {
    repository: &'r Repository,
    stored: StoredManifest,
    lease_sequence: u64,
    next_serial: AtomicU32,
    reserve: ReserveUse,
    /// Size of the reserve if a commit had to use it up.
    reserve_spent: Option<u64>,
    /// The lease that was taken over, if one was.
    pub taken_over: Option<Lease>,
    /// Objects without a manifest that were removed.
    pub orphans_removed: u64,
    /// The containers that the manifest names but the storage lacks or holds in another size.
    pub lost: Vec<ContainerId>,
}

/// The newest manifest of a series; `None` if the series has none.
///
/// # Errors
/// Damage of the newest manifest is an error, [`StoreError::UnreadableSeries`]: an older one would silently bring back a past state.
/// [`StoreError::LostSeries`] if the record lists the series and it has none.
pub fn newest_manifest(repository: &Repository, series: SeriesId) -> Result<Option<StoredManifest>, StoreError> {
    for _ in 0..LOST_ATTEMPTS {
        let found =
            read_newest(repository, series).map_err(|error| error.of_series(repository.series_words(series)))?;
        if found.is_some() || !repository.config().series.contains_key(&series) {
            return Ok(found);
        }
    }
    let name = repository.config().series.get(&series).cloned().unwrap_or_default();
    Err(StoreError::LostSeries { series: name })
}

fn read_newest(repository: &Repository, series: SeriesId) -> Result<Option<StoredManifest>, StoreError> {
    let mut attempt = 0;
    loop {
        let listed = repository.storage().list(Listing::Manifests(series))?;
        let Some(sequence) = listed.iter().filter_map(manifest_sequence).max() else {
            return Ok(None);
        };
        match read_manifest(repository, series, sequence) {
            Ok(stored) => {
                check_history(repository, &listed, &stored)?;
                return Ok(Some(stored));
            }
            Err(error) if error.is_not_found() && attempt < READ_ATTEMPTS_MAX => attempt += 1,
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn manifest_sequence(meta: &ObjectMeta) -> Option<u64> {
    match meta.name {
        ObjectName::Manifest(_, sequence) => Some(sequence),
        _ => None,
    }
}

pub(crate) fn read_manifest(
    repository: &Repository,
    series: SeriesId,
    sequence: u64,
) -> Result<StoredManifest, StoreError> {
    let name = ObjectName::Manifest(series, sequence);
    let object = repository.storage().read(&name, repository.manifest_bytes_max())?;
    let hash = *blake3::hash(&object).as_bytes();
    let object_bytes = object.len() as u64;
    let plain = open_object(repository.keys(), &name, ObjectKind::Manifest, object)?;
    let manifest = Manifest::decode_within(&name, &plain, repository.manifest_bytes_max())?;
    if manifest.series != series || manifest.sequence != sequence {
        return Err(StoreError::damaged(&name, "content", "it names another series or sequence number"));
    }
    Ok(StoredManifest { manifest, object_bytes, hash })
}

/// Where the manifest before is still there, its hash must be the one recorded.
fn check_history(repository: &Repository, listed: &[ObjectMeta], newest: &StoredManifest) -> Result<(), StoreError> {
    let manifest = &newest.manifest;
    let Some(before) = manifest.sequence.checked_sub(1) else {
        return Ok(());
    };
    let name = ObjectName::Manifest(manifest.series, before);
    if !listed.iter().any(|meta| meta.name == name) {
        return Ok(());
    }
    match repository.storage().read(&name, repository.manifest_bytes_max()) {
        Ok(object) if *blake3::hash(&object).as_bytes() != manifest.previous => {
            Err(StoreError::BrokenHistory { object: manifest.object_name().to_string(), before: name.to_string() })
        }
        Ok(_) => Ok(()),
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A container carries the number of the lease it was written under, and that lease was durable before it. So a container beyond the
/// newest manifest proves that a manifest was lost, by damage or by a copy brought back; sweeping it away as left over would then
/// destroy snapshots. The containers must have been listed before the manifest was read: a writer may have begun in between.
///
/// # Errors
/// [`StoreError::LostManifest`] with the first container that proves it. `sequence` is 0 if the series has no manifest.
pub fn refuse_lost_history(containers: &[ObjectMeta], sequence: u64) -> Result<(), StoreError> {
    let beyond = |meta: &&ObjectMeta| matches!(meta.name, ObjectName::Container(_, id) if id.lease > sequence);
    match containers.iter().find(beyond) {
        Some(meta) => Err(StoreError::LostManifest { container: meta.name.to_string(), sequence }),
        None => Ok(()),
    }
}

/// The containers of this manifest that the storage lacks or holds in another size, and whose parity does not heal them.
pub fn lost_containers(repository: &Repository, manifest: &Manifest, listed: &[ObjectMeta]) -> Vec<ContainerId> {
    let sizes: HashMap<ObjectName, u64> = listed.iter().map(|meta| (meta.name, meta.bytes)).collect();
    let is_whole = |record: &ContainerRecord| {
        sizes.get(&record.object_name(manifest.series)) == Some(&record.object_bytes)
            || repository.heal(manifest.series, record).is_some()
    };
    manifest.containers.iter().filter(|record| !is_whole(record)).map(|record| record.id).collect()
}

/// The size of the object a manifest would make.
pub fn manifest_object_bytes(manifest: &Manifest) -> Result<u64, StoreError> {
    Ok(crate::sealed::sealed_object_bytes(manifest.encode()?.len() as u64))
}

impl<'r> SeriesWriter<'r> {
    /// Takes the lease of a series, making the series if there is none, and removes what interrupted writers left behind.
    ///
    /// # Errors
    /// [`StoreError::LeaseHeld`] if a writer holds it that is not known to be dead.
    pub fn acquire(repository: &'r Repository, request: &LeaseRequest<'_>) -> Result<Self, StoreError> {
        let series = repository.keys().series_id(request.series_name);
        let containers = repository.storage().list(Listing::Containers(series))?;
        let stored = newest_manifest(repository, series)?;
        let current = stored.as_ref().and_then(|stored| stored.manifest.lease.clone());
        if let Some(lease) = &current
            && !request.take_over
            && !(request.is_dead)(&lease.holder)
        {
            return Err(held(request.series_name, lease));
        }
        refuse_lost_history(&containers, stored.as_ref().map_or(0, |stored| stored.manifest.sequence))?;
        let (mut leased, previous) = match &stored {
            Some(stored) => (stored.manifest.clone(), Some(stored)),
            None => (Manifest::new(series, request.series_name), None),
        };
        leased.lease =
            Some(Lease { holder: request.holder.clone(), since: request.now, purpose: request.purpose.to_owned() });
        let leased = commit_after(repository, previous, leased, request.now, request.reserve);
        let (stored, reserve_spent) = leased.map_err(|error| who_was_faster(repository, series, error))?;
        if !stored.manifest.listed {
            repository.register_series(series, request.series_name)?;
        }
        repository.keep_record_copy()?;
        let mut writer = Self {
            repository,
            lease_sequence: stored.manifest.sequence,
            stored,
            next_serial: AtomicU32::new(0),
            reserve: request.reserve,
            reserve_spent,
            taken_over: current,
            orphans_removed: 0,
            lost: Vec::new(),
        };
        writer.sweep()?;
        Ok(writer)
    }

    /// Removes older manifests, containers and parity that no manifest names, and unfinished writes; notes what is lost.
    ///
    /// Containers of a later lease are left alone: they belong to a writer that took over without this one knowing yet.
    pub fn sweep(&mut self) -> Result<(), StoreError> {
        let storage = self.repository.storage();
        let series = self.series();
        let listed = storage.list(Listing::Containers(series))?;
        let known = self.container_ids();
        let mut removed = storage.remove_unfinished(series, self.stored.manifest.sequence)?;
        for meta in storage.list(Listing::Parity(series))?.iter().chain(&listed) {
            let is_orphan = |id: &ContainerId| id.lease <= self.lease_sequence && !known.contains(id);
            if meta.name.container().is_some_and(|id| is_orphan(&id)) {
                storage.delete(&meta.name)?;
                removed += 1;
            }
        }
        self.delete_older_manifests()?;
        self.orphans_removed = removed;
        self.lost = lost_containers(self.repository, &self.stored.manifest, &listed);
        Ok(())
    }

    /// The series written to.
    pub fn series(&self) -> SeriesId {
        self.stored.manifest.series
    }

    /// The newest manifest: this writer's own.
    pub fn manifest(&self) -> &Manifest {
        &self.stored.manifest
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
        self.put_object(&record.object_name(series), bytes)?;
        match protect(self.repository.keys(), series, record.id, bytes, percent)? {
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
        let put = self.repository.storage().put(name, bytes);
        put.map_err(|error| StoreError::from(error).of_writer(&self.stored.manifest.name))
    }

    /// Commits `next` after everything put so far is durable, then removes older manifests. The lease stays if `keep_lease`.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] if another writer took the series over; then nothing was committed.
    pub fn commit(&mut self, mut next: Manifest, keep_lease: bool, now: Time) -> Result<(), StoreError> {
        let lease = if keep_lease { self.stored.manifest.lease.clone() } else { None };
        let durable = self.repository.storage().barrier();
        durable.map_err(|error| StoreError::from(error).of_writer(&next.name))?;
        next.lease = lease;
        // Taking the lease saw to it.
        next.listed = true;
        let (stored, reserve_spent) = commit_after(self.repository, Some(&self.stored), next, now, self.reserve)?;
        self.stored = stored;
        self.reserve_spent = self.reserve_spent.or(reserve_spent);
        // The commit stands. What cannot be tidied up now the next writer removes.
        let _ = self.delete_older_manifests();
        Ok(())
    }

    /// Deletes containers that the newest manifest does not name, with their parity.
    ///
    /// # Panics
    /// If it does name one: deleting it would lose data.
    pub fn delete(&self, containers: &[ContainerId]) -> Result<(), StoreError> {
        let named = self.container_ids();
        for id in containers {
            assert!(!named.contains(id), "container {id} is in use");
            // Parity first: whoever misses the container then does not take it for a lost one that can be healed.
            self.repository.storage().delete(&ObjectName::Parity(self.series(), *id))?;
            self.repository.storage().delete(&ObjectName::Container(self.series(), *id))?;
        }
        Ok(())
    }

    /// Gives the lease back without changing anything else, and removes what was written under it. That makes room, so the reserve may
    /// go for it on a full disk; it is put back at once.
    pub fn abandon(mut self, now: Time) -> Result<(), StoreError> {
        self.reserve = ReserveUse::Spend;
        let unchanged = self.stored.manifest.clone();
        self.commit(unchanged, false, now)?;
        self.sweep()?;
        self.repository.storage().barrier()?;
        self.restore_reserve()
    }

    /// Puts back the reserve that commits on a full disk have used up, as far as there is room by now.
    pub fn restore_reserve(&mut self) -> Result<(), StoreError> {
        match self.reserve_spent.take() {
            Some(bytes) => make_reserve(self.repository, bytes).map(drop),
            None => Ok(()),
        }
    }

    fn container_ids(&self) -> HashSet<ContainerId> {
        self.stored.manifest.containers.iter().map(|record| record.id).collect()
    }

    fn delete_older_manifests(&self) -> Result<(), StoreError> {
        let storage = self.repository.storage();
        for meta in storage.list(Listing::Manifests(self.series()))? {
            if manifest_sequence(&meta).is_some_and(|sequence| sequence < self.stored.manifest.sequence) {
                storage.delete(&meta.name)?;
            }
        }
        Ok(())
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

/// Commits `manifest` as the successor of `previous` and makes sure that it is the newest.
pub(crate) fn commit_after(
    repository: &Repository,
    previous: Option<&StoredManifest>,
    mut manifest: Manifest,
    now: Time,
    reserve: ReserveUse,
) -> Result<(StoredManifest, Option<u64>), StoreError> {
    manifest.sequence = previous.map_or(1, |stored| stored.manifest.sequence + 1);
    manifest.previous = previous.map_or([0; 32], |stored| stored.hash);
    manifest.committed = now;
    let name = ObjectName::Manifest(manifest.series, manifest.sequence);
    let plain = manifest.encode()?;
    if Manifest::decode(&name, &plain)? != manifest {
        return Err(StoreError::SelfCheck { what: name.to_string() });
    }
    let object = seal_object(repository.keys(), &name, ObjectKind::Manifest, &plain)?;
    let fenced = || StoreError::Fenced { series: manifest.name.clone() };
    // A number may be free only because a writer that took over has already gone further and tidied up. One that does so between
    // this look and the next is met by taking the manifest back: left there, it would pass for a broken history.
    if is_overtaken(repository, &manifest)? {
        return Err(fenced());
    }
    let reserve_spent = match create_from_reserve(repository, &name, &object, reserve) {
        Err(StoreError::Storage(StorageError::AlreadyExists { .. } | StorageError::Swept { .. })) => {
            return Err(fenced());
        }
        other => other?,
    };
    if is_overtaken(repository, &manifest)? {
        repository.storage().delete(&name)?;
        repository.storage().barrier()?;
        return Err(fenced());
    }
    let hash = *blake3::hash(&object).as_bytes();
    Ok((StoredManifest { manifest, object_bytes: object.len() as u64, hash }, reserve_spent))
}

/// Whether there is a manifest beyond this one.
fn is_overtaken(repository: &Repository, manifest: &Manifest) -> Result<bool, StoreError> {
    let listed = repository.storage().list(Listing::Manifests(manifest.series))?;
    Ok(listed.iter().filter_map(manifest_sequence).any(|sequence| sequence > manifest.sequence))
}

/// Creates an object; on a full disk the reserve may be given up for it, and its size is then returned.
fn create_from_reserve(
    repository: &Repository,
    name: &ObjectName,
    object: &[u8],
    reserve: ReserveUse,
) -> Result<Option<u64>, StoreError> {
    let storage = repository.storage();
    match storage.create(name, object) {
        Err(error) if error.is_full() && reserve == ReserveUse::Spend => {
            let Some(bytes) = reserve_present(repository)? else {
                return Err(error.into());
            };
            storage.delete(&ObjectName::Reserve)?;
            storage.barrier()?;
            storage.create(name, object)?;
            Ok(Some(bytes))
        }
        other => Ok(other.map(|()| None)?),
    }
}

fn reserve_present(repository: &Repository) -> Result<Option<u64>, StoreError> {
    let listed = repository.storage().list(Listing::All)?;
    Ok(listed.iter().find(|meta| meta.name == ObjectName::Reserve).map(|meta| meta.bytes))
}

/// Makes sure the reserve is there and large enough for manifests of this size; a full disk is no error.
pub fn keep_reserve(repository: &Repository, manifest_bytes: u64) -> Result<(), StoreError> {
    let wanted = manifest_bytes.saturating_mul(RESERVE_MANIFESTS).next_multiple_of(4096).max(RESERVE_BYTES_MIN);
    match reserve_present(repository)? {
        Some(present) if present >= wanted => Ok(()),
        Some(present) => {
            repository.storage().delete(&ObjectName::Reserve)?;
            repository.storage().barrier()?;
            // A small reserve is better than none.
            if !make_reserve(repository, wanted)? {
                make_reserve(repository, present)?;
            }
            Ok(())
        }
        None => make_reserve(repository, wanted).map(drop),
    }
}

/// Random bytes: a file system that compresses or finds holes must not give the space away beforehand. Whether there was room.
fn make_reserve(repository: &Repository, wanted: u64) -> Result<bool, StoreError> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < wanted {
        bytes.extend_from_slice(&random_bytes::<4096>()?);
    }
    match repository.storage().create(&ObjectName::Reserve, &bytes) {
        Err(error) if error.is_full() => Ok(false),
        Err(StorageError::AlreadyExists { .. }) => Ok(true),
        other => Ok(other.map(|()| true)?),
    }
}

//! Dry runs: the exact bytes of what a run would leave, and of what the one after it would.
//!
//! All is done but writing: containers are made in full, so that their sizes are true, and what is needed later of
//! those that were made is kept in a nameless file ([`Beside`]). A manifest's size is known before it is committed
//! (docs/FORMAT.md, section 11).

use super::ForgetOptions;
use super::choice::{Choice, marked};
use super::plan::{Removal, plan};
use crate::maintain::dead::{Left, deleted, left, object_bytes};
use crate::maintain::ghost_bytes;
use crate::maintain::rewrite::{replace, rewrite_intact};
use crate::overlay::{Overlaid, Overlay};
use crate::pack::{ContainerSink, DrySink};
use crate::protect::parity_bytes;
use crate::usage::Usage;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerRecord, SealedContainer};
use siltstone_store::manifest::{Lender, Manifest, PartTable};
use siltstone_store::repository::Repository;
use siltstone_store::series::{CommitSizes, claimed_chunks, manifests_of_commit, parts_named, sizes_of_commit};
use siltstone_store::storage::{Listing, ObjectName, Storage};
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// Every manifest lies there twice, and so does each of its parts.
const COPIES: u64 = 2;
/// The newest manifest and its predecessor, each with its copy.
const BESIDE_OBJECTS: u64 = 4;

/// A state of a series, as it lies there or as a run would leave it.
pub(super) struct State {
    pub(super) manifest: Manifest,
    /// Parts of its manifest.
    parts: PartTable,
    /// Bytes of its manifests and their parts, which two new ones with their copies replace, and of what taking the
    /// lease removes.
    beside_bytes: u64,
    /// Objects that these are.
    beside_objects: u64,
    /// Bytes of the parity of its containers.
    parity: HashMap<ContainerId, u64>,
}

/// Outcome that a run would have.
pub(super) struct Outcome {
    /// The state it would leave.
    pub(super) next: State,
    /// The bytes that would come back.
    pub(super) bytes_returned: i64,
    pub(super) containers_deleted: u64,
    pub(super) containers_rewritten: u64,
    pub(super) snapshots_rewritten: u64,
    pub(super) ghost_bytes: u64,
    /// The loans that would go back to their lenders.
    pub(super) loans: BTreeSet<ObjectName>,
    /// Usage of a run beyond the reading that a dry run does too.
    pub(super) usage: Usage,
}

impl State {
    /// The state of a series with this manifest, the newest.
    pub(super) fn lying(repository: &Repository, manifest: &Manifest) -> Result<Self, StoreError> {
        let (beside_bytes, beside_objects) = manifests_and_orphans(repository, manifest)?;
        let (parts, parity) = (parts_named(repository, manifest)?, parity_bytes(repository, manifest.series)?);
        Ok(Self { manifest: manifest.clone(), parts, beside_bytes, beside_objects, parity })
    }

    /// Does everything to it that a run would do, but for writing. New containers go to `beside`, if there is more to
    /// come of the series.
    pub(super) fn after(
        &self,
        repository: &Repository,
        choice: &Choice,
        options: &ForgetOptions,
        beside: Option<&Beside>,
        resources: &Resources,
    ) -> Result<Outcome, EngineError> {
        let lease = self.manifest.sequence + 1;
        // A run asks anew before each commit that lets chunks go; nothing changes here meanwhile.
        let known = OnceCell::new();
        let claimed = || match known.get() {
            Some(claimed) => Ok(RoaringTreemap::clone(claimed)),
            None => {
                claimed_chunks(repository, self.manifest.series).inspect(|claimed| drop(known.set(claimed.clone())))
            }
        };
        let names = DrySink::new(lease);
        let mut sink = Sink { names, kept: beside, series: self.manifest.series };
        let Removal { left: Left { next: first, dead, to_rewrite, .. }, new: metadata, rewritten } =
            plan(repository, &self.manifest, choice, options, claimed, &sink, resources)?;
        let rewrites = !to_rewrite.is_empty();
        // The manifests that the run commits after that of the lease: that of the lease, or the last but one of these,
        // stays.
        let claimed = |_: Option<&Manifest>| claimed();
        let mut commits = manifests_of_commit(&self.manifest, first.clone(), claimed)?;
        let mut manifest = commits.last().cloned().unwrap_or(self.manifest.clone());
        let dead = deleted(&dead, &manifest);
        let (mut old, mut new) = (Vec::new(), Vec::new());
        if rewrites {
            // As in a run, from what was committed.
            let Left { to_rewrite, live, .. } = left(manifest.clone(), options.rewrite_threshold);
            sink.kept = beside.filter(|_| has_more(&manifest));
            let rewritten =
                rewrite_intact(repository, &manifest, to_rewrite, &live, options.rewriting(), &sink, resources)?;
            (old, new) = (rewritten.old, rewritten.new);
            let before = manifest.clone();
            replace(&mut manifest, &old, new.clone());
            commits.extend(manifests_of_commit(&before, manifest, claimed)?);
            manifest = commits.last().cloned().unwrap_or(before);
        }
        (manifest.lease, manifest.sequence) = (None, lease + commits.len() as u64);
        let mut before_last = sizes_of_commit(repository, &self.manifest, &self.parts, None)?;
        let mut last = before_last.clone();
        let mut manifest_bytes = before_last.object_bytes;
        for (number, committed) in (lease..).zip(&commits) {
            let sizes = sizes_of_commit(repository, committed, &last.parts, Some(number))?;
            before_last = std::mem::replace(&mut last, sizes);
            manifest_bytes = manifest_bytes.max(last.object_bytes);
        }
        let beside_bytes = bytes_of_both(&before_last, &last);
        let mut parity = self.parity.clone();
        for record in metadata.iter().chain(&new) {
            parity.insert(record.id, repository.parity().object_bytes(record.kind, record.object_bytes));
        }
        let bytes_of = |records: &[ContainerRecord]| {
            object_bytes(records) + records.iter().filter_map(|record| parity.get(&record.id)).sum::<u64>()
        };
        let loans = &loans_of(&self.manifest) - &loans_of(&manifest);
        let (loan_objects, loan_bytes) = objects_and_bytes(repository, &loans)?;
        let gone = self.beside_bytes + bytes_of(&dead) + bytes_of(&old) + loan_bytes;
        let made = beside_bytes + bytes_of(&metadata) + bytes_of(&new);
        let signed = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
        let bytes_returned = signed(gone) - signed(made);
        let mut usage = Usage::of_commits(commits.len().saturating_sub(1) as u64, manifest_bytes);
        usage += Usage::of_new_parts(&self.parts, &[&before_last, &last]);
        usage += Usage::of_containers(repository, &metadata);
        usage += Usage::of_containers(repository, &new);
        // Each container may have its parity.
        usage.deletes += loan_objects + self.beside_objects + COPIES * (dead.len() + old.len()) as u64;
        usage.bytes_kept = -bytes_returned;
        Ok(Outcome {
            usage,
            bytes_returned,
            containers_deleted: dead.len() as u64,
            containers_rewritten: old.len() as u64,
            snapshots_rewritten: rewritten,
            // An estimate, which must not keep anything from being stated.
            ghost_bytes: ghost_bytes(repository, &first).unwrap_or(0),
            loans,
            next: Self { manifest, parts: last.parts, beside_bytes, beside_objects: BESIDE_OBJECTS, parity },
        })
    }
}

/// Tells whether there is more to come of a series that is not asked for: marks end, or others need it no more.
pub(super) fn has_more(manifest: &Manifest) -> bool {
    !(marked(manifest).is_empty() && manifest.lent.is_empty())
}

/// The loans that a manifest names.
pub(super) fn loans_of(manifest: &Manifest) -> BTreeSet<ObjectName> {
    let names = |lender: &Lender| {
        let series = lender.series;
        lender.loans.iter().map(move |loan| ObjectName::Loan(series, *loan)).collect::<Vec<_>>()
    };
    manifest.lenders.iter().flat_map(names).collect()
}

/// The series that these loans are of.
pub(super) fn lenders_in(loans: &BTreeSet<ObjectName>) -> impl Iterator<Item = SeriesId> + '_ {
    loans.iter().filter_map(|name| if let ObjectName::Loan(lender, _) = name { Some(*lender) } else { None })
}

/// How many of these objects there are, and their bytes.
fn objects_and_bytes(repository: &Repository, names: &BTreeSet<ObjectName>) -> Result<(u64, u64), StoreError> {
    let (mut objects, mut bytes) = (0, 0);
    for name in names {
        match repository.storage().size_of(name) {
            Ok(size) => (objects, bytes) = (objects + 1, bytes + size),
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok((objects, bytes))
}

/// The bytes of two manifests and of their parts, those that both name once.
fn bytes_of_both(before_last: &CommitSizes, last: &CommitSizes) -> u64 {
    let parts = before_last.parts.records().chain(last.parts.records());
    let parts: BTreeMap<_, _> = parts.map(|record| (record.id, record.object_bytes())).collect();
    COPIES * (before_last.object_bytes + last.object_bytes + parts.values().sum::<u64>())
}

/// Bytes and number of the manifests of a series with their parts, and of the containers that acquiring the lease will
/// remove.
fn manifests_and_orphans(repository: &Repository, manifest: &Manifest) -> Result<(u64, u64), StoreError> {
    let named = manifest.named_objects();
    let storage = repository.storage();
    let mut listed = Vec::new();
    for what in Listing::kept_by(manifest.series) {
        listed.extend(storage.list(what)?);
    }
    let beside = listed.iter().filter(|meta| !named.contains(&meta.name));
    Ok(beside.fold((0, 0), |(bytes, objects), meta| (bytes + meta.bytes, objects + 1)))
}

/// Names containers as a writer would.
struct Sink<'k> {
    names: DrySink,
    kept: Option<&'k Beside>,
    series: SeriesId,
}

impl ContainerSink for Sink<'_> {
    fn new_id(&self) -> ContainerId {
        self.names.new_id()
    }

    fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        if let Some(kept) = self.kept {
            // Where there is no room for it, what comes after cannot be told; that does not keep this run from being
            // told.
            let _ = kept.0.overlay.put(&container.record.object_name(self.series), &container.bytes);
        }
        Ok(())
    }
}

/// Containers that a dry run has made, beside those that lie in the repository, and the loans it has given back.
pub(super) struct Beside(Overlaid<Overlay>);

impl Beside {
    /// Nothing so far.
    pub(super) fn over(repository: &Repository, scratch: &Path) -> Result<Self, StoreError> {
        Overlay::over(repository, scratch, |overlay| overlay).map(Self)
    }

    /// Takes these loans away.
    pub(super) fn give_back(&self, loans: &BTreeSet<ObjectName>) {
        for loan in loans {
            // Only a name is noted.
            let _ = self.0.overlay.delete(loan);
        }
    }

    /// The repository, with them in it, and without these loans.
    pub(super) fn repository(&self) -> &Repository {
        &self.0.repository
    }
}

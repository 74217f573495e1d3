//! Checkpoints: a long backup commits what it has done so far, now and then and when it is interrupted.
//!
//! A checkpoint is a snapshot marked *partial*: a catalog of the entries up to here, whole in itself and restorable. A
//! large file that was still coming in stands in it under a name of its own (module `half_read`), as long as it was by
//! then: no file of the source has its own name unless it is whole. The assembling stage cuts it off between two pieces
//! and sends it through the queues behind the chunks it needs; the packer closes its containers and commits. So all it
//! refers to is durable, and nothing waits but the packer.
//!
//! The next backup of the series builds on partial snapshots as on the last whole one (module `previous`) and drops
//! them in its own commit. Until then a checkpoint replaces the one before of the same run, and those of earlier runs
//! whose data it has.
//!
//! Cost: the catalog's nodes on the way from the root to the last entry, containers that are not full, one manifest.

use super::borrow::{MakesLoans, add_taken};
use super::flow::Reached;
use super::needs::Needs;
use super::options::CheckpointRule;
use super::outcome::Noted;
use super::previous;
use super::run::BackupRun;
use crate::EngineError;
use crate::lease::now;
use crate::observer::Notice;
use crate::pack::{ContainerSink, Packed};
use crate::parallel::lock;
use roaring::RoaringTreemap;
use siltstone_store::container::SealedContainer;
use siltstone_store::manifest::{BorrowedRun, Manifest, Snapshot};
use siltstone_store::series::{Loan, SeriesWriter};
use siltstone_store::{ChunkNumber, ContainerId, SeriesId, SnapshotId, StoreError};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError, RwLock};
use std::time::Instant;

/// Partial snapshots of interrupted runs that a series keeps at most; beyond, the oldest go.
const PARTIAL_MAX: usize = 8;

/// Tells when a checkpoint is due.
pub(super) struct Pace {
    rule: Option<CheckpointRule>,
    since: Instant,
    bytes: u64,
}

impl Pace {
    pub(super) fn new(rule: Option<CheckpointRule>) -> Self {
        Self { rule, since: Instant::now(), bytes: 0 }
    }

    /// Tells whether one is due after so many new bytes in all; then the next is counted from here.
    pub(super) fn is_due(&mut self, bytes: u64) -> bool {
        let Some(rule) = self.rule.filter(|_| self.is_worth_it(bytes)) else { return false };
        let is_due = bytes - self.bytes >= rule.bytes || self.since.elapsed() >= rule.every;
        if is_due {
            (self.since, self.bytes) = (Instant::now(), bytes);
        }
        is_due
    }

    /// Tells whether there is enough to keep.
    pub(super) fn is_worth_it(&self, bytes: u64) -> bool {
        self.rule.is_some_and(|rule| bytes.saturating_sub(self.bytes) >= rule.bytes_least.max(1))
    }
}

/// The writer of a run whose checkpoints are committed while containers are written.
pub(super) struct Checkpoints<'w, 'r> {
    writer: RwLock<&'w mut SeriesWriter<'r>>,
    /// The last one of this run.
    made: Mutex<Option<SnapshotId>>,
}

impl<'w, 'r> Checkpoints<'w, 'r> {
    pub(super) fn new(writer: &'w mut SeriesWriter<'r>) -> Self {
        Self { writer: RwLock::new(writer), made: Mutex::default() }
    }
}

impl ContainerSink for Checkpoints<'_, '_> {
    fn new_id(&self) -> ContainerId {
        self.writer.read().unwrap_or_else(PoisonError::into_inner).new_container_id()
    }

    fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        self.writer.write().unwrap_or_else(PoisonError::into_inner).take_lease()?;
        self.writer.read().unwrap_or_else(PoisonError::into_inner).put(container)
    }
}

impl MakesLoans for Checkpoints<'_, '_> {
    fn borrow(&self, lender: SeriesId, chunks: &[BorrowedRun]) -> Result<Loan, StoreError> {
        let mut writer = self.writer.write().unwrap_or_else(PoisonError::into_inner);
        writer.take_lease()?;
        writer.add_lender(lender, now())?;
        writer.borrow_chunks(lender, chunks)
    }
}

impl BackupRun<'_> {
    /// Commits a partial snapshot of what the backup has reached; everything it needs was handed to the writer.
    /// `before` is the manifest at the beginning of the run.
    pub(super) fn commit_checkpoint(
        &self,
        checkpoints: &Checkpoints<'_, '_>,
        before: &Manifest,
        reached: &Reached,
        packed: &Packed,
        noted: &Noted,
    ) -> Result<(), EngineError> {
        let Reached { snapshot, direct, taken, next, tally, account, is_last } = reached;
        let healed = &RoaringTreemap::new();
        let needs = Needs { direct, healed, next: *next, containers: &packed.containers, bases: &noted.bases };
        let (necessary, is_exact) = self.necessary(before, &needs)?;
        let statistics = self.statistics(account, tally, packed, noted);
        let snapshot = Snapshot { statistics, ..snapshot.clone() };
        let id = snapshot.id;
        let mut made = lock(&checkpoints.made);
        let mut writer = checkpoints.writer.write().unwrap_or_else(PoisonError::into_inner);
        let mut manifest = writer.manifest().clone();
        let replaced = replaced(&manifest, *made, direct);
        let borrowed = (manifest.imports.clone(), manifest.lenders.clone());
        manifest.remove_snapshots(&replaced);
        (manifest.imports, manifest.lenders) = borrowed;
        previous::add_containers(&mut manifest, &packed.containers);
        (manifest.next_data, manifest.next_metadata) = *next;
        manifest.ghosts_due |= !is_exact;
        manifest.lends |= self.may_lend();
        for taken in taken {
            add_taken(&mut manifest, taken, taken.loan);
        }
        manifest.push_snapshot(snapshot, direct, &necessary);
        writer.commit(manifest, true, now())?;
        *made = Some(id);
        self.resources.observer.notice(&Notice::Checkpoint { snapshot: id, is_last: *is_last });
        Ok(())
    }
}

/// The partial snapshots that one with these chunks replaces: the last of the same run, those whose data it has, and
/// the oldest of too many. No container and nothing borrowed goes with them: this run may still read it, and the new
/// snapshot may need it. The last commit of this run, or of the next one, tidies up.
fn replaced(manifest: &Manifest, of_this_run: Option<SnapshotId>, direct: &RoaringTreemap) -> BTreeSet<SnapshotId> {
    let partial: Vec<usize> = previous::partial(manifest).collect();
    let many = (partial.len() + 1).saturating_sub(PARTIAL_MAX);
    let is_covered = |position: usize| {
        let mut data = manifest.direct(position) - direct;
        data.remove_range(ChunkNumber::METADATA_FIRST.0..);
        data.is_empty()
    };
    let each = partial.into_iter().enumerate().filter_map(|(at, position)| {
        let id = manifest.snapshots().get(position)?.id;
        (Some(id) == of_this_run || at < many || is_covered(position)).then_some(id)
    });
    each.collect()
}

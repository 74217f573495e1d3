//! Ending the marks of deleted snapshots: those whose time is over are taken out.

use super::dead::object_bytes;
use super::lent::without;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use siltstone_store::{SnapshotId, StoreError, Time};
use std::collections::BTreeSet;

/// Tells whether marks of this manifest are over.
pub(super) fn has_marks_over(manifest: &Manifest, now: Time) -> bool {
    !over(manifest, now).is_empty()
}

/// Removes the snapshots whose marks are over, and the containers that only they needed. The lease is kept. Gives how
/// many snapshots there were, how many containers and their bytes; what is dead in part is left to be compacted.
pub(super) fn end_marks(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    now: Time,
) -> Result<(u64, u64, u64), StoreError> {
    let ended = over(writer.manifest(), now);
    if ended.is_empty() {
        return Ok((0, 0, 0));
    }
    let left = without(repository, writer.manifest(), &ended, f64::INFINITY)?;
    writer.commit(left.next, true, now)?;
    writer.delete(&left.dead)?;
    Ok((ended.len() as u64, left.dead.len() as u64, object_bytes(&left.dead)))
}

fn over(manifest: &Manifest, now: Time) -> BTreeSet<SnapshotId> {
    let is_over =
        |snapshot: &&siltstone_store::manifest::Snapshot| snapshot.deleted.is_some_and(|mark| mark.is_over(now));
    manifest.snapshots().iter().filter(is_over).map(|snapshot| snapshot.id).collect()
}

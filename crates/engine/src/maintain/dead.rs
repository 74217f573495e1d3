//! Containers that die, whole or in part, with snapshots that are taken out; pure.

use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ContainerId, SnapshotId};
use std::collections::{BTreeSet, HashSet};
use std::ops::RangeInclusive;

/// The next manifest, and what it lets go of.
pub(crate) struct Left {
    /// The manifest without dead containers.
    pub(crate) next: Manifest,
    /// Containers that no snapshot left needs any chunk of.
    pub(crate) dead: Vec<ContainerRecord>,
    /// Containers whose dead share passes the threshold.
    pub(crate) to_rewrite: Vec<ContainerRecord>,
    /// The chunk numbers that the snapshots left need, or others have borrowed.
    pub(crate) live: RoaringTreemap,
}

/// Takes snapshots out of a manifest, and notes that there is something to clean up.
pub(crate) fn take_out(manifest: &mut Manifest, snapshots: &BTreeSet<SnapshotId>) {
    manifest.ghosts_due |= !manifest.remove_snapshots(snapshots).is_empty();
}

/// Returns a series whose snapshots are those of `next`: containers that none of them needs go, and those of
/// which more than the threshold is dead are to be rewritten.
pub(crate) fn left(mut next: Manifest, threshold: f64) -> Left {
    let live = next.kept();
    let (mut dead, mut to_rewrite, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for mut record in std::mem::take(&mut next.containers) {
        match dead_share(&record, &live) {
            share if share >= 1.0 => dead.push(record),
            share => {
                if record.has_deltas {
                    // What is dead may hang on what goes now: nobody can decode it any more.
                    record.change_numbers(|numbers| numbers & &live);
                }
                if share > threshold {
                    to_rewrite.push(record.clone());
                }
                kept.push(record);
            }
        }
    }
    next.containers = kept;
    Left { next, dead, to_rewrite, live }
}

/// Those of the dead containers that a manifest committed since does not name: they are deleted. It goes on naming one
/// of which others turned out to have borrowed.
pub(crate) fn deleted(dead: &[ContainerRecord], committed: &Manifest) -> Vec<ContainerRecord> {
    let named: HashSet<ContainerId> = committed.containers.iter().map(|record| record.id).collect();
    dead.iter().filter(|record| !named.contains(&record.id)).cloned().collect()
}

/// The bytes of containers.
pub(crate) fn object_bytes(records: &[ContainerRecord]) -> u64 {
    records.iter().map(|record| record.object_bytes).sum()
}

/// The bytes of the largest container; 0 of none.
pub(crate) fn largest_bytes(records: &[ContainerRecord]) -> u64 {
    records.iter().map(|record| record.object_bytes).max().unwrap_or(0)
}

/// The share of a container's chunks that no live snapshot needs or another container answers for, by number: chunks
/// are much of a size.
#[allow(clippy::cast_precision_loss)]
fn dead_share(record: &ContainerRecord, live: &RoaringTreemap) -> f64 {
    let held = record.held;
    let needed: u64 = record.chunks.iter().map(|run| count_in(live, run.range())).sum();
    (held - needed) as f64 / held.max(1) as f64
}

fn count_in(live: &RoaringTreemap, range: RangeInclusive<u64>) -> u64 {
    let below = range.start().checked_sub(1).map_or(0, |before| live.rank(before));
    live.rank(*range.end()) - below
}

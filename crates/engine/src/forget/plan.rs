//! What taking snapshots out does to the containers of a series; pure.

use super::choice::Choice;
use super::container_ids;
use crate::repack::keep_numbers;
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ContainerId, SnapshotId};
use std::collections::BTreeSet;

/// The next manifest, and what it lets go of.
pub(super) struct Plan {
    /// The manifest without the snapshots and without dead containers.
    pub(super) next: Manifest,
    /// Containers that no snapshot left needs any chunk of.
    pub(super) dead: Vec<ContainerRecord>,
    /// Containers whose dead share passes the threshold.
    pub(super) to_rewrite: Vec<ContainerRecord>,
    /// The chunk numbers that the snapshots left need.
    pub(super) live: RoaringTreemap,
}

pub(super) fn plan(manifest: &Manifest, choice: &Choice, threshold: f64) -> Plan {
    let mut next = manifest.clone();
    choice.apply(&mut next);
    let live = next.live();
    let (mut dead, mut to_rewrite, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    for mut record in std::mem::take(&mut next.containers) {
        match dead_share(&record, &live) {
            share if share >= 1.0 => dead.push(record),
            share => {
                if record.has_deltas {
                    // What is dead may hang on what goes now: nobody can decode it any more.
                    keep_numbers(&mut record, |numbers| numbers & &live);
                }
                if share > threshold {
                    to_rewrite.push(record.clone());
                }
                kept.push(record);
            }
        }
    }
    next.containers = kept;
    Plan { next, dead, to_rewrite, live }
}

/// The manifest of a new whole snapshot, the last, without the checkpoints on the way to it, and the containers that
/// nothing needs then.
pub(crate) fn without_checkpoints(manifest: &Manifest, partial: &BTreeSet<SnapshotId>) -> (Manifest, Vec<ContainerId>) {
    let needed = |position: usize| manifest.necessary(position);
    let last = manifest.snapshots().len().saturating_sub(1);
    // Hulls end with the new snapshot, unless something came back in a checkpoint and went again.
    let mut went = RoaringTreemap::new();
    for position in (0..last).filter(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| snapshot.partial)) {
        went |= needed(position) - needed(last);
    }
    let kept = (0..last).rfind(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| !snapshot.partial));
    let is_hull_left = kept.is_some_and(|kept| !went.is_disjoint(&needed(kept)));
    let plan = plan(manifest, &Choice::removing(partial.clone()), f64::INFINITY);
    let mut next = plan.next;
    next.squeeze_due = manifest.squeeze_due || is_hull_left;
    (next, container_ids(&plan.dead))
}

/// The share of a container's chunks that no live snapshot needs or another container answers for, by number: chunks
/// are much of a size.
#[allow(clippy::cast_precision_loss)]
fn dead_share(record: &ContainerRecord, live: &RoaringTreemap) -> f64 {
    let held = record.held;
    let needed: u64 = record.chunks.iter().map(|run| count_in(live, run.range())).sum();
    (held - needed) as f64 / held.max(1) as f64
}

fn count_in(live: &RoaringTreemap, range: std::ops::RangeInclusive<u64>) -> u64 {
    let below = range.start().checked_sub(1).map_or(0, |before| live.rank(before));
    live.rank(*range.end()) - below
}

//! Effects of a run on a series: snapshots go, or are written anew. Nothing is committed.

use super::ForgetOptions;
use super::choice::Choice;
use crate::maintain::dead::{Left, left};
use crate::maintain::lent::{keep_claimed, without};
use crate::pack::ContainerSink;
use crate::rewrite::rewrite_snapshots;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;

/// Plan of what a run removes, and of what it writes for that.
pub(super) struct Removal {
    /// The manifest once the choice is applied to it, without dead containers, and what it lets go of.
    pub(super) left: Left,
    /// Containers of new metadata, which it names.
    pub(super) new: Vec<ContainerRecord>,
    /// How many snapshots were written anew.
    pub(super) rewritten: u64,
}

/// Plans a run; `claimed` gives what others have borrowed. New metadata goes to the sink.
pub(super) fn plan(
    repository: &Repository,
    manifest: &Manifest,
    choice: &Choice,
    options: &ForgetOptions,
    claimed: impl FnOnce() -> Result<RoaringTreemap, StoreError>,
    sink: &dyn ContainerSink,
    resources: &Resources,
) -> Result<Removal, EngineError> {
    let mut next = manifest.clone();
    choice.apply(&mut next);
    let (new, rewritten) = match &options.exclude {
        Some(filter) if !choice.rewritten.is_empty() => {
            let level = options.compression_level;
            rewrite_snapshots(repository, &mut next, &choice.rewritten, filter, level, sink, resources)?
        }
        _ => (Vec::new(), 0),
    };
    keep_claimed(repository, manifest, &mut next, claimed)?;
    Ok(Removal { left: left(next, options.rewrite_threshold), new, rewritten })
}

/// The manifest of a new whole snapshot, the last, without the checkpoints on the way to it, and the containers that
/// nothing needs then.
pub(crate) fn without_checkpoints(
    repository: &Repository,
    manifest: &Manifest,
    partial: &BTreeSet<SnapshotId>,
) -> Result<(Manifest, Vec<ContainerRecord>), StoreError> {
    let needed = |position: usize| manifest.necessary(position);
    let last = manifest.snapshots().len().saturating_sub(1);
    // Hulls end with the new snapshot, unless something came back in a checkpoint and went again.
    let mut went = RoaringTreemap::new();
    for position in (0..last).filter(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| snapshot.partial)) {
        went |= needed(position) - needed(last);
    }
    let kept = (0..last).rfind(|at| manifest.snapshots().get(*at).is_some_and(|snapshot| !snapshot.partial));
    let is_hull_left = kept.is_some_and(|kept| !went.is_disjoint(&needed(kept)));
    let Left { mut next, dead, .. } = without(repository, manifest, partial, f64::INFINITY)?;
    next.ghosts_due = manifest.ghosts_due || is_hull_left;
    Ok((next, dead))
}

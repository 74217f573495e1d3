//! Effects of taking snapshots out of a series. Nothing is written.

use super::choice::Choice;
use crate::maintain::dead::{Left, left};
use crate::maintain::lent::{keep_claimed, without};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;

/// The manifest once the choice is applied to it, without dead containers, and what it lets go of; `claimed` gives what
/// others have borrowed.
pub(super) fn plan(
    repository: &Repository,
    manifest: &Manifest,
    choice: &Choice,
    threshold: f64,
    claimed: impl FnOnce() -> Result<RoaringTreemap, StoreError>,
) -> Result<Left, StoreError> {
    let mut next = manifest.clone();
    choice.apply(&mut next);
    keep_claimed(repository, manifest, &mut next, claimed)?;
    Ok(left(next, threshold))
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

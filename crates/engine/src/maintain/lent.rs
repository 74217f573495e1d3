//! Chunks that others have borrowed and that no snapshot of the series needs: they stay, with their bases, and go as
//! soon as nobody claims them.

use super::dead::{Left, left, object_bytes, take_out};
use super::options::MaintainSummary;
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::lease::now;
use roaring::RoaringTreemap;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{SeriesWriter, claimed_chunks};
use siltstone_store::{ChunkNumber, SnapshotId, StoreError};
use std::collections::BTreeSet;

/// Says in `next`, which follows `before`, which chunks stay because others have borrowed them: of those that no
/// snapshot needs any more what a loan claims, and the bases of that. Where nothing would go no loan is looked for.
///
/// # Errors
/// Those of listing and reading the loans, and of reading indexes; where one is damaged all stays that would go.
pub(crate) fn keep_lent(repository: &Repository, before: &Manifest, next: &mut Manifest) -> Result<(), StoreError> {
    keep_claimed(repository, before, next, || claimed_chunks(repository, before.series))
}

/// Does as [`keep_lent`], with what the loans claim.
///
/// # Errors
/// Those of `claimed`, and as [`keep_lent`].
pub(crate) fn keep_claimed(
    repository: &Repository,
    before: &Manifest,
    next: &mut Manifest,
    claimed: impl FnOnce() -> Result<RoaringTreemap, StoreError>,
) -> Result<(), StoreError> {
    let live = next.live();
    let mut going = (before.kept() | before.unclaimed()) - &live - before.imported();
    going.remove_range(ChunkNumber::METADATA_FIRST.0..);
    next.lent = if going.is_empty() || !before.lends {
        RoaringTreemap::new()
    } else {
        let claimed = claimed()? & &going;
        match ChunkSource::new(repository, before).closure(&claimed) {
            Ok(needed) => needed & &going,
            Err(error) if error.is_damage() => going,
            Err(error) => return Err(error),
        }
    };
    Ok(())
}

/// Returns a series without these snapshots.
///
/// # Errors
/// As [`keep_lent`].
pub(crate) fn without(
    repository: &Repository,
    manifest: &Manifest,
    snapshots: &BTreeSet<SnapshotId>,
    threshold: f64,
) -> Result<Left, StoreError> {
    let mut next = manifest.clone();
    take_out(&mut next, snapshots);
    keep_lent(repository, manifest, &mut next)?;
    Ok(left(next, threshold))
}

/// Tells whether the series keeps chunks for others that nobody claims any more.
pub(crate) fn is_over(repository: &Repository, manifest: &Manifest) -> Result<bool, StoreError> {
    if manifest.lent.is_empty() {
        return Ok(false);
    }
    let mut next = manifest.clone();
    keep_lent(repository, manifest, &mut next)?;
    Ok(next.lent != manifest.lent)
}

/// Lets go of chunks that nobody claims any more, and of the containers that held nothing else; what is dead in part is
/// left to be compacted. The lease is kept.
pub(super) fn release(repository: &Repository, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    if !is_over(repository, writer.manifest())? {
        return Ok(MaintainSummary::default());
    }
    let mut next = writer.manifest().clone();
    keep_lent(repository, writer.manifest(), &mut next)?;
    next.ghosts_due = true;
    let plan = left(next, f64::INFINITY);
    writer.commit(plan.next, true, now())?;
    writer.delete(&plan.dead)?;
    let (containers_deleted, bytes_deleted) = (plan.dead.len() as u64, object_bytes(&plan.dead));
    Ok(MaintainSummary { bytes_deleted, containers_deleted, ..MaintainSummary::default() })
}

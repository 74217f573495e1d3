//! Bringing snapshots back that were marked as deleted: their marks are taken off, in one commit for each series.
//!
//! Nothing else changes, for a marked snapshot lies in its series as any other (`forget`): storage needs no room and
//! reads nothing for it.

use crate::lease::{Purpose, acquire, now};
use crate::setters::setters;
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Resources};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, newest_manifest};
use siltstone_store::{SeriesId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};

/// Options of bringing snapshots back.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct UndeleteOptions {
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

setters!(UndeleteOptions {
    with_take_over(take_over: bool),
    with_user(user: String),
});

/// Takes the marks off these snapshots; those that have none are live already. Gives how many had one.
///
/// # Errors
/// [`EngineError::DeletedForGood`] before any is brought back, if one is gone; those of the repository, with the series
/// before done.
pub fn undelete(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    options: &UndeleteOptions,
    resources: &Resources,
) -> Result<u64, EngineError> {
    repository.require_reading("bringing snapshots back")?;
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
    for (series, id) in snapshots {
        by_series.entry(*series).or_default().insert(*id);
    }
    let mut names = BTreeMap::new();
    for (series, ids) in &by_series {
        let stored = newest_manifest(repository, *series)?;
        let manifest = stored.map_or_else(|| Manifest::new(*series, ""), |stored| stored.manifest);
        without_marks(&manifest, ids)?;
        names.insert(*series, manifest.name);
    }
    let mut done = 0;
    for (series, ids) in &by_series {
        let name = names.get(series).map_or("", String::as_str);
        done += undelete_in_series(repository, name, ids, options, resources)?;
    }
    Ok(done)
}

fn undelete_in_series(
    repository: &Repository,
    series_name: &str,
    ids: &BTreeSet<SnapshotId>,
    options: &UndeleteOptions,
    resources: &Resources,
) -> Result<u64, EngineError> {
    let (user, take_over) = (options.user.as_str(), options.take_over);
    // On a full disk the reserve stands in; it is put back at once, as far as there is room.
    let purpose = Purpose { name: "undelete", user, take_over, reserve: ReserveUse::Spend };
    let mut writer = acquire(repository, series_name, &purpose, resources)?;
    // Another may have removed some since.
    let done = without_marks(writer.manifest(), ids).and_then(|(next, count)| {
        writer.commit(next, false, now())?;
        writer.restore_reserve()?;
        Ok(count)
    });
    if done.is_err() {
        // The first error is the one to tell; a lease left behind is taken over by the next run.
        let _ = writer.abandon(now());
    }
    done
}

/// The manifest with these snapshots live, and how many of them were not.
fn without_marks(manifest: &Manifest, ids: &BTreeSet<SnapshotId>) -> Result<(Manifest, u64), EngineError> {
    let (mut next, mut count) = (manifest.clone(), 0);
    for id in ids {
        let gone = || EngineError::DeletedForGood { snapshot: id.short(), series: manifest.name.clone() };
        count += u64::from(next.snapshot_mut(id).ok_or_else(gone)?.deleted.take().is_some());
    }
    Ok((next, count))
}

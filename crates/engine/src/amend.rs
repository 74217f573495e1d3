//! Changes of what series say of their snapshots, one commit for each series: tags, descriptions, marks of deletion.
//!
//! Nothing else changes: storage needs no room and reads nothing for it. The record that lies among a snapshot's own
//! chunks stays as the backup made it, so repair brings back what was said then.

use crate::lease::{Purpose, acquire, now};
use crate::snapshots::SnapshotKey;
use crate::{EngineError, Resources};
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, newest_manifest};
use siltstone_store::{SeriesId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};

/// Change of what is said of snapshots.
pub(crate) struct Amendment<'a> {
    /// Purpose of the leases.
    pub(crate) name: &'a str,
    /// Who does it.
    pub(crate) user: &'a str,
    /// Take leases over whose holders cannot be seen from here.
    pub(crate) take_over: bool,
    /// The error where a series no longer has a snapshot.
    pub(crate) gone: fn(&SnapshotId, &Manifest) -> EngineError,
    /// Changes one; tells whether it differs now.
    pub(crate) apply: &'a dyn Fn(&mut Snapshot) -> bool,
}

/// Changes these snapshots. Returns how many differ now.
///
/// # Errors
/// That one is gone, before any is changed; those of the repository, with the series before done.
pub(crate) fn amend(
    repository: &Repository,
    snapshots: &[SnapshotKey],
    amendment: &Amendment<'_>,
    resources: &Resources,
) -> Result<u64, EngineError> {
    let mut by_series: BTreeMap<SeriesId, BTreeSet<SnapshotId>> = BTreeMap::new();
    for (series, id) in snapshots {
        by_series.entry(*series).or_default().insert(*id);
    }
    let mut names = BTreeMap::new();
    for (series, ids) in &by_series {
        let stored = newest_manifest(repository, *series)?;
        let manifest = stored.map_or_else(|| Manifest::new(*series, ""), |stored| stored.manifest);
        let (_, count) = amendment.of(&manifest, ids)?;
        if count > 0 {
            names.insert(*series, manifest.name);
        }
    }
    let mut done = 0;
    for (series, name) in &names {
        done += amend_series(repository, name, &by_series[series], amendment, resources)?;
    }
    Ok(done)
}

fn amend_series(
    repository: &Repository,
    series_name: &str,
    ids: &BTreeSet<SnapshotId>,
    amendment: &Amendment<'_>,
    resources: &Resources,
) -> Result<u64, EngineError> {
    let Amendment { name, user, take_over, .. } = *amendment;
    // On a full disk the reserve stands in; it is put back at once, as far as there is room.
    let purpose = Purpose { name, user, take_over, reserve: ReserveUse::Spend };
    let mut writer = acquire(repository, series_name, &purpose, resources)?;
    // Another may have removed some since.
    let done = amendment.of(writer.manifest(), ids).and_then(|(next, count)| {
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

impl Amendment<'_> {
    /// The manifest with these snapshots changed, and how many differ.
    fn of(&self, manifest: &Manifest, ids: &BTreeSet<SnapshotId>) -> Result<(Manifest, u64), EngineError> {
        let (mut next, mut count) = (manifest.clone(), 0);
        for id in ids {
            let snapshot = next.snapshot_mut(id).ok_or_else(|| (self.gone)(id, manifest))?;
            count += u64::from((self.apply)(snapshot));
        }
        Ok((next, count))
    }
}

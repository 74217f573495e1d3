//! Entries that meet a condition, in many snapshots: `silt find`.
//!
//! Of two snapshots of a series that follow each other only those nodes of the catalogs are read that one has and the
//! other lacks. So all snapshots of a series take little longer than one. What is found in one snapshot is in memory.

use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use siltstone_store::catalog::{CatalogReader, Entry, EntryPath};
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, StoreError};
use std::collections::BTreeMap;

/// Entries of one snapshot, by their paths.
pub type Found = BTreeMap<EntryPath, Entry>;

/// Shows for each of these snapshots the entries that are wanted, series by series and in the order of their commits.
/// Damage ends the search in a series; the errors of all that were hit are returned.
///
/// # Errors
/// Those of the repository; whatever `visit` returns.
pub fn find(
    repository: &Repository,
    snapshots: &[SnapshotView],
    is_wanted: &dyn Fn(&Entry) -> bool,
    visit: &mut dyn FnMut(&SnapshotView, &Found) -> Result<(), EngineError>,
) -> Result<Vec<StoreError>, EngineError> {
    repository.require_reading("looking for files in snapshots")?;
    let mut by_series: BTreeMap<SeriesId, BTreeMap<usize, &SnapshotView>> = BTreeMap::new();
    for view in snapshots {
        by_series.entry(view.series).or_default().insert(view.position, view);
    }
    let mut damage = Vec::new();
    for views in by_series.into_values() {
        let views: Vec<&SnapshotView> = views.into_values().collect();
        match find_in_series(repository, &views, is_wanted, visit) {
            Err(EngineError::Store(error)) if error.is_damage() => damage.push(error),
            other => other?,
        }
    }
    Ok(damage)
}

fn find_in_series(
    repository: &Repository,
    views: &[&SnapshotView],
    is_wanted: &dyn Fn(&Entry) -> bool,
    visit: &mut dyn FnMut(&SnapshotView, &Found) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let Some(first) = views.first() else { return Ok(()) };
    let manifest = manifest_of(repository, first)?;
    let chunks = ChunkSource::new(repository, &manifest);
    let mut found = Found::new();
    let mut before = None;
    for view in views {
        // It may have been removed since.
        let Some(position) = manifest.position(&view.snapshot.id) else { continue };
        let (catalog, nodes) = (CatalogReader::new(&chunks, view.snapshot.root), manifest.direct(position));
        let entries = match &before {
            None => catalog.entries(),
            Some((earlier, known)) => {
                let earlier: &CatalogReader<&ChunkSource<'_>> = earlier;
                for entry in earlier.entries_in(known - &nodes) {
                    found.remove(&entry?.path);
                }
                catalog.entries_in(&nodes - known)
            }
        };
        for entry in entries {
            let entry = entry?;
            if is_wanted(&entry) {
                found.insert(entry.path.clone(), entry);
            }
        }
        visit(view, &found)?;
        before = Some((catalog, nodes));
    }
    Ok(())
}

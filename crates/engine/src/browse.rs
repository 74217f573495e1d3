//! Looking into a snapshot without restoring it: `ls`.

use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use siltstone_store::catalog::{CatalogReader, Entry, EntryPath};
use siltstone_store::repository::Repository;

/// Calls `visit` for the entry at `path` (if any was given) and for what is below it: its children, or all if
/// `recursive`.
///
/// # Errors
/// [`EngineError::NoSuchPath`]; damage of the catalog; whatever `visit` returns.
pub fn ls(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    recursive: bool,
    visit: &mut dyn FnMut(&Entry) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    repository.require_reading("listing what a snapshot holds")?;
    let manifest = manifest_of(repository, snapshot)?;
    let chunks = ChunkSource::new(repository, &manifest);
    let catalog = CatalogReader::new(&chunks, snapshot.snapshot.root);
    let entry = path.map(|path| find(&catalog, snapshot, path)).transpose()?;
    if recursive {
        let entries = path.map_or_else(|| catalog.entries(), |path| catalog.under(path));
        for entry in entries {
            visit(&entry?)?;
        }
        return Ok(());
    }
    if let Some(entry) = &entry {
        visit(entry)?;
    }
    if entry.as_ref().is_none_or(Entry::is_directory) {
        for entry in catalog.children(path) {
            visit(&entry?)?;
        }
    }
    Ok(())
}

/// The entry at a path.
pub(crate) fn find(
    catalog: &CatalogReader<&ChunkSource<'_>>,
    snapshot: &SnapshotView,
    path: &EntryPath,
) -> Result<Entry, EngineError> {
    catalog
        .find(path)?
        .ok_or_else(|| EngineError::NoSuchPath { snapshot: snapshot.snapshot.id.short(), path: shown(path) })
}

/// A path as errors show it.
pub(crate) fn shown(path: &EntryPath) -> String {
    format!("/{}", path.as_bytes().escape_ascii())
}

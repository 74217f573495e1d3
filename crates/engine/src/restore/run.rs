//! One run of a restore: what it was given, and which part of the snapshot is meant.

use super::options::RestoreOptions;
use crate::chunks::ChunkSource;
use crate::fs::Selector;
use crate::observer::Notice;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Resources};
use siltstone_store::catalog::{CatalogReader, Entries, Entry, EntryPath};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;

/// Restore as it was asked for.
pub(super) struct RestoreRun<'t> {
    pub(super) repository: &'t Repository,
    pub(super) snapshot: &'t SnapshotView,
    pub(super) options: &'t RestoreOptions,
    pub(super) resources: &'t Resources,
    pub(super) part: &'t SnapshotPart,
}

impl RestoreRun<'_> {
    /// Entries of the part that is restored, in catalog order.
    pub(super) fn entries<'s, 'r>(&self, chunks: &'s ChunkSource<'r>) -> Entries<&'s ChunkSource<'r>> {
        let catalog = CatalogReader::new(chunks, self.snapshot.snapshot.root);
        match &self.part.below {
            Some(entry) => catalog.under(&entry.path),
            None => catalog.entries(),
        }
    }

    /// Begins to choose among these entries.
    pub(super) fn selector(&self) -> Selector<'_> {
        self.options.filter.selector(self.part.below.as_ref().map(|entry| &entry.path))
    }

    /// Tells which patterns matched nothing. If none was taken of a snapshot that could be read, that is an error.
    pub(super) fn report_unmatched(
        &self,
        selector: &Selector<'_>,
        entries: u64,
        problems: u64,
    ) -> Result<(), EngineError> {
        let patterns = selector.unmatched().map(str::to_owned);
        if entries == 0 && problems == 0 && self.options.filter.chooses() {
            return Err(EngineError::NothingIncluded { patterns: patterns.collect() });
        }
        patterns.for_each(|pattern| self.resources.observer.notice(&Notice::NothingMatches { pattern }));
        Ok(())
    }

    /// Tells whether a directory with content gives way to something else: nothing that it holds is in the snapshot, or
    /// the entry could not be no directory.
    pub(super) fn empties_directories(&self) -> bool {
        self.options.delete && self.options.filter.takes_everything()
    }
}

/// Reads the manifest of the snapshot's series that was the newest when the snapshot was found: whoever reads follows
/// those that come after it.
pub(crate) fn manifest_of(repository: &Repository, snapshot: &SnapshotView) -> Result<Manifest, EngineError> {
    let gone = || EngineError::NoSnapshot { wanted: snapshot.snapshot.id.short() };
    let has_it = |manifest: &Manifest| manifest.position(&snapshot.snapshot.id).is_some();
    match repository.manifest_listed(snapshot.series)?.filter(has_it) {
        Some(manifest) => Ok(manifest),
        None => repository.manifest(snapshot.series)?.filter(has_it).ok_or_else(gone),
    }
}

/// Part of the snapshot that is meant, and what its paths are called in the target.
pub(super) struct SnapshotPart {
    /// The entry asked for; `None` for all.
    pub(super) below: Option<Entry>,
    /// Bytes to cut off the paths: those of the directory that becomes the target itself, or of the one that holds the
    /// file.
    pub(super) cut: usize,
}

impl SnapshotPart {
    /// Finds the part at or below `path`.
    pub(super) fn of(
        chunks: &ChunkSource<'_>,
        snapshot: &SnapshotView,
        path: Option<&EntryPath>,
    ) -> Result<Self, EngineError> {
        let Some(path) = path else {
            return Ok(Self { below: None, cut: 0 });
        };
        let missing = || EngineError::NoSuchPath {
            snapshot: snapshot.snapshot.id.short(),
            path: format!("/{}", path.as_bytes().escape_ascii()),
        };
        let entry = CatalogReader::new(chunks, snapshot.snapshot.root).find(path)?.ok_or_else(missing)?;
        let cut = match path.parent() {
            _ if entry.is_directory() => path.as_bytes().len() + 1,
            Some(parent) => parent.as_bytes().len() + 1,
            None => 0,
        };
        Ok(Self { below: Some(entry), cut })
    }

    /// Gives the path in the target; `None` for the directory that is the target itself.
    pub(super) fn target_path(&self, path: &EntryPath) -> Option<EntryPath> {
        EntryPath::new(path.as_bytes().get(self.cut..).unwrap_or_default()).ok()
    }
}

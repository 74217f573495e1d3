//! The catalog of the last snapshot on this machine, for a run whose key cannot read it from the repository.

use super::cache::Cache;
use super::previous::last_whole;
use super::run::BackupRun;
use crate::catalog_file::{CatalogDraft, CatalogFile};
use crate::observer::Notice;
use crate::parallel::lock;
use siltstone_store::ChunkNumber;
use siltstone_store::manifest::Manifest;
use std::sync::{Arc, Mutex, PoisonError};

/// The file of the last snapshot, and the one of the snapshot to be. Both are missing where the key reads.
pub(super) struct LocalCatalog {
    is_needed: bool,
    before: Option<Arc<CatalogFile>>,
    draft: Mutex<Option<CatalogDraft>>,
}

impl LocalCatalog {
    /// Opens the file of the last snapshot and begins the next one, if the run needs them. Where the former is missing,
    /// that is told, and all files are read.
    pub(super) fn open(run: &BackupRun<'_>, manifest: &Manifest, cache: Option<&Cache>) -> Self {
        if run.repository.may_read() {
            return Self { is_needed: false, before: None, draft: Mutex::new(None) };
        }
        let (keys, series, observer) = (run.repository.keys(), manifest.series, &run.resources.observer);
        let last = last_whole(manifest);
        let before =
            cache.zip(last).and_then(|(cache, last)| CatalogFile::open(&cache.catalog, keys, series, last.id).ok());
        // Where the index is lost, too, that is told, and means more.
        if last.is_some() && before.is_none() && cache.is_some_and(|cache| cache.index.exists()) {
            observer.notice(&Notice::CatalogLost);
        }
        let before = before.map(Arc::new);
        let begin = |cache: &Cache| CatalogDraft::create(&cache.catalog, keys, series, before.clone());
        let draft = cache.filter(|_| !run.options.dry_run).map(begin).transpose().unwrap_or_else(|error| {
            observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            None
        });
        Self { is_needed: true, before, draft: Mutex::new(draft) }
    }

    /// Returns the file of the last snapshot.
    pub(super) fn catalog(&self) -> Option<Arc<CatalogFile>> {
        self.before.clone()
    }

    /// Tells whether the last snapshot's catalog can be read: from the repository or from here.
    pub(super) fn is_readable(&self) -> bool {
        !self.is_needed || self.before.is_some()
    }

    /// Keeps a metadata chunk of the snapshot to be.
    pub(super) fn note(&self, number: ChunkNumber, bytes: &[u8]) {
        if let Some(draft) = lock(&self.draft).as_mut() {
            draft.push(number, bytes);
        }
    }

    /// Returns the file of the snapshot to be.
    pub(super) fn into_draft(self) -> Option<CatalogDraft> {
        self.draft.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

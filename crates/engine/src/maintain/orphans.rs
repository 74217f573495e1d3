//! Objects left by writers that may not delete, or were interrupted: taking the lease removes them, so a series in
//! which they lie is due.

use super::options::MaintainSummary;
use crate::lease::is_dead;
use crate::orphans::orphans_among;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Listing, ObjectMeta};
use siltstone_store::{SeriesId, StoreError};
use std::collections::HashMap;

/// The objects of all series, listed before the manifests are read: what is committed meanwhile is named by them.
pub(super) struct Listed(HashMap<SeriesId, Vec<ObjectMeta>>);

impl Listed {
    /// Lists the repository.
    ///
    /// # Errors
    /// Those of the storage.
    pub(super) fn of(repository: &Repository) -> Result<Self, StoreError> {
        let mut of_series: HashMap<SeriesId, Vec<ObjectMeta>> = HashMap::new();
        for meta in repository.storage().list(Listing::All)? {
            if let Some(series) = meta.name.series() {
                of_series.entry(series).or_default().push(meta);
            }
        }
        Ok(Self(of_series))
    }

    /// Counts what lies in a series that nobody needs, as a summary of its removal. While a writer has the lease,
    /// unless it is known to be dead, that may be its work; and all of a later lease may be another's.
    pub(super) fn orphans(&self, repository: &Repository, manifest: &Manifest) -> MaintainSummary {
        let (series, sequence) = (manifest.series, manifest.sequence);
        let mut summary = MaintainSummary::default();
        if manifest.lease.as_ref().is_some_and(|lease| !is_dead(&lease.holder)) {
            return summary;
        }
        let listed = self.0.get(&series).into_iter().flatten().filter(|meta| meta.name.is_of(series, sequence));
        let listed: Vec<ObjectMeta> = listed.copied().collect();
        let orphans = orphans_among(repository, manifest, &listed);
        summary.orphans_deleted = orphans.len() as u64;
        summary.orphan_bytes_deleted = orphans.iter().map(|meta| meta.bytes).sum();
        summary
    }
}

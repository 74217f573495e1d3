//! Figures about a repository and those of its snapshots that pass a filter.

use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::snapshots::{SnapshotFilter, SnapshotView};
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;

/// What the repository holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// Snapshots that pass the filter.
    pub snapshots: u64,
    /// Files in them, each snapshot counted.
    pub files: u64,
    /// Bytes a restore of each would write, summed.
    pub restore_bytes: u64,
    /// Bytes of the file chunks they need, each once, uncompressed.
    pub unique_bytes: u64,
    /// File chunks they need, each once.
    pub chunks: u64,
    /// Bytes of all data containers of the repository.
    pub data_container_bytes: u64,
    /// Bytes of all metadata containers.
    pub metadata_container_bytes: u64,
    /// Number of containers.
    pub containers: u64,
    /// Bytes of everything in the repository.
    pub repository_bytes: u64,
}

/// Gathers the figures. Reads the index of every container that holds what the snapshots need.
pub fn stats(repository: &Repository, filter: &SnapshotFilter) -> Result<Stats, EngineError> {
    let mut stats = Stats { repository_bytes: repository.bytes()?, ..Stats::default() };
    for series in repository.series()? {
        let mut manifest = repository.manifest(series)?;
        while let Some(current) = manifest.take() {
            let mut with_series = stats;
            match with_series.add(repository, &current, filter) {
                Ok(()) => stats = with_series,
                // A container was gone: if a writer has replaced it, the newer manifest counts.
                Err(error) if error.is_not_found() => {
                    let newest = repository.manifest(series)?.filter(|newest| newest.sequence > current.sequence);
                    manifest = Some(newest.ok_or(error)?);
                }
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(stats)
}

impl Stats {
    /// Adds the figures of one series.
    fn add(&mut self, repository: &Repository, manifest: &Manifest, filter: &SnapshotFilter) -> Result<(), StoreError> {
        for record in &manifest.containers {
            self.containers += 1;
            match record.kind {
                ContainerKind::Data => self.data_container_bytes += record.object_bytes,
                ContainerKind::Metadata => self.metadata_container_bytes += record.object_bytes,
            }
        }
        let needed = self.add_snapshots(manifest, filter);
        let chunks = ChunkSource::new(repository, manifest);
        for (at, record) in manifest.containers.iter().enumerate() {
            let is_needed = record.chunks.iter().any(|run| needed.range_cardinality(run.range()) > 0);
            if record.kind == ContainerKind::Metadata || !is_needed {
                continue;
            }
            for place in chunks.reader(at)?.index().places() {
                if needed.contains(place.chunk.number.0) {
                    self.chunks += 1;
                    self.unique_bytes += u64::from(place.chunk.length);
                }
            }
        }
        Ok(())
    }

    /// Adds the snapshots that pass the filter; gives the chunks they need.
    fn add_snapshots(&mut self, manifest: &Manifest, filter: &SnapshotFilter) -> RoaringTreemap {
        let mut needed = RoaringTreemap::new();
        manifest.for_each_necessary(|position, necessary| {
            let Some(snapshot) = manifest.snapshots().get(position) else {
                return;
            };
            let view = SnapshotView {
                series: manifest.series,
                series_name: manifest.name.clone(),
                position,
                snapshot: snapshot.clone(),
            };
            if filter.matches(&view) {
                self.snapshots += 1;
                self.files += snapshot.statistics.files;
                self.restore_bytes += snapshot.statistics.logical_bytes;
                needed |= necessary;
            }
        });
        needed
    }
}

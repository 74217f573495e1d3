//! Figures about a repository and those of its snapshots that pass a filter.

use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::snapshots::{SnapshotFilter, SnapshotView};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerKind;
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
    for manifest in repository.manifests()? {
        for record in &manifest.containers {
            stats.containers += 1;
            match record.kind {
                ContainerKind::Data => stats.data_container_bytes += record.object_bytes,
                ContainerKind::Metadata => stats.metadata_container_bytes += record.object_bytes,
            }
        }
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
                stats.snapshots += 1;
                stats.files += snapshot.statistics.files;
                stats.restore_bytes += snapshot.statistics.logical_bytes;
                needed |= necessary;
            }
        });
        let chunks = ChunkSource::new(repository, &manifest);
        for (at, record) in chunks.records().iter().enumerate() {
            let is_needed = record.chunks.iter().any(|run| needed.range_cardinality(run.range()) > 0);
            if record.kind == ContainerKind::Metadata || !is_needed {
                continue;
            }
            for place in chunks.reader(at)?.index().places() {
                if needed.contains(place.chunk.number.0) {
                    stats.chunks += 1;
                    stats.unique_bytes += u64::from(place.chunk.length);
                }
            }
        }
    }
    Ok(stats)
}

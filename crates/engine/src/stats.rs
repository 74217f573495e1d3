//! Figures about a repository or some of its snapshots.

use crate::EngineError;
use crate::snapshots::SnapshotFilter;
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
    /// Bytes of the chunks they need, each once, uncompressed.
    pub unique_bytes: u64,
    /// Chunks they need, each once.
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

/// Gathers the figures.
pub fn stats(repository: &Repository, filter: &SnapshotFilter) -> Result<Stats, EngineError> {
    let _ = (repository, filter);
    todo!()
}

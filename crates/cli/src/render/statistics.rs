//! Counts of a backup, as JSON in restic's field names.

use super::seconds;
use serde::Serialize;
use siltstone_store::manifest::SnapshotStatistics;

/// The counts of a snapshot.
#[derive(Serialize)]
pub(crate) struct StatisticsJson {
    files_new: u64,
    files_changed: u64,
    files_unmodified: u64,
    data_blobs: u64,
    data_added: u64,
    data_added_packed: u64,
    total_files_processed: u64,
    total_dirs_processed: u64,
    total_bytes_processed: u64,
    total_duration: f64,
    problems: u64,
    deltas_kept: u64,
    deltas_rejected: u64,
    deltas_skipped: u64,
    bytes_migrated: u64,
}

impl From<&SnapshotStatistics> for StatisticsJson {
    fn from(statistics: &SnapshotStatistics) -> Self {
        Self {
            files_new: statistics.files_new,
            files_changed: statistics.files_changed,
            files_unmodified: statistics.files_unchanged,
            data_blobs: statistics.chunks_new,
            data_added: statistics.added_plain_bytes + statistics.metadata_bytes,
            data_added_packed: statistics.added_stored_bytes,
            total_files_processed: statistics.files,
            total_dirs_processed: statistics.directories,
            total_bytes_processed: statistics.logical_bytes,
            total_duration: seconds(statistics.duration_ms),
            problems: statistics.problems,
            deltas_kept: statistics.deltas_kept,
            deltas_rejected: statistics.deltas_rejected,
            deltas_skipped: statistics.deltas_skipped,
            bytes_migrated: statistics.bytes_migrated,
        }
    }
}

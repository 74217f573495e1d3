//! JSON of `stats`: restic's fields, then ours, then each snapshot by itself.

use super::{Deleted, ratio};
use crate::render::rfc3339;
use serde::Serialize;
use siltstone_engine::stats::{BorrowedFigures, Reduction, SnapshotFigures, Stats};
use siltstone_store::manifest::SnapshotStatistics;

/// The document.
#[derive(Serialize)]
pub(super) struct StatsJson {
    total_size: u64,
    total_file_count: u64,
    total_blob_count: u64,
    total_uncompressed_size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    compression_ratio: Option<f64>,
    snapshots_count: u64,
    containers_count: u64,
    data_container_bytes: u64,
    metadata_container_bytes: u64,
    repository_bytes: u64,
    older_key_bytes: u64,
    deleted_snapshots: u64,
    deleted_bytes: i64,
    lent_bytes: u64,
    borrowed: Vec<BorrowedJson>,
    logical_bytes: u64,
    #[serde(flatten)]
    layers: LayersJson,
    #[serde(flatten)]
    done: DoneJson,
    snapshots: Vec<SnapshotJson>,
}

/// Chunks that a series borrows of another one.
#[derive(Serialize)]
struct BorrowedJson {
    series: String,
    lender: String,
    chunks: u64,
    bytes: u64,
    chunks_kept_for_others: u64,
}

impl From<&BorrowedFigures> for BorrowedJson {
    fn from(of: &BorrowedFigures) -> Self {
        Self {
            series: of.series.clone(),
            lender: of.lender.clone(),
            chunks: of.chunks,
            bytes: of.plain_bytes,
            chunks_kept_for_others: of.only_for_others,
        }
    }
}

/// Bytes left of the chunks that are needed, step by step. Fields without `metadata` are of file content, those of
/// deltas and bases of both.
#[derive(Serialize)]
struct LayersJson {
    deduplicated_bytes: u64,
    after_delta_bytes: u64,
    stored_bytes: u64,
    metadata_bytes: u64,
    metadata_stored_bytes: u64,
    delta_chunks: u64,
    delta_plain_bytes: u64,
    delta_stored_bytes: u64,
    /// DCE, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_compression_efficiency: Option<f64>,
    base_chunks: u64,
    base_bytes: u64,
}

impl LayersJson {
    fn new(data: &Reduction, metadata: &Reduction) -> Self {
        let deltas = data.deltas.and(metadata.deltas);
        Self {
            deduplicated_bytes: data.unique_bytes,
            after_delta_bytes: data.after_delta_bytes,
            stored_bytes: data.stored_bytes,
            metadata_bytes: metadata.unique_bytes,
            metadata_stored_bytes: metadata.stored_bytes,
            delta_chunks: deltas.chunks,
            delta_plain_bytes: deltas.plain_bytes,
            delta_stored_bytes: deltas.stored_bytes,
            delta_compression_efficiency: deltas.efficiency(),
            base_chunks: data.bases + metadata.bases,
            base_bytes: data.base_bytes + metadata.base_bytes,
        }
    }
}

/// Deltas that backups made, and the migrations after them.
#[derive(Serialize)]
struct DoneJson {
    deltas_kept: u64,
    deltas_rejected: u64,
    deltas_skipped: u64,
    bytes_migrated: u64,
}

impl From<&SnapshotStatistics> for DoneJson {
    fn from(done: &SnapshotStatistics) -> Self {
        Self {
            deltas_kept: done.deltas_kept,
            deltas_rejected: done.deltas_rejected,
            deltas_skipped: done.deltas_skipped,
            bytes_migrated: done.bytes_migrated,
        }
    }
}

#[derive(Serialize)]
struct SnapshotJson {
    id: String,
    short_id: String,
    time: String,
    series: String,
    logical_bytes: u64,
    #[serde(flatten)]
    layers: LayersJson,
    #[serde(flatten)]
    done: DoneJson,
    containers_needed: u64,
    metadata_containers_needed: u64,
    bytes_read: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    read_amplification: Option<f64>,
}

impl From<&SnapshotFigures> for SnapshotJson {
    fn from(figures: &SnapshotFigures) -> Self {
        let snapshot = &figures.view.snapshot;
        Self {
            id: snapshot.id.to_string(),
            short_id: snapshot.id.short(),
            time: rfc3339(snapshot.time),
            series: figures.view.series_name.clone(),
            logical_bytes: snapshot.statistics.logical_bytes,
            layers: LayersJson::new(&figures.data, &figures.metadata),
            done: (&snapshot.statistics).into(),
            containers_needed: figures.containers_needed,
            metadata_containers_needed: figures.metadata_containers_needed,
            bytes_read: figures.bytes_read,
            read_amplification: figures.read_amplification(),
        }
    }
}

impl StatsJson {
    /// The document; `total_size` depends on the mode.
    pub(super) fn new(total_size: u64, stats: &Stats, deleted: &Deleted) -> Self {
        Self {
            total_size,
            total_file_count: stats.files,
            total_blob_count: stats.data.chunks,
            total_uncompressed_size: stats.data.unique_bytes,
            compression_ratio: ratio(stats.data.unique_bytes, stats.data.stored_bytes),
            snapshots_count: stats.snapshots,
            containers_count: stats.containers,
            data_container_bytes: stats.data_container_bytes,
            metadata_container_bytes: stats.metadata_container_bytes,
            repository_bytes: stats.repository_bytes,
            older_key_bytes: stats.older_key_bytes,
            deleted_snapshots: deleted.snapshots,
            deleted_bytes: deleted.bytes,
            lent_bytes: stats.lent_bytes,
            borrowed: stats.borrowed.iter().map(BorrowedJson::from).collect(),
            logical_bytes: stats.restore_bytes,
            layers: LayersJson::new(&stats.data, &stats.metadata),
            done: DoneJson {
                deltas_kept: stats.deltas_kept,
                deltas_rejected: stats.deltas_rejected,
                deltas_skipped: stats.deltas_skipped,
                bytes_migrated: stats.bytes_migrated,
            },
            snapshots: stats.by_snapshot.iter().map(SnapshotJson::from).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::snapshot_tests::view;
    use serde_json::json;
    use siltstone_engine::stats::DeltaFigures;

    #[test]
    fn fields_are_flat_and_ratios_left_out_where_there_are_none() {
        let mut one = view(0xab, &[], Some("mail"));
        one.snapshot.statistics.deltas_kept = 4;
        let deltas = DeltaFigures { chunks: 4, plain_bytes: 1000, stored_bytes: 50 };
        let snapshot = SnapshotFigures {
            view: one,
            data: Reduction { unique_bytes: 900, stored_bytes: 200, bases: 2, base_bytes: 70, ..Reduction::default() },
            metadata: Reduction {
                unique_bytes: 33,
                stored_bytes: 11,
                bases: 1,
                base_bytes: 5,
                deltas,
                ..Reduction::default()
            },
            containers_needed: 3,
            metadata_containers_needed: 1,
            bytes_read: 250,
        };
        let stats = Stats { bytes_migrated: 8, by_snapshot: vec![snapshot], ..Stats::default() };
        let json = serde_json::to_value(StatsJson::new(5, &stats, &Deleted::default())).expect("plain data");
        assert_eq!((&json["total_size"], &json["bytes_migrated"]), (&json!(5), &json!(8)));
        for left_out in ["compression_ratio", "delta_compression_efficiency"] {
            assert!(json.get(left_out).is_none(), "{json}");
        }
        let one = &json["snapshots"][0];
        assert_eq!((&one["short_id"], &one["series"]), (&json!("abababab"), &json!("mail")));
        assert_eq!((&one["logical_bytes"], &one["deduplicated_bytes"]), (&json!(2048), &json!(900)));
        assert_eq!((&one["metadata_bytes"], &one["metadata_stored_bytes"]), (&json!(33), &json!(11)));
        assert_eq!((&one["base_chunks"], &one["base_bytes"]), (&json!(3), &json!(75)));
        assert_eq!((&one["deltas_kept"], &one["delta_chunks"]), (&json!(4), &json!(4)));
        assert_eq!((&one["read_amplification"], &one["delta_compression_efficiency"]), (&json!(1.25), &json!(0.95)));
    }
}

//! Committing what maintenance made, and crediting it to a snapshot's statistics.

use super::options::{MaintainSummary, Maintenance};
use crate::EngineError;
use crate::lease::now;
use crate::written::verify_written;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;
use std::collections::HashSet;

/// Adds what was done to the statistics of the snapshot at this position: the one whose backup left it to be done.
pub(super) fn credit(manifest: &mut Manifest, position: usize, done: &MaintainSummary) {
    let id = manifest.snapshots().get(position).map(|snapshot| snapshot.id);
    if let Some(snapshot) = id.and_then(|id| manifest.snapshot_mut(&id)) {
        let statistics = &mut snapshot.statistics;
        statistics.deltas_kept = statistics.deltas_kept.saturating_add(done.deltas_kept);
        statistics.deltas_rejected = statistics.deltas_rejected.saturating_add(done.deltas_rejected);
        statistics.bytes_migrated = statistics.bytes_migrated.saturating_add(done.bytes_written);
    }
}

/// Adds what was done to the statistics of the last snapshot.
pub(super) fn credit_last(manifest: &mut Manifest, done: &MaintainSummary) {
    credit(manifest, manifest.snapshots().len().saturating_sub(1), done);
}

/// Commits `next` once what is new in it was read back, then deletes the containers that it no longer names. Where it
/// names the same ones, the next commit takes it along. The lease is kept.
pub(super) fn commit(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    next: Manifest,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    if next.containers == writer.manifest().containers {
        writer.stage(next);
        return Ok(summary);
    }
    let kept: HashSet<_> = next.containers.iter().map(|record| record.id).collect();
    let before: HashSet<_> = writer.manifest().containers.iter().map(|record| record.id).collect();
    let new = next.containers.iter().filter(|record| !before.contains(&record.id));
    verify_written(work.options.verify_written, work.repository, next.series, new)?;
    let gone: Vec<_> =
        writer.manifest().containers.iter().filter(|record| !kept.contains(&record.id)).cloned().collect();
    summary.containers_deleted = gone.len() as u64;
    summary.bytes_deleted = gone.iter().map(|record| record.object_bytes).sum();
    writer.commit(next, true, now())?;
    writer.delete(&gone)?;
    Ok(summary)
}

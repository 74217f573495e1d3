//! Merging small containers, so that their number grows with what is stored and not with how often something is.
//!
//! A daily backup of little that changes makes a few small containers each time. Once [`MERGED_MIN`] of like size and
//! fate lie there, they become one; so each region is copied, without being decompressed, once for every factor
//! [`MERGED_MIN`] that its container grows by. What is merged may mix categories: it is less than what a reader reads
//! in the time of a request, and a region that is not needed is not read. What cannot be read is passed over. Under
//! exact layout (threshold 0) nothing is merged.

use super::commit::commit;
use super::damage::PassedOver;
use super::options::{MaintainSummary, Maintenance};
use super::repack::{Class, Effort, RepackOptions, Repacker};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::pack::ContainerSink;
use siltstone_store::ContainerId;
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

/// So many containers of like size are merged.
const MERGED_MIN: usize = 8;
/// Containers below this are small; so are those below 8 times, 64 times that, up to the largest that is.
const SMALLEST_BYTES: u64 = 32 << 10;
/// A container of this size is not small.
const SMALL_BYTES_MAX: u64 = 4 << 20;

/// Merges what is small and many, a commit for each group. The lease is kept.
pub(super) fn merge(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    passed_over: &mut PassedOver<'_>,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    if work.options.threshold <= 0.0 {
        return Ok(summary);
    }
    for (class, ids) in groups(writer.manifest()) {
        let ids = passed_over.present(writer, ids);
        let (merged, made) = passed_over.work_on_sound(writer, ids, |writer, sink, ids| {
            merge_containers(work, writer.manifest(), sink, class, ids)
        })?;
        summary.bytes_written += made.iter().map(|record| record.object_bytes).sum::<u64>();
        summary.containers_written += made.len() as u64;
        let merged: HashSet<ContainerId> = merged.into_iter().collect();
        let mut next = writer.manifest().clone();
        next.containers.retain(|record| !merged.contains(&record.id));
        next.containers.extend(made);
        summary.add(&commit(work, writer, next)?);
    }
    Ok(summary)
}

/// Tells whether there is nothing to merge.
pub(super) fn is_merged(manifest: &Manifest) -> bool {
    groups(manifest).is_empty()
}

/// Small containers that are many: by kind, by whether the last snapshot needs any of them, and by size; each group
/// oldest first.
fn groups(manifest: &Manifest) -> Vec<(Class, Vec<ContainerId>)> {
    let last = manifest.necessary(manifest.snapshots().len().saturating_sub(1));
    let mut groups: BTreeMap<(ContainerKind, bool, u32), Vec<ContainerId>> = BTreeMap::new();
    for record in manifest.containers.iter().filter(|record| record.object_bytes < SMALL_BYTES_MAX) {
        let is_open = record.answers_for_any(&last);
        let size = (record.object_bytes / SMALLEST_BYTES).checked_ilog(8).map_or(0, |power| power + 1);
        groups.entry((record.kind, is_open, size)).or_default().push(record.id);
    }
    let many = groups.into_iter().filter(|(_, ids)| ids.len() >= MERGED_MIN);
    many.map(|((kind, is_open, rows), mut ids)| {
        ids.sort_unstable();
        (Class { kind, is_open, rows }, ids)
    })
    .collect()
}

fn merge_containers(
    work: Maintenance<'_>,
    manifest: &Manifest,
    sink: &dyn ContainerSink,
    class: Class,
    containers: &[ContainerId],
) -> Result<Vec<ContainerRecord>, EngineError> {
    let chunks = Arc::new(ChunkSource::new(work.repository, manifest));
    std::thread::scope(|scope| {
        let options = RepackOptions { effort: Effort::Usual(work.options.compression_level), is_exact: false };
        let mut repacker = Repacker::start(scope, &chunks, manifest, sink, options, work.resources)?;
        for id in containers {
            let found = manifest.containers.iter().enumerate().find(|(_, record)| record.id == *id);
            if let Some((at, record)) = found {
                let served = record.numbers();
                repacker.move_container(at, 1.0, |number| served.contains(number.0).then_some(class))?;
            }
        }
        Ok(repacker.finish()?.packed.containers)
    })
}

//! Moving the survivors of partly dead containers into new ones.

use super::ForgetOptions;
use crate::chunks::ChunkSource;
use crate::lifecycle::lifecycles;
use crate::pack::ContainerSink;
use crate::repack::{Class, Repacker, Stopped, numbers_of};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, StoreError};
use std::sync::Arc;

/// Makes new containers of what `live` needs from `records`, which are among the manifest's. Gives the records of those
/// that were rewritten, and of the new ones. A container of which only some chunks of deltas are dead, in none more
/// than half, stays as it is: it would be copied for nothing.
pub(super) fn rewrite(
    repository: &Repository,
    manifest: &Manifest,
    records: &[ContainerRecord],
    live: &RoaringTreemap,
    options: &ForgetOptions,
    sink: &dyn ContainerSink,
) -> Result<(Vec<ContainerRecord>, Vec<ContainerRecord>), Stopped> {
    let chunks = Arc::new(ChunkSource::new(repository, manifest));
    let last = manifest.snapshots().len().saturating_sub(1);
    let is_exact = options.rewrite_threshold <= 0.0;
    std::thread::scope(|scope| {
        let mut repacker = Repacker::start(scope, &chunks, manifest, sink, options.compression_level, is_exact)?;
        let mut rewritten = Vec::new();
        for record in records {
            let container = manifest.containers.iter().position(|found| found.id == record.id);
            let container = container.ok_or_else(|| {
                let first = record.chunks.first().map_or(ChunkNumber(0), |run| run.first);
                StoreError::MissingChunk { number: first }
            })?;
            let kept = numbers_of(record) & live;
            let found = lifecycles(manifest, &kept);
            let class_of = |number: ChunkNumber| {
                let lifecycle = found.get(&number.0)?;
                let rows = if is_exact { lifecycle.category() } else { 0 };
                Some(Class { kind: record.kind, is_open: lifecycle.column == last, rows })
            };
            if !record.has_deltas || repacker.changes(container, 0.0, class_of)? {
                repacker.take_container(container, 0.0, class_of)?;
                rewritten.push(record.clone());
            }
        }
        Ok((rewritten, repacker.finish()?.packed.containers))
    })
}

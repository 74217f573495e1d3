//! Moving the survivors of partly dead containers into new ones.

use super::ForgetOptions;
use crate::chunks::ChunkSource;
use crate::lifecycle::lifecycles;
use crate::pack::ContainerSink;
use crate::parallel::{Pool, cores};
use crate::repack::{Class, Repacker, TASKS_WAITING_MAX, numbers_of};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::region::RegionEncoder;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, StoreError};

/// Why rewriting stopped, and at which container.
pub(super) struct Stopped {
    pub(super) at: usize,
    pub(super) error: StoreError,
}

/// Makes new containers of what `live` needs from `records`, which are among the manifest's, and gives their records.
pub(super) fn rewrite(
    repository: &Repository,
    manifest: &Manifest,
    records: &[ContainerRecord],
    live: &RoaringTreemap,
    options: &ForgetOptions,
    sink: &dyn ContainerSink,
) -> Result<Vec<ContainerRecord>, Stopped> {
    let chunks = ChunkSource::new(repository, manifest);
    let last = manifest.snapshots().len().saturating_sub(1);
    let is_exact = options.rewrite_threshold <= 0.0;
    std::thread::scope(|scope| {
        let level = options.compression_level;
        let encoders = Pool::start(scope, "encode", cores(), TASKS_WAITING_MAX, || RegionEncoder::new(level).ok());
        let mut repacker = Repacker::new(&chunks, encoders, manifest.series, sink, is_exact);
        for (at, record) in records.iter().enumerate() {
            let stopped = |error| Stopped { at, error };
            let container = manifest.containers.iter().position(|found| found.id == record.id);
            let container = container.ok_or_else(|| {
                let first = record.chunks.first().map_or(ChunkNumber(0), |run| run.first);
                stopped(StoreError::MissingChunk { number: first })
            })?;
            let kept = numbers_of(record) & live;
            let found = lifecycles(manifest, &kept);
            let class_of = |number: ChunkNumber| {
                let lifecycle = found.get(&number.0)?;
                let rows = if is_exact { lifecycle.category() } else { 0 };
                Some(Class { kind: record.kind, is_open: lifecycle.column == last, rows })
            };
            repacker.take_container(container, 0.0, class_of).map_err(stopped)?;
        }
        let stopped = |error| Stopped { at: records.len().saturating_sub(1), error };
        Ok(repacker.finish().map_err(stopped)?.packed.containers)
    })
}

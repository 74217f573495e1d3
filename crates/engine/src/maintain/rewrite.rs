//! Rewriting partly dead containers: their survivors move into new ones.

use super::repack::{Class, Effort, RepackOptions, Repacker, Stopped};
use crate::chunks::ChunkSource;
use crate::fs::{Problem, ProblemKind};
use crate::lifecycle::lifecycles;
use crate::pack::ContainerSink;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashSet;
use std::sync::Arc;

/// How to rewrite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rewriting {
    /// The dead share past which a container is rewritten; with 0 no container mixes categories.
    pub(crate) threshold: f64,
    /// Compression level of zstd.
    pub(crate) compression_level: i32,
}

/// Containers taken and made by rewriting.
pub(crate) struct Rewritten {
    /// Containers that were replaced.
    pub(crate) old: Vec<ContainerRecord>,
    /// Containers that replace them.
    pub(crate) new: Vec<ContainerRecord>,
    /// True if all could be read. Else something may have been made for nothing.
    pub(crate) is_whole: bool,
}

/// Rewrites the containers that can be read. A damaged container is told and stays as it is, for what is sound of it is
/// still needed; what was made of it before the damage was met is left to be swept.
pub(crate) fn rewrite_intact(
    repository: &Repository,
    manifest: &Manifest,
    mut to_rewrite: Vec<ContainerRecord>,
    live: &RoaringTreemap,
    rewriting: Rewriting,
    sink: &dyn ContainerSink,
    resources: &Resources,
) -> Result<Rewritten, EngineError> {
    let mut is_whole = true;
    loop {
        match rewrite(repository, manifest, &to_rewrite, live, rewriting, sink, resources) {
            Ok((old, new)) => return Ok(Rewritten { old, new, is_whole }),
            Err(Stopped { container, error }) if error.is_damage() => {
                let id = container.and_then(|at| manifest.containers.get(at)).map(|record| record.id);
                let Some(at) = to_rewrite.iter().position(|record| Some(record.id) == id) else { return Err(error) };
                is_whole = false;
                let name = to_rewrite.remove(at).object_name(manifest.series).to_string();
                let reason = format!("{error}; it is kept as it is");
                resources.observer.problem(&Problem::object(name, ProblemKind::Damaged, reason));
            }
            Err(Stopped { error, .. }) => return Err(error),
        }
    }
}

/// Puts new containers in the place of old ones.
pub(crate) fn replace(manifest: &mut Manifest, old: &[ContainerRecord], new: Vec<ContainerRecord>) {
    let gone: HashSet<_> = old.iter().map(|record| record.id).collect();
    manifest.containers.retain(|record| !gone.contains(&record.id));
    manifest.containers.extend(new);
}

/// Makes new containers of what `live` needs from `records`, which are among the manifest's. Gives the records of those
/// that were rewritten, and of the new ones. A container of which only some chunks of deltas are dead, in none more
/// than half, stays as it is: it would be copied for nothing.
fn rewrite(
    repository: &Repository,
    manifest: &Manifest,
    records: &[ContainerRecord],
    live: &RoaringTreemap,
    rewriting: Rewriting,
    sink: &dyn ContainerSink,
    resources: &Resources,
) -> Result<(Vec<ContainerRecord>, Vec<ContainerRecord>), Stopped> {
    let chunks = Arc::new(ChunkSource::new(repository, manifest));
    let last = manifest.snapshots().len().saturating_sub(1);
    let is_exact = rewriting.threshold <= 0.0;
    let options = RepackOptions { effort: Effort::Usual(rewriting.compression_level), is_exact };
    std::thread::scope(|scope| {
        let mut repacker = Repacker::start(scope, &chunks, manifest, sink, options, resources)?;
        let mut rewritten = Vec::new();
        for record in records {
            let container = manifest.containers.iter().position(|found| found.id == record.id);
            let container = container.ok_or_else(|| {
                let first = record.chunks.first().map_or(ChunkNumber(0), |run| run.first);
                StoreError::MissingChunk { number: first }
            })?;
            let kept = record.numbers() & live;
            let found = lifecycles(manifest, &kept);
            let class_of = |number: ChunkNumber| {
                let lifecycle = found.get(&number.0)?;
                let rows = if is_exact { lifecycle.category() } else { 0 };
                Some(Class { kind: record.kind, is_open: lifecycle.column == last, rows })
            };
            if !record.has_deltas || repacker.changes(container, 0.0, class_of)? {
                repacker.move_container(container, 0.0, class_of)?;
                rewritten.push(record.clone());
            }
        }
        Ok((rewritten, repacker.finish()?.packed.containers))
    })
}

//! Snapshots without what a filter excludes: looking what that is (`excluded_of`), and catalogs that lack it
//! (`rewrite_snapshots`).
//!
//! Only metadata is read and written. A file that stays keeps its recipe, so the chunks of its content keep their
//! numbers; nodes that are as they were are used again, and of the others each is stored once, however many snapshots
//! need it. What only the excluded entries needed is in no snapshot's set any more, and is dead as after forgetting.
//!
//! What bases the files that stay hang on remains necessary with them, though it was content of an excluded file:
//! maintenance takes it apart like any other base that no catalog refers to.

mod excluded;
mod nodes;

pub use excluded::Excluded;
use excluded::Excluder;
pub(crate) use excluded::excluded_of;

use crate::chunks::ChunkSource;
use crate::fs::PathFilter;
use crate::pack::ContainerSink;
use crate::{EngineError, Resources};
use nodes::Nodes;
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, CatalogWriter, Content, MetadataSink};
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotRecord};
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, SnapshotId, StoreError};
use std::collections::{BTreeMap, BTreeSet};

/// Puts into the place of each of these snapshots, as far as it has anything that the filter excludes, one that lacks
/// it. Gives the containers of new metadata, which `next` names, and how many snapshots were replaced.
///
/// # Errors
/// That a catalog, or the index of a container with deltas, cannot be read; those of the sink. Nothing of `next` counts
/// then.
pub(crate) fn rewrite_snapshots(
    repository: &Repository,
    next: &mut Manifest,
    snapshots: &BTreeSet<SnapshotId>,
    filter: &PathFilter,
    compression_level: i32,
    sink: &dyn ContainerSink,
    resources: &Resources,
) -> Result<(Vec<ContainerRecord>, u64), EngineError> {
    let chunks = ChunkSource::new(repository, next);
    let mut nodes = Nodes::new(&chunks, next, compression_level, sink)?;
    let mut others = BTreeMap::new();
    for (position, snapshot) in next.snapshots().iter().enumerate().filter(|(_, own)| snapshots.contains(&own.id)) {
        let rewriting = Rewriting { chunks: &chunks, series: &next.name, snapshot, filter, resources };
        if let Some(other) = rewriting.run(&mut nodes)? {
            others.insert(position, other);
        }
    }
    let replaced = others.len() as u64;
    if replaced == 0 {
        return Ok((Vec::new(), 0));
    }
    let (containers, next_metadata) = nodes.finish()?;
    let graph = chunks.base_graph()?;
    next.next_metadata = next_metadata;
    next.containers.extend(containers.iter().cloned());
    next.replace_snapshots(others, |replaced| graph.needs(replaced));
    // Deltas may hang on what was content before.
    next.ghosts_due = true;
    Ok((containers, replaced))
}

/// A snapshot that is written anew.
struct Rewriting<'w, 'r> {
    chunks: &'w ChunkSource<'r>,
    /// The series' name.
    series: &'w str,
    snapshot: &'w Snapshot,
    filter: &'w PathFilter,
    resources: &'w Resources,
}

impl Rewriting<'_, '_> {
    /// The snapshot in its place, with the chunks that its catalog refers to; `None` if it has nothing to be excluded.
    fn run(&self, nodes: &mut Nodes<'_>) -> Result<Option<(Snapshot, RoaringTreemap)>, EngineError> {
        nodes.begin();
        let mut direct = RoaringTreemap::new();
        let mut writer = CatalogWriter::new(&mut *nodes);
        let (mut gone, mut excluder) = (Excluded::default(), Excluder::new(self.filter, self.snapshot));
        for entry in CatalogReader::new(self.chunks, self.snapshot.root).entries() {
            let entry = entry?;
            if excluder.excludes(&entry) {
                gone.add(&entry);
                continue;
            }
            self.resources.unless_cancelled()?;
            if let Content::File { recipe, .. } = &entry.content {
                recipe.visit_chunks(self.chunks, &mut |run| {
                    direct.insert_range(run.range());
                })?;
            }
            writer.push(&entry)?;
        }
        if gone.is_empty() {
            return Ok(None);
        }
        let root = writer.finish()?;
        let snapshot = self.recorded(root, &gone, nodes)?;
        direct |= nodes.used();
        Ok(Some((snapshot, direct)))
    }

    /// The snapshot with this root, and its record behind its catalog.
    fn recorded(&self, root: ChunkNumber, gone: &Excluded, nodes: &mut Nodes<'_>) -> Result<Snapshot, StoreError> {
        let mut snapshot = Snapshot { root, id: self.id(nodes), ..self.snapshot.clone() };
        let statistics = &mut snapshot.statistics;
        statistics.files = statistics.files.saturating_sub(gone.files);
        statistics.directories = statistics.directories.saturating_sub(gone.directories);
        statistics.others = statistics.others.saturating_sub(gone.others);
        statistics.logical_bytes = statistics.logical_bytes.saturating_sub(gone.logical_bytes);
        snapshot.record = nodes.store(&SnapshotRecord::encode(self.series, &snapshot)?)?;
        Ok(snapshot)
    }

    /// The identity of the snapshot in its place: the first half is as before, so that its short id is, and that its
    /// copies know it. The second follows from all nodes and their numbers: a dry run then has the bytes of the run,
    /// and equal identities mean the same snapshot.
    fn id(&self, nodes: &Nodes<'_>) -> SnapshotId {
        let mut id = self.snapshot.id;
        for (to, from) in id.0.iter_mut().skip(16).zip(nodes.identity(&self.snapshot.id)) {
            *to = from;
        }
        id
    }
}

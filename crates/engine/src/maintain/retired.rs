//! Retired chunks: those that one snapshot was the last to need, and those that took their place.

use super::options::Maintenance;
use super::places::Places;
use crate::chunks::ChunkSource;
use crate::delta::{ChunkTexts, Likeness, LikenessIndex, NewChunks};
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::manifest::Manifest;
use siltstone_store::region::split_region;
use siltstone_store::repository::Repository;
use siltstone_store::series::claimed_chunks;
use siltstone_store::{ContainerId, SnapshotId};

/// The chunks that retired with a snapshot, and what takes their place.
pub(super) struct RetiredChunks {
    /// The snapshot's position.
    pub(super) position: usize,
    snapshot: SnapshotId,
    /// The chunks that it was the last to need.
    pub(super) dying: RoaringTreemap,
    /// The chunks that the next snapshot took back: it refers to them, this one does not, and yet they count for it.
    pub(super) returned: RoaringTreemap,
    /// Chunks that others have borrowed: they stay whole, so that no chain comes under what these restore.
    pub(super) claimed: RoaringTreemap,
    /// Chunks that may become a base: the next snapshot needs them, but this one does not.
    pub(super) fresh: RoaringTreemap,
    /// Those of the latter, by their sketches and anchors.
    pub(super) similar: LikenessIndex,
    /// The text of some of them.
    pub(super) texts: ChunkTexts,
    /// New chunks that stand where dying ones stood.
    pub(super) places: Places,
}

impl RetiredChunks {
    /// The chunks that retired with the snapshot at `position`, which is not the last.
    pub(super) fn new(
        Maintenance { repository, options, resources }: Maintenance<'_>,
        manifest: &Manifest,
        position: usize,
        new: Option<NewChunks>,
    ) -> Result<Self, EngineError> {
        let (here, next) = (manifest.necessary(position), manifest.necessary(position + 1));
        let last = manifest.necessary(manifest.snapshots().len().saturating_sub(1));
        let (dying, returned) = dying_and_returned(manifest, position);
        let mut fresh = &next - &here;
        // Snapshots' records are read when all else is lost, and should hang on nothing.
        for snapshot in manifest.snapshots() {
            fresh.remove(snapshot.record.0);
        }
        // Where chunks that retired with the next snapshot are settled, nothing is known of how long their chains are.
        let is_open = manifest.snapshots().get(position + 1).is_some_and(|next| manifest.unsettled.contains(&next.id));
        if !is_open {
            fresh &= last;
        }
        if !options.deltas.is_reverse() {
            fresh.clear();
        }
        // What is borrowed hangs on nothing of this series, and nothing of this series on it.
        fresh -= manifest.imported();
        let is_lent = manifest.lends && !fresh.is_empty() && !dying.is_empty();
        let claimed = if is_lent { claimed_chunks(repository, manifest.series)? } else { RoaringTreemap::new() };
        let (similar, texts) = match new {
            Some(NewChunks { similar, texts }) => (similar, texts),
            None => (read_similar(repository, manifest, &fresh, resources)?, ChunkTexts::default()),
        };
        let places = match manifest.snapshots().get(position..).unwrap_or_default() {
            [before, after, ..] if !fresh.is_empty() => {
                Places::find(&ChunkSource::new(repository, manifest), (before, after), &dying, &(&next - &here), &fresh)
            }
            _ => Places::default(),
        };
        let snapshot = manifest.snapshots().get(position).map_or(SnapshotId([0; 32]), |snapshot| snapshot.id);
        Ok(Self { position, snapshot, dying, returned, claimed, fresh, similar, texts, places })
    }

    /// The containers that answer for any of its chunks, or for any taken back, in the order in which they were
    /// written.
    pub(super) fn containers(&self, manifest: &Manifest) -> Vec<ContainerId> {
        containers_of(manifest, &(&self.dying | &self.returned))
    }

    /// Notes that they are settled. What is whole of them keeps the depth of its dependents, for it may be taken back;
    /// what is dead needs none.
    pub(super) fn settle(&self, manifest: &mut Manifest) {
        settle(manifest, &self.snapshot);
    }
}

/// Notes that what retired with the snapshot at `position` is settled, if no container holds any of it but the
/// snapshot's own record: that is one chunk, and is read when all else is lost.
pub(super) fn settle_nothing(manifest: &mut Manifest, position: usize) -> bool {
    let (mut dying, returned) = dying_and_returned(manifest, position);
    if let Some(snapshot) = manifest.snapshots().get(position) {
        dying.remove(snapshot.record.0);
    }
    let is_nothing = containers_of(manifest, &(dying | returned)).is_empty();
    if let (true, Some(id)) = (is_nothing, manifest.snapshots().get(position).map(|snapshot| snapshot.id)) {
        settle(manifest, &id);
    }
    is_nothing
}

/// The chunks that the snapshot at `position` was the last to need, and those that the next one took back.
fn dying_and_returned(manifest: &Manifest, position: usize) -> (RoaringTreemap, RoaringTreemap) {
    let here = manifest.necessary(position);
    let returned = (manifest.direct(position + 1) - manifest.direct(position)) & &here;
    (here - manifest.necessary(position + 1), returned)
}

/// The containers that answer for any of these chunks, in the order in which they were written.
fn containers_of(manifest: &Manifest, chunks: &RoaringTreemap) -> Vec<ContainerId> {
    let holding = manifest.containers.iter().filter(|record| record.answers_for_any(chunks));
    let mut ids: Vec<_> = holding.map(|record| record.id).collect();
    ids.sort_unstable();
    ids
}

fn settle(manifest: &mut Manifest, snapshot: &SnapshotId) {
    manifest.unsettled.remove(snapshot);
    let live = manifest.live();
    manifest.dependents_depths.iter_mut().for_each(|of_depth| *of_depth &= &live);
    while manifest.dependents_depths.last().is_some_and(RoaringTreemap::is_empty) {
        manifest.dependents_depths.pop();
    }
}

/// Reads chunks for their sketches and anchors.
fn read_similar(
    repository: &Repository,
    manifest: &Manifest,
    numbers: &RoaringTreemap,
    resources: &Resources,
) -> Result<LikenessIndex, EngineError> {
    let mut similar = LikenessIndex::within(resources.repack_shares().similar_bytes);
    let chunks = ChunkSource::new(repository, manifest);
    for (at, record) in manifest.containers.iter().enumerate() {
        let wanted = record.numbers() & numbers;
        if wanted.is_empty() {
            continue;
        }
        resources.unless_cancelled()?;
        // Nothing will be encoded against what a damaged one holds.
        let Some(reader) = chunks.sound_reader(at)? else { continue };
        for (region, entry) in reader.index().regions().iter().enumerate() {
            if entry.chunks.iter().all(|chunk| !wanted.contains(chunk.number.0)) {
                continue;
            }
            match chunks.region(at, region) {
                Ok(plain) => {
                    let members = split_region(&entry.chunks, &plain);
                    for (chunk, bytes) in members.filter(|(chunk, _)| wanted.contains(chunk.number.0)) {
                        similar.insert(chunk.number, &Likeness::of(bytes));
                    }
                }
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
    Ok(similar)
}

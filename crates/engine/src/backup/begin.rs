//! The beginning of a backup: how its memory is divided, and what it has to know of the snapshot before.

use super::assemble::Unusable;
use super::checkpoint::Checkpoints;
use super::commit::{Cache, open_index, sketches_identity};
use super::older::Older;
use super::previous::{last_whole, needed};
use super::sample::read_sample;
use super::select::{Draft, Known, Origin};
use super::stages::{Flow, Selection, Stages};
use super::{FIXED_MEMORY_BYTES, Source, Task};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::delta::{Deltas, Forward};
use crate::observer::Notice;
use crate::pack::ContainerSink;
use roaring::RoaringTreemap;
use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use std::path::Path;
use std::sync::Arc;

/// The sketches of new chunks take a quarter of the index's memory.
const SIMILAR_OF_INDEX_MEMORY: u64 = 4;
/// The index of older chunks takes this part of the index's memory; what does not fit lies in files.
const OLDER_OF_INDEX_MEMORY: u64 = 16;
/// Selecting takes half of what the index would have, up to this.
const SELECTION_BYTES_MAX: u64 = 160 << 20;
/// Indexes of containers kept open for reading bases; one takes up to about 0.7 MB, mostly far less.
const READERS_MAX: usize = 24;

impl<'t> Task<'t> {
    /// Runs all stages to the end of the source; gives too what new chunks were encoded against, if they were.
    pub(super) fn run(
        &self,
        source: Source,
        manifest: &Manifest,
        lost: &[ContainerId],
        (sink, checkpoints): (&dyn ContainerSink, Option<&Checkpoints<'_, 't>>),
    ) -> Result<(Flow, Option<Known>), EngineError> {
        let chunks = ChunkSource::with_limits(self.repository, manifest, 8, 12 << 20);
        let (mut lost, mut found) = self.lost(manifest, lost, &chunks)?;
        let spill = Cache::spill_dir(self.options.cache.as_deref(), self.repository);
        let cache = self.options.cache.as_deref().map(|folder| Cache::new(folder, self.repository, manifest.series));
        let Memory { index_bytes, similar_bytes, selection_bytes } = self.memory(manifest);
        let reaches_back = self.options.deltas.reaches_back() && manifest.snapshots().len() > 1;
        let older_bytes = if reaches_back { index_bytes / OLDER_OF_INDEX_MEMORY } else { 0 };
        let index = open_index(
            self.repository,
            manifest,
            cache.as_ref(),
            &chunks,
            (&mut lost, &mut found),
            index_bytes - older_bytes,
            spill.as_ref(),
            self.observer,
        )?;
        let older = reaches_back.then(|| {
            let room = (older_bytes, spill.as_path());
            Older::open(self.repository, manifest, cache.as_ref(), &chunks, &lost, room, self.observer)
        });
        let older = older.transpose()?;
        let mut selection = match self.options.deltas.forward() {
            Some(forward) => {
                let bytes = (selection_bytes, similar_bytes);
                Some(self.open_selection(forward, manifest, cache.as_ref(), &lost, bytes, spill.as_ref())?)
            }
            None => None,
        };
        let unusable = Unusable { lost, ..Unusable::default() };
        let is_for_migration =
            self.options.migrate && last_whole(manifest).is_some() && self.options.deltas.is_reverse();
        let similar_bytes = is_for_migration.then_some(similar_bytes);
        let stages =
            Stages { task: self, manifest, chunks: &chunks, unusable: &unusable, sink, checkpoints, similar_bytes };
        let mut flow = stages.run(source, (index, older), selection.as_mut())?;
        flow.found = found;
        Ok((flow, selection.map(|selection| selection.known)))
    }

    /// The chunks that cannot be had: of containers that are gone, known to be damaged, or found so by a sample, and
    /// what hangs on them. Gives too those of them that were found damaged where they lie just now.
    fn lost(
        &self,
        manifest: &Manifest,
        containers: &[ContainerId],
        chunks: &ChunkSource<'_>,
    ) -> Result<(RoaringTreemap, RoaringTreemap), EngineError> {
        let gone = lost_numbers(manifest, containers);
        let live = manifest.live();
        let mut known = &manifest.damaged & &live;
        known |= &live - answered(manifest);
        let sampled = read_sample(chunks, manifest, self.options.sample_bytes)?;
        let found = &sampled.damaged - &gone;
        for error in &sampled.errors {
            self.observer.notice(&Notice::DamageMet { reason: error.to_string() });
        }
        let (gone_chunks, known_chunks) = (gone.len(), (&known - &gone).len());
        let mut lost = gone | known | &found;
        if !lost.is_empty() {
            chunks.add_dependents(&mut lost)?;
        }
        if gone_chunks > 0 {
            self.observer.notice(&Notice::ContainersLost { chunks: gone_chunks });
        }
        if known_chunks > 0 {
            self.observer.notice(&Notice::DamageKnown { chunks: known_chunks });
        }
        Ok((lost, found))
    }

    /// How the memory is divided.
    fn memory(&self, manifest: &Manifest) -> Memory {
        let mut bytes = self.options.memory_bytes - FIXED_MEMORY_BYTES - self.list_bytes;
        let is_first = last_whole(manifest).is_none();
        let (selects, sketches) = match self.options.deltas {
            Deltas::Off => (false, false),
            Deltas::Reverse { .. } => (false, self.options.migrate && !is_first),
            Deltas::Forward { .. } | Deltas::Paper => (true, !is_first),
        };
        let selection_bytes = if selects { (bytes / 2).min(SELECTION_BYTES_MAX) } else { 0 };
        bytes -= selection_bytes;
        let similar_bytes = if sketches { bytes / SIMILAR_OF_INDEX_MEMORY } else { 0 };
        Memory { index_bytes: bytes - similar_bytes, similar_bytes, selection_bytes }
    }

    /// Makes ready for encoding new chunks against old ones. `bytes`: of memory for segments and regions, and for the
    /// index of sketches.
    fn open_selection(
        &self,
        forward: Forward,
        manifest: &Manifest,
        cache: Option<&Cache>,
        lost: &RoaringTreemap,
        (selection_bytes, similar_bytes): (u64, u64),
        spill: &Path,
    ) -> Result<Selection<'t>, EngineError> {
        // Two segments at a time, the bases of one, and regions under way.
        let share = selection_bytes / 8;
        let chunks = Arc::new(ChunkSource::with_limits(self.repository, manifest, READERS_MAX, 0));
        let needed = needed(manifest) - lost;
        let key = self.repository.keys().cache_key();
        let last = last_whole(manifest).map(|last| sketches_identity(manifest, last.id));
        let origin = Origin {
            needed,
            manifest,
            chunks: chunks.clone(),
            cache: cache.zip(last).map(|(cache, identity)| (cache.sketches.as_path(), identity, key)),
            spill,
            memory_bytes: similar_bytes,
            waiting_bytes: share,
            observer: self.observer,
        };
        let known = Known::open(forward, &origin)?;
        let draft = (cache.is_some() && !self.options.dry_run).then(|| Draft::new(spill)).transpose();
        let draft = draft.unwrap_or_else(|error| {
            self.observer.notice(&Notice::IndexNotSaved { reason: error.to_string() });
            None
        });
        let segment_bytes = usize::try_from(self.options.segment_bytes.min(share)).unwrap_or(usize::MAX);
        Ok(Selection { known, chunks, segment_bytes, waiting_bytes: share, spill_folder: spill.to_owned(), draft })
    }
}

/// What goes where, bytes.
#[allow(clippy::struct_field_names, reason = "the unit")]
struct Memory {
    /// Fingerprints.
    index_bytes: u64,
    /// Chunks by their sketches.
    similar_bytes: u64,
    /// Segments, regions and the bases read for them.
    selection_bytes: u64,
}

/// The chunk numbers that some container answers for.
fn answered(manifest: &Manifest) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in manifest.containers.iter().flat_map(|record| &record.chunks) {
        numbers.insert_range(run.range());
    }
    numbers
}

/// The chunk numbers of containers that the storage lost.
fn lost_numbers(manifest: &Manifest, lost: &[ContainerId]) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for record in manifest.containers.iter().filter(|record| lost.contains(&record.id)) {
        for run in &record.chunks {
            numbers.insert_range(run.range());
        }
    }
    numbers
}

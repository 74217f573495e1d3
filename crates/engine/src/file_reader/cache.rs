//! Decoded content that readers keep: regions in memory, and in temporary files what was decoded together.
//!
//! A region of an old snapshot may hang on hundreds: its bases lie in many others, theirs in still more. For such a one
//! the content that follows it in the file, and in the files after it, is decoded too, by one plan, as a restore does
//! it: about as many regions as it hangs on, so that of those decoded about half are wanted. Chunks so had are kept in
//! a temporary file, for they may be more than memory holds, and whoever goes on reading finds them there.

use crate::Resources;
use crate::chunks::{ChunkSource, RegionCache};
use crate::decode::{Gatherer, HeldChunk};
use crate::parallel::lock;
use siltstone_store::manifest::Manifest;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// The most bytes of temporary files.
const KEPT_BYTES_MAX: u64 = 1 << 30;
/// Bytes of temporary files for each byte of regions in memory, at most.
const KEPT_BYTES_PER_REGION_BYTE: u64 = 8;
/// The most chunks remembered that could not be decoded with others.
const REFUSED_MAX: usize = 1 << 16;

/// Decoded content that readers of files keep and share.
///
/// It is bounded in memory, and in temporary files by eight times as much, at most by 1 GiB; what waits for its bases
/// while it is decoded comes beside. Those files have no name, are sealed under a key that is never written, and lie
/// where those of the [`Resources`] do. Where they have no room, their content is in memory, within the same bound.
#[derive(Clone, Debug)]
pub struct ReaderCache(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    regions: RegionCache,
    resources: Resources,
    /// Bytes that may wait for bases in memory while content is decoded together.
    waiting_bytes: u64,
    kept_bytes_max: u64,
    /// Sources that had a number so far.
    sources: AtomicU64,
    /// Content is decoded together for one reader at a time.
    turn: Mutex<()>,
    kept: Mutex<Kept>,
}

/// A chunk of a source.
type Key = (u64, ChunkNumber);

/// Chunks in temporary files.
#[derive(Debug, Default)]
struct Kept {
    chunks: HashMap<Key, Arc<HeldChunk>>,
    /// Groups of chunks that were decoded together, oldest first: a file each, so that its room is free when it goes.
    groups: VecDeque<(Vec<Key>, u64)>,
    bytes: u64,
    /// Chunks that did not come when they were wanted: they, or what they hang on, are damaged.
    refused: HashSet<Key>,
}

/// The chunks of one source.
#[derive(Debug)]
pub(super) struct SourceCache {
    cache: ReaderCache,
    source: u64,
}

impl ReaderCache {
    /// An empty cache that keeps at most `region_bytes` of decoded regions in memory. As much may wait in memory for
    /// bases while content is decoded together.
    pub fn new(region_bytes: usize, resources: &Resources) -> Self {
        Self(Arc::new(Shared {
            regions: RegionCache::new(region_bytes),
            resources: resources.clone(),
            waiting_bytes: region_bytes as u64,
            kept_bytes_max: KEPT_BYTES_MAX.min(KEPT_BYTES_PER_REGION_BYTE * region_bytes as u64),
            sources: AtomicU64::new(0),
            turn: Mutex::default(),
            kept: Mutex::default(),
        }))
    }

    /// An empty cache of an eighth of the memory.
    pub fn of(resources: &Resources) -> Self {
        Self::new(resources.file_reader_bytes(), resources)
    }

    /// The regions in memory.
    pub(super) fn regions(&self) -> &RegionCache {
        &self.0.regions
    }

    /// The part of another source.
    pub(super) fn for_source(&self) -> SourceCache {
        SourceCache { cache: self.clone(), source: self.0.sources.fetch_add(1, Ordering::Relaxed) }
    }
}

impl SourceCache {
    /// The most bytes to decode together.
    pub(super) fn group_bytes_max(&self) -> u64 {
        self.cache.0.kept_bytes_max / 2
    }

    /// Gives the bytes of a chunk to `use_bytes`, if they are in a temporary file, and can be read from it.
    pub(super) fn with<R>(&self, number: ChunkNumber, use_bytes: impl FnOnce(&[u8]) -> R) -> Option<R> {
        let held = lock(&self.cache.0.kept).chunks.get(&(self.source, number)).cloned()?;
        held.read().ok().map(|bytes| use_bytes(&bytes))
    }

    pub(super) fn has(&self, number: ChunkNumber) -> bool {
        lock(&self.cache.0.kept).chunks.contains_key(&(self.source, number))
    }

    /// Tells whether a chunk did not come when it was wanted.
    pub(super) fn is_refused(&self, number: ChunkNumber) -> bool {
        lock(&self.cache.0.kept).refused.contains(&(self.source, number))
    }

    /// Waits until no other reader has content decoded together.
    pub(super) fn turn(&self) -> MutexGuard<'_, ()> {
        lock(&self.cache.0.turn)
    }

    /// Decodes these chunks of so many bytes together, and keeps them in place of what was decoded first. What cannot
    /// be had is refused from then on.
    ///
    /// # Errors
    /// A worker went away.
    pub(super) fn gather(
        &self,
        chunks: &Arc<ChunkSource<'_>>,
        manifest: &Manifest,
        wanted: &BTreeSet<ChunkNumber>,
        bytes: u64,
    ) -> Result<(), StoreError> {
        let Shared { resources, waiting_bytes, kept_bytes_max, kept, .. } = &*self.cache.0;
        lock(kept).keep_within(kept_bytes_max.saturating_sub(bytes));
        let (found, _) = std::thread::scope(|scope| {
            let (chunks, folder) = (chunks.clone(), resources.scratch_of(chunks.repository()));
            Gatherer::start(scope, resources.fetches, chunks, manifest, *waiting_bytes, folder, resources)?
                .spilled(wanted, 0)
        })?;
        lock(kept).add(self.source, wanted, found);
        Ok(())
    }
}

impl Kept {
    /// Adds what was decoded of what was wanted of a source.
    fn add(&mut self, source: u64, wanted: &BTreeSet<ChunkNumber>, found: HashMap<ChunkNumber, HeldChunk>) {
        let missing = wanted.len() - found.len();
        if self.refused.len() + missing > REFUSED_MAX {
            self.refused.clear();
        }
        let missing = wanted.iter().filter(|number| !found.contains_key(number));
        self.refused.extend(missing.map(|number| (source, *number)));
        let bytes = found.values().map(HeldChunk::bytes).sum();
        self.groups.push_back((found.keys().map(|number| (source, *number)).collect(), bytes));
        self.chunks.extend(found.into_iter().map(|(number, held)| ((source, number), Arc::new(held))));
        self.bytes += bytes;
    }

    /// Drops what was decoded first, until there are at most so many bytes.
    fn keep_within(&mut self, bytes_max: u64) {
        while self.bytes > bytes_max
            && let Some((keys, bytes)) = self.groups.pop_front()
        {
            self.bytes -= bytes;
            for key in keys {
                self.chunks.remove(&key);
            }
        }
    }
}

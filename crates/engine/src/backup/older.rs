//! Reaching further back: chunks that the last snapshot lacks, but that an older live one has, are used again.
//!
//! Data may be away for one backup (a folder not mounted, a branch switched forth and back) and return. Only chunks
//! that are stored whole are taken back: one that was made a delta would draw its bases into the new snapshot, which
//! would hang on a chain; it is stored again. From the commit on, the snapshots between are said to need the chunks too
//! (`Manifest::push_snapshot`).
//!
//! The index of older chunks is a hint and can be stale: a chunk in it may be dead, or a delta by now. So its number is
//! held against the manifest, its fingerprint against the index of the container that answers for it, and whether it is
//! whole is read there too. A container that cannot be read has nothing to give; it never stops a backup.
//!
//! Cost: a look into this index for every new chunk; for chunks found, one range read for each container they lie in.

use super::cache::Cache;
use super::outcome::Leftover;
use super::previous::{known, last_whole};
use crate::chunks::ChunkSource;
use crate::index::{CacheIdentity, CacheKind, CachedRun, FingerprintIndex, IndexError};
use crate::observer::{Notice, Observer};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, Fingerprint, StoreError};
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// Indexes read at most when the cache is lost, of the newest containers: those of 64 GiB and more.
const REBUILT_CONTAINERS_MAX: usize = 4096;

/// Chunks of older live snapshots.
pub(super) struct Older<'b> {
    index: FingerprintIndex,
    /// Chunks that may be used: those that a live snapshot needs.
    live: RoaringTreemap,
    /// Numbers that turned out to be of no use.
    useless: RoaringTreemap,
    /// Containers that cannot be read.
    unreadable: HashSet<usize>,
    chunks: &'b ChunkSource<'b>,
    observer: &'b dyn Observer,
}

impl<'b> Older<'b> {
    /// The chunks that `manifest`'s last snapshot does not refer to, but that it or others need: from the cache, or
    /// rebuilt from the containers' indexes. Of those `lost` deltas count too: they can be stored again, whole. It
    /// takes so many `bytes` of memory, and room in the folder for what goes beyond.
    ///
    /// # Errors
    /// If that folder cannot be written.
    pub(super) fn open(
        repository: &Repository,
        manifest: &Manifest,
        cache: Option<&Cache>,
        chunks: &'b ChunkSource<'b>,
        lost: &RoaringTreemap,
        (bytes, spill_dir): (u64, &Path),
        observer: &'b dyn Observer,
    ) -> Result<Self, IndexError> {
        let live = manifest.live();
        let cached = cache.zip(last_whole(manifest)).and_then(|(cache, last)| {
            let identity = CacheIdentity { kind: CacheKind::Older, series: manifest.series, snapshot: last.id };
            CachedRun::open(&cache.older, &identity, &repository.keys().cache_key(), bytes).ok()
        });
        let is_cached = cached.is_some();
        let index = FingerprintIndex::open(cached.unwrap_or_else(CachedRun::empty), bytes, spill_dir);
        let (useless, unreadable) = (RoaringTreemap::new(), HashSet::new());
        let mut older = Self { index, live, useless, unreadable, chunks, observer };
        if !is_cached && repository.may_read() {
            older.rebuild(manifest, lost)?;
        }
        Ok(older)
    }

    fn rebuild(&mut self, manifest: &Manifest, lost: &RoaringTreemap) -> Result<(), IndexError> {
        let wanted = &self.live - known(manifest);
        let records = self.chunks.own_records().into_iter();
        let holds =
            |record: &ContainerRecord| record.chunks.iter().any(|run| wanted.range_cardinality(run.range()) > 0);
        let mut containers: Vec<_> = records.filter(|(_, record)| holds(record)).collect();
        containers.sort_unstable_by_key(|(_, record)| record.id);
        for (at, _) in containers.split_off(containers.len().saturating_sub(REBUILT_CONTAINERS_MAX)) {
            let Some(reader) = self.reader(at) else { continue };
            for entry in reader.index().regions() {
                let is_whole = entry.bases.is_empty();
                let is_of_use = |number: u64| wanted.contains(number) && (is_whole || lost.contains(number));
                for chunk in entry.chunks.iter().filter(|chunk| is_of_use(chunk.number.0)) {
                    self.index.insert(chunk.fingerprint, chunk.number)?;
                }
            }
        }
        Ok(())
    }

    fn reader(&mut self, container: usize) -> Option<Arc<ContainerReader>> {
        if self.unreadable.contains(&container) {
            return None;
        }
        let told = |error: StoreError| self.observer.notice(&Notice::IndexUnreadable { reason: error.to_string() });
        let reader = self.chunks.reader(container).map_err(told).ok();
        if reader.is_none() {
            self.unreadable.insert(container);
        }
        reader
    }

    /// The number of a whole chunk with this fingerprint, or of one that is `lost`: its content never was another.
    pub(super) fn find(&mut self, fingerprint: &Fingerprint, lost: &RoaringTreemap) -> Option<ChunkNumber> {
        // A file that cannot be read knows nothing.
        let number = self.index.get(fingerprint).ok()??;
        if !self.live.contains(number.0) || self.useless.contains(number.0) {
            return None;
        }
        if lost.contains(number.0) {
            return Some(number);
        }
        let container = self.chunks.container_of(number).ok()?;
        if !self.chunks.repository().may_read() {
            // The record tells that it is whole if no region of the container has bases. That the number is of this
            // content rests on the cache's authenticity alone.
            return Some(number).filter(|_| !self.chunks.record(container).has_deltas);
        }
        let reader = self.reader(container)?;
        let place = reader.index().find(number).filter(|place| place.chunk.fingerprint == *fingerprint);
        let region = place.and_then(|place| reader.index().regions().get(place.region));
        if region.is_some_and(|region| region.bases.is_empty()) {
            return Some(number);
        }
        self.useless.insert(number.0);
        None
    }

    pub(super) fn finish(self) -> Leftover {
        Leftover { runs: self.index.into_runs(), useless: self.useless }
    }
}

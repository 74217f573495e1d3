//! Content that is decoded together: a chunk that hangs on many regions, and what follows it in its file and the next.

use super::Source;
use super::extents::{ByteSource, Extents};
use crate::chunks::Address;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::BTreeSet;

/// Chunks of region deltas, in the order of the files they are of.
pub(super) struct Group<'s, 'r> {
    source: &'s Source<'r>,
    regions_max: usize,
    wanted: BTreeSet<ChunkNumber>,
    /// Regions they lie in.
    regions: BTreeSet<Address>,
    wanted_bytes: u64,
    /// Bytes of files that were looked at.
    passed_bytes: u64,
}

impl<'s, 'r> Group<'s, 'r> {
    /// An empty group, of no more content than the cache keeps of one.
    pub(super) fn new(source: &'s Source<'r>, regions_max: usize) -> Self {
        let (wanted, regions) = (BTreeSet::new(), BTreeSet::new());
        Self { source, regions_max, wanted, regions, wanted_bytes: 0, passed_bytes: 0 }
    }

    pub(super) fn is_full(&self) -> bool {
        self.regions.len() > self.regions_max || self.passed_bytes >= self.source.cache.group_bytes_max()
    }

    /// Adds what a file has from an offset on, until the group is full. What cannot be read is told to whoever gets
    /// there.
    pub(super) fn add(&mut self, file: &mut Extents, mut offset: u64) {
        let Source { chunks, cache, .. } = self.source;
        while !self.is_full() {
            let Ok(Some((extent, ends))) = file.at(chunks, offset) else { return };
            if let ByteSource::Chunk { number, .. } = extent
                && !cache.has(number)
            {
                let Ok((container, place)) = chunks.place_of(number) else { return };
                let region = Address { container, region: place.region };
                let Ok(has_bases) = chunks.has_bases(region) else { return };
                if has_bases && self.wanted.insert(number) {
                    self.wanted_bytes += u64::from(place.chunk.length);
                    self.regions.insert(region);
                }
            }
            self.passed_bytes = self.passed_bytes.saturating_add(ends - offset);
            offset = ends;
        }
    }

    /// Decodes it into the cache.
    pub(super) fn decode(&self) -> Result<(), StoreError> {
        let Source { chunks, manifest, cache } = self.source;
        cache.gather(chunks, manifest, &self.wanted, self.wanted_bytes)
    }
}

//! Segments: chunks whose bases are read together, and the regions that they fill.

use siltstone_similar::region::{Offer, choose_bases};
use siltstone_store::ChunkNumber;
use siltstone_store::region::ChunkEntry;

/// Text of a segment, bytes (MeGA, ATC 2022, section 4.2), unless said otherwise.
pub(crate) const SEGMENT_BYTES: usize = 20 << 20;
/// Text of a delta, bytes: longer ones gain 2 % and cost a reader more.
pub(crate) const DELTA_REGION_BYTES_TARGET: usize = 512 << 10;
/// Bases of a delta, in bytes of its text. Less room costs most: a member's only base may be missing.
pub(crate) const BASES_OF_TEXT: usize = 3;

/// Chunks gathered for one region, and what each of them may be encoded against.
#[derive(Debug, Default)]
pub(crate) struct OpenRegion {
    pub(crate) chunks: Vec<ChunkEntry>,
    /// Their bytes, one after another.
    pub(crate) plain: Vec<u8>,
    offers: Vec<Vec<Offer<ChunkNumber>>>,
}

impl OpenRegion {
    /// An empty one with room for so many bytes.
    pub(crate) fn with_room(bytes: usize) -> Self {
        Self { plain: Vec::with_capacity(bytes), ..Self::default() }
    }

    /// Tells whether a chunk would fill it beyond so many bytes.
    pub(crate) fn is_full_for(&self, chunk: &ChunkEntry, target: usize) -> bool {
        !self.chunks.is_empty() && self.plain.len() + chunk.length as usize > target
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, chunk: ChunkEntry, bytes: &[u8], offers: Vec<Offer<ChunkNumber>>) {
        self.chunks.push(chunk);
        self.plain.extend_from_slice(bytes);
        self.offers.push(offers);
    }

    /// Chooses among all offers at most `room` bytes of bases.
    pub(crate) fn bases(&self, room: usize) -> Vec<ChunkNumber> {
        let offers: Vec<&[Offer<ChunkNumber>]> = self.offers.iter().map(Vec::as_slice).collect();
        choose_bases(&offers, room)
    }

    /// The room for its bases.
    pub(crate) fn bases_room(&self) -> usize {
        BASES_OF_TEXT * self.plain.len()
    }
}

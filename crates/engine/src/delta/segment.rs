//! Segments: chunks whose bases are read together, and the regions that they fill.

use crate::decode::Bytes;
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
    /// Their bytes.
    pub(crate) texts: Vec<Bytes>,
    /// The sum of these.
    pub(crate) plain_bytes: usize,
    offers: Vec<Vec<Offer<ChunkNumber>>>,
    /// The highest number among them.
    highest: Option<ChunkNumber>,
}

impl OpenRegion {
    /// Tells whether a chunk would fill it beyond so many bytes.
    pub(crate) fn is_full_for(&self, chunk: &ChunkEntry, target: usize) -> bool {
        !self.chunks.is_empty() && self.plain_bytes + chunk.length as usize > target
    }

    /// Adds a chunk.
    pub(crate) fn push(&mut self, chunk: ChunkEntry, text: Bytes, offers: Vec<Offer<ChunkNumber>>) {
        self.highest = self.highest.max(Some(chunk.number));
        self.chunks.push(chunk);
        self.plain_bytes += text.len();
        self.texts.push(text);
        self.offers.push(offers);
    }

    /// Tells whether it has this chunk.
    pub(crate) fn has(&self, number: ChunkNumber) -> bool {
        self.highest >= Some(number) && self.chunks.iter().any(|chunk| chunk.number == number)
    }

    /// Brings the chunks into the order of their numbers, which a region has.
    pub(crate) fn sort(&mut self) {
        if self.chunks.is_sorted_by_key(|chunk| chunk.number) {
            return;
        }
        let Self { chunks, texts, offers, .. } = std::mem::take(self);
        let mut members: Vec<_> = chunks.into_iter().zip(texts).zip(offers).collect();
        members.sort_unstable_by_key(|((chunk, _), _)| chunk.number);
        for ((chunk, text), offers) in members {
            self.push(chunk, text, offers);
        }
    }

    /// Chooses among all offers at most `room` bytes of bases.
    pub(crate) fn bases(&self, room: usize) -> Vec<ChunkNumber> {
        let offers: Vec<&[Offer<ChunkNumber>]> = self.offers.iter().map(Vec::as_slice).collect();
        choose_bases(&offers, room)
    }

    /// The room for its bases.
    pub(crate) fn bases_room(&self) -> usize {
        BASES_OF_TEXT * self.plain_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::Fingerprint;

    #[test]
    fn chunks_that_come_in_any_order_are_sorted_with_their_bytes_and_offers() {
        let mut region = OpenRegion::default();
        for (number, bytes) in [(5, "five"), (2, "2"), (9, "n")] {
            let length = u32::try_from(bytes.len()).unwrap();
            let entry = ChunkEntry { number: ChunkNumber(number), fingerprint: Fingerprint([0; 16]), length };
            let offer = Offer { number: ChunkNumber(number + 100), bytes: 1, weight: 1 };
            region.push(entry, Bytes::from_static(bytes.as_bytes()), vec![offer]);
        }
        assert_eq!(
            [1, 2, 5, 6, 9, 10].map(|number| region.has(ChunkNumber(number))),
            [false, true, true, false, true, false]
        );
        region.sort();
        assert_eq!((region.texts.concat(), region.plain_bytes), (b"2fiven".to_vec(), 6));
        assert_eq!(region.chunks.iter().map(|chunk| chunk.number.0).collect::<Vec<_>>(), [2, 5, 9]);
        assert_eq!(region.bases(1), [ChunkNumber(102)], "the first member's offer is the first chunk's");
        assert!(region.has(ChunkNumber(9)) && !region.has(ChunkNumber(10)));
    }
}

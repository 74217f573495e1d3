//! An index of chunks by their anchors.
//!
//! ```text
//! chunks    the number of each chunk, in the order in which they came
//! slots     a table with open addressing, by the low bits of an anchor: the anchor (u32), and the place in `chunks` of
//!           the first chunk that has it (u32)
//! ```
//!
//! Reasons:
//! 1. **Bounded, and no chunk is lost.** When the table is full, every other anchor is forgotten, chosen by a bit of its
//!    own, and none with that bit is taken any more. A chunk that comes late is found like one that came first, by half
//!    as many anchors.
//! 2. **The first chunk has the anchor.** What several chunks have in common counts for one of them, so that the best
//!    candidates do not all hold the same part.
//! 3. **An answer is a guess.** Anchors are hashes: a wrong candidate makes a bad delta, which is not kept.
//!
//! Cost: 8 bytes a slot, of which at most three in four are taken, and 8 bytes a chunk; a cache line for each anchor.

use crate::index::Candidate;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The slot that holds nothing. No chunk has that place.
const EMPTY: u64 = u64::MAX;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 1 << 10;
/// Bytes of a slot while the table grows: half of one is in the table before.
const SLOT_BYTES_GROWING: u64 = 12;

/// Finds stored chunks that have stretches of bytes in common with another.
#[derive(Clone, Debug)]
pub struct AnchorIndex {
    chunks: Vec<u64>,
    slots: Vec<u64>,
    taken: usize,
    slots_max: usize,
    /// Anchors with any of these bits are left out.
    left_out: u32,
}

impl AnchorIndex {
    /// An empty index, whose table takes about so many bytes at most.
    pub fn within(bytes: u64) -> Self {
        let slots = usize::try_from(bytes / SLOT_BYTES_GROWING).unwrap_or(usize::MAX).max(SLOTS_MIN);
        let slots_max = 1 << slots.ilog2().min(u32::BITS);
        Self { chunks: Vec::new(), slots: vec![EMPTY; SLOTS_MIN], taken: 0, slots_max, left_out: 0 }
    }

    /// Adds a chunk with these anchors.
    pub fn insert(&mut self, number: u64, anchors: &[u32]) {
        let chunk = u32::try_from(self.chunks.len()).ok().filter(|chunk| *chunk != u32::MAX);
        if let (Some(chunk), false) = (chunk, anchors.is_empty()) {
            self.chunks.push(number);
            self.fetch(anchors);
            for anchor in anchors {
                self.insert_one(*anchor, chunk);
            }
        }
    }

    fn insert_one(&mut self, anchor: u32, chunk: u32) {
        if anchor & self.left_out != 0 {
            return;
        }
        let slot = self.slot(anchor);
        if self.slots[slot] == EMPTY {
            self.slots[slot] = u64::from(anchor) << 32 | u64::from(chunk);
            self.taken += 1;
            if 4 * self.taken > 3 * self.slots.len() {
                self.make_room();
            }
        }
    }

    /// Brings the slots of these anchors into the cache, all at once: looked up one after another each would be waited
    /// for.
    fn fetch(&self, anchors: &[u32]) {
        let mask = self.slots.len() - 1;
        core::hint::black_box(anchors.iter().fold(0, |all, anchor| all ^ self.slots[*anchor as usize & mask]));
    }

    /// The slot of an anchor, or the empty one where it would be.
    #[allow(clippy::cast_possible_truncation)] // The upper half is an anchor.
    fn slot(&self, anchor: u32) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = anchor as usize & mask;
        while self.slots[slot] != EMPTY && (self.slots[slot] >> 32) as u32 != anchor {
            slot = (slot + 1) & mask;
        }
        slot
    }

    /// Doubles the table; one that may not grow is emptied by half.
    #[allow(clippy::cast_possible_truncation)] // Both halves are of 32 bits.
    fn make_room(&mut self) {
        let mut slots = self.slots.len();
        if slots < self.slots_max {
            slots *= 2;
        } else {
            self.left_out = 1 << 31 | self.left_out >> 1;
        }
        let before = core::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        self.taken = 0;
        for slot in before.into_iter().filter(|slot| *slot != EMPTY) {
            self.insert_one((slot >> 32) as u32, slot as u32);
        }
    }

    /// The chunks that have any of these anchors, at most `most`, those with the most first, of equals those that came
    /// first. An anchor counts once.
    #[allow(clippy::cast_possible_truncation)] // The lower half is a place.
    pub fn find_some(&self, anchors: &[u32], most: usize) -> Vec<Candidate> {
        self.fetch(anchors);
        let found = anchors.iter().map(|anchor| self.slots[self.slot(*anchor)]).filter(|slot| *slot != EMPTY);
        // By chunk, then by anchor.
        let mut found: Vec<u64> = found.map(|slot| slot.rotate_left(32)).collect();
        found.sort_unstable();
        found.dedup();
        let of_chunk = |anchors: &[u64]| {
            let chunk = anchors.first().map_or(0, |first| (first >> 32) as usize);
            Candidate { number: self.chunks[chunk], matches: anchors.len() }
        };
        let mut candidates: Vec<_> = found.chunk_by(|one, next| one >> 32 == next >> 32).map(of_chunk).collect();
        candidates.sort_by_key(|candidate| Reverse(candidate.matches));
        candidates.truncate(most);
        candidates
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anchors that no other number has.
    fn anchors(number: u32, count: u32) -> Vec<u32> {
        (0..count).map(|at| (number * 1000 + at).wrapping_mul(0x9E37_79B1)).collect()
    }

    fn found(index: &AnchorIndex, anchors: &[u32], most: usize) -> Vec<(u64, usize)> {
        index.find_some(anchors, most).into_iter().map(|found| (found.number, found.matches)).collect()
    }

    #[test]
    fn each_chunk_that_a_part_went_to_is_found_the_largest_part_first() {
        let mut index = AnchorIndex::within(1 << 20);
        index.insert(70, &anchors(1, 10));
        index.insert(80, &anchors(2, 30));
        index.insert(90, &[]);
        let parts = [anchors(1, 10), anchors(3, 50), anchors(2, 20)].concat();
        assert_eq!(found(&index, &parts, 9), [(80, 20), (70, 10)]);
        assert_eq!(found(&index, &parts, 1), [(80, 20)]);
        assert_eq!(found(&index, &anchors(3, 50), 9), []);
        assert_eq!(found(&index, &[], 9), []);
    }

    #[test]
    fn an_anchor_counts_once_and_for_the_chunk_that_came_first() {
        let mut index = AnchorIndex::within(1 << 20);
        index.insert(1, &anchors(1, 4));
        index.insert(2, &[anchors(1, 4), anchors(2, 3)].concat());
        let twice = [anchors(1, 4), anchors(2, 3), anchors(1, 4)].concat();
        assert_eq!(found(&index, &twice, 9), [(1, 4), (2, 3)]);
    }

    #[test]
    fn it_grows_as_long_as_it_may_and_loses_nothing() {
        let mut index = AnchorIndex::within(1 << 20);
        let each = 0..400;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 100)));
        assert!(index.slots.len() > SLOTS_MIN && index.left_out == 0);
        for number in each {
            assert_eq!(found(&index, &anchors(number, 100), 9), [(number.into(), 100)]);
        }
    }

    #[test]
    fn a_full_one_forgets_half_of_the_anchors_of_all_chunks_alike() {
        let mut index = AnchorIndex::within(1 << 17);
        let each = 0..400;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 100)));
        assert_eq!(index.slots.len(), index.slots_max);
        assert!(index.slots_max as u64 * SLOT_BYTES_GROWING <= 1 << 17);
        // 40 000 anchors, of which there is room for 6000: one in eight.
        assert_eq!(index.left_out, 0b111 << 29);
        for number in each {
            let found = found(&index, &anchors(number, 100), 9);
            assert!(matches!(found[..], [(of, 3..=30)] if of == u64::from(number)), "{number}: {found:?}");
        }
    }
}

//! An index of chunks by their anchors.
//!
//! ```text
//! chunks    the number of each chunk, in the order in which they came
//! slots     a table with open addressing, by the low bits of an anchor: the anchor (u32), and the place in `chunks` of
//!           the first chunk that has it (u32)
//! ```
//!
//! Reasons:
//! 1. **Bounded, and late chunks are as good as early ones.** When the table is full, every other anchor is forgotten,
//!    chosen by a bit of its own, and none with that bit is taken any more. All chunks are found by half as many
//!    anchors then, and one that has none left is forgotten.
//! 2. **The first chunk has the anchor.** What several chunks have in common counts for one of them, so that the best
//!    candidates do not all hold the same part.
//! 3. **An answer is a guess.** Anchors are hashes: a wrong candidate makes a bad delta, which is not kept.
//!
//! Cost: 8 bytes a slot, of which at most three in four are taken, and 8 bytes a chunk, of which there are no more than
//! slots taken; a cache line for each anchor.

use crate::index::Candidate;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The slot that holds nothing. No chunk has that place.
const EMPTY: u64 = u64::MAX;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 1 << 10;
/// Bytes of a slot while one table takes the place of another as large.
const SLOT_BYTES_TWICE: u64 = 16;

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
        let slots = usize::try_from(bytes / SLOT_BYTES_TWICE).unwrap_or(usize::MAX).max(SLOTS_MIN);
        let slots_max = 1 << slots.ilog2().min(u32::BITS);
        Self { chunks: Vec::new(), slots: vec![EMPTY; SLOTS_MIN], taken: 0, slots_max, left_out: 0 }
    }

    /// Adds a chunk with these anchors.
    pub fn insert(&mut self, number: u64, anchors: &[u32]) {
        self.chunks.push(number);
        self.fetch(anchors);
        let mut is_found = false;
        for anchor in anchors {
            // Its place is another one once others were forgotten.
            let Ok(chunk) = u32::try_from(self.chunks.len() - 1) else { break };
            is_found |= self.take(*anchor, chunk);
            if 4 * self.taken > 3 * self.slots.len() {
                self.make_room();
            }
        }
        if !is_found {
            self.chunks.pop();
        }
    }

    /// Takes an anchor for a chunk, unless it is left out or another chunk has it; tells whether it did.
    fn take(&mut self, anchor: u32, chunk: u32) -> bool {
        let slot = self.slot(anchor);
        let is_taken = anchor & self.left_out == 0 && self.slots[slot] == EMPTY;
        if is_taken {
            self.slots[slot] = u64::from(anchor) << 32 | u64::from(chunk);
            self.taken += 1;
        }
        is_taken
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
            self.take((slot >> 32) as u32, slot as u32);
        }
        if slots == self.slots_max {
            self.forget_chunks();
        }
    }

    /// Forgets the chunks that no anchor is left of, but for the last, which is being added. The others keep their
    /// order.
    #[allow(clippy::cast_possible_truncation)] // The lower half of a slot is a place, and no place is larger before.
    fn forget_chunks(&mut self) {
        let mut is_kept = vec![false; self.chunks.len()];
        is_kept.last_mut().into_iter().for_each(|last| *last = true);
        self.slots.iter().filter(|slot| **slot != EMPTY).for_each(|slot| is_kept[*slot as u32 as usize] = true);
        let mut next = 0;
        let place = |is_kept: &bool| {
            next += u32::from(*is_kept);
            next - u32::from(*is_kept)
        };
        let places: Vec<u32> = is_kept.iter().map(place).collect();
        for slot in self.slots.iter_mut().filter(|slot| **slot != EMPTY) {
            *slot = *slot >> 32 << 32 | u64::from(places[*slot as u32 as usize]);
        }
        let mut is_kept = is_kept.into_iter();
        self.chunks.retain(|_| is_kept.next().unwrap_or(true));
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
        assert!(index.slots_max as u64 * SLOT_BYTES_TWICE <= 1 << 17);
        // 40 000 anchors, of which there is room for 6000: one in eight.
        assert_eq!(index.left_out, 0b111 << 29);
        for number in each {
            let found = found(&index, &anchors(number, 100), 9);
            assert!(matches!(found[..], [(of, 3..=30)] if of == u64::from(number)), "{number}: {found:?}");
        }
    }

    #[test]
    fn there_are_no_more_chunks_than_anchors_and_those_that_are_left_are_found() {
        let mut index = AnchorIndex::within(1 << 14);
        let each = 0..40_000;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 2)));
        assert!(index.chunks.len() <= index.taken + 1 && index.chunks.is_sorted(), "{}", index.chunks.len());
        let is_right = |number: u32| match found(&index, &anchors(number, 2), 9)[..] {
            [] => None,
            [(of, 1..=2)] => Some(of == u64::from(number)),
            _ => Some(false),
        };
        let results: Vec<bool> = each.filter_map(is_right).collect();
        assert!(results.len() > 100 && results.iter().all(|is_right| *is_right), "{}", results.len());
    }
}

//! An index of chunks by their anchors.
//!
//! ```text
//! chunks    the number of each chunk, and where its anchors end in `anchors`, in the order in which they came
//! anchors   those of each chunk, ascending
//! slots     a table with open addressing, by the low bits of an anchor: the anchor (u32), and the place in `chunks` of
//!           the first chunk that has it (u32)
//! ```
//!
//! Reasons:
//! 1. **Candidates are a cover.** A chunk's text may lie in several others, whole in one and in part in many: pages of
//!    a database, in its table and in its log. Slots find whoever came first with any of it; of these the one comes
//!    first that has most of the anchors, then the one that has most of the rest. By the slots alone a delta in folders
//!    of `PostgreSQL` of 600 MB hung on 14 regions rather than 5, and the oldest of five took 2.7 seconds to restore
//!    rather than 1.7 (November 2026).
//! 2. **Bounded, and late chunks are as good as early ones.** When there are too many anchors, every other one is
//!    forgotten, chosen by a bit of its own, and none with that bit is taken any more. All chunks are found by half as
//!    many anchors then, and one that has none left is forgotten.
//! 3. **An answer is a guess.** Anchors are hashes: a wrong candidate makes a bad delta, which is not kept.
//!
//! Cost: 8 bytes a slot, of which at most three in four are taken; 4 bytes for each anchor of each chunk and 16 for
//! each chunk, at most 7 bytes for each slot in all; a cache line for each anchor.

use crate::index::Candidate;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

/// The slot that holds nothing. No chunk has that place.
const EMPTY: u64 = u64::MAX;
/// Slots of the smallest table.
const SLOTS_MIN: usize = 1 << 10;
/// Bytes for a slot: in two tables, while one takes the place of another as large, and for chunks and their anchors.
const BYTES_PER_SLOT: u64 = 16 + ANCHORS_OF_FOUR_SLOTS as u64;
/// Anchors of chunks that there is room for, for four slots. Where several chunks have the same anchors these are more
/// than the slots that they take.
const ANCHORS_OF_FOUR_SLOTS: usize = 7;
/// Anchors that there would be room for in place of a chunk.
const ANCHORS_OF_CHUNK: usize = size_of::<Chunk>() / size_of::<u32>();
/// Chunks that are looked at for each that is asked for.
const LOOKED_AT: usize = 2;

/// Finds stored chunks that have stretches of bytes in common with another.
#[derive(Clone, Debug)]
pub struct AnchorIndex {
    chunks: Vec<Chunk>,
    anchors: Vec<u32>,
    slots: Vec<u64>,
    taken: usize,
    slots_max: usize,
    /// Anchors with any of these bits are left out.
    left_out: u32,
}

/// A chunk that is known.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    number: u64,
    /// Where its anchors end among those of all: they begin where those of the chunk before end.
    end: usize,
}

/// Chunks that together have a chunk's anchors, as far as they are known.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Cover {
    /// First the one that has most of the anchors, then the one that has most of the rest, and so on: each with how
    /// many it adds.
    pub candidates: Vec<Candidate>,
    /// Number of anchors that were looked up.
    pub looked_up: usize,
}

impl AnchorIndex {
    /// An empty index, which takes about so many bytes at most.
    pub fn within(bytes: u64) -> Self {
        let slots = usize::try_from(bytes / BYTES_PER_SLOT).unwrap_or(usize::MAX).max(SLOTS_MIN);
        let slots_max = 1 << slots.ilog2().min(u32::BITS);
        Self {
            chunks: Vec::new(),
            anchors: Vec::new(),
            slots: vec![EMPTY; SLOTS_MIN],
            taken: 0,
            slots_max,
            left_out: 0,
        }
    }

    /// Adds a chunk with these anchors.
    pub fn insert(&mut self, number: u64, anchors: &[u32]) {
        let anchors = self.not_left_out(anchors);
        self.anchors.extend(&anchors);
        self.chunks.push(Chunk { number, end: self.anchors.len() });
        while 4 * self.held() > ANCHORS_OF_FOUR_SLOTS * self.slots_max {
            self.forget_half();
        }
        self.fetch(&anchors);
        let mut is_found = false;
        for anchor in anchors {
            // Its place is another one once others were forgotten.
            let Ok(chunk) = u32::try_from(self.chunks.len() - 1) else { break };
            is_found |= self.take(anchor, chunk);
            if 4 * self.taken > 3 * self.slots.len() {
                self.make_room();
            }
        }
        if !is_found {
            self.chunks.pop();
            self.anchors.truncate(self.chunks.last().map_or(0, |last| last.end));
        }
    }

    /// Returns the room that chunks and their anchors take, in anchors.
    fn held(&self) -> usize {
        self.anchors.len() + ANCHORS_OF_CHUNK * self.chunks.len()
    }

    /// The anchors of the chunk at this place.
    fn of_chunk(&self, place: usize) -> &[u32] {
        let begin = place.checked_sub(1).map_or(0, |before| self.chunks[before].end);
        &self.anchors[begin..self.chunks[place].end]
    }

    /// Those of these anchors that are not left out, ascending, each once.
    fn not_left_out(&self, anchors: &[u32]) -> Vec<u32> {
        let mut left: Vec<u32> = anchors.iter().copied().filter(|anchor| anchor & self.left_out == 0).collect();
        left.sort_unstable();
        left.dedup();
        left
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
    fn make_room(&mut self) {
        if self.slots.len() < self.slots_max {
            self.take_again(2 * self.slots.len());
        } else {
            self.forget_half();
        }
    }

    /// Leaves out every other anchor.
    fn forget_half(&mut self) {
        self.left_out = 1 << 31 | self.left_out >> 1;
        self.take_again(self.slots.len());
        self.forget_chunks();
    }

    /// Fills a table of so many slots with what is not left out.
    #[allow(clippy::cast_possible_truncation)] // Both halves are of 32 bits.
    fn take_again(&mut self, slots: usize) {
        let before = core::mem::replace(&mut self.slots, vec![EMPTY; slots]);
        self.taken = 0;
        for slot in before.into_iter().filter(|slot| *slot != EMPTY) {
            self.take((slot >> 32) as u32, slot as u32);
        }
    }

    /// Forgets what is left out of the chunks' anchors, and the chunks that no slot is left of, but for the last, which
    /// is being added. The others keep their order.
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
        let (chunks, anchors) = (core::mem::take(&mut self.chunks), core::mem::take(&mut self.anchors));
        let mut begin = 0;
        for (Chunk { number, end }, is_kept) in chunks.into_iter().zip(is_kept) {
            if is_kept {
                self.anchors.extend(anchors[begin..end].iter().filter(|anchor| *anchor & self.left_out == 0));
                self.chunks.push(Chunk { number, end: self.anchors.len() });
            }
            begin = end;
        }
    }

    /// Finds at most `most` chunks that together have these anchors. Of two that add as many the one comes first that
    /// has more of them in slots, then the one that was added first.
    ///
    /// # Complexity
    /// One look for each anchor, and `most` times over the anchors of twice as many chunks.
    #[allow(clippy::cast_possible_truncation)] // The lower half is a place.
    pub fn find_some(&self, anchors: &[u32], most: usize) -> Cover {
        let mut left = self.not_left_out(anchors);
        let looked_up = left.len();
        self.fetch(&left);
        let mut places: Vec<u32> = Vec::with_capacity(left.len());
        left.retain(|anchor| {
            let slot = self.slots[self.slot(*anchor)];
            places.extend((slot != EMPTY).then_some(slot as u32));
            slot != EMPTY
        });
        places.sort_unstable();
        let mut by_slots: Vec<(usize, u32)> = places.chunk_by(|a, b| a == b).map(|of| (of.len(), of[0])).collect();
        by_slots.sort_by_key(|(slots, _)| Reverse(*slots));
        let mut chunks: Vec<usize> = by_slots.iter().take(LOOKED_AT * most).map(|(_, place)| *place as usize).collect();
        let mut candidates = Vec::new();
        while candidates.len() < most {
            let (mut matches, mut best) = (0, 0);
            for (at, chunk) in chunks.iter().enumerate() {
                let mut is_added = is_among(self.of_chunk(*chunk));
                let added = left.iter().filter(|anchor| is_added(anchor)).count();
                if added > matches {
                    (matches, best) = (added, at);
                }
                if added == left.len() {
                    break;
                }
            }
            if matches == 0 {
                break;
            }
            let chunk = chunks.remove(best);
            candidates.push(Candidate { number: self.chunks[chunk].number, matches });
            let mut is_covered = is_among(self.of_chunk(chunk));
            left.retain(|anchor| !is_covered(anchor));
        }
        Cover { candidates, looked_up }
    }
}

/// Returns what tells of numbers, asked about in ascending order, whether they are among these, which ascend too.
fn is_among(numbers: &[u32]) -> impl FnMut(&u32) -> bool {
    let mut numbers = numbers.iter().peekable();
    move |asked| {
        while numbers.next_if(|number| *number < asked).is_some() {}
        numbers.peek() == Some(&asked)
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
        let candidates = index.find_some(anchors, most).candidates.into_iter();
        candidates.map(|found| (found.number, found.matches)).collect()
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
    fn an_anchor_counts_once_and_for_the_chunk_that_has_most_of_them() {
        let mut index = AnchorIndex::within(1 << 20);
        let (one, two) = (anchors(1, 4), anchors(2, 3));
        index.insert(1, &one);
        index.insert(2, &[&one[..], &two].concat());
        index.insert(3, &[&two[..], &anchors(3, 2)].concat());
        let twice = [&one[..], &two, &one].concat();
        assert_eq!(found(&index, &twice, 9), [(2, 7)], "the others add nothing");
        assert_eq!(found(&index, &one, 9), [(1, 4)], "of equals the first");
        let all = [twice, anchors(3, 2)].concat();
        assert_eq!(found(&index, &all, 9), [(2, 7), (3, 2)]);
        let unknown = [all, anchors(4, 5)].concat();
        let cover = index.find_some(&unknown, 9);
        assert_eq!((cover.candidates.len(), cover.looked_up), (2, 14));
    }

    #[test]
    fn it_grows_as_long_as_it_may_and_loses_nothing() {
        let mut index = AnchorIndex::within(1 << 21);
        let each = 0..400;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 100)));
        assert!(index.slots.len() > SLOTS_MIN && index.left_out == 0);
        for number in each {
            assert_eq!(found(&index, &anchors(number, 100), 9), [(number.into(), 100)]);
        }
    }

    #[test]
    fn a_full_one_forgets_half_of_the_anchors_of_all_chunks_alike() {
        let mut index = AnchorIndex::within(1 << 18);
        let each = 0..400;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 100)));
        assert_eq!(index.slots.len(), index.slots_max);
        assert!(index.slots_max as u64 * BYTES_PER_SLOT <= 1 << 18);
        // 40 000 anchors, of which there is room for 6000: one in eight.
        assert_eq!(index.left_out, 0b111 << 29);
        for number in each {
            let found = found(&index, &anchors(number, 100), 9);
            assert!(matches!(found[..], [(of, 3..=30)] if of == u64::from(number)), "{number}: {found:?}");
        }
    }

    #[test]
    fn anchors_that_many_chunks_have_are_bounded_as_well() {
        let mut index = AnchorIndex::within(1 << 17);
        for number in 0..400 {
            index.insert(number.into(), &[anchors(1, 60), anchors(2 + number, 5)].concat());
        }
        assert!(4 * index.held() <= ANCHORS_OF_FOUR_SLOTS * index.slots_max, "{}", index.held());
        assert!(index.left_out != 0 && index.slots.len() < index.slots_max, "the table has room");
        let most = found(&index, &anchors(1, 60), 9);
        assert!(matches!(most[..], [(_, 3..=30)]), "{most:?}");
    }

    #[test]
    fn there_are_no_more_chunks_than_anchors_and_those_that_are_left_are_found() {
        let mut index = AnchorIndex::within(1 << 14);
        let each = 0..40_000;
        each.clone().for_each(|number| index.insert(number.into(), &anchors(number, 2)));
        assert!(
            index.chunks.len() <= index.taken + 1 && index.chunks.is_sorted_by_key(|chunk| chunk.number),
            "{}",
            index.chunks.len()
        );
        let is_right = |number: u32| match found(&index, &anchors(number, 2), 9)[..] {
            [] => None,
            [(of, 1..=2)] => Some(of == u64::from(number)),
            _ => Some(false),
        };
        let results: Vec<bool> = each.filter_map(is_right).collect();
        assert!(results.len() > 100 && results.iter().all(|is_right| *is_right), "{}", results.len());
    }
}

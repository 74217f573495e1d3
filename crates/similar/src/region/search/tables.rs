//! Tables of where bytes were seen before: two from a hash of a place's next bytes to the last such place.
//!
//! Tables are not cleared between regions: entries count from an origin that moves on, so that older ones lie before
//! it.

use super::compare::word;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

/// Logarithms of the tables' sizes: 512 and 128 KiB. Double the first made regions of 512 KiB up to 1 % smaller.
const LONG_LOG: u32 = 17;
const SHORT_LOG: u32 = 15;
/// Bytes of a long word.
pub(super) const LONG_BYTES: usize = 8;
/// Bytes of a short one. Five cost as much as they saved: a copy from far away takes more than three bytes.
pub(super) const SHORT_BYTES: usize = 6;
/// Every so many bytes a place of the prefix is known.
const PREFIX_STEP: usize = 4;
/// Bytes of the prefix that are learnt again at once. 256 and 1024 were no better.
const BLOCK_BYTES: usize = 512;

/// 64-bit golden-ratio prime, as zstd takes it for words of eight bytes.
const FACTOR: u64 = 0xCF1B_BCDC_B7A5_6463;

/// The places of one region.
pub(super) struct Tables {
    long: Box<[u32; 1 << LONG_LOG]>,
    short: Box<[u32; 1 << SHORT_LOG]>,
    /// The number that place 0 has in the tables.
    origin: u32,
    /// Marks of the prefix's blocks that were learnt again.
    again: Vec<bool>,
    prefix_bytes: usize,
    bytes: u32,
}

/// Earlier places of a place's next bytes, as the tables know them.
pub(super) struct Seen {
    /// The place's next eight bytes.
    pub(super) word: u64,
    /// Place at which the same eight bytes may have been; any number if nowhere.
    pub(super) long: usize,
    /// Place at which the same six bytes may have been; any number if nowhere.
    pub(super) short: usize,
}

impl Seen {
    /// Tells whether the first bytes of another word are those of a short word.
    #[inline(always)]
    pub(super) fn short_equals(&self, other: u64) -> bool {
        (self.word ^ other) << (64 - 8 * SHORT_BYTES) == 0
    }
}

impl Tables {
    pub(super) fn new() -> Self {
        let (long, short) = (table(), table());
        Self { long, short, origin: 1, again: Vec::new(), prefix_bytes: 0, bytes: 0 }
    }

    /// Forgets the region before, and learns every fourth place of this one's prefix, the last of equal ones.
    pub(super) fn begin(&mut self, whole: &[u8], prefix_bytes: usize) {
        let bytes = u32::try_from(whole.len()).expect("a region is shorter");
        match self.origin.checked_add(self.bytes).filter(|origin| origin.checked_add(bytes).is_some()) {
            Some(origin) => self.origin = origin,
            None => {
                self.long.fill(0);
                self.short.fill(0);
                self.origin = 1;
            }
        }
        (self.bytes, self.prefix_bytes) = (bytes, prefix_bytes);
        self.again.clear();
        self.again.resize(prefix_bytes.div_ceil(BLOCK_BYTES), false);
        self.learn_prefix(whole, 0, prefix_bytes);
    }

    /// Learns the two blocks around a place of the prefix again, unless it has done so: of equal places the nearest one
    /// is found then. Nothing for a place of the text.
    #[inline(always)]
    pub(super) fn learn_around(&mut self, whole: &[u8], place: usize) {
        if place < self.prefix_bytes {
            let first = (place.saturating_sub(BLOCK_BYTES / 2)) / BLOCK_BYTES;
            for block in first..self.again.len().min(first + 2) {
                if !self.again[block] {
                    self.again[block] = true;
                    let begin = block * BLOCK_BYTES;
                    let end = self.prefix_bytes.min(begin + BLOCK_BYTES + PREFIX_STEP);
                    self.learn_prefix(whole, begin, end);
                }
            }
        }
    }

    /// Learns every fourth place from `begin` on whose long word ends before `end`.
    #[inline(always)]
    fn learn_prefix(&mut self, whole: &[u8], begin: usize, end: usize) {
        let first = self.entry(begin);
        let windows = whole[begin..end].windows(LONG_BYTES).step_by(PREFIX_STEP);
        for (entry, bytes) in (first..).step_by(PREFIX_STEP).zip(windows) {
            self.long[long_hash(word(bytes, 0))] = entry;
        }
    }

    /// Learns a place.
    #[inline(always)]
    pub(super) fn learn(&mut self, whole: &[u8], place: usize) {
        let word = word(whole, place);
        let entry = self.entry(place);
        self.long[long_hash(word)] = entry;
        self.short[short_hash(word)] = entry;
    }

    /// Looks a place up, and learns it.
    #[inline(always)]
    pub(super) fn look(&mut self, whole: &[u8], place: usize) -> Seen {
        let word = word(whole, place);
        let entry = self.entry(place);
        let long = core::mem::replace(&mut self.long[long_hash(word)], entry);
        let short = core::mem::replace(&mut self.short[short_hash(word)], entry);
        Seen { word, long: self.place(long), short: self.place(short) }
    }

    /// Looks the long word of a place up, and learns it: where it was before, if it was.
    #[inline(always)]
    pub(super) fn look_long(&mut self, whole: &[u8], place: usize) -> Option<usize> {
        let here = word(whole, place);
        let entry = self.entry(place);
        let before = core::mem::replace(&mut self.long[long_hash(here)], entry);
        let before = self.place(before);
        (before < place && word(whole, before) == here).then_some(before)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // A region is shorter.
    fn entry(&self, place: usize) -> u32 {
        self.origin.wrapping_add(place as u32)
    }

    /// The place of an entry; what is no entry of this region lies behind all places.
    #[inline(always)]
    fn place(&self, entry: u32) -> usize {
        entry.wrapping_sub(self.origin) as usize
    }
}

#[allow(clippy::unnecessary_box_returns)] // It does not fit onto every stack.
fn table<const ENTRIES: usize>() -> Box<[u32; ENTRIES]> {
    vec![0; ENTRIES].into_boxed_slice().try_into().expect("the same length")
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn long_hash(word: u64) -> usize {
    (word.wrapping_mul(FACTOR) >> (64 - LONG_LOG)) as usize
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn short_hash(word: u64) -> usize {
    ((word << (64 - 8 * SHORT_BYTES)).wrapping_mul(FACTOR) >> (64 - SHORT_LOG)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that differ.
    fn text(bytes: usize) -> Vec<u8> {
        let mut text = vec![0; bytes];
        blake3::Hasher::new().finalize_xof().fill(&mut text);
        text
    }

    #[test]
    fn of_equal_places_of_the_prefix_the_last_is_known_and_around_copies_the_nearest() {
        let half = text(4096);
        let whole = [half.clone(), half.clone(), half].concat();
        let mut tables = Tables::new();
        tables.begin(&whole, 8192);
        assert_eq!(tables.look_long(&whole, 8192 + 160), Some(4096 + 160));
        assert_eq!(tables.look_long(&whole, 8192 + 162), None);
        tables.learn_around(&whole, 150);
        assert_eq!(tables.look_long(&whole, 8192 + 168), Some(168));
        assert_eq!(tables.look_long(&whole, 8192 + 2000), Some(4096 + 2000));
        tables.learn_around(&whole, 9000);
    }

    #[test]
    fn nothing_is_left_of_the_region_before() {
        let whole = text(4096);
        let mut tables = Tables::new();
        for origin in [1, u32::MAX - 4096 - 100, u32::MAX - 200] {
            (tables.origin, tables.bytes) = (origin, 0);
            tables.begin(&whole, 4096);
            assert_eq!(tables.look(&whole, 4000).long, 4000);
            tables.begin(&whole, 0);
            let seen = tables.look(&whole, 4000);
            assert!(seen.long >= whole.len() && seen.short >= whole.len());
            assert_eq!(tables.look(&whole, 4000).short, 4000);
        }
    }
}

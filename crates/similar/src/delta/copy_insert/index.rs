//! The places of the base's words.
//!
//! Every 12 bytes the eight bytes of the base that begin there are entered under a hash of them. A place holds one
//! word, that of the lowest offset; so entering is a store, without looking at what is there. Looking up what is not
//! there nearly always ends with one comparison: more bits of the hash stand beside the entry.
//!
//! Reasons, with the bytes of pools of real pairs (see `encode.rs`):
//! 1. **12 bytes**: what is to be found has 24, so it holds two words. With 8 the size was 0.1-0.7 % less and encoding
//!    6-15 % slower, with 16 up to 1 % more and 4-15 % faster.
//! 2. **One word in a place**: chains of four words gave 1.2 % fewer bytes on text, less elsewhere, and encoding took a
//!    quarter to a half longer.
//!
//! Cost: 1.4-2.7 KiB of table for each KiB of base, at most 512 KiB, cleared each time; a multiplication and a store
//! for each word.

use super::compare::word;
use alloc::vec::Vec;

/// Distance from one word to the next, unless the base is too long.
const STRIDE_BYTES: usize = 12;
/// Words entered at most: their numbers have 16 bits.
const ENTRIES_MAX: usize = 1 << 15;
/// Places for each.
const PLACES_PER_ENTRY: usize = 4;
/// Words looked up at once.
pub(super) const WORDS: usize = 8;
const WORD_BYTES: usize = 8;

/// An index, and the memory it is built in again and again.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// Under a hash: 16 other bits of it, then the number of the word from 1 on; 0 is none.
    places: Vec<u32>,
    stride: usize,
    /// Bits by which a hash is shifted down to be a place.
    shift: u32,
}

impl Index {
    /// Enters the words of `base`.
    pub(super) fn build(&mut self, base: &[u8]) {
        self.stride = STRIDE_BYTES * base.len().div_ceil(STRIDE_BYTES * ENTRIES_MAX).max(1);
        let words = base.chunks_exact(self.stride);
        let bits = (words.len() * PLACES_PER_ENTRY).max(2).next_power_of_two().ilog2();
        self.shift = u64::BITS - bits;
        self.places.clear();
        self.places.resize(1 << bits, 0);
        let mut number = u32::try_from(words.len()).unwrap_or_default();
        for stretch in words.rev() {
            let hash = word(stretch, 0).map_or(0, hash);
            let place = self.place(hash);
            if let Some(place) = self.places.get_mut(place) {
                *place = tag(hash) << 16 | number;
            }
            number -= 1;
        }
    }

    /// Tells which of the words that begin at the first of these bytes may be entered: a bit for each.
    #[inline(always)]
    pub(super) fn known(&self, bytes: &[u8; WORDS + WORD_BYTES - 1]) -> u64 {
        let mut known = 0;
        for (at, word) in bytes.windows(WORD_BYTES).enumerate() {
            let word = word.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            known |= u64::from(self.number(word) != 0) << at;
        }
        known
    }

    /// Returns the place at which `word` may lie in the base.
    #[inline(always)]
    pub(super) fn find(&self, word: u64) -> Option<usize> {
        Some((self.number(word) as usize).checked_sub(1)? * self.stride)
    }

    /// The number of the word entered that `word` may be, 0 if there is none.
    #[inline(always)]
    fn number(&self, word: u64) -> u32 {
        let hash = hash(word);
        let place = self.places.get(self.place(hash)).copied().unwrap_or_default();
        if place >> 16 == tag(hash) { place & 0xFFFF } else { 0 }
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // At most 17 bits are left.
    fn place(&self, hash: u64) -> usize {
        (hash >> self.shift) as usize
    }
}

/// An odd constant near 2^64 divided by the golden ratio spreads words well (Knuth, volume 3, section 6.4).
#[inline(always)]
fn hash(word: u64) -> u64 {
    word.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bits of a hash below those that choose the place.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // Sixteen bits are kept.
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32 & 0xFFFF
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Words that differ, twice.
    fn base(words: u64) -> Vec<u8> {
        let words = (1..=words).map(|number| number.wrapping_mul(0xD129_0D3A_F4B2_9E1B));
        words.clone().chain(words).flat_map(u64::to_le_bytes).collect()
    }

    #[test]
    fn words_are_found_where_they_lie_first() {
        let mut index = Index::default();
        for words in [0, 1, 3, 90, 1500, 99_000] {
            let base = base(words);
            index.build(&base);
            let entered: Vec<usize> = (0..base.len() / index.stride).map(|number| number * index.stride).collect();
            let first = entered.iter().filter(|at| **at < base.len() / 2);
            let found = first.clone().filter(|at| word(&base, **at).and_then(|word| index.find(word)) == Some(**at));
            // The others have lost their places.
            assert!(found.count() * 10 >= first.count() * 8, "{words} words");
            assert_eq!(index.known(&[255; 15]), 0);
        }
    }

    #[test]
    fn one_of_the_words_looked_up_at_once_is_known() {
        let mut index = Index::default();
        let base = base(50);
        index.build(&base);
        for at in 0..WORDS {
            let mut bytes = [0x55; 15];
            bytes[at..at + 8].copy_from_slice(&base[..8]);
            assert_eq!(index.known(&bytes), 1 << at);
        }
    }
}

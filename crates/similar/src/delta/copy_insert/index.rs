//! Where words of the base lie.
//!
//! Every so many bytes the eight bytes of the base are entered under a hash of them. A place holds one word: entries of that word are
//! chained, those at the lowest offsets first, and another word entered there later takes it over. Looking up what is not there
//! nearly always ends with one comparison: more bits of the hash stand beside the entry.

use super::compare::word;
use alloc::vec::Vec;

/// Between the words entered, as long as the base is not too long.
const STRIDE_BYTES: usize = 12;
/// Entries are numbered by 16 bits.
const ENTRIES_MAX: usize = 1 << 15;
/// Places to enter at for each entry.
const HEADS_PER_ENTRY: usize = 4;

/// Words looked up at once.
pub(super) const WORDS: usize = 8;

/// An index, and the memory it is built in again and again.
#[derive(Clone, Default)]
pub(super) struct Index {
    /// By the hash's highest bits: its lowest 16 bits, then the number of the first entry; 0 is none.
    heads: Vec<u32>,
    stride: usize,
    shift: u32,
}

impl Index {
    /// Enters the words of `base`.
    pub(super) fn build(&mut self, base: &[u8]) {
        self.stride = STRIDE_BYTES * base.len().div_ceil(STRIDE_BYTES * ENTRIES_MAX).max(1);
        let entries = base.len() / self.stride;
        let bits = (entries * HEADS_PER_ENTRY).max(2).next_power_of_two().ilog2();
        self.shift = u64::BITS - bits;
        self.heads.clear();
        self.heads.resize(1 << bits, 0);
        // The first of equal words is entered last.
        let words = base.chunks_exact(self.stride);
        let mut number = words.len() as u32 + 1;
        for stretch in words.rev() {
            number -= 1;
            let Some(word) = word(stretch, 0) else { continue };
            let hash = hash(word);
            if let Some(head) = self.heads.get_mut((hash >> self.shift) as usize) {
                *head = tag(hash) << 16 | number;
            }
        }
    }

    /// Which of the words that begin at the first bytes may be entered: a bit for each.
    #[inline(always)]
    pub(super) fn known(&self, bytes: &[u8; WORDS + 7]) -> u64 {
        let mut known = 0;
        for (at, window) in bytes.windows(8).enumerate() {
            let word = window.first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
            known |= u64::from(self.first(word) != 0) << at;
        }
        known
    }

    /// The first entry that `word` may be, 0 if there is none.
    #[inline(always)]
    pub(super) fn first(&self, word: u64) -> u16 {
        let hash = hash(word);
        let head = self.heads.get((hash >> self.shift) as usize).copied().unwrap_or_default();
        if head >> 16 == tag(hash) { head as u16 } else { 0 }
    }

    /// Where the word of an entry lies in the base.
    #[inline(always)]
    pub(super) fn offset(&self, entry: u16) -> usize {
        usize::from(entry).saturating_sub(1) * self.stride
    }
}

#[inline(always)]
fn hash(word: u64) -> u64 {
    word.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Bits of a hash that do not choose the place.
#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 24) as u32 & 0xFFFF
}

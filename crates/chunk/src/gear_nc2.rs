//! Gear hashing with normalised chunking, level 2, and a keyed table.
//!
//! Sources: Gear from Ddelta (Performance Evaluation 2014); normalised chunking, skipping up to the minimum from
//! `FastCDC` (ATC'16; TPDS'20, Algorithm 1). The definition, which is format:
//!
//! ```text
//! h(L)  = sum over k in 0..64 of table[data[L-1-k]] << k    (mod 2^64; the 64 bytes before L)
//! cut   = the least L in min ..= max with h(L) < 2^62 / expected, if L <  normal
//!                                     or  h(L) < 2^66 / expected, if L >= normal;  else max, or the end of the stream
//! normal = min + 8 expected z (1 + z^2 / 3)   with z = (3 expected - 4 min) / (27 expected + 4 min), rounded down
//! table[i] = i-th little-endian u64 of keyed BLAKE3's extendable output: the chunker key, "siltstone gear-nc2 table"
//! ```
//!
//! Reasons:
//! 1. **Thresholds, not masks.** The highest bits of h depend on all 64 bytes, and any expected size works; for powers
//!    of two it is the same test as a mask of the highest bits.
//! 2. **Whole windows.** The hash is warmed up over the 64 bytes before `min`, so whether L is a candidate depends on
//!    64 bytes only, not on where the chunk began. `FastCDC` starts cold at `min`.
//! 3. **The normal point makes the average true.** Cutting with probability p = 1/(4 expected) before `normal` and 16 p
//!    after, a chunk has on random bytes the length min + 4 e (1 - q) + q e / 4 with q = exp(-(normal - min) / 4e), e
//!    the expected size. Setting that to e gives normal - min = 4 e ln(15 e / (12 e + 4 min)); the formula above is its
//!    series (artanh), in integers so that every machine finds the same. `FastCDC`'s normal = e gives 1.19 e for min =
//!    e/2.
//! 4. **The key** keeps cut points from being predicted from known content. It raises the bar only: cuts observed
//!    beside known content reveal the table in time, so chunk lengths must stay hidden by other means (padding of
//!    containers).
//!
//! Cost: one table lookup, shift and addition per byte past the minimum, no allocation: 3.0 GB/s with the default sizes
//! on one core of a 2.6 GHz Xeon (2026-11; `cargo xtask bench chunk`). Two bytes per step as in TPDS'20 gave
//! 2.76 there.

use crate::{Chunker, Sizes};
use alloc::boxed::Box;
use siltstone_rolling::table;

/// Bytes that decide on a candidate: after 64 shifts a byte has left the hash.
const WINDOW_BYTES: usize = 64;

/// The chunker `gear-nc2`.
#[derive(Clone)]
pub struct GearNc2 {
    sizes: Sizes,
    /// Lengths below this need a hash below `strict`, the others one below `loose`.
    normal: usize,
    strict: u64,
    loose: u64,
    table: Box<[u64; 256]>,
}

impl GearNc2 {
    /// Name of this chunker in [`crate::by_name`].
    pub const NAME: &'static str = "gear-nc2";

    /// A chunker cutting at places that only the holder of `key` can compute.
    pub fn new(sizes: Sizes, key: &[u8; 32]) -> Self {
        let expected = sizes.expected() as u128;
        let threshold = |numerator: u128| u64::try_from(numerator / expected).unwrap_or(u64::MAX);
        Self {
            sizes,
            normal: normal_point(sizes),
            strict: threshold(1 << 62),
            loose: threshold(1 << 66),
            table: Box::new(table(Some(key), b"siltstone gear-nc2 table", u64::from_le_bytes)),
        }
    }
}

impl Chunker for GearNc2 {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let (min, end) = (self.sizes.min().max(WINDOW_BYTES), data.len().min(self.sizes.max()));
        if end <= min {
            return end;
        }
        // The byte that completes the window of length L lies at L - 1.
        let (first, normal) = (min - 1, self.normal.min(end) - 1);
        let warm = roll(&self.table, 0, &data[min - WINDOW_BYTES..first]);
        let hash = match scan(&self.table, warm, &data[first..normal], self.strict) {
            Scan::Below { at } => return first + at + 1,
            Scan::NoneBelow { hash } => hash,
        };
        match scan(&self.table, hash, &data[normal..end], self.loose) {
            Scan::Below { at } => normal + at + 1,
            Scan::NoneBelow { .. } => end,
        }
    }
}

enum Scan {
    /// The hash first fell below the threshold with the byte at this index.
    Below { at: usize },
    /// No hash was below; this is the one after the last byte.
    NoneBelow { hash: u64 },
}

/// Rolls over `bytes` until the hash falls below `threshold`.
#[inline]
fn scan(table: &[u64; 256], mut hash: u64, bytes: &[u8], threshold: u64) -> Scan {
    const STEP: usize = 8;
    let mut blocks = bytes.chunks_exact(STEP);
    for (index, block) in blocks.by_ref().enumerate() {
        for (within, &byte) in block.iter().enumerate() {
            hash = (hash << 1).wrapping_add(table[usize::from(byte)]);
            if hash < threshold {
                return Scan::Below { at: index * STEP + within };
            }
        }
    }
    let rest = bytes.len() - blocks.remainder().len();
    for (within, &byte) in blocks.remainder().iter().enumerate() {
        hash = (hash << 1).wrapping_add(table[usize::from(byte)]);
        if hash < threshold {
            return Scan::Below { at: rest + within };
        }
    }
    Scan::NoneBelow { hash }
}

fn roll(table: &[u64; 256], hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, &byte| (hash << 1).wrapping_add(table[usize::from(byte)]))
}

/// `normal` of the definition. The widest product stays below 2^121 for sizes up to [`Sizes::MAX_BYTES_HIGHEST`].
fn normal_point(sizes: Sizes) -> usize {
    let (min, expected) = (sizes.min() as u128, sizes.expected() as u128);
    let (top, bottom) = (3 * expected - 4 * min, 27 * expected + 4 * min);
    let past_min = 8 * expected * top * (3 * bottom * bottom + top * top) / (3 * bottom * bottom * bottom);
    usize::try_from(min + past_min).unwrap_or(sizes.max()).min(sizes.max())
}

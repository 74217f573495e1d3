//! The first hash and the mix, a byte and a candidate at a time.

use super::WINDOW_BYTES;
use core::{array, iter};
use siltstone_simd::Matrix;

/// Bytes that decide whether a length is a candidate.
pub(super) const LAGS: usize = 16;
/// Bytes with matrices of their own; the rest comes by doubling.
pub(super) const DIRECT_LAGS: usize = 4;

/// All that the key decides.
#[derive(Clone)]
pub(super) struct Hash {
    /// `A_0 .. A_3`.
    pub(super) matrices: [Matrix; DIRECT_LAGS],
    /// `C` and `D`.
    pub(super) doublings: [Matrix; 2],
    /// Byte 7 - k of `table[b]` is what b adds to `h8` as the k-th byte before.
    table: [u64; 256],
    /// `D` of each byte.
    late: [u8; 256],
    pub(super) target: u8,
    pub(super) filter: u8,
    mix_keys: [u64; 5],
}

impl Hash {
    pub(super) fn new(key: &[u8; 32], filter_bits: u32) -> Self {
        let mut output = blake3::Hasher::new_keyed(key).update(b"siltstone lagged").finalize_xof();
        let mut groups = iter::repeat_with(|| {
            let mut group = [0; 8];
            output.fill(&mut group);
            group
        });
        let [a0, a1, a2, a3, c, d] = array::from_fn(|_| {
            let invertible = |matrix: &Matrix| (1..=255).all(|byte| matrix.apply(byte) != 0);
            // Endless: 29 % of all matrices are invertible.
            groups.by_ref().map(Matrix::from_columns).find(invertible).unwrap_or(Matrix::from_columns([0; 8]))
        });
        let target = groups.by_ref().map(|group| group[0]).find(|byte| *byte != 0).unwrap_or(1);
        let mut mix_keys = array::from_fn(|_| groups.next().map_or(0, u64::from_le_bytes));
        mix_keys[4] |= 1;
        let bytes: [u8; 256] = array::from_fn(|byte| u8::try_from(byte).unwrap_or(u8::MAX));
        let table = bytes.map(|byte| {
            let [h0, h1, h2, h3] = [a0, a1, a2, a3].map(|matrix| matrix.apply(byte));
            u64::from_be_bytes([h0, h1, h2, h3, c.apply(h0), c.apply(h1), c.apply(h2), c.apply(h3)])
        });
        let late = bytes.map(|byte| d.apply(byte));
        let filter = u8::MAX >> (8 - filter_bits);
        Self { matrices: [a0, a1, a2, a3], doublings: [c, d], table, late, target, filter, mix_keys }
    }

    /// `x` of the definition for the bytes that end at `end`.
    #[inline(always)]
    pub(super) fn mix(&self, data: &[u8], end: usize) -> u64 {
        let window = &data[end - WINDOW_BYTES..end];
        let word =
            |i: usize| window[8 * i..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)) ^ self.mix_keys[i];
        fold(fold(word(0), word(1)) ^ fold(word(2), word(3)), self.mix_keys[4])
    }
}

/// The hash one byte after another: sums of eight lags roll through a word, and what falls out of a second one is the
/// sum of eight positions before.
#[derive(Default)]
pub(super) struct Rolled {
    sums: u64,
    past: u64,
}

impl Rolled {
    #[inline(always)]
    pub(super) fn next(&mut self, hash: &Hash, byte: u8) -> u8 {
        self.sums = self.sums << 8 ^ hash.table[usize::from(byte)];
        let ([h8, ..], [before, ..]) = (self.sums.to_be_bytes(), self.past.to_be_bytes());
        self.past = self.past << 8 | u64::from(h8);
        h8 ^ hash.late[usize::from(before)]
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

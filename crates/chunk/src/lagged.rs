//! Lagged hashing: a windowed hash that vectors compute at every position at once, and a mix that decides.
//!
//! Siltstone's own. A rolled hash is a chain: each position waits for the one before. A *windowed* one is not: here it is a
//! sum over GF(2) of eight-by-eight bit matrices, one for each of the last eight bytes, so that a whole vector of positions
//! gets its hashes from eight loads at neighbouring offsets, one matrix instruction each. The hash leaves one position in
//! 256; only there a mix of the last 32 bytes is computed, and decides. The definition, which is format:
//!
//! ```text
//! h(L)        = xor over k in 0 .. 8 of A_k(b[L-1-k])                      one byte from the 8 bytes before L
//! candidate     L with (h(L) xor target) & filter == 0
//! x(L)        = fold(fold(w0^k0, w1^k1) xor fold(w2^k2, w3^k3), k4)        the 32 bytes before L as little-endian words
//! fold(a, b)  = low half xor high half of the 128-bit product a b
//! cut         = the least candidate L >= max(min, 32) with x(L) < strict if L < normal, x(L) < loose if L >= normal;
//!               max, or the end of the stream, if they come first
//! filter      = its f lowest bits are ones; f = min(8, floor(log2(floor(expected / 4))))
//! strict      = 2^(62 + f) / expected, loose = 2^(66 + f) / expected       rounded down, at most 2^64 - 1
//! normal        makes the average on random bytes the expected size (normalised.rs)
//! ```
//!
//! The key gives, from keyed BLAKE3's extendable output over "siltstone lagged": for each `A_k`, from k = 0 on, its eight
//! columns, one byte each, skipping groups of eight whose matrix is not invertible; for the target the first byte of a
//! group, skipping zeros; then `k0 .. k4` as little-endian words, k4 made odd.
//!
//! Reasons:
//! 1. **A short window.** Whether L is a cut depends on 32 bytes; an edit before them does not move it. 16, 48 and 64 bytes
//!    deduplicated worse.
//! 2. **Eight lags** spread the candidates of text, whose few frequent words of four or six bytes crowd them: 8 lags
//!    deduplicated 1.1 % better than 6 on source tars (mean of three keys, 2026-11). They cost nothing where the hash is
//!    rolled: with a table of 64-bit words whose bytes are the `A_k` of one byte, `s = (s << 8) ^ T[b]` has h on top.
//! 3. **Level 2, least half of the average, most four times it**: levels 1 and 3, and least sizes of 1/4, 5/8, 3/4 were no
//!    better on source tars and a database at averages of 4, 8 and 16 KB.
//! 4. **A target that is not 0**: a run of zeros has the hash 0, and is never looked at candidate by candidate.
//! 5. **The key raises the bar only**, as with every linear hash: cuts observed beside known content reveal it in time.
//!    `aes16` is the form whose cuts do not.
//!
//! Cost with default sizes: reading half of the bytes, about 20 instructions per vector.

use crate::normalised::Normalised;
use crate::{Chunker, Isa, Sizes};
use alloc::boxed::Box;
use core::{array, iter};
use siltstone_simd::{Kernel, Matrix, Simd};

/// Bytes that decide whether a length is a candidate: as many as a rolled 64-bit word can hold sums of.
const LAGS: usize = 8;
/// Bytes that decide whether a candidate is a cut.
const WINDOW_BYTES: usize = 32;
/// Normalisation level.
const LEVEL: u32 = 2;

/// The chunker `lagged`.
#[derive(Clone)]
pub struct Lagged {
    sizes: Sizes,
    rule: Normalised,
    hash: Box<Hash>,
    isa: Isa,
}

/// A place inside a chunk that its content chose: the same in every chunk that holds the 32 bytes before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Where the 32 bytes end, counted from the begin of the chunk.
    pub end: usize,
    /// A hash of them.
    pub hash: u64,
}

impl Lagged {
    /// Its name in [`crate::by_name`].
    pub const NAME: &'static str = "lagged";

    /// A chunker cutting at places that only the holder of `key` can compute, in its form for `isa`.
    pub fn new(sizes: Sizes, key: &[u8; 32], isa: Isa) -> Self {
        let filter_bits = (sizes.expected() >> LEVEL).ilog2().min(8);
        let rule = Normalised::new(sizes, WINDOW_BYTES, LEVEL, filter_bits);
        Self { sizes, rule, hash: Box::new(Hash::new(key, filter_bits)), isa }
    }

    /// [`cut`](Chunker::cut), and all samples of the chunk in the same pass: about one in 256 bytes, fewer where bytes
    /// repeat. A sketch can be made of them.
    ///
    /// Bytes below the smallest size are read too, which `cut` skips.
    pub fn cut_sampling(&self, data: &[u8], mut each: impl FnMut(Sample)) -> usize {
        self.first(data, WINDOW_BYTES, |end, hash| {
            each(Sample { end, hash });
            end >= self.rule.min && hash < self.rule.threshold(end)
        })
    }

    /// The first candidate from `from` on that `ends` the chunk.
    fn first(&self, data: &[u8], from: usize, mut ends: impl FnMut(usize, u64) -> bool) -> usize {
        let data = &data[..data.len().min(self.sizes.max())];
        if data.len() < from {
            return data.len();
        }
        let scan = Scan { hash: &self.hash, data, from, ends: &mut ends };
        self.isa.run(scan).unwrap_or_else(|| self.hash.first_scalar(data, from, &mut ends))
    }
}

impl Chunker for Lagged {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        self.first(data, self.rule.min, |length, hash| hash < self.rule.threshold(length))
    }
}

#[derive(Clone)]
struct Hash {
    matrices: [Matrix; LAGS],
    /// Byte 7 - k of `table[b]` is `A_k(b)`.
    table: [u64; 256],
    target: u8,
    filter: u8,
    mix_keys: [u64; 5],
}

impl Hash {
    fn new(key: &[u8; 32], filter_bits: u32) -> Self {
        let mut output = blake3::Hasher::new_keyed(key).update(b"siltstone lagged").finalize_xof();
        let mut groups = iter::repeat_with(|| {
            let mut group = [0; 8];
            output.fill(&mut group);
            group
        });
        let matrices = array::from_fn(|_| {
            let invertible = |matrix: &Matrix| (1..=255).all(|byte| matrix.apply(byte) != 0);
            // Endless: 29 % of all matrices are invertible.
            groups.by_ref().map(Matrix::from_columns).find(invertible).unwrap_or(Matrix::from_columns([0; 8]))
        });
        let target = groups.by_ref().map(|group| group[0]).find(|byte| *byte != 0).unwrap_or(1);
        let mut mix_keys = array::from_fn(|_| groups.next().map_or(0, u64::from_le_bytes));
        mix_keys[4] |= 1;
        let table = array::from_fn(|byte| {
            u64::from_be_bytes(matrices.map(|matrix| matrix.apply(u8::try_from(byte).unwrap_or(u8::MAX))))
        });
        Self { matrices, table, target, filter: u8::MAX >> (8 - filter_bits), mix_keys }
    }

    /// `x` of the definition for the 32 bytes that end at `end`.
    #[inline(always)]
    fn mix(&self, data: &[u8], end: usize) -> u64 {
        let window = &data[end - WINDOW_BYTES..end];
        let word =
            |i: usize| window[8 * i..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)) ^ self.mix_keys[i];
        fold(fold(word(0), word(1)) ^ fold(word(2), word(3)), self.mix_keys[4])
    }

    /// The definition, with the hash rolled.
    fn first_scalar(&self, data: &[u8], from: usize, ends: &mut impl FnMut(usize, u64) -> bool) -> usize {
        let roll = |state: u64, byte: u8| state << 8 ^ self.table[usize::from(byte)];
        let mut state = data[from - LAGS..from - 1].iter().fold(0, |state, byte| roll(state, *byte));
        for (length, byte) in (from..).zip(&data[from - 1..]) {
            state = roll(state, *byte);
            let [hash, ..] = state.to_be_bytes();
            if (hash ^ self.target) & self.filter == 0 && ends(length, self.mix(data, length)) {
                return length;
            }
        }
        data.len()
    }
}

#[inline(always)]
#[allow(clippy::cast_possible_truncation)]
fn fold(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    product as u64 ^ (product >> 64) as u64
}

struct Scan<'d, F> {
    hash: &'d Hash,
    data: &'d [u8],
    from: usize,
    ends: &'d mut F,
}

impl<F: FnMut(usize, u64) -> bool> Kernel for Scan<'_, F> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { hash, data, from, ends } = self;
        let (target, filter) = (s.splat(hash.target & hash.filter), s.splat(hash.filter));
        // The byte that completes the window of length L lies at L - 1.
        let mut at = from - 1;
        while S::MATRICES && at + 2 * S::LANES <= data.len() {
            let block = &data[at + 1 - LAGS..at + 2 * S::LANES];
            let (low, high) = (lagged_sum(s, hash, block, 0), lagged_sum(s, hash, block, S::LANES));
            let masks = [s.eq(s.and(low, filter), target), s.eq(s.and(high, filter), target)];
            for (first, mut mask) in [at + 1, at + 1 + S::LANES].into_iter().zip(masks) {
                while mask != 0 {
                    let length = first + mask.trailing_zeros() as usize;
                    if ends(length, hash.mix(data, length)) {
                        return length;
                    }
                    mask &= mask - 1;
                }
            }
            at += 2 * S::LANES;
        }
        if at < data.len() { hash.first_scalar(data, at + 1, ends) } else { data.len() }
    }
}

/// The hashes of the positions whose last byte lies `LAGS - 1` after `at` and on.
#[inline(always)]
fn lagged_sum<S: Simd>(s: S, hash: &Hash, block: &[u8], at: usize) -> S::Bytes {
    let mut sum = s.apply(&hash.matrices[0], s.load(block, at + LAGS - 1));
    for k in 1..LAGS {
        sum = s.xor(sum, s.apply(&hash.matrices[k], s.load(block, at + LAGS - 1 - k)));
    }
    sum
}

//! Lagged hashing: a windowed hash that vectors compute at every position at once, and a mix that decides.
//!
//! Siltstone's own. A rolled hash is a chain: each position waits for the one before. A *windowed* one is not: here it is a
//! sum over GF(2) of eight-by-eight bit matrices applied to the last sixteen bytes. Four matrices, applied to loads at
//! neighbouring offsets, give a whole vector of positions the sums of four bytes; twice a sum and a matrix of the sum some
//! positions before make eight and sixteen of four. The hash leaves one position in 256; only there a mix of the last 32
//! bytes is computed, and decides. The definition, which is format:
//!
//! ```text
//! h4(L)       = xor over k in 0 .. 4 of A_k(b[L-1-k])
//! h8(L)       = h4(L) xor C(h4(L-4))
//! h(L)        = h8(L) xor D(h8(L-8))                                       one byte from the 16 bytes before L
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
//! The key gives, from keyed BLAKE3's extendable output over "siltstone lagged", read in groups of eight bytes: for `A_0` to
//! `A_3`, `C` and `D` eight columns, skipping groups whose matrix is not invertible; for the target the first byte of a
//! group, skipping zeros; then `k0 .. k4` as little-endian words, k4 made odd.
//!
//! Reasons:
//! 1. **Sixteen bytes** for the first hash. Data repeats short words (of text, of record headers), and where all windows
//!    are alike all are candidates or none. With 4, 6 and 8 bytes the savings depended on luck with the key: unique bytes of
//!    Redis dumps at 4 KB scattered by 1.1 % (standard deviation over five keys) with 8, by 0.2 % with 16 bytes, and on
//!    source tars the mean fell by 1 %. Letting one position in 16 through did as well, at a quarter of the speed (2026-11).
//! 2. **A mix of 32 bytes** decides: 16 and 24 saved the same within the scatter, 48 and 64 less.
//! 3. **Level 2, least half of the average, most four times it**: levels 1 and 3, and least sizes of 1/4, 5/8 and 3/4 were
//!    no better on source tars at averages of 4, 8 and 16 KB.
//! 4. **A target that is not 0**: a run of zeros has the hash 0, and is never looked at candidate by candidate.
//! 5. **The key raises the bar only**, as with every linear hash: cuts observed beside known content reveal it in time.
//!    `aes16` is the form whose cuts do not.
//!
//! Cost with default sizes: half of the bytes are read, with some 25 instructions per vector and 20 per candidate. Without
//! matrix or shuffle instructions the sums are rolled through words, a table lookup for each byte and one for each sum.

use crate::normalised::Normalised;
use crate::{Chunker, Isa, Sizes};
use alloc::boxed::Box;
use core::{array, iter};
use siltstone_simd::{Kernel, Matrix, Simd};

/// Bytes that decide whether a length is a candidate.
const LAGS: usize = 16;
/// Bytes with matrices of their own; the rest comes by doubling.
const DIRECT_LAGS: usize = 4;
/// Bytes that decide whether a candidate is a cut.
const WINDOW_BYTES: usize = 32;
/// Memory is asked for this far ahead, beyond what the next chunk will skip if this one ends soon: skipping so much stops
/// the CPU's own foresight. 8.8 GB/s without, 12.1 with it (AVX-512 with GFNI, 8 KiB expected, 2026-11).
const AHEAD_BYTES: usize = 2 << 10;
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
        self.first(self.at_most_a_chunk(data), WINDOW_BYTES, |end, hash| {
            each(Sample { end, hash });
            end >= self.rule.min && hash < self.rule.threshold(end)
        })
    }

    /// All samples of a chunk that was cut before, by whatever chunker and however large: those that
    /// [`cut_sampling`](Self::cut_sampling) gives if it cuts this chunk.
    pub fn samples(&self, chunk: &[u8], mut each: impl FnMut(Sample)) {
        self.first(chunk, WINDOW_BYTES, |end, hash| {
            each(Sample { end, hash });
            false
        });
    }

    fn at_most_a_chunk<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        &data[..data.len().min(self.sizes.max())]
    }

    /// The first candidate from `from` on that `ends` the chunk.
    fn first(&self, data: &[u8], from: usize, mut ends: impl FnMut(usize, u64) -> bool) -> usize {
        if data.len() < from {
            return data.len();
        }
        let found = self.isa.run(Scan { hash: &self.hash, data, from, ends: &mut ends });
        found.unwrap_or_else(|| self.hash.first_scalar(data, from, data.len(), &mut ends)).unwrap_or(data.len())
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
        self.first(self.at_most_a_chunk(data), self.rule.min, |length, hash| hash < self.rule.threshold(length))
    }
}

#[derive(Clone)]
struct Hash {
    /// `A_0 .. A_3`.
    matrices: [Matrix; DIRECT_LAGS],
    /// `C` and `D`.
    doublings: [Matrix; 2],
    /// Byte 7 - k of `table[b]` is what b adds to `h8` as the k-th byte before.
    table: [u64; 256],
    /// `D` of each byte.
    late: [u8; 256],
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
    fn mix(&self, data: &[u8], end: usize) -> u64 {
        let window = &data[end - WINDOW_BYTES..end];
        let word =
            |i: usize| window[8 * i..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word)) ^ self.mix_keys[i];
        fold(fold(word(0), word(1)) ^ fold(word(2), word(3)), self.mix_keys[4])
    }

    /// The definition for `from ..= to`, with the hash rolled.
    fn first_scalar(
        &self,
        data: &[u8],
        from: usize,
        to: usize,
        ends: &mut impl FnMut(usize, u64) -> bool,
    ) -> Option<usize> {
        // The byte that completes the window of length L lies at L - 1.
        let mut rolled = Rolled::default();
        for byte in &data[from - LAGS..from - 1] {
            rolled.next(self, *byte);
        }
        for (length, byte) in (from..=to).zip(&data[from - 1..to]) {
            let hash = rolled.next(self, *byte);
            if (hash ^ self.target) & self.filter == 0 && ends(length, self.mix(data, length)) {
                return Some(length);
            }
        }
        None
    }
}

/// The hash one byte after another: sums of eight lags roll through a word, and what falls out of a second one is the sum
/// of eight positions before.
#[derive(Default)]
struct Rolled {
    sums: u64,
    past: u64,
}

impl Rolled {
    #[inline(always)]
    fn next(&mut self, hash: &Hash, byte: u8) -> u8 {
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

struct Scan<'d, F> {
    hash: &'d Hash,
    data: &'d [u8],
    from: usize,
    ends: &'d mut F,
}

impl<F: FnMut(usize, u64) -> bool> Kernel for Scan<'_, F> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        let Self { hash, data, from, ends } = self;
        // The byte that completes the window of length L lies at L - 1.
        let mut at = from - 1;
        if S::MATRICES {
            // Warming up reads a vector before the first.
            let least = S::LANES + DIRECT_LAGS - 1;
            if at < least {
                let to = data.len().min(least);
                let found = hash.first_scalar(data, from, to, ends);
                if found.is_some() {
                    return found;
                }
                at = to;
            }
            let (target, filter) = (s.splat(hash.target & hash.filter), s.splat(hash.filter));
            let mut lags = Lags::warm(s, hash, data, at);
            while at + 2 * S::LANES <= data.len() {
                s.prefetch(data, at + from + AHEAD_BYTES);
                s.prefetch(data, at + from + AHEAD_BYTES + S::LANES);
                let block = &data[at + 1 - DIRECT_LAGS..at + 2 * S::LANES];
                let low = lags.next(s, hash, block, 0);
                let high = lags.next(s, hash, block, S::LANES);
                let masks = [s.eq(s.and(low, filter), target), s.eq(s.and(high, filter), target)];
                for (first, mut mask) in [at + 1, at + 1 + S::LANES].into_iter().zip(masks) {
                    while mask != 0 {
                        let length = first + mask.trailing_zeros() as usize;
                        if ends(length, hash.mix(data, length)) {
                            return Some(length);
                        }
                        mask &= mask - 1;
                    }
                }
                at += 2 * S::LANES;
            }
        }
        hash.first_scalar(data, at + 1, data.len(), ends)
    }
}

/// The sums of the vector before.
struct Lags<S: Simd> {
    h4: S::Bytes,
    h8: S::Bytes,
}

impl<S: Simd> Lags<S> {
    /// For the vector from `at` on. Data that ends before a vector and three bytes has no such vector, and nothing to warm.
    #[inline(always)]
    fn warm(s: S, hash: &Hash, data: &[u8], at: usize) -> Self {
        let mut lags = Self { h4: s.splat(0), h8: s.splat(0) };
        if at >= S::LANES + DIRECT_LAGS - 1 {
            // Its first four lanes are wrong, and not needed: only the last eight of a vector before are.
            lags.next(s, hash, &data[at - S::LANES + 1 - DIRECT_LAGS..at], 0);
        }
        lags
    }

    /// The hashes of the positions from `DIRECT_LAGS - 1` after `at` on.
    #[inline(always)]
    fn next(&mut self, s: S, hash: &Hash, block: &[u8], at: usize) -> S::Bytes {
        let mut h4 = s.apply(&hash.matrices[0], s.load(block, at + DIRECT_LAGS - 1));
        for k in 1..DIRECT_LAGS {
            h4 = s.xor(h4, s.apply(&hash.matrices[k], s.load(block, at + DIRECT_LAGS - 1 - k)));
        }
        let h8 = s.xor(h4, s.apply(&hash.doublings[0], s.shift_in::<4>(self.h4, h4)));
        let h16 = s.xor(h8, s.apply(&hash.doublings[1], s.shift_in::<8>(self.h8, h8)));
        (self.h4, self.h8) = (h4, h8);
        h16
    }
}

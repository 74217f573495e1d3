//! Lagged hashing: a windowed hash that vectors compute at every position at once, and a mix that decides.
//!
//! Siltstone's own. A rolled hash is a chain: each position waits for the one before. A *windowed* one is not: here it
//! is a sum over GF(2) of eight-by-eight bit matrices applied to the last sixteen bytes. Four matrices, applied to
//! loads at neighbouring offsets, give a whole vector of positions the sums of four bytes; twice a sum and a matrix of
//! the sum some positions before make eight and sixteen of four. The hash leaves one position in 256; only there a mix
//! of the last 32 bytes is computed, and decides. The definition, which is format:
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
//! The key gives, from keyed BLAKE3's extendable output over "siltstone lagged", read in groups of eight bytes: for
//! `A_0` to `A_3`, `C` and `D` eight columns, skipping groups whose matrix is not invertible; for the target the first
//! byte of a group, skipping zeros; then `k0 .. k4` as little-endian words, k4 made odd.
//!
//! Reasons:
//! 1. **Sixteen bytes** for the first hash. Data repeats short words (of text, of record headers), and where all
//!    windows are alike all are candidates or none. With 4, 6 and 8 bytes the savings depended on luck with the key:
//!    unique bytes of Redis dumps at 4 KB scattered by 1.1 % (standard deviation over five keys) with 8, by 0.2 % with
//!    16 bytes, and on source tars the mean fell by 1 %. Letting one position in 16 through did as well, at a quarter
//!    of the speed (2026-11).
//! 2. **A mix of 32 bytes** decides: 16 and 24 saved the same within the scatter, 48 and 64 less.
//! 3. **Level 2, least half of the average, most four times it**: levels 1 and 3, and least sizes of 1/4, 5/8 and 3/4
//!    were no better on source tars at averages of 4, 8 and 16 KB.
//! 4. **A target that is not 0**: a run of zeros has the hash 0, and is never looked at candidate by candidate.
//! 5. **The key raises the bar only**, as with every linear hash: cuts observed beside known content reveal it in time.
//!    `aes16` is the form whose cuts do not.
//!
//! Cost with default sizes: half of the bytes are read, with some 25 instructions per vector and 20 per candidate.
//! Without matrix or shuffle instructions the sums are rolled through words, a table lookup for each byte and one for
//! each sum.

mod hash;
mod scan;

use crate::normalised::Normalised;
use crate::{Chunker, Isa, Sizes};
use alloc::boxed::Box;
use hash::Hash;
use scan::{All, Candidates, First, Scan, scan_scalar};

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
    /// End of the 32 bytes, counted from the begin of the chunk.
    pub end: usize,
    /// A hash of them.
    pub hash: u64,
}

impl Lagged {
    /// Name of this chunker in [`crate::by_name`].
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

    /// All samples of a chunk that was cut before, by whatever chunker and however large: those that
    /// [`cut_sampling`](Self::cut_sampling) gives if it cuts this chunk.
    pub fn samples(&self, chunk: &[u8], each: impl FnMut(Sample)) {
        let mut all = All::new(each);
        self.scan(chunk, WINDOW_BYTES, &mut all);
        all.see(&self.hash, chunk);
    }

    /// The first candidate from `from` on that `ends` the chunk.
    fn first(&self, data: &[u8], from: usize, ends: impl FnMut(usize, u64) -> bool) -> usize {
        let data = self.sizes.limit(data);
        self.scan(data, from, &mut First(ends)).unwrap_or(data.len())
    }

    /// Shows all candidates from `from` on to `candidates`, until it is content.
    fn scan(&self, data: &[u8], from: usize, candidates: &mut impl Candidates) -> Option<usize> {
        if data.len() < from {
            return None;
        }
        let found = self.isa.run(Scan { hash: &self.hash, data, from, candidates });
        found.unwrap_or_else(|| scan_scalar(&self.hash, data, from, data.len(), candidates))
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

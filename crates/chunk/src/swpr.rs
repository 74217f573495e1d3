//! SWPR: the hash of Odess+ as a windowed one, with normalised thresholds.
//!
//! Source of the hash: Odess, TOS, section 3.4, with four windows. It and its vector form are in crate `rolling`,
//! `swpr`. The definition, which is format:
//!
//! ```text
//! h(L)    = sum over j in 0 .. 8 of w(L-4j) << 4j   (mod 2^32): 32 bytes before L;  w(L) = b[L-4] .. b[L-1], big-endian
//! x(L)    = h(L) * odd                              (mod 2^32)
//! cut     = the least L >= max(min, 36) with x(L) < strict if L < normal, x(L) < loose if L >= normal;
//!           max, or the end of the stream, if they come first
//! strict  = 2^62 / expected, loose = 2^66 / expected, each over 2^32, rounded down
//! normal    makes the average on random bytes the expected size (normalised.rs)
//! odd     = the first little-endian u32 of keyed BLAKE3's extendable output over "siltstone swpr", made odd
//! ```
//!
//! Reasons:
//! 1. **The product** carries the low bits of the sum, where the newest bytes are, to the high ones that are compared.
//! 2. **36, not 32**: the vector form warms up over two groups of 16 positions, whose words reach three bytes further.
//! 3. Beside `lagged`: no filter and no mix, but words instead of bytes, so a quarter of the positions per vector.

use crate::normalised::Normalised;
use crate::{Chunker, Isa, Sizes};
use siltstone_rolling::swpr::{self, GROUP, Roll, RollingWindows};
use siltstone_simd::{Kernel, Simd};

/// The bytes a hash depends on and a warm-up reads.
const WINDOW_BYTES: usize = 36;
/// Memory is asked for this far ahead, beyond what the next chunk will skip if this one ends soon.
const AHEAD_BYTES: usize = 2 << 10;
/// Normalisation level.
const LEVEL: u32 = 2;

/// The chunker `swpr`.
#[derive(Clone, Copy, Debug)]
pub struct Swpr {
    sizes: Sizes,
    rule: Normalised,
    odd: u32,
    isa: Isa,
}

impl Swpr {
    /// Name of this chunker in [`crate::by_name`].
    pub const NAME: &'static str = "swpr";

    /// A chunker whose cuts depend on `key`, in its form for `isa`.
    pub fn new(sizes: Sizes, key: &[u8; 32], isa: Isa) -> Self {
        let mut odd = [0; 4];
        blake3::Hasher::new_keyed(key).update(b"siltstone swpr").finalize_xof().fill(&mut odd);
        let rule = Normalised::new(sizes, WINDOW_BYTES, LEVEL, 0);
        Self { sizes, rule, odd: u32::from_le_bytes(odd) | 1, isa }
    }

    /// A product below this ends a chunk of `length` bytes.
    #[inline(always)]
    fn threshold(&self, length: usize) -> u32 {
        high_half(self.rule.threshold(length))
    }

    /// Tells whether a chunk may end after `length` bytes, the hash summed from its terms.
    #[inline(always)]
    fn ends(&self, data: &[u8], length: usize) -> bool {
        low_half(swpr::hash::<4>(data, length)).wrapping_mul(self.odd) < self.threshold(length)
    }

    /// The definition, with four rolled hashes taking turns.
    fn cut_scalar(&self, data: &[u8], from: usize) -> usize {
        let mut rolled = RollingWindows::<4>::new();
        for (length, byte) in (1..).zip(data).skip(from - swpr::WINDOW_BYTES) {
            let hash = low_half(rolled.next(*byte));
            if length >= from && hash.wrapping_mul(self.odd) < self.threshold(length) {
                return length;
            }
        }
        data.len()
    }
}

#[allow(clippy::cast_possible_truncation)]
fn low_half(hash: u64) -> u32 {
    hash as u32
}

#[allow(clippy::cast_possible_truncation)]
fn high_half(threshold: u64) -> u32 {
    (threshold >> 32) as u32
}

impl Chunker for Swpr {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let data = self.sizes.limit(data);
        if data.len() < self.rule.min {
            return data.len();
        }
        self.isa.run(Cut { chunker: self, data }).unwrap_or_else(|| self.cut_scalar(data, self.rule.min))
    }
}

struct Cut<'d> {
    chunker: &'d Swpr,
    data: &'d [u8],
}

/// Groups looked at before the next branch.
const GROUPS: usize = 4;
const BLOCK: usize = GROUP * GROUPS;

impl Kernel for Cut<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { chunker, data } = self;
        let odd = s.words_splat(chunker.odd);
        // The byte that completes the window of length L lies at L - 1.
        let mut at = chunker.rule.min - 1;
        let mut roll = Roll::new(s);
        roll.next(s, &data[at - 2 * GROUP - 3..]);
        roll.next(s, &data[at - GROUP - 3..]);
        while at + BLOCK <= data.len() {
            s.prefetch(data, at + chunker.rule.min + AHEAD_BYTES);
            let block = &data[at - 3..at + BLOCK];
            let threshold = s.words_splat(chunker.threshold(at + BLOCK));
            let mut below = 0;
            for group in 0..GROUPS {
                let hashes = roll.next(s, &block[group * GROUP..group * GROUP + GROUP + 3]);
                for (i, hash) in hashes.into_iter().take(GROUP / S::WORDS).enumerate() {
                    below |= s.words_lt(s.words_mul(hash, odd), threshold) << (group * GROUP + i * S::WORDS);
                }
            }
            while below != 0 {
                let length = at + 1 + below.trailing_zeros() as usize;
                if chunker.ends(data, length) {
                    return length;
                }
                below &= below - 1;
            }
            at += BLOCK;
        }
        if at < data.len() { chunker.cut_scalar(data, at + 1) } else { data.len() }
    }
}

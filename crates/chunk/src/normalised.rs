//! Normalised chunking: a strict threshold for short chunks, a loose one for long ones, and the length at which they
//! change put where the average comes out right.
//!
//! Source: `FastCDC`, ATC'16, section 3.4. There the change lies at the expected size, and the average beyond it. Here
//! a level n has the probabilities `1 / (2^n expected)` and `2^n / expected`, and the change lies where the mean length
//!
//! ```text
//! min + U(strict, normal - min) + exp(-strict (normal - min)) U(loose, max - normal)   with U(p, n) = (1 - exp(-p n)) / p
//! ```
//!
//! on random bytes is the expected size.

use crate::Sizes;
use crate::average::{exp_minus, least_reaching, mean_until};

/// 2^64.
const WHOLE: f64 = 18_446_744_073_709_551_616.0;

/// Thresholds: the hashes that end a chunk of each length. Hashes are fractions of 2^64.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Normalised {
    /// The shortest chunk that may end by its hash.
    pub(crate) min: usize,
    normal: usize,
    strict: u64,
    loose: u64,
}

impl Normalised {
    /// Creates the thresholds for a hash of the last `window` bytes, asked only at one in `2^filter_bits` lengths.
    ///
    /// `filter_bits` may be at most log2 of `expected / 2^level`: the loose probability must not pass one.
    #[allow(clippy::cast_precision_loss)]
    pub(crate) fn new(sizes: Sizes, window: usize, level: u32, filter_bits: u32) -> Self {
        let expected = sizes.expected() as u128;
        let share = |shift: u32| u64::try_from((1u128 << shift) / expected).unwrap_or(u64::MAX);
        let (strict, loose) = (share(64 - level + filter_bits), share(64 + level + filter_bits));
        let min = sizes.min().max(window);
        let probability = |threshold: u64| threshold as f64 / WHOLE / f64::from(1u32 << filter_bits);
        let normal = normal_point(sizes, min, probability(strict), probability(loose));
        Self { min, normal, strict, loose }
    }

    /// A hash below this ends a chunk of `length` bytes. It never falls with the length.
    #[inline(always)]
    pub(crate) fn threshold(&self, length: usize) -> u64 {
        if length < self.normal { self.strict } else { self.loose }
    }
}

/// The length at which the thresholds change, for chunks that may end from `first` on with these probabilities: the
/// least that makes the average on random bytes at least the expected size.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss)] // No size lies above 64 MiB; "none" is as good as 1 GiB.
pub(crate) fn normal_point(sizes: Sizes, first: usize, strict: f64, loose: f64) -> usize {
    let (first, max) = (first as u32, sizes.max().min(1 << 30) as u32);
    let mean = |normal: u32| {
        let before = f64::from(normal - first);
        let after = exp_minus(strict * before) * mean_until(loose, f64::from(max - normal));
        f64::from(first) + mean_until(strict, before) + after
    };
    least_reaching(first, max, sizes.expected() as f64, mean) as usize
}

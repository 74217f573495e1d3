//! A cut where the rolling hash of the last bytes falls below a threshold: what Rabin, CRC and Gear share. They differ
//! in the hash alone: those of crate `rolling`, and `crc.rs`.
//!
//! Sources: LBFS, SOSP'01, section 3.1, from which content-defined chunking comes; Ddelta, Performance Evaluation 2014,
//! for Gear.
//!
//! The definition, which is format; W is the hash's window in bytes, h its value as a number of B bits:
//!
//! ```text
//! first      max(min, W), so that a window never leaves its chunk
//! cut        the least L in first ..< max with h(data[L - W .. L]) < floor(2^B / d); else max, or the end of the stream
//! h          of Rabin and CRC the complement of their value, of Gear its value
//! d          the solution of  first + d (1 - e^(-(max - first) / d)) = expected
//! ```
//!
//! Reasons:
//! 1. **Thresholds, not masks or divisors.** The papers test some bits of the hash against a constant, so a candidate
//!    comes once in 2^k positions and only some averages can be had. A threshold gives any.
//! 2. **d makes the average true.** On random bytes the way from `first` to the next candidate is geometric with mean
//!    d, cut off at `max`; the left side is the mean length.
//! 3. **Linear hashes are complemented.** All-zero bytes have the Rabin fingerprint and the CRC 0. Left as they are
//!    they would be cut at every smallest size; complemented they are never cut before `max`.
//!
//! 4. **Whole windows.** Ddelta starts a chunk with a Gear hash of 0 and takes the highest bits, as a threshold does;
//!    here the sum is warmed up over the window before the first place that counts, so that a candidate depends on it
//!    only.
//!
//! Cost: one step of the hash per byte from `first` on.

use crate::average::{floor, mean_until, solve_increasing};
use crate::{Chunker, Sizes};
use siltstone_rolling::{Gear, Rabin, RollingHash};

/// A hash of which a threshold tells candidates.
pub(crate) trait CutHash: RollingHash {
    /// The largest number of which there is one below it in `positions` positions.
    fn threshold(positions: f64) -> Self::Value;

    /// Tells whether h lies below `threshold`.
    fn is_below(value: Self::Value, threshold: Self::Value) -> bool;
}

impl<const WINDOW_BYTES: usize> CutHash for Rabin<WINDOW_BYTES> {
    fn threshold(positions: f64) -> u64 {
        const VALUES: f64 = 18_446_744_073_709_551_616.0;
        floor(VALUES / positions)
    }

    #[inline(always)]
    fn is_below(value: u64, threshold: u64) -> bool {
        !value < threshold
    }
}

impl CutHash for Gear {
    fn threshold(positions: f64) -> u32 {
        threshold_u32(positions)
    }

    #[inline(always)]
    fn is_below(value: u32, threshold: u32) -> bool {
        value < threshold
    }
}

/// The largest number of which there is one below it in `positions` numbers of 32 bits.
pub(crate) fn threshold_u32(positions: f64) -> u32 {
    const VALUES: f64 = 4_294_967_296.0;
    u32::try_from(floor(VALUES / positions)).unwrap_or(u32::MAX)
}

/// The chunkers `rabin`, `crc` and `gear`.
#[derive(Clone, Debug)]
pub(crate) struct Rolling<H: CutHash> {
    name: &'static str,
    sizes: Sizes,
    pub(crate) hash: H,
    pub(crate) threshold: H::Value,
}

impl<H: CutHash> Rolling<H> {
    /// The chunker that cuts by `hash`, known by `name`.
    pub(crate) fn new(name: &'static str, hash: H, sizes: Sizes) -> Self {
        let threshold = H::threshold(positions_per_candidate(first::<H>(sizes), sizes));
        Self { name, sizes, hash, threshold }
    }

    /// The least length of a chunk that is cut.
    pub(crate) fn first(&self) -> usize {
        first::<H>(self.sizes)
    }
}

impl<H: CutHash> Chunker for Rolling<H> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let (first, end) = (self.first(), data.len().min(self.sizes.max()));
        if end <= first {
            return end;
        }
        let before = &data[first - H::WINDOW_BYTES..end - H::WINDOW_BYTES];
        let mut value = self.hash.of(&data[first - H::WINDOW_BYTES..first]);
        for (at, (&leaving, &entering)) in before.iter().zip(&data[first..end]).enumerate() {
            if H::is_below(value, self.threshold) {
                return first + at;
            }
            value = self.hash.slide(value, leaving, entering);
        }
        end
    }
}

/// `first` of the definition.
pub(crate) fn first<H: RollingHash>(sizes: Sizes) -> usize {
    sizes.min().max(H::WINDOW_BYTES)
}

/// `d` of the definition: how many positions there must be to a candidate, if the first that counts is `first`.
#[allow(clippy::cast_precision_loss)]
pub(crate) fn positions_per_candidate(first: usize, sizes: Sizes) -> f64 {
    let (goal, limit) = ((sizes.expected() - first) as f64, (sizes.max() - first) as f64);
    solve_increasing(1.0, 4.0 * goal, goal, |d| mean_until(1.0 / d, limit))
}

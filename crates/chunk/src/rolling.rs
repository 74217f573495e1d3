//! A cut where the rolling hash of the last bytes falls below a threshold: what Rabin, CRC and Gear share. They differ in
//! the hash alone, each a file of its own.
//!
//! The definition, which is format; W is the hash's window in bytes, h its value as a number of B bits:
//!
//! ```text
//! first      max(min, W), so that a window never leaves its chunk
//! cut        the least L in first ..< max with h(data[L - W .. L]) < floor(2^B / d); else max, or the end of the stream
//! d          the solution of  first + d (1 - e^(-(max - first) / d)) = expected
//! ```
//!
//! Reasons:
//! 1. **Thresholds, not masks or divisors.** The papers test some bits of the hash against a constant, so a candidate comes
//!    once in 2^k positions and only some averages can be had. A threshold gives any.
//! 2. **d makes the average true.** On random bytes the way from `first` to the next candidate is geometric with mean d,
//!    cut off at `max`; the left side is the mean length.
//! 3. **Linear hashes are complemented.** All-zero bytes have the Rabin fingerprint and the CRC 0. Left as they are they
//!    would be cut at every smallest size; complemented they are never cut before `max`.
//!
//! Cost: one step of the hash per byte from `first` on.

use crate::average::{mean_until, solve_increasing};
use crate::{Chunker, Sizes};

/// A hash of the last `WINDOW_BYTES` bytes, kept up as the window slides.
pub(crate) trait RollingHash: Send + Sync {
    /// W of the definition.
    const WINDOW_BYTES: usize;

    /// What is rolled; of no bytes at all it is the default.
    type Value: Copy + Default + Send + Sync;

    /// The value one byte on. Bytes that were never there are zero.
    fn slide(&self, value: Self::Value, leaving: u8, entering: u8) -> Self::Value;

    /// The largest number of which there is one below it in `positions` positions.
    fn threshold(positions: f64) -> Self::Value;

    /// Whether h lies below `threshold`.
    fn is_below(value: Self::Value, threshold: Self::Value) -> bool;

    /// The value of a whole window.
    fn of(&self, window: &[u8]) -> Self::Value {
        window.iter().fold(Self::Value::default(), |value, &byte| self.slide(value, 0, byte))
    }
}

/// The chunkers `rabin`, `crc` and `gear`.
#[derive(Clone, Debug)]
pub(crate) struct Rolling<H: RollingHash> {
    name: &'static str,
    sizes: Sizes,
    pub(crate) hash: H,
    pub(crate) threshold: H::Value,
}

impl<H: RollingHash> Rolling<H> {
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

impl<H: RollingHash> Chunker for Rolling<H> {
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

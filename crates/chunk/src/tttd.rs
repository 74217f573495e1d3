//! TTTD: two thresholds, two divisors. Where no cut is found up to the largest size, the last place that nearly was one
//! is taken instead of a place that hangs on nothing.
//!
//! Source: Eshghi and Tang, A Framework for Analyzing and Improving Content-Based Chunking Algorithms,
//! HPL-2005-30(R.1), section 3. The hash h is that of `rolling.rs`, Rabin; the definition, which is format:
//!
//! ```text
//! first      max(min, 48);  t = floor(2^64 / d)
//! main       the least L in first ..< max with h(data[L - 48 .. L]) < t
//! backup     the greatest L in first ..< max with h(data[L - 48 .. L]) < 2 t
//! cut        main; if there is none and the stream reaches max, backup; if there is neither, max; else the stream's end
//! d          the solution of  first + d (1 - q)^2 + n q^2 = expected,  n = max - first,  q = e^(-n / d)
//! ```
//!
//! Reasons:
//! 1. **Thresholds for divisors.** The report takes a hash with a remainder of D - 1; one of D numbers is the same
//!    chance as one below 2^64 / D, without a division. Its backup divisor is half the main one, as here.
//! 2. **Usual sizes.** The report finds 460, 2800, 540 and 270 best for chunks of 1000 bytes: min = 0.46 expected, max
//!    = 2.8 expected.
//! 3. **d makes the average true.** Main candidates come once in d positions, places that are backups only as often.
//!    With chance 1 - q there is a main one in n positions, on average after `d - n q / (1 - q)`. Otherwise the chunk
//!    is n less the way back to the last backup, which is n with chance q and on average the same `d - n q / (1 - q)`
//!    if not. Together that is the left side. Left out: after a backup cut the bytes up to the old max are known to
//!    hold no candidate, which makes 0.3 % at the usual sizes.
//!
//! Cost: that of Rabin and a second comparison.

use crate::average::{exp_minus, solve_increasing};
use crate::rolling::{CutHash, first};
use crate::{Chunker, Sizes};
use siltstone_rolling::{Rabin, RollingHash};

const WINDOW_BYTES: usize = 48;
type Hash = Rabin<WINDOW_BYTES>;

/// The chunker `tttd`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tttd {
    name: &'static str,
    sizes: Sizes,
    main: u64,
    backup: u64,
}

impl Tttd {
    /// The chunker, known by `name`.
    pub(crate) fn new(name: &'static str, sizes: Sizes) -> Self {
        let main = Hash::threshold(positions_per_candidate(sizes));
        Self { name, sizes, main, backup: main.saturating_mul(2) }
    }
}

impl Chunker for Tttd {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let (first, end) = (first::<Hash>(self.sizes), data.len().min(self.sizes.max()));
        if end <= first {
            return end;
        }
        let before = &data[first - WINDOW_BYTES..end - WINDOW_BYTES];
        let (mut value, mut backup) = (Rabin::<WINDOW_BYTES>.of(&data[first - WINDOW_BYTES..first]), end);
        for (at, (&leaving, &entering)) in before.iter().zip(&data[first..end]).enumerate() {
            if Hash::is_below(value, self.backup) {
                backup = first + at;
                if Hash::is_below(value, self.main) {
                    return backup;
                }
            }
            value = Rabin::<WINDOW_BYTES>.slide(value, leaving, entering);
        }
        if end == self.sizes.max() { backup } else { end }
    }
}

/// `d` of the definition.
#[allow(clippy::cast_precision_loss)]
fn positions_per_candidate(sizes: Sizes) -> f64 {
    let first = first::<Hash>(sizes);
    let (goal, n) = ((sizes.expected() - first) as f64, (sizes.max() - first) as f64);
    solve_increasing(1.0, 8.0 * goal, goal, |d| {
        let q = exp_minus(n / d);
        d * (1.0 - q) * (1.0 - q) + n * q * q
    })
}

//! `SeqCDC`: a chunk ends with the first short run of rising bytes, and stretches that fall often are skipped.
//!
//! Source: `SeqCDC`, Middleware'24; arXiv 2505.21194; the increasing mode. The definition, which is format; a chunk's
//! first byte has the index 0:
//!
//! ```text
//! i = max(min - RUN, 1), run = 0, falls = 0
//! while i < max and the stream has a byte i:
//!     data[i] > data[i - 1]:   run += 1;             run == RUN:       cut = i + 1
//!     data[i] < data[i - 1]:   run = 0, falls += 1;  falls == TRIGGER: falls = 0, i += SKIP
//!     i += 1
//! otherwise cut = max, or the end of the stream
//!
//! RUN      5, or less until the average without skipping is at most expected
//! TRIGGER  50, 9, 2 or 1 with a RUN of 5, 4, 3 or 2
//! SKIP     what makes the average expected, rounded to the nearest
//! ```
//!
//! Reasons:
//! 1. **Equal bytes** change nothing: constant data is never cut before `max`.
//! 2. **The run ends with the skip**: the fall that triggers it sets it to 0. The byte after the SKIP bytes is compared
//!    with the last of them.
//! 3. **Short runs.** 5 and 50 are the paper's for 8 KiB. Shorter runs come sooner; their triggers are those with which
//!    a cut before the next skip is about as likely as with 5 and 50.
//! 4. **Averages.** The paper finds RUN, TRIGGER and SKIP for each size by trial; here they follow from the expected
//!    size. On random bytes the chunker is a chain over (last byte v, run r) between falls. With `g_r(v)` the weight of
//!    the bytes at which v is reached with run r, `g_(r+1)(w) = sum over v < w of g_r(v) / 255`; `sum over r, v > w of
//!    g_r(v) / 255` falls to w; `g_RUN` is cut; a byte stays what it is for 256/255 bytes. TRIGGER falls make a round:
//!    with the chance C of a cut and B bytes compared in it, the mean length is `min - RUN + (B + (1 - C) SKIP) / C`.
//!    (For infinitely many byte values and no skips: the mean is 1 / sum over j of (1 / (rj)! - 1 / (rj + 1)!) with r =
//!    RUN + 1: 840 for 5, 144 for 4.)
//!
//! Cost: a comparison per byte that is neither before the smallest size nor skipped.

use crate::average::{floor, mean_until, solve_increasing};
use crate::{Chunker, Sizes};

/// Runs, longest first, and the falls that make a skip.
const RUNS_AND_TRIGGERS: [(usize, u32); 4] = [(5, 50), (4, 9), (3, 2), (2, 1)];

/// The chunker `seqcdc`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeqCdc {
    name: &'static str,
    sizes: Sizes,
    run: usize,
    trigger: u32,
    skip: usize,
}

impl SeqCdc {
    /// The chunker, known by `name`.
    pub(crate) fn new(name: &'static str, sizes: Sizes) -> Self {
        let with_skip = RUNS_AND_TRIGGERS.map(|(run, trigger)| (run, trigger, skip(run, trigger, sizes)));
        let (run, trigger, skip) = with_skip.into_iter().find(|(.., skip)| *skip >= 0.0).unwrap_or((2, 1, 0.0));
        Self { name, sizes, run, trigger, skip: usize::try_from(floor(skip + 0.5)).unwrap_or(usize::MAX) }
    }

    /// Compares each byte with the one before it, up to an end or a skip.
    #[inline]
    fn round(&self, bytes: &[u8]) -> End {
        let (mut run, mut falls) = (0, 0);
        for (at, (before, byte)) in bytes.iter().zip(bytes.iter().skip(1)).enumerate() {
            run = if byte < before { 0 } else { run + usize::from(byte > before) };
            falls += u32::from(byte < before);
            if run == self.run {
                return End::Run { at: at + 1 };
            }
            if falls == self.trigger {
                return End::Falls { at: at + 1 };
            }
        }
        End::Data
    }
}

/// The end of a round, and the byte that ends it.
enum End {
    Run { at: usize },
    Falls { at: usize },
    Data,
}

impl Chunker for SeqCdc {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let data = self.sizes.limit(data);
        let mut start = first(self.sizes, self.run) - 1;
        while let Some(bytes) = data.get(start..) {
            match self.round(bytes) {
                End::Run { at } => return start + at + 1,
                End::Falls { at } => start += at + self.skip,
                End::Data => break,
            }
        }
        data.len()
    }
}

/// The first byte that is compared with the one before it.
fn first(sizes: Sizes, run: usize) -> usize {
    sizes.min().saturating_sub(run).max(1)
}

/// The mean number of bytes from the first compared one to a cut that `max` does not force.
#[allow(clippy::cast_precision_loss)]
fn mean_past_first(first: usize, sizes: Sizes) -> f64 {
    let (goal, limit) = ((sizes.expected() - first) as f64, (sizes.max() - first) as f64);
    solve_increasing(1.0, 4.0 * goal, goal, |mean| mean_until(1.0 / mean, limit))
}

/// The bytes to skip for the expected size; below 0 if it takes more without skipping.
fn skip(run: usize, trigger: u32, sizes: Sizes) -> f64 {
    let round = Round::of(run, trigger);
    (mean_past_first(first(sizes, run), sizes) * round.cut - round.bytes) / (1.0 - round.cut)
}

/// The mean course of random bytes until the falls make a skip.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The chance of a cut.
    cut: f64,
    /// Mean number of bytes compared.
    bytes: f64,
}

impl Round {
    fn of(run: usize, trigger: u32) -> Self {
        const BYTES_PER_VALUE: f64 = 256.0 / 255.0;
        let mut round = Self { cut: 0.0, bytes: 0.0 };
        let mut fallen_to = [1.0 / 256.0; 256];
        for _ in 0..trigger {
            let mut reached = fallen_to;
            fallen_to = [0.0; 256];
            for _ in 0..run {
                round.bytes += reached.iter().sum::<f64>() * BYTES_PER_VALUE;
                let (mut below, mut above) = ([0.0; 256], 0.0);
                for value in 1..256 {
                    below[value] = below[value - 1] + reached[value - 1] / 255.0;
                }
                for value in (0..256).rev() {
                    fallen_to[value] += above;
                    above += reached[value] / 255.0;
                }
                reached = below;
            }
            round.cut += reached.iter().sum::<f64>();
        }
        round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_without_skips_are_near_those_of_endless_values() {
        for ((run, trigger), mean) in RUNS_AND_TRIGGERS.into_iter().zip([839.0, 143.0, 29.0, 7.0]) {
            let whole = Round::of(run, 10_000);
            let found = whole.bytes / whole.cut;
            assert!((found / mean - 1.0).abs() < 0.05, "run {run}: {found}");
            let cut = Round::of(run, trigger).cut;
            assert!((0.08..0.17).contains(&cut), "run {run}: {cut}");
        }
    }

    #[test]
    fn parameters_fit_the_size() {
        let parameters = |expected| {
            let chunker = SeqCdc::new("seqcdc", Sizes::around(expected).unwrap());
            (chunker.run, chunker.trigger, chunker.skip)
        };
        assert_eq!(
            [128, 1 << 10, 2 << 10, 8 << 10, 64 << 10].map(parameters),
            [(3, 2, 4), (4, 9, 45), (5, 50, 18), (5, 50, 389), (5, 50, 3849)]
        );
    }
}

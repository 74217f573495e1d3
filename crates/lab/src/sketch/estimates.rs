//! The resemblance that a sketch estimates beside the true one, on pairs of chunks made for it (Odess, TOS, section
//! 4.2).
//!
//! The error is the distance of the estimate, matching features over all, from the true resemblance of windows as long
//! as the method's. Beside its average stands what is expected of features that match independently with that
//! probability: no method of so many features can do better. A chunk without a sketch resembles nothing.

use super::contender::Contender;
use super::parallel::in_parallel;
use crate::corpus::modified::{Modification, Pair};
use crate::experiment::{Row, row};
use crate::settings::Settings;
use crate::table::as_float;

/// Bytes of the chunk that is modified, as in Odess's section 3.3.
pub(super) const CHUNK_BYTES: usize = 8 << 10;

/// `MoL` of the first series, at [`RATE`].
const LENGTHS: [usize; 7] = [10, 50, 100, 200, 400, 800, 1600];
/// `MoR` of the first series.
pub(super) const RATE: f64 = 0.0005;
/// `MoR` of the second series, at [`LENGTH`].
const RATES: [f64; 6] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.004];
/// `MoL` of the second series.
pub(super) const LENGTH: usize = 200;

const PAIRS: usize = 4000;
const PAIRS_QUICK: usize = 300;

/// Pairs modified alike.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pairs {
    /// Name of the series they are of: `mol` differ in the length of modifications, `mor` in the rate.
    series: &'static str,
    modification: Modification,
    count: usize,
    seed: u64,
}

impl Pairs {
    /// As many as the settings let be made.
    pub(super) fn of(series: &'static str, modification: Modification, settings: &Settings) -> Self {
        Self { series, modification, count: if settings.quick { PAIRS_QUICK } else { PAIRS }, seed: settings.seed }
    }

    /// Pairs of both series.
    pub(super) fn of_both(settings: &Settings) -> Vec<Self> {
        let lengths = thinned(&LENGTHS, settings).map(|length| ("mol", Modification { rate: RATE, length }));
        let rates = thinned(&RATES, settings).map(|rate| ("mor", Modification { rate, length: LENGTH }));
        lengths.chain(rates).map(|(series, modification)| Self::of(series, modification, settings)).collect()
    }

    /// Returns the parameters that distinguish them.
    pub(super) fn row(&self) -> Row {
        row([
            ("series", self.series.into()),
            ("modified_per_million", per_million(self.modification.rate).into()),
            ("modified_bytes", self.modification.length.into()),
        ])
    }

    /// `work` of each of them, in order; they are made one by one, and none is kept.
    pub(super) fn each<T: Send>(&self, work: impl Fn(&Pair) -> T + Sync) -> Vec<T> {
        in_parallel(self.count, |number| work(&pair(self.modification, self.seed, number)))
    }
}

/// The pair of this number.
pub(super) fn pair(modification: Modification, seed: u64, number: usize) -> Pair {
    Pair::new(CHUNK_BYTES, modification, (seed << 32).wrapping_add(number as u64))
}

/// Returns fewer of the points, so that a quick run is quick.
fn thinned<T: Copy>(points: &[T], settings: &Settings) -> impl Iterator<Item = T> {
    let step = if settings.quick { 2 } else { 1 };
    points.iter().skip(step - 1).step_by(step).copied()
}

/// A rate as a parameter, which is a whole number.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // Rates lie between 0 and 1.
fn per_million(rate: f64) -> u64 {
    (rate * 1e6).round() as u64
}

/// Estimate of a method for one pair.
#[derive(Clone, Copy)]
pub(super) struct Estimate {
    similarity: f64,
    /// `None` if one of the chunks has no sketch.
    estimate: Option<f64>,
}

impl Estimate {
    /// Returns the estimate of a contender for a pair.
    pub(super) fn of(contender: &Contender, pair: &Pair) -> Self {
        let matches = matches(contender, pair);
        let features = as_float(contender.shape().features() as u64);
        Self {
            similarity: pair.resemblance(contender.window_bytes()),
            estimate: matches.map(|matches| as_float(matches as u64) / features),
        }
    }

    fn error(self) -> f64 {
        (self.similarity - self.estimate.unwrap_or_default()).abs()
    }
}

/// Returns how many features match; `None` if one of the chunks has no sketch.
pub(super) fn matches(contender: &Contender, pair: &Pair) -> Option<usize> {
    let (old, new) = (contender.grouped(&pair.old)?, contender.grouped(&pair.new)?);
    Some(old.matches(&new))
}

/// The measures of many estimates with so many features.
pub(super) fn summed_up(features: usize, estimates: &[Estimate]) -> [(&'static str, f64); 5] {
    let error = mean(estimates.iter().map(|estimate| estimate.error()));
    let deviation = mean(estimates.iter().map(|estimate| (estimate.error() - error).powi(2))).sqrt();
    let without = estimates.iter().filter(|estimate| estimate.estimate.is_none()).count();
    [
        ("similarity_mean", mean(estimates.iter().map(|estimate| estimate.similarity))),
        ("error_mean", error),
        ("error_deviation", deviation),
        ("error_expected", mean(estimates.iter().map(|estimate| error_of_independent(features, estimate.similarity)))),
        ("without_sketch", as_float(without as u64)),
    ]
}

/// The mean; 0 of no numbers.
pub(super) fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = as_float(numbers.len() as u64);
    numbers.sum::<f64>() / count.max(1.0)
}

/// The probability that `k` of `n` trials succeed, each with probability `p`, for k = 0 ..= n.
pub(super) fn binomial(n: usize, p: f64) -> Vec<f64> {
    // By logarithms: the number of ways overflows where n is a few hundred.
    let mut ways = 0.0_f64;
    let power = |p: f64, times: usize| if times == 0 { 0.0 } else { as_float(times as u64) * p.ln() };
    (0..=n)
        .map(|k| {
            let probability = (ways + power(p, k) + power(1.0 - p, n - k)).exp();
            ways += as_float((n - k) as u64).ln() - as_float(k as u64 + 1).ln();
            probability
        })
        .collect()
}

/// The mean distance of k / n from p, where k of n trials succeed, each with probability p.
fn error_of_independent(n: usize, p: f64) -> f64 {
    let distance = |k: u64| (as_float(k) / as_float(n as u64) - p).abs();
    (0..).zip(binomial(n, p)).map(|(k, probability)| probability * distance(k)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_chunk::Isa;
    use siltstone_similar::sketch::Shape;

    #[test]
    fn independent_features_err_as_coins_do() {
        assert!((error_of_independent(1, 0.25) - 2.0 * 0.25 * 0.75).abs() < 1e-12);
        assert!((error_of_independent(2, 0.5) - 0.25).abs() < 1e-12);
        assert!(error_of_independent(12, 1.0).abs() < 1e-12);
    }

    #[test]
    fn probabilities_sum_to_one_and_have_the_right_mean() {
        for (n, p) in [(1, 0.5), (12, 0.0), (12, 1.0), (12, 0.3), (256, 0.9), (2048, 0.01)] {
            let all = binomial(n, p);
            let expected: f64 = (0..).zip(&all).map(|(k, probability)| as_float(k) * probability).sum();
            assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{n} {p}");
            assert!((expected - as_float(n as u64) * p).abs() < 1e-6, "{n} {p}");
        }
    }

    #[test]
    fn the_papers_order_shows_on_few_pairs() {
        let settings = Settings { quick: true, ..Settings::default() };
        let pairs = Pairs { count: 60, ..Pairs::of("mol", Modification { rate: RATE, length: LENGTH }, &settings) };
        let error = |name: &str| {
            let contender = Contender::named(name, Shape::DEFAULT, Isa::best()).unwrap();
            let estimates = pairs.each(|pair| Estimate::of(&contender, pair));
            summed_up(12, &estimates)[1].1
        };
        let finesse = error("finesse");
        for name in ["ntransform", "ntransform-32", "odess", "odess-plus", "samples"] {
            assert!(error(name) < 0.8 * finesse, "{name}: {}, {finesse}", error(name));
        }
    }
}

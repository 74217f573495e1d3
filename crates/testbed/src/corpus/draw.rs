//! Draws from distributions, computed with additions, multiplications and exact powers of two alone: the mathematical
//! functions of the system differ in their last bit from machine to machine, and data made from a seed must not.

use crate::deterministic::Sequence;

/// From a normal distribution around 0 with deviation 1, as the sum of twelve uniform draws: never beyond 6.
pub(super) fn normal(sequence: &mut Sequence) -> f64 {
    (0..12).map(|_| sequence.unit()).sum::<f64>() - 6.0
}

/// From a log-normal distribution whose logarithm has this mean and deviation; whole, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // A float beyond the range becomes its end.
pub(super) fn log_normal(sequence: &mut Sequence, mean: f64, deviation: f64) -> u64 {
    (exp(mean + deviation * normal(sequence)) as u64).max(1)
}

/// Returns this percentage of `count`: rounded up or down at random, so that the mean is right for small counts
/// too.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, clippy::cast_precision_loss)] // Counts are far below 2^53.
pub(super) fn share(sequence: &mut Sequence, count: u64, percent: f64) -> u64 {
    ((count as f64 * percent / 100.0 + sequence.unit()) as u64).min(count)
}

/// A number below `bound`, small ones more often.
pub(super) fn skewed(sequence: &mut Sequence, bound: usize) -> usize {
    let upper = 1 + sequence.index(bound);
    sequence.index(upper)
}

/// The exponential function, for arguments from -700 to 700: beyond them that of the nearer end.
fn exp(exponent: f64) -> f64 {
    use std::f64::consts::LN_2;
    let exponent = exponent.clamp(-700.0, 700.0);
    let twos = (exponent / LN_2).floor();
    let rest = exponent - twos * LN_2;
    // Taylor's series around 0 on 0..ln 2; the first term left out is below 1e-18.
    let mantissa = (1..18).rev().fold(1.0, |sum, term| 1.0 + rest / f64::from(term) * sum);
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // From -1010 to 1010.
    let power = f64::from_bits(((1023 + twos as i64) as u64) << 52);
    mantissa * power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exp_is_exp() {
        for exponent in [-20.0, -1.0, 0.0, 0.5, 1.0, 9.48, 30.0] {
            assert!((exp(exponent) / f64::exp(exponent) - 1.0).abs() < 1e-13, "{exponent}");
        }
    }

    #[test]
    fn half_of_a_log_normal_distribution_is_below_its_median() {
        let mut sequence = Sequence::new(1);
        let below = (0..10_000).filter(|_| log_normal(&mut sequence, 9.48, 2.46) < 13_095).count();
        assert!((4_800..5_200).contains(&below), "{below}");
    }

    #[test]
    fn shares_of_few_are_right_on_average() {
        let mut sequence = Sequence::new(1);
        let all: u64 = (0..10_000).map(|_| share(&mut sequence, 7, 10.0)).sum();
        assert!((6_700..7_300).contains(&all), "{all}");
    }
}

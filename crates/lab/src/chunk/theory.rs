//! Probabilities of long chunks on random bytes, by formula.
//!
//! The probabilities of AE, TC'17, Table 4, are of no cut in a region of m average chunks. Those of `Chunker` are of a
//! chunk longer than that, as its definition gives it; where they are the same event, as for Rabin without limits, they
//! agree.

use std::f64::consts::E;

/// AE's own estimate, `1 / ((e - 1) m)!` (section 3.2).
pub(super) fn ae(m: f64) -> f64 {
    1.0 / gamma((E - 1.0) * m + 1.0)
}

/// Rabin without limits: `e^-m`.
pub(super) fn rabin(m: f64) -> f64 {
    (-m).exp()
}

/// The paper's Rabin with a smallest chunk of a quarter of the expected size: `e^-1.2m`.
pub(super) fn rabin_quarter(m: f64) -> f64 {
    (-1.2 * m).exp()
}

/// Ours, whose average is the expected size: nothing before a quarter of it, then a constant rate up to eight times it.
pub(super) fn rabin_quarter_true(m: f64) -> f64 {
    if m > 8.0 { 0.0 } else { (-(m - 0.25).max(0.0) / 0.75).exp() }
}

/// MAXP: `2^2m / (2m)!`.
pub(super) fn maxp(m: f64) -> f64 {
    (4.0_f64).powf(m) / gamma(2.0 * m + 1.0)
}

/// AE over values that do not tie: a chunk is longer than x windows with the probability that Dickman's function gives
/// at x, and the average is `e^gamma` windows.
pub(super) fn ae_true(m: f64) -> f64 {
    dickman(m * 0.577_215_664_901_532_9_f64.exp())
}

/// Dickman's function: 1 up to 1, then `x r(x)` is the integral of r over `x - 1 .. x`. By the trapezoidal rule;
/// between two of its points by proportion. Relative error below 1e-3 up to 15.
fn dickman(x: f64) -> f64 {
    const STEPS: u32 = 500;
    let step = 1.0 / f64::from(STEPS);
    let window = STEPS as usize;
    let mut values = vec![1.0; window + 1];
    let (mut number, mut before, mut at) = (0, 1.0_f64, 1.0_f64);
    while at < x {
        number += 1;
        (before, at) = (at, 1.0 + f64::from(number) * step);
        let last = &values[values.len() - window..];
        // The integral over the step that is sought is on both sides.
        let known: f64 = last[0] / 2.0 + last[1..].iter().sum::<f64>();
        values.push(step * known / (at - step / 2.0));
    }
    let (one, other) = (values[values.len() - 2], values[values.len() - 1]);
    if at > before { one * (other / one).powf((x.max(1.0) - before) / (at - before)) } else { 1.0 }
}

/// The gamma function for positive x, by Stirling's series beyond 15 and its recurrence below. Relative error below
/// 1e-10.
fn gamma(x: f64) -> f64 {
    if x < 15.0 {
        return gamma(x + 1.0) / x;
    }
    let series = 1.0 / (12.0 * x) - 1.0 / (360.0 * x.powi(3)) + 1.0 / (1260.0 * x.powi(5));
    (2.0 * std::f64::consts::PI / x).sqrt() * (x / E).powf(x) * series.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assert_near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found / wanted - 1.0).abs() < tolerance, "{found} {wanted}");
    }

    #[test]
    fn the_numbers_of_the_papers_table_come_out() {
        for (m, in_table) in [(2.0, 0.0938), (3.0, 0.0064), (4.0, 2.56e-4), (6.0, 1.32e-7), (8.0, 2.25e-11)] {
            assert_near(ae(m), in_table, 0.03);
        }
        for (m, in_table) in [(2.0, 0.6667), (3.0, 0.0889), (5.0, 2.82e-4), (8.0, 3.13e-9)] {
            assert_near(maxp(m), in_table, 0.01);
        }
        assert_near(rabin(4.0), 0.0183, 0.01);
        assert_near(rabin_quarter(4.0), 0.0082, 0.01);
    }

    #[test]
    fn dickmans_function_is_that_of_the_tables() {
        for (x, wanted) in
            [(1.5, 1.0 - 1.5_f64.ln()), (2.0, 0.306_853), (3.0, 0.048_608), (4.0, 0.004_910_9), (6.0, 1.9650e-5)]
        {
            assert_near(dickman(x), wanted, 2e-3);
        }
    }

    #[test]
    fn factorials_are_gammas() {
        assert_near(gamma(6.0), 120.0, 1e-9);
        assert_near(gamma(0.5), std::f64::consts::PI.sqrt(), 1e-9);
        assert_near(gamma(21.0), 2_432_902_008_176_640_000.0, 1e-9);
    }
}

//! From several measurements to the few numbers that are shown.

/// The middle and the ends of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub low: f64,
    /// The middle one.
    pub median: f64,
    /// The greatest.
    pub high: f64,
}

impl Spread {
    /// Returns median and ends of these numbers; of an even count the upper middle is taken.
    ///
    /// # Panics
    /// If there are none.
    pub fn of(numbers: impl IntoIterator<Item = f64>) -> Self {
        let mut numbers: Vec<f64> = numbers.into_iter().collect();
        numbers.sort_by(f64::total_cmp);
        Self { low: numbers[0], median: numbers[numbers.len() / 2], high: numbers[numbers.len() - 1] }
    }

    /// The distance of the ends, in percent of the median.
    pub fn percent(self) -> f64 {
        100.0 * (self.high - self.low) / self.median
    }
}

/// The geometric mean; 1 of no numbers.
pub fn geometric_mean(ratios: &[f64]) -> f64 {
    let logarithms: f64 = ratios.iter().map(|ratio| ratio.ln()).sum();
    let count: f64 = ratios.iter().map(|_| 1.0).sum();
    (logarithms / count.max(1.0)).exp()
}

/// The nearest number of so many decimal places.
pub fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_stands_between_the_ends() {
        let spread = Spread::of([3.0, 1.0, 2.0]);
        assert_eq!(spread, Spread { low: 1.0, median: 2.0, high: 3.0 });
        assert!((spread.percent() - 100.0).abs() < 1e-9);
        assert!((Spread::of([1.0, 2.0]).median - 2.0).abs() < 1e-9);
    }

    #[test]
    fn ratios_and_their_inverses_cancel_out() {
        assert!((geometric_mean(&[2.0, 0.5, 1.0]) - 1.0).abs() < 1e-12);
        assert!((geometric_mean(&[]) - 1.0).abs() < 1e-12);
    }
}

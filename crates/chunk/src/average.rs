//! Making the real average the expected size: mean chunk lengths on random bytes, and the parameters that give them.
//!
//! Parameters decide cuts, and cuts are format, so every machine must find the same ones. All here is IEEE 754 double
//! arithmetic with `+ - * /` only, which is exact to the bit everywhere; no function of a mathematics library is used.

/// `e^-x` for `x >= 0`: a Taylor series on `x / 2^n`, squared n times. Relative error below 1e-13.
pub(crate) fn exp_minus(x: f64) -> f64 {
    if x > 700.0 {
        return 0.0;
    }
    let (mut small, mut squarings) = (x, 0);
    while small > 0.125 {
        small /= 2.0;
        squarings += 1;
    }
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..12 {
        term *= -small / f64::from(n);
        sum += term;
    }
    (0..squarings).fold(sum, |power, _| power * power)
}

/// Mean length of a run that ends at each byte with probability `p`, and at `limit` bytes at the latest.
pub(crate) fn mean_until(p: f64, limit: f64) -> f64 {
    (1.0 - exp_minus(p * limit)) / p
}

/// The `x` in `low ..= high` at which the increasing function `f` reaches `goal`: a border if it does not in between.
pub(crate) fn solve_increasing(low: f64, high: f64, goal: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (low, high);
    for _ in 0..100 {
        let middle = low + (high - low) / 2.0;
        if f(middle) < goal {
            low = middle;
        } else {
            high = middle;
        }
    }
    low + (high - low) / 2.0
}

/// The least `x` in `low ..= high` at which the increasing function `f` reaches `goal`; `high` if it never does.
pub(crate) fn least_reaching(low: u32, high: u32, goal: f64, f: impl Fn(u32) -> f64) -> u32 {
    let (mut low, mut high) = (low, high);
    while low < high {
        let middle = low + (high - low) / 2;
        if f(middle) < goal {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// The whole number at or below `x`: 0 below 0, the largest there is above that.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(crate) const fn floor(x: f64) -> u64 {
    x as u64
}

/// `x` to the power `n`.
pub(crate) fn power(x: f64, n: u32) -> f64 {
    let (mut result, mut square, mut rest) = (1.0, x, n);
    while rest > 0 {
        if rest & 1 == 1 {
            result *= square;
        }
        square *= square;
        rest >>= 1;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_those_of_the_library() {
        for x in [0.0, 1e-9, 0.1, 0.125, 0.126, 1.0, 3.7, 20.0, 300.0, 699.0] {
            let (found, want) = (exp_minus(x), f64::exp(-x));
            assert!((found - want).abs() <= want * 1e-12, "{x}: {found} {want}");
        }
        assert!(exp_minus(701.0) < 1e-300);
    }

    #[test]
    fn solutions_solve() {
        assert!((solve_increasing(0.0, 10.0, 9.0, |x| x * x) - 3.0).abs() < 1e-12);
        assert_eq!(least_reaching(0, 100, 9.0, |x| f64::from(x * x)), 3);
        assert_eq!(least_reaching(0, 2, 9.0, |x| f64::from(x * x)), 2);
        assert!((power(0.75, 13) - 0.75f64.powi(13)).abs() < 1e-15);
    }
}

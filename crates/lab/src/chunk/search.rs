//! Finding the expected size that gives a wanted real average on given data.
//!
//! The real average grows with the expected size, nearly in proportion, but not in a straight line, and where sizes are
//! rounded it jumps. So: the secant through the nearest points below and above (proportion, while there is only one),
//! on logarithms; the middle instead, when secants take too long.

use std::ops::RangeInclusive;

/// Distance from the wanted average that counts as reached, as a share of it.
pub const TOLERANCE: f64 = 0.01;
/// Distance that ends the search at once, as a share. On source trees an average larger by 1 % stores 0.35 % more, as
/// much as separates good chunkers.
const AIM: f64 = 0.002;
/// Measurements after which what counts as reached is taken, too.
const TRIES_FOR_AIM: usize = 6;
/// Measurements after which the best so far is taken.
const TRIES: usize = 24;
/// Measurements, the first ones, that are placed by secants.
const SECANTS: usize = 10;

/// The outcome of a search.
#[derive(Clone, Copy, Debug)]
pub struct Found<T> {
    /// Expected size.
    pub expected: u32,
    /// Measurement with it.
    pub measured: T,
    /// Its real average.
    pub average: f64,
    /// True if that is within [`TOLERANCE`] of the wanted one; otherwise it is the nearest one found.
    pub is_reached: bool,
}

/// Searches within `sizes`, beginning at `first`; `measure` gives the average and whatever else there is to say.
///
/// # Errors
/// If `measure` fails.
///
/// # Panics
/// If `sizes` is empty.
pub fn search<T, E>(
    wanted: f64,
    first: u32,
    sizes: &RangeInclusive<u32>,
    mut measure: impl FnMut(u32) -> Result<(f64, T), E>,
) -> Result<Found<T>, E> {
    let (mut below, mut above) = (None, None);
    let mut nearest: Option<Found<T>> = None;
    let mut expected = first.clamp(*sizes.start(), *sizes.end());
    for number in 0..TRIES {
        let (average, measured) = measure(expected)?;
        let off = (average / wanted).ln().abs();
        if nearest.as_ref().is_none_or(|nearest| off < (nearest.average / wanted).ln().abs()) {
            let is_reached = (average / wanted - 1.0).abs() <= TOLERANCE;
            nearest = Some(Found { expected, measured, average, is_reached });
        }
        let wide_enough = if number + 1 < TRIES_FOR_AIM { AIM } else { TOLERANCE };
        if nearest.as_ref().is_some_and(|nearest| (nearest.average / wanted - 1.0).abs() <= wide_enough) {
            break;
        }
        let point = Point { expected, average };
        *(if average < wanted { &mut below } else { &mut above }) = Some(point);
        match next(wanted, point, below, above, number < SECANTS, sizes) {
            Some(size) => expected = size,
            None => break,
        }
    }
    Ok(nearest.expect("there was a first try"))
}

#[derive(Clone, Copy)]
struct Point {
    expected: u32,
    average: f64,
}

/// The size to try next; `None` if none is left, or if the average jumps between two that hardly differ.
fn next(
    wanted: f64,
    last: Point,
    below: Option<Point>,
    above: Option<Point>,
    secant: bool,
    sizes: &RangeInclusive<u32>,
) -> Option<u32> {
    let (Some(below), Some(above)) = (below, above) else {
        // One step more than proportion says, so that the search moves where the average hardly does.
        let proportional = (f64::from(last.expected) * wanted / last.average).clamp(1.0, f64::from(u32::MAX));
        let size = if last.average < wanted { proportional.ceil() + 1.0 } else { proportional.floor() - 1.0 };
        let size = whole(size).clamp(*sizes.start(), *sizes.end());
        return (size != last.expected).then_some(size);
    };
    let (low, high) = (below.expected.min(above.expected), below.expected.max(above.expected));
    if high - low < 2 + low / 512 {
        return None;
    }
    let share = (wanted / below.average).ln() / (above.average / below.average).ln();
    let share = if secant { share.clamp(0.05, 0.95) } else { 0.5 };
    let (from, to) = (f64::from(below.expected).ln(), f64::from(above.expected).ln());
    Some(whole((from + share * (to - from)).exp()).clamp(low + 1, high - 1))
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn whole(size: f64) -> u32 {
    size.round().clamp(0.0, f64::from(u32::MAX)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn found(wanted: f64, average: impl Fn(f64) -> f64) -> (Found<()>, usize) {
        let mut tries = 0;
        let Ok(found) = search::<_, Infallible>(wanted, 8192, &(256..=1 << 20), |expected| {
            tries += 1;
            Ok((average(f64::from(expected)), ()))
        });
        (found, tries)
    }

    #[test]
    fn proportional_averages_take_two_tries() {
        let (found, tries) = found(4096.0, |expected| expected * 1.3);
        assert!(found.is_reached && tries <= 2, "{found:?} after {tries}");
    }

    #[test]
    fn bent_averages_are_reached() {
        for power in [0.4, 0.7, 1.4, 1.9, 3.0] {
            let (found, tries) = found(16384.0, |expected| 3000.0 * (expected / 4000.0_f64).powf(power));
            assert!(found.is_reached && tries <= 12, "{power}: {found:?} after {tries}");
        }
    }

    #[test]
    fn what_is_reached_is_aimed_at_more_closely() {
        let (near, tries) = found(8192.0, |expected| expected * 1.006);
        assert!((near.average / 8192.0 - 1.0).abs() <= AIM && tries <= TRIES_FOR_AIM, "{near:?} after {tries}");
        let rough = |expected: f64| if expected < 8192.0 { 8130.0 } else { 8250.0 };
        assert!(found(8192.0, rough).0.is_reached);
    }

    #[test]
    fn a_jump_over_the_wanted_average_gives_the_nearer_side() {
        let (found, tries) = found(8192.0, |expected| if expected < 7000.0 { 7900.0 } else { 9900.0 });
        assert!(!found.is_reached && (found.average - 7900.0).abs() < 1.0 && tries <= TRIES, "{found:?}");
    }

    #[test]
    fn an_average_out_of_reach_ends_the_search() {
        let (found, tries) = found(4096.0, |expected| expected + 1e6);
        assert!(!found.is_reached && found.expected == 256 && tries <= TRIES, "{found:?}");
    }
}

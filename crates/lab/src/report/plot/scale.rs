//! From values to places: where an axis begins and ends, its ticks, and where on it a value lies.
//!
//! Linear axes have ticks 1, 2 or 5 times a power of ten apart; logarithmic ones have a tick per decade, and 2 and 5
//! between them where there is room. Values that are all powers of two (expected sizes of chunks) get ticks at powers
//! of two.

use super::number;
use crate::report::Scale;

/// Decades on an axis at most: what is smaller by more than that is not told apart anyway.
const DECADES_MAX: i32 = 18;

/// Where the axis of a linear scale begins.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Start {
    /// At 0 (or below, if values are), and it ends at a tick: heights can be compared.
    Zero,
    /// At the least value, and it ends at the greatest.
    Data,
    /// At 0 where values reach over half of it; else a little before the least value. It ends at a tick.
    Near,
}

/// A mark on an axis.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Tick {
    /// Where.
    pub(super) value: f64,
    /// Label written there; empty at the lesser ones.
    pub(super) label: String,
}

/// An axis laid out: its ends and ticks.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Ruler {
    scale: Scale,
    low: f64,
    high: f64,
    /// In ascending order.
    pub(super) ticks: Vec<Tick>,
}

impl Ruler {
    /// For these values, with at most about so many labelled ticks. Values that cannot be shown on it are passed over;
    /// without any it goes from 0 (or 1) on.
    pub(super) fn new(scale: Scale, start: Start, values: impl Iterator<Item = f64>, ticks_max: f64) -> Self {
        let values: Vec<f64> = values.filter(|&value| can_show(scale, value)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match scale {
            Scale::Linear if values.is_empty() => Self::linear(Start::Zero, (0.0, 1.0), 0.0, ticks_max),
            Scale::Linear => {
                // Between version 1 and version 2 there is none.
                let is_counted = start == Start::Data && values.iter().all(|value| value.fract() == 0.0);
                Self::linear(start, (low, high), if is_counted { 1.0 } else { 0.0 }, ticks_max)
            }
            Scale::Logarithmic if values.is_empty() => Self::logarithmic(1.0, 10.0, ticks_max),
            Scale::Logarithmic if low < high && values.iter().all(|&value| is_power_of_two(value)) => {
                Self::powers_of_two(low, high, ticks_max)
            }
            Scale::Logarithmic => Self::logarithmic(low, high, ticks_max),
        }
    }

    fn linear(start: Start, (low, high): (f64, f64), step_min: f64, ticks_max: f64) -> Self {
        let from_zero = start == Start::Zero || (start == Start::Near && low < 0.5 * high);
        let (mut low, mut high) = if from_zero { (low.min(0.0), high.max(0.0)) } else { (low, high) };
        if low >= high {
            // One value only.
            let room = if low == 0.0 || step_min > 0.0 { 2.0 } else { low.abs() };
            (low, high) = (if from_zero { low } else { low - room / 2.0 }, high + room / 2.0);
        }
        let step = step_of((high - low) / ticks_max).max(step_min);
        if start != Start::Data {
            // An end less than a hundredth of a step beyond a tick is on it.
            low = (low / step + 0.01).floor() * step;
            high = (high / step - 0.01).ceil() * step;
        }
        let largest = low.abs().max(high.abs());
        let first = (low / step - 1e-6).ceil();
        let ticks = (0..=100)
            .map(|number| (first + f64::from(number)) * step)
            .take_while(|value| *value <= high + step * 1e-6)
            .map(|value| Tick { value, label: number::on_linear_axis(value, step, largest) })
            .collect();
        Self { scale: Scale::Linear, low, high, ticks }
    }

    fn logarithmic(low: f64, high: f64, ticks_max: f64) -> Self {
        let low = low.max(high / 10_f64.powi(DECADES_MAX));
        let (low, high) = if low < high { (low, high) } else { (low / 1.9, high * 1.9) };
        let (low, high) = (one_two_five_below(low), step_of(high));
        let decades = (high / low).log10();
        let between: &[u8] = match decades {
            few if few <= 0.7 => &[1, 2, 3, 4, 5, 6, 7, 8, 9],
            few if few <= 1.2 => &[1, 2, 3, 5, 7],
            few if few * 3.0 <= ticks_max => &[1, 2, 5],
            _ => &[1],
        };
        let mut every = 1;
        while decades / f64::from(every) > ticks_max {
            every += 1;
        }
        let mut ticks = Vec::new();
        for power in number::exponent(low)..=number::exponent(high) {
            for times in 1..10_u8 {
                let value = f64::from(times) * 10_f64.powi(power);
                let is_labelled = between.contains(&times) && power.rem_euclid(every) == 0;
                let is_inside = value >= low * 0.999 && value <= high * 1.001;
                if is_inside && (is_labelled || times == 1 || decades <= 6.0) {
                    let label = if is_labelled { number::on_logarithmic_axis(value) } else { String::new() };
                    ticks.push(Tick { value, label });
                }
            }
        }
        Self { scale: Scale::Logarithmic, low, high, ticks }
    }

    fn powers_of_two(low: f64, high: f64, ticks_max: f64) -> Self {
        let mut factor = 2.0;
        while (high / low).log2() / f64::log2(factor) + 1.0 > ticks_max {
            factor *= 2.0;
        }
        let powers = std::iter::successors(Some(low), |value| Some(value * factor));
        let ticks =
            powers.take_while(|&value| value <= high).map(|value| Tick { value, label: number::power_of_two(value) });
        Self { scale: Scale::Logarithmic, low, high, ticks: ticks.collect() }
    }

    /// Where a value lies: 0 at the beginning, 1 at the end; `None` for what this axis cannot show.
    pub(super) fn share(&self, value: f64) -> Option<f64> {
        if !can_show(self.scale, value) {
            return None;
        }
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        Some(share.clamp(0.0, 1.0))
    }

    /// Tells whether a value lies beyond the end of the axis.
    pub(super) fn is_beyond(&self, value: f64) -> bool {
        value > self.high * (1.0 + 1e-9)
    }

    /// Where bars begin: at 0, or at the beginning of a logarithmic axis.
    pub(super) fn base(&self) -> f64 {
        match self.scale {
            Scale::Linear => self.share(0.0).unwrap_or(0.0),
            Scale::Logarithmic => 0.0,
        }
    }
}

fn can_show(scale: Scale, value: f64) -> bool {
    value.is_finite() && (scale == Scale::Linear || value > 0.0)
}

fn is_power_of_two(value: f64) -> bool {
    value >= 1.0 && value.log2().fract() == 0.0
}

/// The least 1, 2 or 5 times a power of ten that is not below.
fn step_of(least: f64) -> f64 {
    let power = 10_f64.powi(number::exponent(least));
    let times = [1.0, 2.0, 5.0].into_iter().find(|times| times * power >= least * (1.0 - 1e-9));
    times.unwrap_or(10.0) * power
}

/// The greatest 1, 2 or 5 times a power of ten that is not above.
fn one_two_five_below(value: f64) -> f64 {
    let power = 10_f64.powi(number::exponent(value));
    let times = [5.0, 2.0].into_iter().find(|times| times * power <= value * (1.0 + 1e-9));
    times.unwrap_or(1.0) * power
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(ruler: &Ruler) -> Vec<String> {
        ruler.ticks.iter().map(|tick| tick.label.replace('\u{202f}', " ")).filter(|label| !label.is_empty()).collect()
    }

    fn ruler(scale: Scale, start: Start, values: &[f64]) -> Ruler {
        Ruler::new(scale, start, values.iter().copied(), 6.0)
    }

    #[test]
    fn linear_axes_have_round_ticks_and_hold_all_values() {
        assert_eq!(labels(&ruler(Scale::Linear, Start::Zero, &[3.0, 9.7])), ["0", "2", "4", "6", "8", "10"]);
        assert_eq!(labels(&ruler(Scale::Linear, Start::Zero, &[0.31])), ["0", "0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(labels(&ruler(Scale::Linear, Start::Data, &[1.0, 27.0])), ["5", "10", "15", "20", "25"]);
        assert_eq!(labels(&ruler(Scale::Linear, Start::Zero, &[-3.0, 5.0])), ["-4", "-2", "0", "2", "4", "6"]);
        assert_eq!(labels(&ruler(Scale::Linear, Start::Near, &[9.6, 10.3])), ["9.6", "9.8", "10.0", "10.2", "10.4"]);
        for values in [&[1e-9, 2e-9][..], &[0.0], &[7.0], &[1e300, 3.0], &[-5.0, -5.0], &[1e9, 1e9 + 1.0]] {
            for start in [Start::Zero, Start::Data, Start::Near] {
                let ruler = ruler(Scale::Linear, start, values);
                assert!(ruler.ticks.len() >= 2 && ruler.ticks.len() < 12, "{values:?} {start:?}: {ruler:?}");
                for &value in values {
                    let raw = (value - ruler.low) / (ruler.high - ruler.low);
                    assert!((-0.01..=1.01).contains(&raw), "{value} in {ruler:?}");
                }
            }
        }
    }

    #[test]
    fn logarithmic_axes_have_decades() {
        let wide = ruler(Scale::Logarithmic, Start::Zero, &[0.004, 7000.0]);
        assert_eq!(labels(&wide), ["0.01", "1", "100", "10 k"].map(str::to_owned));
        assert_eq!(labels(&ruler(Scale::Logarithmic, Start::Zero, &[3.0, 70.0])), ["2", "5", "10", "20", "50", "100"]);
        let huge = ruler(Scale::Logarithmic, Start::Zero, &[1e-300, 1.0]);
        assert!(huge.ticks.len() < 30 && huge.share(1e-300) == Some(0.0), "{huge:?}");
        let one = ruler(Scale::Logarithmic, Start::Zero, &[50.0]);
        assert!(one.share(50.0).is_some_and(|share| (0.2..0.8).contains(&share)), "{one:?}");
    }

    #[test]
    fn what_is_counted_has_whole_ticks() {
        assert_eq!(labels(&ruler(Scale::Linear, Start::Data, &[1.0, 2.0, 3.0])), ["1", "2", "3"]);
        assert_eq!(labels(&ruler(Scale::Linear, Start::Data, &[1.0])), ["0", "1", "2"]);
    }

    #[test]
    fn a_part_of_a_decade_has_its_numbers() {
        assert_eq!(labels(&ruler(Scale::Logarithmic, Start::Zero, &[220.0, 480.0])), ["200", "300", "400", "500"]);
    }

    #[test]
    fn powers_of_two_get_ticks_of_theirs() {
        let sizes = ruler(Scale::Logarithmic, Start::Data, &[1024.0, 4096.0, 65536.0]);
        assert_eq!(labels(&sizes), ["1 Ki", "4 Ki", "16 Ki", "64 Ki"]);
    }

    #[test]
    fn what_cannot_be_shown_has_no_place() {
        let ruler = ruler(Scale::Logarithmic, Start::Zero, &[0.0, -1.0, f64::NAN, f64::INFINITY]);
        assert_eq!(ruler.share(0.0), None);
        assert_eq!(ruler.share(f64::NAN), None);
        assert_eq!(ruler.share(1.0), Some(0.0));
    }
}

//! Numbers as people read them: short beside bars and on axes, longer in tables.

/// Between groups of three digits, and between a number and its unit: narrow, and no line breaks there.
const NARROW_SPACE: char = '\u{202f}';

const SUFFIXES: [(f64, &str); 4] = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")];

/// Three figures: `0.0123`, `1.23`, `12.3`, `123`, `1230`, `12.3 k`, `1.2·10⁻⁷`.
pub(in crate::report) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..999.5e12).contains(&size) {
        scientific(value, 1)
    } else if size < 9_999.5 {
        figures(value, 3)
    } else {
        let (scale, suffix) = suffix(size * 1.0005);
        format!("{}{NARROW_SPACE}{suffix}", figures(value / scale, 3))
    }
}

/// Four figures, whole numbers with all of theirs: `1.234`, `12 345`.
pub(in crate::report) fn full(value: f64) -> String {
    let size = value.abs();
    if size < 1e15 && value.fract() == 0.0 {
        grouped(&format!("{value:.0}"))
    } else if (1e-3..1e15).contains(&size) {
        grouped(&figures(value, 4))
    } else {
        scientific(value, 3)
    }
}

/// Numbers on a linear axis whose ticks are `step` apart and reach to `largest`: all with the same suffix and decimals.
pub(super) fn on_linear_axis(value: f64, step: f64, largest: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    if step < 1e-4 || largest >= 999.5e12 {
        return scientific(value, decimals(step / 10_f64.powi(exponent(value))));
    }
    let (scale, suffix) = if largest < 10_000.0 { (1.0, "") } else { suffix(largest) };
    let digits = decimals(step / scale);
    let number = format!("{:.digits$}", value / scale);
    if suffix.is_empty() { number } else { format!("{number}{NARROW_SPACE}{suffix}") }
}

/// A number on a logarithmic axis: 1, 2 or 5 times a power of ten.
pub(super) fn on_logarithmic_axis(value: f64) -> String {
    if !(0.999e-3..0.999e15).contains(&value) {
        return scientific(value, 0);
    }
    let (scale, suffix) = if value < 999.0 { (1.0, "") } else { suffix(value * 1.000_001) };
    let number = figures(value / scale, 1);
    if suffix.is_empty() { number } else { format!("{number}{NARROW_SPACE}{suffix}") }
}

/// A power of two: `512`, `4 Ki`, `1 Mi`.
pub(super) fn power_of_two(value: f64) -> String {
    let (mut value, mut suffixes) = (value, ["", "Ki", "Mi", "Gi", "Ti", "Pi"].iter());
    let mut suffix = suffixes.next();
    while value >= 1024.0
        && let Some(next) = suffixes.next()
    {
        value /= 1024.0;
        suffix = Some(next);
    }
    match suffix {
        Some(&suffix) if !suffix.is_empty() => format!("{value}{NARROW_SPACE}{suffix}"),
        _ => value.to_string(),
    }
}

/// The power of ten at or below a number.
#[allow(clippy::cast_possible_truncation)]
pub(super) fn exponent(value: f64) -> i32 {
    let exponent = value.abs().log10().floor();
    // Logarithms of powers of ten may fall just short of them.
    let above = 10_f64.powi(exponent as i32 + 1);
    if value.abs() >= above * (1.0 - 1e-12) { exponent as i32 + 1 } else { exponent as i32 }
}

/// Decimal places that tell apart numbers so far from each other.
fn decimals(step: f64) -> usize {
    usize::try_from(-exponent(step)).unwrap_or(0)
}

/// So many significant figures, without a point where all are before it.
fn figures(value: f64, count: i32) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let digits = usize::try_from(count - 1 - exponent(value)).unwrap_or(0);
    let number = format!("{value:.digits$}");
    // 9.996 has three figures as 10.0, not as 10.00.
    let wanted = usize::try_from(count - 1 - exponent(number.parse().unwrap_or(value))).unwrap_or(0);
    if wanted < digits { format!("{value:.wanted$}") } else { number }
}

fn suffix(size: f64) -> (f64, &'static str) {
    SUFFIXES.into_iter().find(|(scale, _)| size >= *scale).unwrap_or((1.0, ""))
}

fn scientific(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return if value.is_nan() { "not a number".to_owned() } else { "infinite".to_owned() };
    }
    let text = format!("{value:.digits$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: String = power.chars().map(raised).collect();
    match mantissa {
        "1" => format!("10{power}"),
        "-1" => format!("−10{power}"),
        _ => format!("{}·10{power}", mantissa.replace('-', "−")),
    }
}

fn raised(digit: char) -> char {
    let mut digits = "0123456789".chars().zip("⁰¹²³⁴⁵⁶⁷⁸⁹".chars());
    digits.find(|(plain, _)| *plain == digit).map_or('⁻', |(_, raised)| raised)
}

fn grouped(number: &str) -> String {
    let whole = number.find('.').unwrap_or(number.len());
    let mut text = String::with_capacity(number.len() + 8);
    for (place, digit) in number.chars().enumerate() {
        let is_digit_before = place > 0 && number.as_bytes()[place - 1].is_ascii_digit();
        if place < whole && is_digit_before && (whole - place).is_multiple_of(3) {
            text.push(NARROW_SPACE);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(text: &str) -> String {
        text.replace(NARROW_SPACE, " ")
    }

    #[test]
    fn short_numbers_keep_three_figures() {
        let shown = [0.0, 0.01234, 1.2345, 9.996, 12.34, 999.9, 1234.0, 12_345.0, 999_900.0, 1e9, 1.2e-7, 1e20];
        let shown: Vec<String> = shown.iter().map(|&value| plain(&short(value))).collect();
        let expected = [
            "0",
            "0.0123",
            "1.23",
            "10.0",
            "12.3",
            "1000",
            "1234",
            "12.3 k",
            "1.00 M",
            "1.00 G",
            "1.2·10⁻⁷",
            "1.0·10²⁰",
        ];
        assert_eq!(shown, expected);
        assert_eq!(short(-12.34), "-12.3");
        assert_eq!(short(f64::NAN), "not a number");
    }

    #[test]
    fn whole_numbers_keep_all_figures() {
        let shown: Vec<String> = [0.0, 12.0, 1234.0, 1_234_567.0, 1.234_56, 12_345.6, -1234.0]
            .iter()
            .map(|&value| plain(&full(value)))
            .collect();
        assert_eq!(shown, ["0", "12", "1 234", "1 234 567", "1.235", "12 346", "-1 234"]);
    }

    #[test]
    fn axes_say_decades_in_one_way() {
        let shown: Vec<String> = (-4..7).map(|power| plain(&on_logarithmic_axis(10_f64.powi(power)))).collect();
        assert_eq!(shown, ["10⁻⁴", "0.001", "0.01", "0.1", "1", "10", "100", "1 k", "10 k", "100 k", "1 M"]);
        assert_eq!(plain(&on_linear_axis(2500.0, 500.0, 3000.0)), "2500");
        assert_eq!(plain(&on_linear_axis(2500.0, 500.0, 30_000.0)), "2.5 k");
        assert_eq!(plain(&on_linear_axis(0.25, 0.05, 0.5)), "0.25");
        assert_eq!(plain(&on_linear_axis(2e-6, 1e-6, 5e-6)), "2·10⁻⁶");
        let powers: Vec<String> =
            [512.0, 1024.0, 65536.0, 1_048_576.0].iter().map(|&value| plain(&power_of_two(value))).collect();
        assert_eq!(powers, ["512", "1 Ki", "64 Ki", "1 Mi"]);
    }
}

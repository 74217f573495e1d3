//! A span of the calendar such as `1y5m7d2h` (m: months), for `--keep-within` and its kin.

use jiff::Span;
use std::str::FromStr;

/// Years, months, days and hours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepSpan(pub(crate) Span);

impl FromStr for KeepSpan {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a span such as 1y5m7d2h: years, months, days, hours";
        let mut span = Span::new();
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&at| at > 0).ok_or(EXPECTED)?;
            let (number, tail) = rest.split_at(digits);
            let number: i64 = number.parse().map_err(|_| EXPECTED)?;
            let mut letters = tail.chars();
            span = match letters.next() {
                Some('y') => span.try_years(number),
                Some('m') => span.try_months(number),
                Some('d') => span.try_days(number),
                Some('h') => span.try_hours(number),
                _ => return Err(EXPECTED),
            }
            .map_err(|_| "the span is longer than the calendar")?;
            rest = letters.as_str();
        }
        if text.is_empty() { Err(EXPECTED) } else { Ok(Self(span)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_engine::forget::policy::span_text;

    #[test]
    fn spans_read_as_they_are_written() {
        for text in ["1y5m7d2h", "3d", "48h", "1m"] {
            assert_eq!(text.parse::<KeepSpan>().map(|span| span_text(&span.0)), Ok(text.to_owned()));
        }
        for bad in ["", "5", "d", "5w", "-5d", "99999999999y", "5d3"] {
            assert!(bad.parse::<KeepSpan>().is_err(), "{bad}");
        }
    }
}

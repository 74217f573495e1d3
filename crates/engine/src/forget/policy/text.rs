//! A policy as text, a rule on each line: `last 3`, `daily unlimited`, `within-weekly 1y`, `tag a,b`. So the
//! repository keeps it.

use super::KeepPolicy;
use jiff::Span;
use std::fmt;
use std::str::FromStr;

const COUNT_EXPECTED: &str = "expected a number or 'unlimited'";
const SPAN_EXPECTED: &str = "expected a span such as 1y5m7d2h: years, months, days, hours";

/// The fault of a policy's text.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PolicyTextError {
    /// A rule that this program does not know: following the others alone would remove what it keeps.
    #[error("it has a rule that this version does not know: '{0}'")]
    UnknownRule(String),
    /// A value that is none of its rule's.
    #[error("its rule '{rule}' is not valid: {reason}")]
    Value {
        /// The line.
        rule: String,
        /// Form that was expected.
        reason: &'static str,
    },
}

/// Reads how many snapshots a rule keeps: a number, or `unlimited`.
///
/// # Errors
/// Says what was expected.
pub fn parse_count(text: &str) -> Result<u32, &'static str> {
    if text == "unlimited" {
        return Ok(KeepPolicy::UNLIMITED);
    }
    if text.starts_with('-') {
        return Err("negative numbers are not allowed, use 'unlimited' to keep all");
    }
    text.parse().map_err(|_| COUNT_EXPECTED)
}

/// Reads a span in restic's words: `1y5m7d2h`, where `m` stands for months.
///
/// # Errors
/// Says what was expected.
pub fn parse_span(text: &str) -> Result<Span, &'static str> {
    let mut span = Span::new();
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&at| at > 0).ok_or(SPAN_EXPECTED)?;
        let (number, tail) = rest.split_at(digits);
        let number: i64 = number.parse().map_err(|_| SPAN_EXPECTED)?;
        let mut letters = tail.chars();
        span = match letters.next() {
            Some('y') => span.try_years(number),
            Some('m') => span.try_months(number),
            Some('d') => span.try_days(number),
            Some('h') => span.try_hours(number),
            _ => return Err(SPAN_EXPECTED),
        }
        .map_err(|_| "the span is longer than the calendar")?;
        rest = letters.as_str();
    }
    if text.is_empty() { Err(SPAN_EXPECTED) } else { Ok(span) }
}

/// Writes a span in restic's words: `1y5m7d2h`; minutes and below have none.
pub fn span_text(span: &Span) -> String {
    let parts = [
        (i64::from(span.get_years()), 'y'),
        (i64::from(span.get_months()), 'm'),
        (i64::from(span.get_weeks()) * 7 + i64::from(span.get_days()), 'd'),
        (i64::from(span.get_hours()), 'h'),
    ];
    let given = parts.iter().filter(|(number, _)| *number != 0);
    given.fold(String::new(), |text, (number, unit)| format!("{text}{number}{unit}"))
}

/// The rules that are on, a line each.
impl fmt::Display for KeepPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            ("last", self.last),
            ("hourly", self.hourly),
            ("daily", self.daily),
            ("weekly", self.weekly),
            ("monthly", self.monthly),
            ("yearly", self.yearly),
        ];
        for (rule, count) in counts {
            match count {
                None | Some(0) => {}
                Some(Self::UNLIMITED) => writeln!(f, "{rule} unlimited")?,
                Some(count) => writeln!(f, "{rule} {count}")?,
            }
        }
        let spans = [
            ("within", self.within),
            ("within-hourly", self.within_hourly),
            ("within-daily", self.within_daily),
            ("within-weekly", self.within_weekly),
            ("within-monthly", self.within_monthly),
            ("within-yearly", self.within_yearly),
        ];
        for (rule, span) in spans {
            if let Some(span) = span.filter(|span| !span.is_zero()) {
                writeln!(f, "{rule} {}", span_text(&span))?;
            }
        }
        self.tags.iter().try_for_each(|tags| writeln!(f, "tag {}", tags.join(",")))
    }
}

impl FromStr for KeepPolicy {
    type Err = PolicyTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut policy = Self::default();
        for line in text.lines() {
            let (rule, value) = line.split_once(' ').unwrap_or((line, ""));
            let invalid = |reason| PolicyTextError::Value { rule: line.to_owned(), reason };
            let count = || parse_count(value).map(Some).map_err(invalid);
            let span = || parse_span(value).map(Some).map_err(invalid);
            match rule {
                "last" => policy.last = count()?,
                "hourly" => policy.hourly = count()?,
                "daily" => policy.daily = count()?,
                "weekly" => policy.weekly = count()?,
                "monthly" => policy.monthly = count()?,
                "yearly" => policy.yearly = count()?,
                "within" => policy.within = span()?,
                "within-hourly" => policy.within_hourly = span()?,
                "within-daily" => policy.within_daily = span()?,
                "within-weekly" => policy.within_weekly = span()?,
                "within-monthly" => policy.within_monthly = span()?,
                "within-yearly" => policy.within_yearly = span()?,
                "tag" => policy.tags.push(value.split(',').map(str::to_owned).collect()),
                _ => return Err(PolicyTextError::UnknownRule(line.to_owned())),
            }
        }
        Ok(policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_reads_as_it_is_written() {
        let text = "last 3\nhourly 24\ndaily unlimited\nweekly 5\nmonthly 12\nyearly 10\nwithin 2d\nwithin-hourly 1d\n\
                    within-daily 7d\nwithin-weekly 1m\nwithin-monthly 1y\nwithin-yearly 75y5m7d2h\ntag a,b\ntag \n";
        assert_eq!(text.parse::<KeepPolicy>().expect("a policy").to_string(), text);
        assert_eq!(KeepPolicy::default().to_string(), "");
        let off = KeepPolicy::default().with_last(Some(0)).with_within(Some(Span::new()));
        assert_eq!(off.to_string(), "");
    }

    #[test]
    fn a_rule_that_is_not_known_is_never_passed_over() {
        let unknown = |text: &str| matches!(text.parse::<KeepPolicy>(), Err(PolicyTextError::UnknownRule(_)));
        assert!(unknown("last 3\nper-moon 2") && unknown("\nlast 3"));
        for bad in ["last", "last x", "daily -1", "within 5", "within "] {
            assert!(matches!(bad.parse::<KeepPolicy>(), Err(PolicyTextError::Value { .. })), "{bad}");
        }
    }

    #[test]
    fn spans_read_as_they_are_written() {
        for text in ["1y5m7d2h", "3d", "48h", "1m"] {
            assert_eq!(parse_span(text).map(|span| span_text(&span)), Ok(text.to_owned()));
        }
        for bad in ["", "5", "d", "5w", "-5d", "99999999999y", "5d3"] {
            assert!(parse_span(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counts_are_numbers_or_unlimited() {
        assert_eq!((parse_count("7"), parse_count("unlimited")), (Ok(7), Ok(KeepPolicy::UNLIMITED)));
        for bad in ["-1", "", "x", "1.5", "99999999999"] {
            assert!(parse_count(bad).is_err(), "{bad}");
        }
    }
}

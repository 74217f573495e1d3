//! A stretch of time such as `90s`, `5m`, `1h30m` or `30d`.

use std::str::FromStr;

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Duration(pub(crate) std::time::Duration);

impl FromStr for Duration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a duration such as 90s, 5m, 1h30m or 30d";
        if text == "0" {
            return Ok(Self::default());
        }
        let mut seconds = 0u64;
        let mut rest = text;
        while !rest.is_empty() {
            let digits = rest.find(|c: char| !c.is_ascii_digit()).filter(|&at| at > 0).ok_or(EXPECTED)?;
            let (number, tail) = rest.split_at(digits);
            let mut letters = tail.chars();
            let unit = match letters.next() {
                Some('d') => 86_400,
                Some('h') => 3600,
                Some('m') => 60,
                Some('s') => 1,
                _ => return Err(EXPECTED),
            };
            let part = number.parse::<u64>().ok().and_then(|number| number.checked_mul(unit)).ok_or(EXPECTED)?;
            seconds = seconds.checked_add(part).ok_or(EXPECTED)?;
            rest = letters.as_str();
        }
        if text.is_empty() { Err(EXPECTED) } else { Ok(Self(std::time::Duration::from_secs(seconds))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_add_up() {
        let seconds = |text: &str| text.parse::<Duration>().map(|duration| duration.0.as_secs());
        assert_eq!(seconds("90s"), Ok(90));
        assert_eq!(seconds("1h30m"), Ok(5400));
        assert_eq!(seconds("30d"), Ok(2_592_000));
        assert_eq!(seconds("0"), Ok(0));
        for bad in ["", "5", "m", "5x", "-5m", "99999999999999999999h", "5m3", "5é"] {
            assert!(seconds(bad).is_err(), "{bad}");
        }
    }
}

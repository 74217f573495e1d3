//! A stretch of time such as `500ms`, `90s`, `5m`, `1h30m` or `30d`.

use std::str::FromStr;

/// How long to wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Duration(pub(crate) std::time::Duration);

impl FromStr for Duration {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parsed = if text == "0" { Ok(std::time::Duration::ZERO) } else { humantime::parse_duration(text) };
        parsed.map(Self).map_err(|_| "expected a duration such as 500ms, 90s, 5m, 1h30m or 30d")
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

//! A share of a whole: a number from 0 to 1, or a percentage.

use std::str::FromStr;

/// A share.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct Share(pub(crate) f64);

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse().map(|percent: f64| percent / 100.0),
            None => text.parse(),
        };
        let share = share.ok().filter(|share| (0.0..=1.0).contains(share));
        share.map(Self).ok_or_else(|| "expected a share from 0 to 1, such as 0.25 or 25%".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_percentages() {
        assert_eq!("0.25".parse(), Ok(Share(0.25)));
        assert_eq!("25%".parse(), Ok(Share(0.25)));
        for bad in ["", "-1", "1.1", "101%", "NaN", "many"] {
            assert!(bad.parse::<Share>().is_err(), "{bad}");
        }
    }
}

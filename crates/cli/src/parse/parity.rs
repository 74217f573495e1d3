//! How much parity: a share of the data, or none.

use std::str::FromStr;

/// Percent of a container's size; 0 for `off`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Parity(pub(crate) u8);

impl FromStr for Parity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "off" {
            return Ok(Self(0));
        }
        let percent = text.strip_suffix('%').unwrap_or(text).parse().ok();
        let percent = percent.filter(|percent| (1..=100).contains(percent));
        percent.map(Self).ok_or_else(|| format!("`{text}` is no share: give 1% to 100%, such as 5%, or off"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_whole_percent_or_off() {
        assert_eq!(["5%", "100", "off"].map(str::parse), [Ok(Parity(5)), Ok(Parity(100)), Ok(Parity(0))]);
        for text in ["", "%", "0%", "101%", "-1", "2.5%", "OFF"] {
            assert!(text.parse::<Parity>().is_err(), "{text}");
        }
    }
}

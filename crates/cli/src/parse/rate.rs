//! A rate of transfer such as `500K`, `2M` or `300`: a number alone is of KiB per second, as restic has it.

use super::Size;
use std::str::FromStr;

/// Bytes per second; 0 for no limit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Rate(pub(crate) u64);

impl FromStr for Rate {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const EXPECTED: &str = "expected a rate such as 500K or 2M, or a number of KiB per second";
        let amount = text.strip_suffix("/s").unwrap_or(text);
        let is_number = amount.bytes().all(|byte| byte.is_ascii_digit());
        let amount = if is_number { format!("{amount}K") } else { amount.to_owned() };
        amount.parse().map(|size: Size| Self(size.0)).map_err(|_| EXPECTED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_alone_is_of_kib_per_second() {
        let rate = |text: &str| text.parse::<Rate>().map(|rate| rate.0);
        assert_eq!(rate("300"), Ok(300 << 10));
        assert_eq!(rate("0"), Ok(0));
        assert_eq!(rate("500K"), Ok(500 << 10));
        assert_eq!(rate("2MiB/s"), Ok(2 << 20));
        assert_eq!(rate("100b"), Ok(100));
        for bad in ["", "/s", "K", "-1", "1.5M", "99999999T", "2M/h"] {
            assert!(rate(bad).is_err(), "{bad}");
        }
    }
}

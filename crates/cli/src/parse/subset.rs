//! How much data a check reads: `n/t`, `x%`, or a size.

use super::Size;
use std::str::FromStr;

/// The value of `--read-data-subset`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Subset {
    /// Part `part` of `parts`.
    Part { part: u32, parts: u32 },
    /// A random share.
    Percent(f64),
    /// A random share of about that many bytes.
    Bytes(u64),
}

impl FromStr for Subset {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Some((part, parts)) = text.split_once('/') {
            let (part, parts) = part.parse().ok().zip(parts.parse().ok()).ok_or("expected n/t, such as 1/7")?;
            return if (1..=parts).contains(&part) {
                Ok(Self::Part { part, parts })
            } else {
                Err("n/t needs 1 <= n <= t")
            };
        }
        if let Some(percent) = text.strip_suffix('%') {
            let percent: f64 = percent.parse().map_err(|_| "expected a percentage such as 2.5%")?;
            let is_share = percent > 0.0 && percent <= 100.0;
            return if is_share {
                Ok(Self::Percent(percent))
            } else {
                Err("a percentage lies above 0% and up to 100%")
            };
        }
        match text.parse::<Size>() {
            Ok(Size(bytes)) if bytes > 0 => Ok(Self::Bytes(bytes)),
            _ => Err("expected n/t, x% or a size such as 10G"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_shares_and_sizes() {
        assert_eq!("2/7".parse(), Ok(Subset::Part { part: 2, parts: 7 }));
        assert_eq!("2.5%".parse(), Ok(Subset::Percent(2.5)));
        assert_eq!("10G".parse(), Ok(Subset::Bytes(10 << 30)));
        for bad in ["", "0/7", "8/7", "1/0", "0%", "101%", "NaN%", "0", "x", "/", "-1/3"] {
            assert!(bad.parse::<Subset>().is_err(), "{bad}");
        }
    }
}

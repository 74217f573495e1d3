//! How many snapshots a rule keeps: a number, or `unlimited`.

use siltstone_engine::forget::policy::KeepPolicy;
use std::fmt;
use std::str::FromStr;

/// The N of `--keep-daily N`; 0 turns the rule off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeepCount(pub(crate) u32);

impl FromStr for KeepCount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unlimited" {
            return Ok(Self(KeepPolicy::UNLIMITED));
        }
        if text.starts_with('-') {
            return Err("negative numbers are not allowed, use 'unlimited' to keep all");
        }
        let number = text.parse().map_err(|_| "expected a number or 'unlimited'")?;
        Ok(Self(number))
    }
}

impl fmt::Display for KeepCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == KeepPolicy::UNLIMITED { f.write_str("all") } else { self.0.fmt(f) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_unlimited() {
        assert_eq!("7".parse(), Ok(KeepCount(7)));
        assert_eq!("unlimited".parse(), Ok(KeepCount(u32::MAX)));
        assert_eq!(KeepCount(u32::MAX).to_string(), "all");
        for bad in ["-1", "", "x", "1.5", "99999999999"] {
            assert!(bad.parse::<KeepCount>().is_err(), "{bad}");
        }
    }
}

//! Bytes that work may be done on: a size, or `unlimited`.

use super::Size;
use std::str::FromStr;

/// A number of bytes, perhaps all there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget(pub(crate) u64);

impl FromStr for Budget {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text == "unlimited" {
            return Ok(Self(u64::MAX));
        }
        let expected = "expected unlimited, or a size such as 500, 64K, 512M or 2G";
        text.parse().map(|Size(bytes)| Self(bytes)).map_err(|_| expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_a_size_or_without_limit() {
        let bytes = |text: &str| text.parse::<Budget>().map(|budget| budget.0);
        assert_eq!(bytes("unlimited"), Ok(u64::MAX));
        assert_eq!(bytes("2G"), Ok(2 << 30));
        assert!(bytes("all").is_err() && bytes("").is_err());
    }
}

//! Sizes from or up to a bound: `+10M`, `-1K`.

use super::Size;
use std::str::FromStr;

/// Bytes that a file has at least or at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SizeRange {
    /// At least so many.
    From(u64),
    /// At most so many.
    UpTo(u64),
}

impl SizeRange {
    /// Tells whether a size is in it.
    pub(crate) fn holds(self, size: u64) -> bool {
        match self {
            Self::From(least) => size >= least,
            Self::UpTo(most) => size <= most,
        }
    }
}

impl FromStr for SizeRange {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let size = |text: &str| text.parse::<Size>().map(|size| size.0);
        match (text.strip_prefix('+'), text.strip_prefix('-')) {
            (Some(least), _) => size(least).map(Self::From),
            (_, Some(most)) => size(most).map(Self::UpTo),
            _ => Err("expected + or - and a size, such as +10M or -1K"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_says_from_or_up_to() {
        let range = |text: &str| text.parse::<SizeRange>();
        assert_eq!(range("+10M"), Ok(SizeRange::From(10 << 20)));
        assert_eq!(range("-1k"), Ok(SizeRange::UpTo(1 << 10)));
        assert!(range("10").is_err() && range("+").is_err() && range("+-1").is_err());
        assert!(SizeRange::From(5).holds(5) && !SizeRange::UpTo(5).holds(6));
    }
}

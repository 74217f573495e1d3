//! Which way deltas point: a word, and for some the longest chain.

use siltstone_engine::delta::{DEPTH_DEFAULT, DEPTH_MAX, Deltas, FORWARD_DEPTH_DEFAULT};
use std::str::FromStr;

/// A policy of deltas.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct DeltaPolicy(pub(crate) Deltas);

impl FromStr for DeltaPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (word, depth) = match text.split_once(':') {
            Some((word, depth)) => (word, Some(depth)),
            None => (text, None),
        };
        let depth = |default: u32| match depth {
            None => Ok(default),
            Some(given) => given
                .parse()
                .ok()
                .filter(|depth| (1..=DEPTH_MAX).contains(depth))
                .ok_or_else(|| format!("expected a length of chains from 1 to {DEPTH_MAX} after '{word}:'")),
        };
        match word {
            "off" if text == word => Ok(Self(Deltas::Off)),
            "forward" => Ok(Self(Deltas::Forward { depth: depth(FORWARD_DEPTH_DEFAULT)? })),
            "reverse" => Ok(Self(Deltas::Reverse { depth: depth(DEPTH_DEFAULT)? })),
            _ => Err("expected off, forward, forward:DEPTH, reverse, or reverse:DEPTH".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_depths() {
        let parsed = |text: &str| text.parse::<DeltaPolicy>().map(|policy| policy.0);
        assert_eq!(parsed("off"), Ok(Deltas::Off));
        assert_eq!(parsed("reverse"), Ok(Deltas::default()));
        assert_eq!(parsed("reverse:7"), Ok(Deltas::Reverse { depth: 7 }));
        assert_eq!(parsed("forward"), Ok(Deltas::Forward { depth: FORWARD_DEPTH_DEFAULT }));
        assert_eq!(parsed("forward:3"), Ok(Deltas::Forward { depth: 3 }));
        for bad in [
            "",
            "off:1",
            "paper",
            "forward:",
            "forward:0",
            "forward:2000",
            "reverse:",
            "reverse:0",
            "reverse:1025",
            "sideways",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }
}

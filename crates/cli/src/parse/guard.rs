//! Values that switch something off: `off`, or what it is set to.

use super::{Duration, Share};
use siltstone_engine::backup::CheckpointRule;
use std::str::FromStr;

/// The share that a source may lose; `None`: any.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) struct ShrinkGuard(pub(crate) Option<f64>);

impl FromStr for ShrinkGuard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            _ => text.parse().map(|Share(share)| Self(Some(share))).map_err(|error| format!("{error}, or off")),
        }
    }
}

/// When a backup commits what it has done so far; `None`: at its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Checkpointing(pub(crate) Option<CheckpointRule>);

impl FromStr for Checkpointing {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(Self(None)),
            _ => {
                let Duration(every) = text.parse().map_err(|error| format!("{error}, or off"))?;
                Ok(Self(Some(CheckpointRule::DEFAULT.with_every(every))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn off_or_a_value() {
        assert_eq!("off".parse(), Ok(ShrinkGuard(None)));
        assert_eq!("80%".parse(), Ok(ShrinkGuard(Some(0.8))));
        assert!("120%".parse::<ShrinkGuard>().is_err() && "".parse::<ShrinkGuard>().is_err());
        assert_eq!("off".parse(), Ok(Checkpointing(None)));
        let rule = CheckpointRule::DEFAULT.with_every(std::time::Duration::from_mins(1));
        assert_eq!("1m".parse(), Ok(Checkpointing(Some(rule))));
        assert!("1".parse::<Checkpointing>().is_err());
    }
}

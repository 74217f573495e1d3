//! How many snapshots a rule keeps: a number, or `unlimited`.

use siltstone_engine::forget::policy::{KeepPolicy, parse_count};
use std::fmt;
use std::str::FromStr;

/// The N of `--keep-daily N`; 0 turns the rule off.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct KeepCount(pub(crate) u32);

impl FromStr for KeepCount {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_count(text).map(Self)
    }
}

impl fmt::Display for KeepCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == KeepPolicy::UNLIMITED { f.write_str("all") } else { self.0.fmt(f) }
    }
}

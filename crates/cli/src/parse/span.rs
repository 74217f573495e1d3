//! A span of the calendar such as `1y5m7d2h` (m: months), for `--keep-within` and its kin.

use jiff::Span;
use siltstone_engine::forget::policy::parse_span;
use std::str::FromStr;

/// Years, months, days and hours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepSpan(pub(crate) Span);

impl FromStr for KeepSpan {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse_span(text).map(Self)
    }
}

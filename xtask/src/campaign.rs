//! Options that campaigns against the real program share.

use clap::Args;

/// Build that is tried, and whether the result is kept.
#[derive(Args, Default)]
#[group(skip)]
pub(crate) struct Options {
    /// Use the release build.
    #[arg(long)]
    pub(crate) release: bool,
    /// Keep the result under bench/record.
    #[arg(long)]
    pub(crate) record: bool,
}

//! Power loss below a real file system. The disk that remembers what it was told is a file system of our own, whose
//! library is compiled only for this task: it starts itself again, with the feature that has it.

#[cfg(feature = "power")]
mod device;
#[cfg(feature = "power")]
mod recording;

use crate::campaign;
use anyhow::Result;
use clap::Args;

/// Options: how many losses.
#[derive(Args)]
pub(crate) struct Options {
    /// Power losses tried, at random moments.
    #[arg(long, default_value_t = 400)]
    losses: u64,
    /// Seed that the moments are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    campaign: campaign::Options,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { losses: 8, seed: 1, campaign: campaign::Options::default() }
    }

    /// Returns the words of a command line that say so.
    #[cfg(not(feature = "power"))]
    fn words(&self) -> Vec<String> {
        let numbers = [format!("--losses={}", self.losses), format!("--seed={}", self.seed)].into_iter();
        let switches = [(self.campaign.release, "--release"), (self.campaign.record, "--record")];
        let switches = switches.into_iter().filter(|(is_on, _)| *is_on).map(|(_, word)| word.to_owned());
        numbers.chain(switches).collect()
    }
}

/// Loses power; the first state that is not sound ends it.
#[cfg(feature = "power")]
pub(crate) fn run(options: &Options) -> Result<()> {
    recording::run(options)
}

/// Runs this task again, built with what it needs.
#[cfg(not(feature = "power"))]
pub(crate) fn run(options: &Options) -> Result<()> {
    use siltstone_testbed::{program, workspace};
    let mut command = workspace::cargo();
    command.args(["run", "--package", "xtask", "--features", "power", "--", "power"]);
    program::run(command.args(options.words()))
}

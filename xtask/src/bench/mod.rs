//! Measurements against the peers. Every benchmark takes the same options and is a test first: a time is printed only for a result
//! that was compared with what it should be.

mod backup;
mod machine;
mod report;

use crate::corpus::{self, Amount, Corpus};
use crate::tool::Name;
use anyhow::Result;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Which benchmark.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The whole job: back up, back up again, restore, forget; beside restic and borg on the same data, in the same run.
    Backup(Options),
}

/// What every benchmark takes.
#[derive(Args)]
pub(crate) struct Options {
    /// Little data and one round: under a minute.
    #[arg(long)]
    quick: bool,
    /// Your own versions: a folder with one file or folder per version, in the order of their names.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Also writes the rows as JSON: an array of flat objects, keyed by the printed columns.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keeps table and rows under bench/record, with machine, versions and commit.
    #[arg(long)]
    record: bool,
    /// How often everything is measured; 3 by default, 1 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
    /// Which programs to measure.
    #[arg(long, value_delimiter = ',', default_value = "silt,restic,borg")]
    tools: Vec<Name>,
}

impl Options {
    fn amount(&self) -> Amount {
        if self.quick { Amount::Little } else { Amount::Full }
    }

    fn rounds(&self) -> u64 {
        self.rounds.unwrap_or(if self.quick { 1 } else { 3 })
    }

    fn corpora(&self) -> Result<Vec<Corpus>> {
        match &self.data {
            Some(folder) => Ok(vec![corpus::given(folder)?]),
            None => corpus::standard(self.amount()),
        }
    }
}

/// Runs one benchmark.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Backup(options) => backup::run(options),
    }
}

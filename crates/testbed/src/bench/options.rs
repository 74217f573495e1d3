//! Options of the benchmarks that run in a program of their own, `siltstone-bench`: the task parses them, so that help
//! and mistakes are told without building that program, and hands the words on.

use super::publish::Output;
use crate::corpus::{self, Amount, Corpora, Corpus, History};
use crate::data::{Data, Source};
use crate::workspace;
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::PathBuf;

/// Which histories.
#[derive(Args, Debug)]
pub struct DataOptions {
    /// Only these histories; all by default.
    #[arg(long, value_delimiter = ',', value_name = "HISTORIES")]
    only: Vec<History>,
    /// Your own versions: a folder with one file or folder per version, in the order of their names.
    #[arg(long, value_name = "DIR", conflicts_with = "only")]
    data: Option<PathBuf>,
}

impl DataOptions {
    /// Tells whether nothing was asked for.
    pub fn is_default(&self) -> bool {
        self.only.is_empty() && self.data.is_none()
    }

    /// The histories asked for, or else `usual`; made if need be.
    pub fn corpora(&self, quick: bool, usual: &[History]) -> Result<Vec<Corpus>> {
        let amount = if quick { Amount::Little } else { Amount::Full };
        let kinds = if self.only.is_empty() { usual } else { &self.only };
        match &self.data {
            Some(folder) => Ok(vec![corpus::given(folder)?]),
            None => kinds.iter().map(|&kind| workspace::corpora()?.history(kind, amount)).collect(),
        }
    }
}

/// Options of a benchmark that runs on histories.
#[derive(Args, Debug)]
pub struct HistoryOptions {
    /// Where results go.
    #[command(flatten)]
    pub output: Output,
    /// Which histories.
    #[command(flatten)]
    pub data: DataOptions,
}

impl HistoryOptions {
    /// The histories asked for, or else `usual`; made if need be.
    pub fn corpora(&self, usual: &[History]) -> Result<Vec<Corpus>> {
        self.data.corpora(self.output.quick, usual)
    }
}

/// Option: how often everything is measured.
#[derive(Args, Debug)]
pub struct Rounds {
    /// Rounds in which everything is measured; by default 3, of parity 5, with --quick 1.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
}

impl Rounds {
    /// Returns the number asked for; else one with `--quick`, or `usual`.
    pub fn number(&self, output: &Output, usual: u64) -> u64 {
        self.rounds.unwrap_or(if output.quick { 1 } else { usual })
    }
}

/// Options of a benchmark that measures speeds on data in memory.
#[derive(Args, Debug)]
pub struct MemoryOptions {
    /// Where results go.
    #[command(flatten)]
    pub output: Output,
    /// Your own data: a file, or a folder with one file or folder per version, in the order of their names; several
    /// times for several.
    #[arg(long, value_name = "DIR_OR_FILE")]
    data: Vec<PathBuf>,
    /// Rounds in which speeds are measured; 5 by default, 3 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    rounds: Option<u64>,
}

impl MemoryOptions {
    /// Returns the rounds in which speeds are measured.
    pub fn rounds(&self) -> u64 {
        self.rounds.unwrap_or(if self.output.quick { 3 } else { 5 })
    }

    /// The user's data, or else the usual.
    pub fn sources(&self, usual: impl FnOnce(&Corpora, Amount) -> Result<Vec<Source>>) -> Result<Vec<Source>> {
        let amount = if self.output.quick { Amount::Little } else { Amount::Memory };
        if self.data.is_empty() {
            return usual(&workspace::corpora()?, amount);
        }
        self.data.iter().map(|path| Source::given(path)).collect()
    }
}

/// Options of the benchmark of chunkers.
#[derive(Args, Debug)]
pub struct ChunkOptions {
    /// Data, rounds, and where results go.
    #[command(flatten)]
    pub memory: MemoryOptions,
    /// Only the table of speeds.
    #[arg(long, conflicts_with = "savings")]
    pub speed: bool,
    /// Only the tables of savings.
    #[arg(long)]
    pub savings: bool,
    /// Only these algorithms, beside what they are held against.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    pub only: Vec<String>,
}

/// Options of the benchmark of deltas.
#[derive(Args, Debug)]
pub struct SimilarOptions {
    /// Data, rounds, and where results go.
    #[command(flatten)]
    pub memory: MemoryOptions,
    /// Only these parts; all by default.
    #[arg(long, value_delimiter = ',', value_name = "PARTS")]
    pub only: Vec<Part>,
}

/// Parts of the benchmark of deltas, each measured on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "sentences here would be printed as help of each value")]
pub enum Part {
    Policy,
    Codecs,
    Regions,
    Layouts,
}

impl SimilarOptions {
    /// The parts asked for.
    pub fn parts(&self) -> Vec<Part> {
        if self.only.is_empty() { Part::value_variants().to_vec() } else { self.only.clone() }
    }

    /// The user's data, or else versions of different kinds; each brought into memory when its turn comes.
    pub fn sources(&self) -> Result<impl Iterator<Item = Result<Data>> + use<>> {
        let sources = self.memory.sources(Source::for_resemblance)?;
        Ok(sources.into_iter().map(|source| source.load()))
    }
}

/// Options of the profile of the write path.
#[derive(Args, Debug)]
pub struct StagesOptions {
    /// Data, and where results go.
    #[command(flatten)]
    pub histories: HistoryOptions,
    /// Rounds, 3 of them as a rule.
    #[command(flatten)]
    pub rounds: Rounds,
}

/// Options of the benchmark of how everything grows.
#[derive(Args, Debug)]
pub struct ScaleOptions {
    /// Where results go.
    #[command(flatten)]
    pub output: Output,
    /// Sizes of the tree, in GB; with --quick 2.
    #[arg(long, value_delimiter = ',', value_name = "GB", default_values_t = [10, 100, 1000])]
    pub gigabytes: Vec<u64>,
    /// Mean length of a file, bytes.
    #[arg(long, value_name = "BYTES", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1000..))]
    pub file_bytes: u64,
    /// Times that a compressor can make the content smaller, about; the repository has to fit on the disk.
    #[arg(long, value_name = "N", default_value_t = 64, value_parser = clap::value_parser!(u64).range(1..=512))]
    pub shrink: u64,
    /// Memory that each command may take, MiB.
    #[arg(long, value_name = "MIB", default_value_t = 512)]
    pub memory: u64,
    /// Folder for the repositories; by default below the build folder.
    #[arg(long, value_name = "DIR")]
    pub place: Option<PathBuf>,
}

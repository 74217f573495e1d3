//! Commands and their options.

use super::size::{chunk_size, mebibytes};
use clap::{Args, Parser, Subcommand};
use siltstone_lab::settings::Settings;
use siltstone_testbed::corpus;
use std::path::PathBuf;

const EXIT_CODES: &str = "\
SILT_ISA=NAME measures no instruction set above that one, as avx2.
Exit codes: 0 done; 1 failed, or a method failed its check; 2 what was asked for makes no sense; 130 interrupted, and can go on.";

/// Every method of five papers on deduplication, side by side on the same data: yours, or data made here.
///
/// All methods of a comparison run in turns on the same bytes, several rounds; each result is checked in the run that
/// times it, and a method that fails its check prints no time.
#[derive(Parser, Debug)]
#[command(name = "silt-lab", version = siltstone_lab::run::VERSION, after_help = EXIT_CODES, max_term_width = 120)]
pub(super) struct Cli {
    #[command(subcommand)]
    pub(super) command: Command,
}

#[derive(Subcommand, Debug)]
pub(super) enum Command {
    /// Your versions, and what four stores would make of them: silt, deduplication as restic has it, zstd --long, and
    /// a chain of deltas
    ///
    /// Each PATH is a version, oldest first; with --versions each entry of one folder. All four keep them in a folder
    /// for temporary files, which is removed; set TMPDIR where there is room.
    Estimate(EstimateOptions),
    /// Chunkers: what deduplication saves with each, and how fast they cut; with advice for your data
    ///
    /// An answer for your data: the chunkers that matter, at three sizes, in about 10 seconds for every 50 MB, advice
    /// first. With --full, or with --experiment or --method, all that is measured of chunkers: how chunks are spread,
    /// what vectors give, what the papers say.
    Chunk {
        #[command(flatten)]
        wanted: Measure,
        /// All chunkers, all experiments on them, all their points: an hour and more
        #[arg(long, conflicts_with = "quick")]
        full: bool,
    },
    /// Sketches: how fast, and how well they find chunks that resemble others
    Sketch(Measure),
    /// Whole pipelines: chunk, fingerprint, find, compress
    Pipeline(Measure),
    /// Whole stores over many versions: backup, restore, deletion
    Store(Measure),
    /// All of these
    All(Measure),
    /// Run what a file says: that of an earlier run (its run.toml), or your own
    Run(RunFile),
    /// List what can be measured: experiments with what they repeat, methods, and corpora
    List,
    /// Makes versioned data to measure on: from seeds, by real programs, or from registries
    Corpus(corpus::command::Options),
    /// Shows a run again, and writes its files anew, without measuring
    Report {
        /// The folder of the run
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
    /// The papers' claims, held against a run, as Markdown
    Claims {
        /// The folder of the run
        #[arg(value_name = "DIR")]
        folder: PathBuf,
        /// A page of such tables, whose reasons are kept; what changed since is told
        #[arg(long, value_name = "FILE.md")]
        reasons: Option<PathBuf>,
        /// The folder of another run, as on another machine or with SILT_ISA set: claims about times, side by side
        #[arg(long, value_name = "DIR")]
        beside: Option<PathBuf>,
    },
}

#[derive(Args, Debug)]
pub(super) struct Measure {
    /// Your data: each a file or a folder. A folder is one version, all of it; with --versions it is one version per
    /// entry. Without PATH and --corpus, small corpora are made that need nothing from outside
    #[arg(value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    /// Each entry of a folder PATH is a version, oldest first by name: what shares between versions, and stores, need
    /// that
    #[arg(long)]
    pub(super) versions: bool,
    /// Also this corpus made by the lab; 'silt-lab list' names them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) corpus: Vec<String>,
    /// Only these experiments; 'silt-lab list' names them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) experiment: Vec<String>,
    /// Only these methods; 'silt-lab list' names them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub(super) method: Vec<String>,
    /// Expected sizes of chunks, as 8k,64k [default: those of the papers]
    #[arg(long, value_name = "SIZE", value_delimiter = ',', value_parser = chunk_size)]
    pub(super) expected: Vec<u32>,
    /// Minutes instead of hours: little data, few rounds, few points
    #[arg(long)]
    pub(super) quick: bool,
    /// Rounds of what is timed [default: 5, or 3 with --quick]
    #[arg(long, value_name = "N")]
    pub(super) rounds: Option<u64>,
    /// Seed of all data that is made here
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(super) seed: u64,
    /// Memory to stay below; of data that takes more than half of it only the first part is brought into memory
    #[arg(long, value_name = "SIZE", default_value = "4G", value_parser = mebibytes)]
    pub(super) memory: u64,
    /// Threads of what runs on several [default: all cores]
    #[arg(long, value_name = "N")]
    pub(super) threads: Option<usize>,
    #[command(flatten)]
    pub(super) places: Places,
}

#[derive(Args, Debug)]
pub(super) struct EstimateOptions {
    /// Versions, oldest first: files or folders
    #[arg(value_name = "PATH", required = true)]
    pub(super) paths: Vec<PathBuf>,
    /// Each entry of the folder PATH is a version, oldest first by name
    #[arg(long)]
    pub(super) versions: bool,
    /// Look at no more than so many bytes: the newest versions
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = mebibytes)]
    pub(super) at_most: u64,
    /// Memory of Siltstone's engine; zstd takes two versions and a window besides
    #[arg(long, value_name = "SIZE", default_value = "512M", value_parser = mebibytes)]
    pub(super) memory: u64,
}

#[derive(Args, Debug)]
pub(super) struct RunFile {
    /// The settings, as run.toml in the folder of a run
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    #[command(flatten)]
    pub(super) places: Places,
}

/// Where things lie.
#[derive(Args, Debug)]
pub(super) struct Places {
    /// Folder for all that comes of it; a run that was interrupted there goes on [default: silt-lab-DATE-TIME]
    #[arg(long, value_name = "DIR")]
    pub(super) out: Option<PathBuf>,
    /// Begin again where a run lies in --out already
    #[arg(long, requires = "out")]
    pub(super) fresh: bool,
    /// Where corpora are kept once they are made [default: siltstone/lab in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub(super) corpora: Option<PathBuf>,
}

impl Measure {
    /// The settings of these options, with the experiments of a command where none are named.
    pub(super) fn settings(&self, commands: &[&str]) -> Settings {
        let usual = Settings::new(self.quick);
        let commands = commands.iter().map(|&name| name.to_owned()).collect();
        Settings {
            experiments: if self.experiment.is_empty() { commands } else { self.experiment.clone() },
            data: self.paths.clone(),
            versions: self.versions,
            corpora: self.corpus.clone(),
            rounds: self.rounds.unwrap_or(usual.rounds),
            seed: self.seed,
            memory_mib: self.memory,
            threads: self.threads.unwrap_or(usual.threads),
            expected_bytes: self.expected.clone(),
            methods: self.method.clone(),
            ..usual
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_default_memory_is_that_of_the_settings() {
        let Command::Sketch(wanted) = Cli::parse_from(["silt-lab", "sketch"]).command else { panic!() };
        let expected = Settings { experiments: vec!["sketch".into()], ..Settings::default() };
        assert_eq!(wanted.settings(&["sketch"]), expected);
    }
}

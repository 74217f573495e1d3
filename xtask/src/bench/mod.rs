//! Measurements: of the whole program against its peers, of the parts against what others have. Every benchmark is a
//! test first: a time is printed only for a result that was compared with what it should be.

mod ageing;
mod backup;
mod clients;
mod clones;
mod far;
mod history;
mod mounted;
mod parity;
mod remote;
mod report;
mod restore_order;

use anyhow::Result;
use clap::Subcommand;
use siltstone_testbed::bench::options::{ChunkOptions, ScaleOptions, SimilarOptions, StagesOptions};
use siltstone_testbed::{program, workspace};

/// Words of the command line before those of a benchmark: the program and `bench`.
const WORDS_BEFORE: usize = 2;

/// Which benchmark.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// The whole job: back up, back up again, restore, forget; beside restic and borg on the same data, in the same
    /// run.
    Backup(backup::Options),
    /// Whole histories in every configuration of `silt`, beside restic, borg, kopia, rustic, and zstd against the
    /// version before.
    History(history::Options),
    /// Where the time of a backup goes, stage by stage, beside what each stage's work takes alone.
    Stages(StagesOptions),
    /// A hundred snapshots of one source: whether restoring, backing up and forgetting get slower.
    Ageing(ageing::Options),
    /// Cost of parity in bytes and seconds, and how many files one flipped byte in each container costs without and
    /// with it.
    Parity(parity::Options),
    /// A repository in an object store some milliseconds away: requests, bytes and seconds, beside restic.
    Remote(remote::Options),
    /// A thousand clients of one repository in an object store: what each backup costs, and what it costs to look after
    /// all.
    Clients(clients::Options),
    /// Hosts that are alike, in one repository: what each of them adds, how fast it is backed up, restored and
    /// forgotten, beside restic, borg and kopia.
    Clones(clones::Options),
    /// Reading mounted snapshots: names, trees, a large file, small pieces; beside restic.
    Mounted(mounted::Options),
    /// Reads of a restore: containers needed and read, for the first, the middle and the last snapshot of a history.
    RestoreOrder(restore_order::Options),
    /// Every chunker: how fast it cuts data in memory, and what it saves on real data at equal real averages.
    Chunk(ChunkOptions),
    /// Deltas of chunks and of regions: speed, size, and what they come to on real versions.
    Similar(SimilarOptions),
    /// How time, memory and the repository's own bytes grow with the source, up to 1 TB in ten million files.
    Scale(ScaleOptions),
}

/// Runs one benchmark.
pub(crate) fn run(bench: &Bench) -> Result<()> {
    match bench {
        Bench::Backup(options) => backup::run(options),
        Bench::History(options) => history::run(options),
        Bench::Ageing(options) => ageing::run(options),
        Bench::Parity(options) => parity::run(options),
        Bench::Remote(options) => remote::run(options),
        Bench::Clients(options) => clients::run(options),
        Bench::Clones(options) => clones::run(options),
        Bench::Mounted(options) => mounted::run(options),
        Bench::RestoreOrder(options) => restore_order::run(options),
        Bench::Stages(_) | Bench::Chunk(_) | Bench::Similar(_) | Bench::Scale(_) => by_siltstone_bench(),
    }
}

/// Hands this task's words to the program that has the crates to be measured in it, built as users get them.
fn by_siltstone_bench() -> Result<()> {
    let mut command = workspace::cargo();
    command.args(["run", "--release", "--package", "siltstone-bench", "--"]);
    program::run(command.args(std::env::args_os().skip(WORDS_BEFORE)))
}

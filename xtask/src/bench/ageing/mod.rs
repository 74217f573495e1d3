//! Does age cost? `cargo xtask bench ageing`: a hundred snapshots of one source that keeps its size. After some of them
//! the repository is kept as it is; in the end the newest snapshots of all that were kept are restored in turn, so that
//! what differs is their age and not the moment. With `--thin` there is one a day, and each is followed by a `forget`
//! by a policy as people have it.
//!
//! | file | what |
//! |---|---|
//! | `subject.rs` | the source and how it changes |
//! | `life.rs` | the snapshots, and the restores and the forgetting in the end |
//! | `policy.rs` | a snapshot a day, and which of them are kept |
//! | `table.rs` | rows and tables |

mod life;
mod policy;
mod subject;
mod table;

use anyhow::Result;
use clap::{Args, ValueEnum};
use policy::Policy;
use siltstone_testbed::bench::publish::Output;
use siltstone_testbed::tool::{Name, Settings, Tool};
use siltstone_testbed::workspace;
use std::path::PathBuf;
use subject::{Kind, Subject};

/// Options: what is measured, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
    /// Only these sources; all by default.
    #[arg(long, value_delimiter = ',', value_name = "SOURCES")]
    only: Vec<Kind>,
    /// Your own source: a file or a folder, of which a copy is changed.
    #[arg(long, value_name = "FILE_OR_DIR", conflicts_with = "only")]
    data: Option<PathBuf>,
    /// Number of snapshots; 100 by default, 20 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    versions: Option<u64>,
    /// Rounds in which each restore is measured; 5 by default, 2 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100))]
    rounds: Option<u64>,
    /// One snapshot a day, thinned after each by the rules of `policy.rs`.
    #[arg(long)]
    thin: bool,
}

/// Ages at which a repository is looked at, in snapshots, beside its end.
const AGES: [u64; 6] = [5, 20, 50, 100, 200, 500];

/// The ages that a life of so many snapshots comes to.
fn ages(versions: u64) -> Vec<u64> {
    AGES.into_iter().filter(|age| *age < versions).chain([versions]).collect()
}

/// Runs the benchmark and prints its tables.
pub(super) fn run(options: &Options) -> Result<()> {
    let quick = options.output.quick;
    let versions = options.versions.unwrap_or(if quick { 20 } else { 100 });
    let rounds = options.rounds.unwrap_or(if quick { 2 } else { 5 });
    let kinds = if options.only.is_empty() { Kind::value_variants() } else { &options.only };
    let subjects = match &options.data {
        Some(path) => vec![Subject::given(path)?],
        None => kinds.iter().map(|&kind| Subject::usual(kind, quick)).collect::<Result<_>>()?,
    };
    let policy = if options.thin { Policy::Thinned } else { Policy::KeepAll };
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let tool = Tool::prepare(Name::Silt)?.with(Settings { says_json: true, ..Settings::default() });
    let (mut tables, mut rows) = (String::new(), Vec::new());
    let mut notes = vec![
        format!("silt: {}", tool.version),
        format!("{versions} snapshots; restores and forgetting {rounds} times, taking turns"),
        "shown is the median; spread is (slowest - fastest) / median".to_owned(),
        policy.description(),
    ];
    for subject in &subjects {
        let life = life::lived(subject, &tool, (&ages(versions), policy), rounds, work.path())?;
        let of_life = table::rows(&subject.name, &life);
        tables += &table::tables(&subject.name, &subject.description, &of_life);
        rows.extend(of_life);
        notes.push(format!("{}: {}; restored to {}", subject.name, subject.description, life.restored_to));
    }
    options.output.publish("ageing", &tables, &rows, &notes, work.path())
}

#[cfg(test)]
mod tests {
    use super::ages;

    #[test]
    fn a_short_life_is_looked_at_as_far_as_it_goes() {
        assert_eq!(ages(100), [5, 20, 50, 100]);
        assert_eq!(ages(50), [5, 20, 50]);
        assert_eq!(ages(3), [3]);
        assert_eq!(ages(1000), [5, 20, 50, 100, 200, 500, 1000]);
    }
}

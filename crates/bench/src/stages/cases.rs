//! The cases, each run under watch: one round makes all of them, on new repositories, and compares what they restore.

use super::subject::Subject;
use super::threads::{self, Times};
use anyhow::{Context, Result};
use siltstone_testbed::bench::rounds::{Pile, flush, restored_and_compared};
use siltstone_testbed::json::number_of;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Command that is run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Case {
    /// Only opening the repository: what every command begins with.
    Open,
    /// A new repository.
    First,
    /// The changed source, all files read, nothing migrated.
    Next,
    /// `silt maintain` after [`Self::Next`].
    Maintain,
    /// Both in one, as a user has it.
    NextAndMigrate,
}

/// All, in the order of the tables.
pub(super) const CASES: [Case; 5] = [Case::Open, Case::First, Case::Next, Case::Maintain, Case::NextAndMigrate];

impl Case {
    /// As in the tables.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Open => "snapshots",
            Self::First => "first backup",
            Self::Next => "backup --force --no-migrate",
            Self::Maintain => "maintain",
            Self::NextAndMigrate => "backup --force",
        }
    }
}

/// Cost of a run, as observed.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) cost: Cost,
    /// By stage.
    pub(super) times: BTreeMap<String, Times>,
    /// Bytes of files, read.
    pub(super) read_bytes: u64,
    /// Bytes of new chunks, before they were compressed.
    pub(super) new_bytes: u64,
    /// Written to the repository.
    pub(super) packed_bytes: u64,
}

/// One round: every case once.
pub(super) fn round(subject: &Subject, tool: &Tool, work: &Path) -> Result<Vec<(Case, Observed)>> {
    let folder = tempfile::tempdir_in(work)?;
    let source = folder.path().join("source");
    let mut pile = Pile::below(folder.path())?;
    subject.make(&source)?;
    let one = tool.init(&folder.path().join("one"))?;
    let first = backup(&one, &source, "first", &[])?;
    let before = Listing::of(&source)?;
    let open = observed(one.command().args(["snapshots", "--json"]))?.0;
    let other = one.copied_to(&folder.path().join("other"))?;
    subject.change(&source)?;
    let next = backup(&one, &source, "next", &["--no-migrate"])?;
    flush()?;
    let (mut maintain, said) = observed(one.command().args(["maintain", "--json"]))?;
    maintain.packed_bytes = number(&said, "bytes_migrated")?;
    let mut migrating = backup(&other, &source, "next", &[])?;
    // The repository grew by this less what went.
    migrating.packed_bytes = 0;
    let after = Listing::of(&source)?;
    // Of one what a migration of its own made, of the other what one at once left.
    for (repository, label, listing) in [(&one, "first", &before), (&other, "next", &after)] {
        restored_and_compared(repository, &source, label, listing, &mut pile)?;
    }
    let observed = [open, first, next, maintain, migrating];
    Ok(CASES.into_iter().zip(observed).collect())
}

fn backup(repository: &Repository, source: &Path, label: &str, words: &[&str]) -> Result<Observed> {
    // The source may have been pushed out of the page cache.
    tree::read_all(source)?;
    flush()?;
    let before = tree::bytes(&repository.path())?;
    let mut command = repository.backup_command(source, label, Reading::Everything);
    let (mut observed, said) = observed(command.args(words))?;
    observed.read_bytes = number(&said, "bytes_read")?;
    observed.new_bytes = number(&said, "data_added")?;
    observed.packed_bytes = tree::bytes(&repository.path())?.saturating_sub(before);
    Ok(observed)
}

fn observed(command: &mut Command) -> Result<(Observed, String)> {
    eprintln!("{}", program::command_line(command));
    let (cost, said, times) = program::measured_watched(command, threads::watch)?;
    Ok((Observed { cost, times, ..Observed::default() }, said))
}

fn number(said: &str, key: &str) -> Result<u64> {
    let number = number_of(said, key).with_context(|| format!("`silt --json` names no {key}"))?;
    u64::try_from(number).with_context(|| format!("`silt --json` says that {key} is {number}"))
}

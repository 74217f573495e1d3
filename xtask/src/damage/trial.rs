//! One trial: a copy of the repository, damaged, and some commands run on it, each held against what must never be.

use super::mutation::Mutation;
use super::scene::{Scene, Version};
use anyhow::{Context, Result, bail, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::program::{self, Ended};
use siltstone_testbed::tool::{Repository, restored_place};
use siltstone_testbed::tree::Listing;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// No command on a repository of a few megabytes takes longer, even on a busy machine.
const TIME_MAX: Duration = Duration::from_mins(2);
/// No command takes more, with `--memory` at its default of 512 MiB.
const MEMORY_BYTES_MAX: u64 = 640 << 20;
/// The exit codes that are documented.
const CODES: [i32; 8] = [0, 1, 3, 10, 11, 12, 13, 14];

/// Outcome of a trial.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) commands: u64,
    /// True if all of them ended with 0.
    pub(super) unhurt: bool,
    pub(super) peak_bytes: u64,
}

/// Commands that may be run before the restores.
const COMMANDS: [&[&str]; 15] = [
    &["check"],
    &["check", "--read-data"],
    &["snapshots"],
    &["ls", "latest"],
    &["stats"],
    &["key", "list"],
    &["forget", "--keep-last", "2"],
    &["forget", "--keep-last", "1", "--dry-run"],
    &["rewrite", "--exclude", "folder1", "--forget"],
    &["maintain"],
    &["unlock"],
    &["dump", "latest", "/"],
    &["repair", "--yes"],
    &["backup"],
    &["backup", "--force"],
];

/// A damaged copy of the scene's repository, below a folder of its own.
pub(super) fn mutated(scene: &Scene, mutation: &Mutation) -> Result<(TempDir, Repository)> {
    let folder = tempfile::tempdir_in(&scene.folder)?;
    let repository = scene.repository.copied_to(&folder.path().join("copy"))?;
    mutation.apply(&repository.path(), &mut Sequence::new(0))?;
    Ok((folder, repository))
}

/// Runs a trial.
pub(super) fn run(scene: &Scene, mutation: &Mutation, sequence: &mut Sequence) -> Result<Outcome> {
    let (folder, repository) = mutated(scene, mutation)?;
    let outcome = Outcome { unhurt: true, ..Outcome::default() };
    let mut trial = Trial { scene, repository, folder: folder.path(), outcome };
    let version = &scene.versions[sequence.index(scene.versions.len())];
    trial.restore(version)?;
    for _ in 0..=sequence.below(3) {
        let words = COMMANDS[sequence.index(COMMANDS.len())];
        let ended = trial.command(words)?;
        if words[0] == "backup" && ended.code == Some(0) {
            trial.restore_newest()?;
        }
    }
    trial.restore(version)?;
    Ok(trial.outcome)
}

/// The files of a version that do not come back, whatever the restore says.
pub(super) fn files_lost(scene: &Scene, repository: &Repository, folder: &Path, version: &Version) -> Result<usize> {
    let target = folder.join(format!("lost-{}", version.label));
    program::ended_within(repository.command().args(["restore", &version.id, "--target"]).arg(&target), TIME_MAX)?;
    let place = restored_place(&scene.source, &target)?;
    let found = if place.exists() { version.listing.files_in(&Listing::of(&place)?) } else { 0 };
    Ok(version.listing.files() - found)
}

struct Trial<'t> {
    scene: &'t Scene,
    repository: Repository,
    folder: &'t Path,
    outcome: Outcome,
}

impl Trial<'_> {
    /// Runs a command that may fail, but only as documented.
    fn run(&mut self, command: &mut Command) -> Result<Ended> {
        let line = program::command_line(command);
        let ended = program::ended_within(command, TIME_MAX)?;
        let said = ended.said.trim_end();
        ensure!(!ended.overdue, "`{line}` did not end within {} s\n{said}", TIME_MAX.as_secs());
        ensure!(!said.contains("panicked"), "`{line}` panicked\n{said}");
        ensure!(ended.code.is_some_and(|code| CODES.contains(&code)), "`{line}` ended with {:?}\n{said}", ended.code);
        ensure!(ended.cost.peak_bytes <= MEMORY_BYTES_MAX, "`{line}` took {} MiB\n{said}", ended.cost.peak_bytes >> 20);
        self.outcome.commands += 1;
        self.outcome.unhurt &= ended.code == Some(0);
        self.outcome.peak_bytes = self.outcome.peak_bytes.max(ended.cost.peak_bytes);
        Ok(ended)
    }

    fn command(&mut self, words: &[&str]) -> Result<Ended> {
        let mut command = self.repository.command();
        command.args(words);
        if words[0] == "backup" {
            command.arg(&self.scene.source);
        }
        self.run(&mut command)
    }

    /// Restores a version: exactly, or with an error and no file that lies. It may have been forgotten meanwhile.
    fn restore(&mut self, version: &Version) -> Result<()> {
        self.restore_snapshot(&[&version.id], &version.listing, false)
    }

    /// Restores what was just backed up: exactly.
    fn restore_newest(&mut self) -> Result<()> {
        let listing = Listing::of(&self.scene.source)?;
        let path = self.scene.source.display().to_string();
        self.restore_snapshot(&["latest", "--path", &path], &listing, true)
    }

    fn restore_snapshot(&mut self, which: &[&str], listing: &Listing, must: bool) -> Result<()> {
        let target = tempfile::tempdir_in(self.folder)?;
        let mut command = self.repository.command();
        command.arg("restore").args(which).arg("--target").arg(target.path());
        let ended = self.run(&mut command)?;
        let place = restored_place(&self.scene.source, target.path())?;
        let found = if place.exists() { Some(Listing::of(&place)?) } else { None };
        let said = || format!("restore of {} ended with {:?}:\n{}", which[0], ended.code, ended.said.trim_end());
        match found {
            Some(found) if ended.code == Some(0) => listing.expect_same(&found).with_context(said),
            None if ended.code == Some(0) => bail!("nothing was restored; {}", said()),
            _ if must => bail!("a backup that ended well does not come back; {}", said()),
            Some(found) => listing.expect_no_false_file(&found).with_context(said),
            None => Ok(()),
        }
    }
}

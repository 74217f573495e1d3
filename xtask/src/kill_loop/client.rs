//! One client: a source, a series, and what its repository must hold of it.

use super::place::{Site, drawn_below};
use super::source;
use anyhow::{Context, Result, bail, ensure};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::program::{self, Ended, command_line};
use siltstone_testbed::tool::{Reading, Repository, restored_place};
use siltstone_testbed::tree::Listing;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// When there are this many snapshots, some are forgotten.
const SNAPSHOTS_MAX: usize = 6;
/// No command takes longer, whatever trouble its place has.
const TIME_MAX: Duration = Duration::from_mins(15);
/// The exit code of a command whose place is away.
const FAILED: i32 = 1;

/// See the module.
pub(super) struct Client {
    number: u64,
    site: Site,
    sequence: Sequence,
    source: PathBuf,
    target: PathBuf,
    repository: Repository,
    /// The snapshots that must be there, and what each must restore to.
    committed: BTreeMap<String, Listing>,
    /// About what each kind of command takes when left alone: moments to kill are drawn from a little more than that.
    usual: [Duration; KINDS],
    /// Restores are among what it does, not only what it is judged by.
    restores: bool,
}

/// A command that a client is to run.
pub(super) struct Act {
    deed: Deed,
    command: Command,
    /// It is killed after this; `None`: it is not.
    killed_after: Option<Duration>,
}

/// The purpose of a command.
enum Deed {
    Backup { label: String, listing: Listing },
    Forget { labels: Vec<String> },
    Restore { label: String },
}

const KINDS: usize = 3;

impl Deed {
    fn kind(&self) -> usize {
        match self {
            Self::Backup { .. } => 0,
            Self::Forget { .. } => 1,
            Self::Restore { .. } => 2,
        }
    }
}

/// The end of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// It did what it was to do.
    Finished,
    /// It was killed.
    Killed,
    /// It said that its place was away.
    Away,
}

/// A command that came to its end.
pub(super) struct Ran {
    deed: Deed,
    pub(super) ending: Ending,
}

/// Has a backup go to the series of this client, and borrow of the first one's.
fn in_series(command: &mut Command, number: u64) -> &mut Command {
    let series = |number: u64| format!("client-{number}");
    command.args(["--series", &series(number)]);
    if number > 0 {
        command.args(["--borrow", &series(0)]);
    }
    command
}

impl Client {
    /// Makes a source below `folder` and backs it up twice; a first snapshot is forgotten.
    pub(super) fn begin(
        number: u64,
        repository: Repository,
        site: &Site,
        folder: &Path,
        options: &super::Options,
    ) -> Result<Self> {
        let mut sequence = Sequence::of(&[options.seed, number]);
        let (source, target) = (folder.join("source"), folder.join("restored"));
        let shared_megabytes = options.megabytes / 2;
        source::generate(&source.join("shared"), shared_megabytes, &mut Sequence::of(&[options.seed]))?;
        source::generate(&source.join("own"), options.megabytes - shared_megabytes, &mut sequence)?;
        let labels = ["a", "b"].map(|begin| format!("{number}-{begin}"));
        let back_up = |label: &str| {
            let mut command = repository.backup_command(&source, label, Reading::Changed);
            program::measured(in_series(&mut command, number))
        };
        let [whole, _] = [back_up(&labels[0])?, back_up(&labels[1])?];
        let forgotten = repository.forget(&labels[..1])?;
        let restores = site.is_distant() || options.clients > 1;
        let committed = BTreeMap::from([(labels[1].clone(), Listing::of(&source)?)]);
        let usual = [whole.wall, forgotten.wall, whole.wall];
        let site = site.clone();
        Ok(Self { number, site, sequence, source, target, repository, committed, usual, restores })
    }

    /// The snapshots of this client that are there.
    pub(super) fn snapshots(&self) -> impl Iterator<Item = &String> {
        self.committed.keys()
    }

    /// Draws what to do next, and when it is killed.
    pub(super) fn plan(&mut self, round: u64) -> Result<Act> {
        let deed = self.drawn_deed(round)?;
        let command = match &deed {
            Deed::Backup { label, .. } => self.backup_command(label),
            Deed::Forget { labels } => self.repository.forget_command(labels)?,
            Deed::Restore { label } => self.repository.restore_command(label, &self.target)?,
        };
        let mut act = Act { command, killed_after: None, deed };
        let usual = self.usual[act.deed.kind()];
        self.site.shorten_connections(&mut act.command, usual, &mut self.sequence);
        // At a distance half of the commands have the trouble of their place alone.
        if !self.site.is_distant() || self.sequence.below(2) == 0 {
            act.killed_after = Some(drawn_below(usual * 12 / 10, &mut self.sequence));
        }
        Ok(act)
    }

    fn backup_command(&self, label: &str) -> Command {
        let mut command = self.repository.backup_command(&self.source, label, Reading::Everything);
        in_series(&mut command, self.number);
        command
    }

    /// A backup that is given no connection.
    pub(super) fn plan_away(&mut self) -> Result<Act> {
        let deed = self.next_backup("away")?;
        let Deed::Backup { label, .. } = &deed else { bail!("a backup is no backup") };
        let mut command = self.backup_command(label);
        self.site.disconnect(&mut command);
        Ok(Act { deed, command, killed_after: None })
    }

    fn drawn_deed(&mut self, round: u64) -> Result<Deed> {
        let count = self.committed.len();
        if count >= SNAPSHOTS_MAX || (count > 2 && self.sequence.below(4) == 0) {
            return Ok(Deed::Forget { labels: self.some_labels() });
        }
        if self.restores && self.sequence.below(4) == 0 {
            let label = self.some_labels().swap_remove(0);
            return Ok(Deed::Restore { label });
        }
        self.next_backup(&round.to_string())
    }

    fn next_backup(&mut self, name: &str) -> Result<Deed> {
        source::change(&self.source, &mut self.sequence)?;
        Ok(Deed::Backup { label: format!("{}-{name}", self.number), listing: Listing::of(&self.source)? })
    }

    /// One of the snapshots or more.
    fn some_labels(&mut self) -> Vec<String> {
        let labels: Vec<String> = self.committed.keys().cloned().collect();
        let count = 1 + self.sequence.index(labels.len().saturating_sub(1).max(1));
        let chosen: BTreeSet<String> = (0..count).map(|_| labels[self.sequence.index(labels.len())].clone()).collect();
        chosen.into_iter().collect()
    }

    /// Runs a command; it must end well, by its kill, or by an error that names the place.
    pub(super) fn carry_out(&mut self, act: Act) -> Result<Ran> {
        let Act { deed, mut command, killed_after } = act;
        let ended = program::ended_within(&mut command, killed_after.unwrap_or(TIME_MAX))?;
        let ending = self
            .ending(&ended, killed_after.is_some())
            .with_context(|| format!("`{}` of client {}", command_line(&command), self.number))?;
        let usual = &mut self.usual[deed.kind()];
        *usual = adapted(*usual, ending, ended.cost.wall);
        Ok(Ran { deed, ending })
    }

    fn ending(&self, ended: &Ended, is_killed: bool) -> Result<Ending> {
        match ended.code {
            Some(0) => Ok(Ending::Finished),
            None if ended.overdue && is_killed => Ok(Ending::Killed),
            None => bail!("it did not end within {} s:\n{}", TIME_MAX.as_secs(), ended.said),
            Some(FAILED) if self.site.is_distant() => {
                let named = ended.said.contains(&self.site.place.address) && !ended.said.contains("panicked");
                ensure!(named, "it failed and does not name its place:\n{}", ended.said);
                eprintln!("client {}: {}", self.number, ended.said.trim_end().lines().last().unwrap_or_default());
                Ok(Ending::Away)
            }
            Some(code) => bail!("it failed with the exit code {code}:\n{}", ended.said),
        }
    }

    /// Finds out what came of a command, and holds it against how it ended.
    pub(super) fn settle(&mut self, ran: Ran) -> Result<()> {
        let is_done = ran.ending == Ending::Finished;
        match ran.deed {
            Deed::Backup { label, listing } => self.settle_backup(label, listing, is_done),
            Deed::Forget { labels } => self.settle_forget(&labels, is_done),
            Deed::Restore { label } => self.settle_restore(&label, is_done),
        }
    }

    fn settle_backup(&mut self, label: String, listing: Listing, is_done: bool) -> Result<()> {
        let is_listed = self.listed()?.contains(&label);
        ensure!(is_listed || !is_done, "a backup that ended well is not listed");
        if is_listed {
            self.committed.insert(label, listing);
        }
        Ok(())
    }

    fn settle_forget(&mut self, labels: &[String], is_done: bool) -> Result<()> {
        let left = self.listed()?;
        let gone: Vec<&String> = labels.iter().filter(|label| !left.contains(*label)).collect();
        ensure!(gone.len() == labels.len() || !is_done, "a forget that ended well left a snapshot");
        ensure!(
            gone.is_empty() || gone.len() == labels.len(),
            "a forget was done by half: of {labels:?} only {gone:?}"
        );
        for label in gone {
            self.committed.remove(label);
        }
        Ok(())
    }

    fn settle_restore(&mut self, label: &str, is_done: bool) -> Result<()> {
        let (place, expected) = (restored_place(&self.source, &self.target)?, &self.committed[label]);
        if is_done {
            expected.expect_same(&Listing::of(&place)?)?;
        } else if place.exists() {
            expected.expect_no_false_file(&Listing::of(&place)?)?;
        }
        Ok(fs::remove_dir_all(&self.target)?)
    }

    /// Labels of this client's snapshots that the repository lists.
    fn listed(&self) -> Result<BTreeSet<String>> {
        let own = format!("{}-", self.number);
        Ok(self.repository.labels()?.into_iter().filter(|label| label.starts_with(&own)).collect())
    }

    /// Restores every snapshot and compares it.
    pub(super) fn verify(&self) -> Result<()> {
        self.repository.expect_restored(&self.committed, &self.source, &self.target).map(drop)
    }
}

/// Later runs are not as long as the first: the estimate follows, so that most are killed at work but some come to
/// their end.
fn adapted(usual: Duration, ending: Ending, wall: Duration) -> Duration {
    match ending {
        Ending::Finished => usual.min(wall),
        Ending::Killed => usual * 21 / 20,
        Ending::Away => usual,
    }
}

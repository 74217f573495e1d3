//! `kill -9` on the real program at random moments, again and again. After each: nothing that was committed is lost or
//! changed, a snapshot that was being forgotten is either still whole or gone, `check --read-data` is clean, and every
//! snapshot listed comes back as its source was. What the program has to be told after being killed: nothing.

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::program::{self, Ending};
use siltstone_testbed::tool::{Name, Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::workspace::Build;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Options of the kill loop.
#[derive(Args)]
pub(crate) struct Options {
    /// Programs to kill.
    #[arg(long, default_value_t = 200)]
    rounds: u64,
    /// Seed that the moments and the edits are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Size of the source in MB.
    #[arg(long, default_value_t = 64)]
    megabytes: u64,
    /// Use the release build.
    #[arg(long)]
    release: bool,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { rounds: 12, seed: 1, megabytes: 12, release: false }
    }
}

/// When there are this many snapshots, some are forgotten.
const SNAPSHOTS_MAX: usize = 6;

/// Runs the loop; the first thing that is not as it should be ends it with the seed and the round.
pub(crate) fn run(options: &Options) -> Result<()> {
    let silt = Tool::silt_for_trials(Build::of(options.release), &[])?;
    let folder = tempfile::tempdir()?;
    let mut state = State::begin(&silt, folder.path(), options)?;
    for round in 0..options.rounds {
        state.round(round).with_context(|| format!("seed {}, round {round}", options.seed))?;
    }
    println!(
        "kill-loop: {} programs run, {} of them killed, {} snapshots left and whole",
        options.rounds,
        state.killed,
        state.committed.len()
    );
    Ok(())
}

struct State {
    sequence: Sequence,
    source: PathBuf,
    target: PathBuf,
    repository: Repository,
    /// The snapshots that must be there, and what each must restore to.
    committed: BTreeMap<String, Listing>,
    /// About what a backup and a forget take when left alone: moments to kill are drawn from a little more than that.
    backup_time: Duration,
    forget_time: Duration,
    killed: u64,
}

impl State {
    fn begin(silt: &Tool, folder: &Path, options: &Options) -> Result<Self> {
        ensure!(silt.name == Name::Silt, "only silt is tested here");
        let mut sequence = Sequence::new(options.seed);
        let source = folder.join("source");
        generate(&source, options.megabytes, &mut sequence)?;
        let repository = silt.init(&folder.join("silt"))?;
        let whole = repository.backup(&source, "begin-0", Reading::Changed)?;
        repository.backup(&source, "begin-1", Reading::Changed)?;
        let forgotten = repository.forget(&["begin-0".to_owned()])?;
        let committed = BTreeMap::from([("begin-1".to_owned(), Listing::of(&source)?)]);
        let target = folder.join("restored");
        let (backup_time, forget_time) = (whole.wall, forgotten.wall);
        Ok(Self { sequence, source, target, repository, committed, backup_time, forget_time, killed: 0 })
    }

    fn round(&mut self, round: u64) -> Result<()> {
        let forgets =
            self.committed.len() >= SNAPSHOTS_MAX || (self.committed.len() > 2 && self.sequence.below(4) == 0);
        if forgets {
            self.killed_forget()?;
        } else {
            self.killed_backup(round)?;
        }
        self.verify()
    }

    fn killed_backup(&mut self, round: u64) -> Result<()> {
        change(&self.source, &mut self.sequence)?;
        let label = format!("round-{round}");
        let listing = Listing::of(&self.source)?;
        let mut command = self.repository.backup_command(&self.source, &label, Reading::Everything);
        let ending = self.kill(&mut command, self.backup_time)?;
        self.backup_time = adapted(self.backup_time, ending);
        let is_listed = self.repository.labels()?.contains(&label);
        ensure!(is_listed || ending == Ending::Killed, "a backup that ended well is not listed");
        if is_listed {
            self.committed.insert(label, listing);
        }
        Ok(())
    }

    fn killed_forget(&mut self) -> Result<()> {
        let labels: Vec<String> = self.committed.keys().cloned().collect();
        let count = 1 + self.sequence.index(labels.len() - 1);
        let chosen: BTreeSet<String> = (0..count).map(|_| labels[self.sequence.index(labels.len())].clone()).collect();
        let chosen: Vec<String> = chosen.into_iter().collect();
        let mut command = self.repository.forget_command(&chosen)?;
        let ending = self.kill(&mut command, self.forget_time)?;
        self.forget_time = adapted(self.forget_time, ending);
        let left = self.repository.labels()?;
        let gone: Vec<&String> = chosen.iter().filter(|label| !left.contains(label)).collect();
        ensure!(gone.len() == chosen.len() || ending == Ending::Killed, "a forget that ended well left a snapshot");
        ensure!(
            gone.is_empty() || gone.len() == chosen.len(),
            "a forget was done by half: of {chosen:?} only {gone:?}"
        );
        for label in gone {
            self.committed.remove(label);
        }
        Ok(())
    }

    fn kill(&mut self, command: &mut std::process::Command, usual: Duration) -> Result<Ending> {
        let longest = u64::try_from(usual.as_micros()).unwrap_or(u64::MAX) * 12 / 10;
        let delay = Duration::from_micros(self.sequence.below(longest.max(1)));
        let ending = program::killed_after(command, delay)?;
        self.killed += u64::from(ending == Ending::Killed);
        Ok(ending)
    }

    fn verify(&self) -> Result<()> {
        let listed: BTreeSet<String> = self.repository.labels()?.into_iter().collect();
        let expected: BTreeSet<String> = self.committed.keys().cloned().collect();
        if listed != expected {
            bail!("snapshots listed: {listed:?}; snapshots committed: {expected:?}");
        }
        program::quietly(self.repository.command().args(["check", "--read-data"]))?;
        for (label, expected) in &self.committed {
            let (_, place) = self.repository.restore(label, &self.source, &self.target)?;
            expected
                .expect_same(&Listing::of(&place)?)
                .with_context(|| format!("snapshot {label} came back differently"))?;
            fs::remove_dir_all(&self.target)?;
        }
        Ok(())
    }
}

/// Later runs are not as long as the first: the estimate follows, so that most are killed at work but some come to
/// their end.
fn adapted(usual: Duration, ending: Ending) -> Duration {
    match ending {
        Ending::Finished => usual * 4 / 5,
        Ending::Killed => usual * 21 / 20,
    }
}

/// Files of many sizes, half of whose bytes compress.
pub(crate) fn generate(source: &Path, megabytes: u64, sequence: &mut Sequence) -> Result<()> {
    let mut left = megabytes * 1_000_000;
    let mut number = 0_u64;
    while left > 0 {
        let folder = source.join(format!("folder{}", number % 23));
        fs::create_dir_all(&folder)?;
        let bytes = (1 << sequence.below(22)).min(left);
        fs::write(folder.join(format!("file{number}")), content(usize::try_from(bytes)?, sequence))?;
        left -= bytes;
        number += 1;
    }
    Ok(())
}

fn content(bytes: usize, sequence: &mut Sequence) -> Vec<u8> {
    let mut content = sequence.bytes(bytes);
    content.chunks_mut(1 << 10).step_by(2).for_each(|block| block.fill(b'.'));
    content
}

/// Rewrites, removes and adds a few files.
fn change(source: &Path, sequence: &mut Sequence) -> Result<()> {
    let files = tree::files(source)?;
    for _ in 0..=files.len() / 50 {
        let path = &files[sequence.index(files.len())];
        let bytes = 1 << sequence.below(20);
        fs::write(path, content(bytes, sequence))?;
    }
    let removed = &files[sequence.index(files.len())];
    fs::rename(removed, removed.with_extension(sequence.below(1000).to_string()))?;
    let bytes = 1 << sequence.below(21);
    fs::write(source.join(format!("new{}", sequence.below(1_000_000))), content(bytes, sequence))?;
    Ok(())
}

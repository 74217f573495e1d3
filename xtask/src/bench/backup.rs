//! The whole job of a backup program, beside the peers. On each kind of data two things are measured, in every round
//! with new repositories, the tools taking turns at every phase so that a slow moment of the machine meets all of them:
//!
//! 1. *One source*: as many of the newest versions side by side as make about 1 GB. First backup; second after one
//!    percent was edited, all files read; third with nothing changed; restore of the newest snapshot.
//! 2. *All versions*: the source becomes each version in turn, each one a snapshot; then every second snapshot is
//!    forgotten and its space given back.
//!
//! The source is in the page cache, dirty pages are flushed before each measurement. Restored trees are compared with
//! the source in content and metadata before anything is printed.

use super::report::{Report, Sample};
use anyhow::{Context, Result};
use clap::Args;
use siltstone_testbed::bench::Rounds;
use siltstone_testbed::bench::publish::Output;
use siltstone_testbed::bench::rounds::{self, Pile, copied, flush, restored_and_compared, turns};
use siltstone_testbed::corpus::{self, Amount, Corpus};
use siltstone_testbed::program::Cost;
use siltstone_testbed::tool::{Name, Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use siltstone_testbed::{edit, workspace};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

const FIRST: &str = "first backup";
const CHANGED: &str = "1 % changed, all read";
const UNCHANGED: &str = "unchanged";
const RESTORE: &str = "restore";
const VERSIONS: &str = "all versions";
const FORGET: &str = "forget half";

/// Options: what is measured, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    output: Output,
    /// Your own versions: a folder with one file or folder per version, in the order of their names.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    #[command(flatten)]
    rounds: Rounds,
    /// Which programs to measure.
    #[arg(long, value_delimiter = ',', default_value = "silt,restic,borg")]
    tools: Vec<Name>,
}

impl Options {
    fn amount(&self) -> Amount {
        if self.output.quick { Amount::Little } else { Amount::Full }
    }

    fn rounds(&self) -> u64 {
        self.rounds.number(&self.output, 3)
    }

    fn corpora(&self) -> Result<Vec<Corpus>> {
        match &self.data {
            Some(folder) => Ok(vec![corpus::given(folder)?]),
            None => workspace::corpora()?.standard(self.amount()),
        }
    }
}

/// Runs the benchmark and prints its tables.
pub(super) fn run(options: &Options) -> Result<()> {
    let tools = options.tools.iter().map(|&name| Tool::prepare(name)).collect::<Result<Vec<_>>>()?;
    let corpora = options.corpora()?;
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let mut report = Report::default();
    let mut notes: Vec<String> = tools.iter().map(|tool| format!("{}: {}", tool.name.text(), tool.version)).collect();
    notes.push(format!("rounds: {}; shown is the median, spread is (slowest - fastest) / median", options.rounds()));
    for corpus in &corpora {
        let source_bytes_wanted = if options.amount() == Amount::Full { 1_000_000_000 } else { 40_000_000 };
        for round in 0..options.rounds() {
            let mut bench = Round { tools: &tools, corpus, number: round, work: work.path(), report: &mut report };
            bench.one_source(source_bytes_wanted)?;
            bench.all_versions()?;
        }
        notes.push(format!("{}: {}", corpus.name, corpus.description));
    }
    options.output.publish("backup", &report.tables(), &report.rows(), &notes, work.path())
}

/// One round on one kind of data.
struct Round<'a> {
    tools: &'a [Tool],
    corpus: &'a Corpus,
    number: u64,
    work: &'a Path,
    report: &'a mut Report,
}

impl Round<'_> {
    fn one_source(&mut self, bytes_wanted: u64) -> Result<()> {
        let folder = tempfile::tempdir_in(self.work)?;
        let source = folder.path().join("source");
        fs::create_dir(&source)?;
        for version in self.corpus.newest(bytes_wanted)? {
            let name = version.file_name().context("a version has a name")?;
            tree::copy(version, &source.join(name))?;
        }
        let repositories = self.repositories(folder.path())?;

        self.backups(FIRST, &repositories, &source, "first", Reading::Changed)?;
        edit::one_percent(&source, self.number)?;
        self.backups(CHANGED, &repositories, &source, "changed", Reading::Everything)?;
        self.plain_read(&source)?;
        self.backups(UNCHANGED, &repositories, &source, "unchanged", Reading::Changed)?;
        self.plain_walk(&source)?;
        self.restores(&repositories, &source, "unchanged", folder.path())
    }

    fn all_versions(&mut self) -> Result<()> {
        let folder = tempfile::tempdir_in(self.work)?;
        let source = folder.path().join("source");
        let repositories = self.repositories(folder.path())?;
        let mut costs = vec![Cost::default(); repositories.len()];
        let mut source_bytes = 0;
        let mut newest = None;
        let labels: Vec<String> = (0..self.corpus.versions.len()).map(|number| format!("v{number:03}")).collect();
        for (count, (version, label)) in self.corpus.versions.iter().zip(&labels).enumerate() {
            tree::make_equal(&source, version)?;
            source_bytes += tree::read_all(&source)?;
            for index in turns(repositories.len(), self.number + count as u64) {
                self.say(VERSIONS, label, &repositories[index]);
                flush()?;
                costs[index] = costs[index].then(repositories[index].backup(&source, label, Reading::Changed)?);
            }
            newest = Some(label);
        }
        for (repository, cost) in repositories.iter().zip(costs) {
            self.add(VERSIONS, repository, cost, Some(source_bytes))?;
        }
        self.forget_half(&repositories, &labels)?;
        let newest = newest.context("there is at least one version")?;
        verify(&repositories, &source, newest, folder.path())
    }

    fn repositories(&self, folder: &Path) -> Result<Vec<Repository>> {
        self.tools.iter().map(|tool| tool.init(&folder.join(tool.name.text()))).collect()
    }

    /// One backup by each tool.
    fn backups(
        &mut self,
        phase: &'static str,
        repositories: &[Repository],
        source: &Path,
        label: &str,
        reading: Reading,
    ) -> Result<()> {
        for index in turns(repositories.len(), self.number) {
            let repository = &repositories[index];
            self.say(phase, label, repository);
            flush()?;
            // Read again for each: what was measured before may have pushed the source out of the page cache.
            let source_bytes = tree::read_all(source)?;
            let cost = repository.backup(source, label, reading)?;
            self.add(phase, repository, cost, Some(source_bytes))?;
        }
        Ok(())
    }

    /// One restore by each tool, compared with the source; and what `cp -r` takes for the same.
    fn restores(&mut self, repositories: &[Repository], source: &Path, label: &str, folder: &Path) -> Result<()> {
        let expected = Listing::of(source)?;
        let mut pile = Pile::below(folder)?;
        for index in turns(repositories.len(), self.number) {
            let repository = &repositories[index];
            self.say(RESTORE, label, repository);
            let (cost, _) = restored_and_compared(repository, source, label, &expected, &mut pile)?;
            let sample = Sample { cost, source_bytes: Some(expected.bytes()), repository_bytes: None };
            self.report.add(&self.corpus.name, RESTORE, repository.name().text(), sample);
        }
        let cost = copied(source, expected.bytes(), &mut pile)?;
        let sample = Sample { cost, source_bytes: Some(expected.bytes()), repository_bytes: None };
        self.report.add(&self.corpus.name, RESTORE, "cp -r", sample);
        Ok(())
    }

    /// Forgets every second snapshot, never the newest.
    fn forget_half(&mut self, repositories: &[Repository], labels: &[String]) -> Result<()> {
        let half = rounds::half(labels);
        if half.is_empty() {
            return Ok(());
        }
        for index in turns(repositories.len(), self.number) {
            let repository = &repositories[index];
            self.say(FORGET, &format!("{} snapshots", half.len()), repository);
            flush()?;
            let cost = repository.forget(&half)?;
            self.add(FORGET, repository, cost, None)?;
        }
        Ok(())
    }

    /// Measures reading the source alone, on one thread: no backup that reads all can be faster on one.
    fn plain_read(&mut self, source: &Path) -> Result<()> {
        let begin = Instant::now();
        let source_bytes = tree::read_all(source)?;
        let cost = Cost { wall: begin.elapsed(), ..Cost::default() };
        let sample = Sample { cost, source_bytes: Some(source_bytes), repository_bytes: None };
        self.report.add(&self.corpus.name, CHANGED, "only read", sample);
        Ok(())
    }

    /// Measures walking the source alone.
    fn plain_walk(&mut self, source: &Path) -> Result<()> {
        let begin = Instant::now();
        tree::bytes(source)?;
        let cost = Cost { wall: begin.elapsed(), ..Cost::default() };
        let sample = Sample { cost, source_bytes: None, repository_bytes: None };
        self.report.add(&self.corpus.name, UNCHANGED, "only stat", sample);
        Ok(())
    }

    fn add(
        &mut self,
        phase: &'static str,
        repository: &Repository,
        cost: Cost,
        source_bytes: Option<u64>,
    ) -> Result<()> {
        let repository_bytes = Some(tree::bytes(&repository.path())?);
        let sample = Sample { cost, source_bytes, repository_bytes };
        self.report.add(&self.corpus.name, phase, repository.name().text(), sample);
        Ok(())
    }

    fn say(&self, phase: &str, label: &str, repository: &Repository) {
        eprintln!("{}, round {}: {phase}, {label}, {}", self.corpus.name, self.number + 1, repository.name().text());
    }
}

/// After forgetting, the newest snapshot must still be there, whole.
fn verify(repositories: &[Repository], source: &Path, label: &str, folder: &Path) -> Result<()> {
    let expected = Listing::of(source)?;
    let mut pile = Pile::below(folder)?;
    for repository in repositories {
        restored_and_compared(repository, source, label, &expected, &mut pile)?;
    }
    Ok(())
}

//! One history, once: each version in place, backed up by every configuration in turn; then the restores, some times
//! over, beside `cp -r`; the forgetting, and the restores of what is left. A configuration that fails takes no further
//! part and says why.

use super::Effort;
use super::configuration::Prepared;
use super::outcome::{AT_REST, AtRest, Backup, Forgotten, Outcome, Restores};
use super::versions::{RESTORED, Taken, Versions};
use anyhow::Result;
use siltstone_testbed::bench::rounds::{Pile, copied, flush, half, restored_and_compared, turns};
use siltstone_testbed::corpus::Corpus;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::{Name, Reading, Repository};
use siltstone_testbed::tree;
use std::path::Path;

/// Findings of a round.
pub(super) struct Found {
    /// Outcome of each configuration, in order: what it came to, or why it failed.
    pub(super) outcomes: Vec<Result<Outcome>>,
    /// Source bytes and costs of `cp -r` of the last version, one for each round of restores.
    pub(super) copies: Restores,
}

/// A configuration at work.
struct Subject {
    name: &'static str,
    repository: Repository,
    outcome: Result<Outcome>,
}

/// Runs round `number` of this history.
pub(super) fn run(corpus: &Corpus, prepared: &[Prepared], number: u64, effort: Effort, work: &Path) -> Result<Found> {
    let folder = tempfile::tempdir_in(work)?;
    let work = folder.path();
    let mut subjects = Vec::new();
    for prepared in prepared {
        let name = prepared.configuration.name;
        let repository = prepared.tool.init(&work.join(name))?;
        subjects.push(Subject { name, repository, outcome: Ok(Outcome::default()) });
    }
    let mut round = Round { corpus, number, steps: 0, subjects };
    let mut versions = Versions::new(corpus, work);
    let source = versions.source();
    while let Some(taken) = versions.advance()? {
        round.in_turn(&format!("backup of {}", taken.label), |subject| subject.back_up(&source, taken));
    }
    round.in_turn("size", Subject::weigh);
    let mut pile = Pile::below(work)?;
    let mut copies = Restores::of(versions.newest()?.bytes);
    for restore_round in 1..=effort.restore_rounds {
        for (at, taken) in versions.restored()?.into_iter().enumerate() {
            let step = format!("restore {restore_round} of {}", taken.label);
            round.in_turn(&step, |subject| subject.restore(&source, at, taken, &mut pile));
        }
        // Right after the last snapshot, which it stands beside.
        copies.costs.push(copied(&source, copies.bytes, &mut pile)?);
    }
    round.subjects.iter_mut().for_each(|subject| subject.note(|outcome| outcome.copies = copies.clone()));
    if effort.at_rest {
        let newest = versions.newest()?;
        round.in_turn("at rest", |subject| subject.rest(&source, newest, effort.restore_rounds, work, &mut pile));
    }
    let labels = versions.labels();
    round.in_turn("forget half", |subject| subject.forget(&half(&labels)));
    round.in_turn("restore of the rest", |subject| subject.restore_rest(&source, &versions, &mut pile));
    Ok(Found { outcomes: round.subjects.into_iter().map(|subject| subject.outcome).collect(), copies })
}

struct Round<'a> {
    corpus: &'a Corpus,
    number: u64,
    /// Taken so far.
    steps: u64,
    subjects: Vec<Subject>,
}

impl Round<'_> {
    /// One step of every configuration that has not failed yet, beginning with another one each time.
    fn in_turn(&mut self, step: &str, mut work: impl FnMut(&mut Subject) -> Result<()>) {
        self.steps += 1;
        eprintln!("{}, round {}: {step}", self.corpus.name, self.number + 1);
        for index in turns(self.subjects.len(), self.number + self.steps) {
            let subject = &mut self.subjects[index];
            if subject.outcome.is_err() {
                continue;
            }
            if let Err(error) = work(subject) {
                eprintln!("{}: {}: {step} failed: {error:#}", self.corpus.name, subject.name);
                subject.outcome = Err(error.context(format!("{step} failed")));
            }
        }
    }
}

impl Subject {
    fn back_up(&mut self, source: &Path, taken: &Taken) -> Result<()> {
        flush()?;
        let mut command = self.repository.backup_command(source, &taken.label, Reading::Changed);
        let (cost, said) = program::measured_saying(&mut command)?;
        self.note(|outcome| outcome.backups.push(Backup::new(cost, taken.bytes, &said)));
        Ok(())
    }

    fn weigh(&mut self) -> Result<()> {
        let bytes = tree::bytes(&self.repository.path())?;
        self.note(|outcome| outcome.repository_bytes = bytes);
        Ok(())
    }

    /// Restores the snapshot that stands at `at` in [`RESTORED`].
    fn restore(&mut self, source: &Path, at: usize, taken: &Taken, pile: &mut Pile) -> Result<()> {
        let cost = self.restored(source, taken, pile)?;
        self.note(|outcome| {
            if outcome.restores.is_empty() {
                outcome.restores = RESTORED.map(|_| Restores::default()).into();
            }
            outcome.restores[at].bytes = taken.bytes;
            outcome.restores[at].costs.push(cost);
        });
        Ok(())
    }

    /// Lets copies of the repository come to rest, in each way; nothing if the program is a peer.
    fn rest(&mut self, source: &Path, newest: &Taken, restores: u64, work: &Path, pile: &mut Pile) -> Result<()> {
        if self.repository.name() != Name::Silt {
            return Ok(());
        }
        for (name, options) in AT_REST {
            let copy = self.repository.copied_to(&work.join(format!("{}-{name}", self.name)))?;
            flush()?;
            let cost = program::measured(copy.command().args(["maintain", "--recompress"]).args(options))?;
            let repository_bytes = tree::bytes(&copy.path())?;
            let mut of_newest = Restores::of(newest.bytes);
            for _ in 0..restores {
                of_newest.costs.push(restored_and_compared(&copy, source, &newest.label, &newest.listing, pile)?.0);
            }
            self.note(|outcome| outcome.at_rest.push(AtRest { cost, repository_bytes, of_newest }));
        }
        Ok(())
    }

    fn forget(&mut self, labels: &[String]) -> Result<()> {
        if labels.is_empty() {
            return Ok(());
        }
        flush()?;
        let before = tree::bytes(&self.repository.path())?;
        let cost = self.repository.forget(labels)?;
        let after = tree::bytes(&self.repository.path())?;
        let bytes_returned = i64::try_from(before)? - i64::try_from(after)?;
        self.note(|outcome| outcome.forgotten = Some(Forgotten { cost, bytes_returned }));
        Ok(())
    }

    /// Everything that was not forgotten; of the peers the newest alone.
    fn restore_rest(&mut self, source: &Path, versions: &Versions, pile: &mut Pile) -> Result<()> {
        let step = if self.repository.name() == Name::Silt { 2 } else { versions.taken().len() };
        versions.taken().iter().rev().step_by(step).try_for_each(|taken| self.restored(source, taken, pile).map(drop))
    }

    fn restored(&self, source: &Path, taken: &Taken, pile: &mut Pile) -> Result<Cost> {
        Ok(restored_and_compared(&self.repository, source, &taken.label, &taken.listing, pile)?.0)
    }

    fn note(&mut self, note: impl FnOnce(&mut Outcome)) {
        if let Ok(outcome) = &mut self.outcome {
            note(outcome);
        }
    }
}

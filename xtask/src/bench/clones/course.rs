//! The course of the benchmark: each clone is backed up by all programs in turn, then again with nothing changed; then
//! two are restored, what can be is recompressed, and hosts are forgotten, the first of all in the end. What is left
//! must still be there, whole.

use super::contender::{Contender, Shared};
use super::source::Source;
use anyhow::{Context, Result};
use siltstone_testbed::bench::rounds::{Pile, flush, turns};
use siltstone_testbed::program::Cost;
use siltstone_testbed::tree::{self, Listing};
use std::path::{Path, PathBuf};

pub(super) const FIRST: &str = "first host";
pub(super) const LATER: &str = "later hosts";
pub(super) const UNCHANGED: &str = "unchanged";
pub(super) const RESTORE_FIRST: &str = "restore first host";
pub(super) const RESTORE_LAST: &str = "restore last host";
pub(super) const RECOMPRESS: &str = "recompress";
pub(super) const RESTORE_RECOMPRESSED: &str = "restore recompressed";
pub(super) const FORGET_LATER: &str = "forget later hosts";
pub(super) const FORGET_FIRST: &str = "forget first host";
/// Hosts that stay until the end: what they have must outlast that others go.
const STAYING: u64 = 1;

/// One measurement of one program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) phase: &'static str,
    /// Place of the program among the contenders.
    pub(super) contender: usize,
    pub(super) cost: Cost,
    /// Bytes of the clone; `None` where a rate says nothing.
    pub(super) source_bytes: Option<u64>,
    /// Bytes by which the repository grew.
    pub(super) growth_bytes: i64,
}

/// The repositories after the first backup of a clone.
#[derive(Clone, Debug)]
pub(super) struct Size {
    pub(super) clone: u64,
    pub(super) source_bytes: u64,
    /// Bytes of the clone that no other has.
    pub(super) own_bytes: u64,
    /// Bytes of each contender's repository.
    pub(super) repository_bytes: Vec<u64>,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    pub(super) sizes: Vec<Size>,
    pub(super) samples: Vec<Sample>,
    /// Bytes of the repositories that were recompressed.
    pub(super) recompressed_bytes: Vec<Option<u64>>,
}

/// Number of clones, and how often a restore and the forgetting of a host are measured.
#[derive(Clone, Copy, Debug)]
pub(super) struct Amount {
    pub(super) clones: u64,
    pub(super) rounds: u64,
}

/// Runs it all with new repositories below `work`. The folder `place` becomes each clone of `source` in turn.
pub(super) fn run(
    contenders: &[Contender],
    mut source: Source,
    place: &Path,
    amount: Amount,
    work: &Path,
) -> Result<Measured> {
    let init = |contender: &Contender| contender.init(&work.join(contender.kind.text()));
    let repositories = contenders.iter().map(init).collect::<Result<Vec<_>>>()?;
    let pile = Pile::below(work)?;
    let mut course = Course { repositories, place: place.to_path_buf(), pile, measured: Measured::default() };
    for clone in 1..=amount.clones {
        let own = source.become_clone(clone)?;
        course.back_up(clone, own.bytes)?;
    }
    for (phase, clone) in [(RESTORE_LAST, amount.clones), (RESTORE_FIRST, 1)] {
        source.become_clone(clone)?;
        course.restore(phase, clone, amount.rounds)?;
    }
    course.recompress(1, amount.rounds)?;
    let oldest = (1 + STAYING + 1).max(amount.clones.saturating_sub(amount.rounds - 1));
    for clone in (oldest..=amount.clones).rev() {
        course.forget(FORGET_LATER, clone)?;
    }
    course.forget(FORGET_FIRST, 1)?;
    source.become_clone(1 + STAYING)?;
    course.verify(1 + STAYING)?;
    Ok(course.measured)
}

struct Course {
    repositories: Vec<Shared>,
    place: PathBuf,
    pile: Pile,
    measured: Measured,
}

/// Name of the host that is this clone.
fn host(clone: u64) -> String {
    format!("host{clone:02}")
}

impl Course {
    /// Backs a clone up for the first time and again, with each program.
    fn back_up(&mut self, clone: u64, own_bytes: u64) -> Result<()> {
        let host = host(clone);
        self.repositories.iter().try_for_each(|repository| repository.join(&host))?;
        let source_bytes = tree::bytes(&self.place)?;
        let phase = if clone == 1 { FIRST } else { LATER };
        self.back_up_by_each(phase, clone, "first", source_bytes)?;
        let repository_bytes = self.repositories.iter().map(Shared::bytes).collect::<Result<_>>()?;
        self.measured.sizes.push(Size { clone, source_bytes, own_bytes, repository_bytes });
        self.back_up_by_each(UNCHANGED, clone, "unchanged", source_bytes)
    }

    fn back_up_by_each(&mut self, phase: &'static str, clone: u64, label: &str, source_bytes: u64) -> Result<()> {
        let (host, place) = (host(clone), self.place.clone());
        let rate_bytes = (phase != UNCHANGED).then_some(source_bytes);
        for turn in turns(self.repositories.len(), clone) {
            // Read again for each: what was measured before may have pushed the source out of the page cache.
            tree::read_all(&place)?;
            self.measure(phase, clone, turn, rate_bytes, |repository| repository.backup(&host, label, &[&place]))?;
        }
        Ok(())
    }

    /// Restores a clone, which the source is now, with each program in each round.
    fn restore(&mut self, phase: &'static str, clone: u64, rounds: u64) -> Result<()> {
        let expected = Listing::of(&self.place)?;
        for round in 0..rounds {
            for turn in turns(self.repositories.len(), round) {
                self.restore_by(turn, phase, clone, &expected)?;
            }
        }
        Ok(())
    }

    fn restore_by(&mut self, turn: usize, phase: &'static str, clone: u64, expected: &Listing) -> Result<()> {
        let (host, place, target) = (host(clone), self.place.clone(), self.pile.place(expected.bytes())?);
        let restore = |repository: &Shared| repository.restore(&host, &target);
        self.measure(phase, clone, turn, Some(expected.bytes()), restore)?;
        self.repositories[turn].compare(&place, &target, expected)
    }

    /// Recompresses each repository whose program can, and restores a clone, which the source is now, from it.
    fn recompress(&mut self, clone: u64, rounds: u64) -> Result<()> {
        let expected = Listing::of(&self.place)?;
        for turn in 0..self.repositories.len() {
            let repository = &self.repositories[turn];
            let bytes = if repository.can_recompress() {
                self.measure(RECOMPRESS, clone, turn, None, Shared::recompress)?;
                for _ in 0..rounds {
                    self.restore_by(turn, RESTORE_RECOMPRESSED, clone, &expected)?;
                }
                Some(self.repositories[turn].bytes()?)
            } else {
                None
            };
            self.measured.recompressed_bytes.push(bytes);
        }
        Ok(())
    }

    fn forget(&mut self, phase: &'static str, clone: u64) -> Result<()> {
        let host = host(clone);
        for turn in turns(self.repositories.len(), clone) {
            self.measure(phase, clone, turn, None, |repository| repository.forget(&host))?;
        }
        Ok(())
    }

    /// Restores a host that stayed, which the source is now, without measuring.
    fn verify(&mut self, clone: u64) -> Result<()> {
        let expected = Listing::of(&self.place)?;
        for repository in &self.repositories {
            let target = self.pile.place(expected.bytes())?;
            repository.restore(&host(clone), &target)?;
            repository.compare(&self.place, &target, &expected)?;
        }
        Ok(())
    }

    fn measure(
        &mut self,
        phase: &'static str,
        clone: u64,
        contender: usize,
        source_bytes: Option<u64>,
        work: impl FnOnce(&Shared) -> Result<Cost>,
    ) -> Result<()> {
        let repository = &self.repositories[contender];
        let before = repository.bytes()?;
        flush()?;
        let cost = work(repository).with_context(|| format!("{phase}, {}, {}", host(clone), repository.kind.text()))?;
        let growth_bytes = i64::try_from(repository.bytes()?)? - i64::try_from(before)?;
        let (name, seconds) = (repository.kind.text(), cost.wall.as_secs_f64());
        eprintln!("{phase}, {}, {name}: {seconds:.2} s, {growth_bytes:+} bytes", host(clone));
        self.measured.samples.push(Sample { phase, contender, cost, source_bytes, growth_bytes });
        Ok(())
    }
}

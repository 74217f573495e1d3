//! One repository from its first snapshot to its last: kept as it is at some ages, and all that is kept measured
//! together in the end.

use super::policy::Policy;
use super::subject::Subject;
use anyhow::{Context, Result};
use siltstone_testbed::bench::rounds::{Pile, copied, flush, half, restored_and_compared, turns};
use siltstone_testbed::json::number_of;
use siltstone_testbed::program::{self, Cost};
use siltstone_testbed::tool::{Reading, Repository, Tool};
use siltstone_testbed::tree::{self, Listing};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;

/// All that was measured.
pub(super) struct Life {
    pub(super) ages: Vec<Age>,
    /// `cp -r` of the last source, one of each round.
    pub(super) copies: Vec<Cost>,
    /// Snapshots of the oldest repository: the first, the middle, the last.
    pub(super) snapshots: Vec<Restored>,
    pub(super) forgotten: Forgotten,
    /// The file system.
    pub(super) restored_to: String,
}

/// A repository of this age.
pub(super) struct Age {
    /// Number of snapshots.
    pub(super) snapshots: u64,
    pub(super) repository_bytes: u64,
    /// Files of the repository.
    pub(super) objects: u64,
    /// The newest manifest, with its parts.
    pub(super) manifest_bytes: u64,
    /// Snapshots that are kept.
    pub(super) live: u64,
    /// The backups since the age before.
    pub(super) backups: Vec<Cost>,
    /// The forgetting behind each of them.
    pub(super) forgets: Vec<Cost>,
    /// Backups with nothing changed since the last.
    pub(super) unchanged: Vec<Cost>,
    /// The last snapshot.
    pub(super) restored: Restored,
}

/// Cost of restoring one snapshot.
#[derive(Default)]
pub(super) struct Restored {
    pub(super) source_bytes: u64,
    /// One of each round.
    pub(super) costs: Vec<Cost>,
    pub(super) containers_read: i64,
    pub(super) bytes_read: i64,
}

/// Cost of forgetting every second snapshot.
#[derive(Default)]
pub(super) struct Forgotten {
    pub(super) snapshots: usize,
    pub(super) before_bytes: u64,
    /// As promised by the dry run.
    pub(super) bytes_returned: i64,
    /// Beyond that, by what the next backup would do too: chunks that only deltas need are eliminated where that
    /// pays.
    pub(super) bytes_of_ghosts: i64,
    /// One of each round, of a copy each.
    pub(super) costs: Vec<Cost>,
}

/// A repository with the snapshots that are to be restored.
struct Kept {
    repository: Repository,
    label: String,
    listing: Listing,
}

/// Where trees are restored to, with room for several of the source.
const MEMORY: &str = "/dev/shm";

/// Lives it: as many snapshots as the last of `ages`, which ascend.
pub(super) fn lived(
    subject: &Subject,
    tool: &Tool,
    (ages, policy): (&[u64], Policy),
    rounds: u64,
    work: &Path,
) -> Result<Life> {
    let folder = tempfile::tempdir_in(work)?;
    let place = folder.path().join("source");
    let source = subject.make(&place)?;
    let repository = tool.init(&folder.path().join("silt"))?;
    let versions = ages.last().copied().unwrap_or_default();
    let (mut lived, mut kept, mut snapshots) = (Vec::new(), Vec::new(), Vec::new());
    let (mut backups, mut forgets) = (Vec::new(), Vec::new());
    for number in 1..=versions {
        if number > 1 {
            subject.age(&place, number)?;
        }
        eprintln!("{}: snapshot {number} of {versions}", subject.name);
        tree::read_all(&place)?;
        flush()?;
        let mut backup = repository.backup_command(&source, &label(number), Reading::Changed);
        policy.date(&mut backup, number)?;
        backups.push(program::measured(&mut backup)?);
        forgets.extend(policy.thin(&repository)?);
        let is_first_or_middle = policy == Policy::KeepAll && [1, versions.div_ceil(2)].contains(&number);
        if is_first_or_middle || number == versions {
            snapshots.push(Kept {
                repository: repository.clone(),
                label: label(number),
                listing: Listing::of(&source)?,
            });
        }
        if ages.contains(&number) {
            let repository = repository.copied_to(&folder.path().join(format!("age-{number}")))?;
            lived.push(Age {
                snapshots: number,
                repository_bytes: tree::bytes(&repository.path())?,
                objects: tree::files(&repository.path())?.len() as u64,
                manifest_bytes: manifest_bytes(&repository.path())?,
                live: repository.labels()?.len() as u64,
                backups: std::mem::take(&mut backups),
                forgets: std::mem::take(&mut forgets),
                unchanged: unchanged(&repository, &source, rounds, folder.path())?,
                restored: Restored::default(),
            });
            kept.push(Kept { repository, label: label(number), listing: Listing::of(&source)? });
        }
    }
    let (mut pile, restored_to, _memory) = targets(&source, folder.path())?;
    let mut copies = Vec::new();
    let (mut of_ages, mut of_snapshots) = (restored_of(&kept), restored_of(&snapshots));
    let source_bytes = tree::bytes(&source)?;
    for round in 0..rounds {
        eprintln!("{}: restores, round {} of {rounds}", subject.name, round + 1);
        for turn in turns(kept.len() + snapshots.len() + 1, round) {
            if let Some(kept) = kept.get(turn) {
                of_ages[turn].add(kept, &source, &mut pile)?;
            } else if let Some(snapshot) = snapshots.get(turn - kept.len()) {
                of_snapshots[turn - kept.len()].add(snapshot, &source, &mut pile)?;
            } else {
                copies.push(copied(&source, source_bytes, &mut pile)?);
            }
        }
    }
    lived.iter_mut().zip(of_ages).for_each(|(age, restored)| age.restored = restored);
    let forgotten = forgotten(&repository, rounds, folder.path(), &snapshots, &source, &mut pile)?;
    Ok(Life { ages: lived, copies, snapshots: of_snapshots, forgotten, restored_to })
}

/// Bytes of the newest manifest and of all parts.
fn manifest_bytes(repository: &Path) -> Result<u64> {
    let newest = tree::files(&repository.join("series"))?.into_iter().max().context("no manifest")?;
    let parts = repository.join("parts");
    let parts = if parts.exists() { tree::bytes(&parts)? } else { 0 };
    Ok(newest.metadata()?.len() + parts)
}

fn label(number: u64) -> String {
    format!("v{number:05}")
}

/// Backups with nothing changed, of a copy that then goes.
fn unchanged(repository: &Repository, source: &Path, rounds: u64, work: &Path) -> Result<Vec<Cost>> {
    let folder = tempfile::tempdir_in(work)?;
    let copy = repository.copied_to(&folder.path().join("unchanged"))?;
    let backup = |round| {
        flush()?;
        copy.backup(source, &format!("unchanged-{round}"), Reading::Changed)
    };
    // The first one reads again what had changed within the last tick of the clock.
    (0..=rounds).map(backup).skip(1).collect()
}

/// Where restored trees lie: in memory if there is room for several, else beside the source.
fn targets(source: &Path, beside: &Path) -> Result<(Pile, String, Option<TempDir>)> {
    let source_bytes = tree::bytes(source)?;
    if free_bytes(MEMORY).is_some_and(|free| free > 4 * source_bytes + (1 << 30)) {
        let memory = tempfile::tempdir_in(MEMORY)?;
        return Ok((Pile::of_at_most(memory.path(), 2 * source_bytes)?, MEMORY.to_owned(), Some(memory)));
    }
    Ok((Pile::below(beside)?, "the build folder".to_owned(), None))
}

/// `None` if the system does not say.
fn free_bytes(folder: &str) -> Option<u64> {
    let said = program::quietly(Command::new("df").args(["--output=avail", "-B1", folder])).ok()?;
    said.lines().nth(1)?.trim().parse().ok()
}

fn restored_of(kept: &[Kept]) -> Vec<Restored> {
    kept.iter().map(|kept| Restored { source_bytes: kept.listing.bytes(), ..Restored::default() }).collect()
}

impl Restored {
    /// Restores once more, and compares.
    fn add(&mut self, kept: &Kept, source: &Path, pile: &mut Pile) -> Result<()> {
        let (cost, said) = restored_and_compared(&kept.repository, source, &kept.label, &kept.listing, pile)?;
        let number = |key: &str| number_of(&said, key).with_context(|| format!("`silt restore --json` names no {key}"));
        self.costs.push(cost);
        (self.containers_read, self.bytes_read) = (number("containers_read")?, number("bytes_read")?);
        Ok(())
    }
}

/// Forgets every second snapshot of a copy in each round; in the last, what that leaves is settled, and what is left of
/// `snapshots` restored.
fn forgotten(
    repository: &Repository,
    rounds: u64,
    work: &Path,
    snapshots: &[Kept],
    source: &Path,
    pile: &mut Pile,
) -> Result<Forgotten> {
    let half = half(&repository.labels()?);
    let mut forgotten =
        Forgotten { snapshots: half.len(), before_bytes: tree::bytes(&repository.path())?, ..Forgotten::default() };
    if half.is_empty() {
        return Ok(forgotten);
    }
    for round in 0..rounds {
        let folder = tempfile::tempdir_in(work)?;
        let copy = repository.copied_to(&folder.path().join("forgotten"))?;
        flush()?;
        let (bytes_returned, cost) = copy.forget_as_promised(&half)?;
        forgotten.bytes_returned = bytes_returned;
        forgotten.costs.push(cost);
        if round + 1 == rounds {
            let forgotten_bytes = tree::bytes(&copy.path())?;
            program::quietly(copy.command().arg("maintain"))?;
            forgotten.bytes_of_ghosts = i64::try_from(forgotten_bytes)? - i64::try_from(tree::bytes(&copy.path())?)?;
            for kept in snapshots.iter().filter(|kept| !half.contains(&kept.label)) {
                restored_and_compared(&copy, source, &kept.label, &kept.listing, pile)?;
            }
        }
    }
    Ok(forgotten)
}

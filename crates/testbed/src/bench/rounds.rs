//! Rules that keep a comparison of programs fair: they take turns, nobody pays for what was done before, and what they
//! restore is compared.

use crate::program::{self, Cost};
use crate::tool::{self, Name, Repository};
use crate::tree::Listing;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Each of `count` once, beginning with another one in every round.
pub fn turns(count: usize, round: u64) -> impl Iterator<Item = usize> {
    let first = usize::try_from(round).unwrap_or_default();
    (0..count).map(move |turn| (first + turn) % count)
}

/// Writes out all dirty pages, so that one measurement does not pay for what was done before it.
pub fn flush() -> Result<()> {
    program::quietly(&mut Command::new("sync")).map(drop)
}

/// Every second label, never the newest.
pub fn half(labels: &[String]) -> Vec<String> {
    labels.iter().rev().skip(1).step_by(2).cloned().collect()
}

/// Where trees are restored to, each into a folder of its own. They stay until they are many: ext4 does not give away
/// again the inodes of files deleted within the last minute or five (`recently_deleted` in Linux), but looks at each of
/// them for every file it makes. After some ten thousand deletions a restore takes several times as long.
pub struct Pile {
    work: PathBuf,
    folder: TempDir,
    count: usize,
    bytes: u64,
    bytes_max: u64,
}

/// Beyond this a pile is removed, unless another limit is set.
const PILE_BYTES_MAX: u64 = 8_000_000_000;

impl Pile {
    /// An empty one below `work`; it goes when dropped.
    pub fn below(work: &Path) -> Result<Self> {
        Self::of_at_most(work, PILE_BYTES_MAX)
    }

    /// Makes a pile with its own limit: for file systems in memory, which give away inodes again at once.
    pub fn of_at_most(work: &Path, bytes_max: u64) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("pile").tempdir_in(work)?;
        Ok(Self { work: work.to_path_buf(), folder, count: 0, bytes: 0, bytes_max })
    }

    /// A place where nothing is yet, for so many bytes.
    pub fn place(&mut self, bytes: u64) -> Result<PathBuf> {
        if self.bytes + bytes > self.bytes_max {
            *self = Self::of_at_most(&self.work, self.bytes_max)?;
        }
        self.count += 1;
        self.bytes += bytes;
        Ok(self.folder.path().join(self.count.to_string()))
    }
}

/// Restores onto the pile, and compares; returns the cost, and what the program said.
pub fn restored_and_compared(
    repository: &Repository,
    source: &Path,
    label: &str,
    expected: &Listing,
    pile: &mut Pile,
) -> Result<(Cost, String)> {
    let target = pile.place(expected.bytes())?;
    flush()?;
    let measured = program::measured_saying(&mut repository.restore_command(label, &target)?)?;
    let place = tool::restored_place(source, &target)?;
    let (name, found) = (repository.name(), Listing::of(&place)?);
    let same = match name {
        // kopia restores no times of folders, rustic not that of the folder that was backed up.
        Name::Kopia | Name::Rustic => {
            expected.clone().without_times_of_folders().expect_same(&found.without_times_of_folders())
        }
        _ => expected.expect_same(&found),
    };
    same.with_context(|| format!("{} restored {label} differently", name.text()))?;
    Ok(measured)
}

/// The cost of `cp -r` of a source of so many bytes onto the pile.
pub fn copied(source: &Path, source_bytes: u64, pile: &mut Pile) -> Result<Cost> {
    let copy = pile.place(source_bytes)?;
    flush()?;
    program::measured(Command::new("cp").arg("-r").arg(source).arg(copy))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_its_turn_to_be_first() {
        let firsts: Vec<usize> = (0..3).filter_map(|round| turns(3, round).next()).collect();
        assert_eq!(firsts, [0, 1, 2]);
        assert_eq!(turns(3, 2).collect::<Vec<_>>(), [2, 0, 1]);
    }

    #[test]
    fn a_pile_that_grows_too_large_begins_anew() {
        let work = tempfile::tempdir().unwrap();
        let mut pile = Pile::below(work.path()).unwrap();
        let first = pile.place(PILE_BYTES_MAX).unwrap();
        std::fs::create_dir(&first).unwrap();
        let second = pile.place(1).unwrap();
        assert!(!first.exists() && !second.exists() && second.parent().unwrap().exists());
        assert_ne!(pile.place(1).unwrap(), second);
    }

    #[test]
    fn the_newest_is_never_in_the_half() {
        let labels = ["a", "b", "c", "d"].map(String::from);
        assert_eq!(half(&labels), ["c", "a"]);
        assert!(half(&labels[..1]).is_empty());
    }
}

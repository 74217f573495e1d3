//! Bytes that some versions would take in a store: in Siltstone's, after deduplication as restic does it, by `zstd --long`,
//! and as a chain of deltas. All four keep the same versions, one after the other, and are timed while they do.
//!
//! | row | what it does |
//! |---|---|
//! | `silt` | a repository of its own, at its default settings: the bytes of all its files |
//! | `restic-like` | Rabin chunks of 512 KiB to 8 MiB, file by file, each new one by zstd -3 |
//! | `zstd --long` | all versions in one stream, each as an archive, with a window of 128 MiB, level 3 |
//! | `delta chain` | each version, as an archive, against the one before: `zstd --patch-from`, level 3 |
//!
//! restic's chunks are 1 MiB on average, named by SHA-256, and have 73 bytes of header and tag each. The last
//! two restore a version only by way of all before it, and delete none; they are what could be had at most from zstd
//! alone. restic's own metadata are not counted.

mod chain;
mod chunks;
mod engine;

use crate::archive;
use crate::table::{self, Table, as_float, mb_per_s};
use anyhow::{Context, Result};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Something that keeps versions, one after the other.
trait Keeper {
    /// Its name in the table.
    fn name(&self) -> &'static str;

    /// Takes in the next version, of which `bytes` are the archive.
    fn keep(&mut self, version: &Path, bytes: &[u8]) -> Result<()>;

    /// Bytes that all versions so far take.
    fn stored(&self) -> Result<u64>;
}

/// A row of the estimate.
#[derive(Clone, PartialEq, Debug)]
pub struct Line {
    /// Who keeps the versions.
    pub name: &'static str,
    /// Bytes that all of them take.
    pub stored: u64,
    /// Bytes by which the last version made that more.
    pub last: i64,
    /// Seconds for all of them.
    pub seconds: f64,
}

/// Results of an estimate.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Estimate {
    /// Versions kept.
    pub versions: usize,
    /// Their bytes, as archives.
    pub bytes: u64,
    /// A row for each method.
    pub lines: Vec<Line>,
    /// True if all versions that were asked for are in it.
    pub is_whole: bool,
}

/// Keeps these versions, oldest first, in stores below `folder`. Before each step `go_on` is told what comes and how
/// many bytes are done; where it says no, the estimate is of the versions done so far.
///
/// # Errors
/// If a version cannot be read, or nothing can be written below the folder.
pub fn estimate(
    versions: &[PathBuf],
    folder: &Path,
    memory_bytes: u64,
    mut go_on: impl FnMut(&str, u64) -> bool,
) -> Result<Estimate> {
    let mut keepers: Vec<Box<dyn Keeper>> = vec![
        Box::new(engine::Silt::create(folder, memory_bytes)?),
        Box::new(chunks::Restic::create()?),
        Box::new(chain::Long::create()?),
        Box::new(chain::Chain::default()),
    ];
    let mut seconds = vec![0.0; keepers.len()];
    let (mut found, mut done) = (Estimate::default(), 0);
    for (number, version) in versions.iter().enumerate() {
        let mut bytes = Vec::new();
        let append = if version.is_dir() { archive::append } else { archive::append_file };
        append(&mut bytes, version).with_context(|| format!("{} cannot be read", version.display()))?;
        for (keeper, seconds) in keepers.iter_mut().zip(&mut seconds) {
            let what = format!("{} of version {} of {}", keeper.name(), number + 1, versions.len());
            if !go_on(&what, done) {
                return Ok(found);
            }
            let begin = Instant::now();
            keeper.keep(version, &bytes).with_context(|| what)?;
            *seconds += begin.elapsed().as_secs_f64();
            done += bytes.len() as u64;
        }
        found.versions += 1;
        found.bytes += bytes.len() as u64;
        let before: Vec<u64> = found.lines.iter().map(|line| line.stored).collect();
        let line = |(place, keeper): (usize, &dyn Keeper)| {
            let stored = keeper.stored()?;
            let before = before.get(place).copied().unwrap_or(0);
            let last = i64::try_from(stored)? - i64::try_from(before)?;
            anyhow::Ok(Line { name: keeper.name(), stored, last, seconds: seconds[place] })
        };
        found.lines = keepers.iter().map(|keeper| &**keeper).enumerate().map(line).collect::<Result<_>>()?;
    }
    found.is_whole = true;
    Ok(found)
}

impl Estimate {
    /// The table and the sentence.
    pub fn text(&self) -> String {
        let mut table = Table::new(["store", "stored", "of the data", "last version adds", "MB/s"]);
        for line in &self.lines {
            table.row(vec![
                line.name.to_owned(),
                table::bytes(line.stored),
                format!("{:.1} %", 100.0 * as_float(line.stored) / as_float(self.bytes).max(1.0)),
                added(line.last),
                format!("{:.0}", mb_per_s(self.bytes, line.seconds)),
            ]);
        }
        let mut text = format!("{table}");
        // Writing to a string does not fail.
        let _ = writeln!(text, "\n{}", self.sentence());
        if self.lines.len() > 1 {
            let _ =
                writeln!(text, "zstd alone reads all versions before the one it restores, and deletes none of them.");
        }
        text
    }

    /// Says in a sentence what follows.
    pub fn sentence(&self) -> String {
        let Some((silt, others)) = self.lines.split_first() else { return "No version was kept.".to_owned() };
        let times = |other: &Line| {
            let times = as_float(other.stored) / as_float(silt.stored).max(1.0);
            format!("{} {times:.2} times as much", other.name)
        };
        let versions =
            if self.versions == 1 { "the one version".into() } else { format!("the {} versions", self.versions) };
        let (all, stored) = (table::bytes(self.bytes), table::bytes(silt.stored));
        let others: Vec<String> = others.iter().map(times).collect();
        format!("silt stores {versions}, {all}, in {stored}; {}.", others.join(", "))
    }
}

fn added(bytes: i64) -> String {
    let sign = if bytes < 0 { "-" } else { "" };
    format!("{sign}{}", table::bytes(bytes.unsigned_abs()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use std::fs;

    /// Three versions of a folder: a large file with changed bytes, and one file that stays.
    fn versions(folder: &Path) -> Vec<PathBuf> {
        let mut bytes = Sequence::new(3).bytes(3 << 20);
        (0..3)
            .map(|number| {
                let version = folder.join(format!("v{number}"));
                fs::create_dir(&version).unwrap();
                bytes[1000 * (number + 1)] ^= 1;
                fs::write(version.join("large"), &bytes).unwrap();
                fs::write(version.join("small"), "the same in all").unwrap();
                version
            })
            .collect()
    }

    #[test]
    fn versions_that_differ_little_take_little_more_than_one() {
        let folder = tempfile::tempdir().unwrap();
        let versions = versions(folder.path());
        let store = tempfile::tempdir().unwrap();
        let mut said = Vec::new();
        let found = estimate(&versions, store.path(), 256 << 20, |what, done| {
            said.push((what.to_owned(), done));
            true
        })
        .unwrap();
        assert!(found.is_whole && found.versions == 3 && found.bytes > 9 << 20);
        let names: Vec<&str> = found.lines.iter().map(|line| line.name).collect();
        assert_eq!(names, ["silt", "restic-like", "zstd --long", "delta chain"]);
        for line in &found.lines {
            // The bytes are random: one version stays as large as it is. restic's chunk that changed is stored anew.
            let most = if line.name == "restic-like" { 11 << 20 } else { 4 << 20 };
            assert!(line.stored > 3 << 20 && line.stored < most, "{line:?}");
            assert!(line.last < 3 << 20, "{line:?}");
        }
        assert!(said.len() == 12 && said.windows(2).all(|pair| pair[0].1 < pair[1].1), "{said:?}");
        let text = found.text();
        assert!(text.contains("| delta chain |") && text.contains("silt stores the 3 versions"), "{text}");
    }

    #[test]
    fn an_estimate_that_is_stopped_is_of_whole_versions() {
        let folder = tempfile::tempdir().unwrap();
        let versions = versions(folder.path());
        let store = tempfile::tempdir().unwrap();
        let mut steps = 0;
        let found = estimate(&versions, store.path(), 256 << 20, |_, _| {
            steps += 1;
            steps <= 6
        })
        .unwrap();
        assert_eq!((found.versions, found.is_whole, found.lines.len()), (1, false, 4));
        let nothing = estimate(&versions, &store.path().join("new"), 256 << 20, |_, _| false).unwrap();
        assert_eq!(nothing.sentence(), "No version was kept.");
    }
}

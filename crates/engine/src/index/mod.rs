//! The index: which chunk of the series has a fingerprint, asked once for every chunk cut.
//!
//! It holds the chunks of the series' last snapshot and those new in this run, data and metadata alike (their
//! fingerprints are made with different keys, so they never meet). In the manner of a log-structured merge tree it is a
//! few runs of records sorted by fingerprint, asked from the newest to the oldest:
//!
//! ```text
//! new        hash table in memory; when full, sorted and written out as a run of its own
//! spilled    runs in nameless temporary files, at most 8; when there are more, the newest are merged
//! previous   the run of the last snapshot, out of a cache file: in memory when it fits, else read record by record
//! ```
//!
//! Fingerprints being uniform, a directory of fences by their highest bits leads to a block of about 64 records, so a
//! question costs one read per run that lies in a file, and no hash table of the whole is ever built. After the backup,
//! [`Runs::save`] merges what the new snapshot needs into the next cache file. What falls out of that goes on to a
//! second index, of the chunks that only older live snapshots hold, which has a cache file of its own.
//!
//! The cache is only ever a shortcut: a wrong entry would put wrong chunks into a snapshot, so the file carries a keyed
//! hash of its whole content, and one that is missing, damaged or of another snapshot is refused ([`CacheRefused`]) and
//! the index filled from the repository instead, by [`FingerprintIndex::insert`] on an index without a previous run.
//!
//! Memory: the budget given, plus one block of 24 KiB per run while merging. It does not reach the repository.

mod cache;
mod merge;
mod record;
mod run;

pub use cache::{CacheIdentity, CacheKind, CacheRefused, CachedRun};

use crate::EngineError;
use cache::write_cache;
use merge::Merge;
use record::{RECORD_BYTES, Record};
use run::{Run, RunWriter};
use siltstone_store::{ChunkNumber, Fingerprint};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::io;
use std::path::{Path, PathBuf};

/// More spilled runs than this are merged: each costs a read for every fingerprint that is not known.
const SPILLED_RUNS_MAX: usize = 8;

/// The new table never spills below this many entries, however small the budget.
const NEW_ENTRIES_LEAST: usize = 64;

/// The fences of one run take at most this part of the budget; ten runs, so a sixth of it in all.
const FENCES_PART_OF_BUDGET: u64 = 64;
const ALL_FENCES_PART_OF_BUDGET: u64 = 6;

/// Bytes per bucket of the new table at its fullest: an entry and its tag byte, and its copy while a run is sorted.
const NEW_BUCKET_BYTES: u64 = 2 * RECORD_BYTES as u64 + 1;

/// From fingerprint to chunk number, in bounded memory.
#[derive(Debug)]
pub struct FingerprintIndex {
    previous: Run,
    /// Oldest first.
    spilled: Vec<Run>,
    new: NewTable,
    new_entries_max: usize,
    fence_bytes_max: u64,
    spill_dir: PathBuf,
}

type NewTable = HashMap<Fingerprint, ChunkNumber, BuildHasherDefault<FingerprintHasher>>;

/// Statistics of [`Runs::save`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheStatistics {
    /// Chunks in the new cache file.
    pub chunks_kept: u64,
    /// Chunks left out: those the new snapshot does not need.
    pub chunks_dropped: u64,
}

impl FingerprintIndex {
    /// An index that knows the chunks of `previous`, keeps to `budget_bytes` of memory (those of `previous` counted)
    /// and writes what goes beyond into nameless files in `spill_dir`.
    pub fn open(previous: CachedRun, budget_bytes: u64, spill_dir: &Path) -> Self {
        let previous = previous.into_run();
        let fences = budget_bytes / ALL_FENCES_PART_OF_BUDGET;
        let for_new = budget_bytes.saturating_sub(previous.memory_bytes()).saturating_sub(fences);
        Self {
            previous,
            spilled: Vec::new(),
            new: NewTable::default(),
            new_entries_max: new_entries_within(for_new),
            fence_bytes_max: budget_bytes / FENCES_PART_OF_BUDGET,
            spill_dir: spill_dir.to_owned(),
        }
    }

    /// The number of the chunk with this fingerprint, if it is among those it was opened with or given.
    ///
    /// # Errors
    /// [`IndexError`] if a run that lies in a file cannot be read.
    pub fn get(&self, fingerprint: &Fingerprint) -> Result<Option<ChunkNumber>, IndexError> {
        if let Some(number) = self.new.get(fingerprint) {
            return Ok(Some(*number));
        }
        for run in self.spilled.iter().rev().chain([&self.previous]) {
            if let Some(number) = run.find(fingerprint).map_err(self.failed("reading"))? {
                return Ok(Some(number));
            }
        }
        Ok(None)
    }

    /// Adds a chunk; an earlier number of the same fingerprint is no longer found.
    ///
    /// # Errors
    /// [`IndexError`] if the table was full and could not be written out. The chunk is added nevertheless.
    pub fn insert(&mut self, fingerprint: Fingerprint, number: ChunkNumber) -> Result<(), IndexError> {
        self.new.insert(fingerprint, number);
        if self.new.len() > self.new_entries_max {
            self.spill().map_err(self.failed("writing"))?;
        }
        Ok(())
    }

    /// All that it knows, to be saved.
    pub fn into_runs(self) -> Runs {
        let new = sorted_run(&self.new);
        Runs([new].into_iter().chain(self.spilled.into_iter().rev()).chain([self.previous]).collect())
    }

    fn spill(&mut self) -> io::Result<()> {
        let sorted = sorted_run(&self.new);
        let mut writer = RunWriter::create(&self.spill_dir, sorted.len(), self.fence_bytes_max)?;
        writer.push_all(Merge::new([&sorted], |_| true))?;
        self.spilled.push(writer.finish()?);
        self.new.clear();
        if self.spilled.len() > SPILLED_RUNS_MAX { self.merge_newest() } else { Ok(()) }
    }

    /// Merges the two newest runs, and every older one that is no longer than what follows it. So a record is rewritten
    /// seldom, though runs stay few.
    fn merge_newest(&mut self) -> io::Result<()> {
        let mut records = 0;
        let mut runs = 0;
        for run in self.spilled.iter().rev() {
            if runs >= 2 && run.len() > records {
                break;
            }
            records += run.len();
            runs += 1;
        }
        let first = self.spilled.len() - runs;
        let mut writer = RunWriter::create(&self.spill_dir, records, self.fence_bytes_max)?;
        writer.push_all(Merge::new(self.spilled.iter().skip(first).rev(), |_| true))?;
        let merged = writer.finish()?;
        self.spilled.truncate(first);
        self.spilled.push(merged);
        Ok(())
    }

    fn failed(&self, operation: &'static str) -> impl FnOnce(io::Error) -> IndexError {
        let path = self.spill_dir.clone();
        move |source| IndexError { operation, path, source }
    }
}

/// The runs of indexes that have done their work, newest first.
#[derive(Debug)]
pub struct Runs(Vec<Run>);

impl Runs {
    /// These, and behind them older ones.
    #[must_use]
    pub fn followed_by(mut self, older: Self) -> Self {
        self.0.extend(older.0);
        self
    }

    /// Writes the chunks that `keep` asks for into a new cache file at `path`, in place of one that is there; of one
    /// fingerprint the newest. The snapshot it belongs to is named by `identity`, and `key` authenticates it.
    ///
    /// # Errors
    /// [`IndexError`]; the old file then stays as it was.
    pub fn save(
        &self,
        keep: impl Fn(ChunkNumber) -> bool,
        path: &Path,
        identity: &CacheIdentity,
        key: &[u8; 32],
    ) -> Result<CacheStatistics, IndexError> {
        write_cache(path, identity, key, Merge::new(&self.0, keep)).map_err(|source| IndexError {
            operation: "writing",
            path: path.to_owned(),
            source,
        })
    }
}

/// Entries of a hash table that, doubling as it grows and filled to 7/8, stays within `bytes`.
fn new_entries_within(bytes: u64) -> usize {
    let buckets = bytes / NEW_BUCKET_BYTES;
    let power = buckets.checked_ilog2().map_or(0, |log| 1u64 << log);
    usize::try_from(power / 8 * 7).unwrap_or(usize::MAX).max(NEW_ENTRIES_LEAST)
}

fn sorted_run(table: &NewTable) -> Run {
    let mut records: Vec<_> =
        table.iter().map(|(&fingerprint, &number)| Record { fingerprint, number }.pack()).collect();
    records.sort_unstable();
    Run::unfenced(records)
}

/// Takes eight bytes of a fingerprint as its hash: they are uniform already, and nobody without the key can choose
/// them.
#[derive(Default)]
struct FingerprintHasher(u64);

impl Hasher for FingerprintHasher {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
    }

    /// The length of the fingerprint, which is always the same.
    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A file of the index could not be read or written.
#[derive(Debug, thiserror::Error)]
#[error("{operation} the index of chunks in {}: {source}", path.display())]
pub struct IndexError {
    operation: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl IndexError {
    /// Returns the kind of failure, such as a full disk.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }
}

impl From<IndexError> for EngineError {
    fn from(error: IndexError) -> Self {
        Self::Local { source: io::Error::new(error.kind(), error) }
    }
}

#[cfg(test)]
mod tests;

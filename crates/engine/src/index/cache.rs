//! The cache files: the run of a series' last snapshot, and that of what only older live snapshots hold, kept on this
//! machine from one backup to the next.
//!
//! ```text
//! header    64 bytes   magic "SILTINDX" or "SILTOLDR" | version u64 | series [16] | snapshot [32]
//! records   24 each    fingerprint [16] | chunk number u64; ascending by fingerprint, none twice
//! trailer   40 bytes   as of all cache files
//! ```
//!
//! The frame is that of [`crate::cache_file`].

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::CacheStatistics;
use super::merge::Merge;
use super::record::{Packed, RECORD_BYTES, Record};
use super::run::{FenceBuilder, Run};
pub use crate::cache_file::CacheRefused;
use crate::cache_file::{CacheWriter, RecordFile};
use siltstone_store::{ChunkNumber, Fingerprint, SeriesId, SnapshotId};
use std::io;
use std::path::Path;

const VERSION: u64 = 1;

/// The previous run is held in memory if it takes at most this part of the budget, so that new chunks keep room.
const MEMORY_PART_OF_BUDGET: (u64, u64) = (5, 8);
/// Else its fences alone take at most this part.
const FENCES_PART_OF_BUDGET: u64 = 64;

/// Which chunks a cache file lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheKind {
    /// Those that the last snapshot refers to.
    Last,
    /// Others that live snapshots needed when it was made.
    Older,
}

impl CacheKind {
    fn magic(self) -> &'static [u8; 8] {
        match self {
            Self::Last => b"SILTINDX",
            Self::Older => b"SILTOLDR",
        }
    }
}

/// The snapshot that a cache file describes. A snapshot never changes, and its chunks keep their numbers wherever they
/// lie: nothing else can make a list of its chunks stale. That of older chunks can be: whoever uses it looks whether
/// they still live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheIdentity {
    /// Which chunks.
    pub kind: CacheKind,
    /// The series.
    pub series: SeriesId,
    /// Its last snapshot.
    pub snapshot: SnapshotId,
}

impl CacheIdentity {
    fn header(&self) -> Vec<u8> {
        [self.kind.magic().as_slice(), &VERSION.to_le_bytes(), &self.series.0, &self.snapshot.0].concat()
    }
}

/// The chunks that a cache file lists, to open a [`super::FingerprintIndex`] with.
#[derive(Debug)]
pub struct CachedRun(Run);

impl CachedRun {
    /// No chunks: for a series without snapshots, or an index that is about to be filled from the repository.
    pub fn empty() -> Self {
        Self(Run::unfenced(Vec::new()))
    }

    /// Opens and verifies the cache file at `path`. It is held in memory if it fits well into `budget_bytes`, the whole
    /// budget of the index.
    ///
    /// # Errors
    /// [`CacheRefused`]: there is none that can be trusted; fill the index from the repository.
    pub fn open(
        path: &Path,
        identity: &CacheIdentity,
        key: &[u8; 32],
        budget_bytes: u64,
    ) -> Result<Self, CacheRefused> {
        let header = identity.header();
        let file = RecordFile::open(path, &header)?;
        let mut building = Building::new(file.count(), budget_bytes);
        file.verify(&header, key, |block| building.add(block))?;
        let Building { held, fences, .. } = building;
        tracing::debug!(chunks = file.count(), is_in_memory = held.is_some(), "opened the local index");
        let (records, (file, start)) = (file.count(), file.into_file());
        let fences = fences.finish(records);
        Ok(Self(match held {
            Some(held) => Run::in_memory(held, fences),
            None => Run::in_file(file, start, records, fences),
        }))
    }

    /// How many chunks it holds.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Tells whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn into_run(self) -> Run {
        self.0
    }
}

/// Part of a run's file that stays in memory, made while the file is read from front to end.
struct Building {
    /// The records, if they are to stay in memory.
    held: Option<Vec<Packed>>,
    fences: FenceBuilder,
    last: Option<Fingerprint>,
}

impl Building {
    fn new(records: u64, budget_bytes: u64) -> Self {
        let fences = FenceBuilder::new(records, budget_bytes / FENCES_PART_OF_BUDGET);
        let (part, of) = MEMORY_PART_OF_BUDGET;
        let fits = records.saturating_mul(RECORD_BYTES as u64) <= budget_bytes / of * part;
        let held = usize::try_from(records).ok().filter(|_| fits).map(Vec::with_capacity);
        Self { held, fences, last: None }
    }

    fn add(&mut self, block: &[Packed]) -> Result<(), CacheRefused> {
        for packed in block {
            let Record { fingerprint, .. } = Record::unpack(packed);
            if self.last.is_some_and(|last| last >= fingerprint) {
                return Err(CacheRefused::Damaged);
            }
            self.last = Some(fingerprint);
            self.fences.push(&fingerprint);
        }
        if let Some(held) = &mut self.held {
            held.extend_from_slice(block);
        }
        Ok(())
    }
}

/// Writes what `records` gives as a cache file, in place of the one at `path`.
pub(super) fn write_cache<K: Fn(ChunkNumber) -> bool>(
    path: &Path,
    identity: &CacheIdentity,
    key: &[u8; 32],
    mut records: Merge<'_, K>,
) -> io::Result<CacheStatistics> {
    let mut writer = CacheWriter::create(path, &identity.header(), key)?;
    for record in records.by_ref() {
        writer.push(&record?.pack())?;
    }
    Ok(CacheStatistics { chunks_kept: writer.finish()?, chunks_dropped: records.dropped() })
}

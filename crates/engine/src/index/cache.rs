//! The cache file: the run of a series' last snapshot, kept on this machine from one backup to the next.
//!
//! ```text
//! header    64 bytes   magic "SILTINDX" | version u64 | series [16] | snapshot [32]
//! records   24 each    fingerprint [16] | chunk number u64; ascending by fingerprint, none twice
//! trailer   40 bytes   number of records u64 | MAC [32]: BLAKE3, keyed, of all bytes before it
//! ```
//!
//! Numbers are little-endian. The count stands behind the records because it is known only then. The file is written
//! beside its place and renamed; it is not synced, since one torn by a crash fails its MAC and is only built again. It
//! is verified as a whole when opened: after that it is read through the same open file, which nothing of ours writes
//! to.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::CacheStatistics;
use super::merge::Merge;
use super::record::{Packed, RECORD_BYTES, Record};
use super::run::{FenceBuilder, Run};
use siltstone_store::{ChunkNumber, Fingerprint, SeriesId, SnapshotId};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;
use tempfile::NamedTempFile;

const MAGIC: &[u8; 8] = b"SILTINDX";
const VERSION: u64 = 1;
const HEADER_BYTES: usize = 64;
const TRAILER_BYTES: usize = 8 + MAC_BYTES;
const MAC_BYTES: usize = 32;
/// Records read at a time.
const BLOCK_RECORDS: u64 = 4096;

/// The previous run is held in memory if it takes at most this part of the budget, so that new chunks keep room.
const MEMORY_PART_OF_BUDGET: (u64, u64) = (5, 8);
/// Else its fences alone take at most this part.
const FENCES_PART_OF_BUDGET: u64 = 64;

/// The snapshot that a cache file describes. A snapshot never changes, and its chunks keep their numbers wherever they lie: nothing
/// else can make the file stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheIdentity {
    /// The series.
    pub series: SeriesId,
    /// Its last snapshot.
    pub snapshot: SnapshotId,
}

impl CacheIdentity {
    fn header(&self) -> Vec<u8> {
        [MAGIC.as_slice(), &VERSION.to_le_bytes(), &self.series.0, &self.snapshot.0].concat()
    }
}

/// The chunks of the last snapshot, to open a [`super::FingerprintIndex`] with.
#[derive(Debug)]
pub struct PreviousRun(Run);

impl PreviousRun {
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
        let file = File::open(path)?;
        let around = (HEADER_BYTES + TRAILER_BYTES) as u64;
        let body = file.metadata()?.len().checked_sub(around).ok_or(CacheRefused::Damaged)?;
        if !body.is_multiple_of(RECORD_BYTES as u64) {
            return Err(CacheRefused::Damaged);
        }
        let mut verifier = Verifier::new(&file, body / RECORD_BYTES as u64, key, budget_bytes);
        verifier.header(identity)?;
        verifier.records()?;
        verifier.trailer()?;
        let Verifier { held, fences, records, .. } = verifier;
        let fences = fences.finish(records);
        Ok(Self(match held {
            Some(held) => Run::in_memory(held, fences),
            None => Run::in_file(file, HEADER_BYTES as u64, records, fences),
        }))
    }

    /// How many chunks it holds.
    pub fn len(&self) -> u64 {
        self.0.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(super) fn into_run(self) -> Run {
        self.0
    }
}

/// Why a cache file is not used. Never a reason to stop.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheRefused {
    /// It is not there, or cannot be read.
    #[error("no index cache could be read: {0}")]
    Unreadable(#[from] io::Error),
    /// It is no cache file of a version known here.
    #[error("the index cache is of another version")]
    Unknown,
    /// It describes another series, or another state of it.
    #[error("the index cache belongs to another state of the series")]
    OtherSnapshot,
    /// Its content is not what was written.
    #[error("the index cache is damaged")]
    Damaged,
}

/// Reads a cache file once from front to end, hashing all and building what the run needs.
struct Verifier<'f> {
    file: &'f File,
    mac: blake3::Hasher,
    records: u64,
    /// The records, if they are to stay in memory.
    held: Option<Vec<Packed>>,
    fences: FenceBuilder,
    last: Option<Fingerprint>,
}

impl<'f> Verifier<'f> {
    fn new(file: &'f File, records: u64, key: &[u8; 32], budget_bytes: u64) -> Self {
        let fences = FenceBuilder::new(records, budget_bytes / FENCES_PART_OF_BUDGET);
        let (part, of) = MEMORY_PART_OF_BUDGET;
        let fits = records.saturating_mul(RECORD_BYTES as u64) <= budget_bytes / of * part;
        let held = usize::try_from(records).ok().filter(|_| fits).map(Vec::with_capacity);
        Self { file, mac: blake3::Hasher::new_keyed(key), records, held, fences, last: None }
    }

    fn header(&mut self, identity: &CacheIdentity) -> Result<(), CacheRefused> {
        let mut found = [0; HEADER_BYTES];
        self.file.read_exact(&mut found)?;
        self.mac.update(&found);
        let wanted = identity.header();
        if found.as_slice() == wanted {
            Ok(())
        } else if found.first_chunk::<16>() == wanted.first_chunk::<16>() {
            Err(CacheRefused::OtherSnapshot)
        } else {
            Err(CacheRefused::Unknown)
        }
    }

    fn records(&mut self) -> Result<(), CacheRefused> {
        let mut left = self.records;
        let mut block = Vec::new();
        while left > 0 {
            let count = left.min(BLOCK_RECORDS);
            block.resize(usize::try_from(count).unwrap_or(0), [0; RECORD_BYTES]);
            self.file.read_exact(block.as_flattened_mut())?;
            self.mac.update(block.as_flattened());
            for packed in &block {
                self.record(&Record::unpack(packed))?;
            }
            if let Some(held) = &mut self.held {
                held.extend_from_slice(&block);
            }
            left -= count;
        }
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), CacheRefused> {
        if self.last.is_some_and(|last| last >= record.fingerprint) {
            return Err(CacheRefused::Damaged);
        }
        self.last = Some(record.fingerprint);
        self.fences.push(&record.fingerprint);
        Ok(())
    }

    fn trailer(&mut self) -> Result<(), CacheRefused> {
        let (mut count, mut mac) = ([0; 8], [0; MAC_BYTES]);
        self.file.read_exact(&mut count)?;
        self.file.read_exact(&mut mac)?;
        self.mac.update(&count);
        // `Hash` compares in constant time.
        let genuine = self.mac.finalize() == blake3::Hash::from_bytes(mac);
        if genuine && u64::from_le_bytes(count) == self.records { Ok(()) } else { Err(CacheRefused::Damaged) }
    }
}

/// Writes what `records` gives as a cache file, in place of the one at `path`.
pub(super) fn write_cache<K: Fn(ChunkNumber) -> bool>(
    path: &Path,
    identity: &CacheIdentity,
    key: &[u8; 32],
    mut records: Merge<'_, K>,
) -> io::Result<CacheStatistics> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder)?;
    let hashed = HashedFile { file: NamedTempFile::new_in(folder)?, mac: blake3::Hasher::new_keyed(key) };
    let mut to = BufWriter::with_capacity(RECORD_BYTES << 12, hashed);
    to.write_all(&identity.header())?;
    let mut kept: u64 = 0;
    for record in records.by_ref() {
        to.write_all(&record?.pack())?;
        kept += 1;
    }
    to.write_all(&kept.to_le_bytes())?;
    let HashedFile { mut file, mac } = to.into_inner().map_err(io::IntoInnerError::into_error)?;
    file.write_all(mac.finalize().as_bytes())?;
    file.persist(path)?;
    Ok(CacheStatistics { chunks_kept: kept, chunks_dropped: records.dropped() })
}

/// A file under way and the hash of what it holds so far.
struct HashedFile {
    file: NamedTempFile,
    mac: blake3::Hasher,
}

impl Write for HashedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.mac.update(bytes.get(..written).unwrap_or(bytes));
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

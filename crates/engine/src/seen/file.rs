//! The file of a memory: authenticated records of one size, replaced as a whole under a lock.
//!
//! ```text
//! header    "SILTSEEN" | version u64 = 1 | repository id [16]
//! record    0: the record of the repository, 1: a series, u8 | series id [16], or zeros | sequence u64 | committed, seconds i64 | hash [32] | next data u64 | next metadata u64 |
//!           length of the title u8 | title [79]
//! ```
//! Numbers are little-endian. The trailer is that of [`crate::cache_file`].

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{Sighting, Subject};
use crate::cache_file::{CacheRefused, CacheWriter, RecordFile};
use crate::history::TITLE_BYTES;
use siltstone_store::{RepositoryId, SeriesId, Time};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SILTSEEN";
const VERSION: u64 = 1;
const RECORD_BYTES: usize = 1 + 16 + 8 + 8 + 32 + 8 + 8 + 1 + TITLE_BYTES;
/// Histories remembered of one repository.
const SUBJECTS_MAX: usize = 1 << 20;

type Record = [u8; RECORD_BYTES];

/// Where a repository's memory lies, and the key that authenticates it.
#[derive(Debug)]
pub(super) struct MemoryFile {
    folder: PathBuf,
    name: String,
    header: Vec<u8>,
    key: [u8; 32],
}

impl MemoryFile {
    pub(super) fn new(folder: &Path, repository: RepositoryId, key: [u8; 32]) -> Self {
        let mut header = MAGIC.to_vec();
        header.extend(VERSION.to_le_bytes());
        header.extend(repository.0);
        Self { folder: folder.to_owned(), name: repository.to_string(), header, key }
    }

    fn path(&self) -> PathBuf {
        self.folder.join(format!("{}.seen", self.name))
    }

    /// Reads what was seen; `true` if there is a file, and it is not what was written.
    pub(super) fn read(&self) -> io::Result<(BTreeMap<Subject, Sighting>, bool)> {
        match self.read_records() {
            Ok(seen) => Ok((seen, false)),
            Err(CacheRefused::Unreadable(error)) if error.kind() == ErrorKind::NotFound => Ok((BTreeMap::new(), false)),
            Err(CacheRefused::Unreadable(error)) if error.kind() != ErrorKind::UnexpectedEof => Err(error),
            Err(_) => Ok((BTreeMap::new(), true)),
        }
    }

    fn read_records(&self) -> Result<BTreeMap<Subject, Sighting>, CacheRefused> {
        let file = RecordFile::<RECORD_BYTES>::open(&self.path(), &self.header)?;
        let mut seen = BTreeMap::new();
        if file.count() > SUBJECTS_MAX as u64 {
            return Err(CacheRefused::Damaged);
        }
        file.verify(&self.header, &self.key, |block| {
            block.iter().try_for_each(|record| {
                let (subject, sighting) = decode(record).ok_or(CacheRefused::Damaged)?;
                seen.insert(subject, sighting);
                Ok(())
            })
        })?;
        Ok(seen)
    }

    /// Adds what was seen: of each series the highest number stays.
    pub(super) fn merge(&self, seen: &BTreeMap<Subject, Sighting>) -> io::Result<()> {
        let _lock = self.lock()?;
        let (before, _) = self.read()?;
        let mut all = before.clone();
        for (subject, sighting) in seen {
            if all.get(subject).is_none_or(|known| known.sequence < sighting.sequence) {
                all.insert(*subject, sighting.clone());
            }
        }
        if all == before { Ok(()) } else { self.write(&all) }
    }

    /// Puts these in place of what was remembered of them, or forgets them; gives all that is remembered.
    pub(super) fn revise(&self, now: BTreeMap<Subject, Option<Sighting>>) -> io::Result<BTreeMap<Subject, Sighting>> {
        let _lock = self.lock()?;
        let (mut all, _) = self.read()?;
        for (subject, sighting) in now {
            match sighting {
                Some(sighting) => drop(all.insert(subject, sighting)),
                None => drop(all.remove(&subject)),
            }
        }
        self.write(&all)?;
        Ok(all)
    }

    /// Takes the place of whatever was remembered.
    pub(super) fn replace(&self, seen: &BTreeMap<Subject, Sighting>) -> io::Result<()> {
        let _lock = self.lock()?;
        self.write(seen)
    }

    fn lock(&self) -> io::Result<File> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        let path = self.folder.join(format!("{}.lock", self.name));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
        file.lock()?;
        Ok(file)
    }

    fn write(&self, seen: &BTreeMap<Subject, Sighting>) -> io::Result<()> {
        let mut writer = CacheWriter::<RECORD_BYTES>::create(&self.path(), &self.header, &self.key)?;
        for (subject, sighting) in seen.iter().take(SUBJECTS_MAX) {
            writer.push(&encode(*subject, sighting))?;
        }
        writer.finish_durably().map(drop)
    }
}

fn encode(subject: Subject, sighting: &Sighting) -> Record {
    let title = sighting.title.get(..sighting.title.floor_char_boundary(TITLE_BYTES)).unwrap_or_default();
    let (kind, series) = match subject {
        Subject::Record => (0, [0; 16]),
        Subject::Series(series) => (1, series.0),
    };
    let mut bytes = vec![kind];
    bytes.extend(series);
    bytes.extend(sighting.sequence.to_le_bytes());
    bytes.extend(sighting.committed.seconds.to_le_bytes());
    bytes.extend(sighting.hash);
    bytes.extend(sighting.next.map(u64::to_le_bytes).concat());
    bytes.push(u8::try_from(title.len()).unwrap_or(0));
    bytes.extend(title.as_bytes());
    bytes.resize(RECORD_BYTES, 0);
    bytes.try_into().unwrap_or([0; RECORD_BYTES])
}

fn decode(record: &Record) -> Option<(Subject, Sighting)> {
    let (kind, rest) = record.split_first()?;
    let (series, rest) = rest.split_first_chunk()?;
    let subject = match kind {
        0 => Subject::Record,
        1 => Subject::Series(SeriesId(*series)),
        _ => return None,
    };
    let (sequence, rest) = rest.split_first_chunk()?;
    let (seconds, rest) = rest.split_first_chunk()?;
    let (hash, rest) = rest.split_first_chunk()?;
    let (next_data, rest) = rest.split_first_chunk()?;
    let (next_metadata, rest) = rest.split_first_chunk()?;
    let (length, title) = rest.split_first()?;
    let title = str::from_utf8(title.get(..usize::from(*length))?).ok()?;
    let sighting = Sighting {
        title: title.to_owned(),
        sequence: u64::from_le_bytes(*sequence),
        committed: Time { seconds: i64::from_le_bytes(*seconds), nanoseconds: 0 },
        hash: *hash,
        next: [u64::from_le_bytes(*next_data), u64::from_le_bytes(*next_metadata)],
    };
    Some((subject, sighting))
}

//! When each container was last read as a whole and found sound, as this machine remembers it: a check reads what it
//! has not read for long.
//!
//! ```text
//! header    32 bytes   magic "SILTREAD" | version u64 | series [16]
//! records   28 each    lease u64 | serial u32 | hash of the salt [8] | seconds since 1970 i64
//! trailer   40 bytes   as of all files kept on this machine
//! ```
//! A salt pins a container, so what another copy of the repository has under the same name was not read. Containers
//! that are gone are left out when the file is written. It is a hint: without it everything is read.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::cache_file::{CacheRefused, CacheWriter, RecordFile};
use siltstone_store::ContainerId;
use siltstone_store::SeriesId;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"SILTREAD";
const VERSION: u64 = 1;
const RECORD_BYTES: usize = 28;

/// Mark that pins a container, and when it was read: seconds since 1970.
type Reading = ([u8; 8], i64);

/// The readings of one series.
#[derive(Debug)]
pub(super) struct ReadLog {
    /// `None`: nothing is kept.
    path: Option<PathBuf>,
    header: Vec<u8>,
    key: [u8; 32],
    readings: HashMap<ContainerId, Reading>,
}

impl ReadLog {
    /// Opens the folder's log of the series; it is empty if that is missing or cannot be trusted.
    pub(super) fn open(folder: Option<&Path>, repository: &Repository, series: SeriesId) -> Self {
        let header = [MAGIC.as_slice(), &VERSION.to_le_bytes(), &series.0].concat();
        let path = folder.map(|folder| folder.join(repository.id().to_string()).join(format!("{series}.read")));
        let key = repository.keys().cache_key();
        let readings = path.as_ref().and_then(|path| read(path, &header, &key).ok()).unwrap_or_default();
        Self { path, header, key, readings }
    }

    /// When the container was last read, seconds since 1970; `None` if that is not known.
    pub(super) fn last_read(&self, record: &ContainerRecord) -> Option<i64> {
        let (pin, seconds) = self.readings.get(&record.id)?;
        (*pin == pin_of(record)).then_some(*seconds)
    }

    /// The container was read as a whole and is sound, or it is not.
    pub(super) fn note(&mut self, record: &ContainerRecord, is_sound: bool, now_seconds: i64) {
        if is_sound {
            self.readings.insert(record.id, (pin_of(record), now_seconds));
        } else {
            self.readings.remove(&record.id);
        }
    }

    /// Writes what is known of the containers there are.
    ///
    /// # Errors
    /// If the folder cannot be written; the file then stays as it was.
    pub(super) fn save(&self, manifest: &Manifest) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        let mut writer = CacheWriter::<RECORD_BYTES>::create(path, &self.header, &self.key)?;
        for record in &manifest.containers {
            if let Some(seconds) = self.last_read(record) {
                writer.push(&packed(record.id, (pin_of(record), seconds)))?;
            }
        }
        writer.finish().map(drop)
    }
}

fn pin_of(record: &ContainerRecord) -> [u8; 8] {
    blake3::hash(&record.salt).as_bytes().first_chunk().copied().unwrap_or_default()
}

fn packed(id: ContainerId, (pin, seconds): Reading) -> [u8; RECORD_BYTES] {
    let fields = [id.lease.to_le_bytes().as_slice(), &id.serial.to_le_bytes(), &pin, &seconds.to_le_bytes()].concat();
    fields.first_chunk().copied().unwrap_or([0; RECORD_BYTES])
}

fn unpacked(packed: &[u8; RECORD_BYTES]) -> Option<(ContainerId, Reading)> {
    let (lease, rest) = packed.split_first_chunk()?;
    let (serial, rest) = rest.split_first_chunk()?;
    let (pin, rest) = rest.split_first_chunk()?;
    let id = ContainerId { lease: u64::from_le_bytes(*lease), serial: u32::from_le_bytes(*serial) };
    Some((id, (*pin, i64::from_le_bytes(*rest.first_chunk()?))))
}

/// How many readings a file with this header holds.
pub(crate) fn readings(path: &Path, header: &[u8], key: &[u8; 32]) -> Result<usize, CacheRefused> {
    read(path, header, key).map(|readings| readings.len())
}

fn read(path: &Path, header: &[u8], key: &[u8; 32]) -> Result<HashMap<ContainerId, Reading>, CacheRefused> {
    let file = RecordFile::<RECORD_BYTES>::open(path, header)?;
    let mut readings = HashMap::new();
    file.verify(header, key, |block| {
        readings.extend(block.iter().filter_map(unpacked));
        Ok(())
    })?;
    Ok(readings)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_survives_packing() {
        let (id, reading) = (ContainerId { lease: 7, serial: 9 }, ([3; 8], -5));
        assert_eq!(unpacked(&packed(id, reading)), Some((id, reading)));
    }
}

//! Making a damaged container good again with its parity, in memory.

use super::{Layout, code};
use crate::container::{ContainerKind, ContainerReader, ContainerRecord};
use crate::error::StoreError;
use crate::header::ObjectHeader;
use crate::region::RegionDecoder;
use crate::secrets::RepositoryKeys;
use crate::storage::{ObjectName, Storage, StorageError};
use crate::{ContainerId, SeriesId};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes read at once of a container that cannot be read whole: a disk's page. Those that fail are taken for lost.
const PIECE_BYTES: usize = 4096;

/// The bytes of a container that is damaged, cut short, or not readable everywhere, as its parity object restores them.
/// They are verified: header, seals, index and trailer hold under the recorded salt.
///
/// # Errors
/// Those of reading the parity object, those of a place that is away or refuses to give the container, and
/// [`StoreError::Damaged`] of the parity object if too much is lost or what it restores is another container.
pub fn heal(
    storage: &dyn Storage,
    keys: &RepositoryKeys,
    series: SeriesId,
    record: &ContainerRecord,
) -> Result<Vec<u8>, StoreError> {
    let (container, name) = (record.object_name(series), ObjectName::Parity(series, record.id));
    record.validate(&container)?;
    let object = storage.read(&name, name.bytes_max())?;
    if let Err(error @ (StoreError::UnknownVersion { .. } | StoreError::UnknownFeature { .. })) =
        ObjectHeader::parse(&name, &object)
    {
        return Err(error);
    }
    let another =
        || StoreError::damaged(&name, "shards", "they do not restore the container that the manifest records");
    if Layout::find(&name, &object)?.container_bytes != record.object_bytes {
        return Err(another());
    }
    let left = read_what_is_left(storage, &container, record.object_bytes)?;
    let healed = code::mend(&name, &left, &object)?;
    let damage = ContainerReader::check(keys, series, record, &healed, &mut RegionDecoder::new());
    if damage.is_empty() { Ok(healed) } else { Err(another()) }
}

/// A container of which no manifest is left that records it, as its parity object restores it: every seal of it holds
/// under its own header.
///
/// # Errors
/// As [`heal`].
pub fn recover(
    storage: &dyn Storage,
    keys: &RepositoryKeys,
    series: SeriesId,
    kind: ContainerKind,
    id: ContainerId,
) -> Result<ContainerReader, StoreError> {
    let (container, name) = (ObjectName::Container(kind, series, id), ObjectName::Parity(series, id));
    let object = storage.read(&name, name.bytes_max())?;
    let bytes = Layout::find(&name, &object)?.container_bytes;
    let left = read_what_is_left(storage, &container, bytes)?;
    let healed = code::mend(&name, &left, &object)?;
    let reader = ContainerReader::from_object(keys, series, kind, id, &healed)?;
    match ContainerReader::check(keys, series, reader.record(), &healed, &mut RegionDecoder::new()).into_iter().next() {
        Some(damage) => Err(damage.error),
        None => Ok(reader),
    }
}

/// Reads as many bytes of an object as there are, up to a bound, with zeros where they are lost.
///
/// # Errors
/// The first that is no loss: a place that is away or refuses does so for each page, and is asked many times for each.
pub(crate) fn read_what_is_left(storage: &dyn Storage, name: &ObjectName, bytes: u64) -> Result<Vec<u8>, StorageError> {
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match storage.read_range(name, 0, length(bytes)) {
        Err(StorageError::TooShort { found, .. }) if found < bytes => return read_what_is_left(storage, name, found),
        Err(StorageError::NotFound { .. }) => return Ok(Vec::new()),
        Err(error) if is_of_object(&error) => {}
        whole => return whole,
    }
    let mut left = Vec::new();
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let piece = length(bytes - offset).min(PIECE_BYTES);
        match storage.read_range(name, offset, piece) {
            Err(error) if is_of_object(&error) => left.resize(left.len() + piece, 0),
            read => left.extend(read?),
        }
    }
    Ok(left)
}

/// Tells whether a read failed because of what it asked for, so that another part of the object may be read.
fn is_of_object(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::Unreadable { .. }
            | StorageError::Io { .. }
            | StorageError::TooShort { .. }
            | StorageError::NotFound { .. }
    )
}

/// Heals containers for those who read, one at a time: keeps the last one healed, and remembers which were and which
/// cannot be.
#[derive(Debug, Default)]
pub struct Healer(Mutex<Healed>);

#[derive(Debug, Default)]
struct Healed {
    last: Option<(ObjectName, Arc<[u8]>)>,
    all: BTreeSet<ObjectName>,
    hopeless: BTreeSet<ObjectName>,
}

impl Healer {
    /// The container's bytes as its parity restores them; `None` if it has none, or too little.
    pub fn heal(
        &self,
        storage: &dyn Storage,
        keys: &RepositoryKeys,
        series: SeriesId,
        record: &ContainerRecord,
    ) -> Option<Arc<[u8]>> {
        let mut healed = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let name = record.object_name(series);
        if let Some((last, bytes)) = &healed.last
            && *last == name
        {
            return Some(bytes.clone());
        }
        if healed.hopeless.contains(&name) {
            return None;
        }
        // The one before goes first, so that there is one in memory at a time.
        healed.last = None;
        match heal(storage, keys, series, record) {
            Ok(bytes) => {
                let bytes: Arc<[u8]> = bytes.into();
                healed.last = Some((name, bytes.clone()));
                healed.all.insert(name);
                Some(bytes)
            }
            Err(error) => {
                // While the place is away nobody knows.
                if error.is_damage() {
                    healed.hopeless.insert(name);
                }
                None
            }
        }
    }

    /// The containers healed so far: damaged in the repository until it is repaired.
    pub fn healed(&self) -> Vec<ObjectName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{Call, Guarded, Outcome, SimulatedDisk};
    use std::io;
    use std::sync::atomic::{AtomicU64, Ordering};

    const NAME: ObjectName =
        ObjectName::Container(ContainerKind::Data, SeriesId([7; 16]), ContainerId { lease: 1, serial: 1 });
    /// Three pages and a half.
    const BYTES: u64 = 14_336;

    fn unreadable(name: &ObjectName) -> StorageError {
        StorageError::Unreadable { name: *name, source: io::Error::other("a bad sector") }
    }

    fn unavailable(name: &ObjectName) -> StorageError {
        StorageError::Unavailable {
            operation: "read",
            name: name.to_string(),
            location: "the place".to_owned(),
            tries: 12,
            reason: "503".to_owned(),
        }
    }

    fn refused(name: &ObjectName) -> StorageError {
        let (location, reason) = ("the place".to_owned(), "403".to_owned());
        StorageError::Refused { operation: "read", name: name.to_string(), location, reason }
    }

    /// Reads an object of which every read fails; gives what is read, and how many reads are made. The failure is told
    /// by the number of the read, from 0.
    fn read_where(failure: fn(u64, &ObjectName) -> StorageError) -> (Result<Vec<u8>, StorageError>, u64) {
        let reads = Arc::new(AtomicU64::new(0));
        let counted = Arc::clone(&reads);
        let storage = Guarded::new(SimulatedDisk::new(), move |call| match call {
            Call::Read(name) => Outcome::Refused(failure(counted.fetch_add(1, Ordering::Relaxed), name)),
            _ => Outcome::Made,
        });
        let read = read_what_is_left(&storage, &NAME, BYTES);
        (read, reads.load(Ordering::Relaxed))
    }

    #[test]
    fn pages_are_read_one_by_one_where_a_medium_does_not_give_them_back() {
        let (read, reads) = read_where(|_, name| unreadable(name));
        assert!(read.is_ok_and(|left| left.len() == 14_336 && left.iter().all(|byte| *byte == 0)));
        assert_eq!(reads, 1 + 4);
    }

    /// Each would be tried many times: a day for a large container.
    #[test]
    fn a_place_that_is_away_or_refuses_is_not_asked_for_each_page() {
        let (read, reads) = read_where(|_, name| unavailable(name));
        assert!(matches!(read, Err(StorageError::Unavailable { .. })) && reads == 1, "{read:?}");
        let (read, reads) = read_where(|_, name| refused(name));
        assert!(matches!(read, Err(StorageError::Refused { .. })) && reads == 1, "{read:?}");
        let (read, reads) = read_where(|nth, name| if nth < 2 { unreadable(name) } else { unavailable(name) });
        assert!(matches!(read, Err(StorageError::Unavailable { .. })) && reads == 3, "{read:?}");
    }
}

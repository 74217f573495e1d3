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
/// Those of reading the parity object, and [`StoreError::Damaged`] of it if too much is lost or what it restores is
/// another container.
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
    let healed = code::mend(&name, &read_what_is_left(storage, &container, record.object_bytes), &object)?;
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
    let healed = code::mend(&name, &read_what_is_left(storage, &container, bytes), &object)?;
    let reader = ContainerReader::from_object(keys, series, kind, id, &healed)?;
    match ContainerReader::check(keys, series, reader.record(), &healed, &mut RegionDecoder::new()).into_iter().next() {
        Some(damage) => Err(damage.error),
        None => Ok(reader),
    }
}

/// Reads as many bytes of an object as there are, up to a bound, with zeros where they cannot be read.
pub(crate) fn read_what_is_left(storage: &dyn Storage, name: &ObjectName, bytes: u64) -> Vec<u8> {
    let length = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    match storage.read_range(name, 0, length(bytes)) {
        Ok(whole) => return whole,
        Err(StorageError::TooShort { found, .. }) if found < bytes => return read_what_is_left(storage, name, found),
        Err(StorageError::NotFound { .. }) => return Vec::new(),
        Err(_) => {}
    }
    let mut left = Vec::new();
    for offset in (0..bytes).step_by(PIECE_BYTES) {
        let piece = length(bytes - offset).min(PIECE_BYTES);
        left.extend(storage.read_range(name, offset, piece).unwrap_or_else(|_| vec![0; piece]));
    }
    left
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
            Err(_) => {
                healed.hopeless.insert(name);
                None
            }
        }
    }

    /// The containers healed so far: damaged in the repository until it is repaired.
    pub fn healed(&self) -> Vec<ObjectName> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).all.iter().copied().collect()
    }
}

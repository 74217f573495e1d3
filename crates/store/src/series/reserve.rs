//! The reserve: bytes without meaning, given up so that a writer that makes room can commit on a full disk.

use super::ReserveUse;
use crate::StoreError;
use crate::repository::Repository;
use crate::secrets::random_bytes;
use crate::storage::{ObjectName, RESERVE_MANIFESTS, StorageError};

/// The least size of the reserve that lets `forget` commit on a full disk.
const RESERVE_BYTES_MIN: u64 = 256 << 10;

/// Writes something; on a full disk the reserve may be given up for it, and its size is then returned.
pub(super) fn from_reserve<T>(
    repository: &Repository,
    reserve: ReserveUse,
    write: impl Fn() -> Result<T, StoreError>,
) -> Result<(T, Option<u64>), StoreError> {
    let storage = repository.storage();
    match write() {
        Err(error) if error.is_full() && reserve == ReserveUse::Spend => {
            let Some(bytes) = reserve_present(repository)? else {
                return Err(error);
            };
            storage.delete(&ObjectName::Reserve)?;
            storage.barrier()?;
            Ok((write()?, Some(bytes)))
        }
        other => Ok((other?, None)),
    }
}

fn reserve_present(repository: &Repository) -> Result<Option<u64>, StoreError> {
    match repository.storage().size_of(&ObjectName::Reserve) {
        Err(error) if error.is_not_found() => Ok(None),
        other => Ok(Some(other?)),
    }
}

/// Makes sure the reserve is there and large enough for manifests of this size; a full disk is no error. A place that
/// cannot run full has none.
pub fn keep_reserve(repository: &Repository, manifest_bytes: u64) -> Result<(), StoreError> {
    if !repository.storage().capabilities().keeps_reserve {
        return Ok(());
    }
    let wanted = manifest_bytes.saturating_mul(RESERVE_MANIFESTS).next_multiple_of(4096).max(RESERVE_BYTES_MIN);
    match reserve_present(repository)? {
        Some(present) if present >= wanted => Ok(()),
        Some(present) => {
            repository.storage().delete(&ObjectName::Reserve)?;
            repository.storage().barrier()?;
            // A small reserve is better than none.
            if !make_reserve(repository, wanted)? {
                make_reserve(repository, present)?;
            }
            Ok(())
        }
        None => make_reserve(repository, wanted).map(drop),
    }
}

/// Random bytes: a file system that compresses or finds holes must not give the space away beforehand. Whether there
/// was room.
pub(super) fn make_reserve(repository: &Repository, wanted: u64) -> Result<bool, StoreError> {
    let mut bytes = Vec::new();
    while (bytes.len() as u64) < wanted {
        bytes.extend_from_slice(&random_bytes::<4096>()?);
    }
    match repository.storage().create(&ObjectName::Reserve, &bytes) {
        Err(error) if error.is_full() => Ok(false),
        Err(StorageError::AlreadyExists { .. }) => Ok(true),
        other => Ok(other.map(|()| true)?),
    }
}

//! What a repair needs of a series that cannot be read: its manifests by number, a commit beyond all of them, and a place for what it replaces.
//!
//! Order, always: what is replaced is durable aside, then the new manifest is committed, then the damaged objects go. A crash in between
//! leaves the series as it was, or repaired with some damaged objects left over.

use crate::manifest::Manifest;
use crate::repository::Repository;
use crate::series::{ReserveUse, StoredManifest, commit_after, manifest_sequence, read_manifest};
use crate::storage::{Listing, ObjectName, Replaced, Storage, StorageError};
use crate::{SeriesId, StoreError, Time};

/// The numbers of the manifests there are, whether they can be read or not, ascending.
pub fn manifest_numbers(repository: &Repository, series: SeriesId) -> Result<Vec<u64>, StoreError> {
    let listed = repository.storage().list(Listing::Manifests(series))?;
    let mut numbers: Vec<u64> = listed.iter().filter_map(manifest_sequence).collect();
    numbers.sort_unstable();
    Ok(numbers)
}

/// The manifest of this number, whether it is the newest or not.
///
/// # Errors
/// Its damage.
pub fn manifest_at(repository: &Repository, series: SeriesId, sequence: u64) -> Result<StoredManifest, StoreError> {
    read_manifest(repository, series, sequence)
}

/// Commits a manifest, without a lease, as the successor of number `last`: the highest ever seen in its series.
///
/// # Errors
/// [`StoreError::Fenced`] if a writer was faster; then nothing was committed.
pub fn commit_beyond(
    repository: &Repository,
    manifest: Manifest,
    last: u64,
    now: Time,
) -> Result<StoredManifest, StoreError> {
    let last_name = ObjectName::Manifest(manifest.series, last);
    let hash = match repository.storage().read(&last_name, last_name.bytes_max()) {
        Ok(object) => *blake3::hash(&object).as_bytes(),
        Err(error) if error.is_not_found() => [0; 32],
        Err(error) => return Err(error.into()),
    };
    let mut before = StoredManifest { manifest: manifest.clone(), object_bytes: 0, hash };
    before.manifest.sequence = last;
    let mut next = manifest;
    next.lease = None;
    commit_after(repository, Some(&before), next, now, ReserveUse::Keep).map(|(stored, _)| stored)
}

/// Keeps the bytes of an object under a name that no reader takes for it; durable on return. The object itself stays. Bytes that are
/// kept already are not kept twice; an object that is gone needs nothing.
pub fn set_aside(storage: &dyn Storage, what: Replaced) -> Result<(), StoreError> {
    let bytes = match storage.read(&what.name(), what.name().bytes_max()) {
        Err(error) if error.is_not_found() => return Ok(()),
        other => other?,
    };
    let mut serial = 0;
    for meta in storage.list(Listing::Aside)? {
        let ObjectName::Aside(of, taken) = meta.name else { continue };
        if of != what {
            continue;
        }
        if storage.read(&meta.name, meta.name.bytes_max())? == bytes {
            return Ok(());
        }
        serial = serial.max(taken.saturating_add(1));
    }
    match storage.create(&ObjectName::Aside(what, serial), &bytes) {
        // Another repair keeps the same bytes.
        Err(StorageError::AlreadyExists { .. }) => Ok(()),
        other => Ok(other?),
    }
}

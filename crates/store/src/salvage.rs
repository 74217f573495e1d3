//! Help for the repair of a series that cannot be read: its manifests by number, a commit beyond all of them, and a
//! place for what it replaces.
//!
//! Order, always: what is replaced is durable aside, then the new manifest is committed, then the damaged objects go. A
//! crash in between leaves the series as it was, or repaired with some damaged objects left over.

use crate::manifest::Manifest;
use crate::parity::read_what_is_left;
use crate::repository::Repository;
use crate::series::commit::{Older, commit_after};
use crate::series::newest::read_either;
use crate::series::{ReserveUse, StoredManifest, StoredParts};
use crate::storage::{Listing, ObjectName, Original, Replaced, Storage, StorageError};
use crate::{SeriesId, StoreError, Time};
use std::collections::BTreeSet;

/// Numbers that must be left beyond what a repair goes on from: it makes several commits, and others come after it.
const NUMBERS_LEFT_MIN: u64 = 16;
/// Commits that [`commit_beyond`] makes.
const COMMITS: u64 = 2;

/// Returns the number after that of an object.
///
/// # Errors
/// [`StoreError::Refused`] if there is none.
pub(crate) fn number_after(name: &ObjectName, number: u64) -> Result<u64, StoreError> {
    number.checked_add(1).ok_or_else(|| none_left(name))
}

/// Refuses a repair that would go on from an object with a number so high that hardly any are left beyond it. No writer
/// gets there: somebody made the name.
///
/// # Errors
/// [`StoreError::Refused`], naming the object.
pub fn require_numbers_after(name: &ObjectName, number: u64) -> Result<(), StoreError> {
    if number > u64::MAX - NUMBERS_LEFT_MIN { Err(none_left(name)) } else { Ok(()) }
}

fn none_left(name: &ObjectName) -> StoreError {
    StoreError::Refused { what: name.to_string(), reason: "no number is left beyond it: move it away".to_owned() }
}

/// The numbers of the manifests of which an original or a copy lies there, whether they can be read or not, ascending.
pub fn manifest_numbers(repository: &Repository, series: SeriesId) -> Result<Vec<u64>, StoreError> {
    let originals = repository.storage().list(Listing::Manifests(series))?;
    let copies = repository.storage().list(Listing::ManifestCopies(series))?;
    let mut numbers: Vec<u64> = originals.iter().chain(&copies).filter_map(|meta| meta.name.sequence()).collect();
    numbers.sort_unstable();
    numbers.dedup();
    Ok(numbers)
}

/// The manifest of this number, by its original or its copy, whether it is the newest or not.
///
/// # Errors
/// Its damage.
pub fn manifest_at(repository: &Repository, series: SeriesId, sequence: u64) -> Result<StoredManifest, StoreError> {
    read_either(repository, series, sequence)
}

/// Commits a manifest, without a lease and so without parts, as the successor of number `last`: the highest ever seen
/// in its series; and once more, so that newest and predecessor are sound.
///
/// # Errors
/// [`StoreError::Fenced`] if a writer was faster, [`StoreError::Refused`] if no number is left; then nothing was
/// committed.
pub fn commit_beyond(
    repository: &Repository,
    manifest: Manifest,
    last: u64,
    now: Time,
) -> Result<StoredManifest, StoreError> {
    let original = Original::Manifest(manifest.series, last);
    last.checked_add(COMMITS).ok_or_else(|| none_left(&original.name()))?;
    let mut before = StoredManifest {
        manifest: manifest.clone(),
        object_bytes: 0,
        hash: hash_of(repository.storage(), original)?,
        from_copy: None,
        parts: StoredParts::default(),
    };
    before.manifest.sequence = last;
    let mut next = manifest;
    next.lease = None;
    let mut first = commit_after(repository, Some(&before), next, now, ReserveUse::Keep, None)?;
    first.settle(repository, Older::Stay, &BTreeSet::new())?;
    // What is replaced goes next. Were it the predecessor, its name would be free for a request that comes late.
    let unchanged = first.stored.manifest.clone();
    let mut second = commit_after(repository, Some(&first.stored), unchanged, now, ReserveUse::Keep, None)?;
    second.settle(repository, Older::Go, &BTreeSet::new())?;
    Ok(second.stored)
}

/// The hash of a manifest or a record as it lies there, sound or not; zeros if the disk gives it back from neither
/// place.
pub(crate) fn hash_of(storage: &dyn Storage, manifest: Original) -> Result<[u8; 32], StoreError> {
    for place in manifest.places() {
        match storage.read(&place, place.bytes_max()) {
            Ok(object) => return Ok(*blake3::hash(&object).as_bytes()),
            Err(error) if error.is_not_found() || matches!(error, StorageError::Unreadable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok([0; 32])
}

/// Returns the places of the object: two for one that is kept twice.
fn places(what: Replaced) -> Vec<ObjectName> {
    what.name().original().map_or_else(|| vec![what.name()], |original| original.places().to_vec())
}

/// Removes an object, from both places if it has two; its bytes are aside.
pub fn remove_replaced(storage: &dyn Storage, what: Replaced) -> Result<(), StoreError> {
    // The copy first: one without an original would count.
    Ok(places(what).iter().rev().try_for_each(|place| storage.delete(place))?)
}

/// Keeps the bytes of an object under a name that no reader takes for it; durable on return. The object itself stays.
/// Bytes that are kept already are not kept twice; an object that is gone needs nothing. What the disk does not give
/// back is kept as zeros.
pub fn set_aside(storage: &dyn Storage, what: Replaced) -> Result<(), StoreError> {
    places(what).iter().try_for_each(|place| keep_bytes(storage, what, place))
}

/// Keeps the bytes of one place of an object aside, as [`set_aside`] does.
pub(crate) fn keep_bytes(storage: &dyn Storage, what: Replaced, place: &ObjectName) -> Result<(), StoreError> {
    let bytes = match storage.read(place, place.bytes_max()) {
        Err(error) if error.is_not_found() => return Ok(()),
        Err(StorageError::Unreadable { .. }) => what_is_left(storage, place)?,
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

/// Reads what the disk still gives of an object, with zeros in place of the rest.
fn what_is_left(storage: &dyn Storage, place: &ObjectName) -> Result<Vec<u8>, StoreError> {
    let listed = storage.list(Listing::All)?;
    let bytes = listed.iter().find(|meta| meta.name == *place).map_or(0, |meta| meta.bytes);
    Ok(read_what_is_left(storage, place, bytes.min(place.bytes_max()))?)
}

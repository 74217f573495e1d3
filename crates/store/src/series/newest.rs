//! Finding and reading the newest manifest of a series.
//!
//! Each manifest lies there twice, and the copy is read where the original is missing or damaged: the copy was written
//! after the original, so one without an original proves that the original was lost, and counts as the commit that it
//! was. Readers look at the newest only; writers and checks also hold its predecessor against it.

use super::parts::{self, StoredParts};
use super::summary::SeriesSummary;
use crate::container::ContainerRecord;
use crate::manifest::{Manifest, ManifestRoot, PartRecord, PartTable};
use crate::repository::Repository;
use crate::sealed::{ObjectKind, open_object};
use crate::storage::{Listing, ObjectMeta, ObjectName, Original, ReadRequest};
use crate::{ContainerId, PartId, SeriesId, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::ControlFlow;

/// Times that a reader looks again when the newest manifest vanishes between listing and reading.
const READ_ATTEMPTS_MAX: u32 = 16;
/// Times that a series that must be there is looked for: a listing beside a busy writer may miss both the old and the
/// new manifest.
const LOST_ATTEMPTS: u32 = 3;

/// A function that reads of the manifest of a number, by its original or its copy.
type ReadNumbered<T> = fn(&Repository, SeriesId, u64) -> Result<T, StoreError>;

/// A manifest as read, with what the next one must say of it.
#[derive(Clone, Debug)]
pub struct StoredManifest {
    /// The manifest.
    pub manifest: Manifest,
    /// Size of its object in bytes.
    pub object_bytes: u64,
    /// BLAKE3 of the whole object.
    pub hash: [u8; 32],
    /// The reason why an original could not be read, if it or a part of it was read from its copy.
    pub from_copy: Option<String>,
    /// Its parts, if it has any.
    pub parts: StoredParts,
}

impl StoredManifest {
    /// Returns the size in bytes of its object and its parts.
    pub fn bytes(&self) -> u64 {
        self.object_bytes + self.parts.table.object_bytes()
    }

    /// Returns its summary.
    pub fn summary(&self) -> SeriesSummary {
        SeriesSummary::of(&self.manifest, self.hash)
    }
}

/// A manifest's object, opened; its parts are not read.
#[derive(Clone, Debug)]
pub(crate) struct StoredRoot {
    root: ManifestRoot,
    object_bytes: u64,
    hash: [u8; 32],
    /// The reason why its original could not be read, if this is its copy.
    from_copy: Option<String>,
}

/// The newest manifest of a series; `None` if the series has none.
///
/// # Errors
/// [`StoreError::UnreadableSeries`] if it can be read from neither copy: an older one would silently bring back a past
/// state. [`StoreError::LostSeries`] if the record lists the series and it has none.
pub fn newest_manifest(repository: &Repository, series: SeriesId) -> Result<Option<StoredManifest>, StoreError> {
    newest(repository, series, read_listed)
}

/// Looks for the newest manifest of a series, and takes of it what `read` reads, given its number.
fn newest<T>(repository: &Repository, series: SeriesId, read: ReadNumbered<T>) -> Result<Option<T>, StoreError> {
    for _ in 0..LOST_ATTEMPTS {
        let found =
            read_newest(repository, series, read).map_err(|error| error.of_series(repository.series_words(series)))?;
        if found.is_some() || !repository.config().series.contains_key(&series) {
            return Ok(found);
        }
    }
    let name = repository.config().series.get(&series).cloned().unwrap_or_default();
    Err(StoreError::LostSeries { series: name })
}

fn read_newest<T>(repository: &Repository, series: SeriesId, read: ReadNumbered<T>) -> Result<Option<T>, StoreError> {
    let mut attempt = 0;
    loop {
        let Some(sequence) = newest_sequence(repository, series)? else {
            return Ok(None);
        };
        match read(repository, series, sequence) {
            // Superseded since it was listed, or not all of it is there.
            Err(error) if error.is_not_found() && attempt < READ_ATTEMPTS_MAX => attempt += 1,
            Err(error) if error.missing().is_some_and(is_manifest) => {
                let object = ObjectName::Manifest(series, sequence).to_string();
                return Err(StoreError::ListedAndMissing { object, location: repository.storage().location() });
            }
            other => return other.map(Some),
        }
    }
}

/// True for a manifest's own object and its copy; its parts are in no listing of manifests.
fn is_manifest(name: &ObjectName) -> bool {
    matches!(name, ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)))
}

/// The manifest of this number, which a listing showed to be the newest; what is the newest now if it is gone since.
///
/// # Errors
/// As [`newest_manifest`].
pub(crate) fn manifest_numbered(
    repository: &Repository,
    series: SeriesId,
    number: Option<u64>,
) -> Result<Option<StoredManifest>, StoreError> {
    numbered(repository, series, number, read_listed)
}

/// The summary of the manifest of this number, as [`manifest_numbered`] reads it all. No part is read.
///
/// # Errors
/// As [`newest_manifest`].
pub(crate) fn summary_numbered(
    repository: &Repository,
    series: SeriesId,
    number: Option<u64>,
) -> Result<Option<SeriesSummary>, StoreError> {
    numbered(repository, series, number, read_summary)
}

fn numbered<T>(
    repository: &Repository,
    series: SeriesId,
    number: Option<u64>,
    read: ReadNumbered<T>,
) -> Result<Option<T>, StoreError> {
    match number.map(|number| read(repository, series, number)) {
        Some(Ok(found)) => Ok(Some(found)),
        Some(Err(error)) if !error.is_not_found() => Err(error.of_series(repository.series_words(series))),
        _ => newest(repository, series, read),
    }
}

/// Reads the manifest of a number that a listing showed to be the newest, as far as it is not at hand.
fn read_listed(repository: &Repository, series: SeriesId, sequence: u64) -> Result<StoredManifest, StoreError> {
    if let Some(stored) = repository.manifest_at_hand(series, sequence) {
        return Ok(stored);
    }
    let stored = match repository.opened_at_hand(series, sequence) {
        Some(opened) => opened.complete(repository)?,
        None => read_either(repository, series, sequence)?,
    };
    repository.note_manifest(&stored);
    Ok(stored)
}

/// Reads the summary of such a manifest.
fn read_summary(repository: &Repository, series: SeriesId, sequence: u64) -> Result<SeriesSummary, StoreError> {
    if let Some(summary) = repository.summary_at_hand(series, sequence) {
        return Ok(summary);
    }
    let opened = open_either(repository, series, sequence)?;
    let summary = opened.summary();
    repository.note_opened(opened);
    Ok(summary)
}

/// Reads manifests ahead of their use, many at a time, but no parts of them: those that the last listing named and that
/// are not at hand, as far as they are remembered. What cannot be read so is left to its use.
pub(crate) fn read_ahead(repository: &Repository, series: &[SeriesId]) {
    let wanted = series.iter().filter_map(|series| {
        let number = repository.number_listed(*series)?;
        let is_at_hand = repository.has_at_hand(*series, number);
        (!is_at_hand).then_some(ObjectName::Manifest(*series, number))
    });
    let bytes_max = repository.manifest_bytes_max();
    let wanted: Vec<ReadRequest> = wanted.map(|name| ReadRequest::whole(name, bytes_max)).collect();
    if wanted.len() < 2 {
        return;
    }
    repository.make_room_for_manifests();
    repository.storage().read_many(&wanted, &mut |at, object| {
        let (Some(request), Ok(object)) = (wanted.get(at), object) else { return ControlFlow::Continue(()) };
        let is_full = open(repository, &request.name, object).is_ok_and(|opened| !repository.remember_opened(opened));
        if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
}

/// The numbers of the newest manifests of all series that have one.
pub(crate) fn numbers_of_all(repository: &Repository) -> Result<BTreeMap<SeriesId, u64>, StoreError> {
    let listed = repository.storage().list_both([Listing::AllManifests, Listing::AllManifestCopies])?;
    let mut numbers = BTreeMap::new();
    for meta in listed.iter().flatten() {
        if let (Some(series), Some(sequence)) = (meta.name.series(), meta.name.sequence()) {
            let newest: &mut u64 = numbers.entry(series).or_default();
            *newest = sequence.max(*newest);
        }
    }
    Ok(numbers)
}

/// The number of the newest manifest of a series, by originals and copies.
pub(crate) fn newest_sequence(repository: &Repository, series: SeriesId) -> Result<Option<u64>, StoreError> {
    let listed = repository.storage().list_both([Listing::Manifests(series), Listing::ManifestCopies(series)])?;
    Ok(listed.iter().flatten().filter_map(|meta| meta.name.sequence()).max())
}

/// The manifest of this number, by its original or its copy. It is not found if it is at neither place: copies are
/// deleted first, so a manifest that a writer removes meanwhile does not pass for a lost original.
pub(crate) fn read_either(
    repository: &Repository,
    series: SeriesId,
    sequence: u64,
) -> Result<StoredManifest, StoreError> {
    open_either(repository, series, sequence)?.complete(repository)
}

/// Opens the manifest of this number, by its original or its copy.
fn open_either(repository: &Repository, series: SeriesId, sequence: u64) -> Result<StoredRoot, StoreError> {
    let original = Original::Manifest(series, sequence);
    let error = match open_at(repository, original, &original.name()) {
        Err(error) if error.is_damage() => error,
        other => return other,
    };
    match open_at(repository, original, &original.copy()) {
        Ok(opened) => Ok(StoredRoot { from_copy: Some(error.to_string()), ..opened }),
        Err(copy) if error.is_not_found() && copy.is_not_found() => Err(error),
        Err(_) if matches!(error, StoreError::UnknownVersion { .. } | StoreError::UnknownFeature { .. }) => Err(error),
        Err(copy) if copy.is_damage() => Err(StoreError::both_damaged(original, &error)),
        Err(copy) => Err(copy),
    }
}

/// Opens a manifest from one of its two places.
fn open_at(repository: &Repository, original: Original, place: &ObjectName) -> Result<StoredRoot, StoreError> {
    let (name, bytes_max) = (original.name(), repository.manifest_bytes_max());
    open(repository, &name, repository.storage().read(place, bytes_max)?)
}

/// Opens and decodes the object of a manifest, whichever of its two places it was read from.
fn open(repository: &Repository, name: &ObjectName, object: Vec<u8>) -> Result<StoredRoot, StoreError> {
    let (hash, object_bytes) = (*blake3::hash(&object).as_bytes(), object.len() as u64);
    let plain = open_object(repository.keys(), name, ObjectKind::Manifest, object)?;
    let root = ManifestRoot::decode_within(name, &plain, repository.manifest_bytes_max())?;
    Ok(StoredRoot { root, object_bytes, hash, from_copy: None })
}

impl StoredRoot {
    /// Returns the series it belongs to.
    pub(crate) fn series(&self) -> SeriesId {
        self.root.series()
    }

    /// Returns the number of the commit.
    pub(crate) fn sequence(&self) -> u64 {
        self.root.without_lists().sequence
    }

    /// Returns the size of its object.
    pub(crate) fn bytes(&self) -> u64 {
        self.object_bytes
    }

    /// Returns what it says of its series.
    pub(crate) fn summary(&self) -> SeriesSummary {
        SeriesSummary::of(self.root.without_lists(), self.hash)
    }

    /// Reads the parts, and makes the manifest of all.
    fn complete(self, repository: &Repository) -> Result<StoredManifest, StoreError> {
        let Self { root, object_bytes, hash, from_copy } = self;
        let (name, table) = (root.object_name(), root.parts().clone());
        let parts::Read { texts, hurt, fault } = parts::read(repository, root.series(), &table)?;
        let manifest = root.complete(&name, texts)?;
        let from_copy = from_copy.or(fault);
        Ok(StoredManifest { manifest, object_bytes, hash, from_copy, parts: StoredParts { table, hurt } })
    }
}

/// Holds the manifest before against the newest, which has its hash, and returns the parts of the one before. One that
/// is damaged or missing proves nothing, and is for a check to tell; so is one of another history whose copy is the
/// right one. The parts of such are not known.
///
/// # Errors
/// [`StoreError::BrokenHistory`] if the one before is sound and another one than the newest followed.
pub fn verify_history(repository: &Repository, newest: &Manifest) -> Result<PartTable, StoreError> {
    let Some(before) = newest.sequence.checked_sub(1).filter(|before| *before > 0) else {
        return Ok(PartTable::default());
    };
    let original = Original::Manifest(newest.series, before);
    let at = |place: &ObjectName| match open_at(repository, original, place) {
        Ok(opened) => Ok(Some(opened)),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    };
    let is_before = |opened: &StoredRoot| opened.hash == newest.previous;
    let mut found = at(&original.name())?;
    if found.as_ref().is_some_and(|opened| !is_before(opened)) {
        found = at(&original.copy())?.filter(is_before);
        if found.is_none() {
            let (object, before) = (newest.object_name().to_string(), original.name().to_string());
            return Err(StoreError::BrokenHistory { object, before });
        }
    }
    Ok(found.map(|opened| opened.root.parts().clone()).unwrap_or_default())
}

/// Returns the parts of a manifest that was read. Where it is not at hand, it is opened again.
///
/// # Errors
/// As [`newest_manifest`].
pub fn parts_named(repository: &Repository, manifest: &Manifest) -> Result<PartTable, StoreError> {
    let (series, sequence) = (manifest.series, manifest.sequence);
    if let Some(stored) = repository.manifest_at_hand(series, sequence) {
        return Ok(stored.parts.table);
    }
    Ok(open_either(repository, series, sequence)?.root.parts().clone())
}

/// Returns the parts that the newest manifest or the one before names.
///
/// # Errors
/// Errors of the storage.
pub fn parts_kept(repository: &Repository, newest: &StoredManifest) -> Result<BTreeSet<PartId>, StoreError> {
    let Manifest { series, sequence, previous, .. } = newest.manifest;
    let before = match sequence {
        1 => PartTable::default(),
        _ => parts_of(repository, Original::Manifest(series, sequence - 1), previous)?,
    };
    Ok(newest.parts.table.ids().into_iter().chain(before.ids()).collect())
}

/// Reads the records of the parts of a manifest, by whichever of its places has this hash; none if neither has.
///
/// # Errors
/// Errors of the storage.
pub(crate) fn parts_of(repository: &Repository, manifest: Original, hash: [u8; 32]) -> Result<PartTable, StoreError> {
    for place in manifest.places() {
        match open_at(repository, manifest, &place) {
            Ok(opened) if opened.hash == hash => return Ok(opened.root.parts().clone()),
            Err(error) if !error.is_damage() => return Err(error),
            _ => {}
        }
    }
    Ok(PartTable::default())
}

/// Lists the faults of the newest manifest and the one before, and of their parts, of which both copies must lie there.
/// A copy that is missing is no fault while its original is sound: the run that made it was cut short, and the next one
/// goes on from the original. Nor is one before that is at neither place: a repair goes on from what was lost.
///
/// # Errors
/// The storage's, if they cannot be looked at.
pub fn manifest_faults(repository: &Repository, newest: &StoredManifest) -> Result<Vec<StoreError>, StoreError> {
    let (series, sequence) = (newest.manifest.series, newest.manifest.sequence);
    let mut faults = faults_of(repository, Original::Manifest(series, sequence), newest.hash)?;
    let before = Original::Manifest(series, sequence.saturating_sub(1));
    let mut parts: BTreeMap<PartId, PartRecord> = newest.parts.table.by_id().collect();
    if sequence > 1 && is_anywhere(repository, before) {
        faults.extend(faults_of(repository, before, newest.manifest.previous)?);
        parts.extend(parts_of(repository, before, newest.manifest.previous)?.by_id());
    }
    for record in parts.values() {
        for place in Original::ManifestPart(series, record.id).places() {
            match parts::sound_bytes(repository, series, record, &place) {
                Ok(_) => {}
                Err(error) if error.is_damage() => faults.push(error),
                Err(error) => return Err(error),
            }
        }
    }
    Ok(faults)
}

/// Tells whether an object or its copy is there.
fn is_anywhere(repository: &Repository, original: Original) -> bool {
    for place in original.places() {
        match repository.storage().read_range(&place, 0, 1) {
            Err(error) if error.is_not_found() => {}
            _ => return true,
        }
    }
    false
}

fn faults_of(repository: &Repository, original: Original, hash: [u8; 32]) -> Result<Vec<StoreError>, StoreError> {
    let mut faults = Vec::new();
    for place in [original.name(), original.copy()] {
        match repository.storage().read(&place, repository.manifest_bytes_max()) {
            Ok(object) if *blake3::hash(&object).as_bytes() == hash => {}
            Ok(_) => faults.push(StoreError::damaged(&place, "object", "its bytes are not those that were written")),
            Err(error) if error.is_not_found() && place == original.copy() => {}
            Err(error) => {
                let error = StoreError::from(error);
                if !error.is_damage() {
                    return Err(error);
                }
                faults.push(error);
            }
        }
    }
    Ok(faults)
}

/// A container carries the number of the lease it was written under, and that lease was durable before it. So a
/// container beyond the newest manifest proves that a manifest was lost, by damage or by a copy brought back; sweeping
/// it away as left over would then destroy snapshots. The containers must have been listed before the manifest was
/// read: a writer may have begun in between.
///
/// # Errors
/// [`StoreError::LostManifest`] with the first container that proves it. `sequence` is 0 if the series has no manifest.
pub fn refuse_lost_history(containers: &[ObjectMeta], sequence: u64) -> Result<(), StoreError> {
    let beyond = |meta: &&ObjectMeta| match meta.name {
        ObjectName::Container(_, _, id) => id.lease > sequence,
        ObjectName::ManifestPart(_, id) => id.lease > sequence,
        _ => false,
    };
    match containers.iter().find(beyond) {
        Some(meta) => Err(StoreError::LostManifest { container: meta.name.to_string(), sequence }),
        None => Ok(()),
    }
}

/// The containers of this manifest that the storage lacks or holds in another size, and whose parity does not heal
/// them.
pub fn lost_containers(repository: &Repository, manifest: &Manifest, listed: &[ObjectMeta]) -> Vec<ContainerId> {
    let sizes: HashMap<ObjectName, u64> = listed.iter().map(|meta| (meta.name, meta.bytes)).collect();
    let is_whole = |record: &ContainerRecord| {
        sizes.get(&record.object_name(manifest.series)) == Some(&record.object_bytes)
            || repository.heal(manifest.series, record).is_some()
    };
    manifest.containers.iter().filter(|record| !is_whole(record)).map(|record| record.id).collect()
}

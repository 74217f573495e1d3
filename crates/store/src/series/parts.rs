//! The parts of a manifest on their way to and from the storage: written before the manifest that names them, each
//! twice; read all at once, each from its copy where the original is missing or damaged.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::ReserveUse;
use super::newest::parts_named;
use super::reserve::from_reserve;
use crate::error::StoreError;
use crate::ids::{PartId, SeriesId};
use crate::manifest::parts::{Outline, text_of};
use crate::manifest::{Manifest, PartRecord, PartTable};
use crate::repository::Repository;
use crate::sealed::{HEADER_BYTES, ObjectKey, ObjectKind, open_object, seal_object, sealed_object_bytes};
use crate::secrets::Epoch;
use crate::storage::{ObjectName, Original, ReadRequest};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU32, Ordering};

/// Every part lies there twice.
const COPIES: u64 = 2;

/// The names of parts that are written under a lease. Without a lease no part is written.
#[derive(Debug)]
pub(crate) struct PartNames {
    lease: u64,
    next: AtomicU32,
}

impl PartNames {
    /// The names under the lease of this number, from the first on.
    pub(crate) fn under(lease: u64) -> Self {
        Self { lease, next: AtomicU32::new(0) }
    }

    fn next(&self) -> PartId {
        PartId { lease: self.lease, serial: self.next.fetch_add(1, Ordering::Relaxed) }
    }
}

/// The parts of a stored manifest.
#[derive(Clone, Debug, Default)]
pub struct StoredParts {
    /// Their records.
    pub table: PartTable,
    /// Those that were read from their copy: the next commit that may writes them anew.
    pub(crate) hurt: BTreeSet<PartId>,
}

/// Cuts the lists of the next manifest of a series. Parts that are the same as those before are used again, where new
/// ones may be written only if they are sound; where none may be written and some would have to be, there are none.
pub(super) fn outline(
    repository: &Repository,
    manifest: &Manifest,
    before: &StoredParts,
    may_write: bool,
) -> Result<Outline, StoreError> {
    let sound = if may_write { before.table.without(&before.hurt) } else { before.table.clone() };
    let outline = Outline::in_parts(manifest, repository.config().part_bytes(), &sound)?;
    if outline.has_new() && !may_write { Outline::whole(manifest) } else { Ok(outline) }
}

/// Writes the new parts of an outline, each twice, durable on return, and gives them their names. Returns the size of
/// the reserve if it had to be used up.
pub(super) fn write(
    repository: &Repository,
    manifest: &Manifest,
    outline: &mut Outline,
    names: &PartNames,
    reserve: ReserveUse,
) -> Result<Option<u64>, StoreError> {
    let (storage, mut spent) = (repository.storage(), None);
    if !outline.has_new() {
        return Ok(None);
    }
    for part in outline.take_new() {
        let id = names.next();
        let original = Original::ManifestPart(manifest.series, id);
        let object = seal_object(repository.keys(), &original.name(), ObjectKind::ManifestPart, &part.content)?;
        for place in original.places() {
            let put =
                || storage.put(&place, &object).map_err(|error| StoreError::from(error).of_writer(&manifest.name));
            let ((), used) = from_reserve(repository, reserve, put)?;
            spent = spent.or(used);
        }
        outline.name(&part, id);
    }
    storage.barrier().map_err(|error| StoreError::from(error).of_writer(&manifest.name))?;
    Ok(spent)
}

/// Returns the names of parts: copies first, so that none is ever left without its original.
pub(super) fn places(series: SeriesId, ids: impl Iterator<Item = PartId>) -> Vec<ObjectName> {
    let originals = ids.map(|id| Original::ManifestPart(series, id));
    let (copies, originals): (Vec<_>, Vec<_>) = originals.map(|original| (original.copy(), original.name())).unzip();
    [copies, originals].concat()
}

/// The parts of a manifest as read.
#[derive(Debug, Default)]
pub(super) struct Read {
    /// Their texts, in their order.
    pub(super) texts: Vec<Vec<u8>>,
    /// Those that were read from their copies.
    pub(super) hurt: BTreeSet<PartId>,
    /// The reason for one of those.
    pub(super) fault: Option<String>,
}

/// Reads all parts.
///
/// # Errors
/// That of a part that can be read from neither place. It is not found if it is at neither place: a newer manifest may
/// have let it go.
pub(super) fn read(repository: &Repository, series: SeriesId, table: &PartTable) -> Result<Read, StoreError> {
    let mut read = Read::default();
    if table.is_empty() {
        return Ok(read);
    }
    let records: Vec<&PartRecord> = table.records().collect();
    let request =
        |record: &&PartRecord| ReadRequest::whole(ObjectName::ManifestPart(series, record.id), record.object_bytes());
    let requests: Vec<ReadRequest> = records.iter().map(request).collect();
    let mut found: Vec<Option<Vec<u8>>> = vec![None; records.len()];
    repository.storage().read_many(&requests, &mut |at, object| {
        if let (Some(record), Some(place), Ok(object)) = (records.get(at), found.get_mut(at), object) {
            *place = open(repository, series, record, object).ok();
        }
        ControlFlow::Continue(())
    });
    for (record, found) in records.into_iter().zip(found) {
        let (text, fault) = match found {
            Some(text) => (text, None),
            None => read_either(repository, series, record)?,
        };
        read.texts.push(text);
        if let Some(fault) = fault {
            read.hurt.insert(record.id);
            read.fault.get_or_insert(fault);
        }
    }
    Ok(read)
}

/// Reads a part by its original, from where it lies and not from a cache, or its copy, with the reason for that.
fn read_either(
    repository: &Repository,
    series: SeriesId,
    record: &PartRecord,
) -> Result<(Vec<u8>, Option<String>), StoreError> {
    let original = Original::ManifestPart(series, record.id);
    repository.storage().drop_cached(&original.name());
    let error = match read_at(repository, series, record, &original.name()) {
        Err(error) if error.is_damage() => error,
        other => return Ok((other?, None)),
    };
    match read_at(repository, series, record, &original.copy()) {
        Ok(text) => Ok((text, Some(error.to_string()))),
        Err(copy) if error.is_not_found() && copy.is_not_found() => Err(error),
        Err(copy) if copy.is_damage() => Err(StoreError::both_damaged(original, &error)),
        Err(copy) => Err(copy),
    }
}

fn read_at(
    repository: &Repository,
    series: SeriesId,
    record: &PartRecord,
    place: &ObjectName,
) -> Result<Vec<u8>, StoreError> {
    let object = repository.storage().read(place, record.object_bytes())?;
    open(repository, series, record, object).map_err(|error| error.found_in(place))
}

/// Opens the object of a part, whichever of its two places it was read from.
fn open(
    repository: &Repository,
    series: SeriesId,
    record: &PartRecord,
    object: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let name = ObjectName::ManifestPart(series, record.id);
    let content = open_object(repository.keys(), &name, ObjectKind::ManifestPart, object)?;
    text_of(&name, record, content)
}

/// Reads the bytes of a part at one of its places, if they are sound.
///
/// # Errors
/// The damage, naming the place.
pub(crate) fn sound_bytes(
    repository: &Repository,
    series: SeriesId,
    record: &PartRecord,
    place: &ObjectName,
) -> Result<Vec<u8>, StoreError> {
    let bytes = repository.storage().read(place, record.object_bytes())?;
    open(repository, series, record, bytes.clone()).map_err(|error| error.found_in(place))?;
    Ok(bytes)
}

/// Returns the bytes of the parts of this manifest, and of their copies, that are sealed under a master key before the
/// newest one: a commit names a part again that has not changed. Where there is one master key, nothing is read, else
/// the header of each part.
///
/// # Errors
/// As [`super::newest_manifest`].
pub fn older_parts_bytes(repository: &Repository, manifest: &Manifest) -> Result<u64, StoreError> {
    let (keys, mut bytes) = (repository.keys(), 0);
    if keys.epoch() == Epoch::FIRST {
        return Ok(0);
    }
    let parts: BTreeMap<PartId, PartRecord> = parts_named(repository, manifest)?.by_id().collect();
    let parts: Vec<(ObjectName, PartRecord)> =
        parts.into_values().map(|record| (ObjectName::ManifestPart(manifest.series, record.id), record)).collect();
    let header = |(name, _): &(ObjectName, PartRecord)| ReadRequest::range(*name, 0, HEADER_BYTES);
    let requests: Vec<ReadRequest> = parts.iter().map(header).collect();
    repository.storage().read_many(&requests, &mut |at, header| {
        if let (Some((name, record)), Ok(header)) = (parts.get(at), header) {
            let key = ObjectKey::open(keys, *name, ObjectKind::ManifestPart, &header);
            let is_older = key.is_ok_and(|key| key.derivation().epoch < keys.epoch());
            bytes += if is_older { COPIES * record.object_bytes() } else { 0 };
        }
        ControlFlow::Continue(())
    });
    Ok(bytes)
}

/// The sizes that a commit of a manifest will have.
#[derive(Clone, Debug)]
pub struct CommitSizes {
    /// Bytes of the manifest's object.
    pub object_bytes: u64,
    /// Its parts: those used again, and new ones.
    pub parts: PartTable,
}

/// Tells the sizes of a commit of this manifest after one with these parts. New parts are named as if they were the
/// first under the lease of number `lease`; without a lease there are none.
///
/// # Errors
/// [`StoreError::Limit`] if it is too large.
pub fn sizes_of_commit(
    repository: &Repository,
    manifest: &Manifest,
    before: &PartTable,
    lease: Option<u64>,
) -> Result<CommitSizes, StoreError> {
    let before = StoredParts { table: before.clone(), ..StoredParts::default() };
    let mut outline = outline(repository, manifest, &before, lease.is_some())?;
    let names = PartNames::under(lease.unwrap_or_default());
    for part in outline.take_new() {
        outline.name(&part, names.next());
    }
    let object_bytes = sealed_object_bytes(manifest.encode_root(&outline)?.len() as u64);
    Ok(CommitSizes { object_bytes, parts: outline.table().clone() })
}

//! Objects that are kept twice, made two sound ones again: what is wrong with one place is written anew from the other,
//! byte for byte.
//!
//! Looked at are the newest record of the repository and the one before, the key slots that count, and of each series
//! that can be read the newest manifest and the one before, with their parts. Manifests and records are held against
//! the hash that their successor states, parts against their manifest, slots are opened.
//!
//! Order: the bytes to be replaced are durable aside, then they go, then the sound ones are created in their place. A
//! crash in between leaves the other place, which is what readers read meanwhile. Whoever lists a manifest or a record
//! sees its number at all times.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::config::chain;
use crate::error::StoreError;
use crate::keys::KeySlot;
use crate::manifest::PartRecord;
use crate::repository::Repository;
use crate::salvage::keep_bytes;
use crate::series::newest::parts_of;
use crate::series::newest_manifest;
use crate::series::parts::sound_bytes as part_bytes;
use crate::storage::{ObjectName, Original};
use crate::{KeyId, PartId, SeriesId};
use std::collections::BTreeMap;

/// An object of which one place or both are damaged or missing.
#[derive(Debug)]
pub struct Twins {
    /// The object.
    pub original: Original,
    /// True if it is what counts: a slot, or the newest of its chain. Nothing hangs on the one before.
    pub is_newest: bool,
    /// Mark by which a sound one is told.
    mark: Mark,
    /// The places that are not sound, and why.
    pub faults: Vec<(ObjectName, StoreError)>,
}

/// A mark by which an object's bytes are told.
#[derive(Clone, Copy, Debug)]
enum Mark {
    /// BLAKE3 of them.
    Hash([u8; 32]),
    /// Their label opens, and hashes the rest.
    Slot(KeyId),
    /// They are those of the part with this record.
    Part(SeriesId, PartRecord),
}

impl Twins {
    /// Tells whether one of the two places is sound.
    pub fn is_mendable(&self) -> bool {
        self.faults.len() == 1
    }
}

/// The record of the repository and the key slots of which a place is not sound.
///
/// # Errors
/// The storage's, if the repository cannot be looked at; the damage of the newest record if it can be read from neither
/// place.
pub fn of_repository(repository: &Repository) -> Result<Vec<Twins>, StoreError> {
    let records = chain::last_two(repository.storage(), repository.keys())?;
    let records = records.into_iter().enumerate().map(|(at, (original, hash))| (original, at == 0, Mark::Hash(hash)));
    let slots = repository.config().all_keys().into_iter().map(|id| (Original::Key(id), true, Mark::Slot(id)));
    hurt_among(repository, records.chain(slots))
}

/// The manifests of a series of which a place is not sound; none if the series cannot be read, for that takes more.
///
/// # Errors
/// The storage's, if the repository cannot be looked at.
pub fn of_series(repository: &Repository, series: SeriesId) -> Result<Vec<Twins>, StoreError> {
    let stored = match newest_manifest(repository, series) {
        Ok(Some(stored)) => stored,
        Ok(None) => return Ok(Vec::new()),
        Err(error) if error.is_damage() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let sequence = stored.manifest.sequence;
    let newest = (Original::Manifest(series, sequence), true, Mark::Hash(stored.hash));
    let before = sequence.checked_sub(1).filter(|before| *before > 0);
    let before = before.map(|before| (Original::Manifest(series, before), false, Mark::Hash(stored.manifest.previous)));
    let mut parts: BTreeMap<PartId, (PartRecord, bool)> = BTreeMap::new();
    if let Some((original, _, Mark::Hash(hash))) = before {
        parts.extend(parts_of(repository, original, hash)?.by_id().map(|(id, record)| (id, (record, false))));
    }
    parts.extend(stored.parts.table.by_id().map(|(id, record)| (id, (record, true))));
    let parts = parts
        .into_iter()
        .map(|(id, (record, is_newest))| (Original::ManifestPart(series, id), is_newest, Mark::Part(series, record)));
    let hurt = hurt_among(repository, std::iter::once(newest).chain(before).chain(parts))?;
    // A writer that went on meanwhile has removed what was looked for.
    let now = newest_manifest(repository, series)?.map(|now| now.manifest.sequence);
    Ok(if now == Some(sequence) { hurt } else { Vec::new() })
}

fn hurt_among(
    repository: &Repository,
    marks: impl Iterator<Item = (Original, bool, Mark)>,
) -> Result<Vec<Twins>, StoreError> {
    let mut hurt = Vec::new();
    for (original, is_newest, mark) in marks {
        let mut twins = Twins { original, is_newest, mark, faults: Vec::new() };
        for place in original.places() {
            match sound_bytes(repository, mark, &place) {
                Ok(_) => {}
                Err(error) if error.is_damage() => twins.faults.push((place, error)),
                Err(error) => return Err(error),
            }
        }
        // One before the newest that is at neither place is no loss: a repair went on from what was lost.
        let is_gone = twins.faults.len() == 2 && twins.faults.iter().all(|(_, error)| error.is_not_found());
        if !twins.faults.is_empty() && (is_newest || !is_gone) {
            hurt.push(twins);
        }
    }
    Ok(hurt)
}

/// The bytes at a place, if they are those of the object.
fn sound_bytes(repository: &Repository, mark: Mark, place: &ObjectName) -> Result<Vec<u8>, StoreError> {
    let read = || repository.storage().read(place, place.bytes_max().min(repository.manifest_bytes_max()));
    match mark {
        Mark::Part(series, record) => part_bytes(repository, series, &record, place),
        Mark::Hash(hash) => match read()? {
            bytes if *blake3::hash(&bytes).as_bytes() == hash => Ok(bytes),
            _ => Err(StoreError::damaged(place, "object", "its bytes are not those that were written")),
        },
        Mark::Slot(id) => {
            let bytes = read()?;
            let label = KeySlot::parse(id, &bytes).and_then(|slot| slot.label(repository.keys()));
            label.map(|_| bytes).map_err(|error| error.found_in(place))
        }
    }
}

/// Writes what is not sound anew from the sound place. Gives whether anything was written: nothing is where another
/// program was faster.
///
/// # Errors
/// Those of the storage; that of the damaged place if the other is not sound either.
pub fn mend(repository: &Repository, twins: &Twins) -> Result<bool, StoreError> {
    let mut is_done = false;
    for (place, _) in &twins.faults {
        is_done |= mend_place(repository, twins, place)?;
    }
    Ok(is_done)
}

fn mend_place(repository: &Repository, twins: &Twins, place: &ObjectName) -> Result<bool, StoreError> {
    let storage = repository.storage();
    let fault = match sound_bytes(repository, twins.mark, place) {
        Ok(_) => return Ok(false),
        Err(error) if error.is_damage() => error,
        Err(error) => return Err(error),
    };
    let other = twins.original.places().into_iter().find(|other| other != place);
    let sound = other.map(|other| sound_bytes(repository, twins.mark, &other));
    let Some(Ok(bytes)) = sound else {
        // A newer one has taken its place, or both are damaged by now.
        return if fault.is_not_found() { Ok(false) } else { Err(fault) };
    };
    keep_bytes(storage, twins.original.into(), place)?;
    storage.delete(place)?;
    match storage.create(place, &bytes) {
        Err(error) if error.is_already_exists() && sound_bytes(repository, twins.mark, place).is_ok() => Ok(false),
        other => other.map(|()| true).map_err(StoreError::from),
    }
}

//! The containers of a series, opened without believing any manifest: what each holds, and which of them are left over
//! from runs that never committed.

use crate::{EngineError, Resources};
use siltstone_store::container::{ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::parity;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{ObjectMeta, ObjectName};
use siltstone_store::{ContainerId, Fingerprint, SeriesId, StoreError};
use std::collections::{BTreeSet, HashMap};

/// A container that can be opened.
#[derive(Debug)]
pub(super) struct Holding {
    pub(super) reader: ContainerReader,
    /// True if the manifest that is built on names it.
    pub(super) is_named: bool,
}

/// A container that cannot be opened.
#[derive(Debug)]
pub(super) struct Unreadable {
    pub(super) kind: ContainerKind,
    pub(super) id: ContainerId,
    pub(super) error: StoreError,
}

/// Objects of a series that are there.
#[derive(Debug, Default)]
pub(super) struct Holdings {
    /// Containers that can be opened, by ascending id.
    pub(super) readable: Vec<Holding>,
    /// Those that cannot.
    pub(super) unreadable: Vec<Unreadable>,
}

/// Opens all containers of a series. One that `seed` names is opened by its record, any other is read whole.
pub(super) fn gather(
    repository: &Repository,
    series: SeriesId,
    seed: Option<&Manifest>,
    resources: &Resources,
) -> Result<Holdings, EngineError> {
    let records = seed.iter().flat_map(|seed| &seed.containers);
    let named: HashMap<ContainerId, &ContainerRecord> = records.map(|record| (record.id, record)).collect();
    let mut holdings = Holdings::default();
    for meta in repository.storage().list_containers(series).map_err(StoreError::from)? {
        let ObjectName::Container(kind, _, id) = meta.name else { continue };
        resources.unless_cancelled()?;
        let record = named.get(&id).copied().filter(|record| record.kind == kind);
        match open(repository, series, (kind, id), &meta, record) {
            Ok(reader) => holdings.readable.push(Holding { reader, is_named: record.is_some() }),
            Err(error) if error.is_damage() => holdings.unreadable.push(Unreadable { kind, id, error }),
            Err(error) => return Err(error.into()),
        }
        resources.observer.advance(1, meta.bytes);
    }
    holdings.readable.sort_by_key(|holding| holding.reader.record().id);
    drop_leftovers(&mut holdings.readable);
    Ok(holdings)
}

fn open(
    repository: &Repository,
    series: SeriesId,
    (kind, id): (ContainerKind, ContainerId),
    meta: &ObjectMeta,
    record: Option<&ContainerRecord>,
) -> Result<ContainerReader, StoreError> {
    let (storage, keys) = (repository.storage(), repository.keys());
    match record {
        // Of another size, it would be damaged at its end at least.
        Some(record) if record.object_bytes == meta.bytes => ContainerReader::open(storage, keys, series, record),
        _ => {
            let object = storage.read(&meta.name, meta.name.bytes_max()).map_err(StoreError::from);
            object.and_then(|object| ContainerReader::from_object(keys, series, kind, id, &object))
        }
    }
    .or_else(|error| healed(repository, series, (kind, id), record, error))
}

/// A container as its parity makes it good, with a record or, where none is left, by what the healed bytes say of
/// themselves.
fn healed(
    repository: &Repository,
    series: SeriesId,
    (kind, id): (ContainerKind, ContainerId),
    record: Option<&ContainerRecord>,
    error: StoreError,
) -> Result<ContainerReader, StoreError> {
    let (storage, keys) = (repository.storage(), repository.keys());
    if !error.is_damage() {
        return Err(error);
    }
    match record {
        Some(record) => match repository.heal(series, record) {
            Some(object) => ContainerReader::open_in(keys, series, record, &object),
            None => Err(error),
        },
        None => parity::recover(storage, keys, series, kind, id).map_err(|_| error),
    }
}

/// A run that fails leaves the numbers it gave to the next run. If two containers give one number to different chunks,
/// the older one is such a run's, and so is everything else written under its lease that no manifest names.
fn drop_leftovers(holdings: &mut Vec<Holding>) {
    let mut content: HashMap<u64, (Fingerprint, usize)> = HashMap::new();
    let mut failed: BTreeSet<u64> = BTreeSet::new();
    for (at, holding) in holdings.iter().enumerate() {
        for place in holding.reader.index().places() {
            let before = content.insert(place.chunk.number.0, (place.chunk.fingerprint, at));
            let Some((fingerprint, before)) = before else { continue };
            if fingerprint != place.chunk.fingerprint {
                let loser = if holdings[before].is_named { at } else { before };
                failed.insert(holdings[loser].reader.record().id.lease);
            }
        }
    }
    holdings.retain(|holding| holding.is_named || !failed.contains(&holding.reader.record().id.lease));
}

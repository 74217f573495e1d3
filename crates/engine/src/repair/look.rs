//! Examination of the containers of a series whose manifest can be read, and of what their parity heals.

use super::RepairOptions;
use crate::maintain::dead::largest_bytes;
use crate::parallel::Pool;
use crate::protect::{parity_bytes, wanted_bytes};
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::parity;
use siltstone_store::region::RegionDecoder;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{ObjectMeta, ObjectName};
use siltstone_store::{ContainerId, StoreError};
use std::collections::HashMap;

/// Findings of the examination.
#[derive(Default)]
pub(super) struct Looked {
    /// Faults, each with the object it concerns.
    pub(super) faults: Vec<String>,
    /// Chunks that cannot be read where they lie.
    pub(super) lost: RoaringTreemap,
    /// Containers that are damaged and lose nothing: parity makes them good, or no chunk is hurt.
    pub(super) healed: Vec<ContainerId>,
    /// Containers without parity that the settings want to have it, or with a damaged one.
    pub(super) unprotected: Vec<ContainerId>,
}

/// How it is with one container.
#[derive(Default)]
struct Seen {
    /// Fault, and the chunks that it costs.
    fault: Option<(String, RoaringTreemap)>,
    is_healed: bool,
    /// Fault of its parity.
    parity: Option<String>,
}

/// Looks at all containers: size and index, or every byte.
pub(super) fn look(
    repository: &Repository,
    manifest: &Manifest,
    listed: &[ObjectMeta],
    options: &RepairOptions,
    resources: &Resources,
) -> Result<Looked, EngineError> {
    let sizes: HashMap<ObjectName, u64> = listed.iter().map(|meta| (meta.name, meta.bytes)).collect();
    let parity = parity_bytes(repository, manifest.series)?;
    let seen: Vec<Seen> = std::thread::scope(|scope| {
        let fetches = resources.whole_fetches(largest_bytes(&manifest.containers));
        let pool = Pool::start(scope, "repair", fetches, fetches, || Ok(RegionDecoder::new()))?;
        let submit = |record: &ContainerRecord| {
            let (record, size) = (record.clone(), sizes.get(&record.object_name(manifest.series)).copied());
            pool.submit(move |decoder| {
                let seen = if resources.observer.is_cancelled() {
                    Ok(Seen::default())
                } else {
                    look_at(repository, manifest, &record, size, options.read_data.then_some(decoder))
                };
                resources.observer.advance(1, record.object_bytes);
                seen
            })
        };
        let tickets: Vec<_> = manifest.containers.iter().map(submit).collect();
        tickets.into_iter().map(|ticket| ticket.wait()?).collect::<Result<_, StoreError>>()
    })?;
    resources.unless_cancelled()?;
    let mut looked = Looked::default();
    for (record, seen) in manifest.containers.iter().zip(seen) {
        let lacks_parity = wanted_bytes(repository, record) > 0 && !parity.contains_key(&record.id);
        looked.add(manifest, record, seen, lacks_parity);
    }
    Ok(looked)
}

fn look_at(
    repository: &Repository,
    manifest: &Manifest,
    record: &ContainerRecord,
    size: Option<u64>,
    decoder: Option<&mut RegionDecoder>,
) -> Result<Seen, StoreError> {
    let (storage, keys, series) = (repository.storage(), repository.keys(), manifest.series);
    let name = record.object_name(series);
    let all = |fault: String| Some((fault, record.numbers()));
    let mut seen = Seen::default();
    seen.fault = match (size, decoder) {
        (None, _) => all(format!("{name} is missing")),
        (Some(bytes), _) if bytes != record.object_bytes => {
            all(format!("{name} is {bytes} bytes long instead of {}", record.object_bytes))
        }
        (Some(_), None) => match ContainerReader::open(storage, keys, series, record) {
            Ok(_) => None,
            Err(error) if error.is_damage() => all(error.to_string()),
            Err(error) => return Err(error),
        },
        (Some(_), Some(decoder)) => match storage.read(&name, name.bytes_max()).map_err(StoreError::from) {
            Err(error) if error.is_damage() => all(error.to_string()),
            object => {
                let object = object?;
                let fault = damage_in(repository, manifest, record, &object, decoder);
                if fault.is_none() {
                    seen.parity = parity_fault(repository, manifest, record, &object)?;
                }
                fault
            }
        },
    };
    if let Some((_, lost)) = &seen.fault {
        // Where no chunk is hurt the regions can be copied as they are.
        seen.is_healed = lost.is_empty() || repository.heal(series, record).is_some();
    }
    Ok(seen)
}

/// Returns the fault in the bytes of a container, and the chunks it answers for that this costs.
fn damage_in(
    repository: &Repository,
    manifest: &Manifest,
    record: &ContainerRecord,
    object: &[u8],
    decoder: &mut RegionDecoder,
) -> Option<(String, RoaringTreemap)> {
    let damage = ContainerReader::check(repository.keys(), manifest.series, record, object, decoder);
    let first = damage.first()?.error.to_string();
    let mut lost = RoaringTreemap::new();
    for run in damage.iter().flat_map(|damage| &damage.chunks) {
        lost.insert_range(run.range());
    }
    Some((first, lost & record.numbers()))
}

/// Returns the fault in the parity of an intact container; nothing if it has none.
fn parity_fault(
    repository: &Repository,
    manifest: &Manifest,
    record: &ContainerRecord,
    object: &[u8],
) -> Result<Option<String>, StoreError> {
    let name = ObjectName::Parity(manifest.series, record.id);
    let read = repository.storage().read(&name, name.bytes_max()).map_err(StoreError::from);
    match read.and_then(|read| parity::check(repository.keys(), manifest.series, record.id, object, &read)) {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) if error.is_damage() => Ok(Some(error.to_string())),
        other => other.map(|()| None),
    }
}

impl Looked {
    fn add(&mut self, manifest: &Manifest, record: &ContainerRecord, seen: Seen, lacks_parity: bool) {
        match seen.fault {
            Some((fault, lost)) if seen.is_healed => {
                let why = if lost.is_empty() { "no chunk is hurt by it" } else { "its parity makes it good" };
                self.faults.push(format!("{fault}; {why}"));
                self.healed.push(record.id);
            }
            Some((fault, lost)) => {
                self.faults.push(fault);
                self.lost |= lost;
            }
            None if lacks_parity || seen.parity.is_some() => {
                let missing = || format!("{} has no parity", record.object_name(manifest.series));
                self.faults.push(seen.parity.unwrap_or_else(missing));
                self.unprotected.push(record.id);
            }
            None => {}
        }
    }
}

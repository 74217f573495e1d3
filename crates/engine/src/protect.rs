//! Making parity for containers that lack it: those written before it was asked for, or with another share than is
//! wanted now.
//!
//! Each is read whole and must be sound, for parity made of damaged bytes would keep the damage; what is damaged is
//! left to be repaired. Nothing is committed: parity objects are named by no manifest, and an interrupted run goes on
//! where it stopped, for what is there in the right size is not made again.

use crate::lease::{Purpose, acquire, now};
use crate::many_series::{self, ManySeries};
use crate::observer::Notice;
use crate::{EngineError, Resources};
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::parity;
use siltstone_store::region::RegionDecoder;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter};
use siltstone_store::storage::Listing;
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::collections::HashMap;

/// Summary of what was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProtectSummary {
    /// Containers that have the wanted parity now and had not before.
    pub protected: u64,
    /// Containers that are left as they are because they are damaged; told as notices.
    pub passed_over: u64,
    /// Bytes of the parity objects written.
    pub bytes_written: u64,
    /// Bytes of the parity objects deleted.
    pub bytes_deleted: u64,
}

/// The bytes of the parity objects of a series, by container.
pub(crate) fn parity_bytes(repository: &Repository, series: SeriesId) -> Result<HashMap<ContainerId, u64>, StoreError> {
    let listed = repository.storage().list(Listing::Parity(series))?;
    Ok(listed.iter().filter_map(|meta| Some((meta.name.container()?, meta.bytes))).collect())
}

/// The containers whose parity is not what the repository's settings want, with the bytes of what they have.
pub(crate) fn unprotected(
    repository: &Repository,
    manifest: &Manifest,
) -> Result<Vec<(ContainerRecord, u64)>, StoreError> {
    let parity = parity_bytes(repository, manifest.series)?;
    let there = |record: &ContainerRecord| parity.get(&record.id).copied().unwrap_or(0);
    let records = manifest.containers.iter().filter(|record| there(record) != wanted_bytes(repository, record));
    Ok(records.map(|record| (record.clone(), there(record))).collect())
}

/// The bytes of the parity object that the repository's settings want for a container; 0 for none.
pub(crate) fn wanted_bytes(repository: &Repository, record: &ContainerRecord) -> u64 {
    repository.parity().object_bytes(record.kind, record.object_bytes)
}

/// Gives all containers the parity that the repository's settings want.
///
/// # Errors
/// The storage's, or because the user asked to stop: what was made by then stays.
pub fn protect(repository: &Repository, user: &str, resources: &Resources) -> Result<ProtectSummary, EngineError> {
    repository.require_reading("making parity")?;
    let many = ManySeries::of(repository, resources.memory_bytes);
    let lacking = |series| {
        // A series that cannot be read is told by what else the command does.
        let Ok(Some(manifest)) = repository.manifest_listed(series) else { return Ok(None) };
        let is_protected = unprotected(repository, &manifest)?.is_empty();
        Ok::<_, EngineError>((!is_protected).then_some(manifest.name))
    };
    let lacking = many.each(repository.series()?, |_| many_series::SERIES_BYTES_MIN, lacking)?;
    let mut summary = ProtectSummary::default();
    for name in lacking.into_iter().flatten() {
        let purpose = Purpose { name: "maintain", user, take_over: false, reserve: ReserveUse::Keep };
        let mut writer = acquire(repository, &name, &purpose, resources)?;
        let result = unprotected(repository, writer.manifest())
            .map_err(EngineError::from)
            .and_then(|todo| protect_series(repository, &writer, todo, resources, &mut summary));
        let unchanged = writer.manifest().clone();
        writer.commit(unchanged, false, now())?;
        result?;
    }
    Ok(summary)
}

/// Makes the parity of these containers anew, as far as they are still there. Gives how many have it now.
pub(crate) fn protect_these(
    repository: &Repository,
    writer: &SeriesWriter<'_>,
    containers: &[ContainerId],
    resources: &Resources,
) -> Result<u64, EngineError> {
    let records = writer.manifest().containers.iter().filter(|record| containers.contains(&record.id));
    let (todo, mut summary) = (records.map(|record| (record.clone(), 0)).collect(), ProtectSummary::default());
    protect_series(repository, writer, todo, resources, &mut summary)?;
    Ok(summary.protected)
}

fn protect_series(
    repository: &Repository,
    writer: &SeriesWriter<'_>,
    todo: Vec<(ContainerRecord, u64)>,
    resources: &Resources,
    summary: &mut ProtectSummary,
) -> Result<(), EngineError> {
    resources.observer.estimate(todo.len() as u64, todo.iter().map(|(record, _)| record.object_bytes).sum(), true);
    for (record, there) in todo {
        if resources.observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let object = match made(repository, writer.series(), &record) {
            Err(error) if error.is_damage() => {
                summary.passed_over += 1;
                let (object, reason) = (record.object_name(writer.series()).to_string(), error.to_string());
                resources.observer.notice(&Notice::PassedOver { object, reason });
                continue;
            }
            object => object?,
        };
        writer.replace_parity(record.id, object.as_deref())?;
        summary.bytes_deleted += there;
        summary.bytes_written += object.as_ref().map_or(0, |object| object.len() as u64);
        summary.protected += u64::from(object.is_some());
        resources.observer.advance(1, record.object_bytes);
    }
    Ok(())
}

/// The parity object of a container.
///
/// # Errors
/// Those of the storage, and what is damaged of the container.
fn made(repository: &Repository, series: SeriesId, record: &ContainerRecord) -> Result<Option<Vec<u8>>, StoreError> {
    let percent = repository.parity().percent(record.kind);
    if percent == 0 {
        return Ok(None);
    }
    let (keys, name) = (repository.keys(), record.object_name(series));
    let object = repository.storage().read(&name, name.bytes_max())?;
    let damage = ContainerReader::check(keys, series, record, &object, &mut RegionDecoder::new());
    match damage.into_iter().next() {
        Some(damage) => Err(damage.error),
        None => parity::protect(keys, series, record.id, &object, percent),
    }
}

//! The lists of a manifest as bytes: what grows with the data. A manifest of little data has them in itself; of larger
//! ones each is cut into parts (module `parts`).
//!
//! ```text
//! differences   for each snapshot: necessary added, removed, direct added, removed; bitmaps
//! containers    a record for each container, without its salt
//! salts         of each container, in the same order, 32 bytes each
//! depths        the bitmaps of the dependents' depths
//! imports       the runs of chunks that are borrowed of other series
//! ```
//! A list states no length of its own, so that an item that is added changes the bytes at its place and no others.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::Manifest;
use super::codec::{bitmap_bytes, damaged, optimized, read_bitmap};
use super::necessary::{Difference, NecessaryChunks};
use crate::container::ContainerRecord;
use crate::encoding;
use crate::error::StoreError;
use crate::sealed::Salt;
use crate::storage::ObjectName;
use roaring::RoaringTreemap;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The number of lists.
pub(super) const LISTS: usize = 5;
/// The place of the differences among the lists.
pub(super) const DIFFERENCES: usize = 0;
/// The place of the containers' records among the lists.
pub(super) const CONTAINERS: usize = 1;
/// The place of the salts among the lists: random bytes, which are not compressed.
pub(super) const SALTS: usize = 2;
/// The place of the dependents' depths among the lists.
pub(super) const DEPTHS: usize = 3;
/// The place of the borrowed chunks among the lists.
pub(super) const IMPORTS: usize = 4;

/// The lists of a manifest as bytes, in the order of the module's table.
pub(super) type Lists = [Vec<u8>; LISTS];

/// The four bitmaps of a snapshot.
type Steps = [Vec<u8>; 4];

/// The bytes of the lists.
pub(super) fn encode(manifest: &Manifest) -> Result<Lists, StoreError> {
    let steps = manifest.necessary.differences().iter().zip(manifest.direct.differences());
    let steps = steps.map(|(necessary, direct)| -> Steps {
        [&necessary.added, &necessary.removed, &direct.added, &direct.removed].map(bitmap_bytes)
    });
    let depths = manifest.dependents_depths.iter().map(|of_depth| bitmap_bytes(&optimized(of_depth.clone())));
    Ok([
        items(steps)?,
        items(manifest.containers.iter())?,
        manifest.containers.iter().flat_map(|record| record.salt).collect(),
        items(depths)?,
        items(manifest.imports.iter())?,
    ])
}

/// Fills a manifest with what the lists say.
///
/// # Errors
/// [`StoreError::Damaged`] of `object`.
pub(super) fn decode(object: &ObjectName, manifest: &mut Manifest, lists: &Lists) -> Result<(), StoreError> {
    let [differences, containers, salts, depths, imports] = lists;
    let steps: Vec<Steps> = read_items(object, differences)?;
    if steps.len() != manifest.snapshots.len() {
        return Err(damaged(object, "it has not one list of chunks for each snapshot"));
    }
    let difference = |added: &[u8], removed: &[u8]| {
        Ok::<_, StoreError>(Difference { added: read_bitmap(added, object)?, removed: read_bitmap(removed, object)? })
    };
    let necessary = steps.iter().map(|[added, removed, ..]| difference(added, removed));
    manifest.necessary = NecessaryChunks::from_differences(necessary.collect::<Result<_, _>>()?);
    let direct = steps.iter().map(|[.., added, removed]| difference(added, removed));
    manifest.direct = NecessaryChunks::from_differences(direct.collect::<Result<_, _>>()?);
    manifest.containers = read_containers(object, containers, salts)?;
    manifest.dependents_depths = read_depths(object, depths)?;
    manifest.imports = read_items(object, imports)?;
    manifest.check_sharing(object)
}

fn read_containers(object: &ObjectName, records: &[u8], salts: &[u8]) -> Result<Vec<ContainerRecord>, StoreError> {
    let mut records: Vec<ContainerRecord> = read_items(object, records)?;
    let (salts, rest) = salts.as_chunks::<{ size_of::<Salt>() }>();
    if salts.len() != records.len() || !rest.is_empty() {
        return Err(damaged(object, "it has not one salt for each container"));
    }
    for (record, salt) in records.iter_mut().zip(salts) {
        record.salt = *salt;
        record.validate(object)?;
    }
    Ok(records)
}

fn read_depths(object: &ObjectName, depths: &[u8]) -> Result<Vec<RoaringTreemap>, StoreError> {
    let depths: Vec<Vec<u8>> = read_items(object, depths)?;
    let depths = depths.iter().map(|bytes| read_bitmap(bytes, object)).collect::<Result<Vec<_>, _>>()?;
    let count: u64 = depths.iter().map(RoaringTreemap::len).sum();
    if depths.iter().fold(RoaringTreemap::new(), |all, of_depth| all | of_depth).len() != count {
        return Err(damaged(object, "a chunk has two depths of dependents"));
    }
    Ok(depths)
}

/// The items, one after another.
fn items<T: Serialize>(items: impl Iterator<Item = T>) -> Result<Vec<u8>, StoreError> {
    let mut items = items;
    items.try_fold(Vec::new(), |bytes, item| encoding::append(&item, bytes))
}

/// The items that the bytes hold, to their end.
fn read_items<T: DeserializeOwned>(object: &ObjectName, mut bytes: &[u8]) -> Result<Vec<T>, StoreError> {
    let mut items = Vec::new();
    while !bytes.is_empty() {
        let (item, rest) = encoding::take(object, "manifest's list", bytes)?;
        items.push(item);
        bytes = rest;
    }
    Ok(items)
}

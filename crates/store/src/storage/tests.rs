//! Tests of the storages: the contract for all of them, and what each promises beyond it.

mod cached;
mod crash;
mod disk;
mod prefetch;
mod recorder;

use super::conformance::{
    OTHER_SERIES, SERIES, container, exists, foreign_container, key, manifest, metadata_container,
};
use super::{Cached, Disk, ObjectName, Prefetch, Recorder, SimulatedDisk, SimulatedRemote, Storage, Traced};
use std::sync::Arc;

/// Does a contract on each kind of storage.
fn every_storage(contract: fn(&dyn Storage)) {
    let folder = tempfile::tempdir().unwrap();
    contract(&Disk::create(folder.path().join("repository")).unwrap());
    contract(&SimulatedDisk::new());
    contract(&SimulatedRemote::new());
    contract(&Arc::new(Traced::new(Recorder::new(SimulatedDisk::new()))));
    let cache = tempfile::tempdir().unwrap();
    contract(&Cached::open(Arc::new(SimulatedDisk::new()), cache.path(), 1 << 20).unwrap());
    // The second run on another place expects what the first one saw.
    for _ in 0..2 {
        contract(&Prefetch::start(Arc::new(SimulatedRemote::new()), cache.path(), b"contract"));
    }
}

crate::contracts!(every_storage);

/// Names of a disk after a crash with each of many seeds.
fn crashes(disk: &SimulatedDisk) -> impl Iterator<Item = SimulatedDisk> + '_ {
    (0..200).map(|seed| disk.crash(seed))
}

//! Tests of the storages: one suite of the contract for all of them, and what each promises beyond it.

mod cached;
mod conformance;
mod crash;
mod disk;

use super::{ObjectName, SimulatedDisk, Storage};
use crate::ids::{ContainerId, KeyId, SeriesId};

const SERIES: SeriesId = SeriesId([0xa5; 16]);
const OTHER_SERIES: SeriesId = SeriesId([0x5a; 16]);

fn key(id: u8) -> ObjectName {
    ObjectName::Key(KeyId([id; 16]))
}

fn manifest(sequence: u64) -> ObjectName {
    ObjectName::Manifest(SERIES, sequence)
}

fn container(serial: u32) -> ObjectName {
    ObjectName::Container(SERIES, ContainerId { lease: 1, serial })
}

fn foreign_container(serial: u32) -> ObjectName {
    ObjectName::Container(OTHER_SERIES, ContainerId { lease: 1, serial })
}

/// Names of a disk after a crash with each of many seeds.
fn crashes(disk: &SimulatedDisk) -> impl Iterator<Item = SimulatedDisk> + '_ {
    (0..200).map(|seed| disk.crash(seed))
}

fn exists(storage: &dyn Storage, name: &ObjectName) -> bool {
    match storage.read(name, u64::MAX) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => panic!("{name}: {error}"),
    }
}

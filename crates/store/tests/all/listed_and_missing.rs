//! A place that contradicts itself: it lists objects, and says that they are not there when they are read. A cluster of
//! MinIO was seen to do so for many seconds after all its nodes were killed and started again.

use crate::common::{holder, init, open};
use siltstone_store::StoreError;
use siltstone_store::series::{LeaseRequest, SeriesWriter, newest_manifest};
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Original, SimulatedDisk, Storage, StorageError};
use std::sync::Arc;

/// A disk that has no manifest for those who read.
#[derive(Debug)]
struct Contradicting(SimulatedDisk);

impl Storage for Contradicting {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        match name {
            ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)) => {
                Err(StorageError::NotFound { name: *name })
            }
            _ => self.0.read(name, bytes_max),
        }
    }
    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.0.read_range(name, offset, length)
    }
    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.0.put(name, bytes)
    }
    fn barrier(&self) -> Result<(), StorageError> {
        self.0.barrier()
    }
    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.0.create(name, bytes)
    }
    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.0.delete(name)
    }
    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.0.list(what)
    }
    fn remove_unfinished(&self, series: siltstone_store::SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.0.remove_unfinished(series, lease_last)
    }
    fn location(&self) -> String {
        self.0.location()
    }
}

#[test]
fn a_manifest_that_is_listed_and_missing_is_told_as_such_and_not_to_be_repaired() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let writer = SeriesWriter::acquire(&repository, &LeaseRequest::new("series", holder(1), "backup"));
    let series = writer.expect("the lease").series();

    let contradicting = open(Arc::new(Contradicting(disk.clone())));
    let error = newest_manifest(&contradicting, series).expect_err("it cannot be read");
    let text = error.to_string();
    assert!(error.is_damage() && !error.is_not_found(), "{text}");
    let StoreError::UnreadableSeries { source, .. } = error else { panic!("{text}") };
    assert!(matches!(*source, StoreError::ListedAndMissing { .. }), "{text}");
    assert!(text.contains("series/") && text.contains("run again") && !text.contains("silt repair"), "{text}");
    assert!(newest_manifest(&open(Arc::new(disk)), series).expect("it reads").is_some());
}

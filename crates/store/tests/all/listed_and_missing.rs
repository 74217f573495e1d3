//! A place that contradicts itself: it lists objects, and says that they are not there when they are read. A cluster of
//! MinIO was seen to do so for many seconds after all its nodes were killed and started again.

use crate::common::{holder, init, open};
use siltstone_store::StoreError;
use siltstone_store::series::{LeaseRequest, SeriesWriter, newest_manifest};
use siltstone_store::storage::{Call, Fate, Interposed, ObjectName, Original, SimulatedDisk, StorageError};
use std::sync::Arc;

/// A disk that has no manifest for those who read.
fn contradicting(disk: &SimulatedDisk) -> Interposed<SimulatedDisk> {
    Interposed::new(disk.clone(), |call| match call {
        Call::Read(name @ (ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)))) => {
            Fate::Refused(StorageError::NotFound { name: *name })
        }
        _ => Fate::Made,
    })
}

#[test]
fn a_manifest_that_is_listed_and_missing_is_told_as_such_and_not_to_be_repaired() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let writer = SeriesWriter::acquire(&repository, &LeaseRequest::new("series", holder(1), "backup"));
    let series = writer.expect("the lease").series();

    let contradicting = open(Arc::new(contradicting(&disk)));
    let error = newest_manifest(&contradicting, series).expect_err("it cannot be read");
    let text = error.to_string();
    assert!(error.is_damage() && !error.is_not_found(), "{text}");
    let StoreError::UnreadableSeries { source, .. } = error else { panic!("{text}") };
    assert!(matches!(*source, StoreError::ListedAndMissing { .. }), "{text}");
    assert!(text.contains("series/") && text.contains("run again") && !text.contains("silt repair"), "{text}");
    assert!(newest_manifest(&open(Arc::new(disk)), series).expect("it reads").is_some());
}

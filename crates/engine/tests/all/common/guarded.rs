//! Storages that refuse something: all writing, as on a read-only mount, or renewals.

use siltstone_store::SeriesId;
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, SimulatedDisk, Storage, StorageError};
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};

#[derive(Debug)]
pub struct ReadOnlyDisk(pub SimulatedDisk);

fn refused<T>(name: &ObjectName) -> Result<T, StorageError> {
    Err(StorageError::ReadOnly { name: name.to_string(), source: io::ErrorKind::ReadOnlyFilesystem.into() })
}

impl Storage for ReadOnlyDisk {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.0.read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.0.read_range(name, offset, length)
    }

    fn put(&self, name: &ObjectName, _: &[u8]) -> Result<(), StorageError> {
        refused(name)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        Ok(())
    }

    fn create(&self, name: &ObjectName, _: &[u8]) -> Result<(), StorageError> {
        refused(name)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        refused(name)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.0.list(what)
    }

    fn remove_unfinished(&self, _: SeriesId, _: u64) -> Result<u64, StorageError> {
        Ok(0)
    }

    fn location(&self) -> String {
        self.0.location()
    }
}

/// A disk that fails every renewal after so many, as for a holder that sleeps or is cut off.
#[derive(Debug)]
pub struct Unrenewed {
    disk: SimulatedDisk,
    left: AtomicU32,
}

impl Unrenewed {
    pub fn after(renewals: u32, disk: SimulatedDisk) -> Self {
        Self { disk, left: AtomicU32::new(renewals) }
    }
}

impl Storage for Unrenewed {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.disk.read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.disk.read_range(name, offset, length)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.disk.put(name, bytes)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.disk.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.disk.create(name, bytes)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.disk.delete(name)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        match self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)) {
            Ok(_) => self.disk.renew(name, before),
            Err(_) => refused(name),
        }
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.disk.list(what)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.disk.remove_unfinished(series, lease_last)
    }

    fn location(&self) -> String {
        self.disk.location()
    }
}

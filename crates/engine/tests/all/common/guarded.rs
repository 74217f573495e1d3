//! Storages that refuse something: all writing, as on a read-only mount, or objects of one kind.

use siltstone_store::SeriesId;
use siltstone_store::storage::{Listing, NameKind, ObjectMeta, ObjectName, SimulatedDisk, Storage, StorageError};
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

/// A disk that refuses objects of one kind after so many: renewals, as for a holder that sleeps or is cut off, or
/// loans.
#[derive(Debug)]
pub struct Refusing {
    disk: SimulatedDisk,
    kind: NameKind,
    left: AtomicU32,
}

impl Refusing {
    pub fn after(objects: u32, kind: NameKind, disk: SimulatedDisk) -> Self {
        Self { disk, kind, left: AtomicU32::new(objects) }
    }

    fn unless_refused(&self, name: &ObjectName) -> Result<(), StorageError> {
        if NameKind::from(name) != self.kind {
            return Ok(());
        }
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        left.map(drop).or_else(|_| refused(name))
    }
}

impl Storage for Refusing {
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
        self.unless_refused(name)?;
        self.disk.create(name, bytes)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.disk.delete(name)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.unless_refused(name)?;
        self.disk.renew(name, before)
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

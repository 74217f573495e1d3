//! A storage that can be read and not be written, as on a read-only mount.

use siltstone_store::SeriesId;
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, SimulatedDisk, Storage, StorageError};
use std::io;

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

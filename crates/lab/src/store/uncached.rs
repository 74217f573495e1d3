//! A folder of objects whose containers are read from the disk each time: the system's page cache would hold a store of
//! the lab's size whole, and then nobody pays for reading a container twice. What a method keeps in memory is its own,
//! counted cache (MeGA, ATC 2022, section 5.1).
//!
//! Syncs are counted: calls that return once what was written is durable.
//!
//! Before a read the pages of what is read are dropped, for all methods alike. Where files lie in memory anyway
//! (`tmpfs`), or the system has no such call, nothing happens: then counts of containers tell more than times.

use siltstone_store::SeriesId;
use siltstone_store::storage::{Disk, Listing, ObjectMeta, ObjectName, Storage, StorageError};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Count of syncs. Clones count together.
#[derive(Clone, Debug, Default)]
pub(super) struct Syncs(Arc<AtomicU64>);

impl Syncs {
    /// The count so far.
    pub(super) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// A folder on disk.
#[derive(Debug)]
pub(super) struct Uncached {
    disk: Disk,
    folder: PathBuf,
    syncs: Syncs,
}

impl Uncached {
    /// A new or existing folder.
    ///
    /// # Errors
    /// If it cannot be made.
    pub(super) fn create(folder: &Path) -> Result<Self, StorageError> {
        Ok(Self { disk: Disk::create(folder)?, folder: folder.to_owned(), syncs: Syncs::default() })
    }

    /// Returns the count of its syncs.
    pub(super) fn syncs(&self) -> Syncs {
        self.syncs.clone()
    }

    /// A hint: what goes wrong here shows when the object is read.
    #[cfg(target_os = "linux")]
    fn leave_page_cache(&self, name: &ObjectName, offset: u64, bytes: Option<usize>) {
        if let (ObjectName::Container(..), Ok(file)) = (name, File::open(self.folder.join(name.to_string()))) {
            let bytes = bytes.and_then(|bytes| std::num::NonZeroU64::new(bytes as u64));
            let _ = rustix::fs::fadvise(&file, offset, bytes, rustix::fs::Advice::DontNeed);
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn leave_page_cache(&self, _: &ObjectName, _: u64, _: Option<usize>) {}
}

/// Reads a file from the disk, past the page cache; returns its length.
///
/// # Errors
/// If it cannot be read.
pub(super) fn read_file(path: &Path) -> io::Result<u64> {
    let mut file = File::open(path)?;
    #[cfg(target_os = "linux")]
    rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed)?;
    let mut bytes = Vec::new();
    Ok(file.read_to_end(&mut bytes)? as u64)
}

impl Storage for Uncached {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.leave_page_cache(name, 0, None);
        self.disk.read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.leave_page_cache(name, offset, Some(length));
        self.disk.read_range(name, offset, length)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.disk.put(name, bytes)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.syncs.note();
        self.disk.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.syncs.note();
        self.disk.create(name, bytes)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.disk.delete(name)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.syncs.note();
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

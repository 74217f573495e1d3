//! A repository in a local folder: one file per object, durable in the way POSIX file systems can promise it.
//!
//! **put** writes a temporary file in the caller's thread (into the page cache), and hands it to a background thread,
//! which syncs it and then renames it to its name, never over another file. So a name never shows a file that is not
//! whole on the disk, and the writer goes on while the disk works. **barrier** waits for all of that, then syncs each
//! folder that changed, once. **create** does the same steps in the caller's thread and returns after its folder is
//! synced.
//!
//! ```text
//! put      temp: write | thread: fsync temp, rename      \
//! delete   unlink                                         > barrier: fsync each changed folder
//! create   temp: write, fsync, rename, fsync folder
//! renew    open a new empty file, unlink another one: no sync, and none of the storage's state is touched
//! ```
//! Any order the disk chooses between two barriers is fine, since nothing refers to an object before the barrier after
//! it. A failed sync is never tried again: the kernel may have dropped the pages and report success the second time
//! (the fsync problem of `PostgreSQL`, 2018). The storage is poisoned instead.
//!
//! A full disk or quota is no such failure: the temporary file is removed, nothing else happened, and writing can go on
//! as soon as something was deleted. The exception is space running out during a background sync, after `put` has
//! returned.
//!
//! Temporary files are `tmp/<name with dots for slashes>.<random>`. Those of a killed process stay until
//! [`Storage::remove_unfinished`], which goes by the lease in their names, never by age. A writer whose file is gone
//! when it is to get its name has been overtaken, and is told so ([`StorageError::Swept`]).

mod queue;
mod root;
mod temporary;

use super::{Listing, ObjectMeta, ObjectName, Storage, StorageError};
use crate::ids::SeriesId;
use queue::SyncQueue;
use root::Root;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use temporary::Temporary;

/// A [`Storage`] in a local folder. Folders inside it are made when they are first needed.
#[derive(Debug)]
pub struct Disk {
    root: Arc<Root>,
    queue: SyncQueue,
}

impl Disk {
    /// Opens a folder that exists. Whether it holds a repository is for the caller to find out.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        let root = Arc::new(Root::open(path.as_ref())?);
        Ok(Self { queue: SyncQueue::new(Arc::clone(&root)), root })
    }

    /// Opens a folder, making it (and the folders above it) if it does not exist. It may hold anything: ask
    /// [`Disk::is_empty`].
    pub fn create(path: impl AsRef<Path>) -> Result<Self, StorageError> {
        root::make_folders(path.as_ref())?;
        Self::open(path)
    }

    /// Tells whether the folder holds nothing, or nothing but what an interrupted first use leaves: folders of a
    /// repository without objects, and temporary files. The `lost+found` of a fresh file system does not count.
    pub fn is_empty(&self) -> Result<bool, StorageError> {
        self.root.is_empty()
    }

    /// A synced or yet unsynced temporary file with this content, for a name that is free.
    fn write_new(&self, name: &ObjectName, bytes: &[u8]) -> Result<Temporary, StorageError> {
        if self.root.exists(name)? {
            return Err(StorageError::AlreadyExists { name: *name });
        }
        self.root.ensure_folder(root::folder_of(&name.to_string()))?;
        Temporary::write(&self.root, name, bytes)
    }

    fn write_and_publish(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let temporary = self.write_new(name, bytes)?;
        temporary.sync()?;
        temporary.publish()
    }
}

/// Tells whether after this failure it is known what reached the disk: nothing.
fn changed_nothing(error: &StorageError) -> bool {
    matches!(
        error,
        StorageError::Full { .. }
            | StorageError::ReadOnly { .. }
            | StorageError::AlreadyExists { .. }
            | StorageError::Swept { .. }
            | StorageError::Poisoned
    )
}

impl Storage for Disk {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.root.read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.root.read_range(name, offset, length)
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.root.size_of(name)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let ticket = self.queue.begin(name)?;
        match self.write_new(name, bytes) {
            Ok(temporary) => {
                self.queue.submit(ticket, temporary);
                Ok(())
            }
            Err(error) => {
                self.queue.abandon(ticket);
                Err(self.queue.poison_unless(changed_nothing, error))
            }
        }
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.queue.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.queue.wait_for(name)?;
        self.write_and_publish(name, bytes).map_err(|error| self.queue.poison_unless(changed_nothing, error))?;
        let synced = self.root.sync_folder(root::folder_of(&name.to_string()));
        synced.map_err(|error| self.queue.poison_unless(|_| false, error))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.queue.wait_for(name)?;
        if self.root.remove(&name.to_string())? {
            self.queue.folder_changed(root::folder_of(&name.to_string()));
        }
        Ok(())
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.queue.refuse_if_poisoned()?;
        self.root.make_empty(name)?;
        before.map_or(Ok(()), |before| self.root.remove(&before.to_string()).map(drop))
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = match what {
            Listing::All => self.root.list_all()?,
            Listing::Aside => self.root.list_folder("aside")?,
            Listing::Configs => self.root.list_folder("config")?,
            Listing::ConfigCopies => self.root.list_folder("copies/config")?,
            Listing::Keys => self.root.list_folder("keys")?,
            Listing::KeyCopies => self.root.list_folder("copies/keys")?,
            Listing::AllManifests => self.root.list_below("series")?,
            Listing::AllManifestCopies => self.root.list_below("copies/series")?,
            Listing::Manifests(series) => self.root.list_folder(&format!("series/{series}"))?,
            Listing::ManifestCopies(series) => self.root.list_folder(&format!("copies/series/{series}"))?,
            Listing::Containers(series) => self.root.list_folder(&format!("containers/{series}"))?,
            Listing::Parity(series) => self.root.list_folder(&format!("parity/{series}"))?,
            Listing::Renewals(series) => self.root.list_folder(&format!("renewals/{series}"))?,
            Listing::ManifestParts(series) => self.root.list_folder(&format!("parts/{series}"))?,
            Listing::ManifestPartCopies(series) => self.root.list_folder(&format!("copies/parts/{series}"))?,
        };
        objects.sort_unstable();
        Ok(objects)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.root.remove_temporaries(series, lease_last)
    }

    fn drop_cached(&self, name: &ObjectName) -> bool {
        self.root.drop_cached(name);
        false
    }

    fn location(&self) -> String {
        self.root.location().to_owned()
    }

    fn folder(&self) -> Option<PathBuf> {
        self.root.canonical()
    }
}

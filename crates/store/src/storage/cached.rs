//! A cache of sealed objects in a folder of this machine, in front of a storage that is far away.
//!
//! A container never changes under its name, so what was read once need not be read again: indexes of containers, and
//! containers of metadata. What is written goes there as well, data of the newest snapshots included, as far as the
//! cache has room: a later backup then finds what it encodes against on this machine.
//!
//! ```text
//! read         the whole container, by its name                   \
//! read_kept    a range that is asked for again: an index           > looked up, else fetched and kept
//! read_range   from the whole container if that is here; else fetched, and not kept
//! put          the storage first, then the cache
//! ```
//! Nothing in the cache is trusted. Each entry has a checksum that covers its name, so one that is torn, damaged or
//! misnamed is not there; only ranges of whole containers are read without it. The bytes are those of the repository,
//! sealed: who reads them opens them by the salt in the manifest's record, and where that fails asks for
//! [`Storage::drop_cached`] and reads again. So a container of a history that was rolled back is never taken for one of
//! the same name.
//!
//! A part of a manifest is kept like a container of metadata: the manifest states its hash.
//!
//! Nothing vouches so for configs, key slots and manifests, and the storage alone says which is the newest: they are
//! read from there each time, as is all that changes under its name.

mod folder;

use super::{Listing, ObjectMeta, ObjectName, Part, ReadRequest, Storage, StorageError};
use crate::container::ContainerKind;
use crate::ids::SeriesId;
use folder::{Class, Folder};
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a cache takes at most, unless said otherwise.
pub const CACHE_BYTES_DEFAULT: u64 = 4 << 30;

/// A [`Storage`] with a cache of sealed objects in front of it.
#[derive(Debug)]
pub struct Cached {
    inner: Arc<dyn Storage>,
    folder: Folder,
    /// Bytes of data containers that this process may still add. A first backup writes more than the cache holds: it
    /// would only push out what is useful.
    data_bytes_left: AtomicU64,
}

impl Cached {
    /// Puts a cache in front of a storage. `folder` is for this storage alone, and may be shared by processes; it is
    /// made if it is not there. It takes `bytes_max` at most, about.
    ///
    /// # Errors
    /// Those of making the folder.
    pub fn open(inner: Arc<dyn Storage>, folder: &Path, bytes_max: u64) -> io::Result<Self> {
        let folder = Folder::open(folder, bytes_max)?;
        Ok(Self { inner, folder, data_bytes_left: AtomicU64::new(bytes_max / 2) })
    }

    /// Keeps a whole object if one of its kind is kept.
    fn keep(&self, name: &ObjectName, bytes: &[u8]) {
        let Some(class) = class_of(name) else { return };
        if class == Class::Data && !self.take_data_bytes(bytes.len() as u64) {
            return;
        }
        self.folder.keep_whole(name, class, bytes);
    }

    /// Keeps an object that was fetched whole. Data is kept when it is written only: who reads it whole, checks it.
    fn keep_fetched(&self, name: &ObjectName, bytes: &[u8]) {
        if class_of(name) == Some(Class::Metadata) {
            self.keep(name, bytes);
        }
    }

    /// The answer to a request, if it can be given from here.
    fn part_here(&self, request: &ReadRequest) -> Option<Result<Vec<u8>, StorageError>> {
        let name = &request.name;
        if !is_kept(name) {
            return None;
        }
        match request.part {
            Part::Range { offset, length } => self.folder.range_of_whole(name, offset, length).map(Ok),
            Part::Whole { bytes_max } => {
                let whole = self.folder.whole(name)?;
                let bytes = whole.len() as u64;
                let is_allowed = bytes <= bytes_max;
                Some(if is_allowed { Ok(whole) } else { Err(too_large(name, bytes, bytes_max)) })
            }
        }
    }

    /// Takes so many bytes of what data containers may still add; false if there are fewer.
    fn take_data_bytes(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        self.data_bytes_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

fn too_large(name: &ObjectName, bytes: u64, limit: u64) -> StorageError {
    StorageError::TooLarge { name: *name, bytes, limit }
}

/// Tells whether objects of this kind are kept.
fn is_kept(name: &ObjectName) -> bool {
    class_of(name).is_some()
}

/// The class of an object that is kept.
fn class_of(name: &ObjectName) -> Option<Class> {
    match name {
        ObjectName::Container(ContainerKind::Metadata, ..) | ObjectName::ManifestPart(..) => Some(Class::Metadata),
        ObjectName::Container(ContainerKind::Data, ..) => Some(Class::Data),
        _ => None,
    }
}

impl Storage for Cached {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        if let Some(here) = self.part_here(&ReadRequest::whole(*name, bytes_max)) {
            return here;
        }
        let bytes = self.inner.read(name, bytes_max)?;
        self.keep_fetched(name, &bytes);
        Ok(bytes)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let here = self.part_here(&ReadRequest::range(*name, offset, length));
        here.unwrap_or_else(|| self.inner.read_range(name, offset, length))
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        if !is_kept(name) {
            return self.inner.read_kept(name, offset, length);
        }
        let here = || self.folder.range(name, offset, length);
        if let Some(bytes) = here().or_else(|| self.folder.range_of_whole(name, offset, length)) {
            return Ok(bytes);
        }
        let bytes = self.inner.read_kept(name, offset, length)?;
        self.folder.keep_range(name, offset, &bytes);
        Ok(bytes)
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        let mut far = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let Some(here) = self.part_here(request) else {
                far.push((place, *request));
                continue;
            };
            if answer(place, here).is_break() {
                return;
            }
        }
        let asked: Vec<ReadRequest> = far.iter().map(|(_, request)| *request).collect();
        self.inner.read_many(&asked, &mut |at, result| {
            let Some((place, request)) = far.get(at) else { return ControlFlow::Continue(()) };
            if let (Part::Whole { .. }, Ok(bytes)) = (request.part, &result) {
                self.keep_fetched(&request.name, bytes);
            }
            answer(*place, result)
        });
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.inner.size_of(name)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.inner.put(name, bytes)?;
        self.keep(name, bytes);
        Ok(())
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.inner.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.inner.create(name, bytes)?;
        self.keep(name, bytes);
        Ok(())
    }

    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        let (created, listed) = self.inner.create_and_list(name, bytes, what);
        if created.is_ok() {
            self.keep(name, bytes);
        }
        (created, listed)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.folder.drop(name);
        self.inner.delete(name)
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        for name in names {
            self.folder.drop(name);
        }
        self.inner.delete_many(names)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.inner.renew(name, before)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.inner.list(what)
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        self.inner.list_both(what)
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        self.inner.list_after(what, after)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.inner.remove_unfinished(series, lease_last)
    }

    fn drop_cached(&self, name: &ObjectName) -> bool {
        let was_here = self.folder.drop(name);
        self.inner.drop_cached(name) || was_here
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&*self.inner)
    }
}

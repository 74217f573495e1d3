//! A storage that passes every call on and counts it, so that tests can hold the shape of I/O ("each container is read
//! once") and programs can report requests and bytes.
//!
//! Calls are counted whether they succeed or not; bytes only when they moved. The counts live in memory: one small
//! record per object touched.

use super::{Listing, ObjectMeta, ObjectName, Part, ReadRequest, Storage, StorageError};
use crate::ids::SeriesId;
use std::collections::BTreeMap;
use std::ops::{AddAssign, ControlFlow};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The kind of an object's name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum NameKind {
    /// The record of the repository.
    Config,
    /// Bytes kept to be given up on a full disk.
    Reserve,
    /// A key slot.
    Key,
    /// A commit of a series.
    Manifest,
    /// Chunks, of files or of catalogs.
    Container,
    /// An object that a repair replaced.
    Aside,
    /// Parity of a container.
    Parity,
    /// The copy of an object that is kept twice.
    Copy,
    /// A sign of life of a lease's holder.
    Renewal,
    /// A part of a manifest's lists.
    ManifestPart,
    /// Chunks of a series that another one borrows.
    Loan,
    /// The series that others may borrow of.
    Directory,
}

impl From<&ObjectName> for NameKind {
    fn from(name: &ObjectName) -> Self {
        match name {
            ObjectName::Config(_) => Self::Config,
            ObjectName::Reserve => Self::Reserve,
            ObjectName::Key(_) => Self::Key,
            ObjectName::Manifest(..) => Self::Manifest,
            ObjectName::Container(..) => Self::Container,
            ObjectName::Aside(..) => Self::Aside,
            ObjectName::Parity(..) => Self::Parity,
            ObjectName::Copy(_) => Self::Copy,
            ObjectName::Renewal(..) => Self::Renewal,
            ObjectName::ManifestPart(..) => Self::ManifestPart,
            ObjectName::Loan(..) => Self::Loan,
            ObjectName::Directory(_) => Self::Directory,
        }
    }
}

/// The calls made on one object, or the sum over several.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct ObjectCalls {
    /// Reads of the whole object.
    pub reads: u64,
    /// Reads of a range.
    pub range_reads: u64,
    /// Questions for the object's length.
    pub sizes: u64,
    /// Bytes that reads of either form returned.
    pub bytes_read: u64,
    /// Calls of `put`.
    pub puts: u64,
    /// Calls of `create`.
    pub creates: u64,
    /// Bytes that successful puts and creates were given.
    pub bytes_written: u64,
    /// Deletions, alone or with others.
    pub deletes: u64,
}

impl AddAssign for ObjectCalls {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.range_reads += other.range_reads;
        self.sizes += other.sizes;
        self.bytes_read += other.bytes_read;
        self.puts += other.puts;
        self.creates += other.creates;
        self.bytes_written += other.bytes_written;
        self.deletes += other.deletes;
    }
}

/// Every call a [`Recorder`] saw since it was made or last reset.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct StorageCalls {
    /// Calls by object, whether the object still exists or not.
    pub objects: BTreeMap<ObjectName, ObjectCalls>,
    /// Calls of `barrier`.
    pub barriers: u64,
    /// Calls of `list` and `list_after`.
    pub lists: u64,
    /// Calls of `read_many`; what they read is counted with each object.
    pub read_batches: u64,
    /// Calls of `delete_many`; what they delete is counted with each object.
    pub delete_batches: u64,
}

impl StorageCalls {
    /// The calls on one object; all zero if there were none.
    pub fn of(&self, name: &ObjectName) -> ObjectCalls {
        self.objects.get(name).copied().unwrap_or_default()
    }

    /// The sum over the objects of one kind.
    pub fn of_kind(&self, kind: NameKind) -> ObjectCalls {
        self.sum(|name| NameKind::from(name) == kind)
    }

    /// The sum over all objects.
    pub fn total(&self) -> ObjectCalls {
        self.sum(|_| true)
    }

    fn sum(&self, counts: impl Fn(&ObjectName) -> bool) -> ObjectCalls {
        let mut sum = ObjectCalls::default();
        self.objects.iter().filter(|(name, _)| counts(name)).for_each(|(_, calls)| sum += *calls);
        sum
    }
}

/// A [`Storage`] that counts the calls made on another.
#[derive(Debug)]
pub struct Recorder<S> {
    inner: S,
    calls: Mutex<StorageCalls>,
}

impl<S: Storage> Recorder<S> {
    /// Counts from zero what is asked of `inner` through this recorder.
    pub fn new(inner: S) -> Self {
        Self { inner, calls: Mutex::default() }
    }

    /// The counts so far.
    pub fn calls(&self) -> StorageCalls {
        self.lock().clone()
    }

    /// Starts counting from zero again and gives back the counts so far.
    pub fn reset(&self) -> StorageCalls {
        std::mem::take(&mut *self.lock())
    }

    /// The storage underneath; calls made on it are not counted.
    pub fn inner(&self) -> &S {
        &self.inner
    }

    fn lock(&self) -> MutexGuard<'_, StorageCalls> {
        self.calls.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, name: &ObjectName, add: impl FnOnce(&mut ObjectCalls)) {
        add(self.lock().objects.entry(*name).or_default());
    }

    fn count_read(&self, request: &ReadRequest, result: &Result<Vec<u8>, StorageError>) {
        self.count(&request.name, |calls| {
            match request.part {
                Part::Whole { .. } => calls.reads += 1,
                Part::Range { .. } => calls.range_reads += 1,
            }
            calls.bytes_read += result.as_ref().map_or(0, |bytes| bytes.len() as u64);
        });
    }
}

impl<S: Storage> Storage for Recorder<S> {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        let result = self.inner.read(name, bytes_max);
        self.count_read(&ReadRequest::whole(*name, bytes_max), &result);
        result
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let result = self.inner.read_range(name, offset, length);
        self.count_read(&ReadRequest::range(*name, offset, length), &result);
        result
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let result = self.inner.read_kept(name, offset, length);
        self.count_read(&ReadRequest::range(*name, offset, length), &result);
        result
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        self.lock().read_batches += 1;
        self.inner.read_many(requests, &mut |place, result| {
            if let Some(request) = requests.get(place) {
                self.count_read(request, &result);
            }
            answer(place, result)
        });
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.count(name, |calls| calls.sizes += 1);
        self.inner.size_of(name)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let result = self.inner.put(name, bytes);
        self.count(name, |calls| {
            calls.puts += 1;
            calls.bytes_written += result.as_ref().map_or(0, |()| bytes.len() as u64);
        });
        result
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.lock().barriers += 1;
        self.inner.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let result = self.inner.create(name, bytes);
        self.count(name, |calls| {
            calls.creates += 1;
            calls.bytes_written += result.as_ref().map_or(0, |()| bytes.len() as u64);
        });
        result
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.count(name, |calls| calls.deletes += 1);
        self.inner.delete(name)
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        self.lock().delete_batches += 1;
        for name in names {
            self.count(name, |calls| calls.deletes += 1);
        }
        self.inner.delete_many(names)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.count(name, |calls| calls.creates += 1);
        if let Some(before) = before {
            self.count(before, |calls| calls.deletes += 1);
        }
        self.inner.renew(name, before)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.lock().lists += 1;
        self.inner.list(what)
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        self.lock().lists += 2;
        self.inner.list_both(what)
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        self.lock().lists += 1;
        self.inner.list_after(what, after)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.inner.remove_unfinished(series, lease_last)
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&self.inner)
    }
}

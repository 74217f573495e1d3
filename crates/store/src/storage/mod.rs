//! Storage of objects: one trait, whatever holds them. Everything Siltstone reads or writes in a repository goes
//! through [`Storage`].
//!
//! The contract is that of the weakest place we support, so that the layers above cannot rely on more:
//! - an object put is visible to others at some moment between `put` and the end of the next successful `barrier`, and
//!   it may be lost or torn by a crash before that moment; after it, it is whole and stays;
//! - `create` is the commit: whole or absent, never torn, refused if the name exists, durable when it returns. It does
//!   *not* imply a barrier for earlier puts: the caller asks for one first;
//! - `delete` may be undone by a crash before the next `barrier`.
//!
//! Calls for many objects (`read_many`, `delete_many`, `list_after`) promise no more than the same calls one by one.
//! They exist because a place at a distance does them in a fraction of the time; each has a default that does them one
//! by one. [`Storage::capabilities`] says what pays.

mod cached;
mod capabilities;
#[cfg(any(test, feature = "conformance"))]
pub mod conformance;
mod disk;
mod error;
mod guarded;
mod health;
mod name;
mod prefetch;
mod recorder;
mod request;
pub mod scheduled;
mod simulated;
mod simulated_remote;
#[cfg(test)]
mod tests;
mod traced;

pub use cached::{CACHE_BYTES_DEFAULT, Cached};
pub use capabilities::{Capabilities, Latency};
pub use disk::Disk;
pub use error::StorageError;
pub use guarded::{Action, Call, Guarded, Outcome};
pub use health::WriteHealth;
pub use name::{
    CONFIG_BYTES_MAX, KEY_SLOT_BYTES_MAX, Listing, MANIFEST_BYTES_MAX, ObjectMeta, ObjectName, Original,
    RESERVE_MANIFESTS, Replaced, TEMPORARIES,
};
pub use prefetch::Prefetch;
pub use recorder::{NameKind, ObjectCalls, Recorder, StorageCalls};
pub use request::{Part, ReadRequest};
pub use simulated::{Damage, Failure, Fault, SimulatedDisk};
pub use simulated_remote::{SimulatedRemote, Trouble};
pub use traced::Traced;

use crate::ids::SeriesId;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// A place that holds objects. All methods may be called from several threads at once.
pub trait Storage: Send + Sync + fmt::Debug {
    /// The whole object, or [`StorageError::TooLarge`] before a byte of it is held in memory if it has more than
    /// `bytes_max`.
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError>;

    /// `length` bytes from `offset`; [`StorageError::TooShort`] if the object ends before.
    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError>;

    /// Reads as [`Storage::read_range`] does what will be asked for again, by this command or a later one: indexes of
    /// containers, and metadata. A cache keeps it.
    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.read_range(name, offset, length)
    }

    /// Reads one object or a part of one, by [`Storage::read`] or [`Storage::read_range`].
    fn read_part(&self, request: &ReadRequest) -> Result<Vec<u8>, StorageError> {
        match request.part {
            Part::Whole { bytes_max } => self.read(&request.name, bytes_max),
            Part::Range { offset, length } => self.read_range(&request.name, offset, length),
        }
    }

    /// Reads many objects or parts of objects, and gives each answer to `answer` with its request's place in
    /// `requests`: every request is answered once, in any order, as answers come. A failed read is an answer like
    /// others. Where `answer` breaks, nothing more is asked for and the call returns. `answer` runs in the caller's
    /// thread. Answers that wait for it are bounded in bytes.
    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        for (place, request) in requests.iter().enumerate() {
            if answer(place, self.read_part(request)).is_break() {
                return;
            }
        }
    }

    /// Returns the length of an object in bytes.
    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        // Nothing is read of an object that is longer than the limit.
        match self.read(name, 0) {
            Ok(bytes) => Ok(bytes.len() as u64),
            Err(StorageError::TooLarge { bytes, .. }) => Ok(bytes),
            Err(error) => Err(error),
        }
    }

    /// Writes a new object; visible and durable after the next successful [`Storage::barrier`]. The name must be new.
    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError>;

    /// Waits until every earlier `put` and `delete` is durable. After a failed barrier the storage refuses further
    /// writes ([`StorageError::Poisoned`]): what reached the disk is unknown.
    fn barrier(&self) -> Result<(), StorageError>;

    /// Writes a new object, whole, durable on return; [`StorageError::AlreadyExists`] if the name is taken.
    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError>;

    /// Creates an object and lists others, as [`Storage::create`] and [`Storage::list`] do, at the same time where that
    /// saves a round trip: the list may or may not have the object.
    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        (self.create(name, bytes), self.list(what))
    }

    /// Removes an object; fine if it is already gone.
    fn delete(&self, name: &ObjectName) -> Result<(), StorageError>;

    /// Removes objects, as [`Storage::delete`] removes each. All are tried; the first failure is returned.
    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        let failures: Vec<StorageError> = names.iter().filter_map(|name| self.delete(name).err()).collect();
        failures.into_iter().next().map_or(Ok(()), Err)
    }

    /// Makes an empty object and then removes another one, if it is there: a renewal and the one before. Visible on
    /// return, durable at some time or never. It stands apart from all other calls: its failure poisons nothing, and it
    /// is never told theirs.
    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.create(name, &[])?;
        before.map_or(Ok(()), |before| self.delete(before))
    }

    /// Names and sizes, sorted by name. Foreign files are passed over.
    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError>;

    /// Lists two kinds of objects, as [`Storage::list`] lists each, at the same time where that saves a round trip:
    /// neither list is older than the call.
    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        let [first, second] = what;
        Ok([self.list(first)?, self.list(second)?])
    }

    /// Lists the containers of a series, of both kinds.
    fn list_containers(&self, series: SeriesId) -> Result<Vec<ObjectMeta>, StorageError> {
        Ok(self.list_both(Listing::containers_of(series))?.concat())
    }

    /// Lists as [`Storage::list`] does, but only objects whose names come after this one. A place at a distance does
    /// not look at the others.
    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        let mut objects = self.list(what)?;
        objects.retain(|object| object.name > *after);
        Ok(objects)
    }

    /// Removes what interrupted puts and creates of this series left behind (temporary files), of manifests up to this
    /// number and of containers written under a lease up to it, and says how many there were. Only the writer of the
    /// manifest of that number calls this; an older one still at work then fails ([`StorageError::Swept`]), and a newer
    /// one is left alone.
    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError>;

    /// Returns the storage that this one wraps, if it wraps one: it answers what the wrapper leaves to these defaults.
    fn below(&self) -> Option<&dyn Storage> {
        None
    }

    /// Makes the next read of an object come from where it lies and not from this machine's memory, as far as that can
    /// be had. Only what is durable can be dropped: a barrier comes first. True if a cache of this program held some of
    /// it: what was read of it may have been the cache's fault.
    fn drop_cached(&self, name: &ObjectName) -> bool {
        self.below().is_some_and(|below| below.drop_cached(name))
    }

    /// Returns the capabilities of the place.
    fn capabilities(&self) -> Capabilities {
        self.below().map_or_else(Capabilities::default, Storage::capabilities)
    }

    /// Tells whether the objects of a series can be reached with the rights that this program has there. What cannot be
    /// reached is not listed either.
    fn reaches(&self, series: SeriesId) -> bool {
        self.below().is_none_or(|below| below.reaches(series))
    }

    /// Returns the place of the storage, for messages: a path or an address.
    fn location(&self) -> String {
        self.below().map_or_else(String::new, Storage::location)
    }

    /// The folder of this machine that holds the objects, by its canonical path, if there is one: nothing else is to be
    /// written there.
    fn folder(&self) -> Option<PathBuf> {
        self.below().and_then(Storage::folder)
    }
}

impl<T: Storage + ?Sized> Storage for Arc<T> {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        (**self).read(name, bytes_max)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        (**self).read_range(name, offset, length)
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        (**self).read_kept(name, offset, length)
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        (**self).read_many(requests, answer);
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        (**self).size_of(name)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        (**self).put(name, bytes)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        (**self).barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        (**self).create(name, bytes)
    }

    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        (**self).create_and_list(name, bytes, what)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        (**self).delete(name)
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        (**self).delete_many(names)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        (**self).renew(name, before)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        (**self).list(what)
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        (**self).list_both(what)
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        (**self).list_after(what, after)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        (**self).remove_unfinished(series, lease_last)
    }

    fn drop_cached(&self, name: &ObjectName) -> bool {
        (**self).drop_cached(name)
    }

    fn capabilities(&self) -> Capabilities {
        (**self).capabilities()
    }

    fn reaches(&self, series: SeriesId) -> bool {
        (**self).reaches(series)
    }

    fn location(&self) -> String {
        (**self).location()
    }

    fn folder(&self) -> Option<PathBuf> {
        (**self).folder()
    }
}

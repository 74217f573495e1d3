//! A storage that passes every call on and logs it with what it took, at level `debug`. Where nobody listens, a call
//! costs one comparison more.

use super::{Listing, ObjectMeta, ObjectName, ReadRequest, Storage, StorageError};
use crate::ids::SeriesId;
use std::fmt::{self, Debug};
use std::ops::ControlFlow;
use std::time::Instant;
use tracing::{Level, debug, enabled};

/// Logs the calls to a storage.
#[derive(Debug)]
pub struct Traced<S> {
    inner: S,
}

impl<S> Traced<S> {
    /// Wraps a storage.
    pub fn new(inner: S) -> Self {
        Self { inner }
    }
}

/// Does `call`, and logs its name, what it concerned, the bytes that moved, the time it took and how it failed.
fn logged<R>(
    what: &'static str,
    object: &dyn fmt::Display,
    call: impl FnOnce() -> Result<R, StorageError>,
    bytes_of: impl FnOnce(&R) -> u64,
) -> Result<R, StorageError> {
    if !enabled!(Level::DEBUG) {
        return call();
    }
    let began = Instant::now();
    let result = call();
    let milliseconds = milliseconds_since(began);
    match &result {
        Ok(done) => debug!(%object, bytes = bytes_of(done), milliseconds, "{what}"),
        Err(error) => debug!(%object, %error, milliseconds, "{what} failed"),
    }
    result
}

fn milliseconds_since(began: Instant) -> f64 {
    (began.elapsed().as_secs_f64() * 1e5).round() / 1e2
}

impl<S: Storage> Storage for Traced<S> {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        logged("read", name, || self.inner.read(name, bytes_max), |bytes| bytes.len() as u64)
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let object = format_args!("{name}@{offset}");
        logged("read range", &object, || self.inner.read_range(name, offset, length), |bytes| bytes.len() as u64)
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let object = format_args!("{name}@{offset}");
        logged("read kept", &object, || self.inner.read_kept(name, offset, length), |bytes| bytes.len() as u64)
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        let (mut answers, mut bytes) = (0u64, 0u64);
        let mut counted = |place: usize, result: Result<Vec<u8>, StorageError>| {
            answers += 1;
            bytes += result.as_ref().map_or(0, |read| read.len() as u64);
            if let (Err(error), Some(request)) = (&result, requests.get(place)) {
                debug!(object = %request.name, %error, "read failed");
            }
            answer(place, result)
        };
        let began = Instant::now();
        self.inner.read_many(requests, &mut counted);
        debug!(requests = requests.len(), answers, bytes, milliseconds = milliseconds_since(began), "read many");
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        logged("size", name, || self.inner.size_of(name), |_| 0)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        logged("put", name, || self.inner.put(name, bytes), |()| bytes.len() as u64)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        logged("barrier", &"", || self.inner.barrier(), |()| 0)
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        logged("create", name, || self.inner.create(name, bytes), |()| bytes.len() as u64)
    }

    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        let object = format_args!("{name}, list {what:?}");
        let mut listed = None;
        let both = || {
            let (created, found) = self.inner.create_and_list(name, bytes, what);
            listed = Some(found);
            created
        };
        let created = logged("create", &object, both, |()| bytes.len() as u64);
        (created, listed.unwrap_or_else(|| self.inner.list(what)))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        logged("delete", name, || self.inner.delete(name), |()| 0)
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        let objects = format_args!("{} objects", names.len());
        logged("delete many", &objects, || self.inner.delete_many(names), |()| 0)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        logged("renew", name, || self.inner.renew(name, before), |()| 0)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        let found = |objects: &Vec<ObjectMeta>| objects.iter().map(|object| object.bytes).sum();
        logged("list", &format_args!("{what:?}"), || self.inner.list(what), found)
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        let found = |lists: &[Vec<ObjectMeta>; 2]| lists.iter().flatten().map(|object| object.bytes).sum();
        logged("list", &format_args!("{:?} and {:?}", what[0], what[1]), || self.inner.list_both(what), found)
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        let found = |objects: &Vec<ObjectMeta>| objects.iter().map(|object| object.bytes).sum();
        logged("list", &format_args!("{what:?} after {after}"), || self.inner.list_after(what, after), found)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        logged("remove unfinished", &series, || self.inner.remove_unfinished(series, lease_last), |_| 0)
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&self.inner)
    }
}

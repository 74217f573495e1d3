//! What a backup wrote, read back before it is committed: each container must be, byte for byte, what was sealed.
//!
//! It finds what goes wrong between the sealing and the storage's answer: memory, a controller, a file system, a network. Where the storage
//! can, the bytes come from the disk and not from the system's memory ([`Storage::drop_cached`]); no program can tell what a
//! disk answers from its own.
//!
//! Cost: 40 bytes for each container, and reading and hashing what was written, by two threads.
//!
//! [`Storage::drop_cached`]: siltstone_store::storage::Storage::drop_cached

use crate::EngineError;
use crate::pack::ContainerSink;
use crate::parallel::{Pool, Ticket};
use siltstone_store::container::{CONTAINER_BYTES_MAX, SealedContainer};
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::sync::{Mutex, PoisonError};

/// Containers read at a time.
const READERS: usize = 2;

/// A sink that remembers what went through it.
pub(super) struct Written<'s> {
    sink: &'s dyn ContainerSink,
    containers: Mutex<Vec<(ContainerId, blake3::Hash)>>,
}

impl<'s> Written<'s> {
    pub(super) fn new(sink: &'s dyn ContainerSink) -> Self {
        Self { sink, containers: Mutex::default() }
    }

    /// Reads all of it back.
    ///
    /// # Errors
    /// [`StoreError::WrittenWrong`] of the first container that differs; what reading gives.
    pub(super) fn verify(self, repository: &Repository, series: SeriesId) -> Result<(), EngineError> {
        let containers = self.containers.into_inner().unwrap_or_else(PoisonError::into_inner);
        repository.storage().barrier().map_err(StoreError::from)?;
        if containers.is_empty() {
            return Ok(());
        }
        std::thread::scope(|scope| {
            let pool = Pool::start(scope, "verify", READERS, READERS, || Ok(()))?;
            let verify = |(id, hash): (ContainerId, blake3::Hash)| {
                let name = ObjectName::Container(series, id);
                pool.submit(move |()| verify_one(repository, &name, hash))
            };
            let tickets: Vec<_> = containers.into_iter().map(verify).collect();
            let mut results = tickets.into_iter().map(Ticket::wait);
            results.try_for_each(|result| result?)
        })
    }
}

fn verify_one(repository: &Repository, name: &ObjectName, hash: blake3::Hash) -> Result<(), EngineError> {
    repository.storage().drop_cached(name);
    let found = repository.storage().read(name, CONTAINER_BYTES_MAX).map_err(StoreError::from)?;
    if blake3::hash(&found) == hash {
        return Ok(());
    }
    Err(StoreError::WrittenWrong { object: name.to_string() }.into())
}

impl ContainerSink for Written<'_> {
    fn new_id(&self) -> ContainerId {
        self.sink.new_id()
    }

    fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        let hash = blake3::hash(&container.bytes);
        self.containers.lock().unwrap_or_else(PoisonError::into_inner).push((container.record.id, hash));
        self.sink.put(container)
    }
}

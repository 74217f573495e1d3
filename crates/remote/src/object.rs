//! A [`Storage`] over an object store, or over what [`crate::sftp`] makes look like one.
//!
//! **Safety.** Every write says that it must not replace (`If-None-Match: *`), and every lost answer is followed by a
//! look at the name: bytes that are ours say that the request was carried out. So a commit is never told as lost
//! that was made, nor as made that was not; where neither can be found out, the error says so
//! ([`StorageError::OutcomeUnknown`]). An object store's own retries are off: they would repeat such a write and then
//! meet their own object. Before its first commit a machine tests that the place refuses indeed.
//!
//! ```text
//! put      queued, then as create, in the background; bounded in number and bytes
//! create   PUT if absent -> done | taken, lost, failed -> look -> ours: done; other: taken; absent: again
//! barrier  waits for what is queued; the first failure is told, and then nothing more is written
//! read     GET, again after failures; a window of requests in flight that grows and is halved
//! delete   DELETE; many in one request where the place can
//! list     LIST by prefix and offset, page by page; after a failure from the last name on
//! ```
//!
//! **Cost.** One request a call, and four more before the first commit of a machine. Threads: two, whatever the
//! machine. Memory: [`queue::WRITE_BYTES_MAX`] for what is queued, [`READ_BYTES_MAX`] for answers of one `read_many`.

mod queue;
mod requests;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use crate::protocol::{Granted, Right};
use crate::retries::Retries;
use crate::served::ServerStore;
use crate::traffic::Traffic;
use crate::window::{REQUESTS_MAX, Window};
use bytes::Bytes;
use futures_util::future::join;
use object_store::ObjectStore;
use object_store::path::Path;
use queue::WriteQueue;
use requests::Requests;
use siltstone_store::SeriesId;
use siltstone_store::storage::{
    Capabilities, Latency, Listing, ObjectMeta, ObjectName, Part, ReadRequest, Storage, StorageError,
};
use std::fs;
use std::future::Future;
use std::io;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::{Builder, Runtime};

/// Threads of the runtime: for encryption of the connections, not for waiting.
const THREADS: usize = 2;
/// Bytes of answers of one `read_many` that are on their way or wait to be taken; one answer may be larger.
const READ_BYTES_MAX: u64 = 64 << 20;
/// Size that a whole object other than a container is taken for before it is read.
const SMALL_OBJECT_BYTES: u64 = 1 << 20;
/// Size that a whole container is taken for before it is read.
const CONTAINER_BYTES: u64 = 16 << 20;

/// A repository in an object store.
#[derive(Debug)]
pub struct ObjectStorage {
    requests: Arc<Requests>,
    queue: Arc<WriteQueue>,
    /// `None` only while it is dropped.
    runtime: Option<Runtime>,
    /// The place was seen to refuse a name that is taken.
    is_probed: Mutex<bool>,
    /// File that says that it was seen by this machine.
    probe_marker: Option<PathBuf>,
    deletes_in_batches: bool,
    /// Writes that were broken off leave temporary files.
    leaves_temporaries: bool,
    /// The place can run full.
    keeps_reserve: bool,
    /// Nothing is to be deleted but renewals, though the place may allow it.
    is_append_only: bool,
    /// The rights that a server has granted; without them the place says by refusals what may not be done.
    granted: Option<Granted>,
}

impl ObjectStorage {
    /// Keeps objects below `prefix` of a store, whose own retries are off. `location` is its address for messages.
    ///
    /// # Errors
    /// The system gives no threads, or the prefix is no path.
    pub fn new(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        location: &str,
        retries: Retries,
    ) -> Result<Self, StorageError> {
        Self::over(store, prefix, location, retries, &Traffic::default())
    }

    /// Keeps objects in a store as [`ObjectStorage::new`] does, whose bytes count as this traffic.
    ///
    /// # Errors
    /// As of [`ObjectStorage::new`].
    pub(crate) fn over(
        store: Arc<dyn ObjectStore>,
        prefix: &str,
        location: &str,
        retries: Retries,
        traffic: &Traffic,
    ) -> Result<Self, StorageError> {
        let unreachable = |source| StorageError::Unreachable { location: location.to_owned(), source };
        let prefix = Path::parse(prefix).map_err(|error| unreachable(io::Error::other(error)))?;
        let mut builder = Builder::new_multi_thread();
        let runtime =
            builder.worker_threads(THREADS).thread_name("remote").enable_all().build().map_err(unreachable)?;
        let (location, traffic) = (location.to_owned(), traffic.clone());
        let requests = Requests { store, prefix, location, retries, window: Window::new(), traffic };
        Ok(Self {
            requests: Arc::new(requests),
            queue: Arc::default(),
            runtime: Some(runtime),
            is_probed: Mutex::new(false),
            probe_marker: None,
            deletes_in_batches: false,
            leaves_temporaries: false,
            keeps_reserve: false,
            is_append_only: false,
            granted: None,
        })
    }

    /// Keeps objects on a server of this program, and asks it for the rights of the token. Such a server refuses a name
    /// that is taken, so it is not probed.
    ///
    /// # Errors
    /// The server cannot be reached, or does not know the token.
    pub(crate) fn of_server(
        server: ServerStore,
        location: &str,
        retries: Retries,
        traffic: &Traffic,
    ) -> Result<Self, StorageError> {
        let server = Arc::new(server);
        let store = Arc::<ServerStore>::clone(&server);
        let mut storage = Self::over(store, "", location, retries, traffic)?.with_batch_delete();
        let requests = Arc::clone(&storage.requests);
        let granted = storage.wait(async move { requests.rights(&server).await })?;
        storage.keeps_reserve = granted.keeps_reserve && granted.rights.contains(&Right::Put);
        storage.granted = Some(granted);
        storage.is_probed = Mutex::new(true);
        Ok(storage)
    }

    fn has_right(&self, right: Right) -> bool {
        self.granted.as_ref().is_none_or(|granted| granted.rights.contains(&right))
    }

    /// Returns this storage, which says that one request deletes many objects.
    #[must_use]
    pub fn with_batch_delete(mut self) -> Self {
        self.deletes_in_batches = true;
        self
    }

    /// Returns this storage, which sweeps away the temporary files that its store leaves below [`TEMPORARIES`] when a
    /// write is broken off.
    ///
    /// [`TEMPORARIES`]: siltstone_store::storage::TEMPORARIES
    #[must_use]
    pub fn with_temporaries(mut self) -> Self {
        self.leaves_temporaries = true;
        self
    }

    /// Returns this storage, which keeps a reserve, for its place is a disk that runs full.
    #[must_use]
    pub fn with_reserve(mut self) -> Self {
        self.keeps_reserve = true;
        self
    }

    /// Returns this storage, which says that nothing may be deleted there: its credentials do not allow it.
    #[must_use]
    pub fn with_append_only(mut self, is_append_only: bool) -> Self {
        self.is_append_only = is_append_only;
        self
    }

    /// Returns this storage, which remembers in this file that the place was probed: it is not again while the file
    /// names it.
    #[must_use]
    pub fn with_probe_marker(mut self, marker: PathBuf) -> Self {
        let is_probed = fs::read(&marker).is_ok_and(|place| place == self.requests.location.as_bytes());
        self.is_probed = Mutex::new(is_probed);
        self.probe_marker = Some(marker);
        self
    }

    /// Tests that the place refuses a name that is taken: not by an error it gives otherwise too, but by an object
    /// that it is asked to write twice. Four requests, once on each machine that has a marker, else once in a process.
    ///
    /// # Errors
    /// [`StorageError::ReplacesObjects`] if it does not refuse, [`StorageError::ListsLate`] if it does not list what it
    /// was given; those of writing and listing.
    pub fn probe(&self) -> Result<(), StorageError> {
        let mut is_probed = self.is_probed.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_probed {
            let requests = Arc::clone(&self.requests);
            self.wait(async move { requests.probe().await })?;
            *is_probed = true;
            if let Some(marker) = &self.probe_marker {
                // Without it the next process probes again.
                let _ = marker.parent().map(fs::create_dir_all);
                let _ = fs::write(marker, self.requests.location.as_bytes());
            }
        }
        Ok(())
    }

    /// Starts work on the runtime.
    fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(work);
        }
    }

    /// Does work on the runtime and waits for it. The caller may be any thread, one of another runtime too.
    fn wait<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StorageError>> + Send + 'static,
    ) -> Result<T, StorageError> {
        self.outcome(&self.begin(work))
    }

    /// Begins work on the runtime, whose outcome is waited for later.
    fn begin<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T, StorageError>> + Send + 'static,
    ) -> Receiver<Result<T, StorageError>> {
        let (sender, receiver) = sync_channel(1);
        self.spawn(async move {
            // The caller waits for it, or has gone.
            let _ = sender.send(work.await);
        });
        receiver
    }

    fn outcome<T>(&self, work: &Receiver<Result<T, StorageError>>) -> Result<T, StorageError> {
        work.recv().unwrap_or_else(|_| Err(self.requests.broken_off()))
    }
}

impl Drop for ObjectStorage {
    /// Writes under way are dropped: no barrier has vouched for them.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// The size that the answer to a request is taken for.
fn expected_bytes(request: &ReadRequest) -> u64 {
    let usual = if request.name.container().is_some() { CONTAINER_BYTES } else { SMALL_OBJECT_BYTES };
    match request.part {
        Part::Whole { bytes_max } => bytes_max.min(usual),
        Part::Range { length, .. } => length as u64,
    }
}

/// The place of a request, the bytes it was taken for, and its answer, if it has one.
type Sent = (usize, u64, Option<Result<Vec<u8>, StorageError>>);

/// An answer on its way. It is sent when it is dropped, so that work that is broken off is an answer, too.
struct Reply {
    sender: Sender<Sent>,
    place: usize,
    bytes: u64,
    result: Option<Result<Vec<u8>, StorageError>>,
}

impl Reply {
    fn send(mut self, result: Result<Vec<u8>, StorageError>) {
        self.result = Some(result);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        // Nobody takes it where the asker broke off.
        let _ = self.sender.send((self.place, self.bytes, self.result.take()));
    }
}

impl Storage for ObjectStorage {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.read_part(&ReadRequest::whole(*name, bytes_max))
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.read_part(&ReadRequest::range(*name, offset, length))
    }

    fn read_part(&self, request: &ReadRequest) -> Result<Vec<u8>, StorageError> {
        let (requests, request) = (Arc::clone(&self.requests), *request);
        self.wait(async move { requests.read(&request).await })
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        let (sender, answers) = channel();
        let (mut next, mut in_flight, mut bytes) = (0, 0, 0);
        loop {
            while let Some(request) = requests.get(next).copied() {
                let more = expected_bytes(&request);
                if in_flight > 0 && (in_flight >= self.requests.window.limit() || bytes + more > READ_BYTES_MAX) {
                    break;
                }
                let reply = Reply { sender: sender.clone(), place: next, bytes: more, result: None };
                let worker = Arc::clone(&self.requests);
                self.spawn(async move { reply.send(worker.read(&request).await) });
                (next, in_flight, bytes) = (next + 1, in_flight + 1, bytes + more);
            }
            if in_flight == 0 {
                return;
            }
            let Ok((place, less, result)) = answers.recv() else { return };
            (in_flight, bytes) = (in_flight - 1, bytes - less);
            let result = result.unwrap_or_else(|| Err(self.requests.broken_off()));
            if answer(place, result).is_break() {
                return;
            }
        }
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        let (requests, name) = (Arc::clone(&self.requests), *name);
        self.wait(async move { requests.size_of(&name).await })
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        let ticket = self.queue.begin(*name, bytes.len())?;
        let (requests, name, bytes) = (Arc::clone(&self.requests), *name, Bytes::copy_from_slice(bytes));
        self.spawn(async move { ticket.end(requests.create(&name, bytes).await) });
        Ok(())
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.queue.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.queue.wait_for(|under_way| under_way == name)?;
        if matches!(name, ObjectName::Manifest(..) | ObjectName::Config(_)) {
            self.probe()?;
        }
        let (requests, name, bytes) = (Arc::clone(&self.requests), *name, Bytes::copy_from_slice(bytes));
        self.wait(async move { requests.create(&name, bytes).await })
    }

    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        let requests = Arc::clone(&self.requests);
        let listed = self.begin(async move { requests.list(what, None).await });
        let created = self.create(name, bytes);
        (created, self.outcome(&listed))
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.queue.wait_for(|under_way| under_way == name)?;
        let (requests, name) = (Arc::clone(&self.requests), *name);
        self.wait(async move { requests.delete(&name).await })
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        self.queue.wait_for(|under_way| names.contains(under_way))?;
        let (requests, names) = (Arc::clone(&self.requests), names.to_vec());
        self.wait(async move { requests.delete_many(&names).await })
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        let requests = Arc::clone(&self.requests);
        self.wait(async move { requests.list(what, None).await })
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        let requests = Arc::clone(&self.requests);
        let [first, second] = what;
        self.wait(async move {
            let lists = join(requests.list(first, None), requests.list(second, None)).await;
            Ok([lists.0?, lists.1?])
        })
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        let (requests, after) = (Arc::clone(&self.requests), *after);
        self.wait(async move { requests.list(what, Some(after)).await })
    }

    /// Returns 0 for an object store proper, which keeps nothing of a write that was not finished.
    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        if !self.leaves_temporaries {
            return Ok(0);
        }
        let requests = Arc::clone(&self.requests);
        self.wait(async move { requests.remove_unfinished(series, lease_last).await })
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
            .with_reserve(self.keeps_reserve)
            .with_native_create(!self.leaves_temporaries)
            .with_batch_delete(self.deletes_in_batches)
            .with_requests_in_flight(REQUESTS_MAX)
            .with_latency(Latency::Network)
            .with_deletes(!self.is_append_only && self.has_right(Right::Forget))
            .with_amends(self.has_right(Right::Admin))
    }

    fn reaches(&self, series: SeriesId) -> bool {
        self.granted.as_ref().is_none_or(|granted| granted.series.holds(series))
    }

    fn location(&self) -> String {
        self.requests.location.clone()
    }
}

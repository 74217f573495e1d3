//! Single requests to an object store, each with its retries.

use super::Fault;
use crate::protocol::Granted;
use crate::retries::{Retries, Tries};
use crate::served::ServerStore;
use crate::traffic::Traffic;
use crate::window::Window;
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, GetResult, ObjectStore, ObjectStoreExt, PutMode, PutOptions};
use siltstone_store::SeriesId;
use siltstone_store::storage::{Listing, ObjectMeta, ObjectName, Part, ReadRequest, StorageError, TEMPORARIES};
use std::collections::BTreeSet;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

/// Slowest upload that is waited for, in bytes per second.
const UPLOAD_RATE_MIN: usize = 32 << 10;
/// The folder of probes; listings pass it over.
const PROBES: &str = "probe";
/// The content of a probe.
const PROBE: &[u8] = b"silt";

/// A store, and how it is asked.
#[derive(Debug)]
pub(super) struct Requests {
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) prefix: Path,
    pub(super) location: String,
    pub(super) retries: Retries,
    pub(super) window: Window,
    pub(super) traffic: Traffic,
}

/// The failure of one try: one that may pass, or an answer.
enum Failed {
    Fault(Fault),
    Final(StorageError),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// The result of looking at a name that was to be written.
enum Look {
    Ours,
    Others,
    Absent,
}

impl Requests {
    /// Reads an object or a part of one.
    pub(super) async fn read(&self, request: &ReadRequest) -> Result<Vec<u8>, StorageError> {
        let mut tries = Tries::new(self.retries);
        loop {
            let seat = self.window.enter().await;
            let fault = match self.read_once(request).await {
                Ok(bytes) => {
                    seat.answered();
                    return Ok(bytes);
                }
                Err(Failed::Final(error)) => return Err(error),
                Err(Failed::Fault(fault)) => fault,
            };
            if fault.is_throttling() {
                seat.throttled();
            } else {
                drop(seat);
            }
            if !fault.is_passing() || !tries.again().await {
                return Err(self.of_object("read", &request.name, &fault, tries.made()));
            }
        }
    }

    async fn read_once(&self, request: &ReadRequest) -> Result<Vec<u8>, Failed> {
        let path = self.path(&request.name);
        match request.part {
            Part::Whole { bytes_max } => {
                let found = self.answer(self.store.get_opts(&path, GetOptions::default())).await?;
                let bytes = found.meta.size;
                if bytes > bytes_max {
                    return Err(Failed::Final(StorageError::TooLarge { name: request.name, bytes, limit: bytes_max }));
                }
                Ok(self.body(found, bytes).await?)
            }
            Part::Range { offset, length } => self.read_range(&path, &request.name, offset, length).await,
        }
    }

    /// Reads a range. Stores answer a range beyond the end by an error or by fewer bytes; the size says which it is.
    async fn read_range(&self, path: &Path, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, Failed> {
        let expected = offset.saturating_add(length as u64);
        let too_short = |found| Failed::Final(StorageError::TooShort { name: *name, expected, found });
        if length == 0 || expected > name.bytes_max() {
            let found = self.answer(self.store.head(path)).await?.size;
            if expected > found {
                return Err(too_short(found));
            }
            if length == 0 {
                return Ok(Vec::new());
            }
        }
        let options = GetOptions { range: Some(GetRange::Bounded(offset..expected)), ..GetOptions::default() };
        match self.answer(self.store.get_opts(path, options)).await {
            Ok(found) if found.meta.size < expected => Err(too_short(found.meta.size)),
            Ok(found) => Ok(self.body(found, length as u64).await?),
            Err(fault @ (Fault::Unreadable(_) | Fault::Wrong(_) | Fault::Lost(_))) => {
                match self.answer(self.store.head(path)).await {
                    Ok(object) if object.size < expected => Err(too_short(object.size)),
                    _ => Err(fault.into()),
                }
            }
            Err(fault) => Err(fault.into()),
        }
    }

    /// The whole body of an answer, which must have this length.
    async fn body(&self, found: GetResult, length: u64) -> Result<Vec<u8>, Fault> {
        let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
        let mut stream = found.into_stream();
        while let Some(chunk) = self.in_time(stream.next()).await? {
            bytes.extend_from_slice(&chunk.map_err(|error| Fault::from(&error))?);
            if bytes.len() as u64 > length {
                break;
            }
        }
        if bytes.len() as u64 == length {
            Ok(bytes)
        } else {
            Err(Fault::Lost(format!("{} of {length} bytes came", bytes.len())))
        }
    }

    /// Asks a server for the rights that its token has.
    pub(super) async fn rights(&self, server: &ServerStore) -> Result<Granted, StorageError> {
        let mut tries = Tries::new(self.retries);
        loop {
            match self.answer(server.rights()).await {
                Ok(granted) => return Ok(granted),
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => return Err(self.of_place("open", "the repository", &fault, tries.made())),
            }
        }
    }

    /// Returns the length of an object.
    pub(super) async fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        let path = self.path(name);
        let mut tries = Tries::new(self.retries);
        loop {
            match self.answer(self.store.head(&path)).await {
                Ok(object) => return Ok(object.size),
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => return Err(self.of_object("look at", name, &fault, tries.made())),
            }
        }
    }

    /// Writes a new object, and finds out what came of it where the answer does not say.
    pub(super) async fn create(&self, name: &ObjectName, bytes: Bytes) -> Result<(), StorageError> {
        let path = self.path(name);
        let mut tries = Tries::new(self.retries);
        // A try may have been carried out without our knowing.
        let mut is_unsure = false;
        loop {
            let fault = match self.put_once(&path, &bytes).await {
                Ok(()) => return Ok(()),
                Err(fault) => fault,
            };
            let may_be_ours = is_unsure || !bytes.is_empty();
            is_unsure |= fault.is_throttling();
            let last = match fault {
                Fault::Unsent(_) => fault,
                Fault::Taken | Fault::Busy(_) | Fault::Lost(_) => match self.look(&path, &bytes).await {
                    // An empty object says nothing about who made it.
                    Ok(Look::Ours) if may_be_ours || fault != Fault::Taken => return Ok(()),
                    Ok(Look::Ours | Look::Others) => return Err(StorageError::AlreadyExists { name: *name }),
                    Ok(Look::Absent) => fault,
                    Err(looked) if looked.is_passing() => {
                        is_unsure = true;
                        looked
                    }
                    Err(looked) => return Err(self.of_write(name, &looked, true, tries.made() + 1)),
                },
                Fault::Absent
                | Fault::NoBucket
                | Fault::Denied(_)
                | Fault::Unreadable(_)
                | Fault::Wrong(_)
                | Fault::Full(_)
                | Fault::Swept => {
                    return Err(self.of_write(name, &fault, is_unsure, tries.made() + 1));
                }
            };
            if !tries.again().await {
                return Err(self.of_write(name, &last, is_unsure, tries.made()));
            }
        }
    }

    async fn put_once(&self, path: &Path, bytes: &Bytes) -> Result<(), Fault> {
        let options = PutOptions { mode: PutMode::Create, ..PutOptions::default() };
        let put = self.store.put_opts(path, bytes.clone().into(), options);
        let patience = self.retries.silence + Duration::from_secs((bytes.len() / UPLOAD_RATE_MIN) as u64);
        self.within(patience, put).await?.map(drop).map_err(|error| Fault::from(&error))
    }

    /// Compares what has a name with the bytes that were to be written.
    async fn look(&self, path: &Path, bytes: &Bytes) -> Result<Look, Fault> {
        let found = match self.answer(self.store.get_opts(path, GetOptions::default())).await {
            Err(Fault::Absent) => return Ok(Look::Absent),
            found => found?,
        };
        if found.meta.size != bytes.len() as u64 {
            return Ok(Look::Others);
        }
        let is_ours = self.body(found, bytes.len() as u64).await? == *bytes;
        Ok(if is_ours { Look::Ours } else { Look::Others })
    }

    /// Writes an object again and again, and tests that it is refused once it is there, and listed. One refusal may be
    /// a conflict that passes, so it takes two; and where nothing is there after these, both were.
    pub(super) async fn probe(&self) -> Result<(), StorageError> {
        let random = getrandom::u64().map_err(|error| self.io("probe", io::Error::other(error.to_string())))?;
        let path = self.prefix.clone().join(PROBES).join(format!("{random:016x}"));
        let mut tries = Tries::new(self.retries);
        let failed = |fault: &Fault, tries: &Tries| self.of_place("write", "a probe", fault, tries.made());
        let (mut writes, mut refusals) = (0, 0);
        let is_listed = loop {
            match self.put_once(&path, &Bytes::from_static(PROBE)).await {
                Ok(()) => writes += 1,
                Err(Fault::Taken) => refusals += 1,
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => return Err(failed(&fault, &tries)),
            }
            if writes == 2 {
                break false;
            }
            if refusals == 2 {
                if self.paths_below(PROBES, "a probe").await?.contains(&path) {
                    break true;
                }
                match self.answer(self.store.head(&path)).await {
                    Ok(_) => break false,
                    Err(fault) if fault == Fault::Absent || fault.is_passing() => {}
                    Err(fault) => return Err(failed(&fault, &tries)),
                }
                if !tries.again().await {
                    let fault = Fault::Busy("it answers each write with a conflict".to_owned());
                    return Err(failed(&fault, &tries));
                }
                refusals = 0;
            }
        };
        // A client without the right to delete leaves it.
        let _ = self.answer(self.store.delete(&path)).await;
        let location = self.location.clone();
        match (refusals, is_listed) {
            (2, true) => Ok(()),
            (2, false) => Err(StorageError::ListsLate { location }),
            _ => Err(StorageError::ReplacesObjects { location }),
        }
    }

    /// Removes an object.
    pub(super) async fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.delete_path(&self.path(name), &name.to_string()).await
    }

    async fn delete_path(&self, path: &Path, shown: &str) -> Result<(), StorageError> {
        let mut tries = Tries::new(self.retries);
        loop {
            match self.answer(self.store.delete(path)).await {
                Ok(()) | Err(Fault::Absent) => return Ok(()),
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => return Err(self.of_place("delete", shown, &fault, tries.made())),
            }
        }
    }

    /// Removes objects, in batches where the store has such requests. Those of which no answer came are tried again.
    pub(super) async fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        let mut left: BTreeSet<Path> = names.iter().map(|name| self.path(name)).collect();
        let mut tries = Tries::new(self.retries);
        while !left.is_empty() {
            match self.delete_batch(&mut left).await {
                Ok(()) => break,
                // Some are gone already; not every store says which.
                Err(Fault::Absent) => {
                    for path in std::mem::take(&mut left) {
                        self.delete_path(&path, path.as_ref()).await?;
                    }
                }
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => {
                    return Err(self.of_place("delete", &format!("{} objects", left.len()), &fault, tries.made()));
                }
            }
        }
        Ok(())
    }

    /// Asks once to remove these objects and takes out those that are removed; the last failure is returned.
    async fn delete_batch(&self, left: &mut BTreeSet<Path>) -> Result<(), Fault> {
        let paths: Vec<_> = left.iter().cloned().map(Ok).collect();
        let mut deleted = self.store.delete_stream(stream::iter(paths).boxed());
        let mut result = Ok(());
        while let Some(answer) = self.in_time(deleted.next()).await? {
            match answer {
                Ok(path) => drop(left.remove(&path)),
                Err(error) => result = Err(Fault::from(&error)),
            }
        }
        result
    }

    /// Removes the temporary files of a series and its leases up to this one, as far as the store shows them.
    pub(super) async fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        let mut removed = 0;
        for path in self.paths_below(TEMPORARIES, "temporary files").await? {
            let name = path.filename().and_then(ObjectName::of_temporary);
            if name.is_some_and(|name| name.is_of(series, lease_last)) {
                self.delete_path(&path, path.as_ref()).await?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Lists the paths in a folder. `shown` says for messages what lies there.
    async fn paths_below(&self, folder: &str, shown: &str) -> Result<Vec<Path>, StorageError> {
        let folder = self.below(folder);
        let mut tries = Tries::new(self.retries);
        loop {
            let listed = self.store.list(Some(&folder)).map_ok(|file| file.location).try_collect();
            match self.answer(listed).await {
                Ok(paths) => return Ok(paths),
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => return Err(self.of_place("list", shown, &fault, tries.made())),
            }
        }
    }

    /// Lists objects, those after a name if one is given; after a failure, from the last one on.
    pub(super) async fn list(&self, what: Listing, after: Option<ObjectName>) -> Result<Vec<ObjectMeta>, StorageError> {
        let prefix = self.below(&what.folder());
        // Names in one folder have the order of their texts; names of several kinds have not.
        let bound = after.filter(|after| what != Listing::All && what.holds(after));
        let mut last = bound.map(|name| self.path(&name));
        let (mut objects, mut tries) = (Vec::new(), Tries::new(self.retries));
        loop {
            match self.list_once(&prefix, &mut last, &mut objects).await {
                Ok(()) => break,
                Err(fault) if fault.is_passing() && tries.again().await => {}
                Err(fault) => {
                    return Err(self.of_place("list", &format!("objects in {prefix}"), &fault, tries.made()));
                }
            }
        }
        objects.retain(|object| what.holds(&object.name) && after.is_none_or(|after| object.name > after));
        objects.sort_unstable();
        // Not every place honours an offset: what it lists again after a failure is the same object.
        objects.dedup_by_key(|object| object.name);
        Ok(objects)
    }

    async fn list_once(
        &self,
        prefix: &Path,
        last: &mut Option<Path>,
        objects: &mut Vec<ObjectMeta>,
    ) -> Result<(), Fault> {
        let mut found = match last.as_ref() {
            Some(last) => self.store.list_with_offset(Some(prefix), last),
            None => self.store.list(Some(prefix)),
        };
        while let Some(object) = self.in_time(found.next()).await? {
            let object = object.map_err(|error| Fault::from(&error))?;
            if let Some(name) = self.name_of(&object.location) {
                objects.push(ObjectMeta { name, bytes: object.size });
            }
            *last = Some(object.location);
        }
        Ok(())
    }

    fn path(&self, name: &ObjectName) -> Path {
        self.below(&name.to_string())
    }

    fn below(&self, parts: &str) -> Path {
        parts.split('/').filter(|part| !part.is_empty()).fold(self.prefix.clone(), Path::join)
    }

    /// The object at a path; `None` for a foreign one.
    fn name_of(&self, path: &Path) -> Option<ObjectName> {
        let parts: Vec<_> = path.prefix_match(&self.prefix)?.collect();
        let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
        ObjectName::from_text(&parts.join("/"))
    }

    /// Waits for an answer, or for as long as silence is borne.
    async fn answer<T>(&self, answer: impl Future<Output = object_store::Result<T>>) -> Result<T, Fault> {
        self.in_time(answer).await?.map_err(|error| Fault::from(&error))
    }

    async fn in_time<T>(&self, work: impl Future<Output = T>) -> Result<T, Fault> {
        self.within(self.retries.silence, work).await
    }

    /// Waits for this long, and on as long as anything moves within a limit, for which this may wait.
    async fn within<T>(&self, patience: Duration, work: impl Future<Output = T>) -> Result<T, Fault> {
        let mut work = pin!(work);
        loop {
            let limited = self.traffic.pieces_limited();
            match tokio::time::timeout(patience, work.as_mut()).await {
                Ok(done) => return Ok(done),
                Err(_) if self.traffic.pieces_limited() == limited => return Err(silence()),
                Err(_) => {}
            }
        }
    }

    fn of_object(&self, operation: &'static str, name: &ObjectName, fault: &Fault, tries: u32) -> StorageError {
        match fault {
            Fault::Absent => StorageError::NotFound { name: *name },
            Fault::Taken => StorageError::AlreadyExists { name: *name },
            Fault::Unreadable(reason) => {
                StorageError::Unreadable { name: *name, source: io::Error::other(reason.clone()) }
            }
            fault => self.of_place(operation, &name.to_string(), fault, tries),
        }
    }

    fn of_write(&self, name: &ObjectName, fault: &Fault, is_unsure: bool, tries: u32) -> StorageError {
        if is_unsure {
            return StorageError::OutcomeUnknown {
                name: *name,
                location: self.location.clone(),
                reason: fault.reason(),
            };
        }
        match fault {
            Fault::Swept => StorageError::Swept { name: *name },
            fault => self.of_place("write", &name.to_string(), fault, tries),
        }
    }

    fn of_place(&self, operation: &'static str, name: &str, fault: &Fault, tries: u32) -> StorageError {
        let (name, location, reason) = (name.to_owned(), self.location.clone(), fault.reason());
        match fault {
            Fault::NoBucket => StorageError::NoBucket { location },
            Fault::Full(_) => StorageError::Full { name, source: io::Error::new(io::ErrorKind::StorageFull, reason) },
            Fault::Denied(_) => StorageError::Refused { operation, name, location, reason },
            Fault::Unsent(_) | Fault::Busy(_) | Fault::Lost(_) | Fault::Taken => {
                StorageError::Unavailable { operation, name, location, tries, reason }
            }
            Fault::Absent | Fault::Unreadable(_) | Fault::Wrong(_) | Fault::Swept => {
                StorageError::Io { operation, name: format!("{name} at {location}"), source: io::Error::other(reason) }
            }
        }
    }

    /// The error of work that ended without a result.
    pub(super) fn broken_off(&self) -> StorageError {
        self.io("ask", io::Error::other("the work was broken off"))
    }

    fn io(&self, operation: &'static str, source: io::Error) -> StorageError {
        StorageError::Io { operation, name: self.location.clone(), source }
    }
}

fn silence() -> Fault {
    Fault::Lost("no answer came in time".to_owned())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::traffic::Limits;
    use object_store::memory::InMemory;
    use std::task::Poll;

    /// Waits, with the least patience, for work that moves a piece and is not done five times.
    fn patience_lasts(limits: Limits) -> bool {
        let (traffic, mut polls) = (Traffic::new(limits), 0);
        let sent = Arc::clone(&traffic.sent);
        let work = std::future::poll_fn(move |_| {
            polls += 1;
            sent.admit(1);
            if polls > 5 { Poll::Ready(()) } else { Poll::Pending }
        });
        let (store, prefix, location) = (Arc::new(InMemory::new()), Path::default(), String::new());
        let requests =
            Requests { store, prefix, location, retries: Retries::default(), window: Window::new(), traffic };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        runtime.block_on(requests.within(Duration::from_millis(1), work)).is_ok()
    }

    #[test]
    fn silence_is_borne_while_anything_moves_within_a_limit() {
        assert!(patience_lasts(Limits { upload: Some(u64::MAX), download: None }));
        assert!(!patience_lasts(Limits::default()));
    }
}

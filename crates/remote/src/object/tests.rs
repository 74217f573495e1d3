//! A store with scripted trouble, at each request of a small history: what was acknowledged is there, what was refused
//! is not ours, and what is unknown is said to be unknown.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::service::Refusal;
use async_trait::async_trait;
use futures_util::stream::{self, BoxStream, StreamExt};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::memory::InMemory;
use object_store::{
    CopyOptions, Error, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, PutMode,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use siltstone_store::storage::conformance::{SERIES, container, manifest};
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Trouble with one request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Trouble {
    /// The place answers with this status and does nothing.
    Status(u16),
    /// The place does it, and the connection breaks before its answer.
    AnswerLost,
    /// The place does it, and never answers.
    Silence,
    /// A write is answered as if another one were under way, and not done.
    Conflict,
    /// A read is answered with success and a byte too few.
    ShortBody,
    /// No connection is made.
    Unsent,
}

const PASSING: [Trouble; 8] = [
    Trouble::Status(503),
    Trouble::Status(429),
    Trouble::Status(500),
    Trouble::AnswerLost,
    Trouble::Silence,
    Trouble::Conflict,
    Trouble::ShortBody,
    Trouble::Unsent,
];

/// A store in memory that meets trouble from one request on, for some requests.
#[derive(Debug)]
struct Troubled {
    inner: Arc<InMemory>,
    trouble: Trouble,
    first: u64,
    requests: u64,
    made: AtomicU64,
    ignores_condition: bool,
    lists_late: bool,
}

impl Troubled {
    fn new(trouble: Trouble, first: u64, requests: u64) -> Arc<Self> {
        let (inner, made) = (Arc::new(InMemory::new()), AtomicU64::new(0));
        Arc::new(Self { inner, trouble, first, requests, made, ignores_condition: false, lists_late: false })
    }

    /// Counts a request and says which trouble it meets.
    fn next(&self) -> Option<Trouble> {
        let number = self.made.fetch_add(1, Ordering::Relaxed);
        (number >= self.first && number - self.first < self.requests).then_some(self.trouble)
    }

    async fn with_trouble<T>(&self, work: impl Future<Output = StoreResult<T>>) -> StoreResult<T> {
        match self.next() {
            None | Some(Trouble::ShortBody | Trouble::Conflict) => work.await,
            Some(Trouble::Status(status)) => Err(refused(status)),
            Some(Trouble::Unsent) => Err(failed(HttpErrorKind::Connect, std::io::Error::other("no route"))),
            Some(Trouble::AnswerLost) => {
                let _ = work.await;
                Err(failed(HttpErrorKind::Interrupted, std::io::Error::other("reset")))
            }
            Some(Trouble::Silence) => {
                let _ = work.await;
                std::future::pending().await
            }
        }
    }
}

fn refused(status: u16) -> Error {
    failed(HttpErrorKind::Unknown, Refusal { status, text: "scripted".to_owned() })
}

fn failed(kind: HttpErrorKind, source: impl std::error::Error + Send + Sync + 'static) -> Error {
    Error::Generic { store: "scripted", source: Box::new(HttpError::new(kind, source)) }
}

impl fmt::Display for Troubled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a troubled store")
    }
}

#[async_trait]
impl ObjectStore for Troubled {
    async fn put_opts(&self, path: &Path, payload: PutPayload, mut options: PutOptions) -> StoreResult<PutResult> {
        if self.trouble == Trouble::Conflict && self.next().is_some() {
            return Err(Error::AlreadyExists { path: path.to_string(), source: "another write is under way".into() });
        }
        assert_eq!(options.mode, PutMode::Create, "no write may replace");
        if self.ignores_condition {
            options.mode = PutMode::Overwrite;
        }
        if self.trouble == Trouble::Conflict {
            return self.inner.put_opts(path, payload, options).await;
        }
        self.with_trouble(self.inner.put_opts(path, payload, options)).await
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> StoreResult<Box<dyn MultipartUpload>> {
        unreachable!("objects are written whole")
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> StoreResult<GetResult> {
        if self.trouble != Trouble::ShortBody {
            return self.with_trouble(self.inner.get_opts(path, options)).await;
        }
        let is_short = self.next().is_some();
        let mut found = self.inner.get_opts(path, options).await?;
        if is_short && !found.range.is_empty() {
            let (meta, range) = (found.meta.clone(), found.range.clone());
            let (attributes, extensions) = (found.attributes.clone(), found.extensions.clone());
            let bytes = found.bytes().await?;
            let payload = GetResultPayload::Stream(stream::iter([Ok(bytes.slice(1..))]).boxed());
            found = GetResult { payload, meta, range, attributes, extensions };
        }
        Ok(found)
    }

    fn delete_stream(&self, paths: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        match self.next() {
            Some(Trouble::Status(status)) => stream::iter([Err(refused(status))]).boxed(),
            Some(Trouble::Unsent) => {
                stream::iter([Err(failed(HttpErrorKind::Connect, std::io::Error::other("no route")))]).boxed()
            }
            Some(Trouble::AnswerLost) => {
                let lost = |_| Err(failed(HttpErrorKind::Interrupted, std::io::Error::other("reset")));
                self.inner.delete_stream(paths).map(lost).boxed()
            }
            Some(Trouble::Silence) => stream::pending().boxed(),
            None | Some(Trouble::Conflict | Trouble::ShortBody) => self.inner.delete_stream(paths),
        }
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<object_store::ObjectMeta>> {
        let listed = if self.lists_late { stream::empty().boxed() } else { self.inner.list(prefix) };
        match self.next() {
            // The first page comes, the second does not.
            Some(Trouble::Status(status)) => listed.take(1).chain(stream::iter([Err(refused(status))])).boxed(),
            Some(Trouble::Unsent | Trouble::AnswerLost) => {
                stream::iter([Err(failed(HttpErrorKind::Connect, std::io::Error::other("no route")))]).boxed()
            }
            Some(Trouble::Silence) => listed.take(1).chain(stream::pending()).boxed(),
            None | Some(Trouble::Conflict | Trouble::ShortBody) => listed,
        }
    }

    /// Lists from the beginning, as some places do whatever the offset.
    fn list_with_offset(
        &self,
        prefix: Option<&Path>,
        _: &Path,
    ) -> BoxStream<'static, StoreResult<object_store::ObjectMeta>> {
        self.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> StoreResult<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> StoreResult<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

fn storage(store: Arc<Troubled>) -> ObjectStorage {
    let retries = Retries::default().with_tries(6, Duration::ZERO).with_silence(Duration::from_millis(20));
    ObjectStorage::new(store, "prefix", "scripted:", retries).unwrap()
}

/// The objects of a store, looked at without trouble.
fn found(store: &Arc<Troubled>) -> ObjectStorage {
    let inner = Arc::clone(&store.inner);
    ObjectStorage::new(inner, "prefix", "as it is:", Retries::default()).unwrap()
}

/// A small history of a series: containers, a commit, reading, deleting, another commit. It ends at the first failure.
fn history(storage: &ObjectStorage) -> Result<(), StorageError> {
    for serial in 0..3 {
        storage.put(&container(serial), &[7; 100])?;
        storage.barrier()?;
    }
    storage.create(&manifest(1), b"first")?;
    assert_eq!(storage.read(&container(0), 100)?, [7; 100]);
    assert_eq!(storage.read_range(&container(1), 10, 20)?, [7; 20]);
    assert_eq!(storage.size_of(&container(2))?, 100);
    let requests = [ReadRequest::whole(container(0), 100), ReadRequest::range(manifest(1), 1, 3)];
    let mut answers = [const { None }; 2];
    storage.read_many(&requests, &mut |place, answer| {
        answers[place] = Some(answer);
        ControlFlow::Continue(())
    });
    let [whole, range] = answers.map(Option::unwrap);
    assert_eq!((whole?, range?), (vec![7; 100], b"irs".to_vec()));
    assert_eq!(storage.list(Listing::containers_of(SERIES)[0])?.len(), 3);
    storage.create(&manifest(2), b"second")?;
    storage.delete(&container(0))?;
    storage.delete_many(&[container(1), manifest(1)])?;
    assert_eq!(storage.list(Listing::All)?.len(), 2);
    Ok(())
}

/// Requests of the history where nothing goes wrong.
fn requests() -> u64 {
    let store = Troubled::new(Trouble::Unsent, 0, 0);
    history(&storage(Arc::clone(&store))).unwrap();
    store.made.load(Ordering::Relaxed)
}

#[test]
fn the_history_costs_one_request_a_call_and_five_for_the_probe() {
    assert_eq!(requests(), 3 + (5 + 1) + 3 + 2 + 1 + 1 + 2 + 1);
}

#[test]
fn a_machine_with_a_marker_probes_a_place_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Troubled::new(Trouble::Unsent, 0, 0);
    let commit = |sequence: u64, prefix: &str| {
        let before = store.made.load(Ordering::Relaxed);
        let location = format!("memory:{prefix}");
        let place =
            ObjectStorage::new(Arc::clone(&store) as Arc<dyn ObjectStore>, prefix, &location, Retries::default());
        place.unwrap().with_probe_marker(folder.path().join("probed/place")).create(&manifest(sequence), b"x").unwrap();
        store.made.load(Ordering::Relaxed) - before
    };
    assert_eq!([commit(1, "p"), commit(2, "p"), commit(1, "q")], [6, 1, 6]);
}

#[test]
fn passing_trouble_at_any_request_changes_nothing() {
    for first in 0..requests() {
        for (trouble, length) in PASSING.into_iter().flat_map(|trouble| [(trouble, 1), (trouble, 3)]) {
            let store = Troubled::new(trouble, first, length);
            history(&storage(Arc::clone(&store))).unwrap_or_else(|error| panic!("{trouble:?} at {first}: {error:?}"));
            let found = found(&store);
            let names: Vec<ObjectName> = found.list(Listing::All).unwrap().iter().map(|object| object.name).collect();
            assert_eq!(names, [manifest(2), container(2)], "{trouble:?} at {first}");
            assert_eq!(found.read(&manifest(2), 100).unwrap(), b"second");
        }
    }
}

/// The story: a lost answer was told as "another writer took over: nothing of this run was committed", although it
/// was.
#[test]
fn lasting_trouble_is_an_error_that_is_true() {
    for first in 0..requests() {
        for trouble in PASSING {
            let store = Troubled::new(trouble, first, u64::MAX);
            let storage = storage(Arc::clone(&store));
            let created = match storage.create(&manifest(1), b"first") {
                Err(error) => Err(error),
                Ok(()) => storage.create(&manifest(2), b"second"),
            };
            let found = found(&store);
            let is_there = |name, bytes: &[u8]| found.read(&name, 100).is_ok_and(|there| there == bytes);
            match created {
                Ok(()) => assert!(is_there(manifest(1), b"first") && is_there(manifest(2), b"second")),
                Err(StorageError::OutcomeUnknown { name, location, .. }) => {
                    assert!(location == "scripted:" && (name == manifest(1) || name == manifest(2)));
                }
                // Nothing else may be said of what might have been written.
                Err(StorageError::Unavailable { name, .. }) => {
                    assert!(name == "a probe" || !(is_there(manifest(1), b"first") && name == manifest(1).to_string()));
                    assert!(!is_there(manifest(2), b"second"));
                }
                Err(error) => panic!("{trouble:?} at {first}: {error:?}"),
            }
        }
    }
}

#[test]
fn the_object_of_another_writer_is_never_taken_for_ours() {
    for trouble in PASSING {
        for first in 0..4 {
            let store = Troubled::new(trouble, first, 1);
            let other = found(&store);
            other.create(&manifest(1), b"theirs").unwrap();
            let error = storage(Arc::clone(&store)).create(&manifest(1), b"ours...").unwrap_err();
            assert!(error.is_already_exists(), "{trouble:?} at {first}: {error:?}");
            assert_eq!(other.read(&manifest(1), 100).unwrap(), b"theirs");
        }
    }
}

#[test]
fn a_store_that_ignores_the_condition_is_found_out_before_the_first_commit() {
    for trouble in PASSING {
        for first in 0..3 {
            let (inner, made) = (Arc::new(InMemory::new()), AtomicU64::new(0));
            let store =
                Troubled { inner, trouble, first, requests: 1, made, ignores_condition: true, lists_late: false };
            let store = Arc::new(store);
            let error = storage(Arc::clone(&store)).create(&manifest(1), b"x").unwrap_err();
            assert!(matches!(error, StorageError::ReplacesObjects { .. }), "{trouble:?} at {first}: {error:?}");
            assert_eq!(found(&store).list(Listing::All).unwrap(), []);
        }
    }
}

/// Loans need it: a lender deletes what no loan that it lists has.
#[test]
fn a_store_that_lists_late_is_found_out_before_the_first_commit() {
    let (inner, made) = (Arc::new(InMemory::new()), AtomicU64::new(0));
    let (trouble, first, requests) = (Trouble::Unsent, 0, 0);
    let store =
        Arc::new(Troubled { inner, trouble, first, requests, made, ignores_condition: false, lists_late: true });
    let error = storage(Arc::clone(&store)).create(&manifest(1), b"x").unwrap_err();
    assert!(matches!(error, StorageError::ListsLate { .. }), "{error:?}");
}

#[test]
fn a_failed_put_is_told_once_and_then_nothing_is_written() {
    let store = Troubled::new(Trouble::Status(403), 0, u64::MAX);
    let storage = storage(Arc::clone(&store));
    storage.put(&container(0), b"x").unwrap();
    assert!(matches!(storage.barrier(), Err(StorageError::Refused { .. })));
    assert!(matches!(storage.put(&container(1), b"x"), Err(StorageError::Poisoned)));
    assert!(matches!(storage.create(&manifest(1), b"x"), Err(StorageError::Poisoned)));
    assert!(matches!(storage.barrier(), Err(StorageError::Poisoned)));
    assert_eq!(store.made.load(Ordering::Relaxed), 1);
}

#[test]
fn a_refusal_is_not_tried_again() {
    for (status, is_refused) in [(401, true), (403, true), (400, false), (416, false)] {
        let store = Troubled::new(Trouble::Status(status), 0, u64::MAX);
        let error = storage(Arc::clone(&store)).read(&manifest(1), 10).unwrap_err();
        assert_eq!(matches!(error, StorageError::Refused { .. }), is_refused, "{error:?}");
        assert_eq!(store.made.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_place_that_ignores_offsets_lists_nothing_twice() {
    let store = Troubled::new(Trouble::Status(503), 0, 1);
    let written = found(&store);
    (0..3).for_each(|serial| written.create(&container(serial), b"x").unwrap());
    let listed = storage(Arc::clone(&store)).list_containers(SERIES).unwrap();
    assert_eq!(listed, written.list_containers(SERIES).unwrap());
}

#[test]
fn foreign_names_are_passed_over() {
    let store = Arc::new(InMemory::new());
    let storage = ObjectStorage::new(Arc::clone(&store) as Arc<dyn ObjectStore>, "p", "x", Retries::default()).unwrap();
    storage.create(&manifest(1), b"x").unwrap();
    let path = manifest(1).to_string();
    for foreign in ["p/readme.txt", &format!("p/{path}/x"), &format!("q/{path}"), &path, "p/probe/0"] {
        storage.wait(put_foreign(Arc::clone(&store), Path::from(foreign))).unwrap();
    }
    for what in [Listing::All, Listing::AllManifests, Listing::Manifests(SERIES)] {
        assert_eq!(storage.list(what).unwrap().len(), 1, "{what:?}");
    }
}

async fn put_foreign(store: Arc<InMemory>, path: Path) -> Result<(), StorageError> {
    store.put_opts(&path, "foreign".into(), PutOptions::default()).await.map(drop).unwrap();
    Ok(())
}

//! A storage that sends the first requests of a run all at once, in front of a place where each takes a round trip.
//!
//! A command asks for one thing after the other before it knows a repository: which record is the newest, the record, a
//! key slot, which manifest of the series is the newest, the manifest. Each name follows from the answer before. But
//! most commands are run again and again, and what one asked for the last time tells what it asks for the next time. So
//! the first requests of a run are noted in a small file of this machine, and the next run with the same purpose sends
//! them all when it begins. One with a purpose that is new sends those that open the repository; the first one after
//! the run that made it, too. A manifest or a config that the run itself committed is expected in place of the one that
//! it read.
//!
//! The file is a guess and holds names only. Each answer comes from the place, was asked for after the run began, is
//! given once, and is gone after some seconds, with the first write, and when containers are listed: these are held
//! against a manifest that is read later. What was not expected is asked for as if nothing had been.

use super::{Listing, ObjectMeta, ObjectName, Part, ReadRequest, Storage, StorageError};
use crate::ids::SeriesId;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::fs;
use std::io::{self, Read};
use std::ops::ControlFlow;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tracing::debug;

/// Requests that are noted of a run.
const REQUESTS_MAX: usize = 16;
/// Bytes of an object that is read ahead; so many, for each request, may wait beside what `--memory` bounds.
const BYTES_MAX: u64 = 1 << 20;
/// Time after which an answer is asked for anew: somebody was asked for a password, or slept.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Bytes of the file of a purpose.
const FILE_BYTES_MAX: u64 = 4096;

/// A [`Storage`] that sends ahead what the run before with the same purpose asked for first.
#[derive(Debug)]
pub struct Prefetch {
    inner: Arc<dyn Storage>,
    /// First requests of a run with this purpose.
    own: RequestsFile,
    /// First requests of any run: those that open the repository.
    common: RequestsFile,
    began: Instant,
    state: Mutex<State>,
}

/// A file with the first requests of a run.
#[derive(Debug)]
struct RequestsFile {
    path: PathBuf,
    /// Its first line, a hash of the purpose: purposes may share a file, and the last one has it.
    heading: String,
}

#[derive(Debug, Default)]
struct State {
    /// Requests that are under way or answered, until they are asked for.
    sent: HashMap<Request, JoinHandle<Result<Answer, StorageError>>>,
    /// The first requests of this run.
    asked: Vec<Request>,
    /// Objects that follow each other under numbers.
    numbers: BTreeMap<Chain, Numbers>,
    /// The config and the key slot that this run created last.
    created: (Option<ObjectName>, Option<ObjectName>),
    /// True after a write or the listing of other objects: the requests that follow are none of the first.
    has_ended: bool,
}

/// A request that can be sent ahead.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Request {
    Read(ObjectName),
    List(Listing),
}

#[derive(Debug)]
enum Answer {
    Object(Vec<u8>),
    Listed(Vec<ObjectMeta>),
}

/// Objects that follow each other under numbers; the highest is the newest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Chain {
    Configs,
    Directories,
    Manifests(SeriesId),
}

#[derive(Clone, Copy, Default, Debug)]
struct Numbers {
    /// The highest that was read.
    read: u64,
    /// The highest that is known to be there.
    newest: u64,
}

impl Request {
    /// The request to read an object, if that may be sent ahead.
    fn read(name: &ObjectName) -> Option<Self> {
        let is_first = matches!(
            name,
            ObjectName::Config(_) | ObjectName::Key(_) | ObjectName::Manifest(..) | ObjectName::Directory(_)
        );
        is_first.then_some(Self::Read(*name))
    }

    /// The request for a listing, if that may be sent ahead.
    fn list(what: Listing) -> Option<Self> {
        let is_first = match what {
            Listing::Configs
            | Listing::ConfigCopies
            | Listing::Keys
            | Listing::KeyCopies
            | Listing::AllManifests
            | Listing::AllManifestCopies
            | Listing::Manifests(_)
            | Listing::ManifestCopies(_)
            | Listing::Directories => true,
            Listing::All
            | Listing::Containers(..)
            | Listing::Aside
            | Listing::Parity(_)
            | Listing::Renewals(_)
            | Listing::ManifestParts(_)
            | Listing::ManifestPartCopies(_)
            | Listing::Loans(_) => false,
        };
        is_first.then_some(Self::List(what))
    }

    /// Tells whether it is made to open the repository, whatever is done then.
    fn opens(&self) -> bool {
        let configs = [Self::List(Listing::Configs), Self::List(Listing::ConfigCopies)];
        configs.contains(self) || matches!(self, Self::Read(ObjectName::Config(_) | ObjectName::Key(_)))
    }

    /// Reads a line of the file.
    fn from_text(line: &str) -> Option<Self> {
        match line.split_once(' ')? {
            ("read", name) => Self::read(&ObjectName::from_text(name)?),
            ("list", folder) => Self::list(Listing::of_folder(folder)?),
            _ => None,
        }
    }

    fn send(self, storage: &dyn Storage) -> Result<Answer, StorageError> {
        match self {
            Self::Read(name) => storage.read(&name, name.bytes_max().min(BYTES_MAX)).map(Answer::Object),
            Self::List(what) => storage.list(what).map(Answer::Listed),
        }
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(name) => write!(f, "read {name}"),
            Self::List(what) => write!(f, "list {}", what.folder()),
        }
    }
}

impl Chain {
    fn of(name: &ObjectName) -> Option<(Self, u64)> {
        match *name {
            ObjectName::Config(number) => Some((Self::Configs, number)),
            ObjectName::Directory(number) => Some((Self::Directories, number)),
            ObjectName::Manifest(series, number) => Some((Self::Manifests(series), number)),
            _ => None,
        }
    }

    fn name(self, number: u64) -> ObjectName {
        match self {
            Self::Configs => ObjectName::Config(number),
            Self::Directories => ObjectName::Directory(number),
            Self::Manifests(series) => ObjectName::Manifest(series, number),
        }
    }
}

impl State {
    fn note(&mut self, request: Request) {
        if self.has_ended || self.asked.len() >= REQUESTS_MAX || self.asked.contains(&request) {
            return;
        }
        self.asked.push(request);
        if let Request::Read(name) = request
            && let Some((chain, number)) = Chain::of(&name)
        {
            let numbers = self.numbers.entry(chain).or_default();
            numbers.read = numbers.read.max(number);
            numbers.newest = numbers.newest.max(number);
        }
    }

    /// Notes that an object was created: the next run reads it in place of the newest that this one read.
    fn note_created(&mut self, name: &ObjectName) {
        match name {
            ObjectName::Config(_) => self.created.0 = Some(*name),
            ObjectName::Key(_) => self.created.1 = Some(*name),
            _ => {}
        }
        let Some((chain, number)) = Chain::of(name) else { return };
        let numbers = match chain {
            // There was none to be read where the series is new.
            Chain::Manifests(series) if self.asked.contains(&Request::List(Listing::Manifests(series))) => {
                Some(self.numbers.entry(chain).or_default())
            }
            _ => self.numbers.get_mut(&chain),
        };
        if let Some(numbers) = numbers {
            numbers.newest = numbers.newest.max(number);
        }
    }

    /// The first requests of a run that finds what this one leaves.
    fn expected(&self) -> Vec<Request> {
        let moved = |request: &Request| match request {
            Request::Read(name) => Request::Read(self.moved(name)),
            Request::List(_) => *request,
        };
        let begun = self.numbers.iter().filter(|(_, numbers)| numbers.read == 0);
        let begun = begun.flat_map(|(chain, numbers)| {
            let before = numbers.newest.checked_sub(1).filter(|number| *number > 0);
            [Some(numbers.newest), before].into_iter().flatten().map(|number| Request::Read(chain.name(number)))
        });
        self.asked.iter().map(moved).chain(begun).take(REQUESTS_MAX).collect()
    }

    /// Those of them that open the repository, whatever is done then. One that this run has made is opened by what it
    /// created.
    fn expected_of_any(&self) -> Vec<Request> {
        let mut expected = self.expected();
        expected.retain(Request::opens);
        match self.created {
            (Some(config), Some(key)) if expected.is_empty() => {
                let lists = [Listing::Configs, Listing::ConfigCopies, Listing::Keys].map(Request::List);
                lists.into_iter().chain([config, key].map(Request::Read)).collect()
            }
            _ => expected,
        }
    }

    fn moved(&self, name: &ObjectName) -> ObjectName {
        let moved = Chain::of(name).and_then(|(chain, number)| {
            let Numbers { read, newest } = self.numbers.get(&chain)?;
            Some(chain.name(number.checked_add(newest - read)?))
        });
        moved.unwrap_or(*name)
    }
}

impl Prefetch {
    /// Sends ahead what the run before with this purpose asked `inner` for. `folder` keeps that, for all places and
    /// purposes; it need not be there. `purpose` may be anything that is the same when the same requests are likely.
    pub fn start(inner: Arc<dyn Storage>, folder: &Path, purpose: &[u8]) -> Self {
        let location = inner.location();
        let file = |purpose: &[u8]| RequestsFile::new(folder, &[location.as_bytes(), purpose]);
        let (own, common) = (file(purpose), file(b""));
        let expected = Some(own.read()).filter(|requests| !requests.is_empty()).unwrap_or_else(|| common.read());
        let sent = expected.into_iter().filter_map(|request| {
            let place = Arc::clone(&inner);
            let thread = thread::Builder::new().name("prefetch".into());
            Some((request, thread.spawn(move || request.send(&*place)).ok()?))
        });
        let state = Mutex::new(State { sent: sent.collect(), ..State::default() });
        Self { inner, own, common, began: Instant::now(), state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request, and waits for its answer if it was sent ahead. `None` if it is to be asked for now: what was
    /// not found may have come since.
    fn answer(&self, request: Option<Request>) -> Option<Result<Answer, StorageError>> {
        let request = request?;
        let thread = {
            let mut state = self.state();
            state.note(request);
            state.sent.remove(&request)?
        };
        if self.began.elapsed() > AGE_MAX {
            return None;
        }
        let answer = thread.join().ok()?;
        let is_final = match &answer {
            Ok(_) => true,
            Err(error) => !error.is_not_found() && !matches!(error, StorageError::TooLarge { .. }),
        };
        Some(answer).filter(|_| is_final)
    }

    fn object(&self, name: &ObjectName, bytes_max: u64) -> Option<Result<Vec<u8>, StorageError>> {
        match self.answer(Request::read(name))? {
            Ok(Answer::Object(bytes)) if bytes.len() as u64 <= bytes_max => Some(Ok(bytes)),
            Ok(_) => None,
            Err(error) => Some(Err(error)),
        }
    }

    fn listed(&self, what: Listing) -> Option<Result<Vec<ObjectMeta>, StorageError>> {
        let request = Request::list(what);
        if request.is_none() {
            self.end();
        }
        match self.answer(request)? {
            Ok(Answer::Listed(objects)) => Some(Ok(objects)),
            Ok(Answer::Object(_)) => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Gives up answers that were not asked for: what this run writes must be seen by what it asks for next, and who
    /// has listed containers must read a manifest after that.
    fn end(&self) {
        let mut state = self.state();
        state.has_ended = true;
        state.sent.clear();
    }
}

impl Drop for Prefetch {
    /// Keeps the first requests for the next run.
    fn drop(&mut self) {
        let state = self.state();
        self.own.keep(&state.expected());
        self.common.keep(&state.expected_of_any());
    }
}

impl RequestsFile {
    fn new(folder: &Path, purpose: &[&[u8]]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for word in purpose {
            hasher.update(&(word.len() as u64).to_le_bytes()).update(word);
        }
        let heading = hasher.finalize().to_hex().to_string();
        Self { path: folder.join(heading.get(..2).unwrap_or_default()), heading }
    }

    /// The requests in the file; none if it is not there, is of another purpose, or makes no sense.
    fn read(&self) -> Vec<Request> {
        let mut text = String::new();
        let read = fs::File::open(&self.path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
        let mut lines = text.lines();
        if read.is_err() || lines.next() != Some(&self.heading) {
            return Vec::new();
        }
        lines.filter_map(Request::from_text).take(REQUESTS_MAX).collect()
    }

    /// Keeps requests, if they are others than those in the file. That they cannot be kept costs time only.
    fn keep(&self, requests: &[Request]) {
        if !requests.is_empty() && self.read() != requests {
            self.write(requests).unwrap_or_else(|error| debug!(%error, "first requests were not kept"));
        }
    }

    fn write(&self, requests: &[Request]) -> io::Result<()> {
        let lines = requests.iter().map(|request| format!("{request}\n"));
        let text: String = std::iter::once(format!("{}\n", self.heading)).chain(lines).collect();
        if let Some(folder) = self.path.parent() {
            fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let temporary = self.path.with_extension(std::process::id().to_string());
        fs::write(&temporary, text)?;
        fs::rename(&temporary, &self.path)
    }
}

impl Storage for Prefetch {
    fn read(&self, name: &ObjectName, bytes_max: u64) -> Result<Vec<u8>, StorageError> {
        self.object(name, bytes_max).unwrap_or_else(|| self.inner.read(name, bytes_max))
    }

    fn read_range(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.inner.read_range(name, offset, length)
    }

    fn read_kept(&self, name: &ObjectName, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        self.inner.read_kept(name, offset, length)
    }

    fn read_many(
        &self,
        requests: &[ReadRequest],
        answer: &mut dyn FnMut(usize, Result<Vec<u8>, StorageError>) -> ControlFlow<()>,
    ) {
        let mut others = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let object = match request.part {
                Part::Whole { bytes_max } => self.object(&request.name, bytes_max),
                Part::Range { .. } => None,
            };
            let Some(object) = object else {
                others.push((place, *request));
                continue;
            };
            if answer(place, object).is_break() {
                return;
            }
        }
        let asked: Vec<ReadRequest> = others.iter().map(|(_, request)| *request).collect();
        self.inner.read_many(&asked, &mut |at, result| {
            others.get(at).map_or(ControlFlow::Continue(()), |(place, _)| answer(*place, result))
        });
    }

    fn size_of(&self, name: &ObjectName) -> Result<u64, StorageError> {
        self.inner.size_of(name)
    }

    fn put(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.end();
        self.inner.put(name, bytes)
    }

    fn barrier(&self) -> Result<(), StorageError> {
        self.inner.barrier()
    }

    fn create(&self, name: &ObjectName, bytes: &[u8]) -> Result<(), StorageError> {
        self.end();
        self.inner.create(name, bytes)?;
        self.state().note_created(name);
        Ok(())
    }

    fn create_and_list(
        &self,
        name: &ObjectName,
        bytes: &[u8],
        what: Listing,
    ) -> (Result<(), StorageError>, Result<Vec<ObjectMeta>, StorageError>) {
        self.end();
        let (created, listed) = self.inner.create_and_list(name, bytes, what);
        if created.is_ok() {
            self.state().note_created(name);
        }
        (created, listed)
    }

    fn delete(&self, name: &ObjectName) -> Result<(), StorageError> {
        self.end();
        self.inner.delete(name)
    }

    fn delete_many(&self, names: &[ObjectName]) -> Result<(), StorageError> {
        self.end();
        self.inner.delete_many(names)
    }

    fn renew(&self, name: &ObjectName, before: Option<&ObjectName>) -> Result<(), StorageError> {
        self.end();
        self.inner.renew(name, before)
    }

    fn list(&self, what: Listing) -> Result<Vec<ObjectMeta>, StorageError> {
        self.listed(what).unwrap_or_else(|| self.inner.list(what))
    }

    fn list_both(&self, what: [Listing; 2]) -> Result<[Vec<ObjectMeta>; 2], StorageError> {
        match what.map(|what| self.listed(what)) {
            [Some(first), Some(second)] => Ok([first?, second?]),
            _ => self.inner.list_both(what),
        }
    }

    fn list_after(&self, what: Listing, after: &ObjectName) -> Result<Vec<ObjectMeta>, StorageError> {
        self.end();
        self.inner.list_after(what, after)
    }

    fn remove_unfinished(&self, series: SeriesId, lease_last: u64) -> Result<u64, StorageError> {
        self.end();
        self.inner.remove_unfinished(series, lease_last)
    }

    fn below(&self) -> Option<&dyn Storage> {
        Some(&*self.inner)
    }
}

//! A folder on another machine, reached by the SFTP protocol, as an object store: [`crate::object`] does the rest
//! (retries, lost answers, queues), as it does for the others.
//!
//! ```text
//! put     open a new file in tmp/, write, fsync; name it where the name is free; remove its first name; fsync, close
//! get     open; size and first block at once; further blocks, many at once; close
//! list    folders of one depth at once; four requests for the entries of each at once
//! ```
//! **Safety.** A file gets its name by a hard link (`hardlink@openssh.com`), which never replaces, on any file system.
//! `rename` of OpenSSH does so only where there are hard links, and would look first and rename then elsewhere. A
//! server that has no such request is asked to rename, which by the protocol does not replace;
//! [`crate::ObjectStorage::probe`] tests it. `posix-rename@openssh.com` replaces and is never used. rclone replaces
//! whatever it is asked for, also where a file is opened as a new one (version 1.60): see [`Naming::Checked`].
//!
//! **Durability.** `fsync@openssh.com` is asked for each file where the server has it, before it gets its name, so that
//! a name never shows a torn file, and after it, for the protocol cannot sync folders: ext4, XFS and btrfs sync the new
//! names of a file with it. On other file systems a power failure of the server may undo the names of the last seconds.
//!
//! **The protocol** is spoken by our own code: some twenty packets, of which it matters how a file gets its name, how
//! much of an answer is believed, and how much may wait. The crates for it leave less of that to their user; the queue
//! of `russh-sftp`, for one, has no bound.

mod connection;
mod file;
mod packet;
mod program;
mod session;
mod terminal;
#[cfg(test)]
mod tests;

use crate::fault::Fault;
use async_trait::async_trait;
use bytes::Bytes;
pub(crate) use connection::Connection;
use file::{OpenFile, Published, Temporary, lost_of, stat};
use futures_util::future;
use futures_util::stream::{self, BoxStream, StreamExt, TryStreamExt};
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, Extensions, GetOptions, GetRange, GetResult, GetResultPayload, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result as StoreResult,
};
use packet::{Answer, Attributes, Code, Entry, FileKind, READ, Request, WRITE_NEW};
pub(crate) use program::Program;
use session::{Session, refusal};
use siltstone_store::storage::TEMPORARIES;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks of one file that are on their way at once.
const BLOCKS_AT_ONCE: usize = 16;
/// Files that are deleted, and folders that are read, at once.
const FILES_AT_ONCE: usize = 16;
/// Requests for entries of one folder at once: OpenSSH answers each with 100.
const FOLDER_READS_AT_ONCE: usize = 4;
/// Entries of one folder at most: 1024 GiB in containers of 16 MiB are 65 536.
const ENTRIES_MAX: usize = 16 << 20;
/// Folders below that of the repository, one in another, at most: `copies/series/<series>`.
const DEPTH_MAX: usize = 3;
/// Room on a file system, besides what was to be written, below which a failed write is told as want of room.
const FULL_BYTES: u64 = 1 << 20;

/// The way in which a whole file gets its name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Naming {
    /// By a request that fails if the name is taken: a hard link, else a rename.
    Refused,
    /// By a rename that would replace, after a look whether the name is free. It keeps the writers of this process
    /// apart, and no others: the user has promised that there are none.
    Checked,
}

/// The folder of a repository.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Root {
    /// It must be there.
    IsThere,
    /// It is made with the first object if it is missing, as are those above it.
    IsMade,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SftpStore(Arc<Folder>);

/// A folder of a server.
#[derive(Debug)]
struct Folder {
    connection: Connection,
    /// Path of the folder without a slash at its end; `""` is where the server begins.
    root: String,
    naming: Naming,
    kind: Root,
    /// Temporary files of this process.
    temporaries: Mutex<BTreeSet<String>>,
    /// Held from the look at a name until a file has it.
    checked: tokio::sync::Mutex<()>,
}

impl SftpStore {
    /// Keeps objects in a folder at the other end of this connection. Nothing is asked yet.
    pub(crate) fn new(connection: Connection, root: &str, naming: Naming, kind: Root) -> Self {
        Self(Arc::new(Folder {
            connection,
            root: root.to_owned(),
            naming,
            kind,
            temporaries: Mutex::default(),
            checked: tokio::sync::Mutex::default(),
        }))
    }
}

impl Folder {
    async fn session(&self) -> Result<Arc<Session>, Fault> {
        self.connection.session().await
    }

    /// The path of an object on the server.
    fn path(&self, object: &str) -> String {
        match (self.root.as_str(), object) {
            ("", "") => ".".to_owned(),
            ("", object) => object.to_owned(),
            (root, "") => root.to_owned(),
            ("/", object) => format!("/{object}"),
            (root, object) => format!("{root}/{object}"),
        }
    }

    async fn put(&self, object: &str, payload: &PutPayload) -> Result<(), Fault> {
        let session = self.session().await?;
        let (path, bytes) = (self.path(object), Bytes::from(payload.clone()));
        if bytes.is_empty() && self.naming == Naming::Refused {
            // What has no content is whole at once.
            let opened = self.open_new(&session, &path).await;
            return match opened {
                Err(fault @ Fault::Wrong(_)) => Err(self.reason_of_write(&session, &path, 0, fault).await),
                // Once it was opened it is there, whatever becomes of its closing.
                opened => opened?.close().await.map_err(lost_of),
            };
        }
        let temporary = Temporary::reserve(self, &session, object)?;
        let published = self.write_and_name(&session, &temporary.path, &path, &bytes).await;
        temporary.remove().await;
        match published {
            Ok(published) => published.finish().await,
            Err(fault @ Fault::Wrong(_)) => Err(self.reason_of_write(&session, &path, bytes.len() as u64, fault).await),
            Err(fault) => Err(fault),
        }
    }

    /// Writes a new file, durable where the server can say so, and gives it its name.
    async fn write_and_name(
        &self,
        session: &Arc<Session>,
        from: &str,
        to: &str,
        bytes: &Bytes,
    ) -> Result<Published, Fault> {
        let file = self.open_new(session, from).await?;
        let block = session.abilities().write_bytes as usize;
        let blocks = (0..bytes.len()).step_by(block).map(|offset| {
            let part = bytes.slice(offset..bytes.len().min(offset + block));
            session.order(Request::write(&file.handle, offset as u64, &part))
        });
        stream::iter(blocks).buffer_unordered(BLOCKS_AT_ONCE).try_collect::<()>().await?;
        let published = if session.abilities().fsync {
            session.order(Request::fsync(&file.handle)).await?;
            Published(Some(file))
        } else {
            // Some servers write when the file is closed, and not before.
            file.close().await?;
            Published(None)
        };
        self.name(session, from, to).await?;
        Ok(published)
    }

    /// Opens a new file for writing, and makes its folder if it is missing.
    async fn open_new(&self, session: &Arc<Session>, path: &str) -> Result<OpenFile, Fault> {
        match OpenFile::open(session, Request::open(path, WRITE_NEW)).await {
            Err(Fault::Absent) => {
                self.make_folders(session, folder_of(path)).await?;
                OpenFile::open(session, Request::open(path, WRITE_NEW)).await
            }
            opened => opened,
        }
    }

    /// Gives a whole file its name, where that is free.
    async fn name(&self, session: &Arc<Session>, from: &str, to: &str) -> Result<(), Fault> {
        let named = match self.name_once(session, from, to).await {
            Err(Fault::Absent) => {
                self.make_folders(session, folder_of(to)).await?;
                self.name_once(session, from, to).await
            }
            named => named,
        };
        match named {
            Err(Fault::Absent) if is_absent(session, from).await => Err(Fault::Swept),
            Err(Fault::Absent) => Err(Fault::Wrong("its folder cannot be made".to_owned())),
            named => named,
        }
    }

    async fn name_once(&self, session: &Arc<Session>, from: &str, to: &str) -> Result<(), Fault> {
        match self.naming {
            Naming::Refused if session.abilities().hard_links => {
                match session.ask(Request::hard_link(from, to)).await? {
                    Answer::Status { code: Code::Done, .. } => Ok(()),
                    Answer::Status { code: Code::Unsupported, .. } => session.order(Request::rename(from, to)).await,
                    Answer::Status { code: Code::Denied, message } => {
                        Err(Fault::Denied(format!("{message}, or there are no hard links there")))
                    }
                    other => Err(refusal(other)),
                }
            }
            Naming::Refused => session.order(Request::rename(from, to)).await,
            Naming::Checked => {
                let _held = self.checked.lock().await;
                match session.ask(Request::lstat(to)).await? {
                    Answer::Status { code: Code::Absent, .. } => session.order(Request::rename(from, to)).await,
                    Answer::Attributes(_) => Err(Fault::Taken),
                    other => Err(refusal(other)),
                }
            }
        }
    }

    /// Finds out why a write of this length failed: version 3 of the protocol says no more than that it did. What was
    /// written of them is removed again.
    async fn reason_of_write(&self, session: &Session, path: &str, bytes: u64, fault: Fault) -> Fault {
        match session.ask(Request::lstat(path)).await {
            Ok(Answer::Attributes(_)) => return Fault::Taken,
            Ok(_) => {}
            // The name may be taken or not: that is to be found out anew.
            Err(lost) => return lost_of(lost),
        }
        if session.abilities().space
            && let Ok(Answer::Extended(answer)) = session.ask(Request::space(&self.path(""))).await
            && packet::decode_space(answer).is_some_and(|free| free < bytes + FULL_BYTES)
        {
            return Fault::Full(fault.reason());
        }
        fault
    }

    /// Makes a folder and those above it up to the repository's; that one and those above it only for a new repository.
    async fn make_folders(&self, session: &Session, folder: &str) -> Result<(), Fault> {
        let root = self.path("");
        let ends = folder.match_indices('/').map(|(end, _)| end).chain([folder.len()]);
        let above = ends.filter_map(|end| folder.get(..end)).filter(|part| !part.is_empty());
        let is_inside = |part: &str| part.len() > root.len() || self.root.is_empty();
        for part in above.filter(|part| self.kind == Root::IsMade || is_inside(part)) {
            match session.order(Request::make_folder(part)).await {
                // The servers say no more than "Failure" where it is there already. If it is not, the next step fails.
                Ok(()) | Err(Fault::Wrong(_) | Fault::Denied(_)) => {}
                Err(Fault::Absent) => return Err(Fault::Wrong(format!("there is no folder {root} on the server"))),
                Err(fault) => return Err(fault),
            }
        }
        Ok(())
    }

    async fn get(self: Arc<Self>, location: Path, options: GetOptions) -> Result<GetResult, Fault> {
        let session = self.session().await?;
        let path = self.path(location.as_ref());
        if options.head {
            let bytes = size_of_file(stat(&session, Request::stat(&path)).await?)?;
            return Ok(found(location, bytes, 0..0, stream::empty().boxed()));
        }
        let (start, end) = match options.range {
            Some(GetRange::Bounded(range)) => (range.start, range.end),
            Some(GetRange::Offset(start)) => (start, u64::MAX),
            Some(GetRange::Suffix(_)) => return Err(Fault::Wrong("the end of an object is not asked for".to_owned())),
            None => (0, u64::MAX),
        };
        let file = Arc::new(OpenFile::open(&session, Request::open(&path, READ)).await?);
        let block = u64::from(session.abilities().read_bytes);
        let (attributes, first) =
            future::join(stat(&session, Request::fstat(&file.handle)), file.read(start, block.min(end - start))).await;
        let bytes = size_of_file(attributes?)?;
        let range = start.min(bytes)..end.min(bytes);
        // An object that has grown since its size was told counts with that size.
        let first = first?.unwrap_or_default();
        let first = first.slice(..first.len().min(usize::try_from(range.end - range.start).unwrap_or(usize::MAX)));
        let next = range.start + first.len() as u64;
        let blocks = stream::iter(blocks(next..range.end, block));
        let rest = blocks.map(move |part| Arc::clone(&file).read_whole(part)).buffered(BLOCKS_AT_ONCE);
        let first = stream::iter([Ok(first)].into_iter().filter(|first| first.as_ref().is_ok_and(|it| !it.is_empty())));
        Ok(found(location, bytes, range, first.chain(rest).map_err(Error::from).boxed()))
    }

    async fn remove(&self, object: &str) -> Result<(), Fault> {
        match self.session().await?.order(Request::remove(&self.path(object))).await {
            Err(Fault::Absent) => Ok(()),
            removed => removed,
        }
    }

    /// The files below a folder of the repository, in the order of their paths. Folder names that cannot be ours are
    /// passed over, and so are temporary files of this process.
    async fn list(&self, below: &str) -> Result<Vec<ObjectMeta>, Fault> {
        let session = self.session().await?;
        let (mut files, mut folders) = (Vec::new(), vec![below.to_owned()]);
        for _ in 0..=DEPTH_MAX {
            let read = folders.into_iter().map(|folder| self.read_folder(&session, folder));
            let read: Vec<_> = stream::iter(read).buffer_unordered(FILES_AT_ONCE).try_collect().await?;
            folders = Vec::new();
            for (path, kind, bytes) in read.into_iter().flatten() {
                match kind {
                    FileKind::Folder if path != TEMPORARIES => folders.push(path),
                    FileKind::File if !self.own_temporaries().contains(&path) => {
                        let location = Path::parse(path).map_err(|error| Fault::Wrong(error.to_string()))?;
                        files.push(meta(location, bytes));
                    }
                    _ => {}
                }
            }
        }
        files.sort_unstable_by(|one, other| one.location.cmp(&other.location));
        Ok(files)
    }

    /// Entries of a folder with their paths below the repository; none if it is missing.
    async fn read_folder(&self, session: &Arc<Session>, folder: String) -> Result<Vec<(String, FileKind, u64)>, Fault> {
        let opened = OpenFile::open(session, Request::open_folder(&self.path(&folder))).await;
        let open = match opened {
            Err(Fault::Absent) => return Ok(Vec::new()),
            opened => opened?,
        };
        let mut found = Vec::new();
        loop {
            let asked = (0..FOLDER_READS_AT_ONCE).map(|_| session.ask(Request::read_folder(&open.handle)));
            let mut is_end = false;
            for answer in future::try_join_all(asked).await? {
                match answer {
                    Answer::Names(entries) if !entries.is_empty() => {
                        found.extend(entries.into_iter().filter(|entry| is_plain(&entry.name)));
                    }
                    Answer::Names(_) | Answer::Status { code: Code::End, .. } => is_end = true,
                    other => return Err(refusal(other)),
                }
            }
            if is_end {
                break;
            }
            if found.len() > ENTRIES_MAX {
                return Err(Fault::Wrong(format!("the folder {folder} holds too many files")));
            }
        }
        let sorted = found.into_iter().map(|entry| self.sorted(session, &folder, entry));
        let sorted: Vec<Option<_>> = stream::iter(sorted).buffer_unordered(FILES_AT_ONCE).try_collect().await?;
        Ok(sorted.into_iter().flatten().collect())
    }

    /// An entry with its path and its kind, asked for where the listing does not tell it, or it is a symbolic link.
    async fn sorted(
        &self,
        session: &Session,
        folder: &str,
        entry: Entry,
    ) -> Result<Option<(String, FileKind, u64)>, Fault> {
        let path = if folder.is_empty() { entry.name } else { format!("{folder}/{}", entry.name) };
        let mut attributes = entry.attributes;
        if attributes.kind() == FileKind::Other || attributes.bytes.is_none() {
            attributes = match stat(session, Request::stat(&self.path(&path))).await {
                Err(Fault::Absent) => return Ok(None),
                attributes => attributes?,
            };
        }
        Ok(Some((path, attributes.kind(), attributes.bytes.unwrap_or(0))))
    }

    fn own_temporaries(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.temporaries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tells whether an entry may be a file or a folder of a repository.
fn is_plain(name: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    !name.starts_with('.') && !name.is_empty() && name.bytes().all(is_allowed)
}

/// The path of the folder that holds a file.
fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

async fn is_absent(session: &Session, path: &str) -> bool {
    matches!(session.ask(Request::lstat(path)).await, Ok(Answer::Status { code: Code::Absent, .. }))
}

fn size_of_file(attributes: Attributes) -> Result<u64, Fault> {
    match (attributes.kind(), attributes.bytes) {
        (FileKind::File, Some(bytes)) => Ok(bytes),
        _ => Err(Fault::Wrong("it is not a regular file".to_owned())),
    }
}

#[allow(clippy::default_trait_access, reason = "the type of times is that of a crate which is not ours")]
fn meta(location: Path, bytes: u64) -> ObjectMeta {
    ObjectMeta { location, last_modified: Default::default(), size: bytes, e_tag: None, version: None }
}

fn found(location: Path, bytes: u64, range: Range<u64>, content: BoxStream<'static, StoreResult<Bytes>>) -> GetResult {
    let (attributes, extensions) = Default::default();
    let meta = meta(location, bytes);
    GetResult { payload: GetResultPayload::Stream(content), meta, range, attributes, extensions }
}

/// A range cut into blocks.
fn blocks(range: Range<u64>, block: u64) -> impl Iterator<Item = Range<u64>> {
    let starts = std::iter::successors(Some(range.start), move |start| start.checked_add(block));
    starts
        .take_while(move |start| *start < range.end)
        .map(move |start| start..range.end.min(start.saturating_add(block)))
}

impl fmt::Display for SftpStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.path(""))
    }
}

#[async_trait]
impl ObjectStore for SftpStore {
    /// Writes a new object. It never replaces one, whatever mode is asked for.
    async fn put_opts(&self, location: &Path, payload: PutPayload, _: PutOptions) -> StoreResult<PutResult> {
        self.0.put(location.as_ref(), &payload).await?;
        Ok(PutResult { e_tag: None, version: None, extensions: Extensions::default() })
    }

    async fn put_multipart_opts(&self, _: &Path, _: PutMultipartOptions) -> StoreResult<Box<dyn MultipartUpload>> {
        Err(not_needed("put in parts"))
    }

    async fn get_opts(&self, location: &Path, options: GetOptions) -> StoreResult<GetResult> {
        Ok(Arc::clone(&self.0).get(location.clone(), options).await?)
    }

    fn delete_stream(&self, locations: BoxStream<'static, StoreResult<Path>>) -> BoxStream<'static, StoreResult<Path>> {
        let folder = Arc::clone(&self.0);
        let remove = move |location: StoreResult<Path>| {
            let folder = Arc::clone(&folder);
            async move {
                let location = location?;
                folder.remove(location.as_ref()).await?;
                Ok(location)
            }
        };
        locations.map(remove).buffer_unordered(FILES_AT_ONCE).boxed()
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, StoreResult<ObjectMeta>> {
        let (folder, below) = (Arc::clone(&self.0), prefix.map_or_else(String::new, ToString::to_string));
        let listed = async move {
            let files = folder.list(&below).await?;
            Ok::<_, Error>(stream::iter(files.into_iter().map(Ok)))
        };
        stream::once(listed).try_flatten().boxed()
    }

    async fn list_with_delimiter(&self, _: Option<&Path>) -> StoreResult<ListResult> {
        Err(not_needed("list one level"))
    }

    async fn copy_opts(&self, _: &Path, _: &Path, _: CopyOptions) -> StoreResult<()> {
        Err(not_needed("copy"))
    }
}

fn not_needed(operation: &str) -> Error {
    Error::NotImplemented { operation: operation.to_owned(), implementer: "SFTP".to_owned() }
}

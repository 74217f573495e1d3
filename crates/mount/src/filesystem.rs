//! The answers to the kernel's questions.

use crate::ahead::ReadAhead;
use crate::attributes::{Attributes, kind_of};
use crate::content::OpenFile;
use crate::folders::Place;
use crate::listing::{Listed, OpenDirectory};
use crate::nodes::{Node, Nodes, Top, number_of_top};
use crate::page_cache::PageCache;
use crate::snapshots::{Catalogue, lock};
use crate::told::Told;
use crate::{MountError, MountOptions, eighth};
use fuser::{
    Errno, FileAttr, FileHandle, FileType, Filesystem, FopenFlags, Generation, INodeNo, InitFlags, KernelConfig,
    LockOwner, OpenFlags, ReplyAttr, ReplyData, ReplyDirectory, ReplyDirectoryPlus, ReplyEmpty, ReplyEntry, ReplyOpen,
    ReplyXattr, Request,
};
use lru::LruCache;
use siltstone_engine::EngineError;
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::repository::Repository;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::io;
use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the kernel may go by what it was told of a snapshot: those do not change.
const INSIDE_VALID: Duration = Duration::from_hours(24);
/// How long it may go by what it was told of the folders above them.
const ABOVE_VALID: Duration = Duration::from_secs(1);
/// Entries kept from when the kernel learnt of them until it opens them.
const ENTRIES_MAX: NonZeroUsize = NonZeroUsize::new(4096).unwrap();
/// Files whose extents, and where they are being read, are kept.
const FILES_MAX: NonZeroUsize = NonZeroUsize::new(256).unwrap();
/// Threads that read ahead.
const READ_AHEAD_THREADS: usize = 2;

/// The file system of all snapshots.
pub(crate) struct Snapshots {
    catalogue: Catalogue,
    nodes: Arc<Nodes>,
    page_cache: PageCache,
    attributes: Attributes,
    entries: Mutex<LruCache<u64, Arc<Entry>>>,
    /// Files read last.
    files: Mutex<LruCache<u64, Arc<OpenFile>>>,
    directories: Mutex<HashMap<u64, Arc<OpenDirectory>>>,
    handles: AtomicU64,
    read_ahead: ReadAhead,
    told: Told,
    mounted: Time,
}

/// Answer to the kernel about a name.
struct Found {
    attributes: FileAttr,
    valid: Duration,
}

impl Snapshots {
    pub(crate) fn new(repository: &'static Repository, options: MountOptions) -> Result<Self, MountError> {
        let (catalogue, damage) = Catalogue::new(repository, &options)?;
        let failed = |source| MountError::Threads { source };
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let nodes = Arc::<Nodes>::default();
        let shown = Self {
            page_cache: PageCache::new(nodes.clone()),
            nodes,
            attributes: Attributes::new(options.owned_by_root, options.check_permissions),
            entries: Mutex::new(LruCache::new(ENTRIES_MAX)),
            files: Mutex::new(LruCache::new(FILES_MAX)),
            directories: Mutex::default(),
            handles: AtomicU64::new(1),
            read_ahead: ReadAhead::start(READ_AHEAD_THREADS, eighth(&options.resources)).map_err(failed)?,
            told: Told::new(options.tell),
            mounted: Time { seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nanoseconds: 0 },
            catalogue,
        };
        shown.told.all(damage);
        Ok(shown)
    }

    /// The nodes that the kernel has.
    pub(crate) fn nodes(&self) -> &Arc<Nodes> {
        &self.nodes
    }

    /// The kernel's page cache, which is to be opened once this is mounted.
    pub(crate) fn page_cache(&self) -> &PageCache {
        &self.page_cache
    }

    /// The number by which an error is known to programs; what is wrong is told once.
    fn errno(&self, what: &[u8], error: &EngineError) -> Errno {
        match error {
            EngineError::NoSuchPath { .. } | EngineError::NoSnapshot { .. } => Errno::ENOENT,
            _ => {
                self.told.once(format!("/{}: {error}", what.escape_ascii()));
                Errno::EIO
            }
        }
    }

    fn node(&self, number: INodeNo) -> Result<Node, Errno> {
        self.nodes.get(number.0).ok_or(Errno::ESTALE)
    }

    /// The entry that a node of a snapshot stands for.
    fn entry(&self, number: u64, top: &Top, path: &EntryPath) -> Result<Arc<Entry>, Errno> {
        if let Some(entry) = lock(&self.entries).get(&number) {
            return Ok(entry.clone());
        }
        let entry = self.entry_at(top, path)?;
        lock(&self.entries).put(number, entry.clone());
        Ok(entry)
    }

    fn entry_at(&self, top: &Top, path: &EntryPath) -> Result<Arc<Entry>, Errno> {
        let found = self.catalogue.reader(&top.snapshot).and_then(|reader| reader.entry(path));
        found.map(Arc::new).map_err(|error| self.errno(path.as_bytes(), &error))
    }

    fn place(&self, names: &[Vec<u8>]) -> Result<Place, Errno> {
        let (place, errors) = self.catalogue.place(names);
        self.told.all(errors);
        place.ok_or(Errno::ENOENT)
    }

    /// The node that a name above the snapshots stands for.
    fn node_of(names: Vec<Vec<u8>>, place: &Place) -> Node {
        match place {
            Place::Folder(_) | Place::Link(_) => Node::Above(names),
            Place::Snapshot(snapshot) => {
                let number = number_of_top(&names, snapshot);
                Node::Top(Arc::new(Top { number, snapshot: snapshot.clone() }))
            }
        }
    }

    fn found_above(&self, number: u64, place: &Place) -> Found {
        let attributes = match place {
            Place::Folder(_) => self.attributes.of_folder(number, self.mounted),
            Place::Snapshot(snapshot) => self.attributes.of_folder(number, snapshot.snapshot.time),
            Place::Link(target) => self.attributes.of_link(number, self.mounted, target),
        };
        Found { attributes, valid: ABOVE_VALID }
    }

    fn found_inside(&self, number: u64, entry: &Entry) -> Found {
        Found { attributes: self.attributes.of_entry(number, entry), valid: INSIDE_VALID }
    }

    /// Looks a name up; the kernel keeps its number.
    fn look_up(&self, parent: INodeNo, name: &OsStr) -> Result<Found, Errno> {
        let (top, path) = match self.node(parent)? {
            Node::Above(mut names) => {
                names.push(name.as_bytes().to_vec());
                let place = self.place(&names)?;
                let number = self.nodes.hand_out(Self::node_of(names, &place));
                return Ok(self.found_above(number, &place));
            }
            Node::Top(top) => (top, EntryPath::new(name.as_bytes())),
            Node::Entry { top, path, .. } => {
                let path = path.join(name.as_bytes());
                (top, path)
            }
        };
        let entry = self.entry_at(&top, &path.map_err(|_| Errno::ENOENT)?)?;
        let number = self.nodes.hand_out(Node::entry(&top, &entry));
        lock(&self.entries).put(number, entry.clone());
        Ok(self.found_inside(number, &entry))
    }

    fn found(&self, number: INodeNo) -> Result<Found, Errno> {
        let number = number.0;
        Ok(match self.node(INodeNo(number))? {
            Node::Above(names) => self.found_above(number, &self.place(&names)?),
            Node::Top(top) => self.found_above(number, &Place::Snapshot(top.snapshot.clone())),
            Node::Entry { top, path, .. } => self.found_inside(number, &*self.entry(number, &top, &path)?),
        })
    }

    fn link_target(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        match self.node(number)? {
            Node::Above(names) => match self.place(&names)? {
                Place::Link(target) => Ok(target),
                Place::Folder(_) | Place::Snapshot(_) => Err(Errno::EINVAL),
            },
            Node::Top(_) => Err(Errno::EINVAL),
            Node::Entry { top, path, .. } => match &self.entry(number.0, &top, &path)?.content {
                Content::Symlink { target } => Ok(target.clone()),
                _ => Err(Errno::EINVAL),
            },
        }
    }

    /// The file that is being read.
    fn file(&self, number: INodeNo) -> Result<Arc<OpenFile>, Errno> {
        if let Some(file) = lock(&self.files).get(&number.0) {
            return Ok(file.clone());
        }
        let Node::Entry { top, path, .. } = self.node(number)? else { return Err(Errno::EISDIR) };
        let entry = self.entry(number.0, &top, &path)?;
        let pages = self.page_cache.of(top.clone());
        let opened = self.catalogue.reader(&top.snapshot);
        let opened = opened.and_then(|snapshot| OpenFile::new(snapshot, &entry, Some(pages)));
        let file = Arc::new(opened.map_err(|error| self.errno(path.as_bytes(), &error))?);
        Ok(lock(&self.files).get_or_insert(number.0, || file).clone())
    }

    fn read_file(&self, number: INodeNo, offset: u64, bytes: u32) -> Result<Vec<u8>, Errno> {
        let file = self.file(number)?;
        self.read_ahead.follow(&file, offset, bytes);
        file.read(offset, bytes).map_err(|error| {
            self.told.once(format!("/{}: {error}", file.path.as_bytes().escape_ascii()));
            Errno::EIO
        })
    }

    fn open_directory(&self, number: INodeNo) -> Result<(u64, FopenFlags), Errno> {
        let inside = |top: &Top, path: Option<EntryPath>| {
            let reader = self.catalogue.reader(&top.snapshot).map_err(|error| self.errno(b"", &error))?;
            let flags = FopenFlags::FOPEN_CACHE_DIR | FopenFlags::FOPEN_KEEP_CACHE;
            Ok::<_, Errno>((OpenDirectory::inside(reader, path), flags))
        };
        let (directory, flags) = match self.node(number)? {
            Node::Above(names) => match self.place(&names)? {
                Place::Folder(folder) => (
                    OpenDirectory::Above(folder.iter().map(|(name, place)| (name.clone(), place.clone())).collect()),
                    FopenFlags::empty(),
                ),
                Place::Snapshot(_) | Place::Link(_) => return Err(Errno::ENOTDIR),
            },
            Node::Top(top) => inside(&top, None)?,
            Node::Entry { top, path, .. } => inside(&top, Some(path))?,
        };
        let handle = self.handles.fetch_add(1, Ordering::Relaxed);
        lock(&self.directories).insert(handle, Arc::new(directory));
        Ok((handle, flags))
    }

    /// Shows the names of a directory from an offset on, with what they stand for, until `add` has no more room.
    fn list(
        &self,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut add: impl FnMut(&Listed, u64, Option<Node>) -> bool,
    ) -> Result<(), Errno> {
        let node = self.node(number)?;
        let directory = lock(&self.directories).get(&handle.0).cloned().ok_or(Errno::EBADF)?;
        let listed = directory.read(offset, |listed, next| {
            let child = match (listed, &node) {
                (Listed::Place(name, place), Node::Above(names)) => {
                    let names = names.iter().chain([name]).cloned().collect();
                    Some(Self::node_of(names, place))
                }
                (Listed::Entry(entry), Node::Top(top) | Node::Entry { top, .. }) => Some(Node::entry(top, entry)),
                _ => None,
            };
            add(listed, next, child)
        });
        listed.map_err(|error| {
            let path = if let Node::Entry { path, .. } = &node { path.as_bytes() } else { b"" };
            self.errno(path, &error)
        })
    }

    fn found_in_list(&self, number: u64, listed: &Listed) -> Option<Found> {
        match listed {
            Listed::Itself | Listed::Parent => None,
            Listed::Place(_, place) => Some(self.found_above(number, place)),
            Listed::Entry(entry) => Some(self.found_inside(number, entry)),
        }
    }

    fn attribute(&self, number: INodeNo, name: &OsStr) -> Result<Vec<u8>, Errno> {
        let Node::Entry { top, path, .. } = self.node(number)? else { return Err(Errno::ENODATA) };
        let entry = self.entry(number.0, &top, &path)?;
        let found = entry.metadata.xattrs.iter().find(|(known, _)| known == name.as_bytes());
        found.map(|(_, value)| value.clone()).ok_or(Errno::ENODATA)
    }

    /// The names of all extended attributes, each ended by a NUL.
    fn attribute_names(&self, number: INodeNo) -> Result<Vec<u8>, Errno> {
        let Node::Entry { top, path, .. } = self.node(number)? else { return Ok(Vec::new()) };
        let entry = self.entry(number.0, &top, &path)?;
        Ok(entry.metadata.xattrs.iter().flat_map(|(name, _)| name.iter().copied().chain([0])).collect())
    }
}

impl Filesystem for Snapshots {
    fn init(&mut self, _request: &Request, config: &mut KernelConfig) -> io::Result<()> {
        let wanted = [
            InitFlags::FUSE_DO_READDIRPLUS,
            InitFlags::FUSE_READDIRPLUS_AUTO,
            InitFlags::FUSE_PARALLEL_DIROPS,
            InitFlags::FUSE_CACHE_SYMLINKS,
        ];
        for flags in wanted {
            // What the kernel does not know it does without.
            let _ = config.add_capabilities(flags);
        }
        Ok(())
    }

    fn lookup(&self, _request: &Request, parent: INodeNo, name: &OsStr, reply: ReplyEntry) {
        match self.look_up(parent, name) {
            Ok(Found { attributes, valid }) => reply.entry(&valid, &attributes, Generation(0)),
            Err(errno) => reply.error(errno),
        }
    }

    fn forget(&self, _request: &Request, number: INodeNo, count: u64) {
        self.nodes.forget(number.0, count);
    }

    fn getattr(&self, _request: &Request, number: INodeNo, _handle: Option<FileHandle>, reply: ReplyAttr) {
        match self.found(number) {
            Ok(Found { attributes, valid }) => reply.attr(&valid, &attributes),
            Err(errno) => reply.error(errno),
        }
    }

    fn readlink(&self, _request: &Request, number: INodeNo, reply: ReplyData) {
        match self.link_target(number) {
            Ok(target) => reply.data(&target),
            Err(errno) => reply.error(errno),
        }
    }

    fn open(&self, _request: &Request, _number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        // From then on the kernel opens and closes files without asking, and keeps what it has read of them.
        reply.error(Errno::ENOSYS);
    }

    fn read(
        &self,
        _request: &Request,
        number: INodeNo,
        _handle: FileHandle,
        offset: u64,
        bytes: u32,
        _flags: OpenFlags,
        _owner: Option<LockOwner>,
        reply: ReplyData,
    ) {
        match self.read_file(number, offset, bytes) {
            Ok(read) => reply.data(&read),
            Err(errno) => reply.error(errno),
        }
    }

    fn opendir(&self, _request: &Request, number: INodeNo, _flags: OpenFlags, reply: ReplyOpen) {
        match self.open_directory(number) {
            Ok((handle, flags)) => reply.opened(FileHandle(handle), flags),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdir(&self, _request: &Request, number: INodeNo, handle: FileHandle, offset: u64, mut reply: ReplyDirectory) {
        let add = |listed: &Listed, next: u64, node: Option<Node>| {
            let at = node.map_or(number.0, |node| self.nodes.number(&node));
            reply.add(INodeNo(at), next, kind(listed), OsStr::from_bytes(listed.name()))
        };
        match self.list(number, handle, offset, add) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn readdirplus(
        &self,
        _request: &Request,
        number: INodeNo,
        handle: FileHandle,
        offset: u64,
        mut reply: ReplyDirectoryPlus,
    ) {
        let add = |listed: &Listed, next: u64, node: Option<Node>| {
            let name = OsStr::from_bytes(listed.name());
            let Some(node) = node else {
                // The kernel looks neither up.
                let attributes = self.attributes.of_folder(number.0, self.mounted);
                return reply.add(number, next, name, &Duration::ZERO, &attributes, Generation(0));
            };
            let at = self.nodes.hand_out(node);
            let Some(Found { attributes, valid }) = self.found_in_list(at, listed) else { return false };
            let is_full = reply.add(INodeNo(at), next, name, &valid, &attributes, Generation(0));
            if is_full {
                self.nodes.forget(at, 1);
            } else if let Listed::Entry(entry) = listed {
                lock(&self.entries).put(at, Arc::new(entry.clone()));
            }
            is_full
        };
        match self.list(number, handle, offset, add) {
            Ok(()) => reply.ok(),
            Err(errno) => reply.error(errno),
        }
    }

    fn releasedir(
        &self,
        _request: &Request,
        _number: INodeNo,
        handle: FileHandle,
        _flags: OpenFlags,
        reply: ReplyEmpty,
    ) {
        lock(&self.directories).remove(&handle.0);
        reply.ok();
    }

    fn getxattr(&self, _request: &Request, number: INodeNo, name: &OsStr, room: u32, reply: ReplyXattr) {
        send(self.attribute(number, name), room, reply);
    }

    fn listxattr(&self, _request: &Request, number: INodeNo, room: u32, reply: ReplyXattr) {
        send(self.attribute_names(number), room, reply);
    }
}

fn kind(listed: &Listed) -> FileType {
    match listed {
        Listed::Itself | Listed::Parent | Listed::Place(_, Place::Folder(_) | Place::Snapshot(_)) => {
            FileType::Directory
        }
        Listed::Place(_, Place::Link(_)) => FileType::Symlink,
        Listed::Entry(entry) => kind_of(entry),
    }
}

/// Sends what fits into the room, or, if that is 0, how much there is.
fn send(value: Result<Vec<u8>, Errno>, room: u32, reply: ReplyXattr) {
    match value {
        Ok(value) => match u32::try_from(value.len()) {
            Ok(bytes) if room == 0 => reply.size(bytes),
            Ok(bytes) if bytes <= room => reply.data(&value),
            _ => reply.error(Errno::ERANGE),
        },
        Err(errno) => reply.error(errno),
    }
}

//! The walk over the sources: every entry once, in catalog order (depth first, names by their bytes, a directory before
//! what it holds), with bounded memory: one sorted list of names per level.
//!
//! The walk goes from open directory to name. Symbolic links are followed only above a source, where the user wrote
//! them. An entry costs two system calls, `statx` and a list of attributes, which a file may leave to whoever takes it;
//! a directory a few more. What cannot be read becomes a [`Problem`].

mod chosen;
mod place;

use super::{
    directory::{NameList, open_directory, open_way, open_without_access_time},
    exclude::Mark,
    problem::{Problem, ProblemKind},
    read_metadata::{MetadataReader, ScanDetail},
    scan_item::{FileKind, ScanEntry, ScanItem, ScanOptions, SkipReason},
    source_file::FileHandle,
    source_tree::{SourceNode, SourceTree},
    status::{NodeKind, Status},
};
use chosen::{Choice, ChosenNames};
use place::Place;
use rustix::fs::OFlags;
use rustix::io::Errno;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::{
    collections::{BTreeSet, VecDeque, btree_map},
    ffi::{CStr, CString, OsStr},
    io,
    os::fd::{AsFd, OwnedFd},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::Arc,
};

/// How many directories of the current path are kept open. Those above are opened again through `..` on the way back,
/// so that a path of any depth can be walked.
const OPEN_DIRECTORIES_MAX: usize = 256;

/// How much is shown of a path that is too long to be stored.
const SHOWN_BYTES: usize = 256;

/// Walks sources. An iterator that never fails as a whole.
pub struct Scanner {
    options: ScanOptions,
    reader: MetadataReader,
    nested: BTreeSet<Vec<u8>>,
    /// Those of the nested sources that the walk has not come to.
    unmet: BTreeSet<Vec<u8>>,
    /// Part of the sources that is walked; `None` for all.
    choice: Option<Choice>,
    /// The place at which the source is recorded; `None` for its own.
    place: Option<Place>,
    directories: Vec<WalkedDirectory>,
    /// Path of the current entry; a directory's own path is a prefix of it.
    path: Vec<u8>,
    ready: VecDeque<ScanItem>,
    buffer: Vec<u8>,
}

/// A directory of the current path.
struct WalkedDirectory {
    /// `None` while closed for want of file descriptors, or after it was lost.
    directory: Option<Arc<OwnedFd>>,
    /// Tells whether `..` leads back to it.
    status: Status,
    path_bytes: usize,
    /// The device of the source it belongs to. If that is another than its own in a walk that stays on the file systems
    /// of the sources, it only leads to a source that lies deeper.
    device: u64,
    names: Names,
}

enum Names {
    /// At or below a source: all the directory holds, and the index of the next.
    Listed(NameList, usize),
    /// Above a source: only what leads to sources.
    Given(btree_map::IntoIter<CString, SourceNode>),
    /// At or below a source: only what leads to what was chosen.
    Chosen(ChosenNames),
}

/// A name about to be visited.
enum Visit {
    Listed(CString),
    Source(CString),
    Above(CString, SourceNode),
    Chosen(CString),
}

impl Iterator for Scanner {
    type Item = ScanItem;

    fn next(&mut self) -> Option<ScanItem> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                return Some(self.as_recorded(item));
            }
            let Some(open) = self.directories.last_mut() else {
                return self.next_unmet();
            };
            match open.names.next() {
                None => self.leave(),
                Some(visit) => self.visit(visit),
            }
        }
    }
}

impl Iterator for Names {
    type Item = Visit;

    fn next(&mut self) -> Option<Visit> {
        match self {
            Self::Listed(list, next) => {
                let name = list.get(*next)?.to_owned();
                *next += 1;
                Some(Visit::Listed(name))
            }
            Self::Given(nodes) => {
                let (name, node) = nodes.next()?;
                Some(if node.is_source { Visit::Source(name) } else { Visit::Above(name, node) })
            }
            Self::Chosen(names) => names.next().map(Visit::Chosen),
        }
    }
}

impl Scanner {
    /// Begins a walk over the sources: made absolute, cleaned, and merged where they overlap. Of the directories above
    /// a source, only their metadata is kept.
    ///
    /// # Errors
    /// An empty path, one with a NUL byte, or a relative one while the working directory is gone. A source that does
    /// not exist is a [`Problem`] of the walk.
    pub fn new(sources: &[PathBuf], options: ScanOptions) -> io::Result<Self> {
        super::raise_open_file_limit();
        let SourceTree { root, nested } = SourceTree::new(sources)?;
        let reader = MetadataReader::new(options.detail);
        let (directories, path, ready) = (Vec::new(), Vec::new(), VecDeque::new());
        let (choice, place, buffer) = (None, None, Vec::new());
        let unmet = nested.clone();
        let mut scanner = Self { options, reader, nested, unmet, choice, place, directories, path, ready, buffer };
        scanner.report_missing_nested();
        scanner.enter_root(root);
        Ok(scanner)
    }

    /// Sources inside others are met on the walk, unless they do not exist: that is found out here.
    fn report_missing_nested(&mut self) {
        for path in &self.nested {
            let found = std::fs::symlink_metadata(Path::new("/").join(OsStr::from_bytes(path)));
            if let (Err(error), Ok(path)) = (found, EntryPath::new(path.clone()))
                && matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
            {
                self.unmet.remove(path.as_bytes());
                self.ready.push_back(ScanItem::Problem(Problem::entry(&path, ProblemKind::SourceMissing, error)));
            }
        }
    }

    /// A source inside another one to which the walk of that did not come.
    fn next_unmet(&mut self) -> Option<ScanItem> {
        let reason =
            "the walk of the source around it did not come there; symbolic links inside a source are not followed";
        while let Some(path) = self.unmet.pop_first() {
            // A longer path was told of on the way.
            if let Ok(path) = EntryPath::new(path) {
                return Some(ScanItem::Problem(Problem::entry(&path, ProblemKind::SourceMissing, reason)));
            }
        }
        None
    }

    /// Tells whether a path is a source inside another one, or leads to one.
    fn leads_to_nested(&self, path: &EntryPath) -> bool {
        let path = path.as_bytes();
        self.nested.contains(path) || self.nested.iter().any(|source| is_inside(source, path))
    }

    fn is_border(&self, status: &Status, device: Option<u64>) -> bool {
        self.options.one_file_system && device.is_some_and(|device| device != status.device)
    }

    /// The device that what a directory holds is held against. Beyond a border that is the outer source's until a
    /// source is met.
    fn device_inside(&self, path: &EntryPath, status: &Status, device: Option<u64>) -> u64 {
        let is_own = self.is_border(status, device) && self.nested.contains(path.as_bytes());
        device.filter(|_| !is_own).unwrap_or(status.device)
    }

    fn enter_root(&mut self, root: SourceNode) {
        let open = if root.is_source { open_directory } else { open_way };
        let opened = open(rustix::fs::CWD, c"/").and_then(|directory| Ok((Status::of(&directory)?, directory)));
        match opened {
            Ok((status, directory)) if root.is_source && self.choice.is_some() => {
                self.enter_chosen_root(directory, status);
            }
            Ok((status, directory)) if root.is_source => self.enter_listed(Arc::new(directory), status, status.device),
            Ok((status, directory)) => {
                let names = Names::Given(root.children.into_iter());
                self.push_frame(Arc::new(directory), status, status.device, names);
            }
            Err(error) => {
                let problem = Problem::root(ProblemKind::SourceMissing, io::Error::from(error));
                self.ready.push_back(ScanItem::Problem(problem));
            }
        }
    }

    fn visit(&mut self, visit: Visit) {
        let Some(open) = self.directories.last() else { return };
        let Some(directory) = open.directory.clone() else {
            return;
        };
        let (path_bytes, device) = (open.path_bytes, open.device);
        let is_way = self.options.one_file_system && open.status.device != device;
        let visit = match visit {
            Visit::Source(name) if self.place.is_some() => return self.visit_placed(&directory, name),
            visit => visit,
        };
        let (Visit::Listed(name) | Visit::Source(name) | Visit::Above(name, _) | Visit::Chosen(name)) = &visit;
        self.path.truncate(path_bytes);
        if path_bytes > 0 {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name.to_bytes());
        let Some(path) = self.entry_path() else { return };
        if is_way && !self.leads_to_nested(&path) {
            let is_chosen = matches!(visit, Visit::Chosen(_));
            let why = SkipReason::OtherFilesystem;
            return self.ready.push_back(if is_chosen {
                ScanItem::Anew { path }
            } else {
                ScanItem::Skipped { path, why }
            });
        }
        match visit {
            Visit::Listed(name) => self.visit_listed(&directory, name, path, Some(device)),
            Visit::Source(name) if self.choice.is_some() => self.visit_chosen(&directory, name, path, None),
            Visit::Source(name) => self.visit_listed(&directory, name, path, None),
            Visit::Chosen(name) => self.visit_chosen(&directory, name, path, Some(device)),
            Visit::Above(..) if !self.leads_to_chosen(&path) => {}
            Visit::Above(name, node) => self.visit_above(&directory, &name, path, node),
        }
    }

    /// The current path; reported if it cannot be stored.
    fn entry_path(&mut self) -> Option<EntryPath> {
        match EntryPath::new(self.path.clone()) {
            Ok(path) => Some(path),
            Err(error) => {
                let beginning = self.path.get(..SHOWN_BYTES).unwrap_or(&self.path);
                let shown = format!("/{}...", String::from_utf8_lossy(beginning));
                let problem = Problem::object(shown, ProblemKind::PathTooLong, error);
                self.ready.push_back(ScanItem::Problem(problem));
                None
            }
        }
    }

    /// A directory above sources: its metadata, and then what leads to sources.
    fn visit_above(&mut self, parent: &OwnedFd, name: &CStr, path: EntryPath, node: SourceNode) {
        let opened = open_way(parent, name).and_then(|directory| Ok((Status::of(&directory)?, directory)));
        let (status, directory) = match opened {
            Ok(opened) => opened,
            Err(error) => return self.report_missing(&path, node, &error.into()),
        };
        if self.place.is_none() {
            let (metadata, outcome) = self.reader.read(directory.as_fd(), c".", &status);
            self.report_attributes(&path, outcome);
            self.ready.push_back(ScanItem::Entry(ScanEntry { path, metadata, kind: FileKind::Directory }));
        }
        self.push_frame(Arc::new(directory), status, status.device, Names::Given(node.children.into_iter()));
    }

    /// Every source below a directory that cannot be entered.
    fn report_missing(&mut self, path: &EntryPath, node: SourceNode, error: &io::Error) {
        if node.is_source {
            let problem = Problem::entry(path, ProblemKind::SourceMissing, error);
            return self.ready.push_back(ScanItem::Problem(problem));
        }
        for (name, node) in node.children {
            if let Ok(path) = path.join(name.to_bytes()) {
                self.report_missing(&path, node, error);
            }
        }
    }

    /// An entry at or below a source. `device` is that of the source; `None` for the source itself.
    fn visit_listed(&mut self, directory: &Arc<OwnedFd>, name: CString, path: EntryPath, device: Option<u64>) {
        self.unmet.remove(path.as_bytes());
        let status = match Status::at(directory, &name) {
            Ok(status) => status,
            Err(error) => {
                let kind = match (device, error) {
                    (None, _) => ProblemKind::SourceMissing,
                    (_, Errno::NOENT) => ProblemKind::Vanished,
                    _ => ProblemKind::Unreadable,
                };
                return self.report(&path, kind, &error.into());
            }
        };
        if let Some(why) = self.skip_reason(&path, &status, device) {
            if matches!(why, SkipReason::Excluded | SkipReason::OwnFolder) {
                // Whoever excludes a directory excludes the sources inside it.
                self.unmet.retain(|source| !is_inside(source, path.as_bytes()));
            }
            return self.ready.push_back(ScanItem::Skipped { path, why });
        }
        let (metadata, outcome) = self.reader.read(directory.as_fd(), &name, &status);
        if outcome == Err(Errno::NOENT) {
            return self.report(&path, ProblemKind::Vanished, &Errno::NOENT.into());
        }
        self.report_attributes(&path, outcome);
        if status.kind == NodeKind::Directory {
            return self.visit_directory(directory, &name, path, metadata, &status, device);
        }
        match self.file_kind(directory, name, &status) {
            Ok(kind) => self.ready.push_back(ScanItem::Entry(ScanEntry { path, metadata, kind })),
            Err(error) => self.report(&path, ProblemKind::Unreadable, &error.into()),
        }
    }

    fn visit_directory(
        &mut self,
        parent: &OwnedFd,
        name: &CStr,
        path: EntryPath,
        metadata: Metadata,
        status: &Status,
        device: Option<u64>,
    ) {
        let kind = FileKind::Directory;
        self.ready.push_back(ScanItem::Entry(ScanEntry { path: path.clone(), metadata, kind }));
        if self.is_border(status, device) && !self.leads_to_nested(&path) {
            return self.ready.push_back(ScanItem::Skipped { path, why: SkipReason::OtherFilesystem });
        }
        let opened = open_directory(parent, name).and_then(|directory| Ok((Status::of(&directory)?, directory)));
        match opened {
            Ok((found, directory)) if found.is_same_inode(status) => {
                let device = self.device_inside(&path, status, device);
                self.enter_listed(Arc::new(directory), found, device);
            }
            Ok(_) => self.report(&path, ProblemKind::Replaced, &io::Error::other("another directory has its name now")),
            Err(error) => self.report(&path, ProblemKind::Unreadable, &error.into()),
        }
    }

    fn skip_reason(&self, path: &EntryPath, status: &Status, device: Option<u64>) -> Option<SkipReason> {
        let is_directory = status.kind == NodeKind::Directory;
        if self.options.exclude.matches(path.as_bytes(), is_directory) {
            return Some(SkipReason::Excluded);
        }
        let is_elsewhere = self.is_border(status, device);
        match status.kind {
            NodeKind::Socket => Some(SkipReason::Socket),
            NodeKind::Unknown => Some(SkipReason::UnknownKind),
            NodeKind::File if self.options.exclude.is_too_large(status.size) => Some(SkipReason::TooLarge),
            NodeKind::Directory if self.options.exclude.is_own(status.device, status.inode) => {
                Some(SkipReason::OwnFolder)
            }
            NodeKind::Directory => None,
            _ if is_elsewhere && !self.nested.contains(path.as_bytes()) => Some(SkipReason::OtherFilesystem),
            _ => None,
        }
    }

    fn file_kind(&mut self, directory: &Arc<OwnedFd>, name: CString, status: &Status) -> rustix::io::Result<FileKind> {
        let (major, minor) = (status.special_major, status.special_minor);
        Ok(match status.kind {
            NodeKind::Symlink if self.reader.detail() == ScanDetail::StatusOnly => {
                FileKind::Symlink { target: Vec::new() }
            }
            NodeKind::Symlink => {
                FileKind::Symlink { target: rustix::fs::readlinkat(directory, &name, Vec::new())?.into_bytes() }
            }
            NodeKind::Fifo => FileKind::Fifo,
            NodeKind::CharDevice => FileKind::CharDevice { major, minor },
            NodeKind::BlockDevice => FileKind::BlockDevice { major, minor },
            // Directories, sockets and unknown kinds went another way before.
            _ => {
                let xattrs_later = self.reader.leaves_xattrs(directory.as_fd(), status);
                let handle = FileHandle::new(directory.clone(), name, status, xattrs_later);
                FileKind::File { size: status.size, handle }
            }
        })
    }

    /// Reads the names of the directory whose path is the current one, and goes on with them.
    fn enter_listed(&mut self, directory: Arc<OwnedFd>, status: Status, device: u64) {
        let (mut names, outcome) = NameList::read(&directory, &mut self.buffer);
        if let Err(error) = outcome {
            let path = EntryPath::new(self.path.clone()).ok();
            let problem = Problem::at(path.as_ref(), ProblemKind::Unreadable, io::Error::from(error));
            self.ready.push_back(ScanItem::Problem(problem));
        }
        let mut marks = self.options.exclude.marks().iter();
        if let Some(mark) = marks.find_map(|mark| present(mark, &directory, |name| names.contains(name))) {
            names.keep_only(&mark);
            self.unmet.retain(|source| !is_inside(source, &self.path));
            if let Ok(path) = EntryPath::new(self.path.clone()) {
                self.ready.push_back(ScanItem::Skipped { path, why: SkipReason::Marked });
            }
        }
        self.push_frame(directory, status, device, Names::Listed(names, 0));
    }

    fn push_frame(&mut self, directory: Arc<OwnedFd>, status: Status, device: u64, names: Names) {
        let path_bytes = self.path.len();
        self.directories.push(WalkedDirectory { directory: Some(directory), status, path_bytes, device, names });
        if let Some(far) = self.directories.len().checked_sub(OPEN_DIRECTORIES_MAX + 1)
            && let Some(open) = self.directories.get_mut(far)
        {
            open.directory = None;
        }
    }

    /// Goes back to the directory above, opening it again if it was closed.
    fn leave(&mut self) {
        let Some(left) = self.directories.pop() else { return };
        let Some(open) = self.directories.last_mut() else { return };
        if open.directory.is_some() {
            return;
        }
        let reopened = left.directory.as_ref().and_then(|below| open_way(below, c"..").ok());
        let is_same = |directory: &OwnedFd| Status::of(directory).is_ok_and(|found| found.is_same_inode(&open.status));
        open.directory = reopened.filter(is_same).map(Arc::new);
        if open.directory.is_none() {
            open.names = Names::Listed(NameList::default(), 0);
            let path = self.path.get(..open.path_bytes).and_then(|path| EntryPath::new(path).ok());
            let reason = "it was moved during the backup; the rest of what it holds is missing";
            self.ready.push_back(ScanItem::Problem(Problem::at(path.as_ref(), ProblemKind::Unreadable, reason)));
        }
    }

    fn report(&mut self, path: &EntryPath, kind: ProblemKind, error: &io::Error) {
        self.ready.push_back(ScanItem::Problem(Problem::entry(path, kind, error)));
    }

    fn report_attributes(&mut self, path: &EntryPath, outcome: rustix::io::Result<()>) {
        if let Err(error) = outcome {
            self.ready.push_back(ScanItem::Problem(Problem::xattrs(path, &error.into())));
        }
    }
}

/// Tells whether a source lies inside a directory; both are catalog paths, and that of the root is empty.
fn is_inside(source: &[u8], directory: &[u8]) -> bool {
    let rest = source.strip_prefix(directory);
    directory.is_empty() || rest.is_some_and(|rest| rest.first() == Some(&b'/'))
}

/// The name of the mark, if the directory carries it.
fn present(mark: &Mark, directory: &OwnedFd, is_there: impl Fn(&CStr) -> bool) -> Option<CString> {
    let name = CString::new(mark.name.as_slice()).ok()?;
    let is_there = is_there(&name) && (mark.header.is_empty() || begins_with(directory, &name, &mark.header));
    is_there.then_some(name)
}

fn begins_with(directory: &OwnedFd, name: &CStr, header: &[u8]) -> bool {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(file) = open_without_access_time(directory, name, flags) else {
        return false;
    };
    let mut found = Vec::new();
    let length = header.len() as u64;
    std::fs::File::from(file).take(length).read_to_end(&mut found).is_ok() && found == header
}

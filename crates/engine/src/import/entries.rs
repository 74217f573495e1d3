//! The members of an archive as entries of a backup, in catalog order.

use super::index::{Index, path_of};
use super::member::{self, Fault, Found, Member, MemberKind};
use super::records::Records;
use super::sparse;
use super::{ImportOptions, TarArchive};
use crate::EngineError;
use crate::backup::source::{
    ContentReader, Described, EntrySource, FileContent, SourceEntry, SourceItem, SourceKind, Span, Unread,
};
use crate::fs::{Extent, Problem, ProblemKind, ScanItem};
use siltstone_store::Time;
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Mode of a directory that the archive has only by the names below it.
const DIRECTORY_MODE: u32 = 0o755;

/// Members in catalog order.
pub(super) struct Members {
    archive: String,
    file: Arc<File>,
    index: Arc<Index>,
    below: Option<EntryPath>,
    /// Time of directories that the archive has only by the names below them.
    time: Time,
    /// The name that comes next.
    next: usize,
    /// The path of the last directory given, from which those above the next entry are told.
    open: Option<EntryPath>,
    /// Members with several names of which one was given, and the number of inode that they got.
    begun: HashMap<u64, u64>,
    ahead: VecDeque<SourceItem>,
}

impl Members {
    pub(super) fn new(archive: &TarArchive, mut index: Index, options: &ImportOptions) -> Self {
        let problems = index.take_problems().into_iter();
        let ahead = problems.map(|problem| SourceItem::Aside(ScanItem::Problem(problem))).collect();
        Self {
            archive: archive.name.clone(),
            file: archive.file.clone(),
            index: Arc::new(index),
            below: options.below.clone(),
            time: options.backup.time.unwrap_or_default(),
            next: 0,
            open: None,
            begun: HashMap::new(),
            ahead,
        }
    }

    /// Puts the next name into what is to be given, behind the directories above it that the archive does not have.
    fn take(&mut self) -> Result<bool, Fault> {
        let Some(place) = self.index.place(self.next) else { return Ok(false) };
        self.next += 1;
        let (at, is_own) = (place.at, place.is_own);
        let path = EntryPath::new(place.path).map_err(|error| Fault::new(at, error.to_string()))?;
        let changed = || Fault::new(at, "the archive changed while it was read");
        let Found::Member(member) = member::read(&self.file, at, self.index.globals_at(at))?.0 else {
            return Err(changed());
        };
        if is_own && path_of(&member.name, self.below.as_ref()).ok().flatten().as_ref() != Some(&path) {
            return Err(changed());
        }
        self.add_above(&path);
        let has_names_below = self.index.place(self.next).is_some_and(|next| {
            next.path.strip_prefix(path.as_bytes()).is_some_and(|rest| rest.first() == Some(&b'/'))
        });
        let is_directory = matches!(member.kind, MemberKind::Directory);
        if has_names_below && !is_directory {
            let reason = "the archive has names below it, so it is kept as a directory";
            let problem = Problem::entry(&path, ProblemKind::NotImported, reason);
            self.ahead.push_back(SourceItem::Aside(ScanItem::Problem(problem)));
            self.add_directory(path);
            return Ok(true);
        }
        if is_directory {
            self.open = Some(path.clone());
        }
        let entry = self.entry(path, at, *member)?;
        self.ahead.push_back(SourceItem::Entry(entry));
        Ok(true)
    }

    /// Adds the directories above a path that were not given.
    fn add_above(&mut self, path: &EntryPath) {
        let is_open =
            |above: &EntryPath| self.open.as_ref().is_some_and(|open| open == above || open.is_beneath(above));
        let above = std::iter::successors(path.parent(), EntryPath::parent);
        let mut missing: Vec<EntryPath> = above.take_while(|above| !is_open(above)).collect();
        missing.reverse();
        for path in missing {
            self.add_directory(path);
        }
    }

    fn add_directory(&mut self, path: EntryPath) {
        let (modified, changed) = (self.time, self.time);
        let metadata = Metadata { mode: DIRECTORY_MODE, modified, changed, links: 1, ..Metadata::default() };
        self.open = Some(path.clone());
        let kind = SourceKind::Other(Content::Directory);
        self.ahead.push_back(SourceItem::Entry(SourceEntry { path, metadata, kind }));
    }

    fn entry(&mut self, path: EntryPath, at: u64, member: Member) -> Result<SourceEntry, Fault> {
        let Member { mut metadata, kind, content_at, stored_bytes, .. } = member;
        let names = self.index.names_of(at);
        let mut is_link = false;
        if names > 1 {
            // Of the first name, so that the member has the same number wherever it stands in the next archive.
            let mut number = [0; 8];
            blake3::Hasher::new().update(path.as_bytes()).finalize_xof().fill(&mut number);
            is_link = self.begun.contains_key(&at);
            metadata.links = names;
            metadata.inode = *self.begun.entry(at).or_insert(u64::from_le_bytes(number));
        }
        let kind = match kind {
            MemberKind::File { size, sparse } => {
                let stored = match sparse {
                    None => Stored::Plain { at: content_at, bytes: stored_bytes },
                    Some(_) => Stored::Sparse { member_at: at },
                };
                let content = Box::new(MemberContent { file: self.file.clone(), index: self.index.clone(), stored });
                SourceKind::File {
                    size,
                    unread: Unread::Described(Described { content, is_unchanged: false, is_link }),
                }
            }
            MemberKind::Directory => SourceKind::Other(Content::Directory),
            MemberKind::Symlink { target } => SourceKind::Other(Content::Symlink { target }),
            MemberKind::Fifo => SourceKind::Other(Content::Fifo),
            MemberKind::CharDevice { major, minor } => SourceKind::Other(Content::CharDevice { major, minor }),
            MemberKind::BlockDevice { major, minor } => SourceKind::Other(Content::BlockDevice { major, minor }),
            MemberKind::Link { .. } | MemberKind::Unknown(_) => {
                return Err(Fault::new(at, "the archive changed while it was read"));
            }
        };
        Ok(SourceEntry { path, metadata, kind })
    }
}

impl EntrySource for Members {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        if self.ahead.is_empty() && !self.take().map_err(|fault| fault.of(&self.archive))? {
            return Ok(None);
        }
        Ok(self.ahead.pop_front())
    }
}

/// Where the content of a member lies.
enum Stored {
    Plain {
        at: u64,
        bytes: u64,
    },
    /// Headers and map, which may be large, are read when it is opened.
    Sparse {
        member_at: u64,
    },
}

/// Content of a member.
struct MemberContent {
    file: Arc<File>,
    index: Arc<Index>,
    stored: Stored,
}

impl FileContent for MemberContent {
    fn open<'c>(&'c self, _: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>> {
        let (data, data_at, size) = match self.stored {
            Stored::Plain { at, bytes } => (vec![Extent { offset: 0, bytes }], at, bytes),
            Stored::Sparse { member_at } => {
                self.map(member_at, self.index.globals_at(member_at)).map_err(|fault| invalid(&fault))?
            }
        };
        Ok(Box::new(MemberReader {
            file: &self.file,
            data: data.into_iter(),
            next: None,
            at: 0,
            data_at,
            left: 0,
            size,
        }))
    }
}

impl MemberContent {
    /// Where data lies in a file with holes and in the archive, and the length of the file.
    fn map(&self, member_at: u64, globals: &Records) -> Result<(Vec<Extent>, u64, u64), Fault> {
        if let Found::Member(member) = member::read(&self.file, member_at, globals)?.0 {
            let mut member = *member;
            let kind = std::mem::replace(&mut member.kind, MemberKind::Fifo);
            if let MemberKind::File { size, sparse: Some(sparse) } = kind {
                let (data, data_at) = sparse::extents(&self.file, &member, size, sparse)?;
                return Ok((data, data_at, size));
            }
        }
        Err(Fault::new(member_at, "the archive changed while it was read"))
    }
}

fn invalid(fault: &Fault) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("byte {} of the archive: {}", fault.at, fault.reason))
}

/// Reads the data of a member part by part.
struct MemberReader<'f> {
    file: &'f File,
    data: std::vec::IntoIter<Extent>,
    /// Data behind the hole that was given last.
    next: Option<Extent>,
    /// Where in the file the reader is.
    at: u64,
    /// Where in the archive the next data lies, and how much of it belongs to the current part.
    data_at: u64,
    left: u64,
    size: u64,
}

impl ContentReader for MemberReader<'_> {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        // What was not read of the part before.
        self.data_at += self.left;
        self.left = 0;
        let part = self.next.take().or_else(|| self.data.next().filter(|part| part.bytes > 0));
        let begin = part.map_or(self.size, |part| part.offset);
        if begin > self.at {
            let hole = begin - self.at;
            (self.at, self.next) = (begin, part);
            return Ok(Some(Span::Hole(hole)));
        }
        Ok(part.map(|part| {
            (self.at, self.left) = (part.end(), part.bytes);
            Span::Data(part.bytes)
        }))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let read = self.file.read_at(&mut buffer[..wanted], self.data_at)?;
        if read == 0 && wanted > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the archive became shorter while it was read"));
        }
        self.data_at += read as u64;
        self.left -= read as u64;
        Ok(read)
    }
}

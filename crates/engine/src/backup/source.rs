//! Sources of a backup: entries in the order of the catalog, and the content of each file for whoever comes to read it.
//!
//! A walk of the file system is one source; a snapshot of another repository is another, an archive a third. The planner
//! takes entries from an [`EntrySource`] and readers take content from a [`ContentReader`]; neither knows where these
//! come from. Whoever has another kind of source gives it as [`Source::Entries`](super::Source::Entries).
//!
//! A file on disk tells by its status whether it changed and which names it has. Any other source says so itself
//! ([`Described`]), for only it knows what its entries were made of.

use crate::EngineError;
use crate::fs::{Extent, FileHandle, FileKind, Problem, ScanEntry, ScanItem, Scanner, SourceFile};
use crossbeam_channel::Receiver;
use siltstone_store::SnapshotId;
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use std::io::{self, Read};

/// Bytes of two files that are compared at once.
const COMPARED_BYTES: usize = 256 << 10;

/// Gives the entries of a source, in the order of the catalog: that of [`EntryPath`], each path once, and each directory
/// before what is beneath it.
pub trait EntrySource: Send {
    /// Returns the next item; `None` at the end.
    ///
    /// # Errors
    /// The source cannot be read any further, so that no snapshot can be made of it.
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError>;
}

/// Item that a source gives.
pub enum SourceItem {
    /// An entry.
    Entry(SourceEntry),
    /// Something a walk met that is no entry.
    Aside(ScanItem),
}

/// An entry of a source.
pub struct SourceEntry {
    /// Its path in the catalog.
    pub path: EntryPath,
    /// Metadata of its inode.
    pub metadata: Metadata,
    /// Kind of the file.
    pub kind: SourceKind,
}

/// Kind of a file that a source gives.
pub enum SourceKind {
    /// A regular file, still to be read unless it is unchanged.
    File {
        /// Length in bytes, holes included.
        size: u64,
        /// Its content.
        unread: Unread,
    },
    /// Anything else.
    Other(Content),
}

/// A file's content before it is read.
pub enum Unread {
    /// A file on disk, which its status describes.
    OnDisk(FileHandle),
    /// Content that the source describes.
    Described(Described),
}

/// Content that a source describes.
pub struct Described {
    /// To open it.
    pub content: Box<dyn FileContent>,
    /// True if the series' last whole snapshot has the same content at this path.
    pub is_unchanged: bool,
    /// True if content and metadata are those of the entry of the same device and inode that came last.
    pub is_link: bool,
}

/// Content of a file, opened by whichever thread comes to it.
pub trait FileContent: Send {
    /// Opens the file of this path for reading from front to back.
    ///
    /// # Errors
    /// It cannot be read.
    fn open<'c>(&'c self, path: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>>;

    /// Tells whether these bytes, to their end, are the file's, holes as zeros. Unless the source knows a better way,
    /// both are read until they differ.
    ///
    /// # Errors
    /// Either cannot be read.
    fn is_same_as(&self, path: &EntryPath, bytes: &mut dyn Read) -> io::Result<bool> {
        let mut reader = self.open(path)?;
        let (mut own, mut others) = (vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]);
        while let Some(span) = reader.next_span()? {
            let mut left = match span {
                Span::Hole(bytes) | Span::Data(bytes) => bytes,
            };
            while left > 0 {
                let most = usize::try_from(left).map_or(COMPARED_BYTES, |left| left.min(COMPARED_BYTES));
                let count = match span {
                    Span::Hole(_) => {
                        own[..most].fill(0);
                        most
                    }
                    Span::Data(_) => reader.read(&mut own[..most])?,
                };
                if count == 0 {
                    break;
                }
                match bytes.read_exact(&mut others[..count]) {
                    Ok(()) if own[..count] == others[..count] => left -= count as u64,
                    Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                    _ => return Ok(false),
                }
            }
        }
        Ok(bytes.read(&mut others)? == 0)
    }
}

/// Reads a file from front to back, span by span.
pub trait ContentReader {
    /// Goes on to the next span; `None` at the end of the file.
    ///
    /// # Errors
    /// Nothing that follows can be read.
    fn next_span(&mut self) -> io::Result<Option<Span>>;

    /// Reads some bytes of the current span of data; 0 at its end.
    ///
    /// # Errors
    /// Nothing that follows can be read.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize>;
}

/// A stretch of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Span {
    /// Bytes that were never written; at least 1.
    Hole(u64),
    /// Data of at most this many bytes, to be read.
    Data(u64),
}

/// Entries of a source that describes its files, for one snapshot.
pub struct DescribedEntries {
    /// The entries.
    pub entries: Box<dyn EntrySource>,
    /// The snapshot that unchanged files are unchanged since. If it is not the series' last whole one, all are read.
    pub base: Option<SnapshotId>,
}

impl EntrySource for Scanner {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        Ok(self.next().map(|item| match item {
            ScanItem::Entry(found) => SourceItem::Entry(found.into()),
            other => SourceItem::Aside(other),
        }))
    }
}

/// Entries that another thread makes. It ends when the sender is dropped.
impl EntrySource for Receiver<Result<SourceEntry, EngineError>> {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        self.recv().ok().map(|entry| entry.map(SourceItem::Entry)).transpose()
    }
}

impl From<ScanEntry> for SourceEntry {
    fn from(ScanEntry { path, metadata, kind }: ScanEntry) -> Self {
        let kind = match kind {
            FileKind::File { size, handle } => SourceKind::File { size, unread: Unread::OnDisk(handle) },
            FileKind::Directory => SourceKind::Other(Content::Directory),
            FileKind::Symlink { target } => SourceKind::Other(Content::Symlink { target }),
            FileKind::Fifo => SourceKind::Other(Content::Fifo),
            FileKind::CharDevice { major, minor } => SourceKind::Other(Content::CharDevice { major, minor }),
            FileKind::BlockDevice { major, minor } => SourceKind::Other(Content::BlockDevice { major, minor }),
        };
        Self { path, metadata, kind }
    }
}

/// Reads the stretches of data of a file on disk, up to its size at opening.
pub(super) struct DiskReader<'f, E> {
    file: &'f SourceFile,
    extents: E,
    /// Data behind the hole that was given last.
    pending: Option<Extent>,
    at: u64,
    /// End of the current span of data.
    data_ends: u64,
}

/// Opens a file on disk as the content it has.
pub(super) fn disk_reader(file: &SourceFile) -> DiskReader<'_, impl Iterator<Item = io::Result<Extent>> + '_> {
    DiskReader { file, extents: file.data_extents(), pending: None, at: 0, data_ends: 0 }
}

impl<E> DiskReader<'_, E> {
    fn begin_data(&mut self) -> Option<Span> {
        let extent = self.pending.take()?;
        self.data_ends = extent.end();
        Some(Span::Data(extent.bytes))
    }
}

impl<E: Iterator<Item = io::Result<Extent>>> ContentReader for DiskReader<'_, E> {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        if self.pending.is_some() {
            return Ok(self.begin_data());
        }
        if self.at < self.data_ends {
            // It has become shorter.
            return Ok(None);
        }
        self.pending = self.extents.next().transpose()?;
        let begins = self.pending.map_or(self.file.size(), |extent| extent.offset);
        let hole = begins.saturating_sub(self.at);
        self.at = self.at.max(begins);
        Ok(if hole > 0 { Some(Span::Hole(hole)) } else { self.begin_data() })
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.at)?;
        self.at += count as u64;
        Ok(count)
    }
}

/// A file that was read: its length, the bytes read, and what is wrong with it all the same.
pub(super) struct FileRead {
    pub(super) size: u64,
    pub(super) read_bytes: u64,
    pub(super) problem: Option<Problem>,
}

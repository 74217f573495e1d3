//! A source that nobody has to keep: a tree whose files are made while they are read, each version of it from its
//! number alone.

use siltstone_engine::EngineError;
use siltstone_engine::backup::source::{
    ContentReader, Described, DescribedEntries, EntrySource, FileContent, SourceEntry, SourceItem, SourceKind, Span,
    Unread,
};
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use siltstone_store::{SnapshotId, Time};
use siltstone_testbed::deterministic::Sequence;
use std::io;

/// The folder that holds the tree.
pub(super) const ROOT: &str = "tree";
/// Files in a folder.
pub(super) const FILES_IN_FOLDER: u64 = 1000;
/// Folders of files in a folder.
const FOLDERS_IN_FOLDER: u64 = 100;
/// Number of files of which one changes from a version to the next.
const CHANGING: u64 = 100;
/// Bytes that an edit puts into the middle of a file.
const EDIT_BYTES: u64 = 700;
/// Content comes in blocks of this length, each of which repeats some random bytes.
const BLOCK_BYTES: usize = 4096;
/// A moment that the first version's files are of.
const BEGIN_SECONDS: i64 = 1_700_000_000;
/// Seeds of what is drawn.
const SIZES: u64 = 1;
const BODY: u64 = 2;
const EDIT: u64 = 3;

/// A tree of many files, in versions: each changes one of [`CHANGING`] files. Of those every other one is edited, and
/// the rest have nothing in common with what they were.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tree {
    /// Files.
    pub(super) files: u64,
    /// Mean of their lengths, bytes.
    pub(super) file_bytes: u64,
    /// Times that content can be made smaller by a compressor, about: what is stored has to fit somewhere.
    pub(super) shrink: u64,
}

/// A file of a version.
#[derive(Clone, Copy, Debug)]
pub(super) struct File {
    tree: Tree,
    number: u64,
    /// Times it changed until then.
    changes: u64,
}

impl Tree {
    /// Returns a file of a version, counted from 0.
    pub(super) fn file(self, number: u64, version: u64) -> File {
        File { tree: self, number, changes: (1..=version).filter(|&version| changes(number, version)).count() as u64 }
    }

    /// Returns all entries of a version, for a backup. `base` is the snapshot before it, with its version.
    pub(super) fn entries(self, version: u64, base: Option<(SnapshotId, u64)>) -> DescribedEntries {
        let (id, before) = base.unzip();
        let entries = Entries { tree: self, version, before, next: 0, folders_given: 0 };
        DescribedEntries { entries: Box::new(entries), base: id }
    }

    /// Tells whether a file is the same in both versions.
    pub(super) fn is_same(self, number: u64, version: u64, other: u64) -> bool {
        self.file(number, version).changes == self.file(number, other).changes
    }
}

/// Tells whether a version changes a file.
fn changes(number: u64, version: u64) -> bool {
    number % CHANGING == version % CHANGING
}

/// One part of a file's content.
#[derive(Clone, Copy)]
struct Part {
    seed: u64,
    /// Where it begins in the bytes of that seed.
    from: u64,
    bytes: u64,
}

impl File {
    /// Returns its path in the snapshot.
    pub(super) fn path(self) -> String {
        let folder = self.number / FILES_IN_FOLDER;
        format!("{}/document-{:08}.dat", folder_path(folder), self.number)
    }

    /// Returns its length.
    pub(super) fn bytes(self) -> u64 {
        self.parts().iter().map(|part| part.bytes).sum()
    }

    /// Nine of ten files are small and one is large; both are drawn from half to one and a half of their mean.
    fn original_bytes(self) -> u64 {
        let mut drawn = Sequence::of(&[SIZES, self.number]);
        let mean = if drawn.below(10) == 0 { self.tree.file_bytes * 82 / 10 } else { self.tree.file_bytes / 5 };
        mean / 2 + drawn.below(mean.max(1))
    }

    fn is_edited(self) -> bool {
        (self.number / CHANGING).is_multiple_of(2)
    }

    fn parts(self) -> Vec<Part> {
        let bytes = self.original_bytes();
        let seed = |kind, changes| Sequence::of(&[kind, self.number, changes]).next();
        if !self.is_edited() {
            return vec![Part { seed: seed(BODY, self.changes), from: 0, bytes }];
        }
        let middle = bytes / 2;
        let edits = (1..=self.changes).map(|change| Part { seed: seed(EDIT, change), from: 0, bytes: EDIT_BYTES });
        let body = seed(BODY, 0);
        let begin = Part { seed: body, from: 0, bytes: middle };
        let end = Part { seed: body, from: middle, bytes: bytes - middle };
        std::iter::once(begin).chain(edits).chain([end]).filter(|part| part.bytes > 0).collect()
    }

    fn metadata(self) -> Metadata {
        let changed = BEGIN_SECONDS + i64::try_from(self.number % 100_000 + self.changes * 86_400).unwrap_or(0);
        let time = Time { seconds: changed, nanoseconds: 0 };
        let (inode, links) = (self.number + 1, 1);
        Metadata { mode: 0o644, modified: time, changed: time, inode, device: 1, links, ..Metadata::default() }
    }
}

fn folder_path(folder: u64) -> String {
    format!("{}/folder-{:05}", upper_path(folder / FOLDERS_IN_FOLDER), folder)
}

fn upper_path(upper: u64) -> String {
    format!("{ROOT}/part-{upper:04}")
}

/// Entries of a version, in the order of the catalog.
struct Entries {
    tree: Tree,
    version: u64,
    /// Version of the snapshot before, if there is one.
    before: Option<u64>,
    /// Number of the next file.
    next: u64,
    /// Folders above the next file that were given: the root, one of many folders, one of many files.
    folders_given: u8,
}

impl EntrySource for Entries {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        if self.next == self.tree.files {
            return Ok(None);
        }
        let folder = self.next / FILES_IN_FOLDER;
        let upper = folder / FOLDERS_IN_FOLDER;
        let path = match self.folders_given {
            0 => Some(ROOT.to_owned()),
            1 => Some(upper_path(upper)),
            2 => Some(folder_path(folder)),
            _ => None,
        };
        if let Some(path) = path {
            self.folders_given += 1;
            return Ok(Some(SourceItem::Entry(directory(&path)?)));
        }
        let file = self.tree.file(self.next, self.version);
        let is_unchanged = self.before.is_some_and(|before| self.tree.is_same(self.next, self.version, before));
        self.next += 1;
        if self.next.is_multiple_of(FILES_IN_FOLDER) {
            self.folders_given = if self.next.is_multiple_of(FILES_IN_FOLDER * FOLDERS_IN_FOLDER) { 1 } else { 2 };
        }
        let described = Described { content: Box::new(file), is_unchanged, is_link: false };
        let kind = SourceKind::File { size: file.bytes(), unread: Unread::Described(described) };
        let entry = SourceEntry { path: EntryPath::new(file.path())?, metadata: file.metadata(), kind };
        Ok(Some(SourceItem::Entry(entry)))
    }
}

fn directory(path: &str) -> Result<SourceEntry, EngineError> {
    let time = Time { seconds: BEGIN_SECONDS, nanoseconds: 0 };
    let metadata = Metadata { mode: 0o755, modified: time, changed: time, links: 1, ..Metadata::default() };
    Ok(SourceEntry { path: EntryPath::new(path)?, metadata, kind: SourceKind::Other(Content::Directory) })
}

impl FileContent for File {
    fn open<'c>(&'c self, _: &EntryPath) -> io::Result<Box<dyn ContentReader + 'c>> {
        Ok(Box::new(self.reader()))
    }
}

impl File {
    /// Tells whether these bytes are its content.
    pub(super) fn is(self, bytes: &[u8]) -> io::Result<bool> {
        let mut wanted = vec![0; bytes.len() + 1];
        let count = self.reader().read(&mut wanted)?;
        Ok(wanted[..count] == *bytes)
    }

    /// Returns a reader of its content from the front.
    fn reader(self) -> Reader {
        let (parts, bytes) = (self.parts().into_iter(), self.bytes());
        let none = Part { seed: 0, from: 0, bytes: 0 };
        Reader { shrink: self.tree.shrink, parts, part: none, untold: Some(bytes).filter(|&bytes| bytes > 0) }
    }
}

/// Makes a file's content from front to back.
struct Reader {
    shrink: u64,
    parts: std::vec::IntoIter<Part>,
    part: Part,
    /// Length of the only span, until it was given.
    untold: Option<u64>,
}

impl ContentReader for Reader {
    fn next_span(&mut self) -> io::Result<Option<Span>> {
        Ok(self.untold.take().map(Span::Data))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            if self.part.bytes == 0 {
                let Some(next) = self.parts.next() else { break };
                self.part = next;
            }
            let count = fill(self.part, self.shrink, &mut buffer[filled..]);
            self.part.from += count as u64;
            self.part.bytes -= count as u64;
            filled += count;
        }
        Ok(filled)
    }
}

/// Writes the next bytes of a part, up to the end of their block; returns how many.
fn fill(part: Part, shrink: u64, buffer: &mut [u8]) -> usize {
    let block = part.from / BLOCK_BYTES as u64;
    let at = usize::try_from(part.from % BLOCK_BYTES as u64).unwrap_or(0);
    let left = usize::try_from(part.bytes).unwrap_or(usize::MAX);
    let count = (BLOCK_BYTES - at).min(left).min(buffer.len());
    let period = (BLOCK_BYTES as u64 / shrink).max(8).next_multiple_of(8);
    let period = usize::try_from(period).unwrap_or(BLOCK_BYTES);
    let mut bytes = [0; BLOCK_BYTES];
    let mut sequence = Sequence::of(&[part.seed, block]);
    for word in bytes[..period].chunks_exact_mut(8) {
        word.copy_from_slice(&sequence.next().to_le_bytes());
    }
    let mut made = period;
    while made < BLOCK_BYTES {
        let more = made.min(BLOCK_BYTES - made);
        bytes.copy_within(..more, made);
        made += more;
    }
    buffer[..count].copy_from_slice(&bytes[at..at + count]);
    count
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(file: File) -> Vec<u8> {
        let mut reader = file.reader();
        let mut bytes = vec![0; 1 << 20];
        let count = reader.read(&mut bytes).unwrap();
        bytes.truncate(count);
        assert_eq!(count as u64, file.bytes());
        bytes
    }

    const TREE: Tree = Tree { files: 250_000, file_bytes: 20_000, shrink: 16 };

    #[test]
    fn a_file_changes_once_in_a_hundred_versions_and_every_other_one_keeps_most() {
        let of = |number, version| content(TREE.file(number, version));
        assert_eq!(of(1, 0), of(1, 0));
        assert_ne!(of(1, 0), of(2, 0));
        assert_eq!(of(2, 0), of(2, 1), "the first version changes number 1");
        assert_eq!([1, 2].map(|number| TREE.is_same(number, 0, 1)), [false, true]);
        assert!(TREE.file(2, 1).is(&of(2, 0)).unwrap() && !TREE.file(1, 1).is(&of(1, 0)).unwrap());
        let (before, after) = (of(1, 0), of(1, 1));
        let middle = before.len() / 2;
        assert_eq!(before[..middle], after[..middle]);
        assert_eq!(before[middle..], after[middle + 700..]);
        let (before, after) = (of(101, 0), of(101, 1));
        assert_ne!(before[..100], after[..100]);
    }

    #[test]
    fn content_does_not_depend_on_how_it_is_read() {
        let file = TREE.file(7, 9);
        let mut reader = file.reader();
        let mut bytes = Vec::new();
        let mut sequence = Sequence::new(4);
        loop {
            let mut buffer = vec![0; 1 + sequence.index(9000)];
            let count = reader.read(&mut buffer).unwrap();
            if count == 0 {
                break;
            }
            bytes.extend_from_slice(&buffer[..count]);
        }
        assert_eq!(bytes, content(file));
    }

    #[test]
    fn entries_come_in_the_order_of_the_catalog() {
        let mut entries = TREE.entries(0, None).entries;
        let (mut last, mut files, mut folders) = (None::<EntryPath>, 0, 0);
        while let Some(SourceItem::Entry(entry)) = entries.next_item().unwrap() {
            assert!(last.as_ref().is_none_or(|last| *last < entry.path));
            match entry.kind {
                SourceKind::File { .. } => files += 1,
                SourceKind::Other(_) => folders += 1,
            }
            last = Some(entry.path);
        }
        assert_eq!((files, folders), (TREE.files, 1 + 3 + 250));
    }
}

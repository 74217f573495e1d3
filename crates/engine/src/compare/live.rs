//! Differences between a snapshot and what lies on disk now.

use super::{Change, Difference, Seen, is_same_metadata};
use crate::file_reader::{CatalogEntries, SnapshotReader};
use crate::fs::{FileHandle, FileKind, Problem, ProblemKind, ScanEntry, ScanItem, ScanOptions, Scanner, Subject};
use crate::snapshots::SnapshotView;
use crate::{EngineError, Resources};
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::repository::Repository;
use std::cmp::Ordering;
use std::iter::Peekable;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Bytes of two files that are compared at once.
const COMPARED_BYTES: usize = 256 << 10;

/// Folders that a snapshot is compared with.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// Files and folders, by absolute paths.
    pub sources: Vec<PathBuf>,
    /// Selection of entries in them. What it leaves out is passed over in the snapshot, too.
    pub scan: ScanOptions,
    /// Files whose size, times and inode are as the snapshot has them are taken for the same, and not read.
    pub trusts_status: bool,
}

/// Shows how what lies on disk differs from a snapshot, in the order of the paths, as far as these sources reach. Files
/// of equal size are read on both sides until they differ. What could not be looked at is returned, and counts as the
/// same.
///
/// # Errors
/// Those of the repository; sources that do not exist; damage of the snapshot; whatever `visit` returns.
pub fn compare_live(
    repository: &Repository,
    snapshot: &SnapshotView,
    live: &Live,
    resources: &Resources,
    visit: &mut dyn FnMut(Difference) -> Result<(), EngineError>,
) -> Result<Vec<Problem>, EngineError> {
    let reader = SnapshotReader::open(repository, snapshot, resources)?;
    let no_source = |source| EngineError::NoSource { path: live.sources.first().cloned().unwrap_or_default(), source };
    let scanner = Scanner::new(&live.sources, live.scan.clone()).map_err(no_source)?;
    let mut walk = Walk { scanner: scanner.peekable(), problems: Vec::new(), unknown: Unknown::Nothing };
    let mut stored = Stored { entries: reader.entries(None), sources: paths_of(&live.sources)? };
    let (mut before, mut now) = (stored.next()?, walk.next());
    let mut comparing = Comparing { reader: &reader, trusts_status: live.trusts_status, problems: Vec::new() };
    loop {
        let order = match (&before, &now) {
            (None, None) => break,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(entry), Some(met)) => entry.path.cmp(met.path()),
        };
        if order.is_ge()
            && let Some(Met::Unknown(path)) = now.take_if(|met| matches!(met, Met::Unknown(_)))
        {
            // Entries may follow that are beneath it and were seen: only those that do not are unknown.
            walk.unknown.add(path);
            now = walk.next();
            continue;
        }
        let old = if order.is_le() { std::mem::replace(&mut before, stored.next()?) } else { None };
        let new = if order.is_ge() { std::mem::replace(&mut now, walk.next()) } else { None };
        let found = match (old, new) {
            (Some(old), None) if walk.unknown.holds(&old.path) => None,
            (Some(old), Some(Met::Entry { entry: mut new, has_attributes })) => {
                if !has_attributes {
                    new.metadata.xattrs.clone_from(&old.metadata.xattrs);
                }
                comparing.changed(&old, &new)?.map(|change| {
                    let (before, after) = (Some(Seen::of(&old)), Some(seen(&new.kind)));
                    Difference { path: new.path, change, before, after }
                })
            }
            (Some(old), None) => {
                let before = Some(Seen::of(&old));
                Some(Difference { path: old.path, change: Change::Removed, before, after: None })
            }
            (None, Some(Met::Entry { entry: new, .. })) => {
                let after = Some(seen(&new.kind));
                Some(Difference { path: new.path, change: Change::Added, before: None, after })
            }
            (_, Some(Met::Unknown(_)) | None) => None,
        };
        if let Some(difference) = found {
            visit(difference)?;
        }
    }
    let mut problems = walk.problems;
    problems.append(&mut comparing.problems);
    Ok(problems)
}

fn paths_of(sources: &[PathBuf]) -> Result<Vec<EntryPath>, EngineError> {
    let path = |source: &PathBuf| {
        let bytes = source.as_os_str().as_bytes();
        EntryPath::new(bytes.strip_prefix(b"/").unwrap_or(bytes)).map_err(EngineError::from)
    };
    sources.iter().filter(|source| source.parent().is_some()).map(path).collect()
}

/// Entries of the snapshot that are in the sources, or above them.
struct Stored<'s, 'r> {
    entries: CatalogEntries<'s, 'r>,
    /// The sources; all is one if there is none.
    sources: Vec<EntryPath>,
}

impl Stored<'_, '_> {
    fn next(&mut self) -> Result<Option<Entry>, EngineError> {
        for entry in self.entries.by_ref() {
            let entry = entry?;
            let reaches = |source: &EntryPath| {
                entry.path == *source || entry.path.is_beneath(source) || source.is_beneath(&entry.path)
            };
            if self.sources.is_empty() || self.sources.iter().any(reaches) {
                return Ok(Some(entry));
            }
        }
        Ok(None)
    }
}

/// Entry that a walk met.
enum Met {
    Entry {
        entry: ScanEntry,
        /// Its extended attributes could be read.
        has_attributes: bool,
    },
    /// Something that was left out or could not be looked at.
    Unknown(EntryPath),
}

impl Met {
    fn path(&self) -> &EntryPath {
        match self {
            Self::Entry { entry, .. } => &entry.path,
            Self::Unknown(path) => path,
        }
    }
}

/// The part of the sources, about the current entry, of which not all was seen.
enum Unknown {
    Nothing,
    /// Everything at this path and beneath it.
    At(EntryPath),
    All,
}

impl Unknown {
    /// Adds what is at a path and beneath it. Paths are added once the snapshot's entries have come to them: what was
    /// unknown before is over, unless the new one lies in it.
    fn add(&mut self, path: EntryPath) {
        if !self.holds(&path) {
            *self = Self::At(path);
        }
    }

    fn holds(&self, path: &EntryPath) -> bool {
        match self {
            Self::Nothing => false,
            Self::At(unknown) => path == unknown || path.is_beneath(unknown),
            Self::All => true,
        }
    }
}

/// A walk over the sources that keeps what it could not look at.
struct Walk {
    scanner: Peekable<Scanner>,
    problems: Vec<Problem>,
    unknown: Unknown,
}

impl Walk {
    fn next(&mut self) -> Option<Met> {
        loop {
            match self.scanner.next()? {
                ScanItem::Entry(entry) => return Some(Met::Entry { entry, has_attributes: true }),
                ScanItem::Skipped { path, .. } => return Some(Met::Unknown(path)),
                // What is gone was removed.
                ScanItem::Problem(problem) if problem.kind == ProblemKind::SourceMissing => {}
                ScanItem::Problem(problem) => {
                    let path = match &problem.subject {
                        Subject::Entry(path) => Some(path.clone()),
                        Subject::Root => {
                            self.unknown = Unknown::All;
                            None
                        }
                        Subject::Object(_) => None,
                    };
                    self.problems.push(problem);
                    let Some(path) = path else { continue };
                    // The entry follows if only its attributes could not be read.
                    let is_it = |item: &ScanItem| matches!(item, ScanItem::Entry(entry) if entry.path == path);
                    return Some(match self.scanner.next_if(is_it) {
                        Some(ScanItem::Entry(entry)) => Met::Entry { entry, has_attributes: false },
                        _ => Met::Unknown(path),
                    });
                }
                ScanItem::Anew { .. } => {}
            }
        }
    }
}

/// Comparing entries of the snapshot with files on disk.
struct Comparing<'s, 'r> {
    reader: &'s SnapshotReader<'r>,
    trusts_status: bool,
    problems: Vec<Problem>,
}

impl Comparing<'_, '_> {
    fn changed(&mut self, old: &Entry, new: &ScanEntry) -> Result<Option<Change>, EngineError> {
        let is_same = match (&old.content, &new.kind) {
            (Content::Directory, FileKind::Directory) | (Content::Fifo, FileKind::Fifo) => true,
            (Content::File { size: before, .. }, FileKind::File { size: after, handle }) => {
                // One that says it is empty may have content all the same.
                let may_be_same = before == after || *after == 0;
                (before == after && self.trusts(old, new))
                    || (may_be_same && self.has_same_bytes((old, *before), new, (handle, *after))?)
            }
            (Content::Symlink { target: before }, FileKind::Symlink { target: after }) => before == after,
            (Content::CharDevice { major, minor }, FileKind::CharDevice { major: after, minor: also })
            | (Content::BlockDevice { major, minor }, FileKind::BlockDevice { major: after, minor: also }) => {
                (major, minor) == (after, also)
            }
            _ => return Ok(Some(Change::Kind)),
        };
        if !is_same {
            return Ok(Some(Change::Content));
        }
        Ok((!is_same_metadata(&old.metadata, &new.metadata)).then_some(Change::Metadata))
    }

    fn trusts(&self, old: &Entry, new: &ScanEntry) -> bool {
        let (before, after) = (&old.metadata, &new.metadata);
        self.trusts_status
            && (before.modified, before.changed, before.inode) == (after.modified, after.changed, after.inode)
    }

    /// Tells whether a file has the bytes that were stored; one that cannot be read counts as unchanged. Each entry
    /// comes with its size.
    fn has_same_bytes(
        &mut self,
        (old, before): (&Entry, u64),
        new: &ScanEntry,
        (handle, after): (&FileHandle, u64),
    ) -> Result<bool, EngineError> {
        let file = match handle.open(&new.path) {
            Ok(file) => file,
            Err(problem) => {
                self.problems.push(problem);
                return Ok(true);
            }
        };
        if after == 0 && matches!(file.read_at(&mut [0], 0), Ok(0)) {
            return Ok(before == 0);
        }
        let stored = self.reader.open_file(old)?;
        let mut buffers = [vec![0; COMPARED_BYTES], vec![0; COMPARED_BYTES]];
        let mut offset = 0;
        while offset < stored.size() {
            let [here, there] = &mut buffers;
            let count = stored.fill(offset, here)?;
            if count == 0 {
                return Ok(false);
            }
            let mut read = 0;
            while let Some(rest) = there.get_mut(read..count).filter(|rest| !rest.is_empty()) {
                match file.read_on(rest) {
                    Ok(0) => return Ok(false),
                    Ok(bytes) => read += bytes,
                    Err(error) => {
                        self.problems.push(Problem::entry(&new.path, ProblemKind::Unreadable, error));
                        return Ok(true);
                    }
                }
            }
            if here.get(..count) != there.get(..count) {
                return Ok(false);
            }
            offset += count as u64;
        }
        if after > 0 {
            return Ok(true);
        }
        match file.read_on(&mut [0]) {
            Ok(count) => Ok(count == 0),
            Err(error) => {
                self.problems.push(Problem::entry(&new.path, ProblemKind::Unreadable, error));
                Ok(true)
            }
        }
    }
}

fn seen(kind: &FileKind) -> Seen {
    match kind {
        FileKind::Directory => Seen::Directory,
        FileKind::File { size, .. } => Seen::File { bytes: *size },
        _ => Seen::Other,
    }
}

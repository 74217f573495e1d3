//! Differences between two snapshots, between a snapshot and what lies on disk, and between the versions of one path:
//! `silt diff`, `silt history`.
//!
//! Of two snapshots of one series only those nodes of the catalogs are read that one has and the other lacks, so it
//! takes as long as there are differences. Snapshots of two series have no nodes in common; all of both is read.
//!
//! Files are the same if their bytes are: equal recipes say so at once, different sizes deny it, and all others are
//! read until they differ.

mod live;

pub use live::{Live, compare_live};

use crate::file_reader::{CatalogEntries, ReaderCache, SnapshotReader};
use crate::restore::manifest_of;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Resources};
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata};
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, StoreError};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::mem::discriminant;

/// A snapshot, or the part of it at or below a path.
#[derive(Clone, Debug)]
pub struct Side {
    /// The snapshot.
    pub snapshot: SnapshotView,
    /// A directory of which only what is beneath is meant, or another entry; `None` for all.
    pub below: Option<EntryPath>,
}

/// Difference between an entry and the one that was at its path.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Change {
    /// Nothing was there before.
    Added,
    /// Nothing is there any more.
    Removed,
    /// It is of another kind: a file that was a directory, say.
    Kind,
    /// Its bytes, target or device number differ; its metadata may, too.
    Content,
    /// Only owner, permissions, time or extended attributes differ.
    Metadata,
}

/// Entry at a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seen {
    /// A directory.
    Directory,
    /// A regular file.
    File {
        /// Its length, holes included.
        bytes: u64,
    },
    /// A link, a pipe or a device.
    Other,
}

impl Seen {
    fn of(entry: &Entry) -> Self {
        match entry.content {
            Content::Directory => Self::Directory,
            Content::File { size, .. } => Self::File { bytes: size },
            _ => Self::Other,
        }
    }
}

/// An entry that differs, as it is on both sides.
#[derive(Clone, Debug)]
pub struct Difference {
    /// Its path below what is compared.
    pub path: EntryPath,
    /// Way in which it differs.
    pub change: Change,
    /// Entry of the first side; `None` if it was added.
    pub before: Option<Seen>,
    /// Entry of the second side; `None` if it was removed.
    pub after: Option<Seen>,
}

/// Shows all differences between two sides, in the order of their paths. Decoded regions of files that have to be read
/// take at most an eighth of the memory.
///
/// # Errors
/// Those of the repository; [`EngineError::NoSuchPath`] for a path that a snapshot does not have; damage of a catalog,
/// or of a file that has to be read; whatever `visit` returns.
pub fn compare(
    repository: &Repository,
    first: &Side,
    second: &Side,
    resources: &Resources,
    visit: &mut dyn FnMut(Difference) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let cache = ReaderCache::of(resources);
    let reader = SnapshotReader::sharing(repository, &first.snapshot, &cache)?;
    let beside = match reader.beside(&second.snapshot) {
        Some(beside) => beside,
        None => SnapshotReader::sharing(repository, &second.snapshot, &cache)?,
    };
    let readers = [reader, beside];
    let [mut from, mut to] = parts(repository, [first, second], &readers)?;
    let (mut before, mut after) = (from.next()?, to.next()?);
    loop {
        let order = match (&before, &after) {
            (None, None) => return Ok(()),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some((before, _)), Some((after, _))) => before.cmp(after),
        };
        let old = if order.is_le() { std::mem::replace(&mut before, from.next()?) } else { None };
        let new = if order.is_ge() { std::mem::replace(&mut after, to.next()?) } else { None };
        let found = match (old, new) {
            (Some((path, old)), Some((_, new))) => {
                changed(&readers, &old, &new)?.map(|change| (path, change, Some(old), Some(new)))
            }
            (Some((path, old)), None) => Some((path, Change::Removed, Some(old), None)),
            (None, Some((path, new))) => Some((path, Change::Added, None, Some(new))),
            (None, None) => None,
        };
        if let Some((path, change, before, after)) = found {
            let [before, after] = [before, after].map(|entry| entry.as_ref().map(Seen::of));
            visit(Difference { path, change, before, after })?;
        }
    }
}

/// A snapshot in which what is at a path differs from what was there in the one before it in its series.
#[derive(Clone, Debug)]
pub struct PathChange<'v> {
    /// The first snapshot that has it so.
    pub snapshot: &'v SnapshotView,
    /// Way in which it differs.
    pub change: Change,
    /// The entry; `None` if it was removed.
    pub entry: Option<Entry>,
}

/// Shows where among these snapshots, given oldest first, what is at a path changes, series by series. Of each snapshot
/// only the way to the path is read, and files of equal size that were stored anew. Damage ends the search in a series;
/// the errors of all that were hit are returned.
///
/// # Errors
/// Those of the repository; whatever `visit` returns.
pub fn path_changes(
    repository: &Repository,
    snapshots: &[SnapshotView],
    path: &EntryPath,
    resources: &Resources,
    visit: &mut dyn FnMut(PathChange<'_>) -> Result<(), EngineError>,
) -> Result<Vec<StoreError>, EngineError> {
    let mut by_series: BTreeMap<SeriesId, Vec<&SnapshotView>> = BTreeMap::new();
    for view in snapshots {
        by_series.entry(view.series).or_default().push(view);
    }
    let mut damage = Vec::new();
    for views in by_series.into_values() {
        match path_changes_in_series(repository, &views, path, resources, visit) {
            Err(EngineError::Store(error)) if error.is_damage() => damage.push(error),
            other => other?,
        }
    }
    Ok(damage)
}

fn path_changes_in_series(
    repository: &Repository,
    views: &[&SnapshotView],
    path: &EntryPath,
    resources: &Resources,
    visit: &mut dyn FnMut(PathChange<'_>) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let mut before: Option<(SnapshotReader<'_>, Entry)> = None;
    let mut kept: Option<SnapshotReader<'_>> = None;
    for snapshot in views {
        let reader = match kept.as_ref().and_then(|kept| kept.beside(snapshot)) {
            Some(reader) => reader,
            None => SnapshotReader::open(repository, snapshot, resources)?,
        };
        kept.get_or_insert_with(|| reader.clone());
        let entry = match reader.entry(path) {
            Ok(entry) => Some(entry),
            Err(EngineError::NoSuchPath { .. }) => None,
            Err(error) => return Err(error),
        };
        let change = match (&before, &entry) {
            (None, None) => None,
            (None, Some(_)) => Some(Change::Added),
            (Some(_), None) => Some(Change::Removed),
            (Some((earlier, old)), Some(new)) => changed(&[earlier.clone(), reader.clone()], old, new)?,
        };
        if let Some(change) = change {
            visit(PathChange { snapshot, change, entry: entry.clone() })?;
        }
        before = entry.map(|entry| (reader, entry));
    }
    Ok(())
}

/// The entries of both sides that may differ.
fn parts<'s, 'r>(
    repository: &Repository,
    sides: [&Side; 2],
    readers: &'s [SnapshotReader<'r>; 2],
) -> Result<[Part<'s, 'r>; 2], EngineError> {
    let [first, second] = sides;
    for (side, reader) in sides.into_iter().zip(readers) {
        side.below.as_ref().map(|path| reader.entry(path)).transpose()?;
    }
    let part = |entries, side: &Side| Part { entries, below: side.below.clone() };
    if first.snapshot.series != second.snapshot.series || first.below != second.below {
        let entries = |at: usize, side: &Side| part(readers[at].entries(side.below.as_ref()), side);
        return Ok([entries(0, first), entries(1, second)]);
    }
    let manifest = manifest_of(repository, &second.snapshot)?;
    // Without bases: a node of one catalog may be the base of a node of the other.
    let nodes = |side: &Side| {
        let position = manifest.position(&side.snapshot.snapshot.id);
        let gone = || EngineError::NoSnapshot { wanted: side.snapshot.snapshot.id.short() };
        position.map(|position| manifest.direct(position)).ok_or_else(gone)
    };
    let (old, new) = (nodes(first)?, nodes(second)?);
    let [from, to] = readers;
    Ok([part(from.entries_in(&old - &new), first), part(to.entries_in(new - old), second)])
}

/// Entries of a side, in order.
struct Part<'s, 'r> {
    entries: CatalogEntries<'s, 'r>,
    below: Option<EntryPath>,
}

impl Part<'_, '_> {
    /// The next entry, by its path below the side's.
    fn next(&mut self) -> Result<Option<(EntryPath, Entry)>, EngineError> {
        for entry in self.entries.by_ref() {
            let entry = entry?;
            let path = match &self.below {
                None => entry.path.clone(),
                Some(below) if entry.path.is_beneath(below) => {
                    EntryPath::new(entry.path.as_bytes().get(below.as_bytes().len() + 1..).unwrap_or_default())?
                }
                Some(below) if entry.path == *below && !entry.is_directory() => EntryPath::new(below.name())?,
                Some(_) => continue,
            };
            return Ok(Some((path, entry)));
        }
        Ok(None)
    }
}

/// The way in which an entry differs from the one before; `None` if it does not.
fn changed(readers: &[SnapshotReader<'_>; 2], old: &Entry, new: &Entry) -> Result<Option<Change>, EngineError> {
    if discriminant(&old.content) != discriminant(&new.content) {
        return Ok(Some(Change::Kind));
    }
    if !is_same_content(readers, old, new)? {
        return Ok(Some(Change::Content));
    }
    Ok((!is_same_metadata(&old.metadata, &new.metadata)).then_some(Change::Metadata))
}

fn is_same_content(readers: &[SnapshotReader<'_>; 2], old: &Entry, new: &Entry) -> Result<bool, EngineError> {
    let [from, to] = readers;
    match (&old.content, &new.content) {
        (Content::File { size: before, .. }, Content::File { size: after, .. }) if before != after => Ok(false),
        (Content::File { recipe: before, .. }, Content::File { recipe: after, .. }) => {
            let is_one_series = from.series() == to.series();
            Ok(is_one_series && before == after || from.open_file(old)?.has_bytes_of(&to.open_file(new)?)?)
        }
        (before, after) => Ok(before == after),
    }
}

/// Compares what a restore would set. Inodes and their times are the machine's own.
fn is_same_metadata(old: &Metadata, new: &Metadata) -> bool {
    let Metadata { mode, uid, gid, user, group, modified, changed: _, inode: _, device: _, links: _, xattrs } = old;
    (mode, uid, gid, user, group, modified, xattrs)
        == (&new.mode, &new.uid, &new.gid, &new.user, &new.group, &new.modified, &new.xattrs)
}

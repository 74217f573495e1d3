//! Counts of what a filter excludes of snapshots.

use crate::chunks::ChunkSource;
use crate::fs::{EntrySelection, PathFilter};
use crate::half_read::whole_name;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_store::catalog::{CatalogReader, Content, Entry, EntryPath};
use siltstone_store::manifest::{Manifest, Snapshot};
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;

/// Entries of a snapshot that a filter excludes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Excluded {
    /// Regular files.
    pub files: u64,
    /// Directories.
    pub directories: u64,
    /// Entries of any other kind.
    pub others: u64,
    /// Sum of the files' sizes.
    pub logical_bytes: u64,
}

impl Excluded {
    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.entries() == 0
    }

    /// How many entries they are.
    pub fn entries(&self) -> u64 {
        self.files + self.directories + self.others
    }

    pub(super) fn add(&mut self, entry: &Entry) {
        match &entry.content {
            Content::File { size, .. } => {
                self.files += 1;
                self.logical_bytes = self.logical_bytes.saturating_add(*size);
            }
            Content::Directory => self.directories += 1,
            _ => self.others += 1,
        }
    }

    fn plus(&self, other: &Self) -> Self {
        Self {
            files: self.files + other.files,
            directories: self.directories + other.directories,
            others: self.others + other.others,
            logical_bytes: self.logical_bytes.saturating_add(other.logical_bytes),
        }
    }

    fn minus(&self, other: &Self) -> Self {
        Self {
            files: self.files.saturating_sub(other.files),
            directories: self.directories.saturating_sub(other.directories),
            others: self.others.saturating_sub(other.others),
            logical_bytes: self.logical_bytes.saturating_sub(other.logical_bytes),
        }
    }
}

/// Tells which entries of a snapshot a filter excludes: what lies below an excluded directory is excluded, whatever
/// patterns say of it.
pub(super) struct Excluder<'f> {
    filter: &'f PathFilter,
    /// Whether files may be there that a checkpoint has half read.
    is_partial: bool,
    /// The directory asked about last, and whether it is excluded.
    folder: Option<(EntryPath, bool)>,
}

impl<'f> Excluder<'f> {
    pub(super) fn new(filter: &'f PathFilter, snapshot: &Snapshot) -> Self {
        Self { filter, is_partial: snapshot.partial, folder: None }
    }

    /// Decides on an entry. One that was half read goes by its file's own name too.
    pub(super) fn excludes(&mut self, entry: &Entry) -> bool {
        let whole = self.is_partial.then(|| whole_name(&entry.path)).flatten();
        entry.path.parent().is_some_and(|folder| self.excludes_folder(folder))
            || self.matches(&entry.path, entry.is_directory())
            || whole.is_some_and(|path| self.matches(&path, false))
    }

    fn excludes_folder(&mut self, folder: EntryPath) -> bool {
        if let Some((_, answer)) = self.folder.as_ref().filter(|(asked, _)| *asked == folder) {
            return *answer;
        }
        let above = std::iter::successors(Some(folder.clone()), EntryPath::parent);
        let answer = above.into_iter().any(|folder| self.matches(&folder, true));
        self.folder = Some((folder, answer));
        answer
    }

    fn matches(&self, path: &EntryPath, is_directory: bool) -> bool {
        self.filter.select(path, is_directory) == EntrySelection::Excluded
    }
}

/// A snapshot that was counted: what the one after it differs from.
struct Counted<'m> {
    snapshot: &'m Snapshot,
    direct: RoaringTreemap,
    excluded: Excluded,
}

/// Counts of what is excluded, for each snapshot, or why they are not known.
type ById = Vec<(SnapshotId, Result<Excluded, StoreError>)>;

/// Counts what the filter excludes of each of these snapshots of a series, oldest first; the error of one whose catalog
/// cannot be read.
///
/// Of a snapshot only those nodes are read that the one before it lacks, and of that one those that this lacks.
///
/// # Errors
/// [`EngineError::Interrupted`]; those of the storage that are no damage.
pub(crate) fn excluded_of(
    chunks: &ChunkSource<'_>,
    manifest: &Manifest,
    snapshots: &BTreeSet<SnapshotId>,
    filter: &PathFilter,
    resources: &Resources,
) -> Result<ById, EngineError> {
    let mut found = Vec::new();
    let mut before: Option<Counted<'_>> = None;
    let mut failed = None;
    manifest.for_each_direct(|position, direct| {
        let Some(snapshot) = manifest.snapshots().get(position).filter(|own| snapshots.contains(&own.id)) else {
            return;
        };
        if failed.is_some() {
            return;
        }
        let count = |of: &Snapshot, nodes| excluded_in(chunks, of, nodes, filter, resources);
        // A filter looks at partial snapshots in another way.
        let base = before.take().filter(|base| base.snapshot.partial == snapshot.partial);
        let counted = match &base {
            None => count(snapshot, direct.clone()),
            Some(Counted { snapshot: older, direct: of_older, excluded }) => count(older, of_older - direct)
                .and_then(|gone| Ok(excluded.minus(&gone).plus(&count(snapshot, direct - of_older)?))),
        };
        match counted {
            Ok(excluded) => {
                before = Some(Counted { snapshot, direct: direct.clone(), excluded });
                found.push((snapshot.id, Ok(excluded)));
            }
            Err(EngineError::Store(error)) if error.is_damage() => found.push((snapshot.id, Err(error))),
            Err(error) => failed = Some(error),
        }
    });
    failed.map_or(Ok(found), Err)
}

/// Counts the excluded entries in these nodes of a catalog.
fn excluded_in(
    chunks: &ChunkSource<'_>,
    snapshot: &Snapshot,
    nodes: RoaringTreemap,
    filter: &PathFilter,
    resources: &Resources,
) -> Result<Excluded, EngineError> {
    let (mut excluded, mut excluder) = (Excluded::default(), Excluder::new(filter, snapshot));
    for entry in CatalogReader::new(chunks, snapshot.root).entries_in(nodes) {
        resources.unless_cancelled()?;
        let entry = entry?;
        if excluder.excludes(&entry) {
            excluded.add(&entry);
        }
    }
    Ok(excluded)
}

//! Whether imported snapshots are what their originals are: every entry with its metadata, and every byte as it reads
//! here against what the source says of it.

use super::ForeignRepository;
use super::foreign::imported_of;
use crate::backup::source::{EntrySource, FileContent, SourceEntry, SourceItem, SourceKind, Unread};
use crate::file_reader::{CatalogEntries, SnapshotReader};
use crate::fs::{Problem, ProblemKind, ScanItem};
use crate::snapshots::{SnapshotFilter, SnapshotView, list};
use crate::{EngineError, Resources};
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::repository::Repository;
use std::iter::Peekable;

/// Counts of a verification.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct VerifySummary {
    /// Snapshots compared with their originals.
    pub snapshots: u64,
    /// Those of which everything is as in the original.
    pub same: u64,
    /// Originals that the repository has no snapshot of.
    pub missing: u64,
    /// Entries compared.
    pub entries: u64,
    /// Bytes of files read back from the repository. A file that is as in the snapshot before, there and here, is not
    /// read again.
    pub read_bytes: u64,
}

/// Compares snapshots that were imported with their originals. What differs is told to the observer as a problem; each
/// difference counts, also where an import was made without what was damaged.
///
/// # Errors
/// Those of the repository and of the source.
pub fn verify_snapshots(
    source: &dyn ForeignRepository,
    originals: &[SnapshotView],
    repository: &Repository,
    resources: &Resources,
) -> Result<VerifySummary, EngineError> {
    repository.require_reading("comparing snapshots")?;
    let mut ordered: Vec<&SnapshotView> = originals.iter().collect();
    ordered.sort_by(|left, right| (&left.series_name, left.dated()).cmp(&(&right.series_name, right.dated())));
    let live = list(repository, &SnapshotFilter::default())?;
    let mut summary = VerifySummary::default();
    let mut before: Option<Before<'_>> = None;
    for original in ordered {
        resources.unless_cancelled()?;
        let Some(imported) = imported_of(&live, original) else {
            summary.missing += 1;
            continue;
        };
        let reader = SnapshotReader::open(repository, imported, resources)?;
        let base = before.take().filter(|before| before.original.series_name == original.series_name);
        let entries = source.entries(original, base.as_ref().map(|base| base.original))?;
        let previous = base.as_ref().map(|base| base.reader.entries(None).peekable());
        let imported = reader.entries(None).peekable();
        let mut comparing = Comparing { reader: &reader, imported, previous, resources, differences: 0, summary };
        comparing.run(entries)?;
        summary = VerifySummary {
            snapshots: summary.snapshots + 1,
            same: summary.same + u64::from(comparing.differences == 0),
            ..comparing.summary
        };
        before = Some(Before { original, reader });
    }
    Ok(summary)
}

/// The snapshot that was compared last.
struct Before<'r> {
    original: &'r SnapshotView,
    reader: SnapshotReader<'r>,
}

/// Comparing one snapshot with its original.
struct Comparing<'c, 'r> {
    reader: &'c SnapshotReader<'r>,
    imported: Peekable<CatalogEntries<'c, 'r>>,
    /// Entries of the snapshot that was compared before.
    previous: Option<Peekable<CatalogEntries<'c, 'r>>>,
    resources: &'c Resources,
    differences: u64,
    summary: VerifySummary,
}

impl Comparing<'_, '_> {
    fn run(&mut self, mut originals: Box<dyn EntrySource>) -> Result<(), EngineError> {
        while let Some(item) = originals.next_item()? {
            self.resources.unless_cancelled()?;
            match item {
                SourceItem::Entry(original) => self.compare(&original)?,
                SourceItem::Aside(ScanItem::Problem(problem)) => self.tell(&problem),
                SourceItem::Aside(_) => {}
            }
        }
        while let Some(entry) = self.imported.next().transpose()? {
            self.differs(&entry.path, "the original does not have it");
        }
        Ok(())
    }

    fn compare(&mut self, original: &SourceEntry) -> Result<(), EngineError> {
        let path = &original.path;
        while let Some(entry) = next_if(&mut self.imported, |entry| entry.path < *path)? {
            self.differs(&entry.path, "the original does not have it");
        }
        let Some(entry) = next_if(&mut self.imported, |entry| entry.path == *path)? else {
            self.differs(path, "it is missing");
            return Ok(());
        };
        self.summary.entries += 1;
        if entry.metadata != original.metadata {
            self.differs(path, "its metadata differs");
        }
        match (&original.kind, &entry.content) {
            (SourceKind::File { size, .. }, Content::File { size: found, .. }) if size != found => {
                self.differs(path, format_args!("it has {found} bytes instead of {size}"));
            }
            (SourceKind::File { unread: Unread::Described(described), .. }, Content::File { .. }) => {
                if !(described.is_unchanged && self.was_so(&entry)?) {
                    self.compare_bytes(&entry, &*described.content)?;
                }
            }
            (SourceKind::Other(content), found) if content == found => {}
            _ => self.differs(path, "it is something else"),
        }
        Ok(())
    }

    /// Tells whether the snapshot before has the same file at the same path.
    fn was_so(&mut self, wanted: &Entry) -> Result<bool, EngineError> {
        let Some(previous) = &mut self.previous else { return Ok(false) };
        while next_if(previous, |entry| entry.path < wanted.path)?.is_some() {}
        let found = next_if(previous, |entry| entry.path == wanted.path)?;
        Ok(found.is_some_and(|found| found.content == wanted.content))
    }

    fn compare_bytes(&mut self, entry: &Entry, original: &dyn FileContent) -> Result<(), EngineError> {
        let mut file = self.reader.open_file(entry)?;
        self.summary.read_bytes += file.size();
        match original.is_same_as(&entry.path, &mut file) {
            Ok(true) => {}
            Ok(false) => self.differs(&entry.path, "its content differs"),
            Err(error) => self.differs(&entry.path, error),
        }
        Ok(())
    }

    fn differs(&mut self, path: &EntryPath, reason: impl std::fmt::Display) {
        self.tell(&Problem::entry(path, ProblemKind::ImportDiffers, reason));
    }

    fn tell(&mut self, problem: &Problem) {
        self.differences += 1;
        self.resources.observer.problem(problem);
    }
}

fn next_if<I>(entries: &mut Peekable<I>, is_wanted: impl Fn(&Entry) -> bool) -> Result<Option<Entry>, EngineError>
where
    I: Iterator<Item = Result<Entry, EngineError>>,
{
    entries.next_if(|entry| entry.as_ref().map_or(true, &is_wanted)).transpose()
}

//! Snapshots of another program's repository as snapshots of this one: a copy whose originals somebody else reads.

use crate::backup::source::{DescribedEntries, EntrySource};
use crate::backup::{BackupSummary, Original, backup_copy};
use crate::copy::{CopyOptions, CopySummary, copy_each, is_copy, last_in_series, missing, options_of, present};
use crate::snapshots::SnapshotView;
use crate::{Command, EngineError, Resources};
use siltstone_store::SnapshotId;
use siltstone_store::repository::Repository;

/// Repository of another program, which is only read.
pub trait ForeignRepository: Sync {
    /// Returns its snapshots, as they are to be here: series, host, user, paths, tags, description, time, and an id
    /// that is the same each time. What [`SnapshotStatistics`](siltstone_store::manifest::SnapshotStatistics) says of
    /// files and bytes is for the progress alone.
    fn snapshots(&self) -> &[SnapshotView];

    /// Returns the entries of a snapshot. A file that has the same content at the same path in `base` is told to be
    /// unchanged.
    ///
    /// # Errors
    /// The snapshot cannot be read ([`EngineError::CopyUnreadable`]), or the repository cannot.
    fn entries(
        &self,
        snapshot: &SnapshotView,
        base: Option<&SnapshotView>,
    ) -> Result<Box<dyn EntrySource>, EngineError>;
}

/// Brings snapshots of another program's repository over, oldest first: each becomes a snapshot with the first half of
/// its id. What is here already is skipped. In a dry run the summary tells which would come, and how large they are.
///
/// # Errors
/// [`EngineError::MemoryTooSmall`]; those of [`crate::backup::backup`]. What was brought over before stands, and the
/// next import goes on from there.
pub fn import_snapshots(
    source: &dyn ForeignRepository,
    snapshots: &[SnapshotView],
    destination: &Repository,
    options: &CopyOptions,
    resources: &Resources,
) -> Result<CopySummary, EngineError> {
    resources.suffice_for(Command::Copy, destination)?;
    destination.require_reading("importing snapshots")?;
    let mut summary = CopySummary::default();
    let wanted = missing(snapshots, present(destination)?, &mut summary);
    if options.dry_run {
        for original in &wanted {
            summary.count(original, None);
        }
        return Ok(summary);
    }
    let make = |original: &SnapshotView| import(source, original, destination, options, resources);
    copy_each(&wanted, summary, resources, &make)
}

fn import(
    source: &dyn ForeignRepository,
    original: &SnapshotView,
    destination: &Repository,
    options: &CopyOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    let last = last_in_series(destination, &original.series_name)?;
    let base = last.and_then(|last| original_of(source, last).map(|base| (last, base)));
    let entries = source.entries(original, base.map(|(_, base)| base))?;
    let entries = DescribedEntries { entries, base: base.map(|(last, _)| last) };
    let original = Original { view: original, takes_incomplete: &|| options.skip_damaged };
    let options = options_of(&original.view.snapshot, options);
    backup_copy(destination, original, entries, &options, resources)
}

/// The snapshot that one of this repository came from, if the source still has it.
fn original_of(source: &dyn ForeignRepository, imported: SnapshotId) -> Option<&SnapshotView> {
    source.snapshots().iter().find(|view| is_copy(imported, &view.snapshot))
}

/// The snapshot among these that came of this one.
pub(super) fn imported_of<'s>(views: &'s [SnapshotView], original: &SnapshotView) -> Option<&'s SnapshotView> {
    views.iter().find(|view| is_copy(original.snapshot.id, &view.snapshot))
}

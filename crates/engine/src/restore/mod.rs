//! Restore: plan -> fetch -> open -> decode -> verify -> place.

use crate::fs::{Ownership, PathFilter};
use crate::snapshots::SnapshotView;
use crate::{EngineError, Observer};
use siltstone_store::catalog::EntryPath;
use siltstone_store::repository::Repository;
use std::path::PathBuf;

/// What becomes of a file that is already there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overwrite {
    /// Replaced, once the new content is complete and verified.
    Always,
    /// Replaced if size or modification time differ.
    IfChanged,
    /// Replaced if older than the snapshot's.
    IfNewer,
    /// Kept.
    Never,
}

/// How to restore.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    /// Folder to restore into; made if absent.
    pub target: PathBuf,
    /// Only what is at or below this path of the snapshot, which then becomes the target itself if it is a directory.
    pub below: Option<EntryPath>,
    /// Patterns that choose entries.
    pub filter: PathFilter,
    /// Files already there.
    pub overwrite: Overwrite,
    /// Remove what the snapshot does not hold.
    pub delete: bool,
    /// Read everything back and compare with the fingerprints.
    pub verify: bool,
    /// Make holes for runs of zeros too (holes of the source are always made).
    pub sparse: bool,
    /// Do everything but write.
    pub dry_run: bool,
    /// Owners by name, by number, or not at all.
    pub ownership: Ownership,
    /// Bytes of memory to stay below.
    pub memory_bytes: u64,
}

/// What a restore did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RestoreSummary {
    /// Entries the snapshot holds that were asked for.
    pub entries: u64,
    /// Regular files written.
    pub files_restored: u64,
    /// Files that were already there and kept.
    pub files_kept: u64,
    /// Entries removed from the target.
    pub deleted: u64,
    /// Bytes of file content written (holes not counted).
    pub bytes_restored: u64,
    /// Bytes of file content asked for.
    pub bytes_total: u64,
    /// Files read back and found right.
    pub files_verified: u64,
    /// Problems reported.
    pub problems: u64,
}

/// Restores a snapshot, or part of it.
pub fn restore(
    repository: &Repository,
    snapshot: &SnapshotView,
    options: &RestoreOptions,
    observer: &dyn Observer,
) -> Result<RestoreSummary, EngineError> {
    let _ = (repository, snapshot, options, observer);
    todo!()
}

//! A restore as it is asked for, and what it reports.

use crate::decode;
use crate::fs::{Ownership, PathFilter};
use crate::setters::setters;
use crate::usage::Usage;
use siltstone_store::catalog::EntryPath;
use std::path::PathBuf;

/// Fate of a file that is already there.
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

/// Options of a restore.
#[derive(Clone, Debug)]
#[non_exhaustive]
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
    /// Remove even where it would probably be a mistake: in the root folder or in somebody's home, with nothing chosen.
    pub unsafe_delete: bool,
    /// Read everything back, kept files too, and compare with the fingerprints.
    pub verify: bool,
    /// Keep what could be had of a damaged file beside its place, under the name that [`crate::fs::aside`] gives.
    /// Otherwise it is left out.
    pub keep_damaged: bool,
    /// Make holes for runs of zeros too (holes of the source are always made).
    pub sparse: bool,
    /// Do everything but write.
    pub dry_run: bool,
    /// Owners by name, by number, or not at all.
    pub ownership: Ownership,
    /// Needed parts of a container with at most this many bytes between them are fetched by one range read.
    pub gap_bytes: u64,
}

impl RestoreOptions {
    /// Restores all of a snapshot into this folder: every file is written anew, and nothing is removed.
    pub fn new(target: impl Into<PathBuf>) -> Self {
        Self {
            target: target.into(),
            below: None,
            filter: PathFilter::default(),
            overwrite: Overwrite::Always,
            delete: false,
            unsafe_delete: false,
            verify: false,
            keep_damaged: false,
            sparse: false,
            dry_run: false,
            ownership: Ownership::default(),
            gap_bytes: GAP_BYTES_DEFAULT,
        }
    }
}

setters!(RestoreOptions {
    with_target(target: PathBuf),
    with_below(below: Option<EntryPath>),
    with_filter(filter: PathFilter),
    with_overwrite(overwrite: Overwrite),
    with_delete(delete: bool),
    with_unsafe_delete(unsafe_delete: bool),
    with_verify(verify: bool),
    with_keep_damaged(keep_damaged: bool),
    with_sparse(sparse: bool),
    with_dry_run(dry_run: bool),
    with_ownership(ownership: Ownership),
    with_gap_bytes(gap_bytes: u64),
});

/// Default of [`RestoreOptions::gap_bytes`]: on a disk, about what could be read while it seeks.
pub const GAP_BYTES_DEFAULT: u64 = decode::GAP_BYTES_DEFAULT;

/// Summary of a restore.
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
    /// Different containers that file content was read from, those of bases included.
    pub containers_needed: u64,
    /// Visits to containers for file content. With memory for a single batch, the same number.
    pub containers_read: u64,
    /// Bytes read by those visits: the regions needed and small gaps between them, not the containers' indexes.
    pub bytes_read: u64,
    /// Bytes that waited for other regions in a temporary file in the target, having no room in memory.
    pub bytes_prewritten: u64,
    /// Usage that a dry run expects of the run, at a distance, on a repository that is open: never less than it is.
    pub usage: Usage,
}

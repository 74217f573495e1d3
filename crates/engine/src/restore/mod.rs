//! Restore: plan -> fetch -> open -> decode -> verify -> place.
//!
//! The catalog is walked once. The walk (`walk`) makes directories, links and special files as it meets them, unless
//! what stands there stays (`fate`), and gathers regular files into batches; a batch's regions are fetched and decoded
//! with all their bases (`fetch`, by `crate::decode`) and placed (`place`) while the next is gathered. A directory that
//! the walk has left (`frames`) is finished (`finish`) with the batch in which its last file is: then nothing below it
//! changes any more. Memory holds two batches, whatever the snapshot; a batch is as large as memory allows, as each
//! batch visits the containers it needs once.

mod batch;
mod dry_run;
mod fate;
mod fetch;
mod finish;
mod frames;
mod guard;
mod place;
mod verify;
mod walk;

use crate::chunks::ChunkSource;
use crate::decode::{self, Order};
use crate::fs::{Made, Ownership, PathFilter, Problem, ProblemKind, TargetDir};
use crate::parallel::cores;
use crate::snapshots::SnapshotView;
use crate::{EngineError, Observer};
use fetch::Fetching;
use place::{Counts, Drafts, Placing};
use siltstone_store::catalog::{CatalogReader, Entry, EntryPath};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

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
    /// Bytes of memory to stay below.
    pub memory_bytes: u64,
    /// Needed parts of a container with at most this many bytes between them are fetched by one range read.
    pub gap_bytes: u64,
}

/// What [`RestoreOptions::gap_bytes`] is unless said otherwise: on a disk, about what could be read while it seeks.
pub const GAP_BYTES_DEFAULT: u64 = decode::GAP_BYTES_DEFAULT;

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
    /// Different containers that file content was read from, those of bases included.
    pub containers_needed: u64,
    /// Visits to containers for file content. With memory for a single batch, the same number.
    pub containers_read: u64,
    /// Bytes read by those visits: the regions needed and small gaps between them, not the containers' indexes.
    pub bytes_read: u64,
    /// Bytes that waited for other regions in a temporary file in the target, having no room in memory.
    pub bytes_prewritten: u64,
}

/// Restores a snapshot, or part of it. What cannot be restored is reported, and the rest goes on.
///
/// # Errors
/// What stops the restore as a whole: the target cannot be used, the path asked for is not there, the user interrupted
/// it.
pub fn restore(
    repository: &Repository,
    snapshot: &SnapshotView,
    options: &RestoreOptions,
    observer: &dyn Observer,
) -> Result<RestoreSummary, EngineError> {
    let manifest = manifest_of(repository, snapshot)?;
    let chunks = Arc::new(ChunkSource::new(repository, &manifest));
    let part = Part::of(&chunks, snapshot, options.below.as_ref())?;
    if part.below.is_none() && options.filter.takes_everything() {
        let statistics = &snapshot.snapshot.statistics;
        observer.estimate(statistics.files, statistics.logical_bytes, true);
    }
    let task = Task { repository, snapshot, options, observer, part: &part };
    let protected = guard::guard(repository, options)?;
    if options.dry_run {
        return task.dry_run(&chunks, protected);
    }
    let made = if options.target.exists() { Made::Existing } else { Made::New };
    let target = TargetDir::create(&options.target, options.ownership)
        .map_err(|source| EngineError::Target { path: options.target.clone(), source })?
        .protecting(protected);
    // Again, now that all of the path exists: what did not could lead back by `..`.
    guard::guard(repository, options)?;
    let counts = Counts::default();
    let order = Order::new(&manifest);
    let fetching = Fetching::new(order, options.memory_bytes, options.gap_bytes, cores(), &options.target);
    let (sparse, verify, keep_damaged) = (options.sparse, options.verify, options.keep_damaged);
    let (drafts, fetching) = (Drafts::default(), &fetching);
    let placing =
        Placing { target: &target, observer, counts: &counts, sparse, verify, keep_damaged, drafts, fetching };
    let mut summary = RestoreSummary::default();
    let placed = walk::place_all(&task, &placing, &chunks, made, &mut summary);
    placing.abandon();
    placed?;
    task.report_if_forgotten(&placing);
    summary.files_restored += counts.files_restored.load(Ordering::Relaxed);
    summary.bytes_restored = counts.bytes_restored.load(Ordering::Relaxed);
    summary.files_verified += counts.files_verified.load(Ordering::Relaxed);
    summary.problems += counts.problems.load(Ordering::Relaxed);
    summary.containers_needed = fetching.containers_needed();
    summary.containers_read = fetching.tally.containers_read.load(Ordering::Relaxed);
    summary.bytes_read = fetching.tally.bytes_read.load(Ordering::Relaxed);
    summary.bytes_prewritten = fetching.tally.bytes_prewritten.load(Ordering::Relaxed);
    Ok(summary)
}

impl Task<'_> {
    /// What could not be restored may be gone because the snapshot was removed meanwhile: that is worth a word of its
    /// own.
    fn report_if_forgotten(&self, placing: &Placing<'_>) {
        let failed = placing.counts.problems.load(Ordering::Relaxed) > 0;
        if failed && matches!(manifest_of(self.repository, self.snapshot), Err(EngineError::NoSnapshot { .. })) {
            let name = format!("snapshot {}", self.snapshot.snapshot.id.short());
            let reason = "it was removed from the repository while it was restored";
            placing.report(&Problem::object(name, ProblemKind::Damaged, reason));
        }
    }

    /// Whether a directory with content gives way to something else: nothing that it holds is in the snapshot, or the
    /// entry could not be no directory.
    fn empties_directories(&self) -> bool {
        self.options.delete && self.options.filter.takes_everything()
    }
}

/// The newest manifest of the snapshot's series.
pub(crate) fn manifest_of(repository: &Repository, snapshot: &SnapshotView) -> Result<Manifest, EngineError> {
    let gone = || EngineError::NoSnapshot { wanted: snapshot.snapshot.id.short() };
    let manifest = repository.manifest(snapshot.series)?.ok_or_else(gone)?;
    manifest.position(&snapshot.snapshot.id).map(|_| ()).ok_or_else(gone)?;
    Ok(manifest)
}

/// Which part of the snapshot is meant, and what its paths are called in the target.
struct Part {
    /// The entry asked for; `None` for all.
    below: Option<Entry>,
    /// Bytes to cut off the paths: those of the directory that becomes the target itself, or of the one that holds the
    /// file.
    cut: usize,
}

impl Part {
    fn of(chunks: &ChunkSource<'_>, snapshot: &SnapshotView, path: Option<&EntryPath>) -> Result<Self, EngineError> {
        let Some(path) = path else {
            return Ok(Self { below: None, cut: 0 });
        };
        let missing = || EngineError::NoSuchPath {
            snapshot: snapshot.snapshot.id.short(),
            path: format!("/{}", path.as_bytes().escape_ascii()),
        };
        let entry = CatalogReader::new(chunks, snapshot.snapshot.root).find(path)?.ok_or_else(missing)?;
        let cut = match path.parent() {
            _ if entry.is_directory() => path.as_bytes().len() + 1,
            Some(parent) => parent.as_bytes().len() + 1,
            None => 0,
        };
        Ok(Self { below: Some(entry), cut })
    }

    /// The path in the target; `None` for the directory that is the target itself.
    fn target_path(&self, path: &EntryPath) -> Option<EntryPath> {
        EntryPath::new(path.as_bytes().get(self.cut..).unwrap_or_default()).ok()
    }
}

/// A restore, as asked for.
struct Task<'t> {
    repository: &'t Repository,
    snapshot: &'t SnapshotView,
    options: &'t RestoreOptions,
    observer: &'t dyn Observer,
    part: &'t Part,
}

impl Task<'_> {
    fn entries<'s, 'r>(&self, chunks: &'s ChunkSource<'r>) -> siltstone_store::catalog::Entries<&'s ChunkSource<'r>> {
        let catalog = CatalogReader::new(chunks, self.snapshot.snapshot.root);
        match &self.part.below {
            Some(entry) => catalog.under(&entry.path),
            None => catalog.entries(),
        }
    }
}

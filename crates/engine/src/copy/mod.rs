//! Copying snapshots from one repository into another.
//!
//! ```text
//! entries    1 thread    catalogs of the snapshot and of the one copied before it, side by side   (source)
//! fetch      1 thread    chunks by number, a batch at a time, each region of a batch decoded once (source)
//! backup     all stages  cut, fingerprint, encode, commit, settle                                 (destination)
//! ```
//! A copy is a backup that is fed from a snapshot instead of from files: cut by the destination's chunker, named by its
//! keys, laid out by its policy. So the destination shares no secret with the source and forgets on its own. What is
//! read is verified against the source's fingerprints first.
//!
//! Snapshots are copied oldest first, each in a commit of its own, into the series of the same name. A file whose
//! recipe is the one that the snapshot copied before had at the same path is not read: its recipe in the destination is
//! used again. Cost: the content that differs between the snapshots, and two catalogs of each.
//!
//! A copy's identity shares its first half with the original's ([`SnapshotId::origin`]): by that it is known to be
//! there already, also as the copy of a copy.

mod content;
mod entries;
mod estimate;
mod fetch;

use crate::backup::source::DescribedEntries;
use crate::backup::{BackupOptions, BackupSummary, Original, backup_copy, last_whole};
use crate::chunks::ChunkSource;
use crate::decode::Gatherer;
use crate::fs::{Problem, ProblemKind};
use crate::observer::Notice;
use crate::parallel::spawn_named;
use crate::restore::manifest_of;
use crate::setters::setters;
use crate::snapshots::{SnapshotFilter, SnapshotView, list};
use crate::usage::Usage;
use crate::{Command, EngineError, Resources};
use content::{Fetches, Outage};
use crossbeam_channel::bounded;
use entries::Walk;
use estimate::Estimate;
use fetch::Fetcher;
use siltstone_store::manifest::{Manifest, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::series::newest_manifest;
use siltstone_store::{ChunkNumber, OriginId, SnapshotId, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Indexes of containers of the source kept open.
const READERS_MAX: usize = 48;
/// Entries between the walk and the planner.
const ENTRIES_AHEAD_MAX: usize = 256;

/// Snapshots to be copied, and the repository that they are in.
#[derive(Clone, Copy, Debug)]
pub struct Originals<'s> {
    /// The repository.
    pub repository: &'s Repository,
    /// The snapshots, in any order.
    pub snapshots: &'s [SnapshotView],
    /// Range reads of the repository under way at once.
    pub fetches: usize,
}

/// Options of a copy.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct CopyOptions {
    /// Options of the backups that the copies are made by. What a snapshot records (series, host, user, time, tags,
    /// description) is that of its original; the user of the options stands in the lease.
    pub backup: BackupOptions,
    /// Only tell what would be copied, and estimate how much that is: no content is read.
    pub dry_run: bool,
    /// Copy a snapshot of which something is damaged without that, instead of leaving it out as a whole. The copy
    /// counts what it lacks among its problems, and is not made again when the source is whole.
    pub skip_damaged: bool,
}

setters!(CopyOptions {
    with_backup(backup: BackupOptions),
    with_dry_run(dry_run: bool),
    with_skip_damaged(skip_damaged: bool),
});

/// Summary of a copy.
#[derive(Clone, Debug, Default)]
pub struct CopySummary {
    /// Snapshots copied, oldest first; in a dry run those that would be.
    pub copied: Vec<CopiedSnapshot>,
    /// Snapshots that the destination has already, marked as deleted or not.
    pub skipped: u64,
    /// Partial snapshots, which are never copied: the next backup of their series replaces them.
    pub partial: u64,
    /// Snapshots that were not copied because of damage in the source.
    pub failed: u64,
    /// Snapshots copied without what is damaged of them in the source.
    pub incomplete: u64,
    /// Bytes of content read from the source; this and what follows are estimates in a dry run.
    pub read_bytes: u64,
    /// Bytes of new chunks of the destination before compression, those of catalogs included.
    pub added_plain_bytes: u64,
    /// Bytes of the containers written for them.
    pub added_stored_bytes: u64,
    /// Usage of the destination's place that a dry run expects of the run, about; nothing where requests are not
    /// counted.
    pub usage: Usage,
}

/// A snapshot that was copied.
#[derive(Clone, Debug)]
pub struct CopiedSnapshot {
    /// The snapshot in the source repository.
    pub original: SnapshotId,
    /// The snapshot in the destination; `None` in a dry run.
    pub copy: Option<SnapshotId>,
    /// Name of the series of both.
    pub series: String,
    /// Counts of the copy; of the original in a dry run.
    pub statistics: SnapshotStatistics,
}

/// Copies snapshots of another repository, oldest first. What the destination has already is skipped. A snapshot that
/// cannot be read whole is not copied, or copied without what is damaged, as the options say; that is told, and the
/// rest goes on.
///
/// # Errors
/// [`EngineError::SameRepository`]; those of [`crate::backup::backup`] for the destination. What was copied before
/// stands, and the next copy goes on from there.
pub fn copy(
    originals: &Originals<'_>,
    destination: &Repository,
    options: &CopyOptions,
    resources: &Resources,
) -> Result<CopySummary, EngineError> {
    resources.suffice_for(Command::Copy, destination)?;
    for repository in [originals.repository, destination] {
        repository.require_reading("copying snapshots")?;
    }
    if originals.repository.id() == destination.id() {
        return Err(EngineError::SameRepository { repository: destination.id().to_string() });
    }
    let mut summary = CopySummary::default();
    let present = present(destination)?;
    let wanted = missing(originals.snapshots, present.clone(), &mut summary);
    if options.dry_run {
        for original in &wanted {
            summary.count(original, None);
        }
        Estimate::of(originals.repository, destination, &wanted, &present)?.add_to(&mut summary);
        return Ok(summary);
    }
    let make = |original: &SnapshotView| Copying { source: originals, original, destination, options, resources }.run();
    copy_each(&wanted, summary, resources, &make)
}

/// Makes a copy of each of these snapshots. One that cannot be read whole is told, and the rest goes on.
pub(crate) fn copy_each(
    wanted: &[&SnapshotView],
    mut summary: CopySummary,
    resources: &Resources,
    make: &dyn Fn(&SnapshotView) -> Result<BackupSummary, EngineError>,
) -> Result<CopySummary, EngineError> {
    tell_sizes(wanted, resources);
    for original in wanted {
        resources.unless_cancelled()?;
        match make(original) {
            Ok(made) => {
                if let Some(copy) = made.snapshot {
                    let (series, original) = (made.series.clone(), original.snapshot.id);
                    resources.observer.notice(&Notice::SnapshotCopied { series, original, copy });
                }
                summary.incomplete += u64::from(made.statistics.problems > 0);
                summary.count(original, Some(&made));
            }
            Err(error @ (EngineError::CopyIncomplete { .. } | EngineError::CopyUnreadable { .. })) => {
                summary.failed += 1;
                let name = format!("snapshot {}", original.snapshot.id.short());
                resources.observer.problem(&Problem::object(name, ProblemKind::Damaged, error));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(summary)
}

/// The origins of all snapshots that a repository has, those marked as deleted included.
pub(crate) fn present(repository: &Repository) -> Result<BTreeSet<OriginId>, EngineError> {
    let mut origins = BTreeSet::new();
    for deleted in [false, true] {
        let views = list(repository, &SnapshotFilter::default().with_deleted(deleted))?;
        let whole = views.iter().filter(|view| !view.snapshot.partial);
        origins.extend(whole.map(|view| view.snapshot.id.origin()));
    }
    Ok(origins)
}

/// The snapshots that are to be copied, oldest first, each once.
pub(crate) fn missing<'s>(
    snapshots: &'s [SnapshotView],
    mut present: BTreeSet<OriginId>,
    summary: &mut CopySummary,
) -> Vec<&'s SnapshotView> {
    let mut wanted: Vec<&SnapshotView> = snapshots.iter().collect();
    wanted.sort_by_key(|view| (view.dated(), view.series, view.position));
    wanted.dedup_by_key(|view| view.key());
    wanted.retain(|view| {
        if view.snapshot.partial {
            summary.partial += 1;
            return false;
        }
        let is_missing = present.insert(view.snapshot.id.origin());
        summary.skipped += u64::from(!is_missing);
        is_missing
    });
    wanted
}

/// Tells the observer how much there is to do.
fn tell_sizes(wanted: &[&SnapshotView], resources: &Resources) {
    let statistics = wanted.iter().map(|view| &view.snapshot.statistics);
    let (files, bytes) = statistics.fold((0u64, 0u64), |(files, bytes), each| {
        (files.saturating_add(each.files), bytes.saturating_add(each.logical_bytes))
    });
    resources.observer.estimate(files, bytes, true);
}

impl CopySummary {
    pub(crate) fn count(&mut self, original: &SnapshotView, made: Option<&BackupSummary>) {
        let statistics = made.map_or(original.snapshot.statistics, |made| made.statistics);
        if made.is_some() {
            self.read_bytes += statistics.read_bytes;
            self.added_plain_bytes += statistics.added_plain_bytes + statistics.metadata_bytes;
            self.added_stored_bytes += statistics.added_stored_bytes;
        }
        self.copied.push(CopiedSnapshot {
            original: original.snapshot.id,
            copy: made.and_then(|made| made.snapshot),
            series: original.series_name.clone(),
            statistics,
        });
    }
}

/// The copy of one snapshot.
struct Copying<'s> {
    source: &'s Originals<'s>,
    original: &'s SnapshotView,
    destination: &'s Repository,
    options: &'s CopyOptions,
    resources: &'s Resources,
}

/// The snapshot of the destination that a copy is compared with, and the root of its original's catalog.
#[derive(Clone, Copy)]
struct Base {
    id: SnapshotId,
    root: ChunkNumber,
}

impl Copying<'_> {
    fn run(&self) -> Result<BackupSummary, EngineError> {
        let snapshot = &self.original.snapshot;
        let manifest = manifest_of(self.source.repository, self.original).map_err(|error| self.unreadable(error))?;
        let base = self.base(&manifest)?;
        let shares = self.resources.copy_shares();
        let chunks = ChunkSource::with_limits(self.source.repository, &manifest, READERS_MAX, shares.region_bytes);
        let chunks = Arc::new(chunks);
        let spill = self.resources.scratch_of(self.source.repository);
        let reading = self.resources.clone().with_fetches(self.source.fetches);
        let outage = Outage::default();
        let made = std::thread::scope(|scope| {
            let (waiting, threads) = (shares.waiting_bytes, reading.fetches);
            let gatherer = Gatherer::start(scope, threads, chunks.clone(), &manifest, waiting, spill, &reading)?;
            let (fetches_in, fetches_out) = bounded(0);
            let fetcher =
                Fetcher { gatherer, chunks: chunks.clone(), observer: &*reading.observer, outage: outage.clone() };
            spawn_named(scope, "fetch", move || fetcher.run(&fetches_out))?;
            let (entries_in, entries_out) = bounded(ENTRIES_AHEAD_MAX);
            let fetches = Fetches { asked: fetches_in, ahead_bytes: shares.ahead_bytes };
            let walk = Walk {
                chunks: &chunks,
                root: snapshot.root,
                base: base.map(|base| base.root),
                fetches,
                outage: outage.clone(),
            };
            spawn_named(scope, "walk", move || walk.run(|error| self.unreadable(error), &entries_in))?;
            let entries = DescribedEntries { entries: Box::new(entries_out), base: base.map(|base| base.id) };
            let resources = self.resources.clone().with_memory_bytes(shares.backup_bytes);
            let takes_incomplete = || self.options.skip_damaged && outage.failure().is_none();
            let original = Original { view: self.original, takes_incomplete: &takes_incomplete };
            backup_copy(self.destination, original, entries, &self.backup_options(), &resources)
        });
        match (made, outage.failure()) {
            // That some of its content cannot be read is not the snapshot's fault, nor will others fare better.
            (Err(EngineError::CopyIncomplete { .. }), Some(error)) => Err(StoreError::Shared(error).into()),
            (made, _) => made,
        }
    }

    /// The last whole snapshot of the series in the destination, if it is a copy of one that the source still has.
    fn base(&self, source: &Manifest) -> Result<Option<Base>, EngineError> {
        let last = last_in_series(self.destination, &self.original.series_name)?;
        Ok(last.and_then(|id| {
            let original = source.snapshots().iter().find(|of| is_copy(id, of))?;
            Some(Base { id, root: original.root })
        }))
    }

    /// Options of the backup that makes the copy.
    fn backup_options(&self) -> BackupOptions {
        options_of(&self.original.snapshot, self.options)
    }

    /// The error of a catalog that cannot be read: of this snapshot if it is damaged, else of the source as a whole.
    fn unreadable(&self, error: EngineError) -> EngineError {
        let is_outage = matches!(&error, EngineError::Store(error) if !error.is_damage());
        if is_outage {
            return error;
        }
        EngineError::CopyUnreadable { snapshot: self.original.snapshot.id.short(), reason: error.to_string() }
    }
}

/// Options of the backup that makes a copy of a snapshot.
pub(crate) fn options_of(snapshot: &Snapshot, options: &CopyOptions) -> BackupOptions {
    let options = options.backup.clone();
    options
        .with_host(snapshot.host.clone())
        .with_time(Some(snapshot.time))
        .with_tags(snapshot.tags.clone())
        .with_description(snapshot.description.clone())
        .with_dry_run(false)
        .with_skip_if_unchanged(false)
}

/// The last whole snapshot of a series, if it is there.
pub(crate) fn last_in_series(repository: &Repository, name: &str) -> Result<Option<SnapshotId>, EngineError> {
    let stored = newest_manifest(repository, repository.keys().series_id(name))?;
    Ok(stored.and_then(|stored| last_whole(&stored.manifest).map(|last| last.id)))
}

/// Tells whether a whole snapshot is the original of this one, or a copy of the same original.
pub(crate) fn is_copy(copy: SnapshotId, of: &Snapshot) -> bool {
    !of.partial && of.id.origin() == copy.origin()
}

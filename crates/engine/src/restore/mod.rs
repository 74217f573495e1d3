//! Restore: plan -> fetch -> open -> decode -> verify -> place.
//!
//! The catalog is walked once. The walk (`walk`) makes directories, links and special files as it meets them, unless
//! what stands there stays (`action`), and gathers regular files into batches; a batch's regions are fetched and
//! decoded with all their bases (`fetch`, by `crate::decode`) and placed (`place`) while the next is gathered. A
//! directory that the walk has left (`frames`) is finished (`finish`) with the batch in which its last file is: then
//! nothing below it changes any more. Memory holds two batches, whatever the snapshot; a batch is as large as memory
//! allows, as each batch visits the containers it needs once. Whoever listens is told the snapshot's paths (`told`).

mod action;
mod batch;
mod dry_run;
mod fetch;
mod finish;
mod forecast;
mod frames;
mod guard;
mod options;
mod place;
mod run;
mod told;
mod verify;
mod walk;

pub use crate::acl::mode_without_list;
pub use options::{GAP_BYTES_DEFAULT, Overwrite, RestoreOptions, RestoreSummary};
pub(crate) use run::manifest_of;

use crate::chunks::ChunkSource;
use crate::decode::Order;
use crate::fs::{DirectoryOutcome, Problem, ProblemKind, TargetDir};
use crate::snapshots::SnapshotView;
use crate::usage::measured;
use crate::{EngineError, Resources};
use fetch::Fetching;
use place::{Counts, Drafts, Placing};
use run::{RestoreRun, SnapshotPart};
use siltstone_store::repository::Repository;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use told::Origin;

/// Restores a snapshot, or part of it. What cannot be restored is reported, and the rest goes on.
///
/// # Errors
/// Anything that stops the restore as a whole: the target cannot be used, the path asked for is not there, the user
/// interrupted it.
pub fn restore(
    repository: &Repository,
    snapshot: &SnapshotView,
    options: &RestoreOptions,
    resources: &Resources,
) -> Result<RestoreSummary, EngineError> {
    repository.require_reading("restoring a snapshot")?;
    if !options.dry_run {
        return restore_from(repository, snapshot, options, resources);
    }
    let look = |recorded: &Repository| restore_from(recorded, snapshot, options, resources);
    let (mut summary, reading) = measured(repository, look)?;
    summary.usage += reading;
    Ok(summary)
}

/// Restores from this repository, or looks what a restore would do.
fn restore_from(
    repository: &Repository,
    snapshot: &SnapshotView,
    options: &RestoreOptions,
    resources: &Resources,
) -> Result<RestoreSummary, EngineError> {
    let manifest = manifest_of(repository, snapshot)?;
    let chunks = Arc::new(ChunkSource::new(repository, &manifest));
    let part = SnapshotPart::of(&chunks, snapshot, options.below.as_ref())?;
    let origin = Origin::of(&part);
    let resources = &origin.clone().told_by(resources);
    if part.below.is_none() && options.filter.takes_everything() {
        let statistics = &snapshot.snapshot.statistics;
        resources.observer.estimate(statistics.files, statistics.logical_bytes, true);
    }
    let run = RestoreRun { repository, snapshot, options, resources, part: &part };
    let protected = guard::guard(repository, options)?;
    if options.dry_run {
        return run.dry_run(&chunks, &manifest, protected);
    }
    let made = if options.target.exists() { DirectoryOutcome::Existing } else { DirectoryOutcome::New };
    let target = TargetDir::create(&options.target, options.ownership)
        .map_err(|source| EngineError::Target { path: options.target.clone(), source })?
        .protecting(protected);
    // Again, now that all of the path exists: what did not could lead back by `..`.
    guard::guard(repository, options)?;
    let counts = Counts::default();
    let order = Order::new(&manifest);
    let (sparse, verify, keep_damaged) = (options.sparse, options.verify, options.keep_damaged);
    let drafts = Drafts::default();
    let observer = &*resources.observer;
    let placing =
        Placing { target: &target, observer, origin: &origin, counts: &counts, sparse, verify, keep_damaged, drafts };
    let fetching = Fetching::new(&placing, order, resources, options);
    let mut summary = RestoreSummary::default();
    let placed = walk::place_all(&run, &fetching, &chunks, made, &mut summary);
    placing.abandon();
    placed?;
    run.report_if_forgotten(&placing);
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

impl RestoreRun<'_> {
    /// Reports a snapshot that was removed meanwhile, which may be why content could not be restored.
    fn report_if_forgotten(&self, placing: &Placing<'_>) {
        let failed = placing.counts.problems.load(Ordering::Relaxed) > 0;
        if failed && matches!(manifest_of(self.repository, self.snapshot), Err(EngineError::NoSnapshot { .. })) {
            let name = format!("snapshot {}", self.snapshot.snapshot.id.short());
            let reason = "it was removed from the repository while it was restored";
            placing.report(&Problem::object(name, ProblemKind::Damaged, reason));
        }
    }
}

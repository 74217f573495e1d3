//! Backup: plan -> read -> fingerprint -> assemble -> encode -> pack -> commit, one file per stage.
//!
//! ```text
//! plan       1 thread    takes the source's entries beside the previous catalog; batches, jobs for what must be read
//! read       n threads   open, read, cut                                    (one job each, in parallel)
//! hash       n threads   fingerprints of a piece                            (tickets keep the order)
//! assemble   1 thread    known or new? numbers, recipes, catalog, regions   (in stream order)
//! select     1 thread    what to encode against what: `forward`             (in stream order)
//! encode     n threads   likeness of new chunks, which lie beside what they resemble (`window`);
//!                        compress, decompress, compare                      (tickets keep the order)
//! pack       1 thread    containers, storage
//! ```
//! Every queue is bounded; together they hold some 120 MiB whatever the source, the rest of the budget is the index's.
//!
//! ```text
//! backup      -> modes, settle              this file: looks at what is asked for, begins a run and ends it
//! modes       -> begin, commit, shrunk      a run without writing, or to its commit
//! begin       -> stages, sample             what the run has to know; how memory is divided
//! stages      -> all stages                 starts their threads and joins them, for paths or for a stream
//! all stages  -> piece, previous, ...       one file each
//! source, options, outcome, flow, links, run  ground: what all of them share; it knows no stage
//! ```
//! Each arrow is a use of another file; none leads back, nor do imports.

mod assemble;
mod begin;
mod borrow;
mod cache;
mod changed;
mod changed_list;
mod checkpoint;
mod chunker;
mod commit;
mod entries;
mod flow;
mod fresh;
mod heal;
mod links;
mod local;
mod modes;
mod needs;
mod new_series;
mod notes;
mod older;
mod options;
mod outcome;
mod piece;
mod plan;
mod previous;
mod read;
mod regions;
mod run;
mod sample;
mod segments;
mod select;
mod settle;
mod shrunk;
mod sketch_file;
pub mod source;
mod sources;
mod stages;
mod window;

pub use changed_list::ChangedList;
pub use chunker::{CHUNK_BYTES_AVERAGE, chunker_names, chunker_sized, default_chunker};
pub use options::{
    BackupOptions, BackupSummary, Borrow, CheckpointRule, DELTA_THRESHOLD_DEFAULT, DeltaCounts, Healed, Reused,
    SAMPLE_BYTES_DEFAULT, SEGMENT_BYTES_DEFAULT, SHRINK_SHARE_DEFAULT, Source,
};
pub(crate) use previous::last_whole;
pub use sources::{default_series_name, series_name};

use crate::lease::now;
use crate::usage::measured;
use crate::{Command, EngineError, Resources};
use run::BackupRun;
pub(crate) use run::Original;
use siltstone_store::repository::Repository;
use siltstone_store::series::newest_manifest;
use source::DescribedEntries;
use std::time::Instant;

/// Makes a snapshot of `source`.
///
/// # Errors
/// Anything that stops the backup as a whole: nothing to back up, the stream failed, the repository is missing, locked,
/// damaged or full, the user interrupted it. Then there is no new snapshot, and all others are as before.
pub fn backup(
    repository: &Repository,
    source: Source,
    options: &BackupOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    if !options.dry_run {
        return back_up(repository, source, options, resources);
    }
    let look = |recorded: &Repository| back_up(recorded, source, options, resources);
    let (mut summary, reading) = measured(repository, look)?;
    summary.usage += reading;
    Ok(summary)
}

/// Makes a snapshot, or looks what that would do.
fn back_up(
    repository: &Repository,
    source: Source,
    options: &BackupOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    let started = Instant::now();
    let resources = &resources.beside_containers(Command::Backup, repository)?;
    let chunker = chunker::open_chunker(repository)?;
    let paths = sources::recorded_paths(&source, options.as_path.as_deref())?;
    let series = series_for(repository, options.series.as_deref(), &options.host, &paths);
    let mut list_bytes = 0;
    if let Source::Changes { list, .. } = &source {
        // Before anything is written; the planning stage, which holds the lease, looks at the base again.
        list.check(&paths, resources.memory_bytes)?;
        list_bytes = list.memory_bytes();
        let stored = newest_manifest(repository, repository.keys().series_id(&series))?;
        changed::base(stored.as_ref().map(|stored| &stored.manifest), &series, &paths)?;
    }
    let shrink_share = shrunk::share_of(&source, options);
    let (chunker, series, original) = (chunker.as_ref(), series.as_str(), None);
    let run = BackupRun {
        repository,
        chunker,
        options,
        resources,
        started,
        paths,
        shrink_share,
        list_bytes,
        series,
        original,
    };
    run.run(source)
}

/// The series that a backup goes to: the one named, that of a write-only key, or by default one of host and paths.
fn series_for(repository: &Repository, named: Option<&str>, host: &str, paths: &[Vec<u8>]) -> String {
    let of_key = || repository.keys().write_only_series().map(|(_, name)| name.to_owned());
    named.map(str::to_owned).or_else(of_key).unwrap_or_else(|| default_series_name(host, paths))
}

/// Makes a copy of a snapshot, whose entries are given; its identity shares the first half with the original's. In the
/// options stands what else the copy records, but for user, paths and series, which are the original's.
///
/// # Errors
/// Those of [`backup`]; [`EngineError::CopyIncomplete`] if something of it could not be read.
pub(crate) fn backup_copy(
    repository: &Repository,
    original: Original<'_>,
    entries: DescribedEntries,
    options: &BackupOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    let resources = &resources.beside_containers(Command::Backup, repository)?;
    let chunker = chunker::open_chunker(repository)?;
    let run = BackupRun {
        repository,
        chunker: chunker.as_ref(),
        options,
        resources,
        started: Instant::now(),
        paths: original.view.snapshot.paths.clone(),
        shrink_share: None,
        list_bytes: 0,
        series: &original.view.series_name,
        original: Some(original),
    };
    run.run(Source::Entries { paths: run.paths.clone(), entries })
}

impl BackupRun<'_> {
    /// Runs to a commit, or without writing.
    fn run(&self, input: Source) -> Result<BackupSummary, EngineError> {
        if self.options.dry_run {
            return self.dry_run(input);
        }
        let mut writer = self.acquire()?;
        match self.run_and_commit(input, &mut writer) {
            Ok((summary, similar)) if summary.snapshot.is_some() => Ok(self.settle(writer, summary, similar)),
            Ok((summary, _)) => {
                writer.abandon(now())?;
                Ok(summary)
            }
            Err(error) => {
                // The first error is the one to tell; a lease left behind is taken over by the next run.
                let _ = writer.abandon(now());
                Err(error)
            }
        }
    }
}

//! Migration: what a backup left behind is encoded against what took its place, and laid where its lifecycle ends.
//!
//! A chunk *dies* when the snapshot before the last needs it and the last does not. Its lifecycle is then final, but
//! for what is forgotten later. Container by container of those that hold dying chunks:
//!
//! 1. Each dying chunk that resembles a new one becomes part of a region delta (policy [`Deltas::Reverse`]), in a
//!    container of its category; here it is superseded.
//! 2. A container of which more than the threshold is superseded, or dead beside what lives on, is split: survivors go
//!    on with survivors, dead chunks into their category. Below the threshold it stays as it is, and counts in the
//!    newer column. With threshold 0 no container ever mixes categories: the layout of MeGA (ATC 2022, section 4.3).
//!
//! What all chunks of a container live on, or die with, moves by name alone: where it belongs is known from the
//! manifest's bitmaps.
//!
//! 3. Of small containers that have become many, one is made (module `merge`), and ghosts that forgetting has made are
//!    squeezed out (module `ghosts`).
//!
//! What cannot be read is passed over and told (module `sound`): it stays as it is, the rest is settled, and it is not
//! tried again.
//!
//! New containers are durable and committed before the old ones go; a stop at any point leaves the last manifest true,
//! with the snapshot still among those to be settled. Work is done in pieces, each with a commit of its own, so that
//! little is done again, and little room is needed beside what is there.

mod column;
mod ghosts;
mod merge;
mod piece;
mod places;
mod sound;

pub(crate) use ghosts::ghost_bytes;

use crate::delta::{Deltas, Likes};
use crate::forget::{ForgetOptions, Marking, compact, end_marks, has_marks_over};
use crate::fs::{Problem, ProblemKind};
use crate::lease::{Purpose, acquire, now};
use crate::written::verify_written;
use crate::{EngineError, Observer};
use column::Column;
use piece::Piece;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::{ReserveUse, SeriesWriter};
use siltstone_store::{ContainerId, StoreError};
use sound::PassedOver;
use std::collections::{HashMap, HashSet, VecDeque};
use std::fmt::Display;

/// Bytes of old containers that are worked on between two commits, unless asked otherwise.
pub const PIECE_BYTES_DEFAULT: u64 = 1 << 30;

/// The share of a container that may be superseded or dead before it is split, unless another is asked for.
pub const MIGRATE_THRESHOLD_DEFAULT: f64 = 0.25;

/// How to migrate.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// Which way deltas point.
    pub deltas: Deltas,
    /// The share of a container that may be superseded or dead before it is split (0 ..= 1).
    pub threshold: f64,
    /// Compression level of zstd.
    pub compression_level: i32,
    /// Bytes of memory to stay below.
    pub memory_bytes: u64,
    /// Bytes of old containers that are worked on between two commits; at least one container.
    pub piece_bytes: u64,
    /// Read back what was written, before each commit.
    pub verify_written: bool,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

/// What migration did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MigrateSummary {
    /// Snapshots whose chunks were settled, all of them.
    pub settled: u64,
    /// Snapshots that were marked as deleted until now, and were removed.
    pub ended: u64,
    /// Containers that could not be read; they stay as they are.
    pub passed_over: u64,
    /// Bytes of the containers written.
    pub bytes_written: u64,
    /// Bytes of the containers deleted.
    pub bytes_deleted: u64,
    /// Containers written.
    pub containers_written: u64,
    /// Containers deleted.
    pub containers_deleted: u64,
    /// Chunks that became part of a delta.
    pub deltas_kept: u64,
    /// Chunks that nothing but deltas needed, and that are gone.
    pub ghosts_squeezed: u64,
    /// Chunks that resemble another, but stay whole because a delta would not be smaller.
    pub deltas_rejected: u64,
}

impl MigrateSummary {
    fn add(&mut self, other: &Self) {
        self.settled += other.settled;
        self.ended += other.ended;
        self.passed_over += other.passed_over;
        self.bytes_written += other.bytes_written;
        self.bytes_deleted += other.bytes_deleted;
        self.containers_written += other.containers_written;
        self.containers_deleted += other.containers_deleted;
        self.deltas_kept += other.deltas_kept;
        self.deltas_rejected += other.deltas_rejected;
        self.ghosts_squeezed += other.ghosts_squeezed;
    }
}

/// Settles all series that have something to settle, and removes snapshots that were marked as deleted until now: what
/// `silt maintain` does.
///
/// # Errors
/// What stops it as a whole, or the damage of the first series if none can be read; if one series of several fails,
/// that is reported as a problem. Where another writer has a series, the error says so after the others are done.
pub fn maintain(
    repository: &Repository,
    options: &MigrateOptions,
    observer: &dyn Observer,
) -> Result<MigrateSummary, EngineError> {
    let (mut summary, mut lost) = (MigrateSummary::default(), None);
    let not_moved = |series: &dyn Display, reason: &dyn Display| {
        observer.problem(&Problem::object(format!("series {series}"), ProblemKind::NotMoved, reason));
    };
    let damage = repository.visit_manifests(repository.series()?, |manifest| {
        if manifest.unsettled.is_empty() && !manifest.squeeze_due && !has_marks_over(&manifest, now()) {
            return Ok(());
        }
        match maintain_series(repository, &manifest.name, options, observer) {
            Ok(done) => summary.add(&done),
            Err(EngineError::Interrupted) => return Err(EngineError::Interrupted),
            Err(EngineError::Store(error)) if error.is_lost_race() => lost = Some(error),
            Err(error) => not_moved(&manifest.series, &error),
        }
        Ok(())
    })?;
    for error in &damage {
        match error {
            StoreError::UnreadableSeries { series, source } => not_moved(series, source),
            other => not_moved(&"", other),
        }
    }
    lost.map_or(Ok(summary), |error| Err(error.into()))
}

fn maintain_series(
    repository: &Repository,
    series_name: &str,
    options: &MigrateOptions,
    observer: &dyn Observer,
) -> Result<MigrateSummary, EngineError> {
    let (user, take_over) = (options.user.as_str(), options.take_over);
    let purpose = Purpose { name: "maintain", user, take_over, reserve: ReserveUse::Keep };
    let mut writer = acquire(repository, series_name, &purpose, observer)?;
    match end_marks_and_settle(repository, &mut writer, options, observer) {
        Ok(summary) => {
            let settled = writer.manifest().clone();
            writer.commit(settled, false, now())?;
            Ok(summary)
        }
        Err(error) => {
            let _ = writer.abandon(now());
            Err(error)
        }
    }
}

fn end_marks_and_settle(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    options: &MigrateOptions,
    observer: &dyn Observer,
) -> Result<MigrateSummary, EngineError> {
    let (ended, containers_deleted, bytes_deleted) = end_marks(writer, now())?;
    let mut summary = MigrateSummary { ended, bytes_deleted, containers_deleted, ..MigrateSummary::default() };
    summary.add(&settle(repository, writer, None, options, observer)?);
    Ok(summary)
}

/// Settles what is unsettled in a series, oldest first, and squeezes out the ghosts that forgetting has made. `likes`
/// are the chunks of the last snapshot that the one before it lacks, by their sketches; without them they are read
/// again. The lease is kept.
///
/// # Errors
/// Of the repository, or because the user asked to stop; what is settled by then stays so. A container that is damaged
/// or missing is told and left as it is.
pub(crate) fn settle(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    mut likes: Option<Likes>,
    options: &MigrateOptions,
    observer: &dyn Observer,
) -> Result<MigrateSummary, EngineError> {
    let mut summary = MigrateSummary::default();
    let mut passed_over = PassedOver::new(observer);
    let last = writer.manifest().snapshots().len().saturating_sub(1);
    let unsettled = |writer: &SeriesWriter<'_>, position: usize| {
        let manifest = writer.manifest();
        manifest.snapshots().get(position).is_some_and(|snapshot| manifest.unsettled.contains(&snapshot.id))
    };
    for position in 0..last {
        // What is known of the newest chunks is not known of earlier ones.
        let likes = if position + 1 == last { likes.take() } else { None };
        if unsettled(writer, position) {
            summary.add(&settle_column(repository, writer, position, likes, options, observer, &mut passed_over)?);
        }
    }
    if writer.manifest().squeeze_due {
        let is_squeezed = match ghosts::squeeze(repository, writer, options) {
            Ok(squeezed) => {
                summary.add(&squeezed);
                true
            }
            Err(EngineError::Store(error)) if error.is_damage() => {
                passed_over.tell(format!("what only deltas need in series {}", writer.series()), &error);
                writer.sweep()?;
                false
            }
            Err(error) => return Err(error),
        };
        let forget = ForgetOptions {
            allow_remove_all: true,
            dry_run: false,
            rewrite_threshold: options.threshold,
            take_over: false,
            user: options.user.clone(),
            compression_level: options.compression_level,
            marking: Marking::default(),
        };
        let credit = |manifest: &mut Manifest, bytes_written| {
            credit_last(manifest, &MigrateSummary { bytes_written, ..MigrateSummary::default() });
        };
        let (written, deleted) = compact(repository, writer, &forget, observer, credit)?;
        summary.bytes_written += written;
        summary.bytes_deleted += deleted;
        if is_squeezed {
            let mut next = writer.manifest().clone();
            next.squeeze_due = false;
            writer.commit(next, true, now())?;
        }
    }
    summary.add(&merge::merge(repository, writer, options, &mut passed_over)?);
    summary.passed_over = passed_over.count();
    Ok(summary)
}

fn settle_column(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    position: usize,
    likes: Option<Likes>,
    options: &MigrateOptions,
    observer: &dyn Observer,
    passed_over: &mut PassedOver<'_>,
) -> Result<MigrateSummary, EngineError> {
    let column = Column::new(repository, writer.manifest(), position, likes, options)?;
    let mut summary = MigrateSummary::default();
    let before = passed_over.count();
    let containers = passed_over.present(writer, column.containers(writer.manifest()));
    let mut left = pieces(writer.manifest(), containers, options.piece_bytes);
    while let Some(containers) = left.pop_front() {
        if observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let (_, piece) = passed_over.work_on_sound(writer, containers, |writer, sink, containers| {
            piece::make(repository, writer.manifest(), sink, &column, containers, options)
        })?;
        summary.add(&commit_piece(repository, writer, &column, &piece, left.is_empty(), options)?);
    }
    summary.settled = u64::from(passed_over.count() == before);
    Ok(summary)
}

/// Containers in pieces of at most so many bytes; at least one container in each, and at least one piece.
fn pieces(manifest: &Manifest, containers: Vec<ContainerId>, piece_bytes: u64) -> VecDeque<Vec<ContainerId>> {
    let bytes: HashMap<ContainerId, u64> =
        manifest.containers.iter().map(|record| (record.id, record.object_bytes)).collect();
    let (mut pieces, mut last, mut last_bytes) = (VecDeque::new(), Vec::new(), 0);
    for id in containers {
        let added = bytes.get(&id).copied().unwrap_or_default();
        if !last.is_empty() && last_bytes + added > piece_bytes {
            pieces.push_back(std::mem::take(&mut last));
            last_bytes = 0;
        }
        last_bytes += added;
        last.push(id);
    }
    pieces.push_back(last);
    pieces
}

/// Commits a piece, then deletes the containers it replaces.
fn commit_piece(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    column: &Column,
    piece: &Piece,
    is_last: bool,
    options: &MigrateOptions,
) -> Result<MigrateSummary, EngineError> {
    let mut summary = piece.summary();
    let mut next = piece.apply(writer.manifest(), column);
    credit(&mut next, column.position + 1, &summary);
    if is_last {
        column.settle(&mut next);
    }
    summary.add(&commit(repository, writer, next, options)?);
    Ok(summary)
}

/// Adds what was done to the statistics of the snapshot at this position: the one whose backup left it to be done.
fn credit(manifest: &mut Manifest, position: usize, done: &MigrateSummary) {
    let id = manifest.snapshots().get(position).map(|snapshot| snapshot.id);
    if let Some(snapshot) = id.and_then(|id| manifest.snapshot_mut(&id)) {
        let statistics = &mut snapshot.statistics;
        statistics.deltas_kept = statistics.deltas_kept.saturating_add(done.deltas_kept);
        statistics.deltas_rejected = statistics.deltas_rejected.saturating_add(done.deltas_rejected);
        statistics.bytes_migrated = statistics.bytes_migrated.saturating_add(done.bytes_written);
    }
}

/// The same for the last snapshot.
fn credit_last(manifest: &mut Manifest, done: &MigrateSummary) {
    credit(manifest, manifest.snapshots().len().saturating_sub(1), done);
}

/// Commits `next` once what is new in it was read back, then deletes the containers that it no longer names. The lease
/// is kept.
fn commit(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    next: Manifest,
    options: &MigrateOptions,
) -> Result<MigrateSummary, EngineError> {
    let mut summary = MigrateSummary::default();
    let kept: HashSet<_> = next.containers.iter().map(|record| record.id).collect();
    if options.verify_written {
        let before: HashSet<_> = writer.manifest().containers.iter().map(|record| record.id).collect();
        verify_written(repository, next.series, next.containers.iter().filter(|record| !before.contains(&record.id)))?;
    }
    let gone: Vec<_> =
        writer.manifest().containers.iter().filter(|record| !kept.contains(&record.id)).cloned().collect();
    summary.containers_deleted = gone.len() as u64;
    summary.bytes_deleted = gone.iter().map(|record| record.object_bytes).sum();
    writer.commit(next, true, now())?;
    writer.delete(&gone.iter().map(|record| record.id).collect::<Vec<_>>())?;
    Ok(summary)
}

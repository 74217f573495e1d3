//! Settling a series: snapshot by snapshot, oldest first, in pieces that are committed each.

use super::commit::{commit, credit, credit_last};
use super::compact::compact;
use super::options::{MigrateOptions, MigrateSummary};
use super::retired::RetiredChunks;
use super::rewrite::Rewriting;
use super::sound::PassedOver;
use super::split::{self, Split};
use super::{ghosts, merge};
use crate::delta::SimilarIndex;
use crate::lease::now;
use crate::{EngineError, Observer};
use siltstone_store::ContainerId;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use std::collections::{HashMap, VecDeque};

/// Settles what is unsettled in a series, oldest first, and eliminates the ghosts that forgetting has made. `similar`
/// holds the chunks of the last snapshot that the one before it lacks, by their sketches; without it they are read
/// again. The lease is kept.
///
/// # Errors
/// Of the repository, or because the user asked to stop; what is settled by then stays so. A container that is damaged
/// or missing is told and left as it is.
pub(crate) fn settle(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    mut similar: Option<SimilarIndex>,
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
        let similar = if position + 1 == last { similar.take() } else { None };
        if unsettled(writer, position) {
            summary.add(&settle_retired(repository, writer, position, similar, options, observer, &mut passed_over)?);
        }
    }
    if writer.manifest().squeeze_due {
        summary.add(&clean_up(repository, writer, options, observer, &passed_over)?);
    }
    summary.add(&merge::merge(repository, writer, options, &mut passed_over)?);
    summary.passed_over = passed_over.count();
    Ok(summary)
}

/// Cleans up after snapshots were taken out: shrinks hulls, eliminates ghosts, and compacts what is dead in part.
fn clean_up(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    options: &MigrateOptions,
    observer: &dyn Observer,
    passed_over: &PassedOver<'_>,
) -> Result<MigrateSummary, EngineError> {
    let mut summary = MigrateSummary::default();
    let is_done = match ghosts::eliminate(repository, writer, options) {
        Ok(done) => {
            summary.add(&done);
            true
        }
        Err(EngineError::Store(error)) if error.is_damage() => {
            passed_over.tell(format!("what only deltas need in series {}", writer.series()), &error);
            writer.sweep()?;
            false
        }
        Err(error) => return Err(error),
    };
    let rewriting = Rewriting { threshold: options.threshold, compression_level: options.compression_level };
    let credit = |manifest: &mut Manifest, bytes_written| {
        credit_last(manifest, &MigrateSummary { bytes_written, ..MigrateSummary::default() });
    };
    let (bytes_written, bytes_deleted) = compact(repository, writer, rewriting, observer, credit)?;
    summary.add(&MigrateSummary { bytes_written, bytes_deleted, ..MigrateSummary::default() });
    if is_done {
        let mut next = writer.manifest().clone();
        next.squeeze_due = false;
        writer.commit(next, true, now())?;
    }
    Ok(summary)
}

fn settle_retired(
    repository: &Repository,
    writer: &mut SeriesWriter<'_>,
    position: usize,
    similar: Option<SimilarIndex>,
    options: &MigrateOptions,
    observer: &dyn Observer,
    passed_over: &mut PassedOver<'_>,
) -> Result<MigrateSummary, EngineError> {
    let retired = RetiredChunks::new(repository, writer.manifest(), position, similar, options)?;
    let mut summary = MigrateSummary::default();
    let before = passed_over.count();
    let containers = passed_over.present(writer, retired.containers(writer.manifest()));
    let mut left = pieces(writer.manifest(), containers, options.piece_bytes);
    while let Some(containers) = left.pop_front() {
        if observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let (_, split) = passed_over.work_on_sound(writer, containers, |writer, sink, containers| {
            split::split(repository, writer.manifest(), sink, &retired, containers, options)
        })?;
        summary.add(&commit_piece(repository, writer, &retired, &split, left.is_empty(), options)?);
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
    retired: &RetiredChunks,
    split: &Split,
    is_last: bool,
    options: &MigrateOptions,
) -> Result<MigrateSummary, EngineError> {
    let mut summary = split.summary();
    let mut next = split.apply(writer.manifest(), retired);
    credit(&mut next, retired.position + 1, &summary);
    if is_last {
        retired.settle(&mut next);
    }
    summary.add(&commit(repository, writer, next, options)?);
    Ok(summary)
}

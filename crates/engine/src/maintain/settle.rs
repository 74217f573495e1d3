//! Settling a series: snapshot by snapshot, oldest first, in pieces that are committed each.

use super::commit::{commit, credit};
use super::compact::compact;
use super::damage::PassedOver;
use super::options::{MaintainSummary, Maintenance};
use super::pieces::pieces;
use super::retired::{self, RetiredChunks};
use super::split::{self, Split};
use super::{ghosts, merge};
use crate::EngineError;
use crate::delta::NewChunks;
use siltstone_store::SnapshotId;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;

/// Settles what is unsettled in a series, oldest first, and eliminates the ghosts that forgetting has made. `new` are
/// the chunks of the last snapshot that the one before it lacks; without it they are read again. The lease is kept.
///
/// # Errors
/// Errors of the repository, or a stop by the user; what is settled by then stays so. A container that is damaged or
/// missing is reported and left as it is.
pub(crate) fn settle(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    mut new: Option<NewChunks>,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    let mut passed_over = PassedOver::new(work.resources);
    let last = writer.manifest().snapshots().len().saturating_sub(1);
    let unsettled = |writer: &SeriesWriter<'_>, position: usize| {
        let manifest = writer.manifest();
        manifest.snapshots().get(position).is_some_and(|snapshot| manifest.unsettled.contains(&snapshot.id))
    };
    for position in 0..last {
        // What is known of the newest chunks is not known of earlier ones.
        let new = if position + 1 == last { new.take() } else { None };
        if unsettled(writer, position) {
            summary.add(&settle_retired(work, writer, position, new, &mut passed_over)?);
        }
    }
    if writer.manifest().ghosts_due {
        summary.add(&clean_up(work, writer, &passed_over)?);
    }
    summary.add(&merge::merge(work, writer, &mut passed_over)?);
    summary.passed_over = passed_over.count();
    Ok(summary)
}

/// Settles a series in its manifest alone, where that is all there is to do: nothing is unsettled but what retired with
/// the last snapshot but one, and no container holds any of that. Else the manifest stays as it is. Exact layout
/// (threshold 0) is for [`settle`] to keep.
pub(crate) fn settle_in_manifest(manifest: &mut Manifest, threshold: f64) -> bool {
    if threshold <= 0.0 || manifest.ghosts_due || !merge::is_merged(manifest) {
        return false;
    }
    let Some(position) = manifest.snapshots().len().checked_sub(2) else {
        return manifest.unsettled.is_empty();
    };
    let is_last = |id: &SnapshotId| manifest.snapshots().get(position).is_some_and(|snapshot| snapshot.id == *id);
    manifest.unsettled.iter().all(is_last) && retired::settle_nothing(manifest, position)
}

/// Cleans up after snapshots were taken out: shrinks hulls, eliminates ghosts, and compacts what is dead in part.
fn clean_up(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    passed_over: &PassedOver<'_>,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    let is_done = match ghosts::eliminate(work, writer) {
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
    summary.add(&compact(work, writer)?);
    if is_done {
        let mut next = writer.manifest().clone();
        next.ghosts_due = false;
        writer.stage(next);
    }
    Ok(summary)
}

fn settle_retired(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    position: usize,
    new: Option<NewChunks>,
    passed_over: &mut PassedOver<'_>,
) -> Result<MaintainSummary, EngineError> {
    let retired = RetiredChunks::new(work, writer.manifest(), position, new)?;
    let mut summary = MaintainSummary::default();
    let before = passed_over.count();
    let containers = passed_over.present(writer, retired.containers(writer.manifest()));
    let mut left = pieces(writer.manifest(), containers, work.options.piece_bytes);
    work.resources.observer.settle(0, left.iter().map(|(_, bytes)| bytes).sum());
    while let Some((containers, bytes)) = left.pop_front() {
        work.resources.unless_cancelled()?;
        let (_, split) = passed_over.work_on_sound(writer, containers, |writer, sink, containers| {
            split::split(work, writer.manifest(), sink, &retired, containers)
        })?;
        summary.add(&commit_piece(work, writer, &retired, &split, left.is_empty())?);
        work.resources.observer.settle(bytes, 0);
    }
    summary.settled = u64::from(passed_over.count() == before);
    Ok(summary)
}

/// Commits a piece, then deletes the containers it replaces.
fn commit_piece(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    retired: &RetiredChunks,
    split: &Split,
    is_last: bool,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = split.summary();
    let mut next = split.apply(writer.manifest(), retired);
    credit(&mut next, retired.position + 1, &summary);
    if is_last {
        retired.settle(&mut next);
    }
    summary.add(&commit(work, writer, next)?);
    Ok(summary)
}

//! Shortcuts: deltas that hang on chunks of the next snapshot but one, so that fewer regions are decoded for whoever
//! reads old snapshots.
//!
//! A backup encodes what it leaves behind against what took its place, so the first of a hundred snapshots hangs on the
//! 99 others. Here every second snapshot is passed over (module `rebase`): what hung on its chunks is encoded against
//! what those hang on. None on either side of it is passed over as well, so chains come to half their length and the
//! differences to no more than two steps.
//!
//! ```text
//! v0 -> v1 -> v2 -> v3 -> v4      becomes  v0 -> v2 -> v4,  v1 -> v2,  v3 -> v4       (-> : hangs on)
//! ```
//!
//! Two steps take more bytes than one: hardly more where the same places change again and again, twice as many where
//! others do each time. It is done only where it saves [`TEXT_PER_BYTE`] bytes of text to decode for each byte that it
//! takes, by a sample first and then by what was encoded; and never takes more than one byte in [`BYTES_ONE_IN`] of the
//! series. What was found is noted in the manifest by snapshot, so that nothing is weighed twice.
//!
//! A snapshot that was passed over holds up nothing when it is forgotten: it leaves no ghosts.

use super::commit::{commit, credit_last};
use super::compact::compact;
use super::dead::object_bytes;
use super::options::{MaintainOptions, MaintainSummary, Maintenance};
use super::rebase::{Rebasing, stored_bytes};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::observer::Notice;
use crate::pack::DrySink;
use roaring::RoaringTreemap;
use siltstone_store::SnapshotId;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;
use std::sync::Arc;

/// Text that is encoded once more in a run: a minute's work, about, of two cores.
pub(super) const IDLE_TEXT_BYTES: u64 = 4 << 30;
/// Text that each snapshot counts for besides: to weigh it indexes are read, and a sample and its bases decoded.
const WEIGHING_TEXT_BYTES: u64 = 128 << 20;
/// Text that a shortcut saves for each byte that it takes, at least. Of data folders of a database it is 270 to 690, of
/// archives of them 310 to 420; of sources 90 to 260, which come back no faster; of dumps of which other parts change
/// each time 30.
const TEXT_PER_BYTE: u64 = 256;
/// How much a sample may overstate what a shortcut takes: it carries a container of its own.
const SAMPLE_ERROR: u64 = 2;
/// Shortcuts take one byte in so many of a series, at most; recompression, which comes next, gains more than that.
const BYTES_ONE_IN: u64 = 16;

/// Tells whether there are snapshots of a series for which shortcuts may be weighed.
pub(super) fn is_due(options: &MaintainOptions, manifest: &Manifest) -> bool {
    let is_settled = manifest.unsettled.is_empty() && !manifest.ghosts_due;
    // An exact layout has no place for what two snapshots need and the one between them does not.
    let may_move = options.deltas.is_reverse() && options.threshold > 0.0;
    may_move && is_settled && bytes_left(manifest) > 0 && next(manifest).is_some()
}

/// Bytes that further shortcuts may take.
fn bytes_left(manifest: &Manifest) -> u64 {
    let taken = manifest.shortcuts.values().flatten().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes));
    (object_bytes(&manifest.containers) / BYTES_ONE_IN).saturating_sub(taken)
}

/// The first snapshot, by position, for which a shortcut is yet to be weighed, with its identity.
fn next(manifest: &Manifest) -> Option<(usize, SnapshotId)> {
    let is_passed = |id: &SnapshotId| manifest.shortcuts.get(id).is_some_and(Option::is_some);
    let found = (1..).zip(manifest.snapshots().windows(3)).find(|(_, around)| match around {
        [before, snapshot, after] => {
            let is_weighed = manifest.shortcuts.contains_key(&snapshot.id);
            !is_weighed && snapshot.deleted.is_none() && !is_passed(&before.id) && !is_passed(&after.id)
        }
        _ => false,
    });
    found.and_then(|(position, around)| Some((position, around.get(1)?.id)))
}

/// Makes shortcuts in a series where they pay, the oldest first, until so much text was encoded; what is left of that
/// is set. The lease is kept.
///
/// # Errors
/// Errors of the repository, or a stop by the user. What cannot be read is told, and not tried again.
pub(super) fn make(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    text_bytes: &mut u64,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    while *text_bytes > 0 && bytes_left(writer.manifest()) > 0 {
        work.resources.unless_cancelled()?;
        let Some((position, id)) = next(writer.manifest()) else { break };
        match pass_over(work, writer, position, id, text_bytes) {
            Ok(done) => summary.add(&done),
            Err(error) if error.is_damage() => {
                let object = format!("deltas that hang on snapshot {} of series {}", id.short(), writer.series());
                work.resources.observer.notice(&Notice::PassedOver { object, reason: error.to_string() });
                writer.sweep()?;
                note(writer, id, None);
            }
            Err(error) => return Err(error),
        }
    }
    if summary.shortcuts_made > 0 {
        summary.add(&compact(work, writer)?);
    }
    Ok(summary)
}

/// Notes what was found for a snapshot; the next commit takes it along.
fn note(writer: &mut SeriesWriter<'_>, id: SnapshotId, bytes: Option<u64>) {
    let mut next = writer.manifest().clone();
    next.shortcuts.insert(id, bytes);
    writer.stage(next);
}

/// Makes a shortcut past one snapshot if it pays, and notes what was found.
fn pass_over(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    position: usize,
    id: SnapshotId,
    text_bytes: &mut u64,
) -> Result<MaintainSummary, EngineError> {
    let manifest = writer.manifest().clone();
    let chunks = Arc::new(ChunkSource::new(work.repository, &manifest));
    let of_lent = chunks.closure(&manifest.lent)?;
    let retired = manifest.necessary(position) - manifest.necessary(position + 1);
    let rebasing = Rebasing::past(&(retired - &of_lent - manifest.ghosts()), &chunks, &manifest.live())?;
    *text_bytes = text_bytes.saturating_sub(WEIGHING_TEXT_BYTES);
    if rebasing.dependents.is_empty() {
        note(writer, id, None);
        return Ok(MaintainSummary::default());
    }
    let bytes_left = bytes_left(&manifest);
    let pays = |bytes: u64| bytes <= rebasing.text_bytes / TEXT_PER_BYTE && bytes <= bytes_left;
    if let Some(sample) = rebasing.sample() {
        let nowhere = DrySink::new(manifest.sequence);
        let tried = rebasing.encode(work, &chunks, &nowhere, &manifest, &sample)?;
        let of_sample = stored_bytes(&sample).max(1);
        let more = tried.packed.object_bytes().saturating_sub(of_sample);
        let more = u128::from(more) * u128::from(rebasing.stored_bytes()) / u128::from(of_sample * SAMPLE_ERROR);
        if !u64::try_from(more).is_ok_and(pays) {
            note(writer, id, None);
            return Ok(MaintainSummary::default());
        }
    }
    *text_bytes = text_bytes.saturating_sub(rebasing.plain_bytes());
    let repacked = rebasing.encode(work, &chunks, writer, &manifest, &rebasing.all())?;
    let written = repacked.packed.object_bytes();
    let more = written.saturating_sub(rebasing.stored_bytes());
    if !pays(more) {
        writer.sweep()?;
        note(writer, id, None);
        return Ok(MaintainSummary::default());
    }
    let mut summary = MaintainSummary {
        bytes_written: written,
        containers_written: repacked.packed.containers.len() as u64,
        shortcuts_made: 1,
        ..MaintainSummary::default()
    };
    let mut next = manifest.clone();
    rebasing.apply(work.repository, repacked, RoaringTreemap::new(), &of_lent, &mut next)?;
    next.shortcuts.insert(id, Some(more));
    credit_last(&mut next, &summary);
    summary.add(&commit(work, writer, next)?);
    Ok(summary)
}

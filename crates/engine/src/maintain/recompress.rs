//! Recompression: what is at rest is encoded once more, at a higher level.
//!
//! A backup encodes fast, for somebody waits for it. What it wrote lies for months and is read seldom: then it pays to
//! take twenty times as long for a quarter less. Here every region of a container is decoded and encoded again, a delta
//! against the bases that it had, so that no chain becomes longer; what zstd did not make smaller the first time is
//! copied. What comes of it is laid out as before, whole chunks in larger regions, in containers of which the manifest
//! notes the level, so that nothing is done twice.
//!
//! Containers of which nothing would be encoded anew are left where they are. The others are taken in pieces, each with
//! a commit of its own: first those that the last snapshot does not need, for what is in them changes no more, then the
//! others; the oldest first. A piece of which less than a part in [`GAIN_ONE_IN`] would be gained stays as it is, and
//! the level is noted as well. What a later backup splits or merges lies in new containers, of which no level is noted:
//! then it is tried once more.

use super::commit::{commit, credit_last};
use super::damage::PassedOver;
use super::dead::object_bytes;
use super::layout::class;
use super::options::{MaintainSummary, Maintenance, Recompression};
use super::pieces::pieces;
use super::repack::{Effort, RepackOptions, Repacker};
use super::rewrite::replace;
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::lifecycle::lifecycles;
use crate::pack::ContainerSink;
use siltstone_store::container::ContainerRecord;
use siltstone_store::manifest::Manifest;
use siltstone_store::series::SeriesWriter;
use siltstone_store::{ChunkNumber, ContainerId};
use std::collections::HashSet;
use std::sync::Arc;

/// Bytes of containers that are worked on between two commits: a minute's work, about, of two cores.
const PIECE_BYTES: u64 = 64 << 20;
/// Less than this part of a piece is not worth writing it anew.
const GAIN_ONE_IN: u64 = 32;

/// Recompresses containers of a series as far as the bytes asked for reach, which are lowered by what was taken. The
/// lease is kept.
///
/// # Errors
/// As [`settle`](super::settle()).
pub(super) fn recompress(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    asked: &mut Recompression,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary::default();
    let mut passed_over = PassedOver::new(work.resources);
    let level = asked.level;
    let ids = passed_over.present(writer, due(writer.manifest(), asked));
    let mut left = pieces(writer.manifest(), ids, PIECE_BYTES);
    work.resources.observer.settle(0, left.iter().map(|(_, bytes)| bytes).sum());
    while let Some((ids, bytes)) = left.pop_front() {
        work.resources.unless_cancelled()?;
        if ids.is_empty() {
            break;
        }
        let (taken, encoded) = passed_over
            .work_on_sound(writer, ids, |writer, sink, ids| encode_anew(work, writer.manifest(), sink, ids, level))?;
        summary.add(&commit_piece(work, writer, &taken, encoded, level)?);
        work.resources.observer.settle(bytes, 0);
    }
    summary.passed_over = passed_over.count();
    Ok(summary)
}

/// Tells whether a series has containers that are to be recompressed.
pub(super) fn is_due(manifest: &Manifest, asked: Recompression) -> bool {
    asked.bytes_max > 0 && !candidates(manifest, asked).is_empty()
}

/// Containers that may be recompressed, those first that the last snapshot does not need.
fn candidates(manifest: &Manifest, asked: Recompression) -> Vec<&ContainerRecord> {
    let last = manifest.necessary(manifest.snapshots().len().saturating_sub(1));
    let below = manifest.containers.iter().filter(|record| record.level < asked.level);
    let mut found: Vec<_> = below.map(|record| ((record.answers_for_any(&last), record.id), record)).collect();
    found.retain(|((is_of_last, _), _)| !(*is_of_last && asked.only_when_idle));
    found.sort_by_key(|(rank, _)| *rank);
    found.into_iter().map(|(_, record)| record).collect()
}

/// The containers whose turn it is, in their order; the bytes asked for are lowered by theirs. The first is taken even
/// if it alone has more: else a small number of bytes would never do anything.
fn due(manifest: &Manifest, asked: &mut Recompression) -> Vec<ContainerId> {
    let mut ids = Vec::new();
    for record in candidates(manifest, *asked) {
        if asked.bytes_max == 0 || (record.object_bytes > asked.bytes_max && !ids.is_empty()) {
            break;
        }
        asked.bytes_max = asked.bytes_max.saturating_sub(record.object_bytes);
        ids.push(record.id);
    }
    ids
}

/// Outcome of encoding containers anew.
#[derive(Default)]
struct EncodedAnew {
    /// Containers that the new ones may take the place of.
    old: HashSet<ContainerId>,
    /// New containers.
    new: Vec<ContainerRecord>,
}

/// Makes new containers of what those of these answer for of which anything would be encoded anew.
fn encode_anew(
    work: Maintenance<'_>,
    manifest: &Manifest,
    sink: &dyn ContainerSink,
    containers: &[ContainerId],
    level: u8,
) -> Result<EncodedAnew, EngineError> {
    let chunks = Arc::new(ChunkSource::new(work.repository, manifest));
    let last = manifest.snapshots().len().saturating_sub(1);
    let live = manifest.kept();
    let is_exact = work.options.threshold <= 0.0;
    std::thread::scope(|scope| {
        let options = RepackOptions { effort: Effort::Thorough(level), is_exact };
        let mut repacker = Repacker::start(scope, &chunks, manifest, sink, options, work.resources)?;
        let mut old = HashSet::new();
        for id in containers {
            let found = manifest.containers.iter().enumerate().find(|(_, record)| record.id == *id);
            let Some((at, record)) = found else { continue };
            let kept = record.numbers() & &live;
            let found = lifecycles(manifest, &kept);
            let class_of = |number: ChunkNumber| {
                let lifecycle = *found.get(&number.0)?;
                Some(class(record.kind, lifecycle, lifecycle.column == last, is_exact))
            };
            if repacker.changes(at, 0.0, class_of)? {
                repacker.move_container(at, 0.0, class_of)?;
                old.insert(record.id);
            }
        }
        Ok(EncodedAnew { old, new: repacker.finish()?.packed.containers })
    })
}

/// Commits the new containers in place of the old ones where they are smaller, and notes the level of all others.
fn commit_piece(
    work: Maintenance<'_>,
    writer: &mut SeriesWriter<'_>,
    taken: &[ContainerId],
    EncodedAnew { old, new }: EncodedAnew,
    level: u8,
) -> Result<MaintainSummary, EngineError> {
    let mut summary = MaintainSummary { recompressed: taken.len() as u64, ..MaintainSummary::default() };
    let mut next = writer.manifest().clone();
    let old: Vec<_> = next.containers.iter().filter(|record| old.contains(&record.id)).cloned().collect();
    let (old_bytes, new_bytes) = (object_bytes(&old), object_bytes(&new));
    if new_bytes < old_bytes - old_bytes / GAIN_ONE_IN {
        summary.bytes_written = new_bytes;
        summary.containers_written = new.len() as u64;
        replace(&mut next, &old, new.into_iter().map(|record| ContainerRecord { level, ..record }).collect());
        credit_last(&mut next, &summary);
    } else if !new.is_empty() {
        // No manifest names what was made.
        writer.sweep()?;
    }
    let taken: HashSet<ContainerId> = taken.iter().copied().collect();
    next.containers.iter_mut().filter(|record| taken.contains(&record.id)).for_each(|record| record.level = level);
    summary.add(&commit(work, writer, next)?);
    Ok(summary)
}

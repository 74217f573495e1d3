//! The second walk: directories get their metadata, deepest first, and with `--delete` what the snapshot does not hold is removed.

use super::place::Placing;
use super::{RestoreSummary, Task};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::fs::{Problem, ProblemKind, Selection, TargetDir};
use crate::observer::EntryAction;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::collections::BTreeSet;

/// A directory whose entries are passing by.
struct Frame {
    /// In the snapshot; `None` for the root above all.
    path: Option<EntryPath>,
    /// In the target; `None` for the target itself.
    target: Option<EntryPath>,
    metadata: Option<Metadata>,
    /// Whether it was asked for, and not only passed through.
    selected: bool,
    /// Whether anything in it, or it itself, was taken, so that it exists in the target.
    used: bool,
    /// The names it holds in the snapshot; gathered only to delete others.
    names: BTreeSet<Vec<u8>>,
    /// Whether a damaged part of the catalog may hold more names of it: then nothing in it is deleted.
    is_incomplete: bool,
}

/// Applies metadata to all restored directories; removes what the snapshot does not hold, if asked.
pub(super) fn finish_directories(
    task: &Task<'_>,
    placing: &Placing<'_>,
    chunks: &ChunkSource<'_>,
    is_new_target: bool,
    summary: &mut RestoreSummary,
) -> Result<(), EngineError> {
    let delete = task.options.delete;
    let mut leave = |frame: Frame| {
        if delete && frame.selected && frame.is_incomplete {
            let reason =
                "the catalog is damaged here: what else the snapshot holds is not known, so nothing is removed";
            placing.report(&Problem::at(frame.target.as_ref(), ProblemKind::NotRemoved, reason));
        } else if delete && frame.selected {
            let target = placing.target;
            let is_wanted = |name: &[u8]| frame.holds(name) || is_excluded(task, &frame, name);
            let mut removed = |path: &EntryPath| {
                summary.deleted += 1;
                if task.observer.wants_entries() {
                    task.observer.entry(path, EntryAction::Deleted, 0);
                }
            };
            for problem in target.remove_extra(frame.target.as_ref(), is_wanted, &mut removed) {
                placing.report(&problem);
            }
        }
        let is_root = frame.target.is_none();
        if let (Some(metadata), true) = (&frame.metadata, frame.used && (!is_root || is_new_target)) {
            for problem in placing.target.apply_metadata(frame.target.as_ref(), metadata) {
                placing.report(&problem);
            }
        }
    };
    walk(task, chunks, &mut leave)
}

/// How much `--delete` would remove; for a dry run.
pub(super) fn count_extra(task: &Task<'_>, target: &TargetDir, chunks: &ChunkSource<'_>) -> Result<u64, EngineError> {
    let mut extra = 0;
    let mut leave = |frame: Frame| {
        if frame.selected && !frame.is_incomplete {
            let names = target.list(frame.target.as_ref()).unwrap_or_default();
            extra += names.iter().filter(|name| !frame.holds(name) && !is_excluded(task, &frame, name)).count() as u64;
        }
    };
    walk(task, chunks, &mut leave)?;
    Ok(extra)
}

/// Walks the directories of the part, calling `leave` for each after all below it.
fn walk(task: &Task<'_>, chunks: &ChunkSource<'_>, leave: &mut dyn FnMut(Frame)) -> Result<(), EngineError> {
    let root = Frame {
        path: None,
        target: None,
        metadata: None,
        selected: task.options.filter.takes_everything() && task.part.below.is_none(),
        used: false,
        names: BTreeSet::new(),
        is_incomplete: false,
    };
    let mut frames = vec![root];
    let gather = task.options.delete;
    for entry in task.entries(chunks) {
        if task.observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        // A damaged node was told by the first walk. What it held lies, in the order of the walk, in the directories open here.
        let Ok(entry) = entry else {
            for frame in &mut frames {
                frame.is_incomplete = true;
            }
            continue;
        };
        let is_below = |frame: &Frame| frame.path.as_ref().is_none_or(|path| entry.path.is_beneath(path));
        while frames.last().is_some_and(|frame| !is_below(frame)) {
            pop(&mut frames, leave);
        }
        if gather && let Some(frame) = frames.last_mut() {
            frame.names.insert(entry.path.name().to_vec());
        }
        let selection = task.options.filter.select(&entry.path, entry.is_directory());
        let selected = selection == Selection::Selected;
        if entry.is_directory() && selection != Selection::Excluded {
            frames.push(Frame {
                target: task.part.target_path(&entry.path),
                path: Some(entry.path),
                metadata: Some(entry.metadata),
                selected,
                used: selected,
                names: BTreeSet::new(),
                is_incomplete: false,
            });
        } else if selected && let Some(frame) = frames.last_mut() {
            frame.used = true;
        }
    }
    while !frames.is_empty() {
        pop(&mut frames, leave);
    }
    Ok(())
}

fn pop(frames: &mut Vec<Frame>, leave: &mut dyn FnMut(Frame)) {
    if let Some(frame) = frames.pop() {
        if let Some(above) = frames.last_mut() {
            above.used |= frame.used;
        }
        leave(frame);
    }
}

impl Frame {
    fn holds(&self, name: &[u8]) -> bool {
        self.names.contains(name)
    }
}

/// Whether the filter leaves this name out: then it is not for the restore to touch.
fn is_excluded(task: &Task<'_>, frame: &Frame, name: &[u8]) -> bool {
    let path = match &frame.path {
        Some(directory) => directory.join(name),
        None => EntryPath::new(name),
    };
    path.is_ok_and(|path| task.options.filter.select(&path, false) == Selection::Excluded)
}

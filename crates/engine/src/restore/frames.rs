//! The directories that the walk is in: from the root down to the current entry.
//!
//! The catalog lists a directory before all it holds, so one that is left is never entered again: it can be finished.
//! Memory grows with the depth and, for `--delete`, with the names of the directories open.

use super::run::RestoreRun;
use crate::fs::{DirectoryOutcome, EntrySelection, TargetDir};
use siltstone_store::catalog::{Entry, EntryPath, Metadata};
use std::collections::BTreeSet;

/// Bytes of memory that a frame is counted as, its names apart.
const FRAME_BYTES: u64 = 1000;
/// Bytes of memory that a name is counted as, its own bytes apart.
const NAME_BYTES: u64 = 64;

/// A directory whose entries are passing by.
#[derive(Default)]
pub(super) struct Frame {
    /// In the snapshot; `None` for the root above all.
    pub(super) path: Option<EntryPath>,
    /// In the target; `None` for the target itself.
    pub(super) target: Option<EntryPath>,
    /// `None` if no entry of it came by, because that part of the catalog is damaged, and for the root above all.
    pub(super) metadata: Option<Metadata>,
    /// True if it was asked for, and not only passed through.
    pub(super) selected: bool,
    /// True if anything in it, or it itself, was taken, so that it exists in the target.
    pub(super) used: bool,
    /// Outcome of making it; `None` while it is only passed through, until something below it is taken.
    pub(super) made: Option<DirectoryOutcome>,
    /// The names it holds in the snapshot, gathered only to delete others: all for `--delete`, otherwise those that a
    /// draft might have.
    names: BTreeSet<Vec<u8>>,
    names_bytes: u64,
    /// True if a damaged part of the catalog may hold more names of it: then nothing in it is deleted.
    pub(super) is_incomplete: bool,
}

impl Frame {
    /// Tells whether the snapshot has this name in the directory; of names that no draft has, known only for
    /// `--delete`.
    pub(super) fn holds(&self, name: &[u8]) -> bool {
        self.names.contains(name)
    }

    /// About the memory it takes.
    pub(super) fn bytes(&self) -> u64 {
        FRAME_BYTES + self.names_bytes
    }

    fn is_above(&self, path: &EntryPath) -> bool {
        self.path.as_ref().is_none_or(|above| path.is_beneath(above))
    }

    fn path_bytes(&self) -> usize {
        self.path.as_ref().map_or(0, |path| path.as_bytes().len() + 1)
    }

    fn add_name(&mut self, name: &[u8]) {
        self.names_bytes += NAME_BYTES + name.len() as u64;
        self.names.insert(name.to_vec());
    }
}

/// The directories the walk is in, the deepest last.
pub(super) struct Frames<'t> {
    run: &'t RestoreRun<'t>,
    frames: Vec<Frame>,
}

impl<'t> Frames<'t> {
    /// Before the first entry; `made` says whether the target is new.
    pub(super) fn new(run: &'t RestoreRun<'t>, made: DirectoryOutcome) -> Self {
        let selected = run.options.filter.takes_everything() && run.part.below.is_none();
        Self { run, frames: vec![Frame { selected, made: Some(made), ..Frame::default() }] }
    }

    /// Leaves the directories that do not hold this entry (without one: all), the deepest first.
    pub(super) fn leave(&mut self, next: Option<&EntryPath>) -> Option<Frame> {
        let last = self.frames.last()?;
        if next.is_some_and(|path| last.is_above(path)) {
            return None;
        }
        let left = self.frames.pop()?;
        if let Some(above) = self.frames.last_mut() {
            above.used |= left.used;
        }
        Some(left)
    }

    /// Takes note of an entry in the directory last entered, with the directories above it that did not come by: their
    /// part of the catalog is damaged.
    pub(super) fn note(&mut self, entry: &Entry) {
        let path = entry.path.as_bytes();
        let known = self.frames.last().map_or(0, Frame::path_bytes).max(self.run.part.cut);
        for (end, _) in path.iter().enumerate().skip(known).filter(|(_, byte)| **byte == b'/') {
            if let Some(above) = path.get(..end).and_then(|path| EntryPath::new(path).ok()) {
                self.add_name(above.name());
                self.push(Frame { target: self.run.part.target_path(&above), path: Some(above), ..Frame::default() });
            }
        }
        self.add_name(entry.path.name());
    }

    fn add_name(&mut self, name: &[u8]) {
        if (self.run.options.delete || TargetDir::is_hidden_name(name))
            && let Some(frame) = self.frames.last_mut()
        {
            frame.add_name(name);
        }
    }

    /// Enters a directory.
    pub(super) fn enter(&mut self, entry: &Entry, selection: EntrySelection) {
        let target = self.run.part.target_path(&entry.path);
        let selected = selection == EntrySelection::Selected;
        // The one that becomes the target itself is as new as that.
        let made = if target.is_none() { self.frames.first().and_then(|root| root.made) } else { None };
        let (path, metadata) = (Some(entry.path.clone()), Some(entry.metadata.clone()));
        self.push(Frame { path, target, metadata, selected, used: selected, made, ..Frame::default() });
    }

    fn push(&mut self, frame: Frame) {
        self.frames.push(frame);
    }

    /// The directory last entered.
    pub(super) fn last(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// Takes note that something in the directory last entered is taken.
    pub(super) fn use_last(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.used = true;
        }
    }

    /// All of them, to make those that do not exist yet.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Frame> {
        self.frames.iter_mut()
    }

    /// Takes note of a damaged part of the catalog. What it held lies, in the order of the walk, in the directories
    /// open here.
    pub(super) fn mark_incomplete(&mut self) {
        for frame in &mut self.frames {
            frame.is_incomplete = true;
        }
    }
}

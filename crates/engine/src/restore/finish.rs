//! Leaving a directory for good: what a killed restore left in it goes, with `--delete` what the snapshot does not hold
//! too, and it gets its metadata, as nothing in it changes any more. What stands in the place of one that could not be
//! made is left alone.

use super::frames::Frame;
use super::options::RestoreSummary;
use super::place::Placing;
use super::run::RestoreRun;
use crate::fs::{DAMAGED_SUFFIX, DirectoryOutcome, EntrySelection, Problem, ProblemKind, TargetDir};
use crate::observer::EntryAction;
use siltstone_store::catalog::{Entry, EntryPath};

impl RestoreRun<'_> {
    /// Finishes a directory when all that it holds is in place.
    pub(super) fn finish(&self, placing: &Placing<'_>, frame: &Frame, summary: &mut RestoreSummary) {
        if frame.made == Some(DirectoryOutcome::Blocked) {
            return;
        }
        let target = placing.target;
        // A directory of the snapshot that becomes the target has the names that are in it, the root above has not.
        let is_above = frame.path.is_none() && self.part.below.as_ref().is_some_and(Entry::is_directory);
        let is_known = !is_above && !frame.is_incomplete;
        if frame.used && frame.made == Some(DirectoryOutcome::Existing) && is_known {
            target.sweep(frame.target.as_ref(), |name| frame.holds(name));
        }
        if frame.selected && self.options.delete {
            self.delete_extra(placing, frame, summary);
        }
        // A target that was there before keeps the metadata it has.
        let is_ours = frame.target.is_some() || frame.made == Some(DirectoryOutcome::New);
        if let (Some(metadata), true) = (&frame.metadata, frame.used && is_ours) {
            for problem in target.apply_metadata(frame.target.as_ref(), metadata) {
                placing.report(&problem);
            }
        }
    }

    fn delete_extra(&self, placing: &Placing<'_>, frame: &Frame, summary: &mut RestoreSummary) {
        if frame.is_incomplete {
            let reason =
                "the catalog is damaged here: what else the snapshot holds is not known, so nothing is removed";
            return placing.report(&Problem::at(frame.target.as_ref(), ProblemKind::NotRemoved, reason));
        }
        let is_wanted = |name: &[u8]| self.is_wanted(frame, name);
        let mut removed = |path: &EntryPath| self.tell_deleted(path, summary);
        for problem in placing.target.remove_extra(frame.target.as_ref(), is_wanted, &mut removed) {
            placing.report(&problem);
        }
    }

    /// Tells what `--delete` would remove from a directory; for a dry run.
    pub(super) fn plan_extra(&self, target: &TargetDir, frame: &Frame, summary: &mut RestoreSummary) {
        if self.options.delete && frame.selected && !frame.is_incomplete {
            let is_wanted = |name: &[u8]| self.is_wanted(frame, name);
            target.visit_extra(frame.target.as_ref(), is_wanted, &mut |path| self.tell_deleted(path, summary));
        }
    }

    /// Counts and reports something removed. A dry run names it whether entries are asked for or not: that is what it
    /// is for.
    pub(super) fn tell_deleted(&self, path: &EntryPath, summary: &mut RestoreSummary) {
        summary.deleted += 1;
        if self.options.dry_run || self.resources.observer.wants_entries() {
            self.resources.observer.entry(path, EntryAction::Deleted, 0);
        }
    }

    /// Tells whether a name stays in a directory: the snapshot has it, or the filter leaves it out, so that it is not
    /// for the restore to touch.
    fn is_wanted(&self, frame: &Frame, name: &[u8]) -> bool {
        let path = match &frame.path {
            Some(directory) => directory.join(name),
            None => EntryPath::new(name),
        };
        let is_excluded = |path: EntryPath| self.options.filter.select(&path, false) == EntrySelection::Excluded;
        let is_aside = self.options.keep_damaged && name.ends_with(DAMAGED_SUFFIX.as_bytes());
        frame.holds(name) || is_aside || path.is_ok_and(is_excluded)
    }
}

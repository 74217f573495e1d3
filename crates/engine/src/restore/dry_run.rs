//! A restore that looks at the target but writes nothing.

use super::action::Action;
use super::forecast::Forecast;
use super::frames::Frames;
use super::options::RestoreSummary;
use super::run::RestoreRun;
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::fs::{DirectoryOutcome, EntrySelection, FolderIdentity, Problem, ProblemKind, TargetDir};
use crate::observer::EntryAction;
use crate::usage::is_counted;
use siltstone_store::catalog::{Content, Entry};
use siltstone_store::manifest::Manifest;
use std::collections::HashSet;

/// Why nothing can be made beneath something that is no directory.
const ON_THE_WAY: &str = "something on the way to it is no directory";

impl RestoreRun<'_> {
    /// Counts and tells what a restore would do.
    pub(super) fn dry_run(
        &self,
        chunks: &ChunkSource<'_>,
        manifest: &Manifest,
        protected: HashSet<FolderIdentity>,
    ) -> Result<RestoreSummary, EngineError> {
        let mut forecast = is_counted(self.repository).then(|| Forecast::new(self, chunks, manifest));
        let target = TargetDir::open(&self.options.target, self.options.ownership).ok();
        let target = target.map(|target| target.protecting(protected));
        let mut summary = RestoreSummary::default();
        let mut frames = Frames::new(self, DirectoryOutcome::Existing);
        let mut selector = self.selector();
        for entry in self.entries(chunks) {
            if self.resources.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            match entry {
                Ok(entry) => {
                    self.leave(&mut frames, Some(&entry), target.as_ref(), &mut summary);
                    frames.note(&entry);
                    let selection = selector.select(&entry.path, entry.is_directory());
                    if entry.is_directory() && selection != EntrySelection::Excluded {
                        frames.enter(&entry, selection);
                    }
                    if selection == EntrySelection::Selected {
                        let plan = |target| self.plan_directories(&mut frames, target, &mut summary);
                        let is_blocked = target.as_ref().is_some_and(plan);
                        let place = (target.as_ref(), is_blocked);
                        self.plan_entry(&entry, place, chunks, forecast.as_mut(), &mut summary);
                    }
                }
                Err(error) => {
                    summary.problems += 1;
                    self.resources.observer.problem(&Problem::object("the catalog", ProblemKind::Damaged, error));
                    frames.mark_incomplete();
                }
            }
        }
        self.leave(&mut frames, None, target.as_ref(), &mut summary);
        if let Some(forecast) = &mut forecast {
            forecast.count(&mut summary);
        }
        self.report_unmatched(&selector, summary.entries, summary.problems)?;
        Ok(summary)
    }

    fn leave(
        &self,
        frames: &mut Frames<'_>,
        next: Option<&Entry>,
        target: Option<&TargetDir>,
        summary: &mut RestoreSummary,
    ) {
        while let Some(left) = frames.leave(next.map(|entry| &entry.path)) {
            if let Some(target) = target {
                self.plan_extra(target, &left, summary);
            }
        }
    }

    /// Looks which of the directories entered a restore would not make, as something else stands there and stays; tells
    /// whether one is among them.
    fn plan_directories(&self, frames: &mut Frames<'_>, target: &TargetDir, summary: &mut RestoreSummary) -> bool {
        let mut is_blocked = false;
        for frame in frames.iter_mut() {
            if let (None, Some(path)) = (frame.made, &frame.target) {
                let problem = if is_blocked {
                    Some(Problem::entry(path, ProblemKind::InTheWay, ON_THE_WAY))
                } else {
                    self.blocked_directory(target, path, frame.metadata.as_ref())
                };
                let outcome = if problem.is_some() { DirectoryOutcome::Blocked } else { DirectoryOutcome::Existing };
                frame.made = Some(outcome);
                self.plan_problem(problem, summary);
            }
            is_blocked |= frame.made == Some(DirectoryOutcome::Blocked);
        }
        is_blocked
    }

    /// `is_blocked` tells whether it, or a directory above it, is a directory that would not be made.
    fn plan_entry(
        &self,
        entry: &Entry,
        (target, is_blocked): (Option<&TargetDir>, bool),
        chunks: &ChunkSource<'_>,
        forecast: Option<&mut Forecast<'_, '_>>,
        summary: &mut RestoreSummary,
    ) {
        let Some(path) = self.part.target_path(&entry.path) else { return };
        summary.entries += 1;
        if let Content::File { size, .. } = entry.content {
            summary.bytes_total += size;
        }
        if is_blocked {
            // Of a directory it has been told.
            let problem = Problem::entry(&path, ProblemKind::InTheWay, ON_THE_WAY);
            return self.plan_problem((!entry.is_directory()).then_some(problem), summary);
        }
        let action = target.filter(|_| !entry.is_directory()).map_or(Ok(Action::New), |target| {
            let action = Action::of(self, target, chunks, &path, entry)?;
            if matches!(action, Action::Replace { directory: true, .. }) && self.empties_directories() {
                target.visit_tree(&path, &mut |path| self.tell_deleted(path, summary));
            }
            Ok(action)
        });
        let keeps = match action {
            Ok(Action::Keep { verified, differs, .. }) => {
                summary.files_verified += u64::from(verified && matches!(entry.content, Content::File { .. }));
                self.plan_problem(differs, summary);
                true
            }
            Ok(_) => false,
            Err(problem) => {
                self.plan_problem(Some(problem), summary);
                return;
            }
        };
        if let Some(forecast) = forecast.filter(|_| !keeps) {
            forecast.add(path.clone(), entry, summary);
        }
        let bytes = if let Content::File { size, .. } = entry.content {
            let (files, bytes) = if keeps { (0, 0) } else { (1, size) };
            summary.files_restored += files;
            summary.files_kept += 1 - files;
            summary.bytes_restored += bytes;
            size
        } else {
            0
        };
        // As in a run, directories are not told.
        if self.resources.observer.wants_entries() && !entry.is_directory() {
            let action = if keeps { EntryAction::Kept } else { EntryAction::Restored };
            self.resources.observer.entry(&path, action, bytes);
        }
    }

    fn plan_problem(&self, problem: Option<Problem>, summary: &mut RestoreSummary) {
        if let Some(problem) = problem {
            summary.problems += 1;
            self.resources.observer.problem(&problem);
        }
    }
}

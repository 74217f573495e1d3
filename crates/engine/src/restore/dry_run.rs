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
                        self.plan_entry(&entry, (target.as_ref(), chunks), forecast.as_mut(), &mut summary);
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

    fn plan_entry(
        &self,
        entry: &Entry,
        (target, chunks): (Option<&TargetDir>, &ChunkSource<'_>),
        forecast: Option<&mut Forecast<'_, '_>>,
        summary: &mut RestoreSummary,
    ) {
        let Some(path) = self.part.target_path(&entry.path) else { return };
        summary.entries += 1;
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
            forecast.add(path, entry, summary);
        }
        let bytes = if let Content::File { size, .. } = entry.content {
            summary.bytes_total += size;
            let (files, bytes) = if keeps { (0, 0) } else { (1, size) };
            summary.files_restored += files;
            summary.files_kept += 1 - files;
            summary.bytes_restored += bytes;
            size
        } else {
            0
        };
        if self.resources.observer.wants_entries() {
            let action = if keeps { EntryAction::Kept } else { EntryAction::Restored };
            self.resources.observer.entry(&entry.path, action, bytes);
        }
    }

    fn plan_problem(&self, problem: Option<Problem>, summary: &mut RestoreSummary) {
        if let Some(problem) = problem {
            summary.problems += 1;
            self.resources.observer.problem(&problem);
        }
    }
}

//! A backup of files and folders: planned and read by threads of their own while it is assembled.

use super::STEPS_AHEAD_MAX;
use super::assembling::{Assembly, Catalogued};
use super::context::{Stages, joined};
use crate::EngineError;
use crate::backup::changed::plan_changes;
use crate::backup::changed_list::ChangedList;
use crate::backup::flow::{Job, Step};
use crate::backup::links::Links;
use crate::backup::outcome::Planned;
use crate::backup::piece::ReadStage;
use crate::backup::plan::Planner;
use crate::backup::previous;
use crate::fs::{FileKind, ScanDetail, ScanItem, Scanner};
use crate::parallel::spawn_named;
use crossbeam_channel::{Receiver, Sender, TryRecvError, bounded};
use siltstone_store::catalog::EntryPath;
use std::convert::Infallible;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Scope;

impl Stages<'_, '_, '_> {
    /// Takes all that lies at the paths; with a list of changes, only what that names.
    pub(super) fn run_paths<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        (paths, list): (Vec<PathBuf>, Option<Arc<ChangedList>>),
        reading: ReadStage<'env, 'env>,
        assembly: Assembly<'_, '_>,
    ) -> Result<(Planned, Catalogued), EngineError> {
        let (steps_in, steps_out) = bounded(STEPS_AHEAD_MAX);
        let while_assembling = reading.assembling.clone();
        let jobs_in = start_readers(scope, &reading, self.run.resources.workers)?;
        drop(reading);
        let is_listed = list.is_some();
        let estimated = paths.clone();
        let planner = spawn_named(scope, "plan", move || self.plan(&paths, list.as_deref(), steps_in, jobs_in))?;
        if self.run.options.estimate && !is_listed {
            // Without it there is less to see.
            let _ = spawn_named(scope, "estimate", move || self.estimate(&estimated, &while_assembling));
        }
        let assembled = self.assemble(assembly, steps_out, self.pace(!is_listed));
        joined(planner).and_then(|planned| Ok((planned, assembled?)))
    }

    /// Plans what lies at the paths.
    fn plan(
        &self,
        paths: &[PathBuf],
        list: Option<&ChangedList>,
        steps: Sender<Step>,
        jobs: Sender<Job>,
    ) -> Result<Planned, EngineError> {
        // A list of changes says what differs from the last whole snapshot.
        let mut roots = previous::roots(self.manifest);
        if !self.run.repository.may_read() {
            roots.drain(..roots.len().saturating_sub(1));
        }
        if !self.local_catalog.is_readable() {
            roots.clear();
            if list.is_some_and(|list| !list.is_everything()) {
                let reason = "its catalog is not in the cache of this machine, and the key cannot read it".to_owned();
                return Err(EngineError::PreviousUnusable { reason });
            }
        }
        roots.drain(..if list.is_some() { roots.len().saturating_sub(1) } else { 0 });
        let Self { run, chunks, unusable, .. } = *self;
        let planner = Planner::new(run.options, &*run.resources.observer, chunks, roots, unusable, steps, jobs)
            .with_links(Links::within(self.linked_bytes));
        match list {
            Some(list) => plan_changes(run, self.manifest, paths, list, planner),
            None => {
                // Whoever does not trust change times has attributes read each time.
                let detail = if run.options.ignore_ctime { ScanDetail::Full } else { ScanDetail::XattrsLater };
                planner.run(&mut self.scanner(paths, detail)?)
            }
        }
    }

    fn scanner(&self, paths: &[PathBuf], detail: ScanDetail) -> Result<Scanner, EngineError> {
        let options = self.run.scan_options(detail);
        let scanner = match (&self.run.options.as_path, paths, self.run.paths.as_slice()) {
            (Some(_), [source], [recorded]) => {
                let below = recorded.strip_prefix(b"/").unwrap_or(recorded);
                let place = (!below.is_empty()).then(|| EntryPath::new(below)).transpose()?;
                Scanner::placed(source.clone(), place, options)
            }
            _ => Scanner::new(paths, options),
        };
        scanner.map_err(|source| EngineError::NoSource { path: paths.first().cloned().unwrap_or_default(), source })
    }

    /// Counts what there is, for the observer, until it is done or no longer of use.
    fn estimate(&self, paths: &[PathBuf], while_assembling: &Receiver<Infallible>) {
        let Ok(scanner) = self.scanner(paths, ScanDetail::StatusOnly) else {
            return;
        };
        let (mut files, mut bytes) = (0u64, 0u64);
        for item in scanner {
            if while_assembling.try_recv() == Err(TryRecvError::Disconnected) {
                return;
            }
            if let ScanItem::Entry(found) = item
                && let FileKind::File { size, .. } = found.kind
            {
                files += 1;
                bytes += size;
                if files.is_multiple_of(1024) {
                    self.run.resources.observer.estimate(files, bytes, false);
                }
            }
        }
        self.run.resources.observer.estimate(files, bytes, true);
    }
}

/// Starts the threads that read, and gives the end of their queue.
pub(super) fn start_readers<'scope, 'env: 'scope>(
    scope: &'scope Scope<'scope, 'env>,
    stage: &ReadStage<'env, 'env>,
    workers: usize,
) -> Result<Sender<Job>, EngineError> {
    let (jobs_in, jobs_out) = bounded(workers);
    for number in 0..workers.max(2) {
        let (stage, jobs_out) = (stage.clone(), jobs_out.clone());
        match spawn_named(scope, &format!("read-{number}"), move || stage.run(&jobs_out)) {
            Err(error) if number == 0 => return Err(error.into()),
            // Fewer do as well.
            _ => {}
        }
    }
    Ok(jobs_in)
}

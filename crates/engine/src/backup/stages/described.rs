//! A backup of entries that their source describes: planned and read by threads of their own while it is assembled.

use super::STEPS_AHEAD_MAX;
use super::assembling::{Assembly, Catalogued};
use super::context::{Stages, joined};
use super::paths::start_readers;
use crate::EngineError;
use crate::backup::flow::{Job, Step};
use crate::backup::outcome::Planned;
use crate::backup::piece::ReadStage;
use crate::backup::plan::Planner;
use crate::backup::previous::last_whole;
use crate::backup::source::DescribedEntries;
use crate::parallel::spawn_named;
use crossbeam_channel::{Sender, bounded};
use std::thread::Scope;

impl Stages<'_, '_, '_> {
    /// Takes all entries.
    pub(super) fn run_described<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        source: DescribedEntries,
        reading: ReadStage<'env, 'env>,
        assembly: Assembly<'_, '_>,
    ) -> Result<(Planned, Catalogued), EngineError> {
        let (steps_in, steps_out) = bounded(STEPS_AHEAD_MAX);
        let jobs_in = start_readers(scope, &reading, self.run.resources.workers)?;
        drop(reading);
        let planner = spawn_named(scope, "plan", move || self.plan_described(source, steps_in, jobs_in))?;
        let assembled = self.assemble(assembly, steps_out, self.pace(true));
        joined(planner).and_then(|planned| Ok((planned, assembled?)))
    }

    /// Plans beside the snapshot that the source compared its entries with. Checkpoints are no such snapshot: what they
    /// have is known by its chunks.
    fn plan_described(
        &self,
        mut source: DescribedEntries,
        steps: Sender<Step>,
        jobs: Sender<Job>,
    ) -> Result<Planned, EngineError> {
        let last = last_whole(self.manifest).filter(|last| Some(last.id) == source.base);
        let roots = last.map(|last| last.root).into_iter().collect();
        let Self { run, chunks, unusable, .. } = *self;
        let planner = Planner::new(run.options, &*run.resources.observer, chunks, roots, unusable, steps, jobs);
        planner.run(&mut *source.entries)
    }
}

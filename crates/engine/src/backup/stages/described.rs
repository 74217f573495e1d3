//! A backup of entries that their source describes: planned and read by threads of their own while it is assembled.

use super::STEPS_AHEAD_MAX;
use super::assembling::{Assembly, Catalogued};
use super::context::{Stages, joined};
use super::paths::start_readers;
use crate::EngineError;
use crate::backup::flow::{Job, Step};
use crate::backup::links::Links;
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

    /// Plans beside the series' last whole snapshot; checkpoints are none: what they have is known by its chunks. What the
    /// source says is unchanged is so only since the snapshot that it compared its entries with.
    fn plan_described(
        &self,
        mut source: DescribedEntries,
        steps: Sender<Step>,
        jobs: Sender<Job>,
    ) -> Result<Planned, EngineError> {
        let last = last_whole(self.manifest);
        let roots = last.map(|last| last.root).into_iter().collect();
        let is_base = last.is_some_and(|last| Some(last.id) == source.base);
        let Self { run, chunks, unusable, .. } = *self;
        let planner = Planner::new(run.options, &*run.resources.observer, chunks, roots, unusable, steps, jobs)
            .with_links(Links::within(self.linked_bytes));
        let planner = if is_base { planner } else { planner.reading_all() };
        planner.run(&mut *source.entries)
    }
}

//! Selecting: where new chunks go, and the thread that finds their bases.

use super::context::{DeltaSelection, Stages};
use crate::EngineError;
use crate::backup::assemble::Outlet;
use crate::backup::flow::Handed;
use crate::backup::regions::Regions;
use crate::backup::segments::Segments;
use crate::backup::select::{Filling, Selector};
use crate::decode::Gatherer;
use crate::delta::sketcher;
use crate::parallel::{Pool, spawn_named};
use crossbeam_channel::{Sender, bounded};
use siltstone_store::region::RegionEncoder;
use std::thread::{Scope, ScopedJoinHandle};

/// A selector at work; ends with how many chunks were left whole because reading their bases would not pay.
pub(super) type Selecting<'scope> = ScopedJoinHandle<'scope, Result<u64, EngineError>>;

impl Stages<'_, '_, '_> {
    /// Opens the outlet for new chunks: to a selector, which then runs, or into regions as they come.
    pub(super) fn outlet<'scope, 'env: 'scope>(
        &'env self,
        scope: &'scope Scope<'scope, 'env>,
        selection: Option<&'env DeltaSelection<'env>>,
        encoders: Pool<'env, RegionEncoder>,
        packer: Sender<Handed>,
    ) -> Result<(Outlet<'env>, Option<Selecting<'scope>>), EngineError> {
        let Some(selection) = selection else {
            let regions = Regions::new(encoders, self.new_chunks.is_some(), packer);
            return Ok((Outlet::Regions(Box::new(regions)), None));
        };
        let (chunks, waiting_bytes) = (selection.chunks.clone(), selection.waiting_bytes);
        let (spill_folder, resources) = (selection.spill_folder.clone(), self.run.resources);
        let threads = resources.fetches;
        let gatherer = Gatherer::start(scope, threads, chunks, self.manifest, waiting_bytes, spill_folder, resources)?;
        let selector = Selector {
            known: &selection.known,
            gatherer,
            encoders,
            sketcher: sketcher(),
            packer,
            threshold: self.run.options.delta_threshold,
            observer: &*self.run.resources.observer,
            filling: Filling::default(),
        };
        // No queue: one segment is gathered while another is looked at.
        let (segments_in, segments_out) = bounded(0);
        let selecting = spawn_named(scope, "select", move || selector.run(&segments_out))?;
        Ok((Outlet::Segments(Segments::new(selection.segment_bytes, segments_in)), Some(selecting)))
    }
}

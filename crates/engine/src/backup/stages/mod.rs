//! The threads of a backup: starts every stage, joins them, and says which error is the one to tell.
//!
//! A stage that fails or is told to stop drops its ends of the queues; its neighbours find them gone and stop too. The
//! error that began it is the one returned, the packer's before all others.

mod assembling;
mod context;
mod described;
mod packing;
mod paths;
mod selecting;
mod stream;

pub(super) use context::{DeltaSelection, Stages};

use super::assemble::{ChunkStore, Knowledge};
use super::flow::Handed;
use super::heal::Healer;
use super::notes::Notes;
use super::options::Source;
use super::outcome::RunOutcome;
use super::piece::{Buffers, ReadStage};
use crate::EngineError;
use crate::delta::NewChunks;
use crate::parallel::{Pool, spawn_named};
use assembling::Assembly;
use context::joined;
use crossbeam_channel::bounded;
use roaring::RoaringTreemap;
use siltstone_chunk::Fingerprinter;
use siltstone_store::region::RegionEncoder;
use std::convert::Infallible;

/// Steps planned ahead of the assembling stage; a job of small files holds up to a mebibyte or two.
const STEPS_AHEAD_MAX: usize = 12;
/// Regions between assembling and packing.
const REGIONS_AHEAD_MAX: usize = 6;

impl Stages<'_, '_, '_> {
    /// Runs all stages to the end of the source. With a `selection`, new chunks are encoded against old ones.
    pub(super) fn run(
        &self,
        source: Source,
        known: Knowledge<'_>,
        selection: Option<&mut DeltaSelection<'_>>,
    ) -> Result<RunOutcome, EngineError> {
        let (workers, level) = (self.run.resources.workers, self.run.options.compression_level);
        let keys = self.run.repository.keys();
        let buffers = Buffers::new(self.run.chunker.sizes().max());
        std::thread::scope(|scope| {
            let (packer_in, packer_out) = bounded::<Handed>(REGIONS_AHEAD_MAX);
            let (draft, selection) = match selection {
                Some(selection) => (selection.draft.take(), Some(&*selection)),
                None => (None, None),
            };
            let new = self.new_chunks.map(NewChunks::within);
            let notes =
                Notes::new(new, selection.map(|selection| &selection.known), draft, &*self.run.resources.observer);
            let packer = spawn_named(scope, "pack", move || self.pack(&packer_out, notes))?;
            let encoders = Pool::start(scope, "encode", workers, workers, || Ok(RegionEncoder::fast(level)))?;
            let hashers =
                Pool::start(scope, "hash", workers, workers, || Ok(Fingerprinter::best(&keys.fingerprint_key())))?;
            let (end, assembling) = bounded::<Infallible>(0);
            let reading = ReadStage {
                chunker: self.run.chunker,
                buffers: &buffers,
                hashers,
                observer: &*self.run.resources.observer,
                chunks: self.chunks,
                assembling,
            };
            let next = (self.manifest.next_data, self.manifest.next_metadata);
            let healer = Healer::new(level, packer_in.clone());
            let (outlet, selecting) = self.outlet(scope, selection, encoders, packer_in)?;
            let store = ChunkStore::new((keys, self.local_catalog), known, self.unusable, next, (outlet, healer));
            let assembly = Assembly { end, buffers: &buffers, store };
            let assembled = match source {
                Source::Paths(paths) => self.run_paths(scope, (paths, None), reading, assembly),
                Source::Changes { paths, list } => self.run_paths(scope, (paths, Some(list)), reading, assembly),
                Source::Stream { name, reader } => self.run_stream(scope, (&name, reader), reading, assembly),
                Source::Entries { entries, .. } => self.run_described(scope, entries, reading, assembly),
            };
            // What a later stage met comes first: it makes the stages before it stop.
            let selected = selecting.map(joined);
            let (packed, mut noted) = joined(packer)?;
            if self.run.resources.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            noted.deltas.skipped = selected.transpose()?.unwrap_or(0);
            let (planned, (entries, snapshot, assembled)) = assembled?;
            let found = RoaringTreemap::new();
            Ok(RunOutcome { planned, entries, snapshot, assembled, packed, noted, found, catalog: None })
        })
    }
}

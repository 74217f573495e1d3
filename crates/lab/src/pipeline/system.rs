//! The system: its stages, joined.
//!
//! ```text
//! read -> chunk -> fingerprint -> index -> [sketch -> delta] -> [compress] -> write
//! ```
//! AE's system is `read` (a RAM disk), chunking, fingerprinting, indexing, writing, a thread each; Odess's has the same
//! five, with sketches and deltas in the fourth, which has two threads of its own here. Fingerprints, sketches and
//! compression of one piece need no other piece, so these stages can have several threads; the others have one.

use super::chunk::{StreamPart, chunk};
use super::container::{ContainerWriter, RecipeWriter};
use super::delta::{BaseLimits, delta, sketch};
use super::fingerprint::{Hash, NewTo, fingerprint, index};
use super::region::{Gatherer, Regions, compress};
use super::stages::{Busy, QUEUE, Stage, Stages, send};
use super::stream::Stream;
use anyhow::Result;
use crossbeam_channel::{Sender, bounded};
use siltstone_chunk::Chunker;
use siltstone_similar::sketch::Sketcher;
use std::path::Path;
use std::time::{Duration, Instant};

/// Read at once.
const PIECE_BYTES: usize = 1 << 20;

/// Parts that the system is put together from.
#[derive(Clone, Copy)]
pub(super) struct System<'s> {
    pub(super) chunker: &'s dyn Chunker,
    pub(super) hash: Hash,
    /// Sketcher, and what may be held for bases; without it there are no deltas.
    pub(super) sketcher: Option<(&'s dyn Sketcher, BaseLimits)>,
    pub(super) compression: Compression,
    /// Threads of each stage that can have several.
    pub(super) threads: usize,
}

/// Compression of regions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Compression {
    None,
    /// As `silt` does: its regions, its level of zstd.
    Zstd,
}

/// Cost of a run.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Took {
    /// From the first byte read to the last one written.
    pub(super) wall: Duration,
    pub(super) busy: Vec<Busy>,
}

impl System<'_> {
    /// Reduces the stream into files in this folder.
    ///
    /// # Errors
    /// If a file cannot be written, or a stage fails in another way.
    pub(super) fn run(&self, stream: &Stream<'_>, folder: &Path) -> Result<Took> {
        let begin = Instant::now();
        let busy = std::thread::scope(|scope| {
            let mut stages = Stages::new(scope);
            let started = self.start(&mut stages, stream, folder);
            // Without the stages that could not be started the others end at once: what they then say is not the
            // reason.
            let joined = stages.join();
            started.and(joined)
        })?;
        Ok(Took { wall: begin.elapsed(), busy })
    }

    fn start<'scope, 'env: 'scope>(
        &'env self,
        stages: &mut Stages<'scope, 'env>,
        stream: &'env Stream<'_>,
        folder: &'env Path,
    ) -> Result<()> {
        let Self { chunker, hash, sketcher, compression, threads } = *self;
        let (to_chunk, pieces) = bounded(QUEUE);
        stages.start(Stage::Read, move || read(stream, &to_chunk))?;
        let (to_fingerprint, chunks) = bounded(QUEUE);
        stages.start(Stage::Chunk, move || chunk(chunker, &pieces, &to_fingerprint))?;
        let named = stages.start_ordered(Stage::Fingerprint, threads, chunks, || Ok(fingerprint(hash)))?;
        let recipes = RecipeWriter::create(folder)?;
        let (to_store, gathered) = bounded(QUEUE);
        let gatherer = Gatherer::new(to_store);
        match sketcher {
            None => stages.start(Stage::Index, move || index(&named, recipes, NewTo::Regions(gatherer)))?,
            Some((sketcher, limits)) => {
                let (to_sketch, new) = bounded(QUEUE);
                stages.start(Stage::Index, move || index(&named, recipes, NewTo::Sketch(to_sketch)))?;
                let sketched = stages.start_ordered(Stage::Sketch, threads, new, || Ok(sketch(sketcher)))?;
                stages.start(Stage::Delta, move || delta(&sketched, sketcher.grouping(), limits, gatherer))?;
            }
        }
        let regions = match compression {
            Compression::None => Regions::Gathered(gathered),
            Compression::Zstd => {
                Regions::Compressed(stages.start_ordered(Stage::Compress, threads, gathered, compress)?)
            }
        };
        let containers = ContainerWriter::create(folder)?;
        stages.start(Stage::Write, move || write(&regions, containers))
    }
}

/// The stage: copies the stream out of memory, as from a RAM disk.
fn read(stream: &Stream<'_>, to: &Sender<StreamPart>) -> Result<()> {
    for version in &stream.versions {
        let mut rest = *version;
        loop {
            let (piece, others) = rest.split_at(rest.len().min(PIECE_BYTES));
            rest = others;
            send(to, StreamPart { bytes: piece.to_vec(), ends_version: rest.is_empty() })?;
            if rest.is_empty() {
                break;
            }
        }
    }
    Ok(())
}

/// The stage: writes regions into containers.
fn write(regions: &Regions, mut containers: ContainerWriter<'_>) -> Result<()> {
    while let Some(region) = regions.next()? {
        containers.push(&region)?;
    }
    containers.finish()
}

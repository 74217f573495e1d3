//! Moving chunks from container to container, region by region: what is moved whole is sealed anew and not
//! decompressed, of the rest the chunks that are still needed are gathered and encoded again. Maintenance, `forget`
//! and repair end here.
//!
//! Containers are taken in batches, whose regions are decoded together (module `batch`). Chunks that may become deltas
//! gather into *segments*, whose bases are read together (module `segment`). Either way each region that is needed is
//! decoded once, however the bases lie.
//!
//! The result depends on what is given and in which order, never on the number of threads: what they encode is taken in
//! the order in which it was handed to them.

mod batch;
mod categories;
mod segment;
#[cfg(test)]
mod tests;

pub(crate) use batch::DecodedChunks;
pub(crate) use categories::Class;

use crate::chunks::ChunkSource;
use crate::decode::{Bytes, Gatherer};
use crate::delta::{ChunkTexts, DELTA_REGION_BYTES_TARGET, OpenRegion};
use crate::pack::{ContainerSink, Packed};
use crate::parallel::{Pool, Ticket};
use crate::resources::shares::{RECOMPRESS_BATCH_BYTES, REPACK_BATCH_BYTES};
use crate::{EngineError, Resources};
use batch::RegionBatch;
use categories::Categories;
use roaring::RoaringTreemap;
use siltstone_similar::region::Offer;
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, EncodedRegion, Level, RegionEncoder};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::thread::Scope;

/// Tasks that may wait for a worker: a segment's regions, so that whoever hands them out need not wait.
const TASKS_WAITING_MAX: usize = 256;

/// Plain bytes that a region of files' chunks is filled to where they are encoded once more: 8 MiB take a tenth less
/// than 2 MiB (tar archives of releases, level 19), 16 MiB a hundredth less than that.
const RESTING_REGION_BYTES_TARGET: usize = 8 << 20;

/// Encoders of regions, one for each worker.
pub(crate) type Encoders<'env> = Pool<'env, RegionEncoder>;

/// How a chunk goes on to another container.
#[derive(Clone, Debug)]
pub(crate) enum Move {
    /// As it is.
    Plain,
    /// As part of a delta against some of these.
    Against(Vec<Offer<ChunkNumber>>),
}

/// A delta that was made: what it hangs on.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// The first snapshot that needs any of its chunks.
    pub(crate) row: usize,
    /// The longest chain of deltas that depend on its chunks.
    pub(crate) dependents_depth: u32,
    /// Its bases.
    pub(crate) bases: Vec<ChunkNumber>,
}

/// Facts about a chunk that becomes part of a delta.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) row: usize,
    pub(crate) dependents_depth: u32,
    /// True if its candidates are guesses: it is laid apart, because a region is kept as a delta or not as a whole.
    pub(crate) is_guess: bool,
}

impl Standing {
    /// The standing of a region with chunks of both.
    fn and(self, other: Self) -> Self {
        let dependents_depth = self.dependents_depth.max(other.dependents_depth);
        Self { row: self.row.min(other.row), dependents_depth, is_guess: self.is_guess }
    }
}

/// Why repacking stopped.
#[derive(Debug)]
pub(crate) struct Stopped {
    /// The container that cannot be taken, if it is because of one: what it holds, or hangs on, cannot be read.
    pub(crate) container: Option<usize>,
    pub(crate) error: EngineError,
}

impl Stopped {
    fn at(container: usize, error: impl Into<EngineError>) -> Self {
        Self { container: Some(container), error: error.into() }
    }
}

impl From<EngineError> for Stopped {
    fn from(error: EngineError) -> Self {
        Self { container: None, error }
    }
}

impl From<StoreError> for Stopped {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

impl From<Stopped> for EngineError {
    fn from(stopped: Stopped) -> Self {
        stopped.error
    }
}

/// Summary of repacking.
#[derive(Debug, Default)]
pub(crate) struct Repacked {
    /// The new containers.
    pub(crate) packed: Packed,
    /// Its deltas.
    pub(crate) links: Vec<Link>,
    /// The chunks in them.
    pub(crate) in_deltas: RoaringTreemap,
    /// Chunks in deltas.
    pub(crate) deltas_kept: u64,
    /// Chunks whose delta was not worth it.
    pub(crate) deltas_rejected: u64,
}

/// A region being filled.
#[derive(Default)]
struct StandingRegion {
    region: OpenRegion,
    /// Lowest row and most dependents of all its chunks.
    standing: Option<Standing>,
}

/// A region that is to be encoded.
struct Region {
    class: Class,
    standing: Standing,
    /// True if it may become a delta.
    was_offered: bool,
    /// Some of the chunks that may be its bases.
    bases: Vec<ChunkNumber>,
    chunks: Vec<ChunkEntry>,
    texts: Vec<Bytes>,
    plain_bytes: usize,
}

/// A region that is being encoded.
struct Encoding {
    class: Class,
    standing: Standing,
    was_offered: bool,
    ticket: Ticket<Result<EncodedRegion, StoreError>>,
}

/// Effort of encoding.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effort {
    /// Plain regions at this level of zstd, deltas fast; what can be copied is.
    Usual(i32),
    /// All regions anew at this level of zstd, deltas too, but for those that were not made smaller before.
    Thorough(u8),
}

impl Effort {
    fn is_thorough(self) -> bool {
        matches!(self, Self::Thorough(_))
    }

    /// An encoder that makes this effort.
    fn encoder(self) -> Result<RegionEncoder, StoreError> {
        match self {
            Self::Usual(level) => Ok(RegionEncoder::fast(level)),
            Self::Thorough(level) => RegionEncoder::new(Level::Zstd(level.into())).map_err(|_| out_of_memory()),
        }
    }

    /// Plain bytes that a region of whole chunks is filled to.
    fn region_bytes_target(self, kind: ContainerKind) -> usize {
        match kind {
            ContainerKind::Data if self.is_thorough() => RESTING_REGION_BYTES_TARGET,
            ContainerKind::Data | ContainerKind::Metadata => kind.region_bytes_target(),
        }
    }

    /// Bytes of a batch of regions that are taken apart.
    fn batch_bytes(self) -> usize {
        if self.is_thorough() { RECOMPRESS_BATCH_BYTES } else { REPACK_BATCH_BYTES }
    }
}

/// Options of repacking.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RepackOptions {
    /// The effort of encoding.
    pub(crate) effort: Effort,
    /// True if no container may hold what another class has.
    pub(crate) is_exact: bool,
}

/// Key of the chunks gathered into one region.
type Key = (Class, Option<(bool, u32)>);

/// Takes chunks and makes containers.
pub(crate) struct Repacker<'e> {
    resources: &'e Resources,
    chunks: Arc<ChunkSource<'e>>,
    gatherer: Gatherer<'e>,
    /// Text of some chunks that may be bases.
    texts: Option<&'e ChunkTexts>,
    encoders: Encoders<'e>,
    options: RepackOptions,
    categories: Categories<'e>,
    /// By class, and for deltas by whether there are only guesses, and by how high the chains on them are: a delta is
    /// as high as its highest member.
    open: BTreeMap<Key, StandingRegion>,
    /// Regions that wait to be moved.
    batch: RegionBatch,
    /// The regions of the open segment, and their bytes.
    segment: Vec<Region>,
    segment_bytes: usize,
    /// The regions of the segment before.
    encoding: VecDeque<Encoding>,
    repacked: Repacked,
}

impl<'e> Repacker<'e> {
    /// Regions to be decoded before they are needed, half a mebibyte each: enough that no worker waits.
    pub(crate) fn regions_ahead(&self) -> usize {
        2 * self.resources.workers
    }

    /// Stops where the user asked for it: then not all was read that should have been.
    fn unless_stopped(&self) -> Result<(), EngineError> {
        if self.gatherer.tally.is_stopped() { Err(EngineError::Interrupted) } else { self.resources.unless_cancelled() }
    }

    /// Its workers.
    pub(crate) fn encoders(&self) -> Encoders<'e> {
        self.encoders.clone()
    }

    /// A repacker of chunks that `chunks` finds, which is of this manifest. Its threads end with it.
    ///
    /// # Errors
    /// The system gives no threads, or no memory.
    pub(crate) fn start<'scope>(
        scope: &'scope Scope<'scope, 'e>,
        chunks: &Arc<ChunkSource<'e>>,
        manifest: &'e Manifest,
        sink: &'e dyn ContainerSink,
        options: RepackOptions,
        resources: &'e Resources,
    ) -> Result<Self, StoreError>
    where
        'e: 'scope,
    {
        let encoder = move || options.effort.encoder();
        let (threads, waiting_bytes) = (resources.fetches, resources.repack_shares().waiting_bytes);
        let folder = resources.scratch_of(chunks.repository());
        let gatherer = Gatherer::start(scope, threads, chunks.clone(), manifest, waiting_bytes, folder, resources)?;
        Ok(Self {
            resources,
            chunks: chunks.clone(),
            gatherer,
            texts: None,
            encoders: Pool::start(scope, "encode", resources.workers, TASKS_WAITING_MAX, encoder)?,
            options,
            categories: Categories::new(chunks.repository(), manifest.series, sink, options.is_exact),
            open: BTreeMap::new(),
            batch: RegionBatch::default(),
            segment: Vec::new(),
            segment_bytes: 0,
            encoding: VecDeque::new(),
            repacked: Repacked::default(),
        })
    }

    /// Returns it with the text of some chunks, which it need not read where they are bases.
    #[must_use]
    pub(crate) fn with_texts(self, texts: &'e ChunkTexts) -> Self {
        Self { texts: Some(texts), ..self }
    }

    /// Takes one chunk.
    pub(crate) fn push(
        &mut self,
        class: Class,
        chunk: ChunkEntry,
        text: Bytes,
        how: Move,
        standing: Standing,
    ) -> Result<(), EngineError> {
        let (key, offers, target) = match how {
            Move::Plain => ((class, None), Vec::new(), self.options.effort.region_bytes_target(class.kind)),
            Move::Against(offers) => {
                let bucket = standing.dependents_depth.checked_ilog2().map_or(0, |log| log + 1);
                ((class, Some((standing.is_guess, bucket))), offers, DELTA_REGION_BYTES_TARGET)
            }
        };
        let is_full = |open: &StandingRegion| open.region.has(chunk.number) || open.region.is_full_for(&chunk, target);
        if self.open.get(&key).is_some_and(is_full) {
            self.flush(key)?;
        }
        let open = self.open.entry(key).or_default();
        open.region.push(chunk, text, offers);
        open.standing = Some(open.standing.map_or(standing, |before| before.and(standing)));
        Ok(())
    }

    fn flush(&mut self, key: Key) -> Result<(), EngineError> {
        let Some(StandingRegion { mut region, standing: Some(standing) }) = self.open.remove(&key) else {
            return Ok(());
        };
        // Chunks need not come in the order of their numbers: what resembles one another lies together.
        region.sort();
        let bases = region.bases(region.bases_room());
        let OpenRegion { chunks, texts, plain_bytes, .. } = region;
        self.encode(Region { class: key.0, standing, was_offered: key.1.is_some(), bases, chunks, texts, plain_bytes })
    }

    /// Waits for the region that was handed out first.
    fn collect_encoded(&mut self) -> Result<(), StoreError> {
        let Some(Encoding { class, standing, was_offered, ticket }) = self.encoding.pop_front() else {
            return Ok(());
        };
        let region = ticket.wait()??;
        if was_offered {
            let count = region.chunks.len() as u64;
            if region.bases.is_empty() {
                self.repacked.deltas_rejected += count;
            } else {
                self.repacked.deltas_kept += count;
                let Standing { row, dependents_depth, .. } = standing;
                self.repacked.in_deltas.extend(region.chunks.iter().map(|chunk| chunk.number.0));
                self.repacked.links.push(Link { row, dependents_depth, bases: region.bases.clone() });
            }
        }
        self.categories.push(class, region, Vec::new())
    }

    /// Ends every region that chunks are gathered for.
    pub(crate) fn flush_all(&mut self) -> Result<(), EngineError> {
        while let Some((key, _)) = self.open.first_key_value() {
            let key = *key;
            self.flush(key)?;
        }
        Ok(())
    }

    /// Encodes what is gathered and hands over what is open.
    pub(crate) fn finish(mut self) -> Result<Repacked, Stopped> {
        self.move_batch()?;
        self.flush_all()?;
        self.encode_segment()?;
        self.collect_all_encoded()?;
        Ok(Repacked { packed: self.categories.finish()?, ..self.repacked })
    }
}

pub(crate) fn out_of_memory() -> StoreError {
    StoreError::Machine { operation: "preparing zstd", reason: "out of memory".to_owned() }
}

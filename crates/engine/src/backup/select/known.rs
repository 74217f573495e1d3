//! The chunks that new ones may be encoded against: those the last snapshot needs, by their sketches.
//!
//! They come from the cache file, else from the chunks themselves, which means reading all that the last snapshot
//! needs.

use crate::backup::sketch_file::{SketchDraft, SketchRecord, SketchRecords, SketchesIdentity};
use crate::bases::{depth_of, level_of, raise};
use crate::chunks::{Address, ChunkSource};
use crate::decode::{Gatherer, RegionVisitor};
use crate::delta::{ForwardPolicy, SimilarIndex, sketcher};
use crate::observer::Notice;
use crate::parallel::lock;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_similar::sketch::{Sketch, Sketcher};
use siltstone_store::container::{ContainerKind, RegionEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, split_region};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The most an index can take for one chunk, bytes: one of as many chunks as there are is large enough.
pub(super) const BYTES_PER_CHUNK_MAX: u64 = 256;

/// Where the known chunks come from.
pub(in crate::backup) struct Origin<'o> {
    /// The chunks that the last snapshot needs and that can be read.
    pub(in crate::backup) needed: RoaringTreemap,
    pub(in crate::backup) manifest: &'o Manifest,
    pub(in crate::backup) chunks: Arc<ChunkSource<'o>>,
    /// The file, what it must describe, and the key it must carry a MAC of.
    pub(in crate::backup) cache: Option<(&'o Path, SketchesIdentity, [u8; 32])>,
    /// The folder for what has to be written meanwhile.
    pub(in crate::backup) spill: &'o Path,
    /// Bytes that the index may take.
    pub(in crate::backup) memory_bytes: u64,
    /// Bytes that may wait for bases in memory if all is read.
    pub(in crate::backup) waiting_bytes: u64,
    pub(in crate::backup) resources: &'o Resources,
}

/// Reads chunks for their sketches.
struct Reading<'k> {
    origin: &'k Origin<'k>,
    sketcher: Arc<dyn Sketcher>,
    noted: Mutex<Option<Rebuilding<'k>>>,
}

/// State of reading the chunks.
struct Rebuilding<'k> {
    known: &'k mut Known,
    draft: SketchDraft,
    /// Depths of regions.
    depths: HashMap<Address, u32>,
    result: io::Result<()>,
}

impl RegionVisitor for Reading<'_> {
    fn visit(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8], _: &[&[u8]]) {
        let mut noted = lock(&self.noted);
        let Some(noted) = noted.as_mut() else { return };
        let bases_of = |address| bases_of(&self.origin.chunks, address);
        let Ok(depth) = depth_of(address, &mut noted.depths, bases_of) else { return };
        let members = split_region(chunks, plain);
        for (chunk, bytes) in members.filter(|(chunk, _)| self.origin.needed.contains(chunk.number.0)) {
            if let Some(sketch) = self.sketcher.sketch(bytes) {
                let record = SketchRecord { number: chunk.number, depth, sketch };
                if noted.result.is_ok() {
                    noted.result = noted.draft.push(&record);
                }
                noted.known.add(&record, &self.origin.needed);
            }
        }
    }
}

/// Chunks by their sketches, and how deep each is.
pub(in crate::backup) struct Known {
    similar: SimilarIndex,
    /// The numbers of depth 1, 2, ...
    depths: Vec<RoaringTreemap>,
    pub(in crate::backup) forward: ForwardPolicy,
    /// All of them, for the next backup.
    pub(in crate::backup) records: Option<SketchRecords>,
}

impl Known {
    fn new(forward: ForwardPolicy, memory_bytes: u64) -> Self {
        let similar = if forward.super_features {
            SimilarIndex::by_super_features(memory_bytes)
        } else {
            SimilarIndex::within(memory_bytes)
        };
        Self { similar, depths: Vec::new(), forward, records: None }
    }

    /// Opens the chunks that `origin` holds.
    ///
    /// # Errors
    /// Errors of the repository, or of the folder for temporary files. Damaged chunks are passed over.
    pub(in crate::backup) fn open(forward: ForwardPolicy, origin: &Origin<'_>) -> Result<Self, EngineError> {
        let memory_bytes = origin.memory_bytes.min(origin.needed.len() * BYTES_PER_CHUNK_MAX);
        let mut known = Self::new(forward, memory_bytes);
        if origin.needed.is_empty() {
            return Ok(known);
        }
        if let Some((path, identity, key)) = &origin.cache {
            match SketchRecords::open(path, identity, key, |record| known.add(&record, &origin.needed)) {
                Ok(records) => return Ok(Self { records: Some(records), ..known }),
                Err(_) => known = Self::new(forward, memory_bytes),
            }
        }
        known.rebuild(origin)?;
        if origin.cache.is_some() {
            origin.resources.observer.notice(&Notice::SketchesRebuilt { chunks: origin.needed.len() });
        }
        Ok(known)
    }

    /// Adds a chunk if it may be a base.
    fn add(&mut self, record: &SketchRecord, needed: &RoaringTreemap) {
        if record.depth < self.forward.depth && needed.contains(record.number.0) {
            self.similar.insert(record.number.0, &record.sketch);
            raise(&mut self.depths, record.number, record.depth);
        }
    }

    fn rebuild(&mut self, origin: &Origin<'_>) -> Result<(), EngineError> {
        let chunks = &origin.chunks;
        let mut wanted = Vec::new();
        for (container, record) in chunks.own_records() {
            let needed = record.numbers() & &origin.needed;
            if needed.is_empty() {
                continue;
            }
            let Some(reader) = chunks.sound_reader(container)? else { continue };
            let is_needed = |entry: &RegionEntry| entry.chunks.iter().any(|chunk| needed.contains(chunk.number.0));
            let regions = reader.index().regions().iter().enumerate().filter(|(_, entry)| is_needed(entry));
            wanted.extend(regions.map(|(region, _)| Address { container, region }));
        }
        let draft = SketchDraft::new(origin.spill).map_err(local)?;
        let noted = Rebuilding { known: self, draft, depths: HashMap::new(), result: Ok(()) };
        let reading = Arc::new(Reading { origin, sketcher: sketcher(), noted: Mutex::new(Some(noted)) });
        std::thread::scope(|scope| -> Result<(), StoreError> {
            // One thread, so that chunks come in the same order each time: of those as like as others the last is
            // found.
            let (threads, chunks, folder) = (1, chunks.clone(), origin.spill.to_owned());
            let (manifest, waiting_bytes) = (origin.manifest, origin.waiting_bytes);
            let gatherer = Gatherer::start(scope, threads, chunks, manifest, waiting_bytes, folder, origin.resources)?;
            // What cannot be read is passed over; a check will tell of it.
            gatherer.regions(&wanted, &reading).map(drop)
        })?;
        origin.resources.unless_cancelled()?;
        let noted = lock(&reading.noted).take();
        if let Some(Rebuilding { known, draft, result, .. }) = noted {
            result.and_then(|()| draft.finish()).map(|records| known.records = Some(records)).map_err(local)?;
        }
        Ok(())
    }

    /// The most similar chunks of this kind, each with the features in common, the most similar first, none deeper than
    /// that one: it would make all deeper.
    pub(super) fn find(&self, kind: ContainerKind, sketch: Option<&Sketch>) -> Vec<(ChunkNumber, usize)> {
        let mut found: Vec<_> = self.similar.candidates(kind, sketch, self.forward.candidates).collect();
        if let Some(deepest) = found.first().map(|(number, _)| self.depth(*number)) {
            found.retain(|(number, _)| self.depth(*number) <= deepest);
        }
        found
    }

    /// The depth of a chunk that was found.
    pub(in crate::backup) fn depth(&self, number: ChunkNumber) -> u32 {
        level_of(&self.depths, number)
    }
}

/// The bases' regions of a region; nothing for one that cannot be looked at.
fn bases_of(chunks: &ChunkSource<'_>, address: Address) -> Result<Option<Vec<Address>>, StoreError> {
    match chunks.bases_of(address) {
        Ok(bases) => Ok(Some(bases.into_iter().map(|base| base.address).collect())),
        Err(error) if error.is_damage() => Ok(None),
        Err(error) => Err(error),
    }
}

fn local(source: io::Error) -> EngineError {
    EngineError::Local { source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bases::BOTTOMLESS;
    use crate::chunks::testing::{Bench, noise};

    #[test]
    fn a_region_is_as_deep_as_its_deepest_base_and_a_circle_has_no_end() {
        let mut bench = Bench::new((0..10).chain([77]).map(|number| (number, noise(number, 500))));
        let regions = [
            bench.region(&[0, 1], &[]),
            bench.region(&[2], &[0]),
            bench.region(&[3, 4], &[1, 2]),
            bench.region(&[5], &[0, 3, 4]),
            bench.region(&[6], &[7]),
            bench.region(&[7], &[0, 6]),
            bench.region(&[8], &[6]),
            bench.region(&[9], &[77]),
        ];
        let container = bench.container(&regions);
        let chunks = ChunkSource::new(&bench.repository, &bench.manifest);
        let mut depths = HashMap::new();
        let mut depth = |region| {
            let bases_of = |address| bases_of(&chunks, address);
            depth_of(Address { container, region }, &mut depths, bases_of).expect("indexes")
        };
        assert_eq!([3, 2, 0, 1].map(&mut depth), [3, 2, 0, 1]);
        for region in 4..8 {
            assert!(depth(region) >= BOTTOMLESS - 2, "region {region}");
        }
    }
}

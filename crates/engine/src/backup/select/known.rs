//! The chunks that new ones may be encoded against: those the last snapshot needs, by their sketches.
//!
//! They come from the cache file, else from the chunks themselves, which means reading all that the last snapshot
//! needs.

use super::file::{Draft, LikesIdentity, Record, Records};
use crate::chunks::{Address, ChunkSource};
use crate::delta::{Forward, Likes, sketcher};
use crate::gather::{Gatherer, Take, lock};
use crate::observer::Notice;
use crate::parallel::Pool;
use crate::repack::numbers_of;
use crate::unfold::{Bytes, Order};
use crate::{EngineError, Observer};
use roaring::RoaringTreemap;
use siltstone_similar::index::Candidate;
use siltstone_similar::sketch::{Sketch, Sketcher};
use siltstone_store::container::{ContainerKind, RegionEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, RegionDecoder, split_region};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The most an index can take for one chunk, bytes: one of as many chunks as there are is large enough.
pub(super) const BYTES_PER_CHUNK_MAX: u64 = 256;
/// The depth of what cannot be decoded.
const BOTTOMLESS: u32 = u32::MAX;

/// Where the known chunks come from.
pub(in crate::backup) struct Origin<'o> {
    /// The chunks that the last snapshot needs and that can be read.
    pub(in crate::backup) needed: RoaringTreemap,
    pub(in crate::backup) manifest: &'o Manifest,
    pub(in crate::backup) chunks: Arc<ChunkSource<'o>>,
    /// The file, what it must describe, and the key it must carry a MAC of.
    pub(in crate::backup) cache: Option<(&'o Path, LikesIdentity, [u8; 32])>,
    /// The folder for what has to be written meanwhile.
    pub(in crate::backup) spill: &'o Path,
    /// What the index may take.
    pub(in crate::backup) memory_bytes: u64,
    /// What may wait for bases in memory if all is read.
    pub(in crate::backup) waiting_bytes: u64,
    pub(in crate::backup) observer: &'o dyn Observer,
}

/// Reads chunks for their sketches.
struct Reading<'k> {
    origin: &'k Origin<'k>,
    sketcher: Arc<dyn Sketcher>,
    noted: Mutex<Option<Noted<'k>>>,
}

/// What was read.
struct Noted<'k> {
    known: &'k mut Known,
    draft: Draft,
    /// Of regions.
    depths: HashMap<Address, u32>,
    result: io::Result<()>,
}

impl Take for Reading<'_> {
    fn take(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8], _: &[Bytes]) {
        let mut noted = lock(&self.noted);
        let Some(noted) = noted.as_mut() else { return };
        let Ok(depth) = depth_of(&self.origin.chunks, address, &mut noted.depths) else { return };
        let members = split_region(chunks, plain);
        for (chunk, bytes) in members.filter(|(chunk, _)| self.origin.needed.contains(chunk.number.0)) {
            if let Some(sketch) = self.sketcher.sketch(bytes) {
                let record = Record { number: chunk.number, depth, sketch };
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
    likes: Likes,
    depths: Depths,
    pub(in crate::backup) forward: Forward,
    /// All of them, for the next backup.
    pub(in crate::backup) records: Option<Records>,
}

impl Known {
    fn new(forward: Forward, memory_bytes: u64) -> Self {
        let likes = if forward.is_paper { Likes::by_super_features(memory_bytes) } else { Likes::within(memory_bytes) };
        Self { likes, depths: Depths::default(), forward, records: None }
    }

    /// What `origin` holds.
    ///
    /// # Errors
    /// Of the repository, or of the folder for what is written meanwhile. Chunks that are damaged are passed over.
    pub(in crate::backup) fn open(forward: Forward, origin: &Origin<'_>) -> Result<Self, EngineError> {
        let memory_bytes = origin.memory_bytes.min(origin.needed.len() * BYTES_PER_CHUNK_MAX);
        let mut known = Self::new(forward, memory_bytes);
        if origin.needed.is_empty() {
            return Ok(known);
        }
        if let Some((path, identity, key)) = &origin.cache {
            match Records::open(path, identity, key, |record| known.add(&record, &origin.needed)) {
                Ok(records) => return Ok(Self { records: Some(records), ..known }),
                Err(_) => known = Self::new(forward, memory_bytes),
            }
        }
        known.rebuild(origin)?;
        if origin.cache.is_some() {
            origin.observer.notice(&Notice::SketchesRebuilt { chunks: origin.needed.len() });
        }
        Ok(known)
    }

    /// Adds a chunk if it may be a base.
    fn add(&mut self, record: &Record, needed: &RoaringTreemap) {
        if record.depth < self.forward.depth && needed.contains(record.number.0) {
            self.likes.insert(record.number.0, &record.sketch);
            self.depths.insert(record.number, record.depth);
        }
    }

    fn rebuild(&mut self, origin: &Origin<'_>) -> Result<(), EngineError> {
        let chunks = &origin.chunks;
        let mut wanted = Vec::new();
        for (container, record) in chunks.records().iter().enumerate() {
            let needed = numbers_of(record) & &origin.needed;
            if needed.is_empty() {
                continue;
            }
            let reader = match chunks.reader(container) {
                Err(error) if error.is_damage() => continue,
                other => other?,
            };
            let is_needed = |entry: &RegionEntry| entry.chunks.iter().any(|chunk| needed.contains(chunk.number.0));
            let regions = reader.index().regions().iter().enumerate().filter(|(_, entry)| is_needed(entry));
            wanted.extend(regions.map(|(region, _)| Address { container, region }));
        }
        let draft = Draft::new(origin.spill).map_err(local)?;
        let noted = Noted { known: self, draft, depths: HashMap::new(), result: Ok(()) };
        let reading = Arc::new(Reading { origin, sketcher: sketcher(), noted: Mutex::new(Some(noted)) });
        std::thread::scope(|scope| -> Result<(), StoreError> {
            let gatherer = Gatherer {
                chunks: chunks.clone(),
                order: Order::new(origin.manifest),
                // One, so that chunks come in the same order each time: of those as like as others the last is found.
                pool: Pool::start(scope, "unfold", 1, 1, || Ok(RegionDecoder::new()))?,
                workers: 1,
                waiting_bytes: origin.waiting_bytes,
                spill_folder: origin.spill.to_owned(),
                tally: Arc::default(),
                observer: origin.observer,
            };
            // What cannot be read is passed over; a check will tell of it.
            gatherer.regions(&wanted, &reading).map(drop)
        })?;
        if origin.observer.is_cancelled() {
            return Err(EngineError::Interrupted);
        }
        let noted = lock(&reading.noted).take();
        if let Some(Noted { known, draft, result, .. }) = noted {
            result.and_then(|()| draft.finish()).map(|records| known.records = Some(records)).map_err(local)?;
        }
        Ok(())
    }

    /// The likest chunks of this kind, at most `most`, likest first, none deeper than the first: it would make all
    /// deeper.
    pub(super) fn find(&self, kind: ContainerKind, sketch: &Sketch, most: usize) -> Vec<Candidate> {
        let mut found = self.likes.find(sketch, most);
        found.retain(|found| ContainerKind::of(ChunkNumber(found.number)) == kind);
        let depth = |found: &Candidate| self.depths.of(ChunkNumber(found.number));
        if let Some(deepest) = found.first().map(depth) {
            found.retain(|found| depth(found) <= deepest);
        }
        found
    }

    /// The depth of a chunk that was found.
    pub(in crate::backup) fn depth(&self, number: ChunkNumber) -> u32 {
        self.depths.of(number)
    }
}

/// How deep chunks are: the numbers of depth 1, 2, ...
#[derive(Debug, Default)]
struct Depths(Vec<RoaringTreemap>);

impl Depths {
    fn insert(&mut self, number: ChunkNumber, depth: u32) {
        let Some(at) = depth.checked_sub(1) else { return };
        let at = at as usize;
        if self.0.len() <= at {
            self.0.resize(at + 1, RoaringTreemap::new());
        }
        if let Some(numbers) = self.0.get_mut(at) {
            numbers.insert(number.0);
        }
    }

    fn of(&self, number: ChunkNumber) -> u32 {
        let found = self.0.iter().position(|numbers| numbers.contains(number.0));
        found.and_then(|at| u32::try_from(at + 1).ok()).unwrap_or(0)
    }
}

/// A region on the way down.
struct Frame {
    address: Address,
    bases: Vec<Address>,
    /// The deepest of the bases looked at.
    deepest: Option<u32>,
}

/// The longest chain of deltas that a region hangs on; [`BOTTOMLESS`] if it has no end.
fn depth_of(chunks: &ChunkSource<'_>, wanted: Address, depths: &mut HashMap<Address, u32>) -> Result<u32, StoreError> {
    let mut frames = vec![frame(chunks, wanted)?];
    let mut last = 0;
    while let Some(top) = frames.last_mut() {
        let address = top.address;
        if let Some(known) = depths.get(&address) {
            last = *known;
            frames.pop();
        } else if let Some(base) = top.bases.pop() {
            let next = match depths.get(&base) {
                Some(_) => None,
                None if frames.iter().any(|frame| frame.address == base) => {
                    depths.insert(base, BOTTOMLESS);
                    None
                }
                None => Some(frame(chunks, base)?),
            };
            if let Some(next) = next {
                // It is asked for again once its depth is known.
                if let Some(top) = frames.last_mut() {
                    top.bases.push(base);
                }
                frames.push(next);
            } else {
                let depth = depths.get(&base).copied();
                if let Some(top) = frames.last_mut() {
                    top.deepest = top.deepest.max(depth);
                }
            }
        } else {
            last = top.deepest.map_or(0, |deepest| deepest.saturating_add(1));
            depths.insert(address, last);
            frames.pop();
        }
    }
    Ok(last)
}

fn frame(chunks: &ChunkSource<'_>, address: Address) -> Result<Frame, StoreError> {
    match chunks.bases_of(address) {
        Ok(bases) => {
            let mut bases: Vec<Address> = bases.into_iter().map(|base| base.address).collect();
            bases.sort_unstable();
            bases.dedup();
            Ok(Frame { address, bases, deepest: None })
        }
        Err(error) if error.is_damage() => Ok(Frame { address, bases: Vec::new(), deepest: Some(BOTTOMLESS) }),
        Err(error) => Err(error),
    }
}

fn local(source: io::Error) -> EngineError {
    EngineError::Local { source }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let mut depth = |region| depth_of(&chunks, Address { container, region }, &mut depths).expect("indexes");
        assert_eq!([3, 2, 0, 1].map(&mut depth), [3, 2, 0, 1]);
        for region in 4..8 {
            assert!(depth(region) >= BOTTOMLESS - 2, "region {region}");
        }
    }

    #[test]
    fn depths_are_kept_by_number() {
        let mut depths = Depths::default();
        for (number, depth) in [(1, 0), (2, 3), (3, 1), (4, 3)] {
            depths.insert(ChunkNumber(number), depth);
        }
        assert_eq!([1, 2, 3, 4, 5].map(|number| depths.of(ChunkNumber(number))), [0, 3, 1, 3, 0]);
    }
}

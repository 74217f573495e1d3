//! Rebasing: what hangs on deltas is encoded against what those hang on themselves, and so hangs on them no more.
//!
//! ```text
//! a -> P -> b        becomes  a -> b       (-> : is a delta against; P: passed over)
//! ```
//!
//! The new bases are taken from what a delta hung on already, through what is passed over, so that no cycle can come
//! about. What becomes of what was passed over, and whether it pays, is for the caller to say: ghosts go (module
//! `ghosts`), chunks that snapshots need stay (module `shortcuts`).

use super::layout::class;
use super::options::Maintenance;
use super::repack::{Effort, Move, RepackOptions, Repacked, Repacker, Standing};
use crate::EngineError;
use crate::bases::BaseGraph;
use crate::chunks::ChunkSource;
use crate::decode::HeldChunk;
use crate::delta::{DEPTH_MAX, Likeness, LikenessIndex, offer};
use crate::lifecycle::lifecycles;
use crate::pack::ContainerSink;
use roaring::RoaringTreemap;
use siltstone_store::container::{ChunkPlace, ContainerIndex, ContainerKind, ContainerRecord, RegionEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::ChunkEntry;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Text that is read together, in memory and in a temporary file, for each byte of it in memory.
const TOGETHER_PART: u64 = 16;
/// The sketches and anchors of what one delta may be encoded against take this much.
const SIMILAR_BYTES: u64 = 4 << 20;
/// Text that is encoded, about, to learn what rebasing costs.
const SAMPLE_BYTES: u64 = 4 << 20;
/// Samples are taken of what is at least so many times the sample.
const SAMPLED_FROM: u64 = 4;

/// A delta that hangs on what is passed over.
pub(super) struct Dependent {
    /// Those of its chunks that are not passed over themselves.
    pub(super) members: Vec<ChunkPlace>,
    pub(super) bases: Vec<ChunkNumber>,
    /// Bytes that its members take, about.
    pub(super) stored_bytes: u64,
}

impl Dependent {
    /// Bytes of text.
    fn plain_bytes(&self) -> u64 {
        self.members.iter().map(|place| u64::from(place.chunk.length)).sum()
    }
}

/// Deltas that can be encoded against what their bases hang on.
#[derive(Default)]
pub(super) struct Rebasing {
    pub(super) dependents: Vec<Dependent>,
    /// Chunks that are passed over, as far as they are part of deltas, and what those hang on.
    pub(super) passed: BaseGraph,
    /// Bytes that these chunks take, about.
    pub(super) passed_bytes: u64,
    /// Bytes of text of their deltas that the dependents hang on: who reads a dependent decodes it now, and not then.
    pub(super) text_bytes: u64,
}

impl Rebasing {
    /// Finds what hangs on these, to be passed over; reads the indexes of all containers with deltas.
    pub(super) fn past(
        passed: &RoaringTreemap,
        chunks: &ChunkSource<'_>,
        live: &RoaringTreemap,
    ) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let mut candidates: Vec<Dependent> = Vec::new();
        let mut texts: Vec<(Vec<u64>, u64)> = Vec::new();
        for (container, record) in chunks.own_records().into_iter().filter(|(_, record)| record.has_deltas) {
            let served = record.numbers() & live;
            let reader = chunks.reader(container)?;
            let weight = Weight::in_container(&record, reader.index());
            let places = reader.index().places().iter().filter(|place| served.contains(place.chunk.number.0));
            let mut by_region: HashMap<usize, Vec<ChunkPlace>> = HashMap::new();
            places.for_each(|place| by_region.entry(place.region).or_default().push(*place));
            for (region, entry) in
                reader.index().regions().iter().enumerate().filter(|(_, entry)| !entry.bases.is_empty())
            {
                let Some(places) = by_region.remove(&region) else { continue };
                let (passed_here, members): (Vec<_>, Vec<_>) =
                    places.into_iter().partition(|place| passed.contains(place.chunk.number.0));
                let bytes = |places: &[ChunkPlace]| weight.bytes(entry, places.iter().map(|place| &place.chunk));
                found.passed_bytes += bytes(&passed_here);
                texts.push((passed_here.iter().map(|place| place.chunk.number.0).collect(), entry.plain_bytes.into()));
                found.passed.add(passed_here.iter().map(|place| place.chunk.number), &entry.bases);
                if entry.bases.iter().any(|base| passed.contains(base.0)) && !members.is_empty() {
                    let stored_bytes = bytes(&members);
                    candidates.push(Dependent { members, bases: entry.bases.clone(), stored_bytes });
                }
            }
        }
        let in_deltas = found.passed.in_deltas();
        candidates.retain(|dependent| dependent.bases.iter().any(|base| in_deltas.contains(base.0)));
        let bases: RoaringTreemap =
            candidates.iter().flat_map(|dependent| &dependent.bases).map(|base| base.0).collect();
        texts.retain(|(numbers, _)| numbers.iter().any(|number| bases.contains(*number)));
        found.text_bytes = texts.iter().map(|(_, bytes)| bytes).sum();
        found.dependents = candidates;
        Ok(found)
    }

    /// All dependents.
    pub(super) fn all(&self) -> Vec<&Dependent> {
        self.dependents.iter().collect()
    }

    /// Dependents that stand for all; `None` if there are too few.
    pub(super) fn sample(&self) -> Option<Vec<&Dependent>> {
        let one_in = self.plain_bytes() / SAMPLE_BYTES;
        let is_worth_it = one_in >= SAMPLED_FROM;
        is_worth_it.then(|| self.dependents.iter().step_by(usize::try_from(one_in).unwrap_or(usize::MAX)).collect())
    }

    /// Bytes of the dependents' text.
    pub(super) fn plain_bytes(&self) -> u64 {
        self.dependents.iter().map(Dependent::plain_bytes).sum()
    }

    /// Bytes that the dependents take now, about.
    pub(super) fn stored_bytes(&self) -> u64 {
        stored_bytes(&self.all())
    }

    /// The chunks of the dependents.
    pub(super) fn members(&self) -> impl Iterator<Item = u64> {
        self.dependents.iter().flat_map(|dependent| &dependent.members).map(|place| place.chunk.number.0)
    }

    /// Returns the chunks that a delta may hang on instead: its bases, each that is passed over replaced by what it
    /// hangs on.
    fn instead_of(&self, bases: &[ChunkNumber]) -> impl Iterator<Item = ChunkNumber> {
        self.passed.roots(bases).into_iter().map(ChunkNumber)
    }

    /// How many of these dependents are read together, at least one, and what is looked at to encode them anew: their
    /// members, and what those may hang on. That is `bytes_max` of text, about.
    fn read_together(
        &self,
        chunks: &ChunkSource<'_>,
        dependents: &[&Dependent],
        bytes_max: usize,
    ) -> Result<(usize, BTreeSet<ChunkNumber>), StoreError> {
        let (mut count, mut numbers, mut bytes) = (0, BTreeSet::new(), 0);
        for dependent in dependents {
            let members = dependent.members.iter().map(|place| place.chunk.number);
            for number in members.chain(self.instead_of(&dependent.bases)) {
                if numbers.insert(number) {
                    bytes += chunks.place_of(number)?.1.chunk.length as usize;
                }
            }
            count += 1;
            if bytes >= bytes_max {
                break;
            }
        }
        Ok((count, numbers))
    }

    /// Encodes these dependents anew; what is made is handed to the sink.
    pub(super) fn encode(
        &self,
        work: Maintenance<'_>,
        chunks: &Arc<ChunkSource<'_>>,
        sink: &dyn ContainerSink,
        manifest: &Manifest,
        dependents: &[&Dependent],
    ) -> Result<Repacked, EngineError> {
        let is_exact = work.options.threshold <= 0.0;
        let options = RepackOptions { effort: Effort::Usual(work.options.compression_level), is_exact };
        let memory_bytes = work.resources.repack_shares().dependents_bytes;
        let bytes_max = usize::try_from(TOGETHER_PART * memory_bytes).unwrap_or(usize::MAX);
        std::thread::scope(|scope| {
            let mut repacker = Repacker::start(scope, chunks, manifest, sink, options, work.resources)?;
            let (mut read, mut left) = (HashMap::new(), 0);
            for (at, Dependent { members, bases, .. }) in dependents.iter().enumerate() {
                if left == 0 {
                    let numbers;
                    let ahead = dependents.get(at..).unwrap_or_default();
                    (left, numbers) = self.read_together(chunks, ahead, bytes_max)?;
                    read = repacker.read(&numbers, memory_bytes)?;
                }
                left = left.saturating_sub(1);
                let bytes_of = |number| match read.get(&number) {
                    Some(chunk) => HeldChunk::read(chunk),
                    None => Err(StoreError::MissingChunk { number }),
                };
                let mut similar = LikenessIndex::within(SIMILAR_BYTES);
                let mut lengths = HashMap::new();
                for base in self.instead_of(bases) {
                    let bytes = bytes_of(base)?;
                    lengths.insert(base.0, bytes.len());
                    similar.insert(base, &Likeness::of(&bytes));
                }
                let found = lifecycles(manifest, &members.iter().map(|place| place.chunk.number.0).collect());
                for place in members {
                    let number = place.chunk.number;
                    let Some(lifecycle) = found.get(&number.0) else { continue };
                    let bytes = bytes_of(number)?;
                    let kind = ContainerKind::of(number);
                    let alike = similar.alike(kind, &Likeness::of(&bytes)).candidates.into_iter();
                    let offers = alike
                        .map(|(base, matches)| offer(base, lengths.get(&base.0).copied().unwrap_or_default(), matches));
                    let last = manifest.snapshots().len().saturating_sub(1);
                    let class = class(kind, *lifecycle, lifecycle.column == last, is_exact);
                    let standing = Standing { row: lifecycle.row, ..Standing::default() };
                    repacker.push(class, place.chunk, bytes, Move::Against(offers.collect()), standing)?;
                }
                // Two deltas must not become one: one may hang on the other.
                repacker.flush_all()?;
            }
            Ok(repacker.finish()?)
        })
    }

    /// Puts what was made of all dependents in their place, in `next`, whose containers answer for what is `gone` no
    /// more. `of_lent` is what others have borrowed, with all its bases. What was just written is read again for what
    /// hangs on what now.
    pub(super) fn apply(
        &self,
        repository: &Repository,
        repacked: Repacked,
        mut gone: RoaringTreemap,
        of_lent: &RoaringTreemap,
        next: &mut Manifest,
    ) -> Result<(), StoreError> {
        let before = next.live();
        gone.extend(self.members());
        for record in &mut next.containers {
            if !record.numbers().is_disjoint(&gone) {
                record.change_numbers(|numbers| numbers - &gone);
            }
        }
        next.containers.retain(|record| !record.chunks.is_empty());
        let made = repacked.packed.containers.len();
        next.containers.extend(repacked.packed.containers);
        repository.storage().barrier()?;
        let chunks = ChunkSource::new(repository, next);
        let needs = chunks.base_graph()?.needs(next);
        let whole = whole_chunks(&chunks, next.containers.len() - made)?;
        drop(chunks);
        next.replace_necessary(needs);
        let no_more_live = (of_lent & before) - next.live() - next.imported();
        next.lent |= no_more_live;
        bound_dependents(&mut next.dependents_depths, &whole);
        Ok(())
    }
}

/// Bytes that these take now, about.
pub(super) fn stored_bytes(dependents: &[&Dependent]) -> u64 {
    dependents.iter().map(|dependent| dependent.stored_bytes).sum()
}

/// Weighs chunks of a container: their share of a region, and of what the container has beside its regions.
pub(super) struct Weight {
    /// Bytes beside the regions for each chunk.
    beside_bytes: u64,
}

impl Weight {
    /// The weight of chunks of this container.
    pub(super) fn in_container(record: &ContainerRecord, index: &ContainerIndex) -> Self {
        let in_regions = index.regions().iter().map(|entry| u64::from(entry.sealed_bytes)).sum();
        let chunks = index.places().len().max(1) as u64;
        Self { beside_bytes: record.object_bytes.saturating_sub(in_regions) / chunks }
    }

    /// Bytes of these chunks of a region, about.
    pub(super) fn bytes<'c>(&self, entry: &RegionEntry, chunks: impl Iterator<Item = &'c ChunkEntry>) -> u64 {
        let (mut plain_bytes, mut beside_bytes) = (0, 0);
        for chunk in chunks {
            plain_bytes += u64::from(chunk.length);
            beside_bytes += self.beside_bytes;
        }
        beside_bytes + u64::from(entry.sealed_bytes) * plain_bytes / u64::from(entry.plain_bytes.max(1))
    }
}

/// The chunks of plain regions in the containers from this one on.
fn whole_chunks(chunks: &ChunkSource<'_>, first: usize) -> Result<RoaringTreemap, StoreError> {
    let mut whole = RoaringTreemap::new();
    for (at, _) in chunks.own_records().into_iter().skip(first) {
        let reader = chunks.reader(at)?;
        let plain = reader.index().regions().iter().filter(|entry| entry.bases.is_empty());
        whole.extend(plain.flat_map(|entry| &entry.chunks).map(|chunk| chunk.number.0));
    }
    Ok(whole)
}

/// Notes of chunks that were deltas and are whole now that any chain may hang on them: they are made deltas no more.
fn bound_dependents(dependents_depths: &mut Vec<RoaringTreemap>, whole: &RoaringTreemap) {
    if whole.is_empty() {
        return;
    }
    let highest = DEPTH_MAX as usize;
    for of_depth in dependents_depths.iter_mut() {
        *of_depth -= whole;
    }
    if dependents_depths.len() < highest {
        dependents_depths.resize(highest, RoaringTreemap::new());
    }
    if let Some(of_depth) = dependents_depths.get_mut(highest - 1) {
        *of_depth |= whole;
    }
}

#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use siltstone_store::Fingerprint;

    /// A dependent of one chunk.
    pub(in super::super) fn dependent(plain_bytes: u32, stored_bytes: u64) -> Dependent {
        let chunk = ChunkEntry { number: ChunkNumber(0), fingerprint: Fingerprint([0; 16]), length: plain_bytes };
        Dependent { members: vec![ChunkPlace { chunk, region: 0, offset: 0 }], bases: Vec::new(), stored_bytes }
    }

    #[test]
    fn a_sample_is_taken_of_much_and_is_spread_over_all_of_it() {
        let rebasing = |dependents| {
            let dependents = (0..dependents).map(|_| dependent(1 << 20, 100_000)).collect();
            Rebasing { dependents, ..Rebasing::default() }
        };
        assert!(rebasing(15).sample().is_none());
        let much = rebasing(160);
        let sample = much.sample().expect("much");
        assert_eq!(sample.len(), 4);
        assert!(std::ptr::eq(sample[3], &raw const much.dependents[120]));
    }
}

//! Ghosts: chunks that no live snapshot refers to, but that others hang on as deltas. Forgetting the middle of a chain
//! makes them.
//!
//! Eliminating them: what hangs on a ghost is encoded against what the ghost itself hangs on, and the ghost goes. New
//! bases of a delta are taken from what it hung on already, through its ghosts, so that no cycle can come about. It is
//! done only if it frees more than it costs; a ghost that is stored whole stays, there being nothing to put in its
//! place. Few ghosts are left alone until there are more. Where much hangs on them a sample is encoded first. What did
//! not pay is noted in the manifest, and tried again when there are a quarter more: who forgets every day would else
//! encode the same again each day, only to throw it away.
//!
//! ```text
//! a -> G -> b        becomes  a -> b       (-> : is a delta against; G: the ghost)
//! ```
//!
//! Before that, hulls are shrunk (module `hulls`); what nothing needs then goes without being eliminated.

use super::commit::{commit, credit_last};
use super::hulls::shrink_hulls;
use super::layout::class;
use super::options::{MaintainSummary, Maintenance};
use super::repack::{Effort, Move, RepackOptions, Repacked, Repacker, Standing};
use crate::EngineError;
use crate::bases::BaseGraph;
use crate::chunks::ChunkSource;
use crate::decode::HeldChunk;
use crate::delta::{DEPTH_MAX, Likeness, LikenessIndex, offer};
use crate::lifecycle::lifecycles;
use crate::pack::{ContainerSink, DrySink};
use roaring::RoaringTreemap;
use siltstone_store::container::{ChunkPlace, ContainerKind, RegionEntry};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Text that is read together, in memory and in a temporary file, for each byte of it in memory.
const TOGETHER_PART: u64 = 16;
/// The sketches and anchors of what one delta may be encoded against take this much.
const SIMILAR_BYTES: u64 = 4 << 20;

/// Ghosts that take less than one byte in so many of the series are left alone.
const GHOSTS_ONE_IN: u64 = 64;
/// Text that is encoded, about, to learn whether eliminating ghosts pays.
const SAMPLE_BYTES: u64 = 4 << 20;
/// Samples are taken of what is at least so many times the sample.
const SAMPLED_FROM: u64 = 4;
/// Growth by one byte in so many, after which what did not pay is tried again.
const AGAIN_ONE_IN: u64 = 4;

/// A delta that hangs on ghosts.
struct Dependent {
    /// Those of its chunks that are no ghosts.
    members: Vec<ChunkPlace>,
    bases: Vec<ChunkNumber>,
    /// Bytes that its members take, about.
    stored_bytes: u64,
}

impl Dependent {
    /// Bytes of text.
    fn plain_bytes(&self) -> u64 {
        self.members.iter().map(|place| u64::from(place.chunk.length)).sum()
    }
}

/// Ghosts that can be eliminated, and what hangs on them.
#[derive(Default)]
struct Elimination {
    dependents: Vec<Dependent>,
    /// The ghosts that are part of a delta, and what they hang on.
    ghosts: BaseGraph,
    /// Bytes that those ghosts take, about.
    ghost_bytes: u64,
}

impl Elimination {
    /// Reads the indexes of all containers with deltas.
    fn read(chunks: &ChunkSource<'_>, ghosts: &RoaringTreemap, live: &RoaringTreemap) -> Result<Self, StoreError> {
        let mut found = Self::default();
        let mut candidates = Vec::new();
        for (container, record) in chunks.own_records().into_iter().filter(|(_, record)| record.has_deltas) {
            let served = record.numbers() & live;
            let reader = chunks.reader(container)?;
            let places = reader.index().places().iter().filter(|place| served.contains(place.chunk.number.0));
            let mut by_region: HashMap<usize, Vec<ChunkPlace>> = HashMap::new();
            places.for_each(|place| by_region.entry(place.region).or_default().push(*place));
            for (region, entry) in
                reader.index().regions().iter().enumerate().filter(|(_, entry)| !entry.bases.is_empty())
            {
                let Some(places) = by_region.remove(&region) else { continue };
                let (ghosts_here, members): (Vec<_>, Vec<_>) =
                    places.into_iter().partition(|place| ghosts.contains(place.chunk.number.0));
                let bytes = |places: &[ChunkPlace]| {
                    share(entry, places.iter().map(|place| u64::from(place.chunk.length)).sum())
                };
                found.ghost_bytes += bytes(&ghosts_here);
                found.ghosts.add(ghosts_here.iter().map(|ghost| ghost.chunk.number), &entry.bases);
                if entry.bases.iter().any(|base| ghosts.contains(base.0)) && !members.is_empty() {
                    let stored_bytes = bytes(&members);
                    candidates.push(Dependent { members, bases: entry.bases.clone(), stored_bytes });
                }
            }
        }
        let in_deltas = found.ghosts.in_deltas();
        candidates.retain(|dependent| dependent.bases.iter().any(|base| in_deltas.contains(base.0)));
        found.dependents = candidates;
        Ok(found)
    }

    /// Returns the chunks that a delta may hang on instead: its bases, each ghost replaced by what it hangs on.
    fn instead_of(&self, bases: &[ChunkNumber]) -> impl Iterator<Item = ChunkNumber> {
        self.ghosts.roots(bases).into_iter().map(ChunkNumber)
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

    /// Dependents that stand for all; `None` if there are too few.
    fn sample(&self) -> Option<Vec<&Dependent>> {
        let plain_bytes: u64 = self.dependents.iter().map(Dependent::plain_bytes).sum();
        let one_in = plain_bytes / SAMPLE_BYTES;
        let is_worth_it = one_in >= SAMPLED_FROM;
        is_worth_it.then(|| self.dependents.iter().step_by(usize::try_from(one_in).unwrap_or(usize::MAX)).collect())
    }

    /// Tells whether encoding these anew frees something, if the ghosts' bytes are theirs in proportion.
    fn pays(&self, dependents: &[&Dependent], written: u64) -> bool {
        let replaced = |dependents: &mut dyn Iterator<Item = &Dependent>| -> u64 {
            dependents.map(|dependent| dependent.stored_bytes).sum()
        };
        let all = replaced(&mut self.dependents.iter());
        let these = replaced(&mut dependents.iter().copied());
        u128::from(written) * u128::from(all) < u128::from(these) * u128::from(all + self.ghost_bytes)
    }
}

/// Tells whether it is worth trying to eliminate ghosts of so many bytes: they are no small part of the series, and
/// clearly more than when it last did not pay.
fn is_worth_trying(manifest: &Manifest, ghost_bytes: u64) -> bool {
    let series_bytes: u64 = manifest.containers.iter().map(|record| record.object_bytes).sum();
    let kept = manifest.ghosts_kept;
    ghost_bytes >= series_bytes / GHOSTS_ONE_IN && ghost_bytes >= kept.saturating_add(kept / AGAIN_ONE_IN)
}

/// About how many bytes are held by ghosts that are to be eliminated where that pays, and by those that nothing hangs
/// on.
pub(crate) fn ghost_bytes(repository: &Repository, manifest: &Manifest) -> Result<u64, StoreError> {
    let live = manifest.live();
    let chunks = ChunkSource::new(repository, manifest);
    let ghosts = manifest.ghosts() - chunks.closure(&manifest.lent)?;
    if ghosts.is_empty() {
        return Ok(0);
    }
    let needed = chunks.base_graph()?.closure(&(&live - &ghosts));
    let in_deltas = Elimination::read(&chunks, &(ghosts & &needed), &needed)?.ghost_bytes;
    let to_try = if is_worth_trying(manifest, in_deltas) { in_deltas } else { 0 };
    Ok(to_try + stored_bytes(&chunks, &(live - needed))?)
}

/// About how many bytes these chunks take.
fn stored_bytes(chunks: &ChunkSource<'_>, numbers: &RoaringTreemap) -> Result<u64, StoreError> {
    let mut bytes = 0;
    for (at, record) in chunks.own_records() {
        let here = record.numbers() & numbers;
        if here.is_empty() {
            continue;
        }
        let reader = chunks.reader(at)?;
        for entry in reader.index().regions() {
            let of_region = entry.chunks.iter().filter(|chunk| here.contains(chunk.number.0));
            bytes += share(entry, of_region.map(|chunk| u64::from(chunk.length)).sum());
        }
    }
    Ok(bytes)
}

/// Estimates the stored bytes of this many plain bytes of a region.
fn share(entry: &RegionEntry, plain_bytes: u64) -> u64 {
    u64::from(entry.sealed_bytes) * plain_bytes / u64::from(entry.plain_bytes.max(1))
}

/// Shrinks the hulls of a series, and eliminates its ghosts if that frees more than it costs. The lease is kept,
/// and the series is still said to be looked at: what is dead now lies there yet.
pub(super) fn eliminate(work: Maintenance<'_>, writer: &mut SeriesWriter<'_>) -> Result<MaintainSummary, EngineError> {
    let repository = work.repository;
    let manifest = writer.manifest().clone();
    let chunks = Arc::new(ChunkSource::new(repository, &manifest));
    let mut next = manifest.clone();
    shrink_hulls(repository, &chunks, &manifest, &mut next)?;
    // What others have borrowed may hang on a ghost, too, and is not encoded anew.
    let of_lent = chunks.closure(&next.lent)?;
    let ghosts = next.ghosts() - &of_lent;
    if ghosts.is_empty() {
        next.ghosts_kept = 0;
        return commit(work, writer, next);
    }
    let elimination = Elimination::read(&chunks, &ghosts, &next.live())?;
    // Of fewer than there were, a quarter more is less.
    next.ghosts_kept = next.ghosts_kept.min(elimination.ghost_bytes);
    let mut gone = elimination.ghosts.in_deltas().clone();
    let is_exact = work.options.threshold <= 0.0;
    if gone.is_empty() || !(is_exact || is_worth_trying(&next, elimination.ghost_bytes)) {
        return commit(work, writer, next);
    }
    if let Some(sample) = elimination.sample().filter(|_| !is_exact) {
        let nowhere = DrySink::new(writer.manifest().sequence);
        let tried = encode_again(work, &chunks, &nowhere, &next, &elimination, &sample)?;
        if !elimination.pays(&sample, tried.packed.object_bytes()) {
            next.ghosts_kept = elimination.ghost_bytes;
            return commit(work, writer, next);
        }
    }
    let all: Vec<&Dependent> = elimination.dependents.iter().collect();
    let repacked = encode_again(work, &chunks, writer, &next, &elimination, &all)?;
    let written = repacked.packed.object_bytes();
    if !elimination.pays(&all, written) {
        next.ghosts_kept = elimination.ghost_bytes;
        let summary = commit(work, writer, next)?;
        writer.sweep()?;
        return Ok(summary);
    }
    next.ghosts_kept = 0;
    let mut summary = MaintainSummary {
        bytes_written: written,
        containers_written: repacked.packed.containers.len() as u64,
        ghosts_eliminated: gone.len(),
        ..MaintainSummary::default()
    };
    gone.extend(
        elimination.dependents.iter().flat_map(|dependent| &dependent.members).map(|place| place.chunk.number.0),
    );
    for record in &mut next.containers {
        if !record.numbers().is_disjoint(&gone) {
            record.change_numbers(|numbers| numbers - &gone);
        }
    }
    next.containers.retain(|record| !record.chunks.is_empty());
    let made = repacked.packed.containers.len();
    next.containers.extend(repacked.packed.containers);
    // What was just written is read again for what hangs on what now.
    repository.storage().barrier().map_err(StoreError::from)?;
    let chunks = ChunkSource::new(repository, &next);
    next.replace_necessary(chunks.base_graph()?.needs(&next));
    let no_more_live = (of_lent & manifest.live()) - next.live() - next.imported();
    next.lent |= no_more_live;
    let whole = whole_chunks(&chunks, next.containers.len() - made)?;
    bound_dependents(&mut next.dependents_depths, &whole);
    credit_last(&mut next, &summary);
    summary.add(&commit(work, writer, next)?);
    Ok(summary)
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

/// Encodes these, which hang on ghosts, against what those hang on.
fn encode_again(
    work: Maintenance<'_>,
    chunks: &Arc<ChunkSource<'_>>,
    sink: &dyn ContainerSink,
    manifest: &Manifest,
    elimination: &Elimination,
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
                (left, numbers) = elimination.read_together(chunks, ahead, bytes_max)?;
                read = repacker.read(&numbers, memory_bytes)?;
            }
            left = left.saturating_sub(1);
            let bytes_of = |number| match read.get(&number) {
                Some(chunk) => HeldChunk::read(chunk),
                None => Err(StoreError::MissingChunk { number }),
            };
            let mut similar = LikenessIndex::within(SIMILAR_BYTES);
            let mut lengths = HashMap::new();
            for base in elimination.instead_of(bases) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_store::container::ChunkPlace;
    use siltstone_store::region::ChunkEntry;
    use siltstone_store::{Fingerprint, SeriesId};

    fn dependent(plain_bytes: u32, stored_bytes: u64) -> Dependent {
        let chunk = ChunkEntry { number: ChunkNumber(0), fingerprint: Fingerprint([0; 16]), length: plain_bytes };
        Dependent { members: vec![ChunkPlace { chunk, region: 0, offset: 0 }], bases: Vec::new(), stored_bytes }
    }

    fn elimination(dependents: usize, ghost_bytes: u64) -> Elimination {
        let dependents = (0..dependents).map(|_| dependent(1 << 20, 100_000)).collect();
        Elimination { dependents, ghost_bytes, ..Elimination::default() }
    }

    #[test]
    fn a_sample_is_taken_of_much_and_is_spread_over_all_of_it() {
        assert!(elimination(15, 0).sample().is_none());
        let much = elimination(160, 0);
        let sample = much.sample().expect("much");
        assert_eq!(sample.len(), 4);
        assert!(std::ptr::eq(sample[3], &raw const much.dependents[120]));
    }

    #[test]
    fn what_did_not_pay_is_tried_again_when_there_are_a_quarter_more() {
        let mut manifest = Manifest::new(SeriesId([0; 16]), "test");
        assert!(is_worth_trying(&manifest, 1));
        manifest.ghosts_kept = 1000;
        assert!(!is_worth_trying(&manifest, 1000) && !is_worth_trying(&manifest, 1249));
        assert!(is_worth_trying(&manifest, 1250));
        // A manifest may hold any number.
        manifest.ghosts_kept = u64::MAX;
        assert!(!is_worth_trying(&manifest, 1250));
    }

    #[test]
    fn a_sample_pays_if_all_would_at_the_same_rate() {
        let much = elimination(160, 1_600_000);
        let (sample, all) = (much.sample().expect("much"), much.dependents.iter().collect::<Vec<_>>());
        // 10 % more are freed by the ghosts: so much more may be written.
        assert!(much.pays(&sample, 439_999) && !much.pays(&sample, 440_000));
        assert!(much.pays(&all, 17_599_999) && !much.pays(&all, 17_600_000));
        assert!(!elimination(160, 0).pays(&all, 16_000_000));
    }
}

//! Splitting containers: what is retired of them becomes deltas or moves, and what the manifest says afterwards.

use super::layout::class;
use super::options::{MaintainOptions, MaintainSummary, Maintenance};
use super::repack::{DecodedChunks, Effort, Link, Move, RepackOptions, Repacked, Repacker, Standing};
use super::retired::RetiredChunks;
use crate::bases::{level_of, raise};
use crate::chunks::{Address, ChunkSource};
use crate::decode::Bytes;
use crate::delta::{Alike, Deltas, Likeness, offer};
use crate::lifecycle::{Lifecycle, lifecycles};
use crate::pack::ContainerSink;
use crate::{EngineError, Resources};
use roaring::RoaringTreemap;
use siltstone_similar::region::Offer;
use siltstone_store::container::{ChunkPlace, ContainerKind, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::{ChunkEntry, split_region};
use siltstone_store::{ChunkNumber, ContainerId, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// Indexes of containers kept open; one takes up to about 0.7 MB.
const READERS_MAX: usize = 48;

/// Outcome of splitting some containers.
pub(super) struct Split {
    repacked: Repacked,
    /// Chunks that each container worked on answers for from now on.
    left: HashMap<ContainerId, ContainerRecord>,
    /// The bases that came to be needed, by the first snapshot that needs them.
    bases: BTreeMap<usize, RoaringTreemap>,
}

/// Works through `containers`; the new ones are handed to the sink, nothing is committed.
pub(super) fn split(
    work: Maintenance<'_>,
    manifest: &Manifest,
    sink: &dyn ContainerSink,
    retired: &RetiredChunks,
    containers: &[ContainerId],
) -> Result<Split, EngineError> {
    let Maintenance { repository, options, resources } = work;
    // Each region is looked at once: none is kept.
    let chunks = Arc::new(ChunkSource::with_limits(repository, manifest, READERS_MAX, 0));
    let (repacked, left) = std::thread::scope(|scope| {
        let is_exact = options.threshold <= 0.0;
        let repacking = RepackOptions { effort: Effort::Usual(options.compression_level), is_exact };
        let repacker =
            Repacker::start(scope, &chunks, manifest, sink, repacking, resources)?.with_texts(&retired.texts);
        let mut work =
            Work { manifest, chunks: &chunks, retired, options, resources, is_exact, repacker, left: HashMap::new() };
        for id in containers {
            work.container(*id)?;
        }
        let Work { repacker, left, .. } = work;
        Ok::<_, EngineError>((repacker.finish()?, left))
    })?;
    let mut bases: BTreeMap<usize, RoaringTreemap> = BTreeMap::new();
    for Link { row, bases: of_link, .. } in &repacked.links {
        bases.entry(*row).or_default().extend(of_link.iter().map(|base| base.0));
    }
    for of_row in bases.values_mut() {
        *of_row = chunks.closure_of_live(of_row)?;
    }
    Ok(Split { repacked, left, bases })
}

/// Working through containers.
struct Work<'w> {
    manifest: &'w Manifest,
    chunks: &'w ChunkSource<'w>,
    retired: &'w RetiredChunks,
    options: &'w MaintainOptions,
    resources: &'w Resources,
    is_exact: bool,
    repacker: Repacker<'w>,
    left: HashMap<ContainerId, ContainerRecord>,
}

impl Work<'_> {
    fn container(&mut self, id: ContainerId) -> Result<(), EngineError> {
        let found = self.manifest.containers.iter().enumerate().find(|(_, record)| record.id == id);
        let Some((at, record)) = found else {
            return Ok(());
        };
        let served = record.numbers();
        let found = lifecycles(self.manifest, &served);
        let (encoded, decoded) = match self.options.deltas {
            Deltas::Off | Deltas::Forward { .. } | Deltas::Custom(_) => Default::default(),
            Deltas::Reverse { depth } => {
                let dying = (&served & &self.retired.dying) - &self.retired.claimed;
                self.encode_dying(at, record.kind, &dying, &found, depth)?
            }
        };
        let left = &served - &encoded;
        let moved = self.moved(record, &left, &found);
        if !moved.is_empty() {
            let (retired, is_exact) = (self.retired, self.is_exact);
            let class_of = |number: ChunkNumber| {
                let lifecycle = found.get(&number.0).filter(|_| moved.contains(number.0))?;
                Some(class(record.kind, *lifecycle, lifecycle.column > retired.position, is_exact))
            };
            // What is lost once more in splitting is far less than what was lost before it.
            let tolerated = self.options.threshold / 4.0;
            self.repacker.move_decoded(at, &decoded, tolerated, class_of)?;
        }
        if !(moved.is_empty() && encoded.is_empty()) {
            let mut cut = record.clone();
            cut.set_numbers(self.chunks.reader(at)?.index(), &(left - moved));
            self.left.insert(id, cut);
        }
        Ok(())
    }

    /// Returns the chunks that go on to other containers of those that one still answers for: all, if it is split, or
    /// nothing. A container of dead chunks of which few were encoded back is not split: these move out, and the dead
    /// stay among themselves.
    fn moved(
        &self,
        record: &ContainerRecord,
        left: &RoaringTreemap,
        lifecycles: &HashMap<u64, Lifecycle>,
    ) -> RoaringTreemap {
        let threshold = self.options.threshold;
        let mut survivors = left - &self.retired.dying;
        let has_returned = !survivors.is_disjoint(&self.retired.returned);
        if has_returned {
            let lives = |number: &u64| lifecycles.get(number).is_some_and(|of| of.column > self.retired.position);
            survivors = survivors.into_iter().filter(lives).collect();
        }
        let useful = if survivors.is_empty() { left.len() } else { survivors.len() };
        if !exceeds(record.held - useful, record.held, threshold) {
            return RoaringTreemap::new();
        }
        let stays = left.len() - survivors.len();
        if has_returned && !exceeds(record.held - stays, record.held, threshold) { survivors } else { left.clone() }
    }

    /// Hands dying chunks that resemble new ones on to become deltas; gives their numbers. Gives too what is left of
    /// the regions that were decoded for it, as far as a batch has room for it: it may move.
    fn encode_dying(
        &mut self,
        container: usize,
        kind: ContainerKind,
        dying: &RoaringTreemap,
        lifecycles: &HashMap<u64, Lifecycle>,
        depth: u32,
    ) -> Result<(RoaringTreemap, DecodedChunks), EngineError> {
        let mut encoded = RoaringTreemap::new();
        let (mut decoded, mut room) = (DecodedChunks::new(), self.repacker.batch_room());
        let chunks = self.chunks;
        let reader = chunks.reader(container)?;
        let of_container = reader.clone();
        let may_be_encoded = |place: &ChunkPlace| {
            let number = place.chunk.number;
            dying.contains(number.0) && level_of(&self.manifest.dependents_depths, number) < depth
        };
        let mut by_region: BTreeMap<usize, Vec<ChunkPlace>> = BTreeMap::new();
        for place in reader.index().places().iter().filter(|place| may_be_encoded(place)) {
            by_region.entry(place.region).or_default().push(*place);
        }
        by_region.retain(|at, _| reader.index().regions().get(*at).is_some_and(|region| region.bases.is_empty()));
        let looked_at = self.repacker.encoders();
        let looked_at = looked_at.in_order(by_region, self.repacker.regions_ahead(), move |_, (at, places)| {
            let plain = chunks.region(container, at)?;
            let is_sound = of_container.verify_region(chunks.repository().keys(), at, &plain).is_ok();
            let look = |place: ChunkPlace| {
                let bytes = place.of(&plain).filter(|_| is_sound);
                let bytes = bytes.map_or_else(|| chunks.verified(container, &place, &plain), Ok)?;
                Ok((place, Likeness::of(bytes)))
            };
            let places = places.into_iter().map(look).collect::<Result<Vec<_>, StoreError>>()?;
            Ok::<_, StoreError>((at, plain, is_sound, places))
        });
        for region in looked_at {
            self.resources.unless_cancelled()?;
            let (at, plain, is_sound, places) = region??;
            for (place, likeness) in places {
                let number = place.chunk.number;
                let (Some(lifecycle), Some(bytes)) = (lifecycles.get(&number.0), place.of(&plain)) else {
                    continue;
                };
                let (offers, is_guess) = self.offers(kind, number, &likeness)?;
                if offers.is_empty() {
                    continue;
                }
                let class = class(kind, *lifecycle, false, self.is_exact);
                let standing = Standing {
                    row: lifecycle.row,
                    dependents_depth: level_of(&self.manifest.dependents_depths, number),
                    is_guess,
                };
                // A copy: a part would keep all of its region in memory, until the last region that takes one is full.
                let text = Bytes::copy_from_slice(bytes);
                self.repacker.push(class, place.chunk, text, Move::Against(offers), standing)?;
                encoded.insert(number.0);
            }
            let members = reader.index().regions().get(at).map_or(&[][..], |region| &region.chunks);
            let is_left = |chunk: &ChunkEntry| !encoded.contains(chunk.number.0);
            let left = split_region(members, &plain).filter(|(chunk, _)| is_sound && is_left(chunk));
            for (chunk, bytes) in left {
                if bytes.len() <= room {
                    room -= bytes.len();
                    decoded.insert(chunk.number, Bytes::copy_from_slice(bytes));
                }
            }
        }
        Ok((encoded, decoded))
    }

    /// The new chunks that a dying one resembles, the most similar first, then those that stand where it stood; and
    /// whether there are only those. Where most of it was found they are offered only if no further region has to be
    /// decoded for them: in an archive to which much was added something else may stand there.
    fn offers(
        &self,
        kind: ContainerKind,
        number: ChunkNumber,
        likeness: &Likeness,
    ) -> Result<(Vec<Offer<ChunkNumber>>, bool), StoreError> {
        let Alike { mut candidates, is_mostly_found } = self.retired.similar.alike(kind, likeness);
        candidates.retain(|(found, _)| self.retired.fresh.contains(found.0));
        let is_guess = candidates.is_empty();
        let (mut offers, mut regions) = (Vec::new(), Vec::new());
        for (found, matches) in &candidates {
            if let Some((region, offer)) = self.offered(*found, *matches)? {
                offers.push(offer);
                regions.push(region);
            }
        }
        for place in self.retired.places.of(number) {
            if candidates.iter().any(|(found, _)| found == place) {
                continue;
            }
            if let Some((region, offer)) = self.offered(*place, 0)?
                && (!is_mostly_found || is_guess || regions.contains(&region))
            {
                offers.push(offer);
            }
        }
        Ok((offers, is_guess))
    }

    /// An offer of a chunk and where it lies, unless it cannot be found or cannot be a base.
    fn offered(
        &self,
        number: ChunkNumber,
        matches: usize,
    ) -> Result<Option<(Address, Offer<ChunkNumber>)>, StoreError> {
        let offered = self.chunks.place_of(number).and_then(|(container, place)| {
            // What a backup made a delta against older chunks is no base: dependents' depths are known of whole chunks
            // only.
            let reader = self.chunks.reader(container)?;
            let is_whole = reader.index().regions().get(place.region).is_none_or(|region| region.bases.is_empty());
            let address = Address { container, region: place.region };
            Ok(is_whole.then(|| (address, offer(number, place.chunk.length as usize, matches))))
        });
        match offered {
            Err(error) if error.is_damage() => Ok(None),
            offered => offered,
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn exceeds(part: u64, whole: u64, share: f64) -> bool {
    part > 0 && part as f64 > share * whole as f64
}

impl Split {
    pub(super) fn summary(&self) -> MaintainSummary {
        let written = &self.repacked.packed.containers;
        MaintainSummary {
            bytes_written: self.repacked.packed.object_bytes(),
            containers_written: written.len() as u64,
            deltas_kept: self.repacked.deltas_kept,
            deltas_rejected: self.repacked.deltas_rejected,
            ..MaintainSummary::default()
        }
    }

    /// The manifest after it.
    pub(super) fn apply(&self, manifest: &Manifest, retired: &RetiredChunks) -> Manifest {
        let mut next = manifest.clone();
        for record in &mut next.containers {
            if let Some(left) = self.left.get(&record.id) {
                record.clone_from(left);
            }
        }
        next.containers.retain(|record: &ContainerRecord| !record.chunks.is_empty());
        next.containers.extend(self.repacked.packed.containers.iter().cloned());
        let mut needed = RoaringTreemap::new();
        next.extend_necessary(|position, _| {
            if position > retired.position {
                return RoaringTreemap::new();
            }
            if let Some(bases) = self.bases.get(&position) {
                needed |= bases;
            }
            needed.clone()
        });
        // One more delta depends on the bases than on the chunks that hang on them.
        for link in &self.repacked.links {
            for base in &link.bases {
                raise(&mut next.dependents_depths, *base, link.dependents_depth + 1);
            }
        }
        next.dependents_depths.iter_mut().for_each(|of_depth| *of_depth -= &self.repacked.in_deltas);
        next
    }
}

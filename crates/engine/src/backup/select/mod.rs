//! The stage that encodes new chunks against old ones (policy `forward`), between assembling and packing.
//!
//! ```text
//! assemble   gathers new chunks into segments of some 20 MiB
//! select     1 thread    segment by segment: sketches (by the encoders' threads), candidates, the selector; regions and their bases
//! encode     n threads   a region against its bases; whole, where that does not pay
//! ```
//! The *selector* is that of MeGA (ATC 2022, sections 3.2 and 4.2): it counts how many references of a segment lead
//! into each container, and leaves alone the bases in containers with too few, because reading them costs more than the
//! deltas save. It counts containers, not regions: what a read costs is above all to find and to open an object; the
//! regions of one are neighbours, and are kept for the next segment.
//!
//! The bases of a segment are read together (`decode::gather`); what has none may have one in the segment itself
//! (`intra_segment`); then its chunks become regions, none of which is encoded against more than [`BASES_OF_TEXT`]
//! times its text.
//!
//! Chunks are laid together by depth: a region is as deep as its deepest base, and so is every chunk in it. Those of
//! which little is expected stay apart, because a region is kept as a delta or not as a whole.
//!
//! The result depends on the stream and on the known chunks, not on the number of threads: all decisions fall on one
//! thread, and encoded regions are taken in the order in which they were handed out.

mod bases;
mod intra_segment;
mod known;

pub(super) use known::{Known, Origin};

use super::flow::{Encoded, Gathered, Handed, Segment};
use crate::EngineError;
use crate::decode::{Bytes, Gatherer};
use crate::delta::{BASES_OF_TEXT, Likeness, OpenRegion, encode_region, offer};
use crate::observer::{Notice, Observer};
use crate::parallel::{Pool, Ticket};
use crossbeam_channel::{Receiver, Sender};
use roaring::RoaringTreemap;
use siltstone_similar::region::Offer;
use siltstone_similar::sketch::{Sketch, Sketcher};
use siltstone_store::container::ContainerKind;
use siltstone_store::region::{ChunkEntry, RegionEncoder};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// Chunks sketched together, bytes.
const SKETCH_BYTES: usize = 1 << 20;
/// Regions being filled, bytes of text in all.
const OPEN_BYTES_MAX: usize = 16 << 20;

/// Class of chunks laid into one region: kind, depth (0: whole), and whether little is expected of the delta.
type Group = (ContainerKind, u32, bool);

/// A region being filled.
#[derive(Default)]
struct SketchedRegion {
    region: OpenRegion,
    sketches: Vec<Option<Sketch>>,
}

/// Takes segments and hands out regions.
pub(super) struct Selector<'s, 'env> {
    pub(super) known: &'s Known,
    /// Reads the bases.
    pub(super) gatherer: Gatherer<'env>,
    pub(super) encoders: Pool<'env, RegionEncoder>,
    pub(super) sketcher: Arc<dyn Sketcher>,
    pub(super) packer: Sender<Handed>,
    /// References from a segment into a container below which it is not read.
    pub(super) threshold: u32,
    pub(super) observer: &'s dyn Observer,
    pub(super) filling: Filling,
}

/// Regions that a selector fills.
#[derive(Default)]
pub(super) struct Filling {
    open: BTreeMap<Group, SketchedRegion>,
    open_bytes: usize,
    /// The bases of the segment, as far as they could be read.
    bases: HashMap<ChunkNumber, Bytes>,
    /// Chunks that could not be read: never bases.
    unreadable: RoaringTreemap,
    /// Chunks whose bases lie where too few others do.
    skipped: u64,
}

impl Selector<'_, '_> {
    /// Runs to the last segment; gives how many chunks were left whole because reading their bases would not pay.
    /// Being asked to stop ends the stage before; what that handed on is few segments, and may end in a checkpoint.
    pub(super) fn run(mut self, gathered: &Receiver<Gathered>) -> Result<u64, EngineError> {
        for next in gathered {
            match next {
                Gathered::Segment(segment) => self.segment(&Arc::new(segment))?,
                Gathered::Checkpoint(reached) => {
                    self.flush_from(0)?;
                    self.packer.send(Handed::Checkpoint(reached)).map_err(|_| EngineError::Interrupted)?;
                }
            }
        }
        self.flush_from(0)?;
        Ok(self.filling.skipped)
    }

    /// Hands out all regions that are this deep or deeper.
    fn flush_from(&mut self, depth: u32) -> Result<(), EngineError> {
        let groups: Vec<_> = self.filling.open.keys().filter(|group| group.1 >= depth).copied().collect();
        groups.into_iter().try_for_each(|group| self.flush(group))
    }

    fn segment(&mut self, segment: &Arc<Segment>) -> Result<(), EngineError> {
        let sketches = self.sketches(segment)?;
        let mut offers = self.offers(&segment.chunks, &sketches);
        self.read_bases(&offers)?;
        self.offer_intra_segment(segment, &sketches, &mut offers);
        let mut rest = segment.plain.as_slice();
        for ((chunk, sketch), offers) in segment.chunks.iter().zip(sketches).zip(offers) {
            let (bytes, after) = rest.split_at(chunk.length as usize);
            rest = after;
            self.push(*chunk, bytes, sketch, offers)?;
        }
        // What is whole goes on to be filled; with the deltas their bases can go.
        self.flush_from(1)?;
        self.filling.bases = HashMap::new();
        Ok(())
    }

    /// The sketch of each chunk.
    fn sketches(&self, segment: &Arc<Segment>) -> Result<Vec<Option<Sketch>>, EngineError> {
        let mut parts: Vec<(Range<usize>, usize)> = Vec::new();
        let (mut first, mut start, mut end) = (0, 0, 0);
        for (at, chunk) in segment.chunks.iter().enumerate() {
            end += chunk.length as usize;
            if end - start >= SKETCH_BYTES || at + 1 == segment.chunks.len() {
                parts.push((first..at + 1, start));
                (first, start) = (at + 1, end);
            }
        }
        let submit = |(range, start): (Range<usize>, usize)| -> Ticket<Vec<Option<Sketch>>> {
            let (segment, sketcher) = (segment.clone(), self.sketcher.clone());
            self.encoders.submit(move |_| {
                let mut rest = &segment.plain[start..];
                let sketch = |chunk: &ChunkEntry| {
                    let (bytes, after) = rest.split_at(chunk.length as usize);
                    rest = after;
                    sketcher.sketch(bytes)
                };
                segment.chunks[range].iter().map(sketch).collect()
            })
        };
        let tickets: Vec<_> = parts.into_iter().map(submit).collect();
        let mut sketches = Vec::with_capacity(segment.chunks.len());
        for ticket in tickets {
            sketches.extend(ticket.wait()?);
        }
        Ok(sketches)
    }

    /// Chunks that each may be encoded against, the most similar first, without those that the selector leaves alone.
    fn offers(&mut self, chunks: &[ChunkEntry], sketches: &[Option<Sketch>]) -> Vec<Vec<Offer<ChunkNumber>>> {
        let mut references: HashMap<usize, u32> = HashMap::new();
        let mut found = Vec::with_capacity(chunks.len());
        for (chunk, sketch) in chunks.iter().zip(sketches) {
            let kind = ContainerKind::of(chunk.number);
            let candidates = self.known.find(kind, sketch.as_ref()).into_iter();
            let candidates = candidates.filter_map(|(number, matches)| {
                let container = self.gatherer.chunks.container_of(number).ok()?;
                (!self.filling.unreadable.contains(number.0)).then_some((container, number, matches))
            });
            let candidates: Vec<_> = candidates.collect();
            for (container, ..) in &candidates {
                *references.entry(*container).or_default() += 1;
            }
            found.push(candidates);
        }
        let is_read = |container: &usize| references.get(container).is_some_and(|count| *count >= self.threshold);
        let mut skipped = 0;
        let mut unreadable = Vec::new();
        let mut room = BASES_OF_TEXT * chunks.iter().map(|chunk| chunk.length as usize).sum::<usize>();
        let mut offered = |(container, number, matches): (usize, ChunkNumber, usize)| {
            let found = self.gatherer.chunks.reader(container);
            let place = found.and_then(|reader| reader.index().find(number).ok_or(StoreError::MissingChunk { number }));
            match place {
                Ok(place) => {
                    let bytes = place.chunk.length as usize;
                    // The memory for all bases of a segment is bounded.
                    room = room.checked_sub(bytes)?;
                    Some(offer(number, bytes, matches))
                }
                Err(error) => {
                    unreadable.push((number, error));
                    None
                }
            }
        };
        let offers = found.into_iter().map(|mut candidates| {
            let had_any = !candidates.is_empty();
            candidates.retain(|(container, ..)| is_read(container));
            skipped += u64::from(had_any && candidates.is_empty());
            candidates.into_iter().filter_map(&mut offered).collect()
        });
        let offers = offers.collect();
        self.filling.skipped += skipped;
        for (number, error) in unreadable {
            self.leave_alone([number], &error);
        }
        offers
    }

    /// Nothing of these is read again.
    fn leave_alone(&mut self, numbers: impl IntoIterator<Item = ChunkNumber>, error: &StoreError) {
        if self.filling.unreadable.is_empty() {
            self.observer.notice(&Notice::BaseUnreadable { reason: error.to_string() });
        }
        self.filling.unreadable.extend(numbers.into_iter().map(|number| number.0));
    }

    fn push(
        &mut self,
        chunk: ChunkEntry,
        bytes: &[u8],
        sketch: Option<Sketch>,
        offers: Vec<Offer<ChunkNumber>>,
    ) -> Result<(), EngineError> {
        let kind = ContainerKind::of(chunk.number);
        let group = (kind, self.depth(&offers), !offers.is_empty() && !self.is_promising(&offers));
        let target = if group.1 == 0 { kind.region_bytes_target() } else { self.known.forward.region_bytes };
        let is_full = |open: &SketchedRegion| open.region.is_full_for(&chunk, target);
        if self.filling.open.get(&group).is_some_and(is_full) {
            self.flush(group)?;
        }
        let open = self.filling.open.entry(group).or_default();
        open.region.push(chunk, Bytes::copy_from_slice(bytes), offers);
        open.sketches.push(sketch);
        self.filling.open_bytes += bytes.len();
        while self.filling.open_bytes > OPEN_BYTES_MAX {
            let largest = self.filling.open.iter().max_by_key(|(_, open)| open.region.plain_bytes);
            let Some(group) = largest.map(|(group, _)| *group) else { break };
            self.flush(group)?;
        }
        Ok(())
    }

    /// How deep a chunk with these offers becomes.
    fn depth(&self, offers: &[Offer<ChunkNumber>]) -> u32 {
        offers.iter().map(|offer| self.known.depth(offer.number) + 1).max().unwrap_or(0)
    }

    fn is_promising(&self, offers: &[Offer<ChunkNumber>]) -> bool {
        let matches = offers.first().map_or(0, |first| first.weight as usize);
        self.known.forward.keep.expects(matches)
    }

    /// Hands a region out to be encoded.
    fn flush(&mut self, group: Group) -> Result<(), EngineError> {
        let Some(SketchedRegion { region, sketches }) = self.filling.open.remove(&group) else {
            return Ok(());
        };
        self.filling.open_bytes -= region.plain_bytes;
        // A chunk alone may take any base, however long.
        let room = if self.known.forward.region_bytes == 0 { usize::MAX } else { region.bases_room() };
        let bytes = |number| Some((number, self.filling.bases.get(&number)?.clone()));
        let bases: Vec<_> = region.bases(room).into_iter().filter_map(bytes).collect();
        let OpenRegion { chunks, texts, .. } = region;
        let (was_offered, rule) = (group.1 > 0, self.known.forward.keep);
        let ticket = self.encoders.submit(move |encoder| {
            let members: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
            let region = encode_region(encoder, &bases, chunks, &members, rule)?;
            let likenesses = sketches.into_iter().map(Likeness::of_sketch).collect();
            Ok(Encoded { region, likenesses, texts: Vec::new(), was_offered })
        });
        // The packer goes away only after an error of its own, which is the one told.
        self.packer.send(Handed::Region(group.0, ticket)).map_err(|_| EngineError::Interrupted)
    }
}

//! Moving chunks from container to container, region by region: what is moved whole is sealed anew and not decompressed, of the rest
//! the chunks that are still needed are gathered and encoded again. Migration and `forget` both end here.
//!
//! Regions to be encoded gather into *segments*, whose bases are read together (module `segment`): each region that holds some of them is
//! decoded once for a segment, however the bases lie.
//!
//! The result depends on what is given and in which order, never on the number of threads: what they encode is taken in the order in
//! which it was handed to them.

mod categories;
mod segment;

pub(crate) use categories::Class;
pub(crate) use segment::TASKS_WAITING_MAX;

use crate::chunks::ChunkSource;
use crate::pack::{ContainerSink, Packed};
use crate::parallel::{Pool, Ticket, cores};
use categories::Categories;
use roaring::RoaringTreemap;
use siltstone_similar::region::{Offer, choose_bases};
use siltstone_store::container::{ContainerRecord, RegionEntry};
use siltstone_store::region::{Base, ChunkEntry, Codec, EncodedRegion, RegionEncoder, split_region};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::collections::{BTreeMap, VecDeque};

/// Text of a delta, bytes: longer ones gain 2 % and cost a reader more.
pub(crate) const DELTA_REGION_BYTES_TARGET: usize = 512 << 10;
/// Bases of a delta, in bytes of its text. Less room costs most: a member's only base may be missing.
pub(crate) const BASES_OF_TEXT: usize = 3;
/// A delta of more than this share of its text is held against the plain region.
const DOUBTFUL_SHARE: usize = 4;

/// Encoders of regions, one for each worker; none where memory ran out.
pub(crate) type Encoders<'env> = Pool<'env, Option<RegionEncoder>>;

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
    /// The longest chain of deltas that hangs on its chunks.
    pub(crate) height: u32,
    /// Its bases.
    pub(crate) bases: Vec<ChunkNumber>,
}

/// What is known of a chunk that becomes part of a delta.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Standing {
    pub(crate) row: usize,
    pub(crate) height: u32,
    /// Whether its candidates are guesses: it is laid apart, because a region is kept as a delta or not as a whole.
    pub(crate) is_guess: bool,
}

/// What repacking made.
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

/// Chunks gathered for one region.
struct Open {
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
    offers: Vec<Vec<Offer<ChunkNumber>>>,
    standing: Standing,
}

/// A region that is to be encoded.
struct Region {
    class: Class,
    standing: Standing,
    /// Whether its bases are a choice; what a chunk hangs on already is none.
    was_offered: bool,
    bases: Vec<ChunkNumber>,
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

/// A region that is being encoded.
struct Encoding {
    class: Class,
    standing: Standing,
    was_offered: bool,
    ticket: Ticket<Result<EncodedRegion, StoreError>>,
}

/// What becomes of a region of a container that is taken.
enum Fate {
    /// Nothing of it is kept.
    Left,
    /// It goes on as it is; other containers answer for some of its chunks.
    Copied(Class, Vec<ChunkNumber>),
    /// Its chunks go on by themselves, each to its class.
    TakenApart(Vec<Option<Class>>),
}

impl Fate {
    fn of(region: &RegionEntry, tolerated: f64, class_of: &impl Fn(ChunkNumber) -> Option<Class>) -> Self {
        let classes: Vec<_> = region.chunks.iter().map(|chunk| class_of(chunk.number)).collect();
        let Some(class) = classes.iter().copied().flatten().next() else {
            return Self::Left;
        };
        let lost = classes.iter().filter(|found| found.is_none()).count();
        let is_one = classes.iter().flatten().all(|found| *found == class);
        // A delta is small, and dear to take apart: all that it hangs on would have to be decoded.
        let is_kept_together = !region.bases.is_empty() && tolerated > 0.0 && 2 * lost <= classes.len();
        let class = classes.iter().copied().flatten().find(|class| class.is_open).unwrap_or(class);
        let tolerated = if class.is_open { tolerated } else { 0.0 };
        if is_kept_together || (is_one && is_tolerable(lost, classes.len(), tolerated)) {
            let gone = region.chunks.iter().zip(&classes).filter(|(_, class)| class.is_none());
            return Self::Copied(class, gone.map(|(chunk, _)| chunk.number).collect());
        }
        Self::TakenApart(classes)
    }
}

/// Regions decoded before they are needed, half a mebibyte each: enough that no worker waits.
pub(crate) fn regions_ahead() -> usize {
    2 * cores()
}

/// What is gathered into one region.
type Key = (Class, Option<(bool, u32)>);

/// Takes chunks and makes containers.
pub(crate) struct Repacker<'e> {
    chunks: &'e ChunkSource<'e>,
    encoders: Encoders<'e>,
    categories: Categories<'e>,
    /// By class, and for deltas by whether there are only guesses, and by how high the chains on them are: a delta is as high as its
    /// highest member.
    open: BTreeMap<Key, Open>,
    /// The regions of the open segment, and their bytes.
    segment: Vec<Region>,
    segment_bytes: usize,
    /// The regions of the segment before.
    encoding: VecDeque<Encoding>,
    repacked: Repacked,
}

impl<'e> Repacker<'e> {
    /// Its workers.
    pub(crate) fn encoders(&self) -> Encoders<'e> {
        self.encoders.clone()
    }

    /// A repacker of chunks that `chunks` finds.
    pub(crate) fn new(
        chunks: &'e ChunkSource<'e>,
        encoders: Encoders<'e>,
        series: siltstone_store::SeriesId,
        sink: &'e dyn ContainerSink,
        is_exact: bool,
    ) -> Self {
        let keys = chunks.repository().keys();
        Self {
            chunks,
            encoders,
            categories: Categories::new(keys, series, sink, is_exact),
            open: BTreeMap::new(),
            segment: Vec::new(),
            segment_bytes: 0,
            encoding: VecDeque::new(),
            repacked: Repacked::default(),
        }
    }

    /// Takes what `class_of` keeps of a container, each chunk to its class. A region of open chunks that loses at most `tolerated` of
    /// them, and whose others are of one class, is copied as it is.
    pub(crate) fn take_container(
        &mut self,
        container: usize,
        tolerated: f64,
        class_of: impl Fn(ChunkNumber) -> Option<Class>,
    ) -> Result<(), StoreError> {
        let (chunks, encoders) = (self.chunks, self.encoders.clone());
        let reader = chunks.reader(container)?;
        let repository = chunks.repository();
        let regions = reader.index().regions();
        let fates: Vec<Fate> = regions.iter().map(|region| Fate::of(region, tolerated, &class_of)).collect();
        let taken_apart = fates.iter().enumerate().filter(|(_, fate)| matches!(fate, Fate::TakenApart(_)));
        let mut decoded = encoders.in_order(taken_apart.map(|(at, _)| at), regions_ahead(), {
            let reader = reader.clone();
            move |_, at| {
                let plain = chunks.region(container, at)?;
                reader.verify_region(repository.keys(), at, &plain).map(|()| plain)
            }
        });
        for (at, (region, fate)) in regions.iter().zip(&fates).enumerate() {
            let classes = match fate {
                Fate::Left => continue,
                Fate::Copied(class, gone) => {
                    let copy = reader.copy_region(repository.storage(), at)?;
                    self.categories.push(*class, copy, gone.clone())?;
                    continue;
                }
                Fate::TakenApart(classes) => classes,
            };
            let plain = decoded.next().flatten().ok_or_else(out_of_memory)??;
            let members = split_region(&region.chunks, &plain).zip(classes);
            let members = members.filter_map(|(member, class)| class.map(|class| (member, class)));
            if region.bases.is_empty() {
                for ((chunk, bytes), class) in members {
                    self.push(class, chunk, bytes, Move::Plain, Standing::default())?;
                }
            } else {
                self.split_delta(&region.bases, members.collect())?;
            }
        }
        Ok(())
    }

    /// Takes one chunk.
    pub(crate) fn push(
        &mut self,
        class: Class,
        chunk: ChunkEntry,
        bytes: &[u8],
        how: Move,
        standing: Standing,
    ) -> Result<(), StoreError> {
        let (key, offers, target) = match how {
            Move::Plain => ((class, None), None, class.kind.region_bytes_target()),
            Move::Against(offers) => {
                let bucket = standing.height.checked_ilog2().map_or(0, |log| log + 1);
                ((class, Some((standing.is_guess, bucket))), Some(offers), DELTA_REGION_BYTES_TARGET)
            }
        };
        // Numbers ascend within a region; what comes need not be in order.
        let is_full = |open: &Open| {
            let ascends = open.chunks.last().is_none_or(|last| last.number < chunk.number);
            !ascends || (!open.plain.is_empty() && open.plain.len() + bytes.len() > target)
        };
        if self.open.get(&key).is_some_and(is_full) {
            self.flush(key)?;
        }
        let empty = || Open {
            chunks: Vec::new(),
            plain: Vec::with_capacity(target),
            offers: Vec::new(),
            standing: Standing { row: usize::MAX, ..Standing::default() },
        };
        let open = self.open.entry(key).or_insert_with(empty);
        open.chunks.push(chunk);
        open.plain.extend_from_slice(bytes);
        open.offers.extend(offers);
        open.standing.row = open.standing.row.min(standing.row);
        open.standing.height = open.standing.height.max(standing.height);
        Ok(())
    }

    /// Parts of a delta go on as deltas against the same bases.
    fn split_delta(
        &mut self,
        bases: &[ChunkNumber],
        members: Vec<((ChunkEntry, &[u8]), Class)>,
    ) -> Result<(), StoreError> {
        let mut by_class: BTreeMap<Class, (Vec<ChunkEntry>, Vec<u8>)> = BTreeMap::new();
        for ((chunk, bytes), class) in members {
            let (chunks, plain) = by_class.entry(class).or_default();
            chunks.push(chunk);
            plain.extend_from_slice(bytes);
        }
        for (class, (chunks, plain)) in by_class {
            let (standing, bases) = (Standing::default(), bases.to_vec());
            self.encode(Region { class, standing, was_offered: false, bases, chunks, plain })?;
        }
        Ok(())
    }

    fn flush(&mut self, key: Key) -> Result<(), StoreError> {
        let Some(open) = self.open.remove(&key) else {
            return Ok(());
        };
        let offers: Vec<&[Offer<ChunkNumber>]> = open.offers.iter().map(Vec::as_slice).collect();
        let bases = choose_bases(&offers, BASES_OF_TEXT * open.plain.len());
        let Open { chunks, plain, standing, .. } = open;
        self.encode(Region { class: key.0, standing, was_offered: key.1.is_some(), bases, chunks, plain })
    }

    /// Waits for the region that was handed out first.
    fn take_encoded(&mut self) -> Result<(), StoreError> {
        let Some(Encoding { class, standing, was_offered, ticket }) = self.encoding.pop_front() else {
            return Ok(());
        };
        let region = ticket.wait().ok_or_else(out_of_memory)??;
        if was_offered {
            let count = region.chunks.len() as u64;
            if region.bases.is_empty() {
                self.repacked.deltas_rejected += count;
            } else {
                self.repacked.deltas_kept += count;
                let Standing { row, height, .. } = standing;
                self.repacked.in_deltas.extend(region.chunks.iter().map(|chunk| chunk.number.0));
                self.repacked.links.push(Link { row, height, bases: region.bases.clone() });
            }
        }
        self.categories.push(class, region, Vec::new())
    }

    /// Ends every region that chunks are gathered for.
    pub(crate) fn flush_all(&mut self) -> Result<(), StoreError> {
        while let Some((key, _)) = self.open.first_key_value() {
            let key = *key;
            self.flush(key)?;
        }
        Ok(())
    }

    /// Encodes what is gathered and hands over what is open.
    pub(crate) fn finish(mut self) -> Result<Repacked, StoreError> {
        self.flush_all()?;
        self.encode_segment()?;
        self.take_all_encoded()?;
        Ok(Repacked { packed: self.categories.finish()?, ..self.repacked })
    }
}

/// A region against its bases; if those are a choice, plain where they do not help. What is a delta stays one: chains may hang on its
/// chunks, and only of whole chunks is it known how long they are.
fn encode_region(
    encoder: &mut RegionEncoder,
    bases: &[Base<'_>],
    is_choice: bool,
    chunks: Vec<ChunkEntry>,
    plain: &[u8],
) -> Result<EncodedRegion, StoreError> {
    let delta = encoder.encode_against(bases, chunks, plain)?;
    let is_doubtful = is_choice && (delta.codec == Codec::Raw || delta.payload.len() * DOUBTFUL_SHARE > plain.len());
    if bases.is_empty() || !is_doubtful {
        return Ok(delta);
    }
    let whole = encoder.encode(delta.chunks.clone(), plain)?;
    Ok(if whole.payload.len() <= delta.payload.len() { whole } else { delta })
}

#[allow(clippy::cast_precision_loss)]
fn is_tolerable(lost: usize, of: usize, tolerated: f64) -> bool {
    lost == 0 || lost as f64 <= tolerated * of as f64
}

pub(crate) fn out_of_memory() -> StoreError {
    StoreError::Machine { operation: "preparing zstd", reason: "out of memory".to_owned() }
}

/// The numbers a container answers for.
pub(crate) fn numbers_of(record: &ContainerRecord) -> RoaringTreemap {
    let mut numbers = RoaringTreemap::new();
    for run in &record.chunks {
        numbers.insert_range(run.range());
    }
    numbers
}

/// Changes which numbers a container answers for.
pub(crate) fn keep_numbers(record: &mut ContainerRecord, change: impl FnOnce(RoaringTreemap) -> RoaringTreemap) {
    let mut runs: Vec<ChunkRun> = Vec::new();
    for number in change(numbers_of(record)) {
        match runs.last_mut() {
            Some(run) if run.first.0 + run.count == number => run.count += 1,
            _ => runs.push(ChunkRun { first: ChunkNumber(number), count: 1 }),
        }
    }
    record.chunks = runs;
}

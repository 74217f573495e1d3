//! Taking containers apart: what becomes of their regions, and reading those that are decoded.
//!
//! Regions are taken in batches, in the order in which they come. Those of a batch that have to be decoded are read
//! together, with all that they hang on ([`crate::decode`]): a region is decoded once for a batch, however many hang on
//! it. What is kept of a delta is encoded right where it was decoded, while its bases are at hand; only what comes of
//! that stays in memory, so that a batch may be of very many deltas. Whoever has decoded a plain region before gives it
//! along.

use super::{Class, Effort, Move, RepackOptions, Repacker, Standing, Stopped, out_of_memory};
use crate::chunks::{Address, ChunkSource};
use crate::decode::{Bytes, RegionVisitor};
use crate::parallel::lock;
use siltstone_store::container::RegionEntry;
use siltstone_store::region::{Base, ChunkEntry, Codec, EncodedRegion, RegionEncoder, split_region};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// Treatment of a region of a container that is taken.
pub(super) enum RegionFate {
    /// Nothing of it is kept.
    Left,
    /// It goes on as it is; other containers answer for some of its chunks.
    Copied(Class, Vec<ChunkNumber>),
    /// Its chunks go on by themselves, each to its class.
    TakenApart(Vec<Option<Class>>),
}

impl RegionFate {
    fn of(
        region: &RegionEntry,
        tolerated: f64,
        options: RepackOptions,
        class_of: &impl Fn(ChunkNumber) -> Option<Class>,
    ) -> Self {
        let classes: Vec<_> = region.chunks.iter().map(|chunk| class_of(chunk.number)).collect();
        let Some(class) = classes.iter().copied().flatten().next() else {
            return Self::Left;
        };
        let lost = classes.iter().filter(|found| found.is_none()).count();
        let is_one = classes.iter().flatten().all(|found| *found == class);
        if options.effort.is_thorough() && region.codec != Codec::Raw {
            return Self::TakenApart(classes);
        }
        // A delta is small, and dear to take apart: all that it hangs on would have to be decoded.
        let is_kept_together = !region.bases.is_empty() && !options.is_exact && 2 * lost <= classes.len();
        let class = classes.iter().copied().flatten().find(|class| class.is_open).unwrap_or(class);
        let tolerated = if class.is_open { tolerated } else { 0.0 };
        if is_kept_together || (is_one && is_tolerable(lost, classes.len(), tolerated)) {
            let gone = region.chunks.iter().zip(&classes).filter(|(_, class)| class.is_none());
            return Self::Copied(class, gone.map(|(chunk, _)| chunk.number).collect());
        }
        Self::TakenApart(classes)
    }
}

#[allow(clippy::cast_precision_loss)]
fn is_tolerable(lost: usize, of: usize, tolerated: f64) -> bool {
    lost == 0 || lost as f64 <= tolerated * of as f64
}

/// Chunks of one container that were decoded and verified before.
pub(crate) type DecodedChunks = HashMap<ChunkNumber, Bytes>;

/// Regions that wait to be moved.
#[derive(Default)]
pub(super) struct RegionBatch {
    regions: Vec<(Address, RegionFate)>,
    /// Those of them that were decoded before.
    decoded: HashMap<Address, PlainChunks>,
    /// Bytes of those that are taken apart.
    bytes: usize,
}

/// Chunks of a plain region that go on to other containers, each to its class.
type PlainChunks = Vec<(Class, ChunkEntry, Bytes)>;

/// Chunks of a region that was decoded, verified, on their way to other containers.
enum MovedChunks {
    Plain(PlainChunks),
    /// The parts of a delta, against the same bases.
    Delta(Vec<(Class, EncodedRegion)>),
}

/// Receives the regions of a batch that are taken apart.
struct BatchVisitor<'r> {
    chunks: Arc<ChunkSource<'r>>,
    /// Where the chunks of each go.
    classes: HashMap<Address, Vec<Option<Class>>>,
    effort: Effort,
    /// Those that nobody encodes with now.
    encoders: Mutex<Vec<RegionEncoder>>,
    moved: Mutex<HashMap<Address, Result<MovedChunks, StoreError>>>,
}

impl BatchVisitor<'_> {
    fn moved(
        &self,
        address: Address,
        chunks: &[ChunkEntry],
        plain: &[u8],
        bases: &[&[u8]],
    ) -> Result<MovedChunks, StoreError> {
        let reader = self.chunks.reader(address.container)?;
        reader.verify_region(self.chunks.repository().keys(), address.region, plain)?;
        let numbers = reader.index().regions().get(address.region).map_or(&[][..], |entry| &entry.bases);
        let classes = self.classes.get(&address).map_or(&[][..], Vec::as_slice);
        if numbers.is_empty() {
            let moved = split_region(chunks, plain).zip(classes);
            let moved =
                moved.filter_map(|((chunk, bytes), class)| Some(((*class)?, chunk, Bytes::copy_from_slice(bytes))));
            return Ok(MovedChunks::Plain(moved.collect()));
        }
        let bases: Vec<_> = numbers.iter().zip(bases).map(|(number, bytes)| Base { number: *number, bytes }).collect();
        let mut by_class: BTreeMap<Class, (Vec<ChunkEntry>, Vec<&[u8]>)> = BTreeMap::new();
        for ((chunk, bytes), class) in split_region(chunks, plain).zip(classes) {
            let Some(class) = class else { continue };
            let (chunks, members) = by_class.entry(*class).or_default();
            chunks.push(chunk);
            members.push(bytes);
        }
        let idle = lock(&self.encoders).pop();
        let mut encoder = idle.map_or_else(|| self.effort.encoder(), Ok)?;
        let parts = by_class.into_iter().map(|(class, (chunks, members))| {
            // What is a delta stays one: chains may hang on its chunks, and only of whole chunks is it known how long
            // they are.
            let mut region = EncodedRegion::encode_against(&mut encoder, &bases, chunks, &members)?;
            // It waits for the end of the batch, and has room for all of its text.
            region.payload.shrink_to_fit();
            Ok((class, region))
        });
        let parts = parts.collect::<Result<Vec<_>, StoreError>>()?;
        lock(&self.encoders).push(encoder);
        Ok(MovedChunks::Delta(parts))
    }
}

impl RegionVisitor for BatchVisitor<'_> {
    fn visit(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8], bases: &[&[u8]]) {
        let moved = self.moved(address, chunks, plain, bases);
        lock(&self.moved).insert(address, moved);
    }
}

impl Repacker<'_> {
    /// Tells whether anything of a container would not be copied as it is, if it were taken.
    pub(crate) fn changes(
        &self,
        container: usize,
        tolerated: f64,
        class_of: impl Fn(ChunkNumber) -> Option<Class>,
    ) -> Result<bool, Stopped> {
        let reader = self.chunks.reader(container).map_err(|error| Stopped::at(container, error))?;
        let is_copied =
            |entry| matches!(RegionFate::of(entry, tolerated, self.options, &class_of), RegionFate::Copied(..));
        Ok(!reader.index().regions().iter().all(is_copied))
    }

    /// Takes what `class_of` keeps of a container, each chunk to its class. A region of open chunks that loses at most
    /// `tolerated` of them, and whose others are of one class, is copied as it is; a delta too if it loses at most
    /// half, unless layout is exact.
    pub(crate) fn move_container(
        &mut self,
        container: usize,
        tolerated: f64,
        class_of: impl Fn(ChunkNumber) -> Option<Class>,
    ) -> Result<(), Stopped> {
        self.move_decoded(container, &DecodedChunks::new(), tolerated, class_of)
    }

    /// Takes a container as [`move_container`](Self::move_container) does; these chunks of it need not be decoded.
    pub(crate) fn move_decoded(
        &mut self,
        container: usize,
        decoded: &DecodedChunks,
        tolerated: f64,
        class_of: impl Fn(ChunkNumber) -> Option<Class>,
    ) -> Result<(), Stopped> {
        self.resources.unless_cancelled()?;
        let reader = self.chunks.reader(container).map_err(|error| Stopped::at(container, error))?;
        for (region, entry) in reader.index().regions().iter().enumerate() {
            let fate = RegionFate::of(entry, tolerated, self.options, &class_of);
            let address = Address { container, region };
            match fate {
                RegionFate::Left => continue,
                RegionFate::Copied(..) => {}
                RegionFate::TakenApart(ref classes) => {
                    let bytes = if entry.bases.is_empty() { entry.plain_bytes } else { entry.sealed_bytes };
                    self.batch.bytes += bytes as usize;
                    let moved = entry.chunks.iter().zip(classes).filter_map(|(chunk, class)| Some(((*class)?, *chunk)));
                    let text_of =
                        |(class, chunk): (Class, ChunkEntry)| Some((class, chunk, decoded.get(&chunk.number)?.clone()));
                    let moved: Option<PlainChunks> = moved.map(text_of).collect();
                    self.batch.decoded.extend(moved.map(|moved| (address, moved)));
                }
            }
            self.batch.regions.push((address, fate));
            if self.batch.bytes >= self.options.effort.batch_bytes() {
                self.move_batch()?;
            }
        }
        Ok(())
    }

    /// Bytes of regions that the batch has room for.
    pub(crate) fn batch_room(&self) -> usize {
        self.options.effort.batch_bytes().saturating_sub(self.batch.bytes)
    }

    /// Moves the regions that wait.
    pub(super) fn move_batch(&mut self) -> Result<(), Stopped> {
        let RegionBatch { regions, decoded, .. } = std::mem::take(&mut self.batch);
        let mut moved = self.decode_regions(&regions, &decoded)?;
        moved.extend(decoded.into_iter().map(|(address, chunks)| (address, MovedChunks::Plain(chunks))));
        for (address, fate) in regions {
            self.resources.unless_cancelled()?;
            let stopped = |error| Stopped::at(address.container, error);
            match fate {
                RegionFate::Left => {}
                RegionFate::Copied(class, gone) => {
                    let reader = self.chunks.reader(address.container).map_err(stopped)?;
                    let copy = self.chunks.encoded(&reader, address.region).map_err(stopped)?;
                    self.categories.push(class, copy, gone)?;
                }
                RegionFate::TakenApart(_) => match moved.remove(&address) {
                    None => return Err(stopped(out_of_memory())),
                    Some(MovedChunks::Plain(chunks)) => {
                        for (class, chunk, text) in chunks {
                            self.push(class, chunk, text, Move::Plain, Standing::default())?;
                        }
                    }
                    Some(MovedChunks::Delta(parts)) => {
                        for (class, region) in parts {
                            self.categories.push(class, region, Vec::new())?;
                        }
                    }
                },
            }
        }
        Ok(())
    }

    /// Decodes those of these regions that are taken apart, but for those that were decoded before.
    fn decode_regions(
        &self,
        regions: &[(Address, RegionFate)],
        decoded: &HashMap<Address, PlainChunks>,
    ) -> Result<HashMap<Address, MovedChunks>, Stopped> {
        let taken_apart = regions.iter().filter(|(address, _)| !decoded.contains_key(address));
        let taken_apart = taken_apart.filter_map(|(address, fate)| match fate {
            RegionFate::TakenApart(classes) => Some((*address, classes.clone())),
            RegionFate::Left | RegionFate::Copied(..) => None,
        });
        let (wanted, classes): (Vec<Address>, HashMap<_, _>) = taken_apart.map(|of| (of.0, of)).unzip();
        if wanted.is_empty() {
            return Ok(HashMap::new());
        }
        let visitor = Arc::new(BatchVisitor {
            chunks: self.chunks.clone(),
            classes,
            effort: self.options.effort,
            encoders: Mutex::default(),
            moved: Mutex::default(),
        });
        let failures = self.gatherer.regions(&wanted, &visitor)?;
        self.unless_stopped()?;
        let mut found = std::mem::take(&mut *lock(&visitor.moved));
        let mut moved = HashMap::with_capacity(wanted.len());
        for (at, address) in wanted.into_iter().enumerate() {
            let stopped = |error| Stopped::at(address.container, error);
            if let Some(error) = failures.get(&at) {
                return Err(stopped(StoreError::Shared(error.clone())));
            }
            let of_this = found.remove(&address).ok_or_else(|| stopped(out_of_memory()))?;
            moved.insert(address, of_this.map_err(stopped)?);
        }
        Ok(moved)
    }
}

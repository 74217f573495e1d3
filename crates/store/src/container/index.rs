//! The index of a container: which regions it holds, where, and which chunks lie in each.
//!
//! On disk only what cannot be computed is kept, about 19 bytes per chunk: regions lie one after another, so offsets
//! are sums of sizes, as plain sizes are sums of chunk lengths; consecutive chunk numbers are runs.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{ContainerKind, ContainerRecord};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{ChunkNumber, ChunkRun, Fingerprint};
use crate::region::{ChunkEntry, Codec, EncodedRegion, validate_bases, validate_chunks};
use crate::sealed::{HEADER_BYTES, TAG_BYTES};
use crate::storage::ObjectName;
use serde::{Deserialize, Serialize};

/// The most regions a container may have; a piece number of its own for each.
pub const REGIONS_MAX: usize = 1 << 16;

/// The most bases a region may have.
pub const BASES_MAX: usize = 1 << 16;

/// The most bases all regions of a container may have: a few bytes name many.
pub(super) const INDEX_BASES_MAX: usize = 1 << 22;

/// A region as the index knows it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RegionEntry {
    /// Begin of the sealed region in the object, bytes.
    pub offset: u64,
    /// Length of the sealed region, bytes.
    pub sealed_bytes: u32,
    /// Plain length, bytes: the sum of its chunks'.
    pub plain_bytes: u32,
    /// Encoding of the payload.
    pub codec: Codec,
    /// Base chunks, ascending; none of a plain region.
    pub bases: Vec<ChunkNumber>,
    /// Chunks in the order of their bytes; numbers ascending.
    pub chunks: Vec<ChunkEntry>,
}

/// The place of a chunk in a container.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ChunkPlace {
    /// Number of the region, from 0.
    pub region: usize,
    /// Offset in the region's plain bytes.
    pub offset: usize,
    /// The chunk.
    pub chunk: ChunkEntry,
}

impl ChunkPlace {
    /// The chunk's bytes in its region's plain bytes; `None` if those end before.
    pub fn of<'p>(&self, plain: &'p [u8]) -> Option<&'p [u8]> {
        plain.get(self.offset..self.offset.checked_add(usize::try_from(self.chunk.length).ok()?)?)
    }
}

/// A container's regions and chunks, checked when read: regions fill the object from its header to its index, numbers
/// are of the container's kind and occur once.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerIndex {
    regions: Vec<RegionEntry>,
    /// Every chunk's place, by number.
    places: Vec<ChunkPlace>,
}

impl ContainerIndex {
    /// The regions in the order they lie.
    pub fn regions(&self) -> &[RegionEntry] {
        &self.regions
    }

    /// Every chunk and where it lies, by ascending number.
    pub fn places(&self) -> &[ChunkPlace] {
        &self.places
    }

    /// Returns the place of the chunk, if it is in this container.
    pub fn find(&self, number: ChunkNumber) -> Option<ChunkPlace> {
        let at = self.places.binary_search_by_key(&number, |place| place.chunk.number).ok()?;
        self.places.get(at).copied()
    }

    /// The numbers of all chunks as ascending runs.
    pub fn runs(&self) -> Vec<ChunkRun> {
        runs(self.places.iter().map(|place| place.chunk.number))
    }

    /// Tells whether any region has bases.
    pub(super) fn has_deltas(&self) -> bool {
        self.regions.iter().any(|region| !region.bases.is_empty())
    }

    /// Returns the plain bytes of those chunks of a run that it lists.
    pub fn bytes_of(&self, run: ChunkRun) -> u64 {
        let from = self.places.partition_point(|place| place.chunk.number < run.first);
        let places = self.places.iter().skip(from).take_while(|place| run.range().contains(&place.chunk.number.0));
        places.map(|place| u64::from(place.chunk.length)).sum()
    }

    /// Tells whether a record is true of it: it lists every number of the record's runs, which ascend, and they have
    /// the bytes that the record knows of.
    pub(super) fn answers_as(&self, record: &ContainerRecord) -> bool {
        let agrees = |run: &ChunkRun| record.bytes_of(*run).is_none_or(|bytes| bytes == self.bytes_of(*run));
        self.holds_all(&record.chunks) && record.chunks.iter().all(agrees)
    }

    fn holds_all(&self, wanted: &[ChunkRun]) -> bool {
        let held = self.runs();
        wanted.iter().all(|run| {
            let at = held.partition_point(|held| held.first <= run.first);
            let before = at.checked_sub(1).and_then(|at| held.get(at));
            before.is_some_and(|held| run.range().end() <= held.range().end())
        })
    }

    /// Gives all chunks, and the bases of all regions, other numbers. What lies where stays as it is.
    pub(super) fn renumber(&mut self, renumber: impl Fn(ChunkNumber) -> ChunkNumber) {
        for region in &mut self.regions {
            region.bases.iter_mut().for_each(|base| *base = renumber(*base));
            region.chunks.iter_mut().for_each(|chunk| chunk.number = renumber(chunk.number));
        }
        self.places = places(&self.regions);
    }

    /// Reads an index. `end` is where the regions must end.
    pub(super) fn decode(object: &ObjectName, kind: ContainerKind, end: u64, bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |reason: &str| StoreError::damaged(object, "index", reason);
        let (mut rest, mut offset) = (bytes, HEADER_BYTES as u64);
        let (mut regions, mut bases) = (Vec::new(), 0);
        while !rest.is_empty() {
            if regions.len() == REGIONS_MAX {
                return Err(StoreError::limit(
                    object,
                    "the number of regions",
                    REGIONS_MAX as u64 + 1,
                    REGIONS_MAX as u64,
                ));
            }
            let (stored, after) = encoding::take::<StoredRegion>(object, "index", rest)?;
            rest = after;
            let region = stored.into_entry(object, offset, INDEX_BASES_MAX - bases)?;
            bases += region.bases.len();
            offset = offset.checked_add(region.sealed_bytes.into()).ok_or_else(|| damaged("regions past any size"))?;
            regions.push(region);
        }
        if offset != end {
            return Err(damaged("its regions do not fill the space before it"));
        }
        let places = places(&regions);
        if !places.is_sorted_by(|a, b| a.chunk.number < b.chunk.number) {
            return Err(damaged("a chunk number occurs twice"));
        }
        if places.iter().any(|place| ContainerKind::of(place.chunk.number) != kind) {
            return Err(damaged("it holds chunks of the other kind"));
        }
        Ok(Self { regions, places })
    }

    /// Returns the memory that it takes, bytes, about.
    pub(super) fn memory_bytes(&self) -> usize {
        let chunk_bytes = size_of::<ChunkPlace>() + size_of::<ChunkEntry>();
        let bases = self.regions.iter().map(|region| region.bases.len()).sum::<usize>();
        self.regions.len() * size_of::<RegionEntry>()
            + self.places.len() * chunk_bytes
            + bases * size_of::<ChunkNumber>()
    }
}

fn places(regions: &[RegionEntry]) -> Vec<ChunkPlace> {
    let mut places = Vec::with_capacity(regions.iter().map(|region| region.chunks.len()).sum());
    for (region, entry) in regions.iter().enumerate() {
        let mut offset = 0;
        for chunk in &entry.chunks {
            places.push(ChunkPlace { region, offset, chunk: *chunk });
            offset += chunk.length as usize;
        }
    }
    places.sort_by_key(|place| place.chunk.number);
    places
}

/// Ascending numbers as runs.
pub(super) fn runs(numbers: impl IntoIterator<Item = ChunkNumber>) -> Vec<ChunkRun> {
    let mut runs: Vec<ChunkRun> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.first.0.checked_add(run.count) == Some(number.0) => run.count += 1,
            _ => runs.push(ChunkRun { first: number, count: 1 }),
        }
    }
    runs
}

/// A region as it lies in the index. Its payload's length is that of the sealed region less the tag.
#[derive(Serialize, Deserialize)]
pub(super) struct StoredRegion {
    payload_bytes: u32,
    codec: Codec,
    /// Runs of the bases' numbers, as `runs`.
    bases: Vec<(u64, u64)>,
    /// Runs of chunk numbers: how far each begins after the end of the one before (the first: after 0), and how many it
    /// has.
    runs: Vec<(u64, u64)>,
    lengths: Vec<u32>,
    fingerprints: Vec<[u8; 16]>,
}

impl StoredRegion {
    pub(super) fn of(region: &EncodedRegion) -> Result<Self, StoreError> {
        let payload_bytes = u32::try_from(region.payload.len()).map_err(|_| {
            StoreError::limit(&"a new region", "its size", region.payload.len() as u64, u32::MAX.into())
        })?;
        Ok(Self {
            payload_bytes,
            codec: region.codec,
            bases: gaps(region.bases.iter().copied()),
            runs: gaps(region.chunks.iter().map(|chunk| chunk.number)),
            lengths: region.chunks.iter().map(|chunk| chunk.length).collect(),
            fingerprints: region.chunks.iter().map(|chunk| chunk.fingerprint.0).collect(),
        })
    }

    /// The region's entry; `bases_left` is how many bases the index may still have.
    fn into_entry(self, object: &ObjectName, offset: u64, bases_left: usize) -> Result<RegionEntry, StoreError> {
        let damaged = |reason: &str| StoreError::damaged(object, "index", reason);
        let base_count = self.bases.iter().fold(0u64, |sum, run| sum.saturating_add(run.1));
        let base_count = usize::try_from(base_count).ok().filter(|count| *count <= BASES_MAX.min(bases_left));
        let bases = base_count.and_then(|count| expand(&self.bases, count));
        let bases = bases.ok_or_else(|| damaged("its runs of bases do not fit"))?;
        if self.lengths.len() != self.fingerprints.len() {
            return Err(damaged("it has not as many lengths as fingerprints"));
        }
        let numbers =
            expand(&self.runs, self.lengths.len()).ok_or_else(|| damaged("its runs of numbers do not fit"))?;
        let chunks: Vec<_> = numbers
            .into_iter()
            .zip(self.lengths.iter().zip(&self.fingerprints))
            .map(|(number, (length, fingerprint))| ChunkEntry {
                number,
                length: *length,
                fingerprint: Fingerprint(*fingerprint),
            })
            .collect();
        let plain_bytes = validate_chunks(object, &chunks)?;
        validate_bases(object, &bases, &chunks)?;
        let sealed_bytes = u32::try_from(u64::from(self.payload_bytes) + TAG_BYTES as u64)
            .map_err(|_| damaged("a region past any size"))?;
        Ok(RegionEntry { offset, sealed_bytes, plain_bytes, codec: self.codec, bases, chunks })
    }
}

/// Ascending numbers as runs, each with its distance from the last number of the one before.
fn gaps(numbers: impl IntoIterator<Item = ChunkNumber>) -> Vec<(u64, u64)> {
    let mut after = 0;
    let gap = |run: ChunkRun| {
        let gap = run.first.0 - after;
        after = run.first.0 + (run.count - 1);
        (gap, run.count)
    };
    runs(numbers).into_iter().map(gap).collect()
}

/// The numbers of the runs, exactly `count` of them; `None` if there are more or fewer, or they pass the end of
/// numbers.
fn expand(runs: &[(u64, u64)], count: usize) -> Option<Vec<ChunkNumber>> {
    let mut numbers = Vec::with_capacity(count);
    let mut after = 0u64;
    for (gap, run_count) in runs {
        let run = ChunkRun { first: ChunkNumber(after.checked_add(*gap)?), count: *run_count };
        let room = u64::try_from(count - numbers.len()).ok()?;
        if run.range().is_empty() || run.count > room {
            return None;
        }
        after = *run.range().end();
        numbers.extend(run.range().map(ChunkNumber));
    }
    (numbers.len() == count).then_some(numbers)
}

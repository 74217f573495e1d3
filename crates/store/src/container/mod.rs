//! Containers: immutable objects holding regions of chunks, and an index that says where each chunk lies.
//!
//! ```text
//! header | region 0 | region 1 | ... | index | padding | trailer
//! ```
//! Each part after the header is a sealed piece of its own. The manifest's [`ContainerRecord`] repeats the salt and the
//! place of the index, so a reader needs one range read for the index and one per region; the trailer is for recovery,
//! when no manifest is left. The index is sealed apart from the padding, so that reading it never costs the padding's
//! bytes (up to 256 KiB in a full container, often several times the index).
//!
//! [`ContainerBuilder`] writes, [`ContainerReader`] reads; which chunks go together is decided above.

mod builder;
mod index;
mod reader;
#[cfg(test)]
mod tests;

pub use builder::{ContainerBuilder, SealedContainer};
pub use index::{BASES_MAX, ChunkPlace, ContainerIndex, REGIONS_MAX, RegionEntry};
pub use reader::{ContainerDamage, ContainerReader};

use crate::error::StoreError;
use crate::ids::{ChunkNumber, ChunkRun, ContainerId, SeriesId};
use crate::region::{CHUNK_BYTES_MAX, DATA_REGION_BYTES_TARGET, METADATA_REGION_BYTES_TARGET};
use crate::sealed::{HEADER_BYTES, KeyMode, ObjectKind, Salt, TAG_BYTES};
use crate::secrets::{Derivation, Epoch};
use crate::storage::ObjectName;
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use std::ops::RangeInclusive;

/// Bytes that a container is filled to unless the repository's settings say otherwise: a Padmé size, large enough that
/// a disk streams it, small enough to be rewritten at ease.
pub const CONTAINER_BYTES_DEFAULT: u64 = 16 << 20;
/// The largest container read: as many shards of a page as the code of parity protects whole.
pub const CONTAINER_BYTES_MAX: u64 = 128 << 20;
/// Bytes that containers may be filled to.
pub const CONTAINER_BYTES_TARGETS: RangeInclusive<u64> = CONTAINER_BYTES_DEFAULT..=CONTAINER_BYTES_MAX;
/// Bytes of the trailer's plain text: index offset, index bytes, object bytes, zero.
const TRAILER_PLAIN_BYTES: usize = 32;
/// Bytes of the sealed trailer at the end of every container.
pub const TRAILER_BYTES: usize = TRAILER_PLAIN_BYTES + TAG_BYTES;
/// The smallest container there can be: header, empty index, empty padding, trailer.
const CONTAINER_BYTES_MIN: u64 = (HEADER_BYTES + TAG_BYTES + TAG_BYTES + TRAILER_BYTES) as u64;

/// The least bytes of an index for each chunk: its length and its fingerprint. It bounds what a few bytes of a manifest
/// can stand for.
const CHUNK_INDEX_BYTES_MIN: u64 = 1 + 16;

/// The kind of chunks that a container holds; the two never share one.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub enum ContainerKind {
    /// Chunks of files.
    Data,
    /// Chunks of catalogs: nodes and parts of long recipes.
    Metadata,
}

impl ContainerKind {
    /// The kind of container that the chunk belongs in.
    pub const fn of(number: ChunkNumber) -> Self {
        if number.is_metadata() { Self::Metadata } else { Self::Data }
    }

    /// Returns the plain bytes that its regions are filled to.
    pub const fn region_bytes_target(self) -> usize {
        match self {
            Self::Data => DATA_REGION_BYTES_TARGET,
            Self::Metadata => METADATA_REGION_BYTES_TARGET,
        }
    }

    /// The kind as its object's header states it.
    pub const fn object_kind(self) -> ObjectKind {
        match self {
            Self::Data => ObjectKind::DataContainer,
            Self::Metadata => ObjectKind::MetadataContainer,
        }
    }
}

/// The manifest's record of a container: enough to plan with, and to read its index at once.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ContainerRecord {
    /// The container's identity within its series.
    pub id: ContainerId,
    /// Kind of chunks that it holds.
    pub kind: ContainerKind,
    /// The salt in its header; it also pins the container, so that one of the same name from a diverged copy of the
    /// repository is refused. The manifest keeps it apart from the compressed rest.
    #[serde(skip)]
    pub salt: Salt,
    /// The epoch of the master key that it is sealed under.
    pub epoch: Epoch,
    /// The way its key derives from that; with it a reader needs no header.
    pub mode: KeyMode,
    /// Length of the object.
    pub object_bytes: u64,
    /// Begin of the sealed index in the object, bytes.
    pub index_offset: u64,
    /// Length of the sealed index.
    pub index_sealed_bytes: u32,
    /// Number of chunks that it holds.
    pub held: u64,
    /// True if any of its regions has bases.
    pub has_deltas: bool,
    /// Level of zstd at which maintenance has encoded its regions once more, or found that this gains nothing; 0 if it
    /// has not. Only the manifest tells: of a container that is found without one it is 0.
    pub level: u8,
    /// The chunks it answers for: ascending runs that neither overlap nor touch. What it holds besides is superseded:
    /// another container answers for it, or nothing needs it any more.
    pub chunks: Vec<ChunkRun>,
    /// The plain bytes of each of those runs, 0 where they are not known: who looks for an offset in a file passes over
    /// containers by them, without opening any.
    pub run_bytes: Vec<u64>,
}

impl ContainerRecord {
    /// The container's object name.
    pub fn object_name(&self, series: SeriesId) -> ObjectName {
        ObjectName::Container(self.kind, series, self.id)
    }

    /// Returns what the key of its object derives from.
    pub fn derivation(&self) -> Derivation {
        Derivation { epoch: self.epoch, mode: self.mode }
    }

    /// Returns the plain bytes of a run that it answers for, if it is one of the record's and they are known.
    pub fn bytes_of(&self, run: ChunkRun) -> Option<u64> {
        let at = self.chunks.binary_search(&run).ok()?;
        self.run_bytes.get(at).copied().filter(|bytes| *bytes != 0)
    }

    /// The chunks that it answers for.
    pub fn numbers(&self) -> RoaringTreemap {
        let mut numbers = RoaringTreemap::new();
        for run in &self.chunks {
            numbers.insert_range(run.range());
        }
        numbers
    }

    /// Tells whether it answers for any of these chunks.
    pub fn answers_for_any(&self, numbers: &RoaringTreemap) -> bool {
        self.chunks.iter().any(|run| numbers.range_cardinality(run.range()) > 0)
    }

    /// Changes which chunks it answers for. The bytes of runs that this cuts are known no longer.
    pub fn change_numbers(&mut self, change: impl FnOnce(RoaringTreemap) -> RoaringTreemap) {
        let chunks = ChunkRun::runs_of(&change(self.numbers()));
        self.run_bytes = chunks.iter().map(|run| self.bytes_of(*run).unwrap_or(0)).collect();
        self.chunks = chunks;
    }

    /// Has it answer for these of the chunks of its index.
    pub fn set_numbers(&mut self, index: &ContainerIndex, numbers: &RoaringTreemap) {
        self.chunks = ChunkRun::runs_of(numbers);
        self.run_bytes = self.chunks.iter().map(|run| index.bytes_of(*run)).collect();
    }

    /// Returns the number of chunks that it answers for.
    pub fn chunk_count(&self) -> u64 {
        self.chunks.iter().fold(0, |sum, run| sum.saturating_add(run.count))
    }

    /// Checks that the numbers can be true of a container: spans inside the object, runs ascending and of the
    /// container's kind.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] of `object`, part "container record", or [`StoreError::Limit`].
    pub fn validate(&self, object: &ObjectName) -> Result<(), StoreError> {
        let damaged = |reason: &str| Err(StoreError::damaged(object, "container record", reason));
        if self.object_bytes > CONTAINER_BYTES_MAX {
            return Err(StoreError::limit(object, "the container's size", self.object_bytes, CONTAINER_BYTES_MAX));
        }
        let index_end = self.index_offset.checked_add(self.index_sealed_bytes.into());
        let fits =
            index_end.is_some_and(|end| end <= self.object_bytes.saturating_sub((TAG_BYTES + TRAILER_BYTES) as u64));
        if self.object_bytes < CONTAINER_BYTES_MIN || self.index_offset < HEADER_BYTES as u64 || !fits {
            return damaged("the index does not lie inside the object");
        }
        if self.held > u64::from(self.index_sealed_bytes) / CHUNK_INDEX_BYTES_MIN {
            return damaged("it holds more chunks than its index has room for");
        }
        if self.held < self.chunk_count() {
            return damaged("it answers for more chunks than it holds");
        }
        if self.run_bytes.len() != self.chunks.len() {
            return damaged("it has not as many lengths as runs");
        }
        for (run, bytes) in self.chunks.iter().zip(&self.run_bytes) {
            if *bytes != 0 && !(run.count..=run.count.saturating_mul(CHUNK_BYTES_MAX as u64)).contains(bytes) {
                return damaged("a run has more or fewer bytes than its chunks can have");
            }
        }
        let mut least = 0;
        for run in &self.chunks {
            let range = run.range();
            if range.is_empty() || *range.start() < least {
                return damaged("its runs of chunk numbers are not ascending");
            }
            if [*range.start(), *range.end()].iter().any(|number| ContainerKind::of(ChunkNumber(*number)) != self.kind)
            {
                return damaged("it holds chunks of the other kind");
            }
            least = range.end().saturating_add(2);
        }
        Ok(())
    }
}

//! Writing a container: regions are sealed as they are pushed, so that a builder holds what will lie on disk and little
//! more.

use super::index::{INDEX_BASES_MAX, REGIONS_MAX, StoredRegion, runs};
use super::{
    CONTAINER_BYTES_DEFAULT, CONTAINER_BYTES_MAX, CONTAINER_BYTES_TARGETS, ContainerKind, ContainerReader,
    ContainerRecord, TRAILER_BYTES, TRAILER_PLAIN_BYTES,
};
use crate::encoding;
use crate::error::StoreError;
use crate::ids::{ChunkNumber, ChunkRun, ContainerId, SeriesId};
use crate::pad::padded;
use crate::region::{EncodedRegion, validate_bases};
use crate::sealed::{ObjectKey, PieceNumber, TAG_BYTES};
use crate::secrets::RepositoryKeys;
use crate::storage::ObjectName;
use roaring::RoaringTreemap;
use std::collections::BTreeSet;

/// A container in the making.
#[derive(Debug)]
pub struct ContainerBuilder {
    id: ContainerId,
    kind: ContainerKind,
    key: ObjectKey,
    /// Header and sealed regions.
    object: Vec<u8>,
    /// The index's plain bytes so far.
    index: Vec<u8>,
    /// Numbers of its chunks, and their lengths.
    chunks: Vec<(ChunkNumber, u32)>,
    /// Numbers of its chunks, to be looked up.
    numbers: RoaringTreemap,
    /// The number of bases of all its regions.
    bases: usize,
    /// Numbers that another container answers for.
    superseded: BTreeSet<ChunkNumber>,
    regions: u32,
    has_deltas: bool,
    bytes_target: u64,
}

/// A container ready to be stored.
#[derive(Debug)]
pub struct SealedContainer {
    /// The object's bytes.
    pub bytes: Vec<u8>,
    /// Record that the manifest keeps of it.
    pub record: ContainerRecord,
}

impl ContainerBuilder {
    /// An empty container with a fresh salt. The identity must never have been used in this series.
    pub fn new(
        keys: &RepositoryKeys,
        series: SeriesId,
        id: ContainerId,
        kind: ContainerKind,
    ) -> Result<Self, StoreError> {
        let key = ObjectKey::create(keys, ObjectName::Container(kind, series, id), kind.object_kind())?;
        let object = key.header().to_bytes().to_vec();
        Ok(Self {
            id,
            kind,
            key,
            object,
            index: Vec::new(),
            chunks: Vec::new(),
            numbers: RoaringTreemap::new(),
            bases: 0,
            superseded: BTreeSet::new(),
            regions: 0,
            has_deltas: false,
            bytes_target: CONTAINER_BYTES_DEFAULT,
        })
    }

    /// Sets the bytes that the container is filled to, as far as the format allows them.
    #[must_use]
    pub fn filled_to(mut self, bytes: u64) -> Self {
        self.bytes_target = bytes.clamp(*CONTAINER_BYTES_TARGETS.start(), *CONTAINER_BYTES_TARGETS.end());
        self
    }

    /// Tells whether no region has been pushed.
    pub fn is_empty(&self) -> bool {
        self.regions == 0
    }

    /// The size of the object if it were finished now.
    pub fn planned_bytes(&self) -> u64 {
        padded(self.least_bytes(0, 0))
    }

    /// Tells whether the container stays within its target size with this region, and has none of its chunks; an empty
    /// one takes any.
    pub fn fits(&self, region: &EncodedRegion) -> bool {
        // Numbers and gaps take at most 20 bytes per run, lengths 5, fingerprints 16, the rest of an entry 50.
        let index_bytes_most = 50 + region.chunks.len() * (20 + 5 + 16) + region.bases.len() * 20;
        let least_bytes = self.least_bytes(region.payload.len() + TAG_BYTES, index_bytes_most);
        let is_below = least_bytes <= self.bytes_target
            && (self.regions as usize) < REGIONS_MAX
            && self.bases + region.bases.len() <= INDEX_BASES_MAX;
        // A chunk may come twice: from the region that answers for it, and from one that still holds it.
        let is_new = |number: ChunkNumber| !self.numbers.contains(number.0);
        self.is_empty() || (is_below && region.chunks.iter().all(|chunk| is_new(chunk.number)))
    }

    /// Seals a region into the container.
    ///
    /// # Errors
    /// [`StoreError::Refused`] for chunks of the other kind, [`StoreError::Limit`] past [`CONTAINER_BYTES_MAX`]; the
    /// container is then as before.
    pub fn push(&mut self, region: &EncodedRegion) -> Result<(), StoreError> {
        validate_bases(self.key.name(), &region.bases, &region.chunks)?;
        if region.chunks.is_empty() || region.chunks.iter().any(|chunk| ContainerKind::of(chunk.number) != self.kind) {
            return Err(self.refused("a region without chunks, or with chunks of the other kind"));
        }
        let entry = encoding::encode(&StoredRegion::of(region)?)?;
        let bytes = padded(self.least_bytes(region.payload.len() + TAG_BYTES, entry.len()));
        if bytes > CONTAINER_BYTES_MAX || self.regions as usize == REGIONS_MAX {
            return Err(StoreError::limit(self.key.name(), "the container's size", bytes, CONTAINER_BYTES_MAX));
        }
        let bases = self.bases + region.bases.len();
        if bases > INDEX_BASES_MAX {
            let (bases, most) = (bases as u64, INDEX_BASES_MAX as u64);
            return Err(StoreError::limit(self.key.name(), "the bases of its regions", bases, most));
        }
        self.seal(PieceNumber(self.regions), &region.payload)?;
        self.index.extend_from_slice(&entry);
        self.chunks.extend(region.chunks.iter().map(|chunk| (chunk.number, chunk.length)));
        self.numbers.extend(region.chunks.iter().map(|chunk| chunk.number.0));
        self.bases = bases;
        self.regions += 1;
        self.has_deltas |= !region.bases.is_empty();
        Ok(())
    }

    /// Notes that the container will not answer for these chunks, though a region that was or will be pushed holds
    /// them.
    pub fn supersede(&mut self, numbers: impl IntoIterator<Item = ChunkNumber>) {
        self.superseded.extend(numbers);
    }

    /// Seals index, padding and trailer, opens them again to see that they are sound, and gives the object.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if a chunk number was pushed twice; [`StoreError::SelfCheck`].
    pub fn finish(mut self) -> Result<SealedContainer, StoreError> {
        self.chunks.sort_unstable();
        if !self.chunks.is_sorted_by(|a, b| a.0 < b.0) {
            return Err(self.refused("a chunk number that it holds already"));
        }
        let object_bytes = self.planned_bytes();
        let index_offset = self.object.len() as u64;
        let index = std::mem::take(&mut self.index);
        self.seal(PieceNumber::INDEX, &index)?;
        let index_sealed_bytes = u32::try_from(index.len() + TAG_BYTES)
            .map_err(|_| StoreError::limit(self.key.name(), "the index's size", index.len() as u64, u32::MAX.into()))?;

        let padding_bytes = object_bytes - (self.object.len() + TAG_BYTES + TRAILER_BYTES) as u64;
        self.seal(PieceNumber::PADDING, &vec![0; usize::try_from(padding_bytes).unwrap_or_default()])?;
        let mut trailer = Vec::with_capacity(TRAILER_PLAIN_BYTES);
        for field in [index_offset, index_sealed_bytes.into(), object_bytes, 0] {
            trailer.extend_from_slice(&field.to_le_bytes());
        }
        self.seal(PieceNumber::TRAILER, &trailer)?;

        let answered = self.chunks.iter().filter(|(number, _)| !self.superseded.contains(number));
        let chunks = runs(answered.clone().map(|(number, _)| *number));
        let record = ContainerRecord {
            id: self.id,
            kind: self.kind,
            salt: self.key.header().salt,
            epoch: self.key.derivation().epoch,
            mode: self.key.derivation().mode,
            object_bytes,
            index_offset,
            index_sealed_bytes,
            held: self.chunks.len() as u64,
            has_deltas: self.has_deltas,
            level: 0,
            run_bytes: run_bytes(&chunks, answered.map(|(_, length)| *length)),
            chunks,
        };
        self.check(record)
    }

    fn check(self, record: ContainerRecord) -> Result<SealedContainer, StoreError> {
        let what = self.key.name().to_string();
        match ContainerReader::with_key(self.key, self.id, self.kind, &self.object) {
            Ok(reader) if reader.holds(&record) => Ok(SealedContainer { bytes: self.object, record }),
            _ => Err(StoreError::SelfCheck { what }),
        }
    }

    /// The bytes of the object before padding, with this much more sealed and in the index.
    fn least_bytes(&self, more_sealed: usize, more_index: usize) -> u64 {
        let index_bytes = self.index.len() + more_index + TAG_BYTES;
        (self.object.len() + more_sealed + index_bytes + TAG_BYTES + TRAILER_BYTES) as u64
    }

    fn seal(&mut self, piece: PieceNumber, plain: &[u8]) -> Result<(), StoreError> {
        let start = self.object.len();
        self.object.extend_from_slice(plain);
        self.key.seal_piece(piece, &mut self.object, start)
    }

    fn refused(&self, reason: &str) -> StoreError {
        StoreError::Refused { what: self.key.name().to_string(), reason: format!("it was given {reason}") }
    }
}

/// The bytes of runs, given the lengths of their chunks one after another.
fn run_bytes(runs: &[ChunkRun], lengths: impl IntoIterator<Item = u32>) -> Vec<u64> {
    let mut lengths = lengths.into_iter().map(u64::from);
    let mut of_run = |run: &ChunkRun| (0..run.count).map_while(|_| lengths.next()).sum::<u64>();
    runs.iter().map(&mut of_run).collect()
}

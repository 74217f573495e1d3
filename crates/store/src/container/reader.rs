//! Reading a container: its index by one range read, then any region by one each. Nothing read is believed before it is
//! checked: seals, spans, decoded lengths, and on demand the fingerprint of every chunk.
//!
//! A reader holds no storage, only key and index, so it can be kept and shared between threads. Of a small container at
//! a distance it holds the regions too, still sealed: they come with the index, for a request costs more than they do.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::index::{ContainerIndex, RegionEntry};
use super::{ContainerKind, ContainerRecord, TRAILER_BYTES};
use crate::error::StoreError;
use crate::header::Fields;
use crate::ids::{ChunkNumber, ChunkRun, ContainerId, SeriesId};
use crate::region::{EncodedRegion, RegionDecoder, split_region};
use crate::sealed::{HEADER_BYTES, ObjectHeader, ObjectKey, PieceNumber};
use crate::secrets::RepositoryKeys;
use crate::storage::{Latency, ObjectName, Storage};
use std::ops::Range;

/// Offset of the first region.
const REGIONS_BEGIN: u64 = HEADER_BYTES as u64;
/// Bytes up to the end of the index of a container that is read as one at a distance: what a request takes longer than,
/// wherever it goes.
const SMALL_BYTES: u64 = 128 << 10;

/// An opened container.
#[derive(Debug)]
pub struct ContainerReader {
    key: ObjectKey,
    record: ContainerRecord,
    index: ContainerIndex,
    /// All regions, still sealed, if they came with the index.
    regions: Option<Vec<u8>>,
}

/// Something wrong with a container, and what it costs.
#[derive(Debug)]
pub struct ContainerDamage {
    /// The fault.
    pub error: StoreError,
    /// The chunks that cannot be had because of it; none if only padding, header or trailer are hurt.
    pub chunks: Vec<ChunkRun>,
}

impl ContainerReader {
    /// Opens the container that a manifest records, by one range read. A small one at a distance needs no other.
    ///
    /// # Errors
    /// The storage's; [`StoreError::Damaged`] if the index is not what was written or does not list the record's
    /// chunks.
    pub fn open(
        storage: &dyn Storage,
        keys: &RepositoryKeys,
        series: SeriesId,
        record: &ContainerRecord,
    ) -> Result<Self, StoreError> {
        let name = record.object_name(series);
        record.validate(&name)?;
        let length = in_memory(&name, record.index_sealed_bytes)?;
        let regions_bytes = record.index_offset.saturating_sub(REGIONS_BEGIN);
        let is_small = record.index_offset.saturating_add(length as u64) <= SMALL_BYTES;
        if is_small && storage.capabilities().latency == Latency::Network {
            let ahead = usize::try_from(regions_bytes).unwrap_or(usize::MAX);
            let mut regions = storage.read_kept(&name, REGIONS_BEGIN, ahead.saturating_add(length))?;
            let sealed = regions.split_off(ahead.min(regions.len()));
            return Ok(Self { regions: Some(regions), ..Self::from_index(keys, series, record, sealed)? });
        }
        let sealed = storage.read_kept(&name, record.index_offset, length)?;
        Self::from_index(keys, series, record, sealed)
    }

    /// Opens the container of the record from all its bytes, of which the index alone is looked at.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_in(
        keys: &RepositoryKeys,
        series: SeriesId,
        record: &ContainerRecord,
        object: &[u8],
    ) -> Result<Self, StoreError> {
        let name = record.object_name(series);
        let sealed = slice(&name, "index", object, record.index_offset, record.index_sealed_bytes)?;
        Self::from_index(keys, series, record, sealed.to_vec())
    }

    /// Opens the container from its sealed index, wherever that came from.
    pub fn from_index(
        keys: &RepositoryKeys,
        series: SeriesId,
        record: &ContainerRecord,
        mut sealed: Vec<u8>,
    ) -> Result<Self, StoreError> {
        let name = record.object_name(series);
        record.validate(&name)?;
        let key = ObjectKey::with_derivation(keys, name, record.kind.object_kind(), record.salt, record.derivation())?;
        let plain = key.open_piece(PieceNumber::INDEX, "index", &mut sealed)?;
        let index = ContainerIndex::decode(&name, record.kind, record.index_offset, plain)?;
        let agrees = index.places().len() as u64 == record.held && index.has_deltas() == record.has_deltas;
        if !agrees || !index.answers_as(record) {
            return Err(StoreError::damaged(&name, "index", "it does not list the chunks that the manifest records"));
        }
        Ok(Self { key, record: record.clone(), index, regions: None })
    }

    /// Returns the memory that it takes, bytes, about.
    pub fn memory_bytes(&self) -> usize {
        self.index.memory_bytes() + self.regions.as_ref().map_or(0, Vec::capacity)
    }

    /// Opens a container from all its bytes, without a manifest: header, trailer, index and padding are checked.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::Misplaced`] if its header says that it is of another kind, or its
    /// commitment that it has another name.
    pub fn from_object(
        keys: &RepositoryKeys,
        series: SeriesId,
        kind: ContainerKind,
        id: ContainerId,
        object: &[u8],
    ) -> Result<Self, StoreError> {
        let name = ObjectName::Container(kind, series, id);
        let key = ObjectKey::open(keys, name, kind.object_kind(), object)?;
        Self::with_key(key, id, kind, object)
    }

    pub(super) fn with_key(
        key: ObjectKey,
        id: ContainerId,
        kind: ContainerKind,
        object: &[u8],
    ) -> Result<Self, StoreError> {
        let name = *key.name();
        let (index_offset, index_sealed_bytes) = open_trailer(&key, object)?;
        let mut record = ContainerRecord {
            id,
            kind,
            salt: key.header().salt,
            epoch: key.derivation().epoch,
            mode: key.derivation().mode,
            object_bytes: object.len() as u64,
            index_offset,
            index_sealed_bytes,
            held: 0,
            has_deltas: false,
            level: 0,
            chunks: Vec::new(),
            run_bytes: Vec::new(),
        };
        record.validate(&name)?;
        check_padding(&key, &record, object)?;
        let mut sealed = slice(&name, "index", object, index_offset, index_sealed_bytes)?.to_vec();
        let plain = key.open_piece(PieceNumber::INDEX, "index", &mut sealed)?;
        let index = ContainerIndex::decode(&name, kind, index_offset, plain)?;
        record.held = index.places().len() as u64;
        record.has_deltas = index.has_deltas();
        record.chunks = index.runs();
        record.run_bytes = record.chunks.iter().map(|run| index.bytes_of(*run)).collect();
        Ok(Self { key, record, index, regions: None })
    }

    /// Returns it with other numbers for its chunks, and for the bases of its regions, as another series knows them.
    /// Its record keeps those that its own series has given.
    #[must_use]
    pub fn renumbered(mut self, renumber: impl Fn(ChunkNumber) -> ChunkNumber) -> Self {
        self.index.renumber(renumber);
        self
    }

    /// Returns the record that a manifest keeps of this container.
    pub fn record(&self) -> &ContainerRecord {
        &self.record
    }

    /// Tells whether the record is of this container: all but which of its chunks it answers for agrees.
    pub(super) fn holds(&self, record: &ContainerRecord) -> bool {
        let (chunks, run_bytes) = (record.chunks.clone(), record.run_bytes.clone());
        let own = ContainerRecord { chunks, run_bytes, ..self.record.clone() };
        own == *record && self.index.answers_as(record)
    }

    /// Returns its regions and chunks.
    pub fn index(&self) -> &ContainerIndex {
        &self.index
    }

    /// The container's object name.
    pub fn object_name(&self) -> &ObjectName {
        self.key.name()
    }

    /// The plain bytes of a region, by one range read. `bases` are the bytes of its bases.
    pub fn read_region(
        &self,
        storage: &dyn Storage,
        region: usize,
        decoder: &mut RegionDecoder,
        bases: &[&[u8]],
    ) -> Result<Vec<u8>, StoreError> {
        self.open_region(region, self.read_sealed(storage, region)?, decoder, bases)
    }

    /// Neighbouring regions, still sealed, by one range read; each for [`Self::open_region`].
    pub fn read_sealed_run(&self, storage: &dyn Storage, regions: Range<usize>) -> Result<Vec<Vec<u8>>, StoreError> {
        let entries = self.index.regions().get(regions.clone()).ok_or_else(|| self.no_region(regions.end))?;
        let Some(first) = entries.first() else {
            return Ok(Vec::new());
        };
        let bytes = entries.iter().try_fold(0u32, |sum, entry| sum.checked_add(entry.sealed_bytes));
        let length = in_memory(self.key.name(), bytes.unwrap_or(u32::MAX))?;
        let run = self.read(storage, first.offset, length)?;
        if entries.len() == 1 {
            return Ok(vec![run]);
        }
        entries
            .iter()
            .map(|entry| {
                let part = || StoreError::damaged(self.key.name(), "regions", "the range read is too short");
                let start = usize::try_from(entry.offset - first.offset).map_err(|_| part())?;
                run.get(start..start + entry.sealed_bytes as usize).map(<[u8]>::to_vec).ok_or_else(part)
            })
            .collect()
    }

    /// The plain bytes of a region from its sealed ones and the bytes of its bases.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], part "region N".
    pub fn open_region(
        &self,
        region: usize,
        sealed: Vec<u8>,
        decoder: &mut RegionDecoder,
        bases: &[&[u8]],
    ) -> Result<Vec<u8>, StoreError> {
        let encoded = self.unseal_region(region, sealed)?;
        encoded.decode(decoder, self.key.name(), &part(region), bases)
    }

    /// A region as it was pushed, still compressed, for sealing it into another container.
    pub fn copy_region(&self, storage: &dyn Storage, region: usize) -> Result<EncodedRegion, StoreError> {
        self.unseal_region(region, self.read_sealed(storage, region)?)
    }

    /// Opens a region as [`Self::copy_region`] does, from its sealed bytes.
    pub fn unseal_region(&self, region: usize, mut sealed: Vec<u8>) -> Result<EncodedRegion, StoreError> {
        let entry = self.entry(region)?;
        let piece = PieceNumber(u32::try_from(region).map_err(|_| self.no_region(region))?);
        let payload_bytes = self.key.open_piece(piece, &part(region), &mut sealed)?.len();
        sealed.truncate(payload_bytes);
        Ok(EncodedRegion {
            codec: entry.codec,
            bases: entry.bases.clone(),
            chunks: entry.chunks.clone(),
            plain_bytes: entry.plain_bytes,
            payload: sealed,
        })
    }

    /// Compares every chunk of a region's plain bytes with its fingerprint.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] naming the first chunk that differs.
    pub fn verify_region(&self, keys: &RepositoryKeys, region: usize, plain: &[u8]) -> Result<(), StoreError> {
        let chunks = &self.entry(region)?.chunks;
        let sound = split_region(chunks, plain)
            .take_while(|(chunk, bytes)| keys.fingerprint_of(chunk.number, bytes) == chunk.fingerprint)
            .count();
        let Some(chunk) = chunks.get(sound) else { return Ok(()) };
        let which = format!("{}, chunk {}", part(region), chunk.number);
        Err(StoreError::damaged(self.key.name(), which, "its content does not match its fingerprint"))
    }

    /// Checks what one container's bytes tell alone: header, record, trailer, padding, index, of every region the seal,
    /// and of plain ones the decoding and the fingerprints. (Region deltas can be decoded by whoever has their bases.)
    /// All that is wrong is listed; empty means sound.
    pub fn check(
        keys: &RepositoryKeys,
        series: SeriesId,
        record: &ContainerRecord,
        object: &[u8],
        decoder: &mut RegionDecoder,
    ) -> Vec<ContainerDamage> {
        let mut found = Vec::new();
        let mut note = |result: Result<(), StoreError>, chunks: &[ChunkRun]| {
            found.extend(result.err().map(|error| ContainerDamage { error, chunks: chunks.to_vec() }));
        };
        match Self::open_in(keys, series, record, object) {
            Err(error) => note(Err(error), &record.chunks),
            Ok(reader) => {
                note(reader.check_frame(object), &[]);
                for (region, entry) in reader.index.regions().iter().enumerate() {
                    let result = reader.check_region(keys, region, object, decoder);
                    note(result, &super::index::runs(entry.chunks.iter().map(|chunk| chunk.number)));
                }
            }
        }
        found
    }

    /// A region's sealed bytes in the whole object's, for [`Self::open_region`].
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the object ends before them.
    pub fn sealed_in<'o>(&self, object: &'o [u8], region: usize) -> Result<&'o [u8], StoreError> {
        let entry = self.entry(region)?;
        slice(self.key.name(), &part(region), object, entry.offset, entry.sealed_bytes)
    }

    /// Checks what lies around the regions: length, header, index, padding and trailer, against the record.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] naming the part, [`StoreError::Misplaced`].
    pub fn check_frame(&self, object: &[u8]) -> Result<(), StoreError> {
        let name = self.key.name();
        if object.len() as u64 != self.record.object_bytes {
            let reason = format!("the object has {} bytes instead of {}", object.len(), self.record.object_bytes);
            return Err(StoreError::damaged(name, "length", reason));
        }
        if ObjectHeader::parse(name, object)? != *self.key.header() {
            return Err(StoreError::Misplaced { object: name.to_string() });
        }
        let (offset, bytes) = (self.record.index_offset, self.record.index_sealed_bytes);
        let mut index = slice(name, "index", object, offset, bytes)?.to_vec();
        self.key.open_piece(PieceNumber::INDEX, "index", &mut index)?;
        check_padding(&self.key, &self.record, object)?;
        if open_trailer(&self.key, object)? != (self.record.index_offset, self.record.index_sealed_bytes) {
            return Err(StoreError::damaged(name, "trailer", "it does not agree with the manifest"));
        }
        Ok(())
    }

    /// Checks a region in the whole object: its seal and, of a plain one, the decoding and the fingerprints.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], part "region N".
    pub fn check_region(
        &self,
        keys: &RepositoryKeys,
        region: usize,
        object: &[u8],
        decoder: &mut RegionDecoder,
    ) -> Result<(), StoreError> {
        let entry = self.entry(region)?;
        let sealed = self.sealed_in(object, region)?.to_vec();
        if !entry.bases.is_empty() {
            return self.unseal_region(region, sealed).map(drop);
        }
        let plain = self.open_region(region, sealed, decoder, &[])?;
        self.verify_region(keys, region, &plain)
    }

    /// A region's sealed bytes, by one range read.
    pub fn read_sealed(&self, storage: &dyn Storage, region: usize) -> Result<Vec<u8>, StoreError> {
        let entry = self.entry(region)?;
        let length = in_memory(self.key.name(), entry.sealed_bytes)?;
        self.read(storage, entry.offset, length)
    }

    /// Reads a range, unless it came with the index. Metadata is read again by whoever comes next, data seldom.
    fn read(&self, storage: &dyn Storage, offset: u64, length: usize) -> Result<Vec<u8>, StoreError> {
        let name = self.key.name();
        let start = offset.checked_sub(REGIONS_BEGIN).and_then(|start| usize::try_from(start).ok());
        let range = start.and_then(|start| Some(start..start.checked_add(length)?));
        if let (Some(regions), Some(range)) = (&self.regions, range)
            && let Some(here) = regions.get(range)
        {
            return Ok(here.to_vec());
        }
        Ok(match self.record.kind {
            ContainerKind::Metadata => storage.read_kept(name, offset, length)?,
            ContainerKind::Data => storage.read_range(name, offset, length)?,
        })
    }

    fn entry(&self, region: usize) -> Result<&RegionEntry, StoreError> {
        self.index.regions().get(region).ok_or_else(|| self.no_region(region))
    }

    fn no_region(&self, region: usize) -> StoreError {
        let reason = format!("it has {} regions, number {region} was asked for", self.index.regions().len());
        StoreError::Refused { what: self.key.name().to_string(), reason }
    }
}

fn part(region: usize) -> String {
    format!("region {region}")
}

/// Index offset and sealed index bytes as the trailer states them.
fn open_trailer(key: &ObjectKey, object: &[u8]) -> Result<(u64, u32), StoreError> {
    let damaged = |reason: &str| StoreError::damaged(key.name(), "trailer", reason);
    let mut sealed: [u8; TRAILER_BYTES] = *object.last_chunk().ok_or_else(|| damaged("the object ends before it"))?;
    let mut fields = Fields(key.open_piece(PieceNumber::TRAILER, "trailer", &mut sealed)?);
    let [offset, index_bytes, object_bytes, zero] =
        [(); 4].map(|()| fields.take_u64()).map(|field| field.unwrap_or(u64::MAX));
    if object_bytes != object.len() as u64 || zero != 0 {
        return Err(damaged("it is of an object of another length"));
    }
    let index_bytes = u32::try_from(index_bytes).map_err(|_| damaged("the index is past any size"))?;
    Ok((offset, index_bytes))
}

/// Checks that the piece between index and trailer is sealed zeros. The record is valid.
fn check_padding(key: &ObjectKey, record: &ContainerRecord, object: &[u8]) -> Result<(), StoreError> {
    let damaged = |reason: &str| StoreError::damaged(key.name(), "padding", reason);
    let start = record.index_offset.saturating_add(record.index_sealed_bytes.into());
    let end = record.object_bytes.saturating_sub(TRAILER_BYTES as u64);
    let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
    let sealed =
        range.and_then(|(start, end)| object.get(start..end)).ok_or_else(|| damaged("the object ends before it"))?;
    let mut sealed = sealed.to_vec();
    let plain = key.open_piece(PieceNumber::PADDING, "padding", &mut sealed)?;
    if plain.iter().any(|byte| *byte != 0) { Err(damaged("it is not zero")) } else { Ok(()) }
}

fn slice<'o>(name: &ObjectName, part: &str, object: &'o [u8], offset: u64, bytes: u32) -> Result<&'o [u8], StoreError> {
    let cut = || StoreError::damaged(name, part, "the object ends before its end");
    let start = usize::try_from(offset).map_err(|_| cut())?;
    let end = start.checked_add(in_memory(name, bytes)?).ok_or_else(cut)?;
    object.get(start..end).ok_or_else(cut)
}

/// A length from outside as one of memory; validated records and indexes never exceed a container's.
fn in_memory(name: &ObjectName, bytes: u32) -> Result<usize, StoreError> {
    usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes as u64 <= super::CONTAINER_BYTES_MAX)
        .ok_or_else(|| StoreError::limit(name, "the length of a piece", bytes.into(), super::CONTAINER_BYTES_MAX))
}

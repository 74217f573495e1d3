//! Moving the survivors of partly dead containers into new ones.
//!
//! Region by region: all chunks dead, it is dropped unread; all alive, it is re-sealed without being decompressed; some, the
//! survivors are gathered and compressed again. Regions are taken in the order of the containers, so the survivors of one stay
//! together and the result depends on nothing but its input.

use super::ForgetOptions;
use crate::pack::{ContainerSink, Packer};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerKind, ContainerReader, ContainerRecord};
use siltstone_store::region::{ChunkEntry, RegionDecoder, RegionEncoder, split_region};
use siltstone_store::repository::Repository;
use siltstone_store::{SeriesId, StoreError};

/// Why rewriting stopped, and at which container.
pub(super) struct Stopped {
    pub(super) at: usize,
    pub(super) error: StoreError,
}

/// Makes new containers of what `live` needs from `records`, and gives their records. Memory: two containers and two regions.
pub(super) fn rewrite(
    repository: &Repository,
    series: SeriesId,
    records: &[ContainerRecord],
    live: &RoaringTreemap,
    options: &ForgetOptions,
    sink: &dyn ContainerSink,
) -> Result<Vec<ContainerRecord>, Stopped> {
    let last = records.len().saturating_sub(1);
    let mut survivors = Survivors::new(repository, series, options, sink).map_err(|error| Stopped { at: 0, error })?;
    for (at, record) in records.iter().enumerate() {
        survivors.take(repository, series, record, live).map_err(|error| Stopped { at, error })?;
    }
    let packed = survivors.flush().and_then(|()| survivors.packer.finish());
    Ok(packed.map_err(|error| Stopped { at: last, error })?.containers)
}

/// Chunks gathered for the next region.
struct Survivors<'a> {
    packer: Packer<'a>,
    encoder: RegionEncoder,
    decoder: RegionDecoder,
    kind: ContainerKind,
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

impl<'a> Survivors<'a> {
    fn new(
        repository: &'a Repository,
        series: SeriesId,
        options: &ForgetOptions,
        sink: &'a dyn ContainerSink,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            packer: Packer::new(repository.keys(), series, sink),
            encoder: RegionEncoder::new(options.compression_level)?,
            decoder: RegionDecoder::new()?,
            kind: ContainerKind::Data,
            chunks: Vec::new(),
            plain: Vec::new(),
        })
    }

    /// Takes what `live` needs of one container.
    fn take(
        &mut self,
        repository: &Repository,
        series: SeriesId,
        record: &ContainerRecord,
        live: &RoaringTreemap,
    ) -> Result<(), StoreError> {
        let storage = repository.storage();
        let reader = ContainerReader::open(storage, repository.keys(), series, record)?;
        self.begin(record.kind)?;
        for (at, region) in reader.index().regions().iter().enumerate() {
            let alive = region.chunks.iter().filter(|chunk| live.contains(chunk.number.0)).count();
            if alive == region.chunks.len() {
                self.flush()?;
                self.packer.push(record.kind, &reader.copy_region(storage, at)?)?;
            } else if alive > 0 {
                let plain = reader.read_region(storage, at, &mut self.decoder)?;
                reader.verify_region(repository.keys(), at, &plain)?;
                for (chunk, bytes) in split_region(&region.chunks, &plain) {
                    if live.contains(chunk.number.0) {
                        self.push(chunk, bytes)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn begin(&mut self, kind: ContainerKind) -> Result<(), StoreError> {
        if self.kind != kind {
            self.flush()?;
            self.kind = kind;
        }
        Ok(())
    }

    fn push(&mut self, chunk: ChunkEntry, bytes: &[u8]) -> Result<(), StoreError> {
        // Numbers ascend within a region; containers need not be in order.
        let ascends = self.chunks.last().is_none_or(|last| last.number < chunk.number);
        if !ascends || self.plain.len() + bytes.len() > self.kind.region_bytes_target() {
            self.flush()?;
        }
        self.chunks.push(chunk);
        self.plain.extend_from_slice(bytes);
        Ok(())
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        if !self.chunks.is_empty() {
            let region = self.encoder.encode(std::mem::take(&mut self.chunks), &self.plain)?;
            self.plain.clear();
            self.packer.push(self.kind, &region)?;
        }
        Ok(())
    }
}

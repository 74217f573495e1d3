//! Containers on disk: those of `siltstone-store`, with its keys, seals and compression, in a repository made for one
//! run. A container is read whole and decompressed whole, as MeGA (ATC 2022, sections 2.1 and 3.1) says of stores that
//! compress chunks together.

use super::choose::Container;
use super::recipe::Number;
use super::scale::Scale;
use super::uncached::{Syncs, Uncached};
use crate::repository::new_repository;
use anyhow::{Context, Result};
use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerReader};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionDecoder, RegionEncoder};
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ContainerId, Fingerprint, SeriesId};
use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

/// Most that a metadata region holds, bytes.
const METADATA_PIECE_BYTES: usize = 8 << 20;

/// A chunk to be stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stored<'b> {
    /// Its number.
    pub(super) number: Number,
    /// Fingerprint of the chunk as it was cut, whatever is stored of it.
    pub(super) fingerprint: Fingerprint,
    /// The chunk, or the delta in its place.
    pub(super) bytes: &'b [u8],
}

/// A container as written.
#[derive(Clone, Debug)]
pub(super) struct Written {
    /// Which.
    pub(super) container: Container,
    /// Its chunks in the order in which they lie.
    pub(super) members: Vec<Number>,
    /// Its size in memory, decompressed.
    pub(super) plain_bytes: usize,
    /// Its size on disk.
    pub(super) object_bytes: u64,
}

/// A container in memory, decompressed.
#[derive(Debug)]
pub(super) struct Opened {
    plain: Vec<u8>,
    /// In the order in which they lie.
    chunks: Vec<(Number, Fingerprint, Range<usize>)>,
    by_number: HashMap<Number, usize>,
    /// Bytes read from the disk.
    pub(super) object_bytes: u64,
    /// Time that reading and decompressing it took.
    pub(super) seconds: f64,
}

impl Opened {
    /// Its chunks in the order in which they lie.
    pub(super) fn chunks(&self) -> impl DoubleEndedIterator<Item = Stored<'_>> {
        self.chunks.iter().map(|(number, fingerprint, range)| Stored {
            number: *number,
            fingerprint: *fingerprint,
            bytes: &self.plain[range.clone()],
        })
    }

    /// Returns the bytes stored of a chunk.
    ///
    /// # Errors
    /// If the container does not have it.
    pub(super) fn stored(&self, number: Number) -> Result<&[u8]> {
        let at = self.by_number.get(&number).with_context(|| format!("chunk {number} is not in its container"))?;
        Ok(&self.plain[self.chunks[*at].2.clone()])
    }

    /// Bytes of the object for these chunks: as large a part of it as they are of the text.
    pub(super) fn object_bytes_of(&self, chunks: &HashSet<Number>) -> u64 {
        let held = self.chunks.iter().filter(|(number, ..)| chunks.contains(number));
        let bytes: u64 = held.map(|(.., range)| range.len() as u64).sum();
        self.object_bytes * bytes / (self.plain.len() as u64).max(1)
    }

    /// Bytes it takes in memory.
    pub(super) fn plain_bytes(&self) -> usize {
        self.plain.len()
    }
}

/// Where containers lie.
#[derive(Debug)]
pub(super) struct ContainerStore {
    folder: PathBuf,
    repository: Repository,
    series: SeriesId,
    container_bytes: u64,
    region_bytes: usize,
    level: i32,
    threads: usize,
    syncs: Syncs,
    next: AtomicU32,
    /// Containers from this one on may not be readable yet.
    unsure_from: AtomicU32,
}

impl ContainerStore {
    /// An empty one in this folder.
    pub(super) fn create(folder: &Path, scale: &Scale) -> Result<Self> {
        let storage = Uncached::create(folder)?;
        let syncs = storage.syncs();
        let repository = new_repository(Arc::new(storage), scale.expected_bytes)?;
        let series = repository.keys().series_id("lab");
        let Scale { container_bytes, region_bytes, level, threads, .. } = *scale;
        Ok(Self {
            folder: folder.to_owned(),
            repository,
            series,
            container_bytes,
            region_bytes,
            level,
            threads,
            syncs,
            next: AtomicU32::new(0),
            unsure_from: AtomicU32::new(0),
        })
    }

    /// The repository it is.
    pub(super) fn repository(&self) -> &Repository {
        &self.repository
    }

    /// Returns the count of its syncs.
    pub(super) fn syncs(&self) -> u64 {
        self.syncs.count()
    }

    /// Syncs small objects until there were so many syncs since `before`.
    ///
    /// # Errors
    /// If one cannot be written.
    pub(super) fn sync_up_to(&self, syncs: u64, before: u64) -> Result<()> {
        while self.syncs() - before < syncs {
            let written = self.write_metadata(b"")?;
            self.barrier()?;
            self.delete(ContainerKind::Metadata, written.container)?;
        }
        Ok(())
    }

    /// The number that the next container gets.
    pub(super) fn next_container(&self) -> Container {
        self.next.load(Ordering::Relaxed)
    }

    fn name(&self, kind: ContainerKind, container: Container) -> ObjectName {
        ObjectName::Container(kind, self.series, ContainerId { lease: 1, serial: container })
    }

    /// The file of a container of data.
    pub(super) fn file(&self, container: Container) -> PathBuf {
        self.folder.join(self.name(ContainerKind::Data, container).to_string())
    }

    fn builder(&self, kind: ContainerKind) -> Result<(Container, ContainerBuilder)> {
        let container = self.next.fetch_add(1, Ordering::Relaxed);
        let id = ContainerId { lease: 1, serial: container };
        Ok((container, ContainerBuilder::new(self.repository.keys(), self.series, id, kind)?))
    }

    fn put(&self, builder: ContainerBuilder) -> Result<u64> {
        let sealed = builder.finish()?;
        self.repository.storage().put(&sealed.record.object_name(self.series), &sealed.bytes)?;
        Ok(sealed.record.object_bytes)
    }

    /// Waits until all that was written is durable.
    pub(super) fn barrier(&self) -> Result<()> {
        let next = self.next_container();
        self.repository.storage().barrier()?;
        self.unsure_from.fetch_max(next, Ordering::Relaxed);
        Ok(())
    }

    /// Reads a container of data and decompresses all of it. One that is still on its way to the disk is waited for.
    pub(super) fn open(&self, container: Container) -> Result<Opened> {
        self.open_any(ContainerKind::Data, container)
    }

    fn open_any(&self, kind: ContainerKind, container: Container) -> Result<Opened> {
        if container >= self.unsure_from.load(Ordering::Relaxed) {
            self.barrier()?;
        }
        let begin = Instant::now();
        let name = self.name(kind, container);
        let object = self.repository.storage().read(&name, name.bytes_max())?;
        let id = ContainerId { lease: 1, serial: container };
        let reader = ContainerReader::from_object(self.repository.keys(), self.series, kind, id, &object)?;
        let mut decoder = RegionDecoder::new();
        let (mut plain, mut chunks, mut by_number) = (Vec::new(), Vec::new(), HashMap::new());
        for (region, entry) in reader.index().regions().iter().enumerate() {
            let sealed = reader.sealed_in(&object, region)?.to_vec();
            let mut start = plain.len();
            plain.extend_from_slice(&reader.open_region(region, sealed, &mut decoder, &[])?);
            for chunk in &entry.chunks {
                let number = Number::try_from(chunk.number.0 & u64::from(u32::MAX))?;
                let end = start + chunk.length as usize;
                by_number.insert(number, chunks.len());
                chunks.push((number, chunk.fingerprint, start..end));
                start = end;
            }
        }
        let (object_bytes, seconds) = (object.len() as u64, begin.elapsed().as_secs_f64());
        Ok(Opened { plain, chunks, by_number, object_bytes, seconds })
    }

    /// Writes metadata as a container of its own.
    pub(super) fn write_metadata(&self, bytes: &[u8]) -> Result<Written> {
        let (container, mut builder) = self.builder(ContainerKind::Metadata)?;
        let mut encoder = RegionEncoder::fast(self.level);
        for (piece, serial) in bytes.chunks(METADATA_PIECE_BYTES).zip(0..) {
            let number = ChunkNumber(ChunkNumber::METADATA_FIRST.0 + serial);
            let fingerprint = self.repository.keys().metadata_fingerprint(piece);
            let entry = ChunkEntry { number, fingerprint, length: u32::try_from(piece.len())? };
            builder.push(&EncodedRegion::encode(&mut encoder, vec![entry], piece)?)?;
        }
        let object_bytes = self.put(builder)?;
        Ok(Written { container, members: Vec::new(), plain_bytes: bytes.len(), object_bytes })
    }

    /// The metadata in a container, and what was read of the disk for it.
    pub(super) fn read_metadata(&self, container: Container) -> Result<(Vec<u8>, u64)> {
        let opened = self.open_any(ContainerKind::Metadata, container)?;
        Ok((opened.plain, opened.object_bytes))
    }

    /// Removes a container.
    pub(super) fn delete(&self, kind: ContainerKind, container: Container) -> Result<()> {
        Ok(self.repository.storage().delete(&self.name(kind, container))?)
    }
}

/// Fills containers one after another, with chunks in the order in which they come.
#[derive(Debug, Default)]
pub(super) struct Writer {
    open: Option<(Container, ContainerBuilder)>,
    members: Vec<Number>,
    /// Bytes of chunks in the open container.
    open_bytes: usize,
    filling: Region,
    full: Vec<Region>,
}

#[derive(Debug, Default)]
struct Region {
    chunks: Vec<ChunkEntry>,
    plain: Vec<u8>,
}

impl Writer {
    /// Bytes of chunks that lie in no finished container yet.
    pub(super) fn held_bytes(&self) -> usize {
        self.full.iter().chain([&self.filling]).fold(self.open_bytes, |sum, region| sum + region.plain.len())
    }

    /// Adds a chunk.
    pub(super) fn push(&mut self, container_store: &ContainerStore, stored: Stored<'_>) -> Result<()> {
        let length = u32::try_from(stored.bytes.len())?;
        let (number, fingerprint) = (ChunkNumber(stored.number.into()), stored.fingerprint);
        let region = &mut self.filling;
        let is_full = region.plain.len() + stored.bytes.len() > container_store.region_bytes;
        // Within a region numbers ascend.
        if region.chunks.last().is_some_and(|last| is_full || last.number >= number) {
            self.full.push(std::mem::take(region));
        }
        self.filling.chunks.push(ChunkEntry { number, fingerprint, length });
        self.filling.plain.extend_from_slice(stored.bytes);
        Ok(())
    }

    /// Compresses and writes the regions that are full; gives the containers that became full.
    pub(super) fn flush(&mut self, container_store: &ContainerStore) -> Result<Vec<Written>> {
        let regions = std::mem::take(&mut self.full);
        let level = container_store.level;
        let encoded = super::parallel::each(
            container_store.threads,
            &regions,
            || Ok(RegionEncoder::fast(level)),
            |encoder, region| Ok(EncodedRegion::encode(encoder, region.chunks.clone(), &region.plain)?),
        )?;
        let mut written = Vec::new();
        for (region, encoded) in regions.into_iter().zip(encoded) {
            if self.open_bytes > 0 && (self.open_bytes + region.plain.len()) as u64 > container_store.container_bytes {
                written.extend(self.seal(container_store)?);
            }
            let (_, builder) = match &mut self.open {
                Some(open) => open,
                none => none.insert(container_store.builder(ContainerKind::Data)?),
            };
            builder.push(&encoded)?;
            self.open_bytes += region.plain.len();
            let numbers = region.chunks.iter().map(|chunk| Number::try_from(chunk.number.0));
            self.members.extend(numbers.collect::<Result<Vec<_>, _>>()?);
        }
        Ok(written)
    }

    /// Writes out everything; the writer can be used again.
    pub(super) fn finish(&mut self, container_store: &ContainerStore) -> Result<Vec<Written>> {
        if !self.filling.chunks.is_empty() {
            self.full.push(std::mem::take(&mut self.filling));
        }
        let mut written = self.flush(container_store)?;
        written.extend(self.seal(container_store)?);
        Ok(written)
    }

    fn seal(&mut self, container_store: &ContainerStore) -> Result<Option<Written>> {
        let Some((container, builder)) = self.open.take() else { return Ok(None) };
        let object_bytes = container_store.put(builder)?;
        let (members, plain_bytes) = (std::mem::take(&mut self.members), std::mem::take(&mut self.open_bytes));
        Ok(Some(Written { container, members, plain_bytes, object_bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;
    use crate::settings::Settings;

    #[test]
    fn chunks_and_metadata_come_back_from_containers_of_the_wanted_size() {
        let folder = tempfile::tempdir().unwrap();
        let scale = Scale::of(1 << 20, &Settings::default());
        let container_store = ContainerStore::create(folder.path(), &scale).unwrap();
        let mut sequence = Sequence::new(1);
        let chunks: Vec<_> = (0..150).map(|_| sequence.bytes(9000)).collect();
        let (mut writer, mut written) = (Writer::default(), Vec::new());
        for (number, bytes) in (0..).zip(&chunks) {
            let fingerprint = container_store.repository().keys().fingerprint(bytes);
            writer.push(&container_store, Stored { number, fingerprint, bytes }).unwrap();
            written.extend(writer.flush(&container_store).unwrap());
        }
        assert!(writer.held_bytes() > 0);
        written.extend(writer.finish(&container_store).unwrap());
        assert_eq!(writer.held_bytes(), 0);
        container_store.barrier().unwrap();
        assert!(written.len() > 3 && written.iter().all(|one| one.object_bytes < scale.container_bytes * 11 / 10));
        let members: Vec<_> = written.iter().flat_map(|one| one.members.clone()).collect();
        assert_eq!(members, (0..150).collect::<Vec<_>>());
        for one in &written {
            let opened = container_store.open(one.container).unwrap();
            assert_eq!(opened.chunks().map(|chunk| chunk.number).collect::<Vec<_>>(), one.members);
            assert!(one.members.iter().all(|number| opened.stored(*number).unwrap() == chunks[*number as usize]));
            assert!(opened.stored(1000).is_err());
        }
        let metadata = container_store.write_metadata(b"who and where").unwrap();
        container_store.barrier().unwrap();
        assert_eq!(container_store.read_metadata(metadata.container).unwrap().0, b"who and where");
        container_store.delete(ContainerKind::Metadata, metadata.container).unwrap();
        assert!(container_store.read_metadata(metadata.container).is_err());
    }
}

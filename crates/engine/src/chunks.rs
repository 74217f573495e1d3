//! Finding and reading chunks by number: number -> container -> region -> bytes, each verified against its fingerprint.
//!
//! The manifest says which container holds a number, the container's index which region. Indexes and decoded regions are kept in
//! two bounded caches, so reading a catalog in order costs one range read per index and one per region. For whole restores use
//! [`crate::restore`], which reads by region and not by chunk.
//!
//! Readers hold no lease: a `forget` beside them may replace a container by another with the same chunks. One that is gone makes
//! the source read the newest manifest and look again; numbers do not change, so whoever asks by number does not notice.

use lru::LruCache;
use siltstone_store::catalog::MetadataSource;
use siltstone_store::container::{ChunkPlace, ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::region::RegionDecoder;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, SeriesId, StoreError};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, PoisonError, RwLock};

/// Container indexes kept open unless said otherwise; one takes up to about 0.7 MB.
const READERS_MAX: usize = 48;
/// Decoded regions kept unless said otherwise; one takes up to about 2 MiB.
const REGIONS_MAX: usize = 16;

/// A decoded region: plain bytes of consecutive stored chunks.
pub(crate) type PlainRegion = Arc<Vec<u8>>;

/// Reads chunks of one series as one manifest describes it, or its successor once that has moved chunks.
#[derive(Debug)]
pub(crate) struct ChunkSource<'r> {
    repository: &'r Repository,
    series: SeriesId,
    layout: RwLock<Arc<Layout>>,
    readers: Mutex<LruCache<usize, Arc<ContainerReader>>>,
    regions: Mutex<LruCache<(usize, usize), PlainRegion>>,
}

/// Where the chunks of a series lie.
#[derive(Debug, Default)]
struct Layout {
    /// Number of the manifest that says so.
    sequence: u64,
    /// The containers of that manifest, behind those of the manifests before it: an index stays true when the source moves on.
    records: Vec<Arc<ContainerRecord>>,
    /// First number, last number, index into `records`; ascending, of the newest manifest only.
    spans: Vec<(u64, u64, usize)>,
}

impl Layout {
    /// The layout after this manifest.
    fn followed_by(&self, manifest: &Manifest) -> Self {
        let before = self.records.len();
        let added = manifest.containers.iter().cloned().map(Arc::new);
        let records: Vec<_> = self.records.iter().cloned().chain(added).collect();
        let spans_of = |(at, record): (usize, &Arc<ContainerRecord>)| {
            let ranges = record.chunks.iter().map(|run| run.range());
            ranges.map(|range| (*range.start(), *range.end(), at)).collect::<Vec<_>>()
        };
        let mut spans: Vec<_> = records.iter().enumerate().skip(before).flat_map(spans_of).collect();
        spans.sort_unstable();
        Self { sequence: manifest.sequence, records, spans }
    }
}

impl<'r> ChunkSource<'r> {
    /// A source for the containers of `manifest`.
    pub(crate) fn new(repository: &'r Repository, manifest: &Manifest) -> Self {
        Self::with_limits(repository, manifest, READERS_MAX, REGIONS_MAX)
    }

    /// The same, keeping at most so many container indexes and decoded regions.
    pub(crate) fn with_limits(repository: &'r Repository, manifest: &Manifest, readers: usize, regions: usize) -> Self {
        let at_least_one = |count| NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self {
            repository,
            series: manifest.series,
            layout: RwLock::new(Arc::new(Layout::default().followed_by(manifest))),
            readers: Mutex::new(LruCache::new(at_least_one(readers))),
            regions: Mutex::new(LruCache::new(at_least_one(regions))),
        }
    }

    /// The repository read from.
    pub(crate) fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// The containers, in the order of [`ChunkSource::container_of`]'s answers.
    pub(crate) fn records(&self) -> Vec<Arc<ContainerRecord>> {
        self.layout().records.clone()
    }

    fn layout(&self) -> Arc<Layout> {
        self.layout.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Does `look`, again if a container was gone and a newer manifest says where its chunks are now.
    fn following<R>(&self, look: impl Fn() -> Result<R, StoreError>) -> Result<R, StoreError> {
        loop {
            let sequence = self.layout().sequence;
            match look() {
                Err(error) if error.is_not_found() && self.has_moved_on(sequence) => {}
                other => return other,
            }
        }
    }

    /// Whether the newest manifest is beyond this one; it is then the one to go by.
    fn has_moved_on(&self, sequence: u64) -> bool {
        let Ok(Some(newest)) = self.repository.manifest(self.series) else {
            return false;
        };
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        if newest.sequence > layout.sequence {
            *layout = Arc::new(layout.followed_by(&newest));
        }
        layout.sequence > sequence
    }

    /// Which container holds the number.
    pub(crate) fn container_of(&self, number: ChunkNumber) -> Result<usize, StoreError> {
        let layout = self.layout();
        let after = layout.spans.partition_point(|(first, ..)| *first <= number.0);
        match after.checked_sub(1).and_then(|at| layout.spans.get(at)) {
            Some((_, last, container)) if number.0 <= *last => Ok(*container),
            _ => Err(StoreError::MissingChunk { number }),
        }
    }

    /// The index of a container, read once and kept for a while.
    pub(crate) fn reader(&self, container: usize) -> Result<Arc<ContainerReader>, StoreError> {
        if let Some(reader) = lock(&self.readers).get(&container) {
            return Ok(reader.clone());
        }
        let record = &self.layout().records[container];
        let storage = self.repository.storage();
        let reader = Arc::new(ContainerReader::open(storage, self.repository.keys(), self.series, record)?);
        lock(&self.readers).put(container, reader.clone());
        Ok(reader)
    }

    /// Where a chunk lies: its container, region, offset, length and fingerprint.
    pub(crate) fn place_of(&self, number: ChunkNumber) -> Result<(usize, ChunkPlace), StoreError> {
        self.following(|| {
            let container = self.container_of(number)?;
            let place = self.reader(container)?.index().find(number).ok_or(StoreError::MissingChunk { number })?;
            Ok((container, place))
        })
    }

    /// A region's plain bytes, kept for a while; its chunks are *not* yet verified.
    pub(crate) fn region(&self, container: usize, region: usize) -> Result<PlainRegion, StoreError> {
        if let Some(plain) = lock(&self.regions).get(&(container, region)) {
            return Ok(plain.clone());
        }
        let reader = self.reader(container)?;
        let plain = reader.read_region(self.repository.storage(), region, &mut RegionDecoder::new()?)?;
        let plain = Arc::new(plain);
        lock(&self.regions).put((container, region), plain.clone());
        Ok(plain)
    }

    /// A chunk's bytes, verified, given to `use_bytes`.
    pub(crate) fn with_chunk<R>(
        &self,
        number: ChunkNumber,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, StoreError> {
        let (container, place, plain) = self.following(|| {
            let (container, place) = self.place_of(number)?;
            Ok((container, place, self.region(container, place.region)?))
        })?;
        let bytes = self.verified(container, &place, &plain)?;
        Ok(use_bytes(bytes))
    }

    /// The bytes of one chunk within its region's plain bytes, after comparing them with the fingerprint.
    pub(crate) fn verified<'p>(
        &self,
        container: usize,
        place: &ChunkPlace,
        plain: &'p [u8],
    ) -> Result<&'p [u8], StoreError> {
        let damaged = |reason: &str| {
            let name = self.layout().records[container].object_name(self.series);
            let part = format!("region {}, chunk {}", place.region, place.chunk.number);
            StoreError::damaged(&name, part, reason)
        };
        let length = usize::try_from(place.chunk.length).unwrap_or(usize::MAX);
        let end = place.offset.checked_add(length).ok_or_else(|| damaged("it ends beyond its region"))?;
        let bytes = plain.get(place.offset..end).ok_or_else(|| damaged("it ends beyond its region"))?;
        if self.repository.keys().fingerprint_of(place.chunk.number, bytes) != place.chunk.fingerprint {
            return Err(damaged("its content does not match its fingerprint"));
        }
        Ok(bytes)
    }
}

impl MetadataSource for ChunkSource<'_> {
    fn load(&self, number: ChunkNumber) -> Result<Arc<[u8]>, StoreError> {
        if !number.is_metadata() {
            return Err(StoreError::damaged(
                &format!("chunk {number}"),
                "reference",
                "a catalog points to file content",
            ));
        }
        self.with_chunk(number, |bytes| Arc::from(bytes))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Finding and reading chunks by number: number -> container -> region -> bytes, each verified against its fingerprint.
//!
//! The manifest says which container answers for a number, the container's index which region holds it. Indexes and
//! decoded regions are kept in two bounded caches, so reading a catalog in order costs one range read per index and one
//! per region. Of a region delta the bases are found and decoded first (module `resolve`). For whole restores use
//! [`crate::restore`], which reads by region and not by chunk.
//!
//! Chunks that the series borrows are found in the lender's containers (module `lenders`).
//!
//! Readers hold no lease: a writer beside them may move chunks to other containers. A container that is gone makes the
//! source read the newest manifest and look again; numbers do not change, so whoever asks by number does not notice.

mod cache;
mod closure;
mod healing;
mod layout;
mod lenders;
mod probe;
mod resolve;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use crate::catalog_file::CatalogFile;
use crate::parallel::lock;
pub(crate) use cache::RegionCache;
use cache::{OpenContainers, RegionsOfSource};
use layout::Layout;
pub(crate) use probe::Probe;
pub(crate) use resolve::Resolved;
use roaring::RoaringTreemap;
use siltstone_store::catalog::MetadataSource;
use siltstone_store::container::{ChunkPlace, ContainerReader, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::ObjectName;
use siltstone_store::{ChunkNumber, ChunkRun, SeriesId, StoreError};
use std::collections::HashSet;
use std::ops::{Range, RangeInclusive};
use std::sync::{Arc, Condvar, Mutex, PoisonError, RwLock};

/// Container indexes kept open unless said otherwise; one takes up to about 0.7 MB.
const READERS_MAX: usize = 48;
/// Bytes of decoded regions kept unless said otherwise.
const REGION_BYTES_MAX: usize = 32 << 20;

/// A decoded region: plain bytes of consecutive stored chunks.
pub(crate) type PlainRegion = Arc<Vec<u8>>;

/// A region of a source: which container, in the order of [`ChunkSource::records`], and which region of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct Address {
    pub(crate) container: usize,
    pub(crate) region: usize,
}

/// A region that one thread decodes.
struct Claim<'s> {
    decoding: &'s Mutex<HashSet<Address>>,
    decoded: &'s Condvar,
    address: Address,
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        lock(self.decoding).remove(&self.address);
        self.decoded.notify_all();
    }
}

/// Reads chunks of one series as one manifest describes it, or its successor once that has moved chunks.
#[derive(Debug)]
pub(crate) struct ChunkSource<'r> {
    repository: &'r Repository,
    series: SeriesId,
    layout: RwLock<Arc<Layout>>,
    readers: Mutex<OpenContainers>,
    regions: RegionsOfSource,
    /// Regions that a thread decodes now, so that others wait for it.
    decoding: Mutex<HashSet<Address>>,
    decoded: Condvar,
    /// The file that metadata chunks are read from in place of the repository.
    catalog: Option<Arc<CatalogFile>>,
}

impl<'r> ChunkSource<'r> {
    /// A source for the containers of `manifest`.
    pub(crate) fn new(repository: &'r Repository, manifest: &Manifest) -> Self {
        Self::with_limits(repository, manifest, READERS_MAX, REGION_BYTES_MAX)
    }

    /// Opens the source, keeping at most this many indexes of containers of the usual size, fewer of larger ones, and
    /// this many bytes of decoded regions.
    pub(crate) fn with_limits(
        repository: &'r Repository,
        manifest: &Manifest,
        readers: usize,
        region_bytes: usize,
    ) -> Self {
        Self::sharing(repository, manifest, readers, &RegionCache::new(region_bytes))
    }

    /// Opens the source, keeping decoded regions in a cache that it shares with others.
    pub(crate) fn sharing(
        repository: &'r Repository,
        manifest: &Manifest,
        readers: usize,
        regions: &RegionCache,
    ) -> Self {
        Self {
            repository,
            series: manifest.series,
            layout: RwLock::new(Arc::new(Layout::default().followed_by(manifest))),
            readers: Mutex::new(OpenContainers::at_most(readers)),
            regions: regions.for_source(),
            decoding: Mutex::default(),
            decoded: Condvar::new(),
            catalog: None,
        }
    }

    /// Returns the source with a file that metadata chunks are read from, where the key opens no containers.
    #[must_use]
    pub(crate) fn with_catalog(self, catalog: Option<Arc<CatalogFile>>) -> Self {
        Self { catalog, ..self }
    }

    /// The repository read from.
    pub(crate) fn repository(&self) -> &'r Repository {
        self.repository
    }

    /// Number of the manifest gone by.
    pub(crate) fn sequence(&self) -> u64 {
        self.layout().sequence
    }

    /// The containers of the series itself, with their places.
    pub(crate) fn own_records(&self) -> Vec<(usize, Arc<ContainerRecord>)> {
        let layout = self.layout();
        let own = layout.held.iter().enumerate().filter(|(_, held)| held.lent.is_none());
        own.map(|(at, held)| (at, held.record.clone())).collect()
    }

    /// The numbers of all chunks that the series borrows.
    pub(crate) fn borrowed(&self) -> RoaringTreemap {
        self.layout().lenders.numbers()
    }

    /// The containers, those of lenders too that were looked into, in the order of [`ChunkSource::container_of`]'s
    /// answers.
    pub(crate) fn records(&self) -> Vec<Arc<ContainerRecord>> {
        self.layout().held.iter().map(|held| held.record.clone()).collect()
    }

    /// One of them.
    pub(crate) fn record(&self, container: usize) -> Arc<ContainerRecord> {
        self.layout().held[container].record.clone()
    }

    /// Its object's name.
    pub(crate) fn object_name(&self, container: usize) -> ObjectName {
        self.layout().held[container].name
    }

    fn layout(&self) -> Arc<Layout> {
        self.layout.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The layout, with what lenders say of these chunks.
    fn layout_of(&self, run: ChunkRun) -> Result<Arc<Layout>, StoreError> {
        loop {
            let layout = self.layout();
            match layout.lenders.unread(run) {
                Some(lender) => self.read_lender(lender)?,
                None => return Ok(layout),
            }
        }
    }

    /// Reads what all lenders say, so that their containers are among the [`records`](Self::records).
    pub(crate) fn read_lenders(&self) -> Result<(), StoreError> {
        let unread = self.layout().lenders.all_unread();
        unread.into_iter().try_for_each(|lender| self.read_lender(lender))
    }

    fn read_lender(&self, lender: SeriesId) -> Result<(), StoreError> {
        let manifest = match self.repository.manifest(lender) {
            Ok(Some(manifest)) => Ok(manifest),
            Ok(None) => Err("it is gone".to_owned()),
            Err(error) if error.is_damage() => Err(error.to_string()),
            Err(error) => return Err(error),
        };
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        *layout = Arc::new(match manifest {
            Ok(manifest) => layout.with_lender(lender, &manifest),
            Err(reason) => layout.without_lender(lender, reason),
        });
        Ok(())
    }

    /// Does `look`, again if a container was gone and a newer manifest says where its chunks are now.
    fn following<R>(&self, look: impl Fn() -> Result<R, StoreError>) -> Result<R, StoreError> {
        loop {
            let generation = self.layout().generation;
            match look() {
                Err(error) if error.is_not_found() && self.has_moved_on(generation) => {}
                // Another thread moved on meanwhile: what was looked for may have been of two minds.
                Err(_) if self.layout().generation > generation => {}
                other => return other,
            }
        }
    }

    /// Tells whether newest manifests, of the series or of a lender, are beyond these; they are then the ones to go by.
    fn has_moved_on(&self, generation: u64) -> bool {
        let newest_of = |series| self.repository.manifest(series).ok().flatten();
        let newest = newest_of(self.series);
        let lenders: Vec<Manifest> = {
            let read = self.layout().lenders.all_read();
            read.into_iter()
                .filter_map(|(lender, sequence)| newest_of(lender).filter(|newest| newest.sequence > sequence))
                .collect()
        };
        let mut layout = self.layout.write().unwrap_or_else(PoisonError::into_inner);
        if layout.generation > generation {
            return true;
        }
        if let Some(newest) = newest.filter(|newest| newest.sequence > layout.sequence) {
            *layout = Arc::new(layout.followed_by(&newest));
        } else {
            for newest in lenders {
                *layout = Arc::new(layout.with_lender(newest.series, &newest));
            }
        }
        layout.generation > generation
    }

    /// Which container answers for the number.
    pub(crate) fn container_of(&self, number: ChunkNumber) -> Result<usize, StoreError> {
        self.layout_of(ChunkRun { first: number, count: 1 })?.container_of(number)
    }

    /// The numbers of a run that a catalog names.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`] with the first that no container answers for.
    pub(crate) fn answered(&self, run: ChunkRun) -> Result<RangeInclusive<u64>, StoreError> {
        self.layout_of(run)?.answered(run)
    }

    /// The index of a container, read once and kept for a while.
    pub(crate) fn reader(&self, container: usize) -> Result<Arc<ContainerReader>, StoreError> {
        if let Some(reader) = lock(&self.readers).get(container) {
            return Ok(reader);
        }
        let reader = Arc::new(self.open(&self.layout().held[container].clone())?);
        lock(&self.readers).put(container, reader.clone());
        Ok(reader)
    }

    /// The index of a container as [`Self::reader`] gives it; `None` if it is damaged, for those who pass that over.
    pub(crate) fn sound_reader(&self, container: usize) -> Result<Option<Arc<ContainerReader>>, StoreError> {
        match self.reader(container) {
            Err(error) if error.is_damage() => Ok(None),
            read => read.map(Some),
        }
    }

    /// Where a chunk lies: its container, region, offset, length and fingerprint.
    pub(crate) fn place_of(&self, number: ChunkNumber) -> Result<(usize, ChunkPlace), StoreError> {
        self.following(|| {
            let container = self.container_of(number)?;
            let place = self.reader(container)?.index().find(number).ok_or(StoreError::MissingChunk { number })?;
            Ok((container, place))
        })
    }

    /// The chunks at the begin of a run that one container answers for, and their bytes, as far as the manifest tells;
    /// `None` if none answers for the first.
    pub(crate) fn run_from(&self, run: ChunkRun) -> Option<(ChunkRun, Option<u64>)> {
        self.layout_of(run).ok()?.run_from(run)
    }

    /// Lengths of the chunks from `first` on, of at most `count` and as far as one container answers for them; at least
    /// one.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`], or damage of the container's index.
    pub(crate) fn lengths_from(&self, first: ChunkNumber, count: u64) -> Result<Vec<u32>, StoreError> {
        let missing = || StoreError::MissingChunk { number: first };
        self.following(|| {
            let container = self.container_of(first)?;
            let reader = self.reader(container)?;
            let answers =
                self.record(container).chunks.iter().map(|run| run.range()).find(|run| run.contains(&first.0));
            let last = answers.map_or(first.0, |run| *run.end()).min(first.0.saturating_add(count.saturating_sub(1)));
            let places = reader.index().places();
            let from = places.partition_point(|place| place.chunk.number < first);
            let wanted = places[from..].iter().zip(first.0..=last);
            let found = wanted.take_while(|(place, number)| place.chunk.number.0 == *number);
            let lengths: Vec<u32> = found.map(|(place, _)| place.chunk.length).collect();
            if lengths.is_empty() { Err(missing()) } else { Ok(lengths) }
        })
    }

    /// A region's plain bytes, kept for a while; neither its chunks nor its bases are verified: whoever takes a chunk
    /// compares it with its fingerprint.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] of the region itself or of one its bases lie in; of a region whose bases lead back to
    /// it; [`StoreError::Limit`] past [`CHAIN_REGIONS_MAX`](crate::bases::CHAIN_REGIONS_MAX).
    pub(crate) fn region(&self, container: usize, region: usize) -> Result<PlainRegion, StoreError> {
        let address = Address { container, region };
        if let Some(plain) = self.region_at_hand(address) {
            return Ok(plain);
        }
        let _mine = self.claim(address);
        // Whoever had it before has kept it.
        self.region_at_hand(address).map_or_else(|| self.resolve(address), Ok)
    }

    /// A region, as [`region`](Self::region) gives it, unless more than `regions_max` have to be decoded for it.
    fn region_within(&self, address: Address, regions_max: usize) -> Result<Resolved<PlainRegion>, StoreError> {
        if let Some(plain) = self.region_at_hand(address) {
            return Ok(Resolved::Had(plain));
        }
        let _mine = self.claim(address);
        let at_hand = self.region_at_hand(address).map(Resolved::Had);
        at_hand.map_or_else(|| self.resolve_within(address, regions_max), Ok)
    }

    /// Waits until no other thread decodes a region; until the claim is dropped, others wait for this one.
    fn claim(&self, address: Address) -> Claim<'_> {
        let mut decoding = lock(&self.decoding);
        while !decoding.insert(address) {
            decoding = self.decoded.wait(decoding).unwrap_or_else(PoisonError::into_inner);
        }
        Claim { decoding: &self.decoding, decoded: &self.decoded, address }
    }

    fn region_at_hand(&self, address: Address) -> Option<PlainRegion> {
        self.regions.get(address)
    }

    fn keep_region(&self, address: Address, plain: PlainRegion) {
        self.regions.put(address, plain);
    }

    /// A chunk's bytes, verified, given to `use_bytes`.
    pub(crate) fn with_chunk<R>(
        &self,
        number: ChunkNumber,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<R, StoreError> {
        let (container, place, plain) = self.decoded_around(number)?;
        Ok(use_bytes(self.verified(container, &place, &plain)?))
    }

    /// The decoded region of a chunk, and where in it the chunk's bytes lie, which are verified.
    pub(crate) fn chunk_in_region(&self, number: ChunkNumber) -> Result<(PlainRegion, Range<usize>), StoreError> {
        let (container, place, plain) = self.decoded_around(number)?;
        let length = self.verified(container, &place, &plain)?.len();
        Ok((plain, place.offset..place.offset + length))
    }

    /// Lets go of a decoded region that is not wanted again.
    pub(crate) fn release(&self, address: Address) {
        self.regions.release(address);
    }

    /// A chunk's container, its place in it, and its region's bytes.
    fn decoded_around(&self, number: ChunkNumber) -> Result<(usize, ChunkPlace, PlainRegion), StoreError> {
        self.following(|| {
            let (container, place) = self.place_of(number)?;
            Ok((container, place, self.region(container, place.region)?))
        })
    }

    /// A chunk's bytes, verified, given to `use_bytes`, unless more than `regions_max` regions have to be decoded for
    /// them.
    pub(crate) fn with_chunk_within<R>(
        &self,
        number: ChunkNumber,
        regions_max: usize,
        use_bytes: impl FnOnce(&[u8]) -> R,
    ) -> Result<Resolved<R>, StoreError> {
        let (container, place, resolved) = self.decoded_around_within(number, regions_max)?;
        Ok(match resolved {
            Resolved::Had(plain) => Resolved::Had(use_bytes(self.verified(container, &place, &plain)?)),
            Resolved::TooMany(regions) => Resolved::TooMany(regions),
        })
    }

    /// Decodes what a chunk lies in, so that it is at hand, unless more than `regions_max` regions have to be decoded.
    /// The chunk is not verified: whoever uses it does that.
    pub(crate) fn decode_within(&self, number: ChunkNumber, regions_max: usize) -> Result<Resolved<()>, StoreError> {
        Ok(match self.decoded_around_within(number, regions_max)?.2 {
            Resolved::Had(_) => Resolved::Had(()),
            Resolved::TooMany(regions) => Resolved::TooMany(regions),
        })
    }

    fn decoded_around_within(
        &self,
        number: ChunkNumber,
        regions_max: usize,
    ) -> Result<(usize, ChunkPlace, Resolved<PlainRegion>), StoreError> {
        self.following(|| {
            let (container, place) = self.place_of(number)?;
            let address = Address { container, region: place.region };
            Ok((container, place, self.region_within(address, regions_max)?))
        })
    }

    /// The bytes of one chunk within its region's plain bytes, after comparing them with the fingerprint.
    pub(crate) fn verified<'p>(
        &self,
        container: usize,
        place: &ChunkPlace,
        plain: &'p [u8],
    ) -> Result<&'p [u8], StoreError> {
        let damaged = |reason: &str| {
            let part = format!("region {}, chunk {}", place.region, place.chunk.number);
            StoreError::damaged(&self.object_name(container), part, reason)
        };
        let bytes = place.of(plain).ok_or_else(|| damaged("it ends beyond its region"))?;
        if self.repository.keys().fingerprint_of(place.chunk.number, bytes) != place.chunk.fingerprint {
            return Err(damaged("its content does not match its fingerprint"));
        }
        Ok(bytes)
    }

    /// Damage of a region.
    pub(crate) fn damaged(&self, address: Address, reason: impl Into<String>) -> StoreError {
        let part = format!("region {}", address.region);
        StoreError::damaged(&self.object_name(address.container), part, reason)
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
        match &self.catalog {
            Some(catalog) => catalog.load(number),
            None => self.with_chunk(number, |bytes| Arc::from(bytes)),
        }
    }
}

//! Indexes of containers and decoded regions, kept for a while, bounded in bytes.

use super::{Address, PlainRegion};
use crate::parallel::lock;
use crate::spares::Spares;
use lru::LruCache;
use siltstone_store::container::ContainerReader;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

/// Bytes that the index of a container takes at most, of content that compresses as most does.
const INDEX_BYTES: usize = 700 << 10;

/// Indexes of containers kept open: those used last, no more of them than so many, and no more bytes than these usually
/// take at most. One is kept in any case.
#[derive(Debug)]
pub(super) struct OpenContainers {
    kept: LruCache<usize, Arc<ContainerReader>>,
    bytes: usize,
    bytes_max: usize,
}

impl OpenContainers {
    pub(super) fn at_most(count: usize) -> Self {
        let count = NonZeroUsize::new(count).unwrap_or(NonZeroUsize::MIN);
        Self { kept: LruCache::new(count), bytes: 0, bytes_max: count.get().saturating_mul(INDEX_BYTES) }
    }

    pub(super) fn get(&mut self, container: usize) -> Option<Arc<ContainerReader>> {
        self.kept.get(&container).cloned()
    }

    pub(super) fn put(&mut self, container: usize, reader: Arc<ContainerReader>) {
        self.bytes += reader.memory_bytes();
        if let Some((_, reader)) = self.kept.push(container, reader) {
            self.bytes -= reader.memory_bytes();
        }
        while self.bytes > self.bytes_max
            && self.kept.len() > 1
            && let Some((_, reader)) = self.kept.pop_lru()
        {
            self.bytes -= reader.memory_bytes();
        }
    }
}

/// Decoded regions of one source or several: those used last, as many as fit. One larger than the bound is not kept.
#[derive(Clone, Debug)]
pub(crate) struct RegionCache(Arc<Mutex<Regions>>);

#[derive(Debug)]
struct Regions {
    decoded: LruCache<Key, PlainRegion>,
    bytes: usize,
    bytes_max: usize,
    /// Sources that had a number so far.
    sources: u64,
    /// Memory of regions that had to go: so several threads keep no more of it between them.
    spares: Spares,
}

/// The part of a cache that may be memory that waits for a region: one byte in so many.
const SPARE_SHARE: usize = 8;

/// A source, and a region of it.
type Key = (u64, Address);

/// The part of a cache that holds the regions of one source.
#[derive(Debug)]
pub(super) struct RegionsOfSource {
    cache: RegionCache,
    source: u64,
}

impl RegionCache {
    /// An empty cache that holds at most this many bytes.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let cache = Self(Arc::default());
        cache.hold_at_most(bytes_max);
        cache
    }

    /// Holds at most this many bytes from now on; what is too much goes.
    pub(crate) fn hold_at_most(&self, bytes_max: usize) {
        let mut regions = lock(&self.0);
        let spare_max = bytes_max / SPARE_SHARE;
        regions.spares.hold_at_most(spare_max);
        regions.bytes_max = bytes_max - spare_max;
        regions.shrink();
    }

    /// Keeps the memory of a region for the next one, unless others have the region too.
    pub(crate) fn recycle(&self, plain: PlainRegion) {
        lock(&self.0).recycle(plain);
    }

    /// The part of another source.
    pub(super) fn for_source(&self) -> RegionsOfSource {
        let source = {
            let mut regions = lock(&self.0);
            regions.sources += 1;
            regions.sources
        };
        RegionsOfSource { cache: self.clone(), source }
    }
}

impl RegionsOfSource {
    pub(super) fn get(&self, address: Address) -> Option<PlainRegion> {
        lock(&self.cache.0).decoded.get(&(self.source, address)).cloned()
    }

    /// Memory to decode a region of this many bytes into.
    pub(super) fn spare(&self, bytes: usize) -> Vec<u8> {
        lock(&self.cache.0).spares.take(bytes)
    }

    pub(super) fn put(&self, address: Address, plain: PlainRegion) {
        lock(&self.cache.0).put((self.source, address), plain);
    }

    /// Lets go of a region that is not wanted again.
    pub(super) fn release(&self, address: Address) {
        let mut regions = lock(&self.cache.0);
        if let Some(plain) = regions.decoded.pop(&(self.source, address)) {
            regions.let_go(plain);
        }
    }
}

impl Default for Regions {
    fn default() -> Self {
        Self { decoded: LruCache::unbounded(), bytes: 0, bytes_max: 0, sources: 0, spares: Spares::default() }
    }
}

impl Regions {
    fn put(&mut self, key: Key, plain: PlainRegion) {
        if plain.capacity() > self.bytes_max {
            return;
        }
        self.bytes += plain.capacity();
        if let Some(before) = self.decoded.put(key, plain) {
            self.let_go(before);
        }
        self.shrink();
    }

    /// Lets go of what is more than the bound.
    fn shrink(&mut self) {
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.decoded.pop_lru()
        {
            self.let_go(oldest);
        }
    }

    fn let_go(&mut self, region: PlainRegion) {
        self.bytes -= region.capacity();
        self.recycle(region);
    }

    fn recycle(&mut self, region: PlainRegion) {
        if let Some(memory) = Arc::into_inner(region) {
            self.spares.give(memory);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunks::ChunkSource;
    use crate::chunks::testing::{Bench, noise};

    fn address(region: usize) -> Address {
        Address { container: 0, region }
    }

    fn bytes(cache: &RegionCache) -> usize {
        lock(&cache.0).bytes
    }

    #[test]
    fn indexes_are_kept_up_to_their_bytes_however_few_they_are() {
        let mut bench = Bench::new((0..4).map(|number| (number, noise(number, 500))));
        for number in 0..4 {
            let region = bench.region(&[number], &[]);
            bench.container(&[region]);
        }
        let chunks = ChunkSource::new(&bench.repository, &bench.manifest);
        let readers: Vec<_> = (0..4).map(|container| chunks.reader(container).expect("an index")).collect();
        let each = readers[0].memory_bytes();
        let mut open = OpenContainers { bytes_max: 2 * each + each / 2, ..OpenContainers::at_most(3) };
        for (container, reader) in readers.iter().enumerate() {
            open.put(container, reader.clone());
        }
        open.put(3, readers[3].clone());
        let is_kept = [0, 1, 2, 3].map(|container| open.get(container).is_some());
        assert_eq!((is_kept, open.bytes), ([false, false, true, true], 2 * each));
        open.bytes_max = 0;
        open.put(0, readers[0].clone());
        assert_eq!((open.kept.len(), open.bytes), (1, each), "one is kept in any case");
    }

    #[test]
    fn the_cache_holds_no_more_bytes_than_it_may_and_forgets_the_oldest_first() {
        let cache = RegionCache::new(115);
        let part = cache.for_source();
        for region in 0..10 {
            part.put(address(region), Arc::new(vec![0; 40]));
            assert!(bytes(&cache) <= 100);
        }
        assert!(part.get(address(7)).is_none() && part.get(address(8)).is_some());
        part.put(address(10), Arc::new(vec![0; 40]));
        assert!(part.get(address(8)).is_some() && part.get(address(9)).is_none(), "8 was used later");
        part.put(address(8), Arc::new(vec![0; 60]));
        assert_eq!(bytes(&cache), 100, "the same region again takes the place of the old one");
        part.put(address(11), Arc::new(vec![0; 102]));
        assert!(part.get(address(11)).is_none());
    }

    #[test]
    fn memory_of_what_had_to_go_is_used_again() {
        let part = RegionCache::new(1000).for_source();
        assert_eq!(part.spare(90).capacity(), 0);
        (0..9).for_each(|region| part.put(address(region), Arc::new(vec![0; 100])));
        assert_eq!(part.spare(40).capacity(), 0, "it is too large");
        assert_eq!(part.spare(90).capacity(), 100);
        assert_eq!(part.spare(90).capacity(), 0, "it is given once");
        let held = part.get(address(1));
        part.put(address(9), Arc::new(vec![0; 100]));
        assert!(part.get(address(2)).is_none(), "it had to go, for 1 was used later");
        assert_eq!(part.spare(90).capacity(), 100);
        (10..18).for_each(|region| part.put(address(region), Arc::new(vec![0; 100])));
        assert!(part.get(address(1)).is_none() && held.is_some());
        assert_eq!(part.spare(90).capacity(), 100, "of those that went, one is kept");
        assert_eq!(part.spare(90).capacity(), 0);
    }

    #[test]
    fn a_cache_that_may_hold_less_lets_go_of_the_oldest_and_of_spare_memory() {
        let cache = RegionCache::new(1000);
        let part = cache.for_source();
        (0..9).for_each(|region| part.put(address(region), Arc::new(vec![0; 100])));
        assert_eq!((bytes(&cache), lock(&cache.0).spares.bytes()), (800, 100));
        cache.hold_at_most(400);
        assert_eq!((bytes(&cache), lock(&cache.0).spares.bytes()), (300, 0));
        let is_kept = [5, 6, 8].map(|region| part.get(address(region)).is_some());
        assert_eq!(is_kept, [false, true, true]);
        cache.hold_at_most(1000);
        (0..9).for_each(|region| part.put(address(region), Arc::new(vec![0; 100])));
        assert_eq!(bytes(&cache), 800);
    }

    #[test]
    fn the_memory_of_a_region_is_recycled_by_the_last_that_has_it() {
        let cache = RegionCache::new(1000);
        let part = cache.for_source();
        part.put(address(0), Arc::new(vec![0; 100]));
        let [one, other] = [0, 0].map(|region| part.get(address(region)).expect("a region"));
        part.release(address(0));
        assert!(part.get(address(0)).is_none() && bytes(&cache) == 0);
        cache.recycle(one);
        assert_eq!(lock(&cache.0).spares.bytes(), 0, "another has it");
        cache.recycle(other);
        assert_eq!(lock(&cache.0).spares.bytes(), 100);
        assert_eq!(part.spare(100).capacity(), 100);
    }

    #[test]
    fn sources_share_the_bytes_and_not_the_regions() {
        let cache = RegionCache::new(115);
        let [one, other] = [cache.for_source(), cache.for_source()];
        one.put(address(0), Arc::new(vec![1; 60]));
        assert!(other.get(address(0)).is_none());
        other.put(address(0), Arc::new(vec![2; 60]));
        assert!(one.get(address(0)).is_none(), "it had to go");
        assert_eq!(other.get(address(0)).as_deref(), Some(&vec![2; 60]));
    }
}

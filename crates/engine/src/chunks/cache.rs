//! Decoded regions kept for a while, bounded in bytes.

use super::{Address, PlainRegion};
use crate::parallel::lock;
use lru::LruCache;
use std::sync::{Arc, Mutex};

/// Decoded regions of one source or several: those used last, as many as fit. One larger than the bound is not kept.
#[derive(Clone, Debug)]
pub struct RegionCache(Arc<Mutex<Regions>>);

#[derive(Debug)]
struct Regions {
    regions: LruCache<Key, PlainRegion>,
    bytes: usize,
    bytes_max: usize,
    /// Sources that had a number so far.
    sources: u64,
}

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
    pub fn new(bytes_max: usize) -> Self {
        let regions = Regions { regions: LruCache::unbounded(), bytes: 0, bytes_max, sources: 0 };
        Self(Arc::new(Mutex::new(regions)))
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
        lock(&self.cache.0).regions.get(&(self.source, address)).cloned()
    }

    pub(super) fn put(&self, address: Address, plain: PlainRegion) {
        lock(&self.cache.0).put((self.source, address), plain);
    }
}

impl Regions {
    fn put(&mut self, key: Key, plain: PlainRegion) {
        if plain.len() > self.bytes_max {
            return;
        }
        self.bytes += plain.len();
        if let Some(before) = self.regions.put(key, plain) {
            self.bytes -= before.len();
        }
        while self.bytes > self.bytes_max
            && let Some((_, oldest)) = self.regions.pop_lru()
        {
            self.bytes -= oldest.len();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(region: usize) -> Address {
        Address { container: 0, region }
    }

    fn bytes(cache: &RegionCache) -> usize {
        lock(&cache.0).bytes
    }

    #[test]
    fn the_cache_holds_no_more_bytes_than_it_may_and_forgets_the_oldest_first() {
        let cache = RegionCache::new(100);
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
        part.put(address(11), Arc::new(vec![0; 101]));
        assert!(part.get(address(11)).is_none());
    }

    #[test]
    fn sources_share_the_bytes_and_not_the_regions() {
        let cache = RegionCache::new(100);
        let [one, other] = [cache.for_source(), cache.for_source()];
        one.put(address(0), Arc::new(vec![1; 60]));
        assert!(other.get(address(0)).is_none());
        other.put(address(0), Arc::new(vec![2; 60]));
        assert!(one.get(address(0)).is_none(), "it had to go");
        assert_eq!(other.get(address(0)).as_deref(), Some(&vec![2; 60]));
    }
}

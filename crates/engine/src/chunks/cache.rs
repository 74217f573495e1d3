//! Decoded regions kept for a while, bounded in bytes.

use super::{Address, PlainRegion};
use lru::LruCache;

/// The regions used last, as many as fit. One larger than the bound is not kept.
#[derive(Debug)]
pub(super) struct RegionCache {
    regions: LruCache<Address, PlainRegion>,
    bytes: usize,
    bytes_max: usize,
}

impl RegionCache {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { regions: LruCache::unbounded(), bytes: 0, bytes_max }
    }

    pub(super) fn get(&mut self, address: Address) -> Option<PlainRegion> {
        self.regions.get(&address).cloned()
    }

    pub(super) fn put(&mut self, address: Address, plain: PlainRegion) {
        if plain.len() > self.bytes_max {
            return;
        }
        self.bytes += plain.len();
        if let Some(before) = self.regions.put(address, plain) {
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
    use std::sync::Arc;

    #[test]
    fn the_cache_holds_no_more_bytes_than_it_may_and_forgets_the_oldest_first() {
        let mut cache = RegionCache::new(100);
        let address = |region| Address { container: 0, region };
        for region in 0..10 {
            cache.put(address(region), Arc::new(vec![0; 40]));
            assert!(cache.bytes <= 100);
        }
        assert!(cache.get(address(7)).is_none() && cache.get(address(8)).is_some());
        cache.put(address(10), Arc::new(vec![0; 40]));
        assert!(cache.get(address(8)).is_some() && cache.get(address(9)).is_none(), "8 was used later");
        cache.put(address(8), Arc::new(vec![0; 60]));
        assert_eq!(cache.bytes, 100, "the same region again takes the place of the old one");
        cache.put(address(11), Arc::new(vec![0; 101]));
        assert!(cache.get(address(11)).is_none());
    }
}

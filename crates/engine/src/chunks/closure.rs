//! Which chunks are needed for these: their bases, and the bases of those.

use super::{Address, ChunkSource};
use roaring::RoaringTreemap;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashSet};

impl ChunkSource<'_> {
    /// The numbers with all their bases, transitively: a region that holds one of them needs all of its bases. Reads indexes only,
    /// and only of containers with deltas.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`] for a number that no container answers for; what reading the indexes gives.
    ///
    /// # Complexity
    /// Every number and base once; an index is opened again for each generation of bases that leads into it.
    pub(crate) fn closure(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let mut all = numbers.clone();
        let mut pending: BTreeMap<usize, Vec<ChunkNumber>> = BTreeMap::new();
        for number in numbers {
            let number = ChunkNumber(number);
            pending.entry(self.container_of(number)?).or_default().push(number);
        }
        let mut seen: HashSet<Address> = HashSet::new();
        while let Some((container, numbers)) = pending.pop_first() {
            if !self.record(container).has_deltas {
                continue;
            }
            let reader = self.reader(container)?;
            for number in numbers {
                let place = reader.index().find(number).ok_or(StoreError::MissingChunk { number })?;
                if !seen.insert(Address { container, region: place.region }) {
                    continue;
                }
                let entry = reader.index().regions().get(place.region);
                for base in entry.iter().flat_map(|entry| &entry.bases) {
                    if all.insert(base.0) {
                        pending.entry(self.container_of(*base)?).or_default().push(*base);
                    }
                }
            }
        }
        Ok(all)
    }
}

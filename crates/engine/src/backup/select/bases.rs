//! The bases of a segment.

use super::Selector;
use super::gather::{Take, lock};
use crate::chunks::{Address, ChunkSource};
use siltstone_similar::region::Offer;
use siltstone_store::region::{ChunkEntry, split_region};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex};

/// Takes those chunks of regions that are bases.
struct Bases<'r> {
    chunks: Arc<ChunkSource<'r>>,
    wanted: BTreeMap<Address, Vec<ChunkNumber>>,
    found: Mutex<HashMap<ChunkNumber, Arc<[u8]>>>,
}

impl Take for Bases<'_> {
    fn take(&self, address: Address, chunks: &[ChunkEntry], plain: &[u8]) {
        let wanted = self.wanted.get(&address).map_or(&[][..], Vec::as_slice);
        let keys = self.chunks.repository().keys();
        let members = split_region(chunks, plain).filter(|(chunk, _)| wanted.contains(&chunk.number));
        let genuine = members.filter(|(chunk, bytes)| keys.fingerprint_of(chunk.number, bytes) == chunk.fingerprint);
        let found: Vec<_> = genuine.map(|(chunk, bytes)| (chunk.number, Arc::from(bytes))).collect();
        lock(&self.found).extend(found);
    }
}

impl Selector<'_, '_> {
    /// Reads what the chunks of a segment may be encoded against; what cannot be read is never offered again.
    pub(super) fn read_bases(&mut self, offers: &[Vec<Offer<ChunkNumber>>]) {
        let chunks = self.gatherer.chunks.clone();
        let numbers: BTreeSet<ChunkNumber> = offers.iter().flatten().map(|offer| offer.number).collect();
        let mut wanted: BTreeMap<Address, Vec<ChunkNumber>> = BTreeMap::new();
        let mut failure = None;
        for number in &numbers {
            match chunks.place_of(*number) {
                Ok((container, place)) => {
                    wanted.entry(Address { container, region: place.region }).or_default().push(*number);
                }
                Err(error) => failure = failure.or(Some(Arc::new(error))),
            }
        }
        if wanted.is_empty() && failure.is_none() {
            return;
        }
        let addresses: Vec<Address> = wanted.keys().copied().collect();
        let bases = Arc::new(Bases { chunks, wanted, found: Mutex::default() });
        let failure = self.gatherer.gather(&addresses, &bases).or(failure);
        if self.observer.is_cancelled() {
            return;
        }
        let found = std::mem::take(&mut *lock(&bases.found));
        let missing: Vec<ChunkNumber> = numbers.into_iter().filter(|number| !found.contains_key(number)).collect();
        if let Some(number) = missing.first().copied() {
            let unknown = || Arc::new(StoreError::MissingChunk { number });
            self.leave_alone(missing, &failure.unwrap_or_else(unknown));
        }
        self.filling.bases = found;
    }
}

//! A segment: regions that are encoded together, so that what their bases lie in is read once.

use super::{Encoding, Region, Repacker, encode_region, out_of_memory};
use crate::chunks::Address;
use siltstone_store::container::ChunkPlace;
use siltstone_store::region::Base;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A segment's text, bytes (MeGA, section 4.2). With its bases, and the segment before, it is what a repacker holds in memory.
const SEGMENT_BYTES: usize = 20 << 20;
/// Tasks that may wait for a worker: a segment's regions, so that whoever hands them out need not wait.
pub(crate) const TASKS_WAITING_MAX: usize = 256;

/// Chunks by their numbers.
type Bases = HashMap<ChunkNumber, Arc<[u8]>>;

impl Repacker<'_> {
    /// Takes a region to be encoded, with the others of its segment.
    pub(super) fn encode(&mut self, region: Region) -> Result<(), StoreError> {
        self.segment_bytes += region.plain.len();
        self.segment.push(region);
        if self.segment_bytes >= SEGMENT_BYTES { self.encode_segment() } else { Ok(()) }
    }

    /// Hands the open segment to the encoders, once they are done with the one before.
    pub(super) fn encode_segment(&mut self) -> Result<(), StoreError> {
        let segment = std::mem::take(&mut self.segment);
        self.segment_bytes = 0;
        let bases = self.read_bases(&segment)?;
        self.take_all_encoded()?;
        for region in segment {
            let Region { class, standing, was_offered, bases: numbers, chunks, plain } = region;
            let of_region: Vec<_> =
                numbers.iter().filter_map(|number| Some((*number, bases.get(number)?.clone()))).collect();
            let ticket = self.encoders.submit(move |encoder| {
                let encoder = encoder.as_mut().ok_or_else(out_of_memory)?;
                let bases: Vec<_> = of_region.iter().map(|(number, bytes)| Base { number: *number, bytes }).collect();
                encode_region(encoder, &bases, was_offered, chunks, &plain)
            });
            self.encoding.push_back(Encoding { class, standing, was_offered, ticket });
        }
        Ok(())
    }

    /// Waits for all that is being encoded, in order.
    pub(super) fn take_all_encoded(&mut self) -> Result<(), StoreError> {
        while !self.encoding.is_empty() {
            self.take_encoded()?;
        }
        Ok(())
    }

    /// Reads the bases of a segment, each region that holds some once. A base that cannot be read is an error only where it is no
    /// choice.
    fn read_bases(&self, segment: &[Region]) -> Result<Bases, StoreError> {
        let chunks = self.chunks;
        let mut is_choice: BTreeMap<ChunkNumber, bool> = BTreeMap::new();
        for region in segment {
            for base in &region.bases {
                *is_choice.entry(*base).or_insert(true) &= region.was_offered;
            }
        }
        let tolerable = |error: &StoreError| error.is_damage() || error.is_not_found();
        let mut wanted: BTreeMap<Address, Vec<ChunkPlace>> = BTreeMap::new();
        for (base, is_choice) in &is_choice {
            match chunks.place_of(*base) {
                Ok((container, place)) => {
                    wanted.entry(Address { container, region: place.region }).or_default().push(place);
                }
                Err(error) if *is_choice && tolerable(&error) => {}
                Err(error) => return Err(error),
            }
        }
        let read = |(address, places): (Address, Vec<ChunkPlace>)| {
            let is_choice = places.iter().all(|place| is_choice.get(&place.chunk.number) == Some(&true));
            let ticket = self.encoders.submit(move |_| {
                let plain = chunks.region(address.container, address.region)?;
                let bytes = |place: &ChunkPlace| {
                    let bytes = chunks.verified(address.container, place, &plain)?;
                    Ok((place.chunk.number, Arc::from(bytes)))
                };
                places.iter().map(bytes).collect::<Result<Vec<(ChunkNumber, Arc<[u8]>)>, StoreError>>()
            });
            (is_choice, ticket)
        };
        let tickets: Vec<_> = wanted.into_iter().map(read).collect();
        let mut bases = Bases::new();
        for (is_choice, ticket) in tickets {
            match ticket.wait().ok_or_else(out_of_memory)? {
                Ok(found) => bases.extend(found),
                Err(error) if is_choice && tolerable(&error) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(bases)
    }
}

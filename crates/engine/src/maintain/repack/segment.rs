//! A segment: regions that are encoded together, so that what their bases lie in is read once. With its bases, and the
//! segment before, it is what a repacker holds in memory.

use super::{Encoding, Region, Repacker};
use crate::EngineError;
use crate::decode::HeldChunk;
use crate::delta::{KeepRule, SEGMENT_BYTES, encode_region};
use crate::held::HeldBytes;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeSet, HashMap};

impl Repacker<'_> {
    /// Takes a region to be encoded, with the others of its segment.
    pub(super) fn encode(&mut self, region: Region) -> Result<(), EngineError> {
        self.segment_bytes += region.plain_bytes;
        self.segment.push(region);
        if self.segment_bytes >= SEGMENT_BYTES { self.encode_segment() } else { Ok(()) }
    }

    /// Hands the open segment to the encoders, once they are done with the one before.
    pub(super) fn encode_segment(&mut self) -> Result<(), EngineError> {
        let segment = std::mem::take(&mut self.segment);
        self.segment_bytes = 0;
        let bases = self.read_bases(&segment)?;
        self.collect_all_encoded()?;
        for region in segment {
            let Region { class, standing, was_offered, bases: numbers, chunks, texts, .. } = region;
            let of_region = numbers.iter().filter_map(|number| Some((*number, bases.get(number)?.clone())));
            let of_region: Vec<_> = of_region.collect();
            let ticket = self.encoders.submit(move |encoder| {
                let members: Vec<&[u8]> = texts.iter().map(AsRef::as_ref).collect();
                let bases = of_region.into_iter().map(|(number, held)| Ok((number, held.bytes()?)));
                let bases = bases.collect::<Result<Vec<_>, StoreError>>()?;
                encode_region(encoder, &bases, chunks, &members, KeepRule::IS_SMALLER)
            });
            self.encoding.push_back(Encoding { class, standing, was_offered, ticket });
        }
        Ok(())
    }

    /// Waits for all that is being encoded, in order.
    pub(super) fn collect_all_encoded(&mut self) -> Result<(), StoreError> {
        while !self.encoding.is_empty() {
            self.collect_encoded()?;
        }
        Ok(())
    }

    /// These chunks, each verified: so many bytes in memory, the rest in a temporary file.
    ///
    /// # Errors
    /// The first reason why one cannot be had.
    pub(crate) fn read(
        &self,
        numbers: &BTreeSet<ChunkNumber>,
        memory_bytes: u64,
    ) -> Result<HashMap<ChunkNumber, HeldChunk>, EngineError> {
        let (found, failures) = self.gatherer.spilled(numbers, memory_bytes)?;
        self.unless_stopped()?;
        match failures.into_iter().next() {
            Some(error) => Err(StoreError::Shared(error).into()),
            None => Ok(found),
        }
    }

    /// Finds the text of a segment's bases, as far as they are there; reads what is not in memory.
    fn read_bases(&self, segment: &[Region]) -> Result<HashMap<ChunkNumber, HeldBytes>, EngineError> {
        let mut numbers: BTreeSet<ChunkNumber> = segment.iter().flat_map(|region| &region.bases).copied().collect();
        let mut in_memory = Vec::new();
        if let Some(texts) = self.texts {
            in_memory.extend(numbers.iter().filter_map(|number| Some((*number, texts.get(*number)?.clone()))));
            numbers.retain(|number| texts.get(*number).is_none());
        }
        let (found, failures) = self.gatherer.chunks(&numbers)?;
        let held = |(number, text)| (number, HeldBytes::Plain(text));
        let mut found: HashMap<_, _> = found.into_iter().map(held).collect();
        found.extend(in_memory);
        self.unless_stopped()?;
        match failures.into_iter().find(|error| !error.is_damage() && !error.is_not_found()) {
            Some(error) => Err(StoreError::Shared(error).into()),
            None => Ok(found),
        }
    }
}

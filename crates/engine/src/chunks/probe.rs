//! Looking for damage where it lies: regions are read one by one, and of one that cannot be decoded whatever it hangs
//! on.

use super::{Address, ChunkSource};
use roaring::RoaringTreemap;
use siltstone_store::StoreError;
use siltstone_store::container::ContainerRecord;
use siltstone_store::region::split_region;
use std::collections::HashSet;

/// Findings on the regions read.
#[derive(Debug, Default)]
pub(crate) struct Probe {
    /// The chunks that are lost where they lie; not those that merely hang on them.
    pub(crate) damaged: RoaringTreemap,
    /// Each damage, in words.
    pub(crate) errors: Vec<StoreError>,
    seen: HashSet<Address>,
}

impl Probe {
    /// Reads a region.
    ///
    /// # Errors
    /// Errors of the storage. Damage is noted.
    pub(crate) fn read(&mut self, chunks: &ChunkSource<'_>, address: Address) -> Result<(), StoreError> {
        let mut pending = vec![address];
        while let Some(address) = pending.pop() {
            if !self.seen.insert(address) {
                continue;
            }
            let Err(error) = chunks.verify_region(address) else { continue };
            match chunks.bases_of(address) {
                Ok(bases) if !bases.is_empty() && chunks.is_sealed(address) => {
                    pending.extend(bases.iter().map(|base| base.address));
                }
                _ => {
                    let numbers = chunks.numbers_in(address);
                    self.note(error, &chunks.record(address.container), numbers.as_ref())?;
                }
            }
        }
        Ok(())
    }

    /// Notes that some chunks are lost, of those that the container answers for: these, or all.
    pub(crate) fn note(
        &mut self,
        error: StoreError,
        record: &ContainerRecord,
        numbers: Option<&RoaringTreemap>,
    ) -> Result<(), StoreError> {
        if !error.is_damage() {
            return Err(error);
        }
        for run in &record.chunks {
            match numbers {
                Some(numbers) => self.damaged.extend(run.range().filter(|number| numbers.contains(*number))),
                None => {
                    self.damaged.insert_range(run.range());
                }
            }
        }
        self.errors.push(error);
        Ok(())
    }
}

impl ChunkSource<'_> {
    /// Tells whether a region can be read and decoded, and each of its chunks has its fingerprint.
    pub(crate) fn is_sound(&self, address: Address) -> bool {
        self.verify_region(address).is_ok()
    }

    /// Decodes a region and holds each of its chunks against its fingerprint.
    fn verify_region(&self, address: Address) -> Result<(), StoreError> {
        let plain = self.region(address.container, address.region)?;
        let reader = self.reader(address.container)?;
        let keys = self.repository.keys();
        let listed = reader.index().regions().get(address.region).map_or(&[][..], |entry| &entry.chunks);
        let is_sound = split_region(listed, &plain)
            .all(|(chunk, bytes)| keys.fingerprint_of(chunk.number, bytes) == chunk.fingerprint);
        if is_sound { Ok(()) } else { Err(self.damaged(address, "its content does not match its fingerprints")) }
    }

    /// The bytes of a region as it is stored, and those of its text; `None` if the container's index cannot be read.
    pub(crate) fn sizes(&self, address: Address) -> Option<(u32, u32)> {
        let reader = self.reader(address.container).ok()?;
        let entry = reader.index().regions().get(address.region)?;
        Some((entry.sealed_bytes, entry.plain_bytes))
    }

    /// The numbers of a region's chunks; `None` if the container's index cannot be read.
    fn numbers_in(&self, address: Address) -> Option<RoaringTreemap> {
        let reader = self.reader(address.container).ok()?;
        Some(reader.index().regions().get(address.region)?.chunks.iter().map(|chunk| chunk.number.0).collect())
    }

    /// Tells whether a region's bytes are those that were sealed; its bases are not looked at.
    pub(crate) fn is_sealed(&self, address: Address) -> bool {
        let reader = self.reader(address.container);
        reader.is_ok_and(|reader| reader.copy_region(self.repository.storage(), address.region).is_ok())
    }
}

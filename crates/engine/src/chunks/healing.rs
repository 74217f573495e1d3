//! Reading what is damaged with its parity: whatever fails of a container is taken from its bytes as parity restores
//! them.
//!
//! All that is read of containers comes by here. Nothing is healed twice in a row: the repository keeps the last
//! container it healed, and remembers those that cannot be.

use super::ChunkSource;
use super::layout::Held;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::region::EncodedRegion;
use siltstone_store::storage::ObjectName;
use siltstone_store::{SeriesId, StoreError};
use std::ops::Range;

impl ChunkSource<'_> {
    /// A container's index.
    pub(super) fn open(&self, held: &Held) -> Result<ContainerReader, StoreError> {
        let (storage, keys) = (self.repository.storage(), self.repository.keys());
        let (series, record) = match &held.lent {
            Some((lender, record)) => (lender.series, record),
            None => (self.series, &held.record),
        };
        let opened = ContainerReader::open(storage, keys, series, record);
        let reader =
            self.or_healed((series, record), opened, |object| ContainerReader::open_in(keys, series, record, object))?;
        Ok(match &held.lent {
            Some((lender, _)) => reader.renumbered(|number| lender.number_here(number)),
            None => reader,
        })
    }

    /// The series that a container is of, and the record that it keeps.
    pub(crate) fn source_of<'c>(&self, reader: &'c ContainerReader) -> (SeriesId, &'c ContainerRecord) {
        match reader.object_name() {
            ObjectName::Container(_, series, _) => (*series, reader.record()),
            _ => (self.series, reader.record()),
        }
    }

    /// A region as it was pushed, by one range read.
    pub(crate) fn encoded(&self, reader: &ContainerReader, region: usize) -> Result<EncodedRegion, StoreError> {
        let read = reader.read_sealed(self.repository.storage(), region);
        let sealed =
            self.or_healed(self.source_of(reader), read, |object| Ok(reader.sealed_in(object, region)?.to_vec()))?;
        self.unseal(reader, region, sealed)
    }

    /// Neighbouring regions, still sealed, by one range read; each for [`Self::unseal`].
    pub(crate) fn sealed_run(
        &self,
        reader: &ContainerReader,
        regions: Range<usize>,
    ) -> Result<Vec<Vec<u8>>, StoreError> {
        let read = reader.read_sealed_run(self.repository.storage(), regions.clone());
        self.or_healed(self.source_of(reader), read, |object| {
            regions.clone().map(|region| Ok(reader.sealed_in(object, region)?.to_vec())).collect()
        })
    }

    /// A region as it was pushed, from its sealed bytes.
    pub(crate) fn unseal(
        &self,
        reader: &ContainerReader,
        region: usize,
        sealed: Vec<u8>,
    ) -> Result<EncodedRegion, StoreError> {
        let unsealed = reader.unseal_region(region, sealed);
        self.or_healed(self.source_of(reader), unsealed, |object| {
            reader.unseal_region(region, reader.sealed_in(object, region)?.to_vec())
        })
    }

    /// The result or, where that is damage, what `take` finds in the container as the storage holds it, if a cache may
    /// be at fault, or else in the healed one.
    pub(crate) fn or_healed<R>(
        &self,
        (series, record): (SeriesId, &ContainerRecord),
        result: Result<R, StoreError>,
        take: impl Fn(&[u8]) -> Result<R, StoreError>,
    ) -> Result<R, StoreError> {
        let error = match result {
            Err(error) if error.is_damage() => error,
            result => return result,
        };
        let (storage, name) = (self.repository.storage(), record.object_name(series));
        if storage.drop_cached(&name)
            && let Ok(object) = storage.read(&name, name.bytes_max())
            && let Ok(taken) = take(&object)
        {
            return Ok(taken);
        }
        match self.repository.heal(series, record) {
            Some(object) => take(&object),
            None => Err(error),
        }
    }
}

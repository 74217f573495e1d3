//! Filling containers with encoded regions and handing them to whoever stores them. Backup and forget both end here.

use siltstone_store::container::{ContainerBuilder, ContainerKind, ContainerRecord, SealedContainer};
use siltstone_store::region::EncodedRegion;
use siltstone_store::repository::Repository;
use siltstone_store::series::SeriesWriter;
use siltstone_store::{ContainerId, SeriesId, StoreError};
use std::sync::atomic::{AtomicU32, Ordering};

/// Where finished containers go.
pub(crate) trait ContainerSink: Sync {
    /// An identity no other container of the series has.
    fn new_id(&self) -> ContainerId;
    /// Takes the container.
    fn put(&self, container: &SealedContainer) -> Result<(), StoreError>;
}

impl ContainerSink for SeriesWriter<'_> {
    fn new_id(&self) -> ContainerId {
        self.new_container_id()
    }

    fn put(&self, container: &SealedContainer) -> Result<(), StoreError> {
        SeriesWriter::put(self, container)
    }
}

/// A sink for dry runs: containers are made in full, so that their sizes are true, and dropped.
#[derive(Debug)]
pub(crate) struct DrySink {
    lease: u64,
    next_serial: AtomicU32,
}

impl DrySink {
    /// A sink that names containers as a writer under this lease would.
    pub(crate) fn new(lease: u64) -> Self {
        Self { lease, next_serial: AtomicU32::new(0) }
    }
}

impl ContainerSink for DrySink {
    fn new_id(&self) -> ContainerId {
        ContainerId { lease: self.lease, serial: self.next_serial.fetch_add(1, Ordering::Relaxed) }
    }

    fn put(&self, _: &SealedContainer) -> Result<(), StoreError> {
        Ok(())
    }
}

/// Containers in the making, one per kind.
pub(crate) struct Packer<'a> {
    repository: &'a Repository,
    series: SeriesId,
    sink: &'a dyn ContainerSink,
    data: Option<ContainerBuilder>,
    metadata: Option<ContainerBuilder>,
    packed: Packed,
}

/// Summary of a packer.
#[derive(Debug, Default)]
pub(crate) struct Packed {
    /// The containers, in the order they were finished.
    pub(crate) containers: Vec<ContainerRecord>,
    /// How many of them, the first ones, were read back for a checkpoint.
    pub(crate) verified: usize,
    /// Sealed bytes of data regions.
    pub(crate) data_region_bytes: u64,
    /// Sealed bytes of metadata regions.
    pub(crate) metadata_region_bytes: u64,
}

impl Packed {
    /// The bytes of all containers made.
    pub(crate) fn object_bytes(&self) -> u64 {
        self.containers.iter().map(|record| record.object_bytes).sum()
    }

    /// The containers that were not read back yet.
    pub(crate) fn unverified(&self) -> &[ContainerRecord] {
        self.containers.get(self.verified..).unwrap_or_default()
    }
}

impl<'a> Packer<'a> {
    /// A packer for one series.
    pub(crate) fn new(repository: &'a Repository, series: SeriesId, sink: &'a dyn ContainerSink) -> Self {
        Self { repository, series, sink, data: None, metadata: None, packed: Packed::default() }
    }

    /// Adds a region to the open container of its kind; a full one is handed to the sink first.
    pub(crate) fn push(&mut self, kind: ContainerKind, region: &EncodedRegion) -> Result<(), StoreError> {
        let open = match kind {
            ContainerKind::Data => &mut self.data,
            ContainerKind::Metadata => &mut self.metadata,
        };
        if let Some(full) = open.take_if(|builder| !builder.fits(region)) {
            self.packed.containers.push(hand_over(full, self.sink)?);
        }
        let builder = match open {
            Some(builder) => builder,
            None => open.insert(begin(self.repository, self.series, self.sink, kind)?),
        };
        builder.push(region)?;
        let bytes = region.payload.len() as u64;
        match kind {
            ContainerKind::Data => self.packed.data_region_bytes += bytes,
            ContainerKind::Metadata => self.packed.metadata_region_bytes += bytes,
        }
        Ok(())
    }

    /// Hands over what is open; gives all that was made so far.
    pub(crate) fn flush(&mut self) -> Result<&Packed, StoreError> {
        for builder in [self.data.take(), self.metadata.take()].into_iter().flatten() {
            self.packed.containers.push(hand_over(builder, self.sink)?);
        }
        Ok(&self.packed)
    }

    /// Hands over what is open.
    pub(crate) fn finish(mut self) -> Result<Packed, StoreError> {
        self.flush()?;
        Ok(self.packed)
    }
}

/// Begins a container, to be filled to what the repository's settings say.
pub(crate) fn begin(
    repository: &Repository,
    series: SeriesId,
    sink: &dyn ContainerSink,
    kind: ContainerKind,
) -> Result<ContainerBuilder, StoreError> {
    let builder = ContainerBuilder::new(repository.keys(), series, sink.new_id(), kind)?;
    Ok(builder.filled_to(repository.container_bytes(kind)))
}

/// Finishes a container and gives it to the sink.
pub(crate) fn hand_over(builder: ContainerBuilder, sink: &dyn ContainerSink) -> Result<ContainerRecord, StoreError> {
    let container = builder.finish()?;
    sink.put(&container)?;
    Ok(container.record)
}

//! Writers in slow motion: leases taken and containers put one call at a time.

use super::Sandbox;
use siltstone_store::StoreError;
use siltstone_store::container::{ContainerBuilder, ContainerKind, SealedContainer};
use siltstone_store::manifest::LeaseHolder;
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter};
use siltstone_store::storage::{Fault, SimulatedDisk};
use std::sync::Arc;
use std::time::Duration;

/// A process of this machine that had this process's number before it, so it is known to be dead.
pub fn dead_holder() -> LeaseHolder {
    let this = this_process();
    LeaseHolder { started_ticks: this.started_ticks + 1, ..this }
}

/// A process on a machine that cannot be seen from here, so it may live.
pub fn distant_holder() -> LeaseHolder {
    let (host, user) = ("elsewhere".into(), "user".into());
    LeaseHolder { host, user, pid: 17, boot: "its/own/start".into(), started_ticks: 1 }
}

/// This process, as its own lease names it.
fn this_process() -> LeaseHolder {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    disk.set_fault(Fault::PowerLossAfter { writes: 1 });
    sandbox.try_backup(&sandbox.options()).expect_err("the power went after the lease");
    let repository = sandbox.at(disk.crash(SimulatedDisk::NOTHING_REACHED)).repository();
    let manifest = repository.manifest(repository.keys().series_id("test")).expect("a manifest").expect("a manifest");
    manifest.lease.expect("a lease").holder
}

/// Takes the lease of the series "test".
pub fn acquire(repository: &Repository, holder: LeaseHolder, take_over: bool) -> Result<SeriesWriter<'_>, StoreError> {
    SeriesWriter::acquire(repository, &LeaseRequest { take_over, ..LeaseRequest::new("test", holder, "backup") })
}

/// Takes the lease as a distant holder that renews it this often.
pub fn acquire_renewed(repository: &Repository, every: Duration) -> SeriesWriter<'_> {
    let request = LeaseRequest::new("test", distant_holder(), "backup");
    SeriesWriter::acquire(repository, &LeaseRequest { renewed_every: Some(every), ..request }).expect("the lease")
}

/// A container that holds the next chunk, for this writer to put.
pub fn container(repository: &Repository, writer: &SeriesWriter<'_>) -> SealedContainer {
    let (bytes, number) = (super::noise(9, 10_000), writer.manifest().next_data);
    let fingerprint = repository.keys().fingerprint_of(number, &bytes);
    let chunks = vec![ChunkEntry { number, fingerprint, length: 10_000 }];
    let region = EncodedRegion::encode(&mut RegionEncoder::fast(1), chunks, &bytes).expect("a region");
    let (keys, id) = (repository.keys(), writer.new_container_id());
    let mut builder = ContainerBuilder::new(keys, writer.series(), id, ContainerKind::Data).expect("a builder");
    builder.push(&region).expect("a region that fits");
    builder.finish().expect("a container")
}

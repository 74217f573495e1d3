//! The contract of storages, held through a server: over a simulated disk and a folder, with TLS and without.

use crate::common::Served;
use siltstone_serve::{Right, SeriesScope};
use siltstone_store::storage::conformance::Contract;
use siltstone_store::storage::{Disk, SimulatedDisk, Storage};
use std::sync::Arc;

fn every_storage(contract: Contract) {
    let folder = tempfile::tempdir().unwrap();
    let storages: [(Arc<dyn Storage>, bool); 2] =
        [(Arc::new(SimulatedDisk::new()), true), (Arc::new(Disk::open(folder.path()).unwrap()), false)];
    for (storage, tls) in storages {
        let served = Served::over(storage, tls, &[("all", SeriesScope::All, &Right::ALL)], |options| options);
        contract(&served.client("all"));
        served.server.stop();
    }
}

siltstone_store::contracts!(every_storage);

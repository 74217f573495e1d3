//! The contract of storages, held over object stores in memory and in a folder.

use object_store::ObjectStore;
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use siltstone_remote::{ObjectStorage, Retries};
use siltstone_store::storage::conformance::Contract;
use std::sync::Arc;

fn every_storage(contract: Contract) {
    let folder = tempfile::tempdir().unwrap();
    let stores: [(Arc<dyn ObjectStore>, &str); 3] = [
        (Arc::new(InMemory::new()), ""),
        (Arc::new(InMemory::new()), "deep/prefix"),
        (Arc::new(LocalFileSystem::new_with_prefix(folder.path()).unwrap()), "prefix"),
    ];
    for (store, prefix) in stores {
        contract(&ObjectStorage::new(store, prefix, "a store for tests", Retries::default()).unwrap());
    }
}

siltstone_store::contracts!(every_storage);

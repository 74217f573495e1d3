//! A small repository, its holders and its snapshots, for all of these tests.

use siltstone_store::config::ChunkerSettings;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::manifest::{LeaseHolder, Snapshot, SnapshotStatistics};
use siltstone_store::repository::Repository;
use siltstone_store::storage::Storage;
use siltstone_store::{ChunkNumber, SnapshotId, StoreError, Time};
use std::sync::Arc;

pub(crate) const PASSWORD: &[u8] = b"password";

/// Makes a repository that this password opens.
pub(crate) fn try_init(storage: Arc<dyn Storage>, password: &[u8]) -> Result<Repository, StoreError> {
    let chunker = ChunkerSettings { name: "gear-nc2".into(), min_bytes: 8192, average_bytes: 16384, max_bytes: 65536 };
    Repository::init(storage, password, &label(), Argon2Cost::TEST, chunker)
}

/// Makes a repository that [`PASSWORD`] opens.
pub(crate) fn init(storage: Arc<dyn Storage>) -> Repository {
    try_init(storage, PASSWORD).expect("a repository")
}

pub(crate) fn open(storage: Arc<dyn Storage>) -> Repository {
    Repository::open(storage, PASSWORD).expect("it opens")
}

pub(crate) fn label() -> KeyLabel {
    KeyLabel { created: Time::default(), host: "host".into(), user: "user".into() }
}

/// A process that may hold leases.
pub(crate) fn holder(pid: u32) -> LeaseHolder {
    let boot = "machine/boot/space".into();
    LeaseHolder { host: "host".into(), user: "user".into(), pid, boot, started_ticks: 1 }
}

/// A snapshot without a catalog.
pub(crate) fn snapshot(id: SnapshotId) -> Snapshot {
    Snapshot {
        id,
        time: Time::default(),
        made: Time::default(),
        host: "host".into(),
        user: "user".into(),
        paths: Vec::new(),
        tags: Vec::new(),
        description: None,
        program: "test".into(),
        root: ChunkNumber::METADATA_FIRST,
        record: ChunkNumber::METADATA_FIRST,
        statistics: SnapshotStatistics::default(),
        partial: false,
        deleted: None,
    }
}

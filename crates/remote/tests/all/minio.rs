//! The contract of storages, held against a real server, MinIO, where it is installed; and what the server's refusals
//! look like. Tests that have no server say so by name.

use crate::servers::buckets::{BUCKET, Minio, keeps_every_contract};
use siltstone_store::storage::conformance::{container, manifest};
use siltstone_store::storage::{Listing, Storage, StorageError};
use siltstone_testbed::minio::SECRET;

#[test]
fn minio_keeps_every_contract() {
    let Some(server) = Minio::start("minio_keeps_every_contract") else { return };
    keeps_every_contract(|prefix| server.storage(prefix));
}

#[test]
fn minio_honours_the_condition() {
    let Some(server) = Minio::start("minio_honours_the_condition") else { return };
    let storage = server.storage("probed");
    storage.probe().unwrap();
    assert_eq!(storage.list(Listing::All).unwrap(), [], "a probe leaves nothing");
}

#[test]
fn refusals_name_the_place_and_what_is_wrong() {
    let Some(server) = Minio::start("refusals_name_the_place_and_what_is_wrong") else { return };
    let stranger = server.storage_with(BUCKET, "x", "another secret");
    let no_bucket = server.storage_with("no-such-bucket", "x", SECRET);
    let address = server.host();
    let refused = [
        stranger.read(&manifest(1), 10).unwrap_err(),
        stranger.create(&manifest(1), b"x").unwrap_err(),
        stranger.list(Listing::All).unwrap_err(),
        stranger.delete(&manifest(1)).unwrap_err(),
        stranger.put(&container(1), b"x").and_then(|()| stranger.barrier()).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains(&address) && said.contains("credentials") && !said.contains("another secret"), "{said}");
    }
    let absent = [
        no_bucket.list(Listing::All).unwrap_err(),
        no_bucket.read(&manifest(1), 10).unwrap_err(),
        no_bucket.create(&manifest(1), b"x").unwrap_err(),
    ];
    for error in absent {
        assert!(matches!(&error, StorageError::NoBucket { location } if location.contains(&address)), "{error:?}");
    }
}

//! The contract of storages, held against emulators of clouds: Azurite for Azure Blob Storage, fake-gcs-server for
//! Google Cloud Storage, where they are installed; what they refuse, and how that is told. Tests that have no server
//! say so by name.

use crate::servers::buckets::{Azurite, BUCKET, FakeGcs, keeps_every_contract};
use siltstone_store::storage::conformance::{container, exists, manifest};
use siltstone_store::storage::{Listing, Storage, StorageError};

/// Another key of the form that Azure's have.
const WRONG_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==";

#[test]
fn azurite_keeps_every_contract() {
    let Some(server) = Azurite::start("azurite_keeps_every_contract") else { return };
    keeps_every_contract(|prefix| server.storage(prefix));
}

#[test]
fn fake_gcs_keeps_every_contract() {
    let Some(server) = FakeGcs::start("fake_gcs_keeps_every_contract") else { return };
    keeps_every_contract(|prefix| server.storage(prefix));
}

#[test]
fn azurite_honours_the_condition() {
    let Some(server) = Azurite::start("azurite_honours_the_condition") else { return };
    let storage = server.storage("probed");
    storage.probe().unwrap();
    assert_eq!(storage.list(Listing::All).unwrap(), [], "a probe leaves nothing");
    let headers = ["x-ms-version: 2023-11-03", "x-ms-blob-type: BlockBlob", "If-None-Match: *"];
    let written = || server.asked("PUT", &format!("{BUCKET}/raw"), "", &headers, "x");
    assert!(written().starts_with("HTTP/1.1 201"));
    let refused = written();
    assert!(refused.starts_with("HTTP/1.1 409") && refused.contains("BlobAlreadyExists"), "{refused}");
}

#[test]
fn fake_gcs_honours_the_condition() {
    let Some(server) = FakeGcs::start("fake_gcs_honours_the_condition") else { return };
    let storage = server.storage("probed");
    storage.probe().unwrap();
    assert_eq!(storage.list(Listing::All).unwrap(), [], "a probe leaves nothing");
}

#[test]
fn fake_gcs_itself_takes_no_upload_by_the_xml_api_and_lists_from_the_beginning() {
    let test = "fake_gcs_itself_takes_no_upload_by_the_xml_api_and_lists_from_the_beginning";
    let Some(server) = FakeGcs::start(test) else { return };
    let upload = server.asked("PUT", &format!("/{BUCKET}/x"), &["x-goog-if-generation-match: 0"], "x");
    assert!(upload.starts_with("HTTP/1.1 400") && upload.contains("invalid uploadType"), "{upload}");
    server.storage("a").create(&manifest(1), b"x").unwrap();
    let listed = server.asked("GET", &format!("/{BUCKET}?list-type=2&start-after=z"), &[], "");
    assert!(listed.contains(&manifest(1).to_string()), "it honours offsets: {listed}");
}

#[test]
fn azurite_tells_who_may_not_do_what() {
    let Some(server) = Azurite::start("azurite_tells_who_may_not_do_what") else { return };
    let stranger = server.storage_with(BUCKET, "x", ("AZURE_ACCOUNT_KEY", WRONG_KEY));
    let refused = [
        stranger.read(&manifest(1), 10).unwrap_err(),
        stranger.create(&manifest(1), b"x").unwrap_err(),
        stranger.list(Listing::All).unwrap_err(),
        stranger.delete(&manifest(1)).unwrap_err(),
        stranger.delete_many(&[manifest(1)]).unwrap_err(),
        stranger.put(&container(1), b"x").and_then(|()| stranger.barrier()).unwrap_err(),
    ];
    for error in refused {
        assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
        let said = error.to_string();
        assert!(said.contains("az:bucket:/x") && said.contains("credentials"), "{said}");
        assert!(!said.contains(WRONG_KEY) && !said.contains('\n'), "{said}");
    }
}

#[test]
fn azurite_tells_that_a_container_is_missing() {
    let Some(server) = Azurite::start("azurite_tells_that_a_container_is_missing") else { return };
    let absent = server.storage_with("no-such-container", "x", ("AZURE_ACCOUNT_KEY", Azurite::KEY));
    for error in [
        absent.list(Listing::All).unwrap_err(),
        absent.read(&manifest(1), 10).unwrap_err(),
        absent.create(&manifest(1), b"x").unwrap_err(),
    ] {
        assert!(matches!(&error, StorageError::NoBucket { .. }), "{error:?}");
    }
}

#[test]
fn what_azurite_does_not_delete_is_told_at_once_and_why() {
    let Some(server) = Azurite::start("what_azurite_does_not_delete_is_told_at_once_and_why") else { return };
    let storage = server.storage_without_deleting("x");
    let names = [container(1), container(2), container(3)];
    for name in &names {
        storage.put(name, b"x").unwrap();
    }
    storage.barrier().unwrap();
    let error = storage.delete(&names[0]).unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");
    let error = storage.delete_many(&names).unwrap_err();
    assert!(matches!(error, StorageError::Refused { .. }), "{error:?}");

    let path = format!("{BUCKET}/x/{}", names[1]);
    let lease = ["x-ms-version: 2023-11-03", "x-ms-lease-action: acquire", "x-ms-lease-duration: -1"];
    assert!(server.asked("PUT", &path, "comp=lease", &lease, "").starts_with("HTTP/1.1 201"));
    let owner = server.storage("x");
    for error in [owner.delete(&names[1]).unwrap_err(), owner.delete_many(&names).unwrap_err()] {
        let said = format!("{error}: {:?}", std::error::Error::source(&error).map(ToString::to_string));
        assert!(said.contains("lease") && !said.contains("taken"), "{said}");
        assert!(!matches!(error, StorageError::Unavailable { .. }), "it is not tried again: {error:?}");
    }
    assert_eq!(names.map(|name| exists(&owner, &name)), [false, true, false]);
}

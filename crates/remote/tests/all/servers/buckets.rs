//! Servers of object stores, each with an empty bucket on this machine's loopback: MinIO for S3, Azurite for Azure,
//! fake-gcs-server for Google. They end with the value.

use super::empty_folder;
use siltstone_remote::{ObjectStorage, Place, Traffic, Variables, connect};
use siltstone_store::storage::conformance::all;
use siltstone_testbed::{emulators, minio};
use tempfile::TempDir;

/// The bucket of each server.
pub(crate) const BUCKET: &str = minio::BUCKET;

/// Holds every contract over new storages, each below a prefix of its own.
pub(crate) fn keeps_every_contract(below: impl Fn(&str) -> ObjectStorage) {
    for (name, contract) in all() {
        println!("{name}");
        contract(&below(name));
    }
}

/// The storage at an address, with these variables.
pub(crate) fn connected(address: &str, variables: &[(&str, &str)]) -> ObjectStorage {
    let Ok(Place::Bucket(bucket)) = Place::parse(address.as_ref()) else { panic!("{address} is a bucket") };
    let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    connect(&bucket, &variables.collect::<Variables>(), &Traffic::default()).unwrap()
}

/// Tells whether a program is there; a line says which test does nothing where it is not.
fn is_there(test: &str, name: &str, is_installed: bool) -> bool {
    if !is_installed {
        eprintln!("SKIPPED: {test} needs {name}, which is not installed: cargo xtask servers");
    }
    is_installed
}

/// A server that speaks S3.
pub(crate) struct Minio {
    server: minio::Minio,
    /// Goes after the server.
    _work: TempDir,
}

impl Minio {
    /// Starts a server; `None`, and a line that says which test does nothing, where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        is_there(test, "MinIO", minio::Minio::is_installed()).then(|| {
            let work = empty_folder();
            Self { server: minio::Minio::start(work.path()).unwrap(), _work: work }
        })
    }

    /// The host and the port of the server.
    pub(crate) fn host(&self) -> String {
        self.server.address().to_string()
    }

    /// The storage below a prefix of the bucket.
    pub(crate) fn storage(&self, prefix: &str) -> ObjectStorage {
        self.storage_with(BUCKET, prefix, minio::SECRET)
    }

    /// The storage below a prefix of a bucket, for one who knows this secret.
    pub(crate) fn storage_with(&self, bucket: &str, prefix: &str, secret: &str) -> ObjectStorage {
        let variables = [("AWS_ACCESS_KEY_ID", minio::USER), ("AWS_SECRET_ACCESS_KEY", secret)];
        connected(&format!("s3:http://{}/{bucket}/{prefix}", self.host()), &variables)
    }
}

/// Azurite, which emulates Azure Blob Storage.
pub(crate) struct Azurite {
    server: emulators::Azurite,
    /// Goes after the server.
    _work: TempDir,
}

impl Azurite {
    pub(crate) const KEY: &str = emulators::Azurite::KEY;

    /// Starts a server; `None`, and a line that says which test does nothing, where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        is_there(test, "Azurite", emulators::Azurite::is_installed()).then(|| {
            let work = empty_folder();
            Self { server: emulators::Azurite::start(work.path()).unwrap(), _work: work }
        })
    }

    /// Makes a request of one who may do everything, and returns the whole answer.
    pub(crate) fn asked(&self, method: &str, path: &str, query: &str, headers: &[&str], body: &str) -> String {
        self.server.asked(method, path, query, headers, body).unwrap()
    }

    /// The storage below a prefix of the container.
    pub(crate) fn storage(&self, prefix: &str) -> ObjectStorage {
        self.storage_with(BUCKET, prefix, ("AZURE_ACCOUNT_KEY", Self::KEY))
    }

    /// The storage below a prefix of the container, for one who may not delete.
    pub(crate) fn storage_without_deleting(&self, prefix: &str) -> ObjectStorage {
        let signature = emulators::Azurite::signature_without_deleting();
        self.storage_with(BUCKET, prefix, ("AZURE_ACCOUNT_SAS", &signature))
    }

    /// The storage below a prefix of a container, with this variable for credentials.
    pub(crate) fn storage_with(&self, container: &str, prefix: &str, credentials: (&str, &str)) -> ObjectStorage {
        let account = emulators::Azurite::ACCOUNT;
        let endpoint = format!("http://{}/{account}", self.server.address());
        let variables = [("AZURE_ACCOUNT_NAME", account), ("AZURE_ENDPOINT", &endpoint), credentials];
        connected(&format!("az:{container}:/{prefix}"), &variables)
    }
}

/// fake-gcs-server, which emulates Google Cloud Storage.
pub(crate) struct FakeGcs {
    server: emulators::FakeGcs,
    /// Goes after the server.
    _work: TempDir,
}

impl FakeGcs {
    /// Starts a server; `None`, and a line that says which test does nothing, where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        is_there(test, "fake-gcs-server", emulators::FakeGcs::is_installed()).then(|| {
            let work = empty_folder();
            Self { server: emulators::FakeGcs::start(work.path()).unwrap(), _work: work }
        })
    }

    /// Makes one request past the translator, and returns the whole answer.
    pub(crate) fn asked(&self, method: &str, target: &str, headers: &[&str], body: &str) -> String {
        self.server.asked(method, target, headers, body).unwrap()
    }

    /// The storage below a prefix of the bucket.
    pub(crate) fn storage(&self, prefix: &str) -> ObjectStorage {
        self.storage_in(BUCKET, prefix)
    }

    /// The storage below a prefix of a bucket.
    pub(crate) fn storage_in(&self, bucket: &str, prefix: &str) -> ObjectStorage {
        let place = emulators::FakeGcs::place(self.server.address(), bucket, prefix);
        let variables: Vec<_> = place.variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        connected(&place.address, &variables)
    }
}

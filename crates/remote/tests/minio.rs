//! The contract of storages, held against a real server, MinIO, where it is installed; and what the server's refusals
//! look like. Tests that have no server say so by name.

#![allow(missing_docs)]

use siltstone_remote::{ObjectStorage, Place, Variables, connect};
use siltstone_store::storage::conformance::{all, container, manifest};
use siltstone_store::storage::{Listing, Storage, StorageError};
use std::env;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;

const USER: &str = "silt-tests";
const SECRET: &str = "silt-tests-secret";

/// A server of its own; it ends with the value.
struct Server {
    process: Child,
    port: u16,
    _folder: TempDir,
}

impl Server {
    /// Starts a server with a bucket; `None`, and a line that says which test does nothing, where there is none.
    fn start(test: &str) -> Option<Self> {
        let Some(program) = program() else {
            eprintln!("SKIPPED: {test} needs MinIO, which is not installed: cargo xtask minio");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        // Each folder of a server's drive is a bucket.
        std::fs::create_dir_all(folder.path().join("data/bucket")).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let process = Command::new(program)
            .args(["server", "--quiet", "--address", &format!("127.0.0.1:{port}")])
            .args(["--console-address", "127.0.0.1:0"])
            .arg(folder.path().join("data"))
            .env("MINIO_ROOT_USER", USER)
            .env("MINIO_ROOT_PASSWORD", SECRET)
            .env("HOME", folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self { process, port, _folder: folder };
        server.wait_until_ready();
        Some(server)
    }

    fn wait_until_ready(&self) {
        for _ in 0..600 {
            let answers = TcpStream::connect(("127.0.0.1", self.port)).is_ok();
            // It listens before it serves; then it refuses, and the storage tries again.
            if answers && self.storage("ready", SECRET, "bucket").list(Listing::Configs).is_ok() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("MinIO does not answer");
    }

    fn storage(&self, prefix: &str, secret: &str, bucket: &str) -> ObjectStorage {
        let address = format!("s3:http://127.0.0.1:{}/{bucket}/{prefix}", self.port);
        let Ok(Place::Bucket(bucket)) = Place::parse(address.as_ref()) else { panic!("{address} is a bucket") };
        let variables = [("AWS_ACCESS_KEY_ID", USER), ("AWS_SECRET_ACCESS_KEY", secret)];
        connect(
            &bucket,
            &variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter().collect::<Variables>(),
        )
        .unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The server's program: on the search path, or where Go installs programs.
fn program() -> Option<PathBuf> {
    let on_path =
        env::split_paths(&env::var_os("PATH")?).map(|folder| folder.join("minio")).find(|file| file.is_file());
    let go = || env::var_os("GOPATH").map(PathBuf::from).or_else(|| Some(Path::new(&env::var_os("HOME")?).join("go")));
    on_path.or_else(|| go().map(|folder| folder.join("bin/minio")).filter(|file| file.is_file()))
}

#[test]
fn minio_keeps_every_contract() {
    let Some(server) = Server::start("minio_keeps_every_contract") else { return };
    for (name, contract) in all() {
        println!("{name}");
        contract(&server.storage(name, SECRET, "bucket"));
    }
}

#[test]
fn minio_honours_the_condition() {
    let Some(server) = Server::start("minio_honours_the_condition") else { return };
    let storage = server.storage("probed", SECRET, "bucket");
    storage.probe().unwrap();
    assert_eq!(storage.list(Listing::All).unwrap(), [], "a probe leaves nothing");
}

#[test]
fn refusals_name_the_place_and_what_is_wrong() {
    let Some(server) = Server::start("refusals_name_the_place_and_what_is_wrong") else { return };
    let stranger = server.storage("x", "another secret", "bucket");
    let no_bucket = server.storage("x", SECRET, "no-such-bucket");
    let address = format!("127.0.0.1:{}", server.port);
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

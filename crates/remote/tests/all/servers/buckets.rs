//! Servers of object stores, each with an empty bucket on this machine's loopback: MinIO for S3, Azurite for Azure.
//! They end with the value.

use super::empty_folder;
use siltstone_remote::{ObjectStorage, Place, Traffic, Variables, connect};
use siltstone_store::storage::conformance::all;
use siltstone_testbed::{install, minio};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
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

/// Makes one request at this port, for this host, and returns the whole answer.
pub(crate) fn asked(port: u16, host: &str, method: &str, target: &str, headers: &[&str], body: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let mut head = format!("{method} {target} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    head.extend(headers.iter().map(|header| format!("{header}\r\n")));
    write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8_lossy(&answer).into_owned()
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A program; `None`, and a line that says which test does nothing, where it is not installed.
fn program(test: &str, name: &str) -> Option<PathBuf> {
    let found = install::candidates(name).into_iter().next();
    if found.is_none() {
        eprintln!("SKIPPED: {test} needs {name}, which is not installed: cargo xtask servers");
    }
    found
}

/// A program that listens at a port, with a folder of its own.
pub(crate) struct Running {
    process: Child,
    pub(crate) port: u16,
    folder: TempDir,
}

impl Running {
    /// Starts a program with the arguments that belong to a port and a folder; `None`, and a line that says which test
    /// does nothing, where it is not installed.
    pub(crate) fn start(test: &str, name: &str, prepare: impl Fn(&mut Command, u16, &Path)) -> Option<Self> {
        let program = program(test, name)?;
        let (folder, port) = (empty_folder(), free_port());
        let mut command = Command::new(program);
        prepare(&mut command, port, folder.path());
        command.current_dir(folder.path()).env("HOME", folder.path());
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let running = Self { process, port, folder };
        running.wait_until(name, || TcpStream::connect(("127.0.0.1", port)).is_ok());
        Some(running)
    }

    fn wait_until(&self, name: &str, is_ready: impl Fn() -> bool) {
        for _ in 0..600 {
            if is_ready() {
                return;
            }
            sleep(Duration::from_millis(100));
        }
        panic!("{name} does not answer at port {} in {}", self.port, self.folder.path().display());
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
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
        program(test, minio::PROGRAM)?;
        let work = empty_folder();
        Some(Self { server: minio::Minio::start(work.path()).unwrap(), _work: work })
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
pub(crate) struct Azurite(Running);

impl Azurite {
    /// The account of each Azurite, and its key, which are in its documentation.
    const ACCOUNT: &str = "devstoreaccount1";
    pub(crate) const KEY: &str =
        "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    /// Rights, and what that account signs for them by HMAC-SHA-256: for all, and, in the container, for reading,
    /// creating and listing. Azure's pages "Create an account SAS" and "Create a service SAS" say over which fields.
    const ALL: [&str; 2] = ["ss=b&srt=sco&sp=rwdlac", "YKAtmJudHaH98kax9IHOYkiCF9veHhGg4TBHNwluLXo%3D"];
    const NO_DELETING: [&str; 2] = ["sr=c&sp=rcl", "XD4%2FR9Ycf1VqlK%2FLpeFBiJg0Cqr7feYxMCTw3Jict0o%3D"];

    /// Starts a server; `None` where it is not installed.
    pub(crate) fn start(test: &str) -> Option<Self> {
        let running = Running::start(test, "azurite-blob", |command, port, _| {
            command.args(["--inMemoryPersistence", "--disableTelemetry", "--silent"]);
            command.args(["--blobHost", "127.0.0.1", "--blobPort", &port.to_string()]);
        })?;
        let server = Self(running);
        let made = server.asked("PUT", BUCKET, "restype=container", &[], "");
        assert!(made.starts_with("HTTP/1.1 201"), "{made}");
        Some(server)
    }

    /// Makes a request of one who may do everything, and returns the whole answer.
    pub(crate) fn asked(&self, method: &str, path: &str, query: &str, headers: &[&str], body: &str) -> String {
        let target = format!("/{}/{path}?{query}&{}", Self::ACCOUNT, signature(Self::ALL));
        asked(self.0.port, &format!("127.0.0.1:{}", self.0.port), method, &target, headers, body)
    }

    /// The storage below a prefix of the container.
    pub(crate) fn storage(&self, prefix: &str) -> ObjectStorage {
        self.storage_with(BUCKET, prefix, ("AZURE_ACCOUNT_KEY", Self::KEY))
    }

    /// The storage below a prefix of the container, for one who may not delete.
    pub(crate) fn storage_without_deleting(&self, prefix: &str) -> ObjectStorage {
        self.storage_with(BUCKET, prefix, ("AZURE_ACCOUNT_SAS", &signature(Self::NO_DELETING)))
    }

    /// The storage below a prefix of a container, with this variable for credentials.
    pub(crate) fn storage_with(&self, container: &str, prefix: &str, credentials: (&str, &str)) -> ObjectStorage {
        let endpoint = format!("http://127.0.0.1:{}/{}", self.0.port, Self::ACCOUNT);
        let variables = [("AZURE_ACCOUNT_NAME", Self::ACCOUNT), ("AZURE_ENDPOINT", &endpoint), credentials];
        connected(&format!("az:{container}:/{prefix}"), &variables)
    }
}

/// A shared access signature of Azurite's account until 2099.
fn signature([rights, signed]: [&str; 2]) -> String {
    format!("sv=2019-12-12&{rights}&se=2099-01-01T00:00:00Z&sig={signed}")
}

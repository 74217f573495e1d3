//! A server of an object store for tasks: MinIO on this machine's loopback, with a bucket in a folder that goes with
//! it.

use crate::install;
use crate::tool::Place;
use anyhow::{Context, Result, bail};
use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Name of the program.
pub const PROGRAM: &str = "minio";
/// The module that Go compiles it from.
pub const MODULE: &str = "github.com/minio/minio@latest";
/// The account of the server.
const USER: &str = "silt-tasks";
const SECRET: &str = "silt-tasks-secret";
const BUCKET: &str = "bucket";
/// The folder that holds the buckets.
const DRIVE: &str = "drive";
/// No start takes longer.
const START_MAX: Duration = Duration::from_mins(1);

/// A server that ends with the value.
#[derive(Debug)]
pub struct Minio {
    program: PathBuf,
    process: Child,
    address: SocketAddr,
    folder: TempDir,
    /// In its own words.
    pub version: String,
}

impl Minio {
    /// Tells whether the program is there.
    pub fn is_installed() -> bool {
        !install::candidates(PROGRAM).is_empty()
    }

    /// Installs the program where it is not there; that takes minutes.
    pub fn install() -> Result<()> {
        install::by_go(PROGRAM, MODULE)
    }

    /// Starts a server with an empty bucket, in a folder below `work`.
    pub fn start(work: &Path) -> Result<Self> {
        let candidates = install::candidates(PROGRAM);
        let program = candidates.first().context("MinIO is not installed: `cargo xtask minio` does that")?.clone();
        let folder = tempfile::Builder::new().prefix(PROGRAM).tempdir_in(work)?;
        // Each folder of a server's drive is a bucket.
        fs::create_dir_all(folder.path().join(DRIVE).join(BUCKET))?;
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let process = started(&program, address, folder.path())?;
        let version = version(&program);
        let mut server = Self { program, process, address, folder, version };
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Kills the server (SIGKILL), if it runs.
    pub fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    /// Starts the server again, at the same address and with all it holds; kills it first if it runs.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.process = started(&self.program, self.address, self.folder.path())?;
        self.wait_until_ready()
    }

    /// Returns the address of the server.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the folder in which the objects below a prefix of the bucket lie.
    pub fn folder(&self, prefix: &str) -> PathBuf {
        self.folder.path().join(DRIVE).join(BUCKET).join(prefix)
    }

    /// Returns the place of a repository below a prefix, reached by this address, its own or one before it.
    pub fn place(&self, address: SocketAddr, prefix: &str) -> Place {
        let keys = [("AWS_ACCESS_KEY_ID", USER), ("AWS_SECRET_ACCESS_KEY", SECRET)];
        let variables = keys.map(|(name, value)| (name, value.to_owned())).to_vec();
        Place { address: format!("s3:http://{address}/{BUCKET}/{prefix}"), variables }
    }

    /// Returns the variables that tell `rclone` of a remote of this name at this address.
    pub fn rclone_remote(name: &str, address: SocketAddr) -> Vec<(String, String)> {
        let endpoint = format!("http://{address}");
        let settings = [
            ("TYPE", "s3"),
            ("PROVIDER", "Minio"),
            ("ACCESS_KEY_ID", USER),
            ("SECRET_ACCESS_KEY", SECRET),
            ("ENDPOINT", &endpoint),
        ];
        let variable = |(setting, value): (&str, &str)| {
            (format!("RCLONE_CONFIG_{}_{setting}", name.to_uppercase()), value.to_owned())
        };
        settings.into_iter().map(variable).collect()
    }

    /// Returns the bucket's path for `rclone`.
    pub fn rclone_path(name: &str, prefix: &str) -> String {
        format!("{name}:{BUCKET}/{prefix}")
    }

    /// Waits until it serves: it listens before that.
    fn wait_until_ready(&mut self) -> Result<()> {
        let begin = Instant::now();
        while begin.elapsed() < START_MAX {
            if self.is_ready().unwrap_or(false) {
                return Ok(());
            }
            if let Some(status) = self.process.try_wait()? {
                bail!("MinIO ended while it started: {status}");
            }
            sleep(Duration::from_millis(100));
        }
        bail!("MinIO did not start within {} s", START_MAX.as_secs())
    }

    fn is_ready(&self) -> Result<bool> {
        let mut stream = TcpStream::connect(self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let path = "/minio/health/ready";
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address)?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    }
}

impl Drop for Minio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts the program, whose drive lies in `folder`.
fn started(program: &Path, address: SocketAddr, folder: &Path) -> Result<Child> {
    Command::new(program)
        .args(["server", "--quiet", "--address", &address.to_string(), "--console-address", "127.0.0.1:0"])
        .arg(folder.join(DRIVE))
        .env("MINIO_ROOT_USER", USER)
        .env("MINIO_ROOT_PASSWORD", SECRET)
        .env("HOME", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{} cannot be started", program.display()))
}

fn version(program: &Path) -> String {
    let said = Command::new(program).arg("--version").output();
    let text = said.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().next().unwrap_or("minio, version unknown").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_that_was_killed_comes_back_at_its_address_with_what_it_held() {
        if !Minio::is_installed() {
            eprintln!("SKIPPED: this test needs MinIO, which is not installed: cargo xtask minio");
            return;
        }
        let work = tempfile::tempdir().unwrap();
        let mut server = Minio::start(work.path()).unwrap();
        let (address, bucket) = (server.address(), server.folder(""));
        server.kill().unwrap();
        assert!(!server.is_ready().unwrap_or(false));
        server.restart().unwrap();
        assert!(server.is_ready().unwrap() && server.address() == address && bucket.is_dir());
        // One that runs is killed first.
        server.restart().unwrap();
        assert!(server.is_ready().unwrap());
    }
}

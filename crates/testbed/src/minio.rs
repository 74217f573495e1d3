//! A server of an object store for tasks: MinIO, with a bucket in a folder that goes with it. One node on this
//! machine's loopback, or several on its own address that hold each object together.

use crate::install;
use crate::program::Owned;
use crate::tool::Place;
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// Name of the program.
pub const PROGRAM: &str = "minio";
/// The module that Go compiles it from.
pub const MODULE: &str = "github.com/minio/minio@latest";
/// The account of the server.
pub const USER: &str = "silt-tasks";
/// The secret of that account.
pub const SECRET: &str = "silt-tasks-secret";
/// The bucket that each server has, empty at its start.
pub const BUCKET: &str = "bucket";
/// The folder of a node that holds the buckets.
const DRIVE: &str = "drive";

/// A server that ends with the value.
#[derive(Debug)]
pub struct Minio {
    program: PathBuf,
    nodes: Vec<Node>,
    /// Kills so far: nodes are killed in turn.
    kills: usize,
    folder: TempDir,
    /// In its own words.
    pub version: String,
}

/// One process of the server.
#[derive(Debug)]
struct Node {
    address: SocketAddr,
    /// None while it is down.
    process: Option<Owned>,
}

impl Minio {
    /// Tells whether the program is there.
    pub fn is_installed() -> bool {
        !install::candidates(PROGRAM).is_empty()
    }

    /// Installs the program where it is not there; that takes minutes.
    pub fn install() -> Result<()> {
        install::by(install::GO, &["install", MODULE], PROGRAM)
    }

    /// Starts a server of one node with an empty bucket, in a folder below `work`.
    pub fn start(work: &Path) -> Result<Self> {
        Self::start_at(&[free_address(Ipv4Addr::LOCALHOST.into())?], work)
    }

    /// Starts a server of so many nodes that hold an empty bucket together, in a folder below `work`. It refuses
    /// loopback, so it listens at the machine's own address.
    pub fn start_nodes(count: usize, work: &Path) -> Result<Self> {
        let address = own_address()?;
        let addresses: Vec<SocketAddr> = (0..count).map(|_| free_address(address)).collect::<Result<_>>()?;
        Self::start_at(&addresses, work)
    }

    fn start_at(addresses: &[SocketAddr], work: &Path) -> Result<Self> {
        let candidates = install::candidates(PROGRAM);
        let program = candidates.first().context("MinIO is not installed: `cargo xtask minio` does that")?.clone();
        let folder = tempfile::Builder::new().prefix(PROGRAM).tempdir_in(work)?;
        let version = version(&program);
        let nodes: Vec<Node> = addresses.iter().map(|address| Node { address: *address, process: None }).collect();
        let mut server = Self { program, nodes, kills: 0, folder, version };
        for node in 0..server.nodes.len() {
            // Each folder of a node's drive is a bucket.
            fs::create_dir_all(server.drive(node).join(BUCKET))?;
        }
        for node in 0..server.nodes.len() {
            server.start_node(node)?;
        }
        server.wait_until_ready()?;
        Ok(server)
    }

    /// Kills the server's next node in turn (SIGKILL), unless one is down.
    pub fn kill(&mut self) -> Result<()> {
        if self.nodes.iter().all(Node::is_up) {
            let next = self.kills % self.nodes.len();
            self.kills += 1;
            self.nodes[next].kill()?;
        }
        Ok(())
    }

    /// Kills all nodes that run.
    pub fn kill_all(&mut self) -> Result<()> {
        self.nodes.iter_mut().try_for_each(Node::kill)
    }

    /// Starts what was killed again, at the same addresses and with all it holds; kills a node first if none was.
    pub fn restart(&mut self) -> Result<()> {
        self.kill()?;
        for node in 0..self.nodes.len() {
            if !self.nodes[node].is_up() {
                self.start_node(node)?;
            }
        }
        self.wait_until_ready()
    }

    fn start_node(&mut self, number: usize) -> Result<()> {
        let home = self.home(number);
        let node = &self.nodes[number];
        let mut command = Command::new(&self.program);
        command.args(["server", "--quiet", "--console-address", "127.0.0.1:0", "--address"]);
        command.arg(node.address.to_string()).args(self.drives());
        command.env("MINIO_ROOT_USER", USER).env("MINIO_ROOT_PASSWORD", SECRET).env("HOME", home);
        // Nodes may lie on the disk that the system runs from.
        command.env("MINIO_CI_CD", "1").stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().with_context(|| format!("{} cannot be started", self.program.display()))?;
        self.nodes[number].process = Some(Owned(process));
        Ok(())
    }

    /// Returns the drives as the server is told of them: several by their nodes' addresses.
    fn drives(&self) -> Vec<OsString> {
        let url = |number: usize| format!("http://{}{}", self.nodes[number].address, self.drive(number).display());
        match self.nodes.len() {
            1 => vec![self.drive(0).into()],
            count => (0..count).map(|number| url(number).into()).collect(),
        }
    }

    fn home(&self, node: usize) -> PathBuf {
        self.folder.path().join(format!("node-{node}"))
    }

    fn drive(&self, node: usize) -> PathBuf {
        self.home(node).join(DRIVE)
    }

    /// Returns the address of the server, that of its first node.
    pub fn address(&self) -> SocketAddr {
        self.nodes[0].address
    }

    /// Returns the folder in which the objects below a prefix of the bucket lie, or the first node's part of them.
    pub fn folder(&self, prefix: &str) -> PathBuf {
        self.drive(0).join(BUCKET).join(prefix)
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

    /// Waits until all nodes serve.
    fn wait_until_ready(&mut self) -> Result<()> {
        for node in &mut self.nodes {
            if let Some(process) = &mut node.process {
                process.wait_until("MinIO", || is_ready(node.address))?;
            }
        }
        Ok(())
    }
}

impl Node {
    fn is_up(&self) -> bool {
        self.process.is_some()
    }

    fn kill(&mut self) -> Result<()> {
        if let Some(mut process) = self.process.take() {
            process.kill()?;
        }
        Ok(())
    }
}

/// Tells whether a node serves: it listens before that.
fn is_ready(address: SocketAddr) -> bool {
    let answer = || -> io::Result<String> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        write!(stream, "GET /minio/health/ready HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        io::read_to_string(stream)
    };
    answer().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}

fn free_address(address: IpAddr) -> Result<SocketAddr> {
    Ok(TcpListener::bind((address, 0))?.local_addr()?)
}

/// Returns the address that this machine sends from; nothing is sent to find it out.
fn own_address() -> Result<IpAddr> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // An address that documentation uses, and nobody has.
    socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9)).context("this machine has no address of its own")?;
    Ok(socket.local_addr()?.ip())
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
        assert!(!is_ready(address));
        server.restart().unwrap();
        assert!(is_ready(address) && server.address() == address && bucket.is_dir());
        // One that runs is killed first.
        server.restart().unwrap();
        assert!(is_ready(address));
    }

    #[test]
    fn nodes_are_killed_in_turn_and_the_others_go_on() {
        if !Minio::is_installed() {
            eprintln!("SKIPPED: this test needs MinIO, which is not installed: cargo xtask minio");
            return;
        }
        let work = tempfile::tempdir().unwrap();
        let mut server = Minio::start_nodes(4, work.path()).unwrap();
        for node in [0, 1] {
            server.kill().unwrap();
            let up: Vec<bool> = server.nodes.iter().map(|node| is_ready(node.address)).collect();
            assert_eq!(up, (0..4).map(|number| number != node).collect::<Vec<_>>());
            server.restart().unwrap();
        }
        assert!((0..4).all(|node| server.drive(node).join(BUCKET).is_dir()));
    }
}

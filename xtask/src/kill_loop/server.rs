//! Servers that are killed and started again: MinIO, and `silt serve` over a folder. An emulator that forgets all it
//! holds stays, and the way to it is cut.

use anyhow::{Context, Result, bail};
use siltstone_testbed::distance::Link;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::program;
use siltstone_testbed::tool::{Place, Repository, Tool};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// No start takes longer.
const START_MAX: Duration = Duration::from_mins(1);
const RIGHTS: &str = "put,list,read,forget,admin";

/// A server that ends with the value.
pub(super) enum Server {
    /// An object store's.
    Minio(Minio),
    /// This project's own.
    Silt(Serving),
    /// One that stays, behind a way that is cut.
    Linked(Linked),
}

/// An emulator of a cloud, and the way to it.
pub(super) struct Linked {
    link: Link,
    _emulator: Box<dyn Send>,
}

impl Linked {
    /// Makes a way to an emulator, which listens at this address; the value keeps it running.
    pub(super) fn to(address: SocketAddr, emulator: impl Send + 'static) -> Result<Self> {
        Ok(Self { link: Link::to(address, Duration::ZERO)?, _emulator: Box::new(emulator) })
    }

    /// Returns the address that clients connect to.
    pub(super) fn address(&self) -> SocketAddr {
        self.link.address()
    }
}

impl Server {
    /// Kills it (SIGKILL), if it runs, or one of its nodes; or cuts the way to it.
    pub(super) fn kill(&mut self) -> Result<()> {
        match self {
            Self::Minio(server) => server.kill(),
            Self::Silt(server) => server.kill(),
            Self::Linked(server) => {
                server.link.cut();
                Ok(())
            }
        }
    }

    /// Kills all of it.
    pub(super) fn kill_all(&mut self) -> Result<()> {
        match self {
            Self::Minio(server) => server.kill_all(),
            Self::Silt(_) | Self::Linked(_) => self.kill(),
        }
    }

    /// Starts it again, at the same address and with all it holds.
    pub(super) fn restart(&mut self) -> Result<()> {
        match self {
            Self::Minio(server) => server.restart(),
            Self::Silt(server) => server.restart(),
            Self::Linked(server) => {
                server.link.restore();
                Ok(())
            }
        }
    }
}

/// `silt serve` over a folder.
pub(super) struct Serving {
    repository: Repository,
    tokens: PathBuf,
    address: SocketAddr,
    process: Child,
}

impl Serving {
    /// Starts it over an empty folder below `work`; returns the place that clients see.
    pub(super) fn start(silt: &Tool, work: &Path) -> Result<(Self, Place)> {
        let repository = silt.repository_at(&work.join("server"));
        fs::create_dir_all(repository.path())?;
        let tokens = work.join("tokens");
        let mut add = repository.command();
        add.args(["serve", "token", "add", "clients", "--rights", RIGHTS, "--tokens"]).arg(&tokens);
        let token = program::quietly(&mut add)?.trim().to_owned();
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let process = started(&repository, &tokens, address)?;
        let mut server = Self { repository, tokens, address, process };
        server.wait_until_ready()?;
        let place = Place { address: format!("silt:http://{address}/"), variables: vec![("SILT_TOKEN", token)] };
        Ok((server, place))
    }

    fn kill(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process.wait()?;
        Ok(())
    }

    fn restart(&mut self) -> Result<()> {
        self.kill()?;
        self.process = started(&self.repository, &self.tokens, self.address)?;
        self.wait_until_ready()
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let begin = Instant::now();
        while TcpStream::connect(self.address).is_err() {
            if let Some(status) = self.process.try_wait()? {
                bail!("`silt serve` ended while it started: {status}");
            }
            if begin.elapsed() > START_MAX {
                bail!("`silt serve` did not start within {} s", START_MAX.as_secs());
            }
            sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}

fn started(repository: &Repository, tokens: &Path, address: SocketAddr) -> Result<Child> {
    let mut command = repository.command();
    command.args(["serve", "--quiet", "--listen", &address.to_string(), "--tokens"]).arg(tokens);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().context("`silt serve` cannot be started")
}

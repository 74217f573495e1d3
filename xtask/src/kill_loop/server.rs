//! Servers that are killed and started again: MinIO, and `silt serve` over a folder. An emulator that forgets all it
//! holds stays, and the way to it is cut.

use anyhow::{Context, Result};
use siltstone_testbed::distance::Link;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::program::{self, Owned};
use siltstone_testbed::tool::{Place, Repository, Tool};
use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

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
            Self::Silt(server) => Ok(server.process.kill()?),
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
    process: Owned,
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
        let place = Place { address: format!("silt:http://{address}/"), variables: vec![("SILT_TOKEN", token)] };
        Ok((Self { repository, tokens, address, process }, place))
    }

    fn restart(&mut self) -> Result<()> {
        self.process.kill()?;
        self.process = started(&self.repository, &self.tokens, self.address)?;
        Ok(())
    }
}

/// Starts a server and waits until it serves.
fn started(repository: &Repository, tokens: &Path, address: SocketAddr) -> Result<Owned> {
    let mut command = repository.command();
    command.args(["serve", "--quiet", "--listen", &address.to_string(), "--tokens"]).arg(tokens);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut process = Owned(command.spawn().context("`silt serve` cannot be started")?);
    process.wait_until("`silt serve`", || TcpStream::connect(address).is_ok())?;
    Ok(process)
}

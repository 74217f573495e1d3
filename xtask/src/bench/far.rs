//! A server of an object store at a distance, for benchmarks of what a repository there costs.

use anyhow::Result;
use clap::Args;
use siltstone_testbed::distance::Link;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::tool::Place;
use siltstone_testbed::workspace;
use std::path::Path;
use std::time::Duration;
use tempfile::TempDir;

/// Option: how far away.
#[derive(Args)]
pub(super) struct Distance {
    /// The round trip to the server in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30)]
    rtt: u64,
}

/// A server with an empty bucket, the way to it, and a folder to work in. All end with the value.
pub(super) struct Far {
    pub(super) server: Minio,
    pub(super) link: Link,
    /// Words of the notes on it.
    pub(super) note: String,
    work: TempDir,
}

impl Far {
    /// Starts a server so far away; installs its program if need be.
    pub(super) fn start(distance: &Distance) -> Result<Self> {
        Minio::install()?;
        let work = tempfile::tempdir_in(workspace::target()?)?;
        let server = Minio::start(work.path())?;
        let link = Link::to(server.address(), Duration::from_millis(distance.rtt))?;
        let note = format!("server: {}, round trip {} ms, bandwidth as it is", server.version, distance.rtt);
        Ok(Self { server, link, note, work })
    }

    /// Returns the folder for all that a benchmark makes.
    pub(super) fn work(&self) -> &Path {
        self.work.path()
    }

    /// Returns the place of a repository below a prefix, reached from far away.
    pub(super) fn place(&self, prefix: &str) -> Place {
        self.server.place(self.link.address(), prefix)
    }
}

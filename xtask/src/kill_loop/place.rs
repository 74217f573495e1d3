//! Places that the loop tries, and the trouble that each has while commands run: a server that is killed and started
//! again, a connection that ends.

use anyhow::Result;
use clap::ValueEnum;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::install;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::tool::Place;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const NAME: &str = "repository";
/// Variable that names the command which reaches a server by SFTP.
const SFTP_COMMAND: &str = "SILT_SFTP_COMMAND";
/// A server is up for this long at least, and may be: what is tried again must come to its end some time.
const UP_MIN: Duration = Duration::from_millis(500);
/// A server is away for less than this, and the time that its start takes.
const AWAY_MAX: Duration = Duration::from_secs(1);
/// A connection lasts at least this long.
const CONNECTED_MIN: Duration = Duration::from_millis(50);

/// Kinds of places.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum, Debug)]
pub(super) enum Where {
    /// A folder.
    Folder,
    /// A bucket of an object store: MinIO on this machine, killed and started again meanwhile.
    S3,
    /// A folder behind OpenSSH's SFTP server, killed again and again, so that each connection ends early.
    Sftp,
}

impl Where {
    /// Makes the place and starts its server, if it has one that is killed.
    pub(super) fn open(self, work: &Path) -> Result<(Site, Option<Minio>)> {
        let folder = work.join(NAME);
        let site = |place| Site { kind: self, place };
        let at = |address| site(Place { address, variables: Vec::new() });
        Ok(match self {
            Self::Folder => (at(folder.display().to_string()), None),
            Self::Sftp => {
                install::ensure(&[install::SFTP_SERVER])?;
                let address = format!("sftp:server:{}", folder.display());
                let variables = vec![(SFTP_COMMAND, install::SFTP_SERVER.program)];
                (site(Place { address, variables }), None)
            }
            Self::S3 => {
                let server = Minio::start(work)?;
                (site(server.place(server.address(), NAME)), Some(server))
            }
        })
    }

    /// As typed and printed.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Folder => "folder",
            Self::S3 => "s3",
            Self::Sftp => "sftp",
        }
    }
}

/// The place of the repository.
#[derive(Clone)]
pub(super) struct Site {
    kind: Where,
    pub(super) place: Place,
}

impl Site {
    /// Tells whether the place can be away.
    pub(super) fn is_distant(&self) -> bool {
        self.kind != Where::Folder
    }

    /// Gives a command connections that end after a time that is drawn; the program usually takes about `usual`.
    pub(super) fn shorten_connections(&self, command: &mut Command, usual: Duration, sequence: &mut Sequence) {
        if self.kind == Where::Sftp {
            let lasting = CONNECTED_MIN + drawn_below(usual * 12 / 10, sequence);
            let server = install::SFTP_SERVER.program;
            command.env(SFTP_COMMAND, format!("timeout --signal=KILL {:.6} {server}", lasting.as_secs_f64()));
        }
    }

    /// Gives a command no connection at all.
    pub(super) fn disconnect(&self, command: &mut Command) {
        if self.kind == Where::Sftp {
            command.env(SFTP_COMMAND, "false");
        }
    }
}

/// Kills the server and starts it again until `has_ended`, at moments drawn within about `usual`; returns how often.
/// The server is up afterwards.
pub(super) fn trouble(
    server: &mut Minio,
    has_ended: &AtomicBool,
    usual: Duration,
    sequence: &mut Sequence,
) -> Result<u64> {
    let mut kills = 0;
    loop {
        let up = UP_MIN + drawn_below(usual, sequence);
        if has_ended_within(up, has_ended) {
            return Ok(kills);
        }
        server.kill()?;
        kills += 1;
        thread::sleep(drawn_below(AWAY_MAX, sequence));
        server.restart()?;
    }
}

fn has_ended_within(time: Duration, has_ended: &AtomicBool) -> bool {
    const STEP: Duration = Duration::from_millis(10);
    let mut left = time;
    while !left.is_zero() && !has_ended.load(Ordering::Acquire) {
        thread::sleep(STEP.min(left));
        left = left.saturating_sub(STEP);
    }
    has_ended.load(Ordering::Acquire)
}

/// A time below this one.
pub(super) fn drawn_below(bound: Duration, sequence: &mut Sequence) -> Duration {
    let micros = u64::try_from(bound.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(sequence.below(micros.max(1)))
}

//! Places that the loop tries, and the trouble that each has while commands run: a server that is killed and started
//! again, a connection that ends.

use super::server::{Linked, Server, Serving};
use anyhow::Result;
use clap::ValueEnum;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::emulators::{Azurite, BUCKET, FakeGcs};
use siltstone_testbed::install;
use siltstone_testbed::minio::Minio;
use siltstone_testbed::tool::{Place, Tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const NAME: &str = "repository";
/// Nodes of a server that holds each object in several places.
const NODES: usize = 4;
/// Variable that names the command which reaches a server by SFTP.
const SFTP_COMMAND: &str = "SILT_SFTP_COMMAND";
/// A server that was started again is up for at least this long: what is tried again must come to its end some time.
const UP_MIN: Duration = Duration::from_millis(500);
/// Variable that names the program rclone.
const RCLONE_PROGRAM: &str = "SILT_RCLONE_PROGRAM";
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
    /// A bucket that four nodes of MinIO hold together, one of which at a time is killed and started again meanwhile.
    S3Nodes,
    /// A container of Azure Blob Storage: Azurite on this machine, the way to which is cut again and again.
    Azure,
    /// A bucket of Google Cloud Storage: fake-gcs-server on this machine, the way to which is cut again and again.
    Google,
    /// A folder behind OpenSSH's SFTP server, killed again and again, so that each connection ends early.
    Sftp,
    /// A folder behind rclone, killed again and again; for one client alone.
    Rclone,
    /// A folder behind `silt serve`, killed and started again meanwhile.
    Silt,
}

impl Where {
    /// Makes the place and starts its server, if it has one that is killed.
    pub(super) fn open(self, silt: &Tool, work: &Path) -> Result<(Site, Option<Server>)> {
        let folder = work.join(NAME);
        let site = |place| Site { kind: self, place, cuts: work.join("cuts") };
        Ok(match self {
            Self::Folder => (site(Place { address: folder.display().to_string(), variables: Vec::new() }), None),
            Self::Sftp => {
                install::ensure(&[install::SFTP_SERVER])?;
                let address = format!("sftp:server:{}", folder.display());
                let variables = vec![(SFTP_COMMAND, install::SFTP_SERVER.program.to_owned())];
                (site(Place { address, variables }), None)
            }
            Self::Rclone => {
                install::ensure(&[install::RCLONE])?;
                let address = format!("rclone:{}", folder.display());
                let variables = vec![("SILT_RCLONE_ONE_WRITER", "1".to_owned())];
                (site(Place { address, variables }), None)
            }
            Self::S3 | Self::S3Nodes => {
                let server = if self == Self::S3 { Minio::start(work)? } else { Minio::start_nodes(NODES, work)? };
                (site(server.place(server.address(), NAME)), Some(Server::Minio(server)))
            }
            Self::Azure => {
                let emulator = Azurite::start(work)?;
                let server = Linked::to(emulator.address(), emulator)?;
                (site(Azurite::place(server.address(), NAME)), Some(Server::Linked(server)))
            }
            Self::Google => {
                let emulator = FakeGcs::start(work)?;
                let server = Linked::to(emulator.address(), emulator)?;
                (site(FakeGcs::place(server.address(), BUCKET, NAME)), Some(Server::Linked(server)))
            }
            Self::Silt => {
                let (server, place) = Serving::start(silt, work)?;
                (site(place), Some(Server::Silt(server)))
            }
        })
    }

    /// As typed and printed.
    pub(super) fn text(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }
}

/// The place of the repository.
#[derive(Clone)]
pub(super) struct Site {
    kind: Where,
    pub(super) place: Place,
    /// A byte for each connection that was ended.
    cuts: PathBuf,
}

impl Site {
    /// Returns how many connections were ended until now.
    pub(super) fn cuts(&self) -> u64 {
        fs::metadata(&self.cuts).map_or(0, |file| file.len())
    }

    /// Tells whether the place can be away.
    pub(super) fn is_distant(&self) -> bool {
        self.kind != Where::Folder
    }

    /// Gives a command connections that end after a time that is drawn; the program usually takes about `usual`.
    pub(super) fn shorten_connections(&self, command: &mut Command, usual: Duration, sequence: &mut Sequence) {
        if let Some((variable, program)) = self.connection() {
            let lasting = (CONNECTED_MIN + drawn_below(usual * 12 / 10, sequence)).as_secs_f64();
            let cuts = self.cuts.display();
            let script = format!("timeout --signal=KILL {lasting:.6} {program} \"$@\" || printf x >> {cuts}");
            command.env(variable, format!("sh -c '{script}' {program}"));
        }
    }

    /// Gives a command no connection at all.
    pub(super) fn disconnect(&self, command: &mut Command) {
        if let Some((variable, _)) = self.connection() {
            command.env(variable, "false");
        }
    }

    /// The program that makes connections to the place, and the variable that names another one.
    fn connection(&self) -> Option<(&'static str, &'static str)> {
        match self.kind {
            Where::Sftp => Some((SFTP_COMMAND, install::SFTP_SERVER.program)),
            Where::Rclone => Some((RCLONE_PROGRAM, install::RCLONE.program)),
            Where::Folder | Where::S3 | Where::S3Nodes | Where::Azure | Where::Google | Where::Silt => None,
        }
    }
}

/// Kills the server and starts it again until `has_ended`, at moments drawn within about `usual`; returns how often.
/// The server is up afterwards.
pub(super) fn trouble(
    server: &mut Server,
    has_ended: &AtomicBool,
    usual: Duration,
    sequence: &mut Sequence,
) -> Result<u64> {
    let (mut kills, mut up) = (0, drawn_below(usual, sequence));
    while !has_ended_within(up, has_ended) {
        server.kill()?;
        kills += 1;
        thread::sleep(drawn_below(AWAY_MAX, sequence));
        server.restart()?;
        up = UP_MIN + drawn_below(usual, sequence);
    }
    Ok(kills)
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

//! Errors of mounting.

use siltstone_engine::EngineError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use thiserror::Error;

/// The device that file systems of programs are reached by.
pub(crate) const DEVICE: &str = "/dev/fuse";

/// Why a repository could not be mounted, or unmounted.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum MountError {
    /// The mount point is no directory.
    #[error("{} is not a folder", folder.display())]
    NotADirectory {
        /// The mount point.
        folder: PathBuf,
    },
    /// The kernel offers no FUSE.
    #[error("there is no {DEVICE}: 'modprobe fuse' loads what makes it")]
    NoFuse,
    /// The user may not mount there.
    #[error("cannot mount on {}: permission denied; it takes the right to use {DEVICE} and to write to the folder",
        folder.display())]
    NotAllowed {
        /// The mount point.
        folder: PathBuf,
    },
    /// The kernel, or the program that mounts for other users than root, refused.
    #[error("cannot mount on {}", folder.display())]
    Mount {
        /// The mount point.
        folder: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// Threads that read ahead cannot be started.
    #[error("cannot start a thread")]
    Threads {
        /// The reason.
        source: io::Error,
    },
    /// It is in use.
    #[error("cannot unmount")]
    Unmount {
        /// The reason.
        source: io::Error,
    },
    /// The address can be reached by other machines.
    #[error(
        "{address} can be reached by other machines: that takes a password, and leave to send all of it unencrypted"
    )]
    OpenToOthers {
        /// The address.
        address: SocketAddr,
    },
    /// Nothing can listen at the address.
    #[error("cannot listen at {address}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The reason.
        source: io::Error,
    },
    /// The snapshots cannot be listed.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

//! The errors between Siltstone and the place its objects lie in.
//!
//! Variants carry the object's name, so a message always says which one. The operating system's own words are the
//! error's source: a caller that prints errors prints the chain.

use super::{ObjectName, Original};
use rustix::io::Errno;
use std::io;

/// The reason why a call on a [`Storage`](super::Storage) failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StorageError {
    /// No object has this name (or it was put, and no barrier has passed).
    #[error("{name} is missing from the repository")]
    NotFound {
        /// The object asked for.
        name: ObjectName,
    },
    /// An object has this name; nothing was changed.
    #[error("{name} exists already")]
    AlreadyExists {
        /// The object that was to be written.
        name: ObjectName,
    },
    /// The object ends before the range asked for.
    #[error("{name} is too short: {expected} bytes were expected, it holds {found}; check the repository")]
    TooShort {
        /// The object read.
        name: ObjectName,
        /// End of the range asked for, in bytes from the object's start.
        expected: u64,
        /// The object's length in bytes.
        found: u64,
    },
    /// The object is longer than the reader allows one of its kind to be; nothing of it was read.
    #[error("{name} is {bytes} bytes long, {limit} are read of it at most: {}", too_large(name))]
    TooLarge {
        /// The object asked for.
        name: ObjectName,
        /// Length of the object in bytes.
        bytes: u64,
        /// The greatest length that is read, in bytes.
        limit: u64,
    },
    /// The medium does not give the object back, or something else lies in its place; other objects are not concerned.
    #[error("{name} cannot be read: {source}; the disk may be failing, make a copy of what it still gives")]
    Unreadable {
        /// The object asked for.
        name: ObjectName,
        /// The system's error.
        source: io::Error,
    },
    /// The disk, or the quota on it, has no room. A failed `put` or `create` left nothing behind and the storage stays
    /// usable.
    #[error("no space left for {name}: make room on the repository's disk or forget snapshots, then try again")]
    Full {
        /// The object (or folder) being written.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// The repository cannot be written by this user, or lies on a read-only file system.
    #[error("{name} cannot be written: the repository is read-only here; check its mount and permissions")]
    ReadOnly {
        /// The object (or folder) being written.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// Anything else the system reports.
    #[error("cannot {operation} {name}")]
    Io {
        /// The operation that was tried: a verb.
        operation: &'static str,
        /// The object or folder it was tried on.
        name: String,
        /// The system's error.
        source: io::Error,
    },
    /// An earlier write failed in a way that leaves unknown what reached the disk; this storage writes no more.
    #[error("an earlier write to the repository failed: nothing more is written; solve its cause and run again")]
    Poisoned,
    /// The holder of the series' lease removed the unfinished write: the lease under which it was begun is over.
    /// Nothing more is put by this storage; whoever wrote was overtaken.
    #[error("the unfinished write of {name} was removed by another writer, who holds the series by now; run again")]
    Swept {
        /// The object that was being written.
        name: ObjectName,
    },
    /// The place refuses a request for want of rights.
    #[error("{location} refuses to {operation} {name}: {reason}; check the credentials, and what they may do there")]
    Refused {
        /// The operation that was tried: a verb.
        operation: &'static str,
        /// The object, or the objects.
        name: String,
        /// The address.
        location: String,
        /// The words of the place.
        reason: String,
    },
    /// The place cannot be reached, or answers with failures, for as long as it is tried.
    #[error("{location} did not {operation} {name} in {tries} tries: {reason}; check the network, then run again")]
    Unavailable {
        /// The operation that was tried: a verb.
        operation: &'static str,
        /// The object, or the objects.
        name: String,
        /// The address.
        location: String,
        /// Tries that were made.
        tries: u32,
        /// The last failure.
        reason: String,
    },
    /// A request to write an object may have been carried out or not: no answer came, and the name cannot be looked at.
    #[error(
        "it is unknown whether {location} has written {name}: {reason}; when the place can be reached, run again, \
         which goes on from what is there"
    )]
    OutcomeUnknown {
        /// The object that was being written.
        name: ObjectName,
        /// The address.
        location: String,
        /// The last failure.
        reason: String,
    },
    /// The bucket of the address does not exist.
    #[error("{location}: there is no such bucket; make it, or check the address")]
    NoBucket {
        /// The address.
        location: String,
    },
    /// The place does not list what was just written.
    #[error(
        "{location} does not list what was written a moment before, so that a writer could delete what another one \
         relies on: use a place whose listings show each object at once"
    )]
    ListsLate {
        /// The address.
        location: String,
    },
    /// The place replaces objects although it is told not to.
    #[error(
        "{location} replaces an object that it was asked to leave as it is, so that two writers could destroy each \
         other's commits: use a place that refuses, or a newer version of its server"
    )]
    ReplacesObjects {
        /// The address.
        location: String,
    },
    /// The place itself cannot be opened.
    #[error("cannot open {location}: check that the path is right and the disk is mounted")]
    Unreachable {
        /// The path or address.
        location: String,
        /// The system's error.
        source: io::Error,
    },
}

/// Tells whether a failed read concerns what lies there, and not this program, its rights or its machine.
fn is_of_medium(error: &io::Error) -> bool {
    let of_medium =
        [Errno::IO, Errno::NODATA, Errno::BADMSG, Errno::UCLEAN, Errno::REMOTEIO, Errno::ILSEQ, Errno::ISDIR];
    // What is no file at all was found out by ourselves.
    error.kind() == io::ErrorKind::InvalidData
        || Errno::from_io_error(error).is_some_and(|errno| of_medium.contains(&errno))
}

/// Returns the advice about an object that is too long to be read.
fn too_large(name: &ObjectName) -> &'static str {
    match name {
        ObjectName::Manifest(..) | ObjectName::Copy(Original::Manifest(..)) => {
            "a series so large needs more memory; if it is not, the file is foreign: bring back the original"
        }
        ObjectName::Key(_) | ObjectName::Copy(Original::Key(_)) => "it is no key slot of this program: move it away",
        _ => "it was not written by this program: bring back the original",
    }
}

impl StorageError {
    /// Tells whether the object asked for does not exist.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::NotFound { .. })
    }

    /// Tells whether the name to be written is taken.
    pub fn is_already_exists(&self) -> bool {
        matches!(self, Self::AlreadyExists { .. })
    }

    /// Tells whether the disk or its quota is full.
    pub fn is_full(&self) -> bool {
        matches!(self, Self::Full { .. })
    }

    /// Sorts a system error met while reading.
    pub(super) fn reading(operation: &'static str, name: &ObjectName, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::NotFound => Self::NotFound { name: *name },
            _ if is_of_medium(&source) => Self::Unreadable { name: *name, source },
            _ => Self::Io { operation, name: name.to_string(), source },
        }
    }

    /// Sorts a system error met while changing something; `name` is the object or folder.
    pub(super) fn writing(operation: &'static str, name: &(impl ToString + ?Sized), source: io::Error) -> Self {
        let name = name.to_string();
        match source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full { name, source },
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Self::ReadOnly { name, source },
            _ => Self::Io { operation, name, source },
        }
    }
}

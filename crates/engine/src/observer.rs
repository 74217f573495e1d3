//! Reports of the engine while it works, and the one question it asks: stop or go on. Implementations count and print;
//! the engine calls them from several threads and never waits for a terminal.

use crate::fs::Problem;
use siltstone_store::SnapshotId;
use siltstone_store::catalog::EntryPath;
use std::time::Duration;

/// Action on one entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EntryAction {
    /// Backup: not in the previous snapshot.
    New,
    /// Backup: content or metadata differ from the previous snapshot's.
    Changed,
    /// Backup: as in the previous snapshot; files were not read.
    Unchanged,
    /// Restore: written (or made).
    Restored,
    /// Restore: already as wanted, or kept because of the overwrite mode.
    Kept,
    /// Restore: removed because the snapshot does not hold it (`--delete`).
    Deleted,
}

/// Something worth a line to the user that is no error. Exhaustive on purpose: whoever shows notices has words for
/// every one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// The local index was absent, stale or damaged and has been rebuilt from the repository.
    IndexRebuilt,
    /// The local index is absent, stale or damaged, and the key cannot read it from the repository: all chunks are
    /// stored again.
    IndexLost,
    /// The local catalog is absent, stale or damaged, and the key cannot read it from the repository: all files are
    /// read again.
    CatalogLost,
    /// The local index could not be written; the next backup will rebuild it.
    IndexNotSaved {
        /// Why.
        reason: String,
    },
    /// The backup is the first of its series.
    NewSeries {
        /// The series' name.
        series: String,
        /// The name of the series that it resembles most, if it resembles one.
        resembles: Option<String>,
    },
    /// Another series has much of what is backed up: it is used instead of being stored again.
    Borrowing {
        /// The series' name.
        series: String,
    },
    /// A series that may have much of what is backed up cannot be borrowed of: what it has is stored again.
    LenderPassedOver {
        /// Why.
        reason: String,
    },
    /// Sketches of the last snapshot's chunks were not on this machine: all of the chunks were read.
    SketchesRebuilt {
        /// How many.
        chunks: u64,
    },
    /// A chunk of the last snapshot that resembles a new one could not be read. New chunks are stored whole instead;
    /// told once.
    BaseUnreadable {
        /// Why.
        reason: String,
    },
    /// Containers that the manifest names are missing or cut short; what they held is stored again where the source
    /// still has it.
    ContainersLost {
        /// Chunks they held.
        chunks: u64,
    },
    /// Chunks of live snapshots are known to be damaged; what the source still has of them is stored again.
    DamageKnown {
        /// How many.
        chunks: u64,
    },
    /// Old data that was read back as a sample is damaged; what the source still has of it is stored again.
    DamageMet {
        /// Which object, and what is wrong with it.
        reason: String,
    },
    /// Damage that the source could not heal, because it no longer has the content.
    DamageLeft {
        /// Chunks that stay damaged.
        chunks: u64,
    },
    /// A container's index could not be read while the local index was rebuilt; its chunks are stored again.
    IndexUnreadable {
        /// Why.
        reason: String,
    },
    /// The clock stands before the moment at which a snapshot of the series was made.
    ClockBehind {
        /// Seconds it is behind.
        seconds: i64,
    },
    /// The newest manifest of the series was read from its copy; what is written from now on lies there twice again.
    ReadFromCopy {
        /// Why the original could not be read.
        reason: String,
    },
    /// The series is leased to a writer that cannot be seen from here: it is watched for a sign of life.
    LeaseWatched {
        /// Who holds it, in words.
        holder: String,
        /// How long it is watched.
        at_most: Duration,
    },
    /// An interrupted writer's lease was taken over and what it left behind removed.
    LeaseTakenOver {
        /// Who held it, in words.
        holder: String,
        /// Objects removed.
        objects: u64,
    },
    /// A path in the list of changes is not there and was not in the previous snapshot.
    ListedUnknown {
        /// Which.
        path: EntryPath,
    },
    /// An entry was left out on purpose (a socket, another file system, ...).
    LeftOut {
        /// Which.
        path: EntryPath,
        /// Why, one of a fixed set of words.
        why: &'static str,
    },
    /// A folder that the program itself writes to was left out: the repository, or what is kept on this machine.
    OwnFolderLeftOut {
        /// Which.
        path: EntryPath,
    },
    /// Containers that no manifest names any more stay where they are; the snapshot stands.
    ContainersLeft {
        /// How many.
        containers: u64,
        /// Why they could not be deleted; `None` where this client has no right to.
        reason: Option<String>,
    },
    /// The disk was full: rewriting partly dead containers was put off; whole dead ones were removed.
    RewriteDeferred,
    /// The snapshot stands, but what it left behind could not be settled; `silt maintain` tries again.
    NotSettled {
        /// Why.
        reason: String,
    },
    /// Migration leaves something as it is because it is missing or damaged; the rest is settled. Told once in a run.
    PassedOver {
        /// A container's object name, or what else.
        object: String,
        /// Why.
        reason: String,
    },
    /// Work done so far is committed as a partial snapshot.
    Checkpoint {
        /// Which.
        snapshot: SnapshotId,
        /// True if the run ends with it, because it was interrupted.
        is_last: bool,
    },
    /// A snapshot of another repository was copied.
    SnapshotCopied {
        /// The series of both.
        series: String,
        /// The snapshot in the source repository.
        original: SnapshotId,
        /// The snapshot made of it.
        copy: SnapshotId,
    },
    /// A file in the target had the snapshot's size and time, but not its content; it is restored anew.
    OnlyLookedRight {
        /// Which.
        path: EntryPath,
        /// Difference found.
        reason: String,
    },
    /// A pattern that chooses what is restored matches nothing in the snapshot, or nothing that others leave.
    NothingMatches {
        /// The pattern, as it was written.
        pattern: String,
    },
    /// A container vanished under a reader (a concurrent forget): the manifest was read again.
    Replanned,
}

/// Receives progress. Every method may be called from any thread; all do nothing by default.
pub trait Observer: Send + Sync {
    /// The scan that runs ahead has seen this much so far; `complete` on its last call.
    fn estimate(&self, files: u64, bytes: u64, complete: bool) {
        let _ = (files, bytes, complete);
    }

    /// This many more files and bytes are done.
    fn advance(&self, files: u64, bytes: u64) {
        let _ = (files, bytes);
    }

    /// The work has come to this file or folder. Only called if [`Observer::wants_paths`].
    fn at(&self, path: &EntryPath) {
        let _ = path;
    }

    /// Tells whether [`Observer::at`] is of use.
    fn wants_paths(&self) -> bool {
        false
    }

    /// This many bytes that a backup has read are stored already, by this series or another.
    fn duplicate(&self, bytes: u64) {
        let _ = bytes;
    }

    /// Of what snapshots have left behind, so many more bytes of containers are settled, and so many more were found
    /// that are to be.
    fn settle(&self, done: u64, found: u64) {
        let _ = (done, found);
    }

    /// An entry was dealt with. Only called if [`Observer::wants_entries`].
    fn entry(&self, path: &EntryPath, action: EntryAction, bytes: u64) {
        let _ = (path, action, bytes);
    }

    /// Tells whether [`Observer::entry`] is of use.
    fn wants_entries(&self) -> bool {
        false
    }

    /// Something went wrong with one entry or object; the run goes on.
    fn problem(&self, problem: &Problem) {
        let _ = problem;
    }

    /// Something to tell.
    fn notice(&self, notice: &Notice) {
        let _ = notice;
    }

    /// Tells whether the user asked to stop; polled at every piece of work.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// An observer that listens to nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Observer for Silent {}

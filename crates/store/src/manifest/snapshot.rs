//! One backup, as its manifest describes it.

use crate::ids::{ChunkNumber, SnapshotId, Time};
use serde::{Deserialize, Serialize};

/// A snapshot: what it is of, and where its catalog begins. The chunks it needs are kept by the manifest beside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Snapshot {
    /// Identity, random.
    pub id: SnapshotId,
    /// Time at which the backup was taken, or the moment the user gave it.
    pub time: Time,
    /// Time at which it was committed, by the writer's clock, whatever time the user gave.
    pub made: Time,
    /// The machine it was taken on.
    pub host: String,
    /// Name of the user who took it.
    pub user: String,
    /// Paths that were backed up, as given: absolute, bytes.
    pub paths: Vec<Vec<u8>>,
    /// Words by which to find it again.
    pub tags: Vec<String>,
    /// Description by the user.
    pub description: Option<String>,
    /// The program and version that wrote it.
    pub program: String,
    /// The root node of its catalog.
    pub root: ChunkNumber,
    /// The metadata chunk that says all this once more, for a series that lost its manifests.
    pub record: ChunkNumber,
    /// Counts of what the backup met and did.
    pub statistics: SnapshotStatistics,
    /// True if it is a checkpoint of a backup that has not ended: what was done by then, whole in itself.
    pub partial: bool,
    /// Set while the snapshot is deleted for its users, but kept for some time so that it can be brought back. The body
    /// says only that it is: the times stand behind the salts.
    #[serde(with = "is_deleted")]
    pub deleted: Option<Deleted>,
}

impl Snapshot {
    /// Returns the moment it counts as taken at: its time, but none after it was made.
    pub fn dated(&self) -> Time {
        self.time.min(self.made)
    }
}

/// The mark of a snapshot that was deleted and is still there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deleted {
    /// Time at which it was marked, by the writer's clock.
    pub at: Time,
    /// Time from which on a writer may remove it; not before `at`.
    pub until: Time,
}

impl Deleted {
    /// Tells whether the time that the snapshot was to be kept is over. By a clock that stands before the mark it is
    /// not.
    pub fn is_over(&self, now: Time) -> bool {
        now >= self.until && now >= self.at
    }
}

/// A mark as the manifest's body has it: whether there is one.
mod is_deleted {
    use super::Deleted;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(clippy::ref_option, reason = "it is what serde calls")]
    pub(super) fn serialize<S: Serializer>(mark: &Option<Deleted>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bool(mark.is_some())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Deleted>, D::Error> {
        Ok(bool::deserialize(deserializer)?.then(Deleted::default))
    }
}

/// Counts of what a backup met and did. The deltas and what was moved grow when migration settles what the backup left
/// behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct SnapshotStatistics {
    /// Regular files in the snapshot.
    pub files: u64,
    /// Directories in the snapshot.
    pub directories: u64,
    /// Entries of any other kind.
    pub others: u64,
    /// Files the parent snapshot did not have.
    pub files_new: u64,
    /// Files that differ from the parent snapshot's.
    pub files_changed: u64,
    /// Files that kept their recipe without being read.
    pub files_unchanged: u64,
    /// Sum of the files' sizes.
    pub logical_bytes: u64,
    /// Bytes read from the source.
    pub read_bytes: u64,
    /// Bytes of new data chunks, before compression.
    pub added_plain_bytes: u64,
    /// Bytes of the containers written.
    pub added_stored_bytes: u64,
    /// Bytes of new metadata chunks, before compression.
    pub metadata_bytes: u64,
    /// New data chunks.
    pub chunks_new: u64,
    /// Files and directories that could not be read whole.
    pub problems: u64,
    /// Duration of the backup, in milliseconds.
    pub duration_ms: u64,
    /// Chunks that became part of a delta: new ones in the backup, old ones when what it left behind was settled.
    pub deltas_kept: u64,
    /// Chunks that stayed whole because their delta would have saved too little.
    pub deltas_rejected: u64,
    /// Chunks that stayed whole because their bases lay where too few others did.
    pub deltas_skipped: u64,
    /// Bytes of the containers written to settle what the backup left behind, and to eliminate ghosts while its
    /// snapshot was the last.
    pub bytes_migrated: u64,
}

//! How to maintain a series, and what maintenance did.

use crate::Resources;
use crate::delta::Deltas;
use crate::setters::setters;
use crate::written::VerifyWritten;
use siltstone_store::region::ZSTD_LEVEL_DEFAULT;
use siltstone_store::repository::Repository;

/// Bytes of old containers that are worked on between two commits, unless asked otherwise.
pub const PIECE_BYTES_DEFAULT: u64 = 1 << 30;

/// The share of a container that may be superseded or dead before it is split, unless another is asked for.
pub const MIGRATE_THRESHOLD_DEFAULT: f64 = 0.25;

/// Options of maintenance.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct MaintainOptions {
    /// Which way deltas point.
    pub deltas: Deltas,
    /// The share of a container that may be superseded or dead before it is split (0 ..= 1).
    pub threshold: f64,
    /// Compression level of zstd.
    pub compression_level: i32,
    /// Bytes of old containers that are worked on between two commits; at least one container.
    pub piece_bytes: u64,
    /// Whether to read back what was written, before each commit.
    pub verify_written: VerifyWritten,
    /// Store what is borrowed of other series in containers of each series' own.
    pub owns: bool,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

impl Default for MaintainOptions {
    fn default() -> Self {
        Self {
            deltas: Deltas::default(),
            threshold: MIGRATE_THRESHOLD_DEFAULT,
            compression_level: ZSTD_LEVEL_DEFAULT,
            piece_bytes: PIECE_BYTES_DEFAULT,
            verify_written: VerifyWritten::default(),
            owns: false,
            take_over: false,
            user: String::new(),
        }
    }
}

setters!(MaintainOptions {
    with_deltas(deltas: Deltas),
    with_threshold(threshold: f64),
    with_compression_level(compression_level: i32),
    with_piece_bytes(piece_bytes: u64),
    with_verify_written(verify_written: VerifyWritten),
    with_owns(owns: bool),
    with_take_over(take_over: bool),
    with_user(user: String),
});

/// Maintenance under way: where, how and with what.
#[derive(Clone, Copy)]
pub(crate) struct Maintenance<'m> {
    pub(crate) repository: &'m Repository,
    pub(crate) options: &'m MaintainOptions,
    pub(crate) resources: &'m Resources,
}

/// Figures of maintenance.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MaintainSummary {
    /// Snapshots whose chunks were settled, all of them.
    pub settled: u64,
    /// Snapshots that were marked as deleted until now, and were removed.
    pub ended: u64,
    /// Containers that could not be read; they stay as they are.
    pub passed_over: u64,
    /// Bytes of the containers written.
    pub bytes_written: u64,
    /// Bytes of the containers deleted.
    pub bytes_deleted: u64,
    /// Containers written.
    pub containers_written: u64,
    /// Containers deleted.
    pub containers_deleted: u64,
    /// Chunks that became part of a delta.
    pub deltas_kept: u64,
    /// Chunks that nothing but deltas needed, and that are gone.
    pub ghosts_eliminated: u64,
    /// Objects that no manifest needs, and that are gone: what clients left that may not delete.
    pub orphans_deleted: u64,
    /// Bytes of these.
    pub orphan_bytes_deleted: u64,
    /// Chunks that resemble another, but stay whole because a delta would not be smaller.
    pub deltas_rejected: u64,
}

impl MaintainSummary {
    pub(super) fn add(&mut self, other: &Self) {
        self.settled += other.settled;
        self.ended += other.ended;
        self.passed_over += other.passed_over;
        self.bytes_written += other.bytes_written;
        self.bytes_deleted += other.bytes_deleted;
        self.containers_written += other.containers_written;
        self.containers_deleted += other.containers_deleted;
        self.deltas_kept += other.deltas_kept;
        self.deltas_rejected += other.deltas_rejected;
        self.orphans_deleted += other.orphans_deleted;
        self.orphan_bytes_deleted += other.orphan_bytes_deleted;
        self.ghosts_eliminated += other.ghosts_eliminated;
    }
}

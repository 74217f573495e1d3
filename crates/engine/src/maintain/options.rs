//! How to maintain a series, and what maintenance did.

use crate::delta::Deltas;

/// Bytes of old containers that are worked on between two commits, unless asked otherwise.
pub const PIECE_BYTES_DEFAULT: u64 = 1 << 30;

/// The share of a container that may be superseded or dead before it is split, unless another is asked for.
pub const MIGRATE_THRESHOLD_DEFAULT: f64 = 0.25;

/// How to migrate.
#[derive(Clone, Debug)]
pub struct MigrateOptions {
    /// Which way deltas point.
    pub deltas: Deltas,
    /// The share of a container that may be superseded or dead before it is split (0 ..= 1).
    pub threshold: f64,
    /// Compression level of zstd.
    pub compression_level: i32,
    /// Bytes of memory to stay below.
    pub memory_bytes: u64,
    /// Bytes of old containers that are worked on between two commits; at least one container.
    pub piece_bytes: u64,
    /// Read back what was written, before each commit.
    pub verify_written: bool,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Who does it, recorded in the lease.
    pub user: String,
}

/// Figures of a migration.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MigrateSummary {
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
    pub ghosts_squeezed: u64,
    /// Chunks that resemble another, but stay whole because a delta would not be smaller.
    pub deltas_rejected: u64,
}

impl MigrateSummary {
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
        self.ghosts_squeezed += other.ghosts_squeezed;
    }
}

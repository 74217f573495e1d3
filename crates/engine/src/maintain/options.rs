//! How to maintain a series, and what maintenance did.

use crate::delta::Deltas;
use crate::setters::setters;
use crate::written::VerifyWritten;
use crate::{Command, Resources};
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
    /// Encode old containers once more.
    pub recompression: Option<Recompression>,
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
            recompression: None,
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
    with_recompression(recompression: Option<Recompression>),
    with_owns(owns: bool),
    with_take_over(take_over: bool),
    with_user(user: String),
});

impl MaintainOptions {
    /// The command whose memory it takes.
    pub(crate) fn command(&self) -> Command {
        let recompresses = self.recompression.is_some_and(|asked| !asked.only_when_idle);
        if recompresses { Command::Recompress } else { Command::Maintain }
    }
}

/// Encoding once more what lies in containers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Recompression {
    /// Level of zstd, 1 to 19; what was encoded once more at this level, or at a higher one, is left alone.
    pub level: u8,
    /// Bytes of old containers, of all series together, that are worked on at most.
    pub bytes_max: u64,
    /// Leave it where there is anything else to do, where requests take long, and where memory is short for it; and
    /// leave alone what the last snapshot of each series needs.
    pub only_when_idle: bool,
}

impl Recompression {
    /// The level unless another is asked for. Of 25 archives it takes 27 % off, in 3.5 s for 10 MiB stored; 19 takes
    /// 37 % off, in 43 s. Of 20 data folders of a database 12 takes 9 % off and 19 takes 18 %, in 12 s and 393 s for
    /// 25 MiB (AMD EPYC, 2 cores, November 2026).
    pub const LEVEL_DEFAULT: u8 = 12;

    /// Bytes that a run takes which has nothing else to do: a minute's work of four cores, about, at the usual level.
    pub const IDLE_BYTES: u64 = 256 << 20;

    /// Takes all that was not encoded at this level before; levels beyond 19 are as 19, those below 1 as 1.
    pub fn all_at(level: i32) -> Self {
        let level = u8::try_from(level.clamp(1, 19)).unwrap_or(Self::LEVEL_DEFAULT);
        Self { level, bytes_max: u64::MAX, only_when_idle: false }
    }

    /// Takes [`Self::IDLE_BYTES`] of what only old snapshots need, where there is nothing else to do, nor a shortcut to
    /// be made that saves readers of old snapshots work.
    pub fn when_idle() -> Self {
        Self { level: Self::LEVEL_DEFAULT, bytes_max: Self::IDLE_BYTES, only_when_idle: true }
    }

    /// Returns this with [`Self::bytes_max`] set.
    #[must_use]
    pub fn with_bytes_max(self, bytes_max: u64) -> Self {
        Self { bytes_max, ..self }
    }
}

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
    /// Snapshots past which shortcuts were made: no older delta hangs on what the next one no longer needs of them.
    pub shortcuts_made: u64,
    /// Containers that were encoded once more, or stay because that gains too little.
    pub recompressed: u64,
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
        self.shortcuts_made += other.shortcuts_made;
        self.recompressed += other.recompressed;
        self.orphans_deleted += other.orphans_deleted;
        self.orphan_bytes_deleted += other.orphan_bytes_deleted;
        self.ghosts_eliminated += other.ghosts_eliminated;
    }
}

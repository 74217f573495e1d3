//! A backup as it is asked for, and what it reports: sources, options, the summary and its counts.

use super::changed_list::ChangedList;
use super::source::DescribedEntries;
use crate::delta::{Deltas, SEGMENT_BYTES};
use crate::fs::ExcludeRules;
use crate::lease::machine_name;
use crate::maintain::{MIGRATE_THRESHOLD_DEFAULT, MaintainSummary};
use crate::setters::setters;
use crate::usage::Usage;
use crate::written::VerifyWritten;
use siltstone_store::manifest::SnapshotStatistics;
use siltstone_store::region::ZSTD_LEVEL_DEFAULT;
use siltstone_store::storage::{Latency, Storage};
use siltstone_store::{SnapshotId, Time};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Old data read back at each backup, unless asked otherwise: four regions or more, some hundredths of a second.
pub const SAMPLE_BYTES_DEFAULT: u64 = 8 << 20;
/// The share of files or bytes that a source may lose from one backup to the next, unless another is asked for.
pub const SHRINK_SHARE_DEFAULT: f64 = 0.5;
/// New data that the selector looks at together unless said otherwise, bytes (MeGA, section 4.2).
pub const SEGMENT_BYTES_DEFAULT: u64 = SEGMENT_BYTES as u64;
/// References from one segment into a container below which it is not read, unless said otherwise. On local disks even
/// one is worth it.
pub const DELTA_THRESHOLD_DEFAULT: u32 = 1;

/// Source of a backup.
pub enum Source {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// Files and folders of which only what is listed is looked at; the rest is as in the series' last snapshot, which
    /// must be of the same paths.
    Changes {
        /// The files and folders.
        paths: Vec<PathBuf>,
        /// Changes in them.
        list: Arc<ChangedList>,
    },
    /// One stream, stored as a regular file of this name. A read error fails the backup as a whole (so a reader that
    /// stands for a command reports the command's failure as its last read).
    Stream {
        /// Its path in the snapshot, such as `/stdin`.
        name: PathBuf,
        /// The bytes.
        reader: Box<dyn Read + Send>,
    },
    /// Entries that another program, archive or repository gives.
    Entries {
        /// The paths recorded as those backed up: absolute, sorted, at least one.
        paths: Vec<Vec<u8>>,
        /// The entries.
        entries: DescribedEntries,
    },
}

/// Options of a backup.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct BackupOptions {
    /// Series name; by default host and paths.
    pub series: Option<String>,
    /// Host recorded.
    pub host: String,
    /// User recorded, in the snapshot and in the lease.
    pub user: String,
    /// Tags recorded.
    pub tags: Vec<String>,
    /// Note recorded.
    pub description: Option<String>,
    /// Time recorded instead of now.
    pub time: Option<Time>,
    /// Name and version of the program, recorded.
    pub program: String,
    /// Rules for what is left out.
    pub exclude: ExcludeRules,
    /// Path at which the one source of [`Source::Paths`] is recorded instead of its own: that of which it is the
    /// mounted snapshot.
    pub as_path: Option<PathBuf>,
    /// Stay on the file systems of the source paths.
    pub one_file_system: bool,
    /// Read files again even if they seem unchanged.
    pub force: bool,
    /// Leave the change time out of the comparison.
    pub ignore_ctime: bool,
    /// Leave the inode number out of the comparison.
    pub ignore_inode: bool,
    /// Do everything but write.
    pub dry_run: bool,
    /// The share of its files or bytes that a source may lose since the last snapshot (0 ..= 1); `None`: any. Beyond,
    /// no snapshot is made.
    pub shrink_share: Option<f64>,
    /// Make no snapshot if it would equal the previous one.
    pub skip_if_unchanged: bool,
    /// Commit what is done so far now and then, and when interrupted; `None`: only the whole.
    pub checkpoint: Option<CheckpointRule>,
    /// Run a scan ahead, for an estimate of the whole.
    pub estimate: bool,
    /// Compression level of zstd.
    pub compression_level: i32,
    /// Take over a lease whose holder cannot be seen from here.
    pub take_over: bool,
    /// Direction of deltas.
    pub deltas: Deltas,
    /// Settle at once what this backup leaves behind; otherwise the next [`crate::maintain::maintain`] does.
    pub migrate: bool,
    /// The share of a container that may be superseded or dead before it is split (0 ..= 1).
    pub migrate_threshold: f64,
    /// References from one segment of new data into a container below which no base is read from it.
    pub delta_threshold: u32,
    /// New data that is looked at together for this, bytes; less where memory is short.
    pub segment_bytes: u64,
    /// Whether to read back what was written, before it is committed.
    pub verify_written: VerifyWritten,
    /// The series whose chunks are used instead of being stored again.
    pub borrow: Borrow,
    /// Old data of the last snapshot that is read back first, bytes. `None`: [`SAMPLE_BYTES_DEFAULT`] from a disk of
    /// this machine, nothing over a network.
    pub sample_bytes: Option<u64>,
}

impl Default for BackupOptions {
    fn default() -> Self {
        Self {
            series: None,
            host: machine_name(),
            user: String::new(),
            tags: Vec::new(),
            description: None,
            time: None,
            program: concat!("siltstone-engine ", env!("CARGO_PKG_VERSION")).to_owned(),
            exclude: ExcludeRules::default(),
            as_path: None,
            one_file_system: false,
            force: false,
            ignore_ctime: false,
            ignore_inode: false,
            dry_run: false,
            shrink_share: Some(SHRINK_SHARE_DEFAULT),
            skip_if_unchanged: false,
            checkpoint: None,
            estimate: false,
            compression_level: ZSTD_LEVEL_DEFAULT,
            take_over: false,
            deltas: Deltas::default(),
            migrate: true,
            migrate_threshold: MIGRATE_THRESHOLD_DEFAULT,
            delta_threshold: DELTA_THRESHOLD_DEFAULT,
            segment_bytes: SEGMENT_BYTES_DEFAULT,
            verify_written: VerifyWritten::default(),
            borrow: Borrow::default(),
            sample_bytes: None,
        }
    }
}

impl BackupOptions {
    /// Returns how much old data is read back first from this place, bytes.
    pub(super) fn sample_bytes_of(&self, storage: &dyn Storage) -> u64 {
        let usual = if storage.capabilities().latency == Latency::Disk { SAMPLE_BYTES_DEFAULT } else { 0 };
        self.sample_bytes.unwrap_or(usual)
    }
}

setters!(BackupOptions {
    with_series(series: Option<String>),
    with_host(host: String),
    with_user(user: String),
    with_tags(tags: Vec<String>),
    with_description(description: Option<String>),
    with_time(time: Option<Time>),
    with_program(program: String),
    with_exclude(exclude: ExcludeRules),
    with_as_path(as_path: Option<PathBuf>),
    with_one_file_system(one_file_system: bool),
    with_force(force: bool),
    with_ignore_ctime(ignore_ctime: bool),
    with_ignore_inode(ignore_inode: bool),
    with_dry_run(dry_run: bool),
    with_shrink_share(shrink_share: Option<f64>),
    with_skip_if_unchanged(skip_if_unchanged: bool),
    with_checkpoint(checkpoint: Option<CheckpointRule>),
    with_estimate(estimate: bool),
    with_compression_level(compression_level: i32),
    with_take_over(take_over: bool),
    with_deltas(deltas: Deltas),
    with_migrate(migrate: bool),
    with_migrate_threshold(migrate_threshold: f64),
    with_delta_threshold(delta_threshold: u32),
    with_segment_bytes(segment_bytes: u64),
    with_verify_written(verify_written: VerifyWritten),
    with_borrow(borrow: Borrow),
    with_sample_bytes(sample_bytes: Option<u64>),
});

/// Rule for when a running backup commits what it has done so far.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct CheckpointRule {
    /// Time after which it does,
    pub every: Duration,
    /// or bytes of new data.
    pub bytes: u64,
    /// Bytes of new data below which it never does, even when it is interrupted: to read them again costs less.
    pub bytes_least: u64,
}

impl CheckpointRule {
    /// Checkpoints every five minutes or four gigabytes: what an interruption costs at most, for some 100 KB each.
    pub const DEFAULT: Self = Self { every: Duration::from_mins(5), bytes: 4 << 30, bytes_least: 16 << 20 };
}

setters!(CheckpointRule { with_every(every: Duration), with_bytes(bytes: u64), with_bytes_least(bytes_least: u64) });

/// Counts of new chunks that resemble old ones, by what became of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DeltaCounts {
    /// Chunks in deltas.
    pub kept: u64,
    /// Chunks that stay whole because their delta saves too little.
    pub rejected: u64,
    /// Chunks that stay whole because their bases lie where too few others do.
    pub skipped: u64,
}

/// The series whose chunks a backup may borrow.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub enum Borrow {
    /// Those that turn out to have much of what is backed up.
    #[default]
    Auto,
    /// None.
    Never,
    /// The one of this name.
    From(String),
}

/// Chunks that the last snapshot lacked, but an older live one, or another series, had: used again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Reused {
    /// Number of chunks, data and metadata.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
}

/// Chunks that could not be read and were stored again under their numbers, because the source still had their content.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Healed {
    /// Number of chunks, data and metadata.
    pub chunks: u64,
    /// Their bytes.
    pub plain_bytes: u64,
}

/// Summary of a backup.
#[derive(Clone, Debug)]
pub struct BackupSummary {
    /// The snapshot made; `None` in a dry run, or if skipped as unchanged.
    pub snapshot: Option<SnapshotId>,
    /// The snapshot it was compared with.
    pub parent: Option<SnapshotId>,
    /// The series' name.
    pub series: String,
    /// Counts and bytes, as they stand with the snapshot: what was settled after it is part of them.
    pub statistics: SnapshotStatistics,
    /// Chunks encoded against the snapshot before.
    pub deltas: DeltaCounts,
    /// Chunks that snapshots before the one before had.
    pub reused: Reused,
    /// Chunks that other series lend.
    pub borrowed: Reused,
    /// Chunks that were damaged and are whole again.
    pub healed: Healed,
    /// Data moved once the snapshot stood.
    pub migration: MaintainSummary,
    /// Sources given that could not be looked at at all; they count as problems too.
    pub missing_sources: u64,
    /// Usage that a dry run expects of the run, at a distance, on a repository that is open: without what is settled
    /// once the snapshot stands, and without renewals of the lease.
    pub usage: Usage,
}

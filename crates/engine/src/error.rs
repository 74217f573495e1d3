//! Why a command as a whole could not be done. What concerns one entry only is a [`crate::fs::Problem`] and does not
//! stop a run.

use crate::seen::Loss;
use siltstone_store::StoreError;
use std::path::PathBuf;

/// A command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The repository: missing, locked, damaged, full, not ours.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// No snapshot goes by that name.
    #[error("no snapshot matches '{wanted}'; 'silt snapshots' lists what there is")]
    NoSnapshot {
        /// What was asked for.
        wanted: String,
    },
    /// A short id fits several.
    #[error("'{wanted}' fits {count} snapshots; give more of its digits")]
    AmbiguousSnapshot {
        /// What was asked for.
        wanted: String,
        /// How many fit.
        count: usize,
    },
    /// The snapshot is marked as deleted.
    #[error("snapshot {snapshot} was deleted; 'silt undelete {snapshot}' brings it back")]
    SnapshotDeleted {
        /// Short id.
        snapshot: String,
    },
    /// The snapshot is not marked as deleted.
    #[error("snapshot {snapshot} is not deleted; 'silt snapshots --deleted' lists those that are")]
    NotDeleted {
        /// Short id.
        snapshot: String,
    },
    /// A snapshot to be brought back is gone: the time for which it was kept was over.
    #[error("snapshot {snapshot} is gone for good, no snapshot of the series '{series}' was brought back")]
    DeletedForGood {
        /// Short id.
        snapshot: String,
        /// The series' name.
        series: String,
    },
    /// The snapshot does not hold that path.
    #[error("snapshot {snapshot} holds no '{path}'; 'silt ls {snapshot}' lists what it holds")]
    NoSuchPath {
        /// Short id.
        snapshot: String,
        /// The path, lossily as text.
        path: String,
    },
    /// `dump` of something without content.
    #[error("'{path}' in snapshot {snapshot} is neither a file nor a directory")]
    NotDumpable {
        /// Short id.
        snapshot: String,
        /// The path.
        path: String,
    },
    /// None of the sources could be looked at.
    #[error("nothing to back up: {path}: {source}")]
    NoSource {
        /// The first that failed.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The stream on standard input, or the command behind it, failed: no snapshot was made.
    #[error("the stream '{name}' failed, no snapshot was made: {source}")]
    Stream {
        /// Name of the stream in the snapshot.
        name: String,
        /// Why.
        source: std::io::Error,
    },
    /// The target of a restore, or an output, could not be used.
    #[error("{path}: {source}")]
    Target {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A restore there would probably be a mistake that cannot be undone.
    #[error("refusing to restore into {path}: {reason}")]
    DangerousTarget {
        /// The target.
        path: PathBuf,
        /// Why, and what to do instead.
        reason: String,
    },
    /// A local file the engine needs for itself (spilled index, cache) failed.
    #[error("local work file: {source}")]
    Local {
        /// Why.
        source: std::io::Error,
    },
    /// An include or exclude pattern is no valid glob.
    #[error("pattern '{pattern}': {reason}")]
    BadPattern {
        /// The pattern.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The memory option is below what any run needs.
    #[error("--memory {given_mib} MiB is too little; at least {least_mib} MiB are needed")]
    MemoryTooSmall {
        /// What was given.
        given_mib: u64,
        /// The least.
        least_mib: u64,
    },
    /// An entry of a list of changes is not understood.
    #[error("{list}, {place}: '{found}': {expected}")]
    BadChangedList {
        /// Which list.
        list: String,
        /// Where in it.
        place: String,
        /// What stands there, escaped, perhaps cut short.
        found: String,
        /// What is expected there.
        expected: &'static str,
    },
    /// An entry of a list of changes lies in none of the sources.
    #[error("the list of changes, {place}: '{path}' lies outside the sources of this backup")]
    OutsideSources {
        /// The path, made absolute.
        path: PathBuf,
        /// Where in the list.
        place: String,
    },
    /// A list of changes could not be read.
    #[error("{list}: {source}")]
    ChangedListUnreadable {
        /// Which list.
        list: String,
        /// Why.
        source: std::io::Error,
    },
    /// A list of changes would take more memory than it may.
    #[error(
        "{list}: {entries} entries are more than fit into the {most_mib} MiB that a list of changes may take; raise --memory to some \
         {needed_mib} MiB, split the list over several backups, or back up without it"
    )]
    ChangedListTooLarge {
        /// Which list.
        list: String,
        /// Its length.
        entries: u64,
        /// What it may take.
        most_mib: u64,
        /// A limit of the whole backup that would do, about.
        needed_mib: u64,
    },
    /// A list of changes, but nothing that it could build on.
    #[error("the series '{series}' has no snapshot that a list of changes could build on; make a full backup first")]
    NoPreviousSnapshot {
        /// The series' name.
        series: String,
    },
    /// A list of changes for other sources than those of the snapshot it would build on.
    #[error(
        "the series' last snapshot is of {previous}, not of {given}; name the same paths, or make a full backup first"
    )]
    OtherSources {
        /// Sources of the last snapshot.
        previous: String,
        /// Sources given.
        given: String,
    },
    /// What a list of changes does not mention cannot be copied from the previous snapshot.
    #[error(
        "the previous snapshot cannot be built on: {reason}; make a full backup, which stores again what is missing"
    )]
    PreviousUnusable {
        /// Why.
        reason: String,
    },
    /// A file with several names changed, and the list does not mention all of them.
    #[error(
        "'/{listed}' changed, and '/{other}' is another name of the same file that the list of changes does not mention; \
         list all its names, or make a full backup"
    )]
    UnlistedName {
        /// The name listed.
        listed: String,
        /// One that is not.
        other: String,
    },
    /// A source of which the list says that something in it changed cannot be looked at.
    #[error("{problem}; no snapshot was made, so that its content does not pass for deleted")]
    SourceGone {
        /// What went wrong, with the source's path.
        problem: String,
    },
    /// An average size of chunks that no repository can have.
    #[error("{given} bytes are no average size of chunks; it must be from 4 KiB to 1 MiB")]
    BadChunkSize {
        /// What was given.
        given: u64,
    },
    /// The source lost most of what it had, or all. No snapshot was made.
    #[error(
        "the source has shrunk to {files} files of {bytes} bytes in all, snapshot {snapshot} has {files_before} of {bytes_before} bytes: \
         no snapshot was made"
    )]
    SourceShrunk {
        /// Short id of the snapshot it was compared with.
        snapshot: String,
        /// Its files.
        files_before: u64,
        /// Their bytes.
        bytes_before: u64,
        /// Files now.
        files: u64,
        /// Their bytes.
        bytes: u64,
    },
    /// No snapshot of a series would be left. None was removed.
    #[error("refusing to remove all snapshots of the series '{series}', nothing was removed")]
    RemovesAll {
        /// The series' name.
        series: String,
    },
    /// What is there contradicts what this machine saw of the repository.
    #[error(
        "{}: an older copy of the repository was brought back, or part of it was deleted; bring the newer one back, see \
         what 'silt repair' finds of it, or go on with what is there by --accept-rollback",
        .losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    HistoryLost {
        /// The series concerned.
        losses: Vec<Loss>,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

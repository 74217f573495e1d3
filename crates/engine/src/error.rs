//! Why a command as a whole could not be done. What concerns one entry only is a [`crate::fs::Problem`] and does not
//! stop a run.

use crate::history::Loss;
use siltstone_store::StoreError;
use std::fmt;
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
        /// Reference that was asked for.
        wanted: String,
    },
    /// A short id fits several.
    #[error("'{wanted}' fits {count} snapshots; give more of its digits")]
    AmbiguousSnapshot {
        /// Reference that was asked for.
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
    #[error("snapshot {snapshot} is not deleted; it is there already")]
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
    /// Reading the bytes of something that has none.
    #[error("'{path}' in snapshot {snapshot} is not a regular file")]
    NotAFile {
        /// Short id.
        snapshot: String,
        /// The path.
        path: String,
    },
    /// Chunks of a series were to be borrowed that has none to lend.
    #[error(
        "series '{series}' lends nothing: it has no backup here, or is the one backed up to; \
         'silt stats' shows the series there are"
    )]
    NoLender {
        /// Its name.
        series: String,
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
    /// None of the patterns that choose what is restored matches anything.
    #[error("nothing in the snapshot matches {}: nothing was restored", some_of(patterns))]
    NothingIncluded {
        /// The patterns, as they were written.
        patterns: Vec<String>,
    },
    /// A restore there would probably be a mistake that cannot be undone.
    #[error("refusing to restore into {path}: {reason}")]
    DangerousTarget {
        /// The target.
        path: PathBuf,
        /// Why.
        reason: Danger,
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
        /// Fault.
        reason: String,
    },
    /// The memory option is below what any run needs.
    #[error("{given_mib} MiB of memory are too little; at least {least_mib} MiB are needed")]
    MemoryTooSmall {
        /// Memory given, in MiB.
        given_mib: u64,
        /// The least.
        least_mib: u64,
    },
    /// An archive to be imported cannot be read.
    #[error("{archive}, byte {at}: {reason}")]
    BadArchive {
        /// Its name.
        archive: String,
        /// Where in it, after decompression.
        at: u64,
        /// Why.
        reason: String,
    },
    /// An entry of a list of changes is not understood.
    #[error("{list}, {place}: '{found}': {expected}")]
    BadChangedList {
        /// Which list.
        list: String,
        /// Where in it.
        place: String,
        /// Text that stands there, escaped, perhaps cut short.
        found: String,
        /// Text expected there.
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
        "{list}: {entries} entries are more than fit into the {most_mib} MiB that a list of changes may take; allow \
         some {needed_mib} MiB of memory, split the list over several backups, or back up without it"
    )]
    ChangedListTooLarge {
        /// Which list.
        list: String,
        /// Its length.
        entries: u64,
        /// Memory it may take, in MiB.
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
    /// Files that a list of changes does not mention cannot be copied from the previous snapshot.
    #[error(
        "the previous snapshot cannot be built on: {reason}; make a full backup, which stores again what is missing"
    )]
    PreviousUnusable {
        /// Why.
        reason: String,
    },
    /// A file with several names changed, and the list does not mention all of them.
    #[error(
        "'/{listed}' changed, and '/{other}' is another name of the same file that the list of changes does not \
         mention; list all its names, or make a full backup"
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
        /// Fault, with the source's path.
        problem: String,
    },
    /// An average size of chunks that no repository can have.
    #[error("{given} bytes are no average size of chunks; it must be from 4 KiB to 1 MiB")]
    BadChunkSize {
        /// Value given.
        given: u64,
    },
    /// The source lost most of what it had, or all. No snapshot was made.
    #[error(
        "the source has shrunk: {files} of {files_before} files and {bytes} of {bytes_before} bytes are left since \
         snapshot {snapshot}; no snapshot was made"
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
    /// Nothing of a snapshot would be left but directories. None was changed.
    #[error("refusing to exclude all files of snapshot {snapshot}, nothing was changed")]
    ExcludesAll {
        /// Short id of the snapshot.
        snapshot: String,
    },
    /// No rule says which snapshots to keep. None was removed.
    #[error("no policy was specified, no snapshots will be removed")]
    EmptyPolicy,
    /// The repository's record holds no policy for any series. None was removed.
    #[error("the repository holds no policy, no snapshots will be removed")]
    NoRecordedPolicy,
    /// A policy in the repository's record is not understood whole. None was removed.
    #[error("the repository's setting '{setting}' is not followed: {reason}")]
    RecordedPolicy {
        /// Name of the setting.
        setting: String,
        /// Reason why.
        reason: String,
    },
    /// All snapshots of all series would go. None was removed.
    #[error("removing every snapshot without a rule is only allowed of those that a filter chooses")]
    RemovesAllUnfiltered,
    /// The rules keep no snapshot of a group. None was removed.
    #[error("refusing to remove all {snapshots} snapshots of a group: the policy keeps none")]
    GroupEmptied {
        /// Number of snapshots in it.
        snapshots: usize,
    },
    /// The repository's state contradicts what this machine saw of it.
    #[error(
        "{}: an older copy of the repository was brought back, or part of it was deleted; bring the newer one back, \
         see what 'silt repair' finds of it, or accept the loss",
        .losses.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    )]
    HistoryLost {
        /// The series concerned.
        losses: Vec<Loss>,
    },
    /// A snapshot was to be copied into the repository that it is in.
    #[error("source and destination are the same repository, {repository}: name another one as the source")]
    SameRepository {
        /// Identity of the repository.
        repository: String,
    },
    /// Part of a snapshot that was to be copied cannot be read, so that no copy of it was made.
    #[error(
        "snapshot {snapshot} of the source repository is not copied: {problems} of its entries cannot be read; check \
         and repair the source repository, then copy again"
    )]
    CopyIncomplete {
        /// Short id of the snapshot.
        snapshot: String,
        /// Entries that cannot be read.
        problems: u64,
    },
    /// Something is to be recorded at another path that is not one source other than the root.
    #[error("only one file or folder, and not the root, can be recorded as {}", .as_path.display())]
    NotOneSource {
        /// Path it was to be recorded at.
        as_path: PathBuf,
    },
    /// The catalog of a snapshot that was to be copied cannot be read, so that no copy of it was made.
    #[error("snapshot {snapshot} of the source repository is not copied: {reason}")]
    CopyUnreadable {
        /// Short id of the snapshot.
        snapshot: String,
        /// Damage met.
        reason: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

/// The danger of a restore into a folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Danger {
    /// It would write into the repository.
    InRepository,
    /// It would remove the repository.
    HoldsRepository,
    /// It would remove what the snapshot does not hold from this folder, such as "a home folder".
    Empties(&'static str),
}

impl fmt::Display for Danger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InRepository => f.write_str("it is, or lies in, the folder of the repository; choose another target"),
            Self::HoldsRepository => f.write_str(
                "it holds the folder of the repository, which would be removed too; choose another target, or let \
                 nothing be removed",
            ),
            Self::Empties(folder) => write!(
                f,
                "it is {folder}, and everything in it that the snapshot does not hold would be removed; choose what is \
                 restored, or allow it"
            ),
        }
    }
}

impl EngineError {
    /// Tells whether bytes in the repository are not those that were written.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_damage())
    }
}

/// Patterns that an error names; it counts the others.
const PATTERNS_NAMED: usize = 5;

/// The first of these patterns, and how many more there are.
fn some_of(patterns: &[String]) -> String {
    let named: Vec<String> = patterns.iter().take(PATTERNS_NAMED).map(|pattern| format!("'{pattern}'")).collect();
    match (patterns.len() - named.len(), named.as_slice()) {
        (0, []) => "an empty list of patterns".to_owned(),
        (0, [one]) => one.clone(),
        (0, [some @ .., last]) => format!("{} or {last}", some.join(", ")),
        (more, some) => format!("{} or {more} more patterns", some.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::some_of;

    /// Sources that hold the messages of errors, this crate's and the store's.
    const SOURCES: [&str; 3] = [
        include_str!("error.rs"),
        include_str!("../../store/src/error.rs"),
        include_str!("../../store/src/storage/error.rs"),
    ];

    #[test]
    fn no_message_names_an_option_of_a_program() {
        let option = "-".repeat(2);
        let is_text = |line: &&str| !line.trim_start().starts_with("//");
        for line in SOURCES.iter().flat_map(|source| source.lines()).filter(is_text) {
            assert!(!line.contains(&option), "what to type is for the program to say: {line}");
        }
    }

    #[test]
    fn an_error_names_some_patterns_and_counts_the_rest() {
        let patterns: Vec<String> = ["a", "b", "c", "d", "e", "f", "g"].map(str::to_owned).into();
        assert_eq!(some_of(&patterns[..1]), "'a'");
        assert_eq!(some_of(&patterns[..3]), "'a', 'b' or 'c'");
        assert_eq!(some_of(&patterns), "'a', 'b', 'c', 'd', 'e' or 2 more patterns");
        assert_eq!(some_of(&[]), "an empty list of patterns");
    }
}

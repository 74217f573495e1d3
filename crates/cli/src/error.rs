//! Why the program ends without having done its work, and with which exit status.

use crate::commands::schedule::ScheduleError;
use crate::hint;
use crate::password::Whose;
use crate::profile::ProfileError;
use crate::render::counted;
use siltstone_engine::EngineError;
use siltstone_engine::fs::PatternError;
use siltstone_mount::MountError;
use siltstone_remote::{ConnectError, PlaceError};
use siltstone_serve::ServeError;
use siltstone_store::storage::StorageError;
use siltstone_store::{RecoveryKeyError, StoreError};
use std::borrow::Cow;
use std::error::Error;
use std::io;
use std::path::PathBuf;

pub(crate) const EXIT_FAILED: u8 = 1;
pub(crate) const EXIT_INCOMPLETE: u8 = 3;
pub(crate) const EXIT_NO_REPOSITORY: u8 = 10;
pub(crate) const EXIT_LOCKED: u8 = 11;
pub(crate) const EXIT_WRONG_PASSWORD: u8 = 12;
/// Commits are gone that are known to have been there.
pub(crate) const EXIT_HISTORY_LOST: u8 = 13;
/// A guard refused what would probably be a mistake; an option of the command allows it.
pub(crate) const EXIT_REFUSED: u8 = 14;
/// The key adds backups and reads none.
pub(crate) const EXIT_WRITE_ONLY: u8 = 15;
pub(crate) const EXIT_INTERRUPTED: u8 = 130;

/// How a command that ran to its end went.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Done {
    /// Everything was done.
    Whole,
    /// Some of it could not be done; each was told.
    InPart,
}

impl Done {
    /// How both together went.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == Self::Whole { other } else { self }
    }
}

/// A command failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CliError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error("no repository given: use -r, or set SILT_REPOSITORY")]
    NoRepositoryGiven,
    #[error("no source repository given: use --from-repo, or set SILT_FROM_REPOSITORY")]
    NoSourceRepositoryGiven,
    #[error("no restic repository given: use --from-repo, or set RESTIC_REPOSITORY")]
    NoResticRepositoryGiven,
    #[error(
        "{address}: a restic repository is read from a folder of this machine: mount its place there, as by 'rclone \
         mount' or sshfs, or copy it"
    )]
    ResticElsewhere { address: String },
    #[error("there is no restic repository in {folder}: {reason}")]
    NoResticRepository { folder: PathBuf, reason: String },
    #[error("the password does not open the restic repository in {folder}")]
    ResticPassword { folder: PathBuf },
    #[error("cannot read the restic repository in {folder}: {reason}")]
    ResticUnreadable { folder: PathBuf, reason: String },
    #[error("the restic repository has no snapshot whose id begins with '{wanted}'; 'restic snapshots' lists them")]
    NoResticSnapshot { wanted: String },
    #[error("both {first} and {second} are given; they exclude each other, give one")]
    Conflict { first: &'static str, second: &'static str },
    #[error("cannot read the place of the repository from {path}: {source}")]
    RepositoryFile { path: PathBuf, source: io::Error },
    #[error("the place in {path} is empty: put the repository's path on its first line")]
    RepositoryFileEmpty { path: PathBuf },
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Schedule(Box<ScheduleError>),
    #[error("the hook '{name}' of 'silt {command}' failed: its line {number} ended with {reason}")]
    Hook { command: String, name: &'static str, number: usize, reason: String },
    #[error("{failed} of {of} sources failed, as told above")]
    Sources { failed: usize, of: usize, number: usize, first: Box<CliError> },
    #[error(transparent)]
    Place(#[from] PlaceError),
    #[error(transparent)]
    Connect(ConnectError),
    #[error(transparent)]
    Serve(#[from] ServeError),
    #[error(transparent)]
    Mount(#[from] MountError),
    #[error("{path} of the snapshot is not a path on disk: it was made of something else")]
    NotOnDisk { path: PathBuf },
    #[error("two snapshots are compared whole: --exclude and its like are for --live")]
    ExcludesNothing,
    #[error("the root folder has no history: name a file or folder in it")]
    RootHasNoHistory,
    #[error("no snapshot has {path}; 'silt find' looks for names")]
    NoSnapshotHas { path: PathBuf },
    #[error("--series: {0}")]
    TokenSeries(String),
    #[error("{path} is not empty: a new repository needs an empty or a new folder")]
    FolderNotEmpty { path: PathBuf },
    #[error("cannot read the password file {path}: {source}")]
    PasswordFile { path: PathBuf, source: io::Error },
    #[error("the password command '{command}' failed: {reason}")]
    PasswordCommand { command: String, reason: String },
    #[error("cannot read the password: {0}; give it by a file, a command or SILT_PASSWORD where there is no terminal")]
    PasswordPrompt(io::Error),
    #[error(
        "an empty password of {} is not allowed: {} gives one, {} allows it",
        whose.name(), whose.given_by(), whose.empty_by()
    )]
    EmptyPassword { whose: Whose },
    #[error("the two passwords differ")]
    PasswordsDiffer,
    #[error(
        "standard input cannot give both the password and the data: give the password by a file, a command or SILT_PASSWORD"
    )]
    PasswordAndData,
    #[error("{name} is '{value}': {reason}")]
    BadVariable { name: &'static str, value: String, reason: String },
    #[error("nothing to back up: name files or folders, or use --files-from or --stdin")]
    NothingToBackUp,
    #[error("cannot read the list {path}: {source}")]
    ListFile { path: PathBuf, source: io::Error },
    #[error("cannot read the archive {path}: {source}")]
    Archive { path: PathBuf, source: io::Error },
    #[error("--time is the time of one snapshot, and several archives are given: import them one by one")]
    TimeOfSeveral,
    #[error("the list {path} does not end with a NUL byte: it is cut short, or not made for --files-from-raw")]
    ListCutShort { path: PathBuf },
    #[error("the command '{command}' cannot be started: {source}")]
    StreamCommand { command: String, source: io::Error },
    #[error("{path} is there and is no key file: name a new file for --key-file, or a key file")]
    NoKeyFile { path: PathBuf },
    #[error("cannot write {path}: {source}")]
    OutputFile { path: PathBuf, source: io::Error },
    #[error(
        "refusing to remove all snapshots of the group {group}: the policy keeps none; --unsafe-allow-remove-all allows it"
    )]
    GroupEmptied { group: String },
    #[error(
        "snapshot {snapshot} is partial, the work of a backup that did not end: only whole snapshots are copied, and \
         the next backup of its series makes one"
    )]
    CopyPartial { snapshot: String },
    #[error("the repository is damaged: {} found", counted(*findings as u64, "error"))]
    Damaged { findings: usize },
    #[error("there {} {}", if *problems == 1 { "was" } else { "were" }, counted(*problems, "error"))]
    RestoreProblems { problems: u64 },
    #[error("cannot read the recovery sheet {path}: {source}")]
    Sheet { path: PathBuf, source: io::Error },
    #[error(transparent)]
    RecoveryKey(#[from] RecoveryKeyError),
    #[error(
        "the sheet is of master key {number} of the repository {repository}, which does not open {location}: that is another \
         repository, or its master key was changed since; nothing was changed"
    )]
    ForeignSheet { repository: String, number: u32, location: String },
    #[error("--pick asks at a terminal, and there is none, or --json is given: choose by --include")]
    NoOneToPick,
    #[error("nothing was picked, nothing was restored")]
    NothingPicked,
    #[error("cannot read the answer: {0}")]
    Answer(io::Error),
    #[error("name and password in {path}: {reason}")]
    AuthFile { path: PathBuf, reason: String },
    #[error("nothing to take out: --exclude says what")]
    NothingExcluded,
    #[error(
        "a password hash of {memory_kib} KiB, {passes} passes and {lanes} lanes does not work: it takes a pass, a lane \
         and 8 KiB for each lane at least; choose other --kdf-memory, --kdf-passes, --kdf-lanes"
    )]
    KdfTooCheap { memory_kib: u32, passes: u32, lanes: u32 },
    #[error("the repository keeps no policy for {series}; 'silt policy list' lists what it keeps")]
    NoPolicy { series: String },
    #[error("no key has an id that begins with '{wanted}'; 'silt key list' lists them")]
    NoSuchKey { wanted: String },
    #[error("'{wanted}' fits several keys ({count}); give more of its digits")]
    AmbiguousKey { wanted: String, count: usize },
    #[error("--lease-timeout must be at least {least}: a renewal may be late without its writer being dead")]
    LeaseTimeoutShort { least: String },
    #[error("nothing was changed: {option} carries the plan out, --dry-run only shows it")]
    NotConfirmed { option: &'static str },
    #[error("the price list {path} cannot be used: {reason}")]
    PriceList { path: PathBuf, reason: String },
    #[error("no price list has '{store}'; known are {known}")]
    NoPrices { store: String, known: String },
    #[error("an archive is not written to a terminal: name a file by {option}, or direct it elsewhere")]
    ArchiveToTerminal { option: &'static str },
    #[error("cannot write the output: {0}")]
    Output(io::Error),
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Place(error) => error.into(),
            ConnectError::Storage(error) => error.into(),
            error => Self::Connect(error),
        }
    }
}

impl CliError {
    /// The exit status that tells this error.
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            Self::Engine(error) | Self::Mount(MountError::Engine(error)) => engine_status(error),
            Self::NoResticRepository { .. } => EXIT_NO_REPOSITORY,
            Self::ResticPassword { .. } => EXIT_WRONG_PASSWORD,
            Self::PasswordPrompt(error) if error.kind() == io::ErrorKind::Interrupted => EXIT_INTERRUPTED,
            Self::Store(error) => store_status(error),
            Self::Storage(error) => storage_status(error),
            Self::Sources { first, .. } => first.exit_status(),
            Self::GroupEmptied { .. } => EXIT_REFUSED,
            _ => EXIT_FAILED,
        }
    }

    /// Tells whether another writer stood in the way, so that trying again later helps.
    pub(crate) fn is_locked(&self) -> bool {
        self.exit_status() == EXIT_LOCKED
    }

    /// Tells whether the reader of our output went away: nothing is left to tell, and nobody to tell it to.
    pub(crate) fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// The error and its causes in one line, without saying anything twice.
    pub(crate) fn message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = self.source();
        while let Some(error) = cause {
            let text = error.to_string();
            if !message.contains(&text) {
                message.push_str(": ");
                message.push_str(&text);
            }
            cause = error.source();
        }
        hint::added_to(message, self.hint())
    }

    /// The message for others than whoever runs the command: commands that are named in it may hold passwords.
    pub(crate) fn message_without_secrets(&self) -> String {
        match self {
            Self::PasswordCommand { reason, .. } => format!("the password command failed: {reason}"),
            Self::Sources { failed, of, number, first } => {
                format!("{failed} of {of} sources failed: source {number}: {}", first.message_without_secrets())
            }
            error => error.message(),
        }
    }

    fn hint(&self) -> Option<Cow<'static, str>> {
        match self {
            Self::Engine(error) | Self::Mount(MountError::Engine(error)) => hint::of_engine(error),
            Self::Store(error) => hint::of_store(error),
            Self::Storage(error) => hint::of_storage(error),
            _ => None,
        }
    }
}

fn engine_status(error: &EngineError) -> u8 {
    match error {
        EngineError::Interrupted => EXIT_INTERRUPTED,
        EngineError::HistoryLost { .. } => EXIT_HISTORY_LOST,
        EngineError::Store(error) => store_status(error),
        EngineError::DangerousTarget { .. }
        | EngineError::SourceShrunk { .. }
        | EngineError::RemovesAllUnfiltered
        | EngineError::GroupEmptied { .. }
        | EngineError::ExcludesAll { .. }
        | EngineError::RemovesAll { .. } => EXIT_REFUSED,
        _ => EXIT_FAILED,
    }
}

fn store_status(error: &StoreError) -> u8 {
    match error {
        error if error.is_lost_race() => EXIT_LOCKED,
        StoreError::NotARepository { .. } => EXIT_NO_REPOSITORY,
        StoreError::WrongPassword { .. } | StoreError::KeyFile | StoreError::KeyInvalid { .. } => EXIT_WRONG_PASSWORD,
        StoreError::WriteOnly { .. } => EXIT_WRITE_ONLY,
        StoreError::LostManifest { .. } | StoreError::LostSeries { .. } => EXIT_HISTORY_LOST,
        StoreError::Storage(error) => storage_status(error),
        StoreError::Shared(error) => store_status(error),
        _ => EXIT_FAILED,
    }
}

fn storage_status(error: &StorageError) -> u8 {
    let absent = |source: &io::Error| matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory);
    match error {
        StorageError::Unreachable { source, .. } if absent(source) => EXIT_NO_REPOSITORY,
        StorageError::NoBucket { .. } => EXIT_NO_REPOSITORY,
        StorageError::Swept { .. } => EXIT_LOCKED,
        _ => EXIT_FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_engine::Danger;

    fn unreachable(kind: io::ErrorKind) -> CliError {
        CliError::Storage(StorageError::Unreachable { location: "/repo".into(), source: kind.into() })
    }

    #[test]
    fn each_kind_of_failure_has_its_status() {
        let location = || "/repo".to_owned();
        let held = || StoreError::LeaseHeld { series: "s".into(), holder: "h".into(), since: "now".into() };
        let cases = [
            (CliError::Engine(EngineError::EmptyPolicy), 1),
            (CliError::Store(StoreError::NotARepository { location: location() }), 10),
            (unreachable(io::ErrorKind::NotFound), 10),
            (unreachable(io::ErrorKind::PermissionDenied), 1),
            (CliError::Storage(StorageError::NoBucket { location: location() }), 10),
            (CliError::Engine(EngineError::Store(held())), 11),
            (CliError::Store(StoreError::Fenced { series: "s".into() }), 11),
            (CliError::Store(StoreError::WrongPassword { location: location(), slots: 1, untried: 0 }), 12),
            (CliError::Store(StoreError::LostManifest { container: "c".into(), sequence: 1 }), 13),
            (CliError::GroupEmptied { group: "g".into() }, 14),
            (CliError::Store(StoreError::WriteOnly { what: "restoring".into() }), 15),
            (CliError::Mount(EngineError::Store(StoreError::WriteOnly { what: "mounting".into() }).into()), 15),
            (CliError::Engine(EngineError::RemovesAllUnfiltered), 14),
            (CliError::Engine(EngineError::RemovesAll { series: "s".into() }), 14),
            (CliError::Engine(EngineError::DangerousTarget { path: "/".into(), reason: Danger::InRepository }), 14),
            (CliError::Engine(EngineError::Interrupted), 130),
            (CliError::PasswordPrompt(io::ErrorKind::Interrupted.into()), 130),
        ];
        for (error, status) in cases {
            assert_eq!(error.exit_status(), status, "{error}");
        }
    }

    #[test]
    fn a_message_holds_every_cause_once() {
        let message = unreachable(io::ErrorKind::NotFound).message();
        assert!(message.contains("/repo") && message.ends_with("entity not found"), "{message}");
        let source = io::Error::other("the disk is on fire");
        let message = CliError::RepositoryFile { path: "/x".into(), source }.message();
        assert_eq!(message.matches("the disk is on fire").count(), 1, "{message}");
    }
}

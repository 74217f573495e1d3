//! The record of a run: what `silt schedule status` shows of the last one, and what metrics and notifications say.
//!
//! It lies in the user's state folder, one file for each profile and command. No secret is in it: passwords,
//! variables and lines of hooks stand in no field, and the messages of errors name none of them.

use super::figures::Counted;
use crate::environment;
use crate::error::{EXIT_INCOMPLETE, EXIT_INTERRUPTED};
use crate::render::visible;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of what no profile is chosen for, which no profile can have.
const NO_PROFILE: &str = "-";
/// Bytes of a message that are kept.
const ERROR_BYTES_MAX: usize = 2000;

/// How a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Debug)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Status {
    Success,
    /// Some of it could not be done.
    Partial,
    Failed,
    Interrupted,
}

impl Status {
    pub(super) fn of(exit_code: u8) -> Self {
        match exit_code {
            0 => Self::Success,
            EXIT_INCOMPLETE => Self::Partial,
            EXIT_INTERRUPTED => Self::Interrupted,
            _ => Self::Failed,
        }
    }

    /// The word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::Partial => "partial",
            Self::Failed => "failed",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A moment, to the second, as RFC 3339 writes it.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize, Debug)]
#[serde(into = "String", try_from = "String")]
pub(crate) struct Stamp(pub(crate) Timestamp);

impl Stamp {
    pub(super) fn now() -> Self {
        let now = Timestamp::now();
        Self(Timestamp::from_second(now.as_second()).unwrap_or(now))
    }
}

impl From<Stamp> for String {
    fn from(stamp: Stamp) -> Self {
        stamp.0.to_string()
    }
}

impl TryFrom<String> for Stamp {
    type Error = jiff::Error;

    fn try_from(text: String) -> Result<Self, jiff::Error> {
        text.parse().map(Self)
    }
}

/// A run that has ended.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct Record {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) profile: Option<String>,
    pub(crate) command: String,
    pub(crate) host: String,
    pub(crate) started: Stamp,
    pub(crate) ended: Stamp,
    pub(crate) duration_seconds: f64,
    pub(crate) status: Status,
    pub(crate) exit_code: u8,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    /// Ids of the snapshots that were made.
    pub(crate) snapshots: Vec<String>,
    pub(crate) figures: BTreeMap<String, u64>,
    /// When a run last ended with success.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) last_success: Option<Stamp>,
}

/// A run while it goes on.
#[derive(Clone, Debug)]
pub(super) struct Begun {
    pub(super) profile: Option<String>,
    pub(super) command: String,
    pub(super) started: Stamp,
}

impl Begun {
    /// Ends it now.
    pub(super) fn ended(self, took: Duration, exit_code: u8, error: Option<String>, counted: &Counted) -> Record {
        let status = Status::of(exit_code);
        let before = || Record::last(self.profile.as_deref(), &self.command)?.last_success;
        let ended = Stamp::now();
        let last_success = if status == Status::Success { Some(ended) } else { before() };
        let figures = counted.numbers.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect();
        Record {
            host: environment::host(),
            started: self.started,
            ended,
            duration_seconds: (took.as_secs_f64() * 1000.0).round() / 1000.0,
            status,
            exit_code,
            error: error.map(shortened),
            snapshots: counted.snapshots.clone(),
            figures,
            last_success,
            profile: self.profile,
            command: self.command,
        }
    }
}

impl Record {
    /// The record of the last run of a command; `None` if there was none, or it cannot be read.
    pub(crate) fn last(profile: Option<&str>, command: &str) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file(profile, command)?).ok()?).ok()
    }

    /// Keeps it in the place of the one before.
    pub(super) fn keep(&self) -> io::Result<()> {
        let Some(file) = file(self.profile.as_deref(), &self.command) else { return Ok(()) };
        let folder = file.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        replace(&file, serde_json::to_string_pretty(self)? + "\n", 0o600)
    }

    /// The run in one line.
    pub(crate) fn summary(&self) -> String {
        let profile = self.profile.as_ref().map_or_else(String::new, |name| format!(", profile {name}"));
        let how = match self.status {
            Status::Success => "done".to_owned(),
            Status::Partial => "done in part".to_owned(),
            Status::Interrupted => "interrupted".to_owned(),
            Status::Failed => format!("FAILED with exit status {}", self.exit_code),
        };
        let line = format!("silt {} on {}{profile}: {how}", self.command, self.host);
        visible(line.as_bytes())
    }
}

fn shortened(mut error: String) -> String {
    error.truncate(error.floor_char_boundary(ERROR_BYTES_MAX));
    error
}

fn file(profile: Option<&str>, command: &str) -> Option<PathBuf> {
    Some(environment::state_folder()?.join("runs").join(format!("{}.{command}.json", plain(profile))))
}

/// The name of a profile as a part of a file's name.
pub(super) fn plain(profile: Option<&str>) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    profile.map_or_else(|| NO_PROFILE.to_owned(), |name| name.replace(|c| !is_plain(c), "_"))
}

/// Writes a file whole: whoever reads it sees the one before or this one.
pub(crate) fn replace(file: &Path, text: impl AsRef<[u8]>, mode: u32) -> io::Result<()> {
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    let folder = file.parent().unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new().prefix(".silt-").tempfile_in(folder)?;
    temporary.write_all(text.as_ref())?;
    temporary.as_file().set_permissions(std::fs::Permissions::from_mode(mode))?;
    temporary.as_file().sync_all()?;
    temporary.persist(file).map(drop).map_err(|error| error.error)
}

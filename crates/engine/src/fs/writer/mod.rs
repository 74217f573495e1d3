//! The folder a restore writes into. Nothing done here leaves it: every path is resolved from its open directory
//! downwards and a symbolic link on the way is an obstacle, never a road, so neither a hostile snapshot nor a link
//! planted meanwhile leads outside.
//!
//! Files are written as a [`Draft`] and take their name when they are complete: what stood there stays whole until
//! then, and what is half done bears no file's name. Metadata comes last, directories' after all they hold. Paths of
//! any length work; the parents last used are kept open.

mod apply;
mod beneath;
mod file;
mod make;
mod remove;
#[cfg(test)]
mod tests;

pub use file::{DAMAGED_SUFFIX, Draft, TargetFile, aside};

use super::{
    directory::NameList,
    identity::FolderIdentity,
    names::{Owners, Ownership},
    problem::{Problem, ProblemKind},
    status::Status,
};
use beneath::{Beneath, PROTECTED};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use siltstone_store::catalog::EntryPath;
use std::{
    collections::HashSet,
    ffi::CString,
    io,
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

/// Beginning of the names of drafts and of what is about to take a name. A killed restore leaves such files; the next
/// one into the same folder removes them.
pub const DRAFT_PREFIX: &str = ".silt-restore-";

/// Digits of a number of 64 bits.
const RUN_DIGITS: usize = 16;

/// Policy for an object that stands where an entry is to be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ConflictPolicy {
    /// It is replaced; a directory only if it is empty.
    Replace,
    /// It is kept, and that is a [`Problem`] of the kind [`ProblemKind::InTheWay`].
    Keep,
}

/// Outcome of making a directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DirectoryOutcome {
    /// It was.
    New,
    /// It was there already.
    Existing,
    /// It could not be made: for whoever notes outcomes, as [`TargetDir::make_directory`] gives the problem instead.
    Blocked,
}

/// The open target folder. Shared by threads.
pub struct TargetDir {
    beneath: Beneath,
    owners: Owners,
    /// Tells the drafts of this restore from any other's.
    run: u64,
    /// True if no other restore writes into this folder, so that the drafts of others are of dead ones.
    is_alone: bool,
    next_passing: AtomicU64,
}

impl TargetDir {
    /// Opens a folder that is there. The path itself may lead through symbolic links: the user wrote it.
    pub fn open(path: &Path, ownership: Ownership) -> io::Result<Self> {
        super::raise_open_file_limit();
        let root = rustix::fs::open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let run = getrandom::u64().map_err(io::Error::other)?;
        let (owners, next_passing) = (Owners::new(ownership), AtomicU64::new(0));
        Ok(Self { beneath: Beneath::new(root), owners, run, is_alone: false, next_passing })
    }

    /// Protects these folders: nothing is written or removed within them.
    #[must_use]
    pub fn protecting(mut self, folders: HashSet<FolderIdentity>) -> Self {
        self.beneath.protect(folders);
        self
    }

    /// Opens a folder to write into it, made first with the ones above it where they are missing.
    pub fn create(path: &Path, ownership: Ownership) -> io::Result<Self> {
        std::fs::create_dir_all(path)?;
        let opened = Self::open(path, ownership)?;
        // Released when the folder is closed. The second of two restores goes without: it leaves the other's drafts
        // alone.
        let is_alone = rustix::fs::flock(opened.beneath.root(), FlockOperation::NonBlockingLockExclusive).is_ok();
        Ok(Self { is_alone, ..opened })
    }

    /// Returns the status of a path; a symbolic link is described itself. `None` if nothing is there, or if its parent
    /// is no directory.
    pub fn state(&self, path: &EntryPath) -> io::Result<Option<Status>> {
        match self.beneath.parent(path).and_then(|(parent, name)| Status::at(&parent, &name)) {
            Ok(status) => Ok(Some(status)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Where a symbolic link points.
    pub fn read_link(&self, path: &EntryPath) -> io::Result<Vec<u8>> {
        let (parent, name) = self.beneath.parent(path)?;
        Ok(rustix::fs::readlinkat(&parent, &name, Vec::new())?.into_bytes())
    }

    /// The names in a directory (`None`: in the target itself), sorted by their bytes.
    pub fn list(&self, directory: Option<&EntryPath>) -> io::Result<Vec<Vec<u8>>> {
        let (names, outcome) = NameList::read(self.beneath.open_directory(directory)?, &mut Vec::new());
        outcome?;
        Ok(names.iter().map(|name| name.to_bytes().to_vec()).collect())
    }

    /// A name for something that takes its real name in a moment.
    fn passing_name(&self) -> CString {
        self.hidden_name('p', self.next_passing.fetch_add(1, Ordering::Relaxed))
    }

    fn hidden_name(&self, kind: char, serial: u64) -> CString {
        // There is no NUL in it.
        CString::new(format!("{DRAFT_PREFIX}{:0RUN_DIGITS$x}-{kind}{serial:x}", self.run)).unwrap_or_default()
    }

    /// Tells whether a name is one that [`TargetDir::hidden_name`] gives.
    pub(crate) fn is_hidden_name(name: &[u8]) -> bool {
        let Some((run, serial)) = name
            .strip_prefix(DRAFT_PREFIX.as_bytes())
            .and_then(|rest| rest.split_at_checked(RUN_DIGITS))
            .and_then(|(run, rest)| Some((run, rest.strip_prefix(b"-d").or_else(|| rest.strip_prefix(b"-p"))?)))
        else {
            return false;
        };
        let is_number = |digits: &[u8]| digits.iter().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'));
        is_number(run) && is_number(serial) && (1..=RUN_DIGITS).contains(&serial.len())
    }
}

/// The report of an entry that could not be made, after what the error says.
fn not_made(path: &EntryPath, error: Errno) -> Problem {
    match error {
        Errno::EXIST => Problem::entry(path, ProblemKind::InTheWay, "something else has its name"),
        Errno::ISDIR | Errno::NOTEMPTY => Problem::entry(path, ProblemKind::InTheWay, "a directory has its name"),
        PROTECTED => Problem::entry(path, ProblemKind::InTheWay, "it would lie in the folder of the repository"),
        Errno::LOOP => Problem::entry(path, ProblemKind::InTheWay, "a symbolic link stands on the way to it"),
        Errno::NOTDIR => Problem::entry(path, ProblemKind::InTheWay, "something on the way to it is no directory"),
        error => Problem::entry(path, ProblemKind::NotWritten, io::Error::from(error)),
    }
}

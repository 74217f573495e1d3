//! Problems with single entries. A problem is recorded and reported; it never stops a run, it only changes how the run
//! ends.

use siltstone_store::catalog::EntryPath;
use std::{fmt, io};

/// One entry could not be dealt with as it should.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem {
    /// Object concerned.
    pub subject: Subject,
    /// Kind of failure.
    pub kind: ProblemKind,
    /// Why, in words; mostly the operating system's.
    pub reason: String,
}

impl Problem {
    /// A problem with an entry.
    pub fn entry(path: &EntryPath, kind: ProblemKind, reason: impl fmt::Display) -> Self {
        Self { subject: Subject::Entry(path.clone()), kind, reason: reason.to_string() }
    }

    /// A problem with the root of a source (`/`) or of a target.
    pub fn root(kind: ProblemKind, reason: impl fmt::Display) -> Self {
        Self { subject: Subject::Root, kind, reason: reason.to_string() }
    }

    /// A problem with an entry, or with the root if there is no path.
    pub fn at(path: Option<&EntryPath>, kind: ProblemKind, reason: impl fmt::Display) -> Self {
        path.map_or_else(|| Self::root(kind, &reason), |path| Self::entry(path, kind, &reason))
    }

    /// A problem with the extended attributes of an entry.
    pub fn xattrs(path: &EntryPath, error: &io::Error) -> Self {
        Self::entry(path, ProblemKind::Unreadable, format!("extended attributes: {error}"))
    }

    /// A problem with an object of the repository, or with anything else that is no entry.
    pub fn object(name: impl Into<String>, kind: ProblemKind, reason: impl fmt::Display) -> Self {
        Self { subject: Subject::Object(name.into()), kind, reason: reason.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.subject, self.kind.words(), self.reason)
    }
}

/// Object that a problem concerns.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Subject {
    /// The root of the walk itself: `/` in a backup, the target folder in a restore.
    Root,
    /// An entry of the snapshot.
    Entry(EntryPath),
    /// Something else, by name.
    Object(String),
}

impl fmt::Display for Subject {
    /// Paths are shown from `/`; control characters and bytes that are no text are escaped, so that a file name can
    /// neither forge a line of output nor drive a terminal.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str("/"),
            Self::Entry(path) => {
                f.write_str("/")?;
                path.as_bytes().utf8_chunks().try_for_each(|chunk| {
                    write_visible(f, chunk.valid())?;
                    chunk.invalid().iter().try_for_each(|byte| write!(f, "\\x{byte:02x}"))
                })
            }
            Self::Object(name) => write_visible(f, name),
        }
    }
}

fn write_visible(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    text.chars().try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { write!(f, "{c}") })
}

/// Kind of failure with an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ProblemKind {
    /// Backup: a source named by the user could not be looked at at all.
    SourceMissing,
    /// Backup: the entry was listed by its directory but was gone when looked at.
    Vanished,
    /// Backup: the entry's metadata, a directory's names or a file's bytes could not be read.
    Unreadable,
    /// Backup: another file stood under the name when it was opened.
    Replaced,
    /// Backup: the file changed while it was read; what was read is stored.
    ChangedWhileRead,
    /// Backup: its path is too long to be stored.
    PathTooLong,
    /// Backup: the snapshot that a list of changes builds on lacks entries.
    Incomplete,
    /// Import: what the archive has there cannot be kept.
    NotImported,
    /// Import: what came of it differs from the original.
    ImportDiffers,
    /// Restore: the entry could not be made, or its content not be written.
    NotWritten,
    /// Restore: its content in the repository is missing or damaged.
    ContentDamaged,
    /// Restore: what lies on disk differs from what was to be restored.
    VerifyFailed,
    /// Restore: something else stands in its place and was left.
    InTheWay,
    /// Restore: the owner or group could not be set.
    Owner,
    /// Restore: an extended attribute or access control list could not be set.
    Attribute,
    /// Restore: the permissions could not be set.
    Permissions,
    /// Restore: the times could not be set.
    Times,
    /// Restore: something that the snapshot does not hold could not be removed.
    NotRemoved,
    /// Migration: what a series has to settle could not be moved.
    NotMoved,
    /// A damaged or missing object, found by a check or on the way.
    Damaged,
}

impl ProblemKind {
    /// Returns the failure in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::SourceMissing => "cannot be backed up",
            Self::Vanished => "vanished during the backup",
            Self::Unreadable => "cannot be read",
            Self::Replaced => "was replaced during the backup",
            Self::ChangedWhileRead => "changed while it was read",
            Self::PathTooLong => "has too long a path",
            Self::Incomplete => "is not complete",
            Self::NotMoved => "cannot be settled",
            Self::NotImported => "cannot be imported as it is",
            Self::ImportDiffers => "differs from the original",
            Self::NotWritten => "cannot be restored",
            Self::ContentDamaged => "has damaged content",
            Self::VerifyFailed => "is not as it was backed up",
            Self::InTheWay => "is blocked",
            Self::Owner => "owner not restored",
            Self::Attribute => "extended attribute not restored",
            Self::Permissions => "permissions not restored",
            Self::Times => "times not restored",
            Self::NotRemoved => "cannot be removed",
            Self::Damaged => "is damaged",
        }
    }

    /// The kind as a word for programs, as JSON output shows it.
    pub fn code(self) -> &'static str {
        match self {
            Self::SourceMissing => "source_missing",
            Self::Vanished => "vanished",
            Self::Unreadable => "unreadable",
            Self::Replaced => "replaced",
            Self::ChangedWhileRead => "changed_while_read",
            Self::PathTooLong => "path_too_long",
            Self::Incomplete => "incomplete",
            Self::NotMoved => "not_moved",
            Self::NotImported => "not_imported",
            Self::ImportDiffers => "import_differs",
            Self::NotWritten => "not_written",
            Self::ContentDamaged => "content_damaged",
            Self::VerifyFailed => "verify_failed",
            Self::InTheWay => "in_the_way",
            Self::Owner => "owner",
            Self::Attribute => "attribute",
            Self::Permissions => "permissions",
            Self::Times => "times",
            Self::NotRemoved => "not_removed",
            Self::Damaged => "damaged",
        }
    }

    /// Tells whether only something beside the content is wrong, as happens to every restore without root's rights.
    pub fn is_minor(self) -> bool {
        matches!(self, Self::Owner | Self::Attribute | Self::Permissions | Self::Times)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_forge_output() {
        let path = EntryPath::new(*b"home/a\nb\x1b[2J\xff\xc3\xa9").expect("a valid path");
        let problem = Problem::entry(&path, ProblemKind::Unreadable, "reason");
        assert_eq!(problem.to_string(), "/home/a\\nb\\u{1b}[2J\\xff\u{e9}: cannot be read: reason");
    }

    #[test]
    fn codes_are_words_of_small_letters() {
        let kinds = [
            ProblemKind::SourceMissing,
            ProblemKind::Vanished,
            ProblemKind::Unreadable,
            ProblemKind::Replaced,
            ProblemKind::ChangedWhileRead,
            ProblemKind::PathTooLong,
            ProblemKind::NotImported,
            ProblemKind::ImportDiffers,
            ProblemKind::NotWritten,
            ProblemKind::ContentDamaged,
            ProblemKind::VerifyFailed,
            ProblemKind::InTheWay,
            ProblemKind::Owner,
            ProblemKind::Attribute,
            ProblemKind::Permissions,
            ProblemKind::Times,
            ProblemKind::NotRemoved,
            ProblemKind::NotMoved,
            ProblemKind::Damaged,
        ];
        for code in kinds.map(ProblemKind::code) {
            assert!(code.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{code}");
        }
    }
}

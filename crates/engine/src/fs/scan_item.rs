//! Input and items of a walk over the sources.

use super::{exclude::ExcludeRules, problem::Problem, read_metadata::ScanDetail, source_file::FileHandle};
use siltstone_store::catalog::{EntryPath, Metadata};

/// How to walk.
#[derive(Clone, Debug, Default)]
pub struct ScanOptions {
    /// Rules for what is left out.
    pub exclude: ExcludeRules,
    /// Stay on the file systems of the sources. A directory on which another is mounted is kept, empty.
    pub one_file_system: bool,
    /// How much to look at.
    pub detail: ScanDetail,
}

/// Item that a walk meets.
#[derive(Debug)]
pub enum ScanItem {
    /// An entry to back up.
    Entry(ScanEntry),
    /// An entry that could not be looked at; if a directory, what it holds is missing.
    Problem(Problem),
    /// Only in a walk of what was chosen: what follows is all there is at this path and beneath it; what was there
    /// before is gone.
    Anew {
        /// Which.
        path: EntryPath,
    },
    /// Something left out on purpose.
    Skipped {
        /// Which.
        path: EntryPath,
        /// Why.
        why: SkipReason,
    },
}

/// An entry as the walk found it.
#[derive(Debug)]
pub struct ScanEntry {
    /// Its absolute path without the leading slash.
    pub path: EntryPath,
    /// Metadata of its inode.
    pub metadata: Metadata,
    /// Kind of the file.
    pub kind: FileKind,
}

/// Kind of a file that a walk found.
#[derive(Debug)]
pub enum FileKind {
    /// A directory; what it holds follows.
    Directory,
    /// A regular file.
    File {
        /// Length in bytes.
        size: u64,
        /// To open it.
        handle: FileHandle,
    },
    /// A symbolic link.
    Symlink {
        /// Where it points, as bytes.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Major number.
        major: u32,
        /// Minor number.
        minor: u32,
    },
}

/// Why something was left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SkipReason {
    /// A pattern matches it.
    Excluded,
    /// Content of the directory is left out because of a mark in it.
    Marked,
    /// A folder that the program itself writes to: the repository, or what is kept on this machine.
    OwnFolder,
    /// A file beyond the size given.
    TooLarge,
    /// It, or what the directory holds, lies on another file system.
    OtherFilesystem,
    /// A socket means nothing without its process.
    Socket,
    /// A kind of file this program does not know.
    UnknownKind,
}

impl SkipReason {
    /// The reason in words.
    pub fn words(self) -> &'static str {
        match self {
            Self::Excluded => "excluded by a pattern",
            Self::Marked => "its directory is marked to be left out",
            Self::OwnFolder => "the repository itself, or what silt keeps on this machine",
            Self::TooLarge => "larger than the limit",
            Self::OtherFilesystem => "on another file system",
            Self::Socket => "a socket",
            Self::UnknownKind => "of an unknown kind",
        }
    }
}

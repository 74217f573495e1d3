//! Files and folders: the only room of the engine that talks to the operating system about a user's data.
//!
//! A backup walks its sources with a [`Scanner`] and reads them through [`SourceFile`]; a restore writes beneath a
//! [`TargetDir`]. Both go name by name from open directories, never by whole paths: a path may be longer than the
//! kernel takes at once, and a symbolic link planted while we work must lead nowhere. What goes wrong with one entry is
//! a [`Problem`] and stops nothing.
//!
//! Linux only for now: `statx`, `openat2` and `/proc/self/fd` are used, with fallbacks where a container hides one of
//! them.

#![cfg_attr(
    not(test),
    deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)
)]

mod change_time;
mod directory;
mod exclude;
mod filter;
mod identity;
mod names;
mod patterns;
mod problem;
mod read_metadata;
mod scan;
mod scan_item;
mod source_file;
mod source_tree;
mod status;
#[cfg(test)]
mod tests;
mod writer;
mod xattrs;

pub use exclude::{ExcludeRules, ExcludeRulesBuilder};
pub(crate) use filter::Selector;
pub use filter::{EntrySelection, PathFilter, PathFilterBuilder};
pub use identity::{FolderIdentity, is_home};
pub use names::Ownership;
pub use patterns::{Case, PatternError};
pub use problem::{Problem, ProblemKind, Subject};
pub use read_metadata::ScanDetail;
pub use scan::Scanner;
pub use scan_item::{FileKind, ScanEntry, ScanItem, ScanOptions, SkipReason};
pub use source_file::{Extent, FileHandle, SourceFile};
pub use source_tree::absolute_source;
pub use status::{NodeKind, Status};
pub use writer::{ConflictPolicy, DAMAGED_SUFFIX, DRAFT_PREFIX, DirectoryOutcome, Draft, TargetDir, TargetFile, aside};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Raises the limit of open files as far as the system allows without rights. Scanning keeps a few hundred directories
/// open, and placing many files at once as many files.
pub fn raise_open_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        // Failing leaves the limit as it is: what then cannot be opened is reported entry by entry.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
    }
}

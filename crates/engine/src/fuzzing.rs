//! Doors for the fuzzer to parsers that nobody else outside has a use for. No part of the library's interface.

pub use crate::cache_file::CacheRefused;

use crate::acl;
use crate::check::read_log;
use crate::import::index;
use crate::seen;
use siltstone_store::RepositoryId;
use siltstone_store::catalog::Metadata;
use std::fs::File;
use std::io;
use std::path::Path;

/// Reads the memory of a repository's history in this folder; says whether it was what was written.
///
/// # Errors
/// The file is there and cannot be read.
pub fn memory_of_history(folder: &Path, repository: RepositoryId, key: [u8; 32]) -> io::Result<bool> {
    seen::is_genuine(folder, repository, key)
}

/// Reads a log of readings with this header; gives how many containers it knows.
///
/// # Errors
/// [`CacheRefused`] if it is none.
pub fn readings(path: &Path, header: &[u8], key: &[u8; 32]) -> Result<usize, CacheRefused> {
    read_log::readings(path, header, key)
}

/// Reads everything of a tar archive but content; gives the number of names in it, `None` if it is damaged.
pub fn tar(archive: &File) -> Option<usize> {
    index::explore(archive)
}

/// An access control list in the kernel's form as text, and back; `None` if it is none.
pub fn acl_text(value: &[u8]) -> Option<String> {
    let text = acl::text(value)?;
    let again = acl::parse(text.as_bytes(), &Metadata::default()).ok()?;
    Some(text).filter(|_| again.len() == value.len())
}

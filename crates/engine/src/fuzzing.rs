//! Doors for the fuzzer to parsers that nobody else outside has a use for. No part of the library's interface.

pub use crate::cache_file::CacheRefused;

use crate::check::read_log;
use crate::dump::acl;
use crate::seen;
use siltstone_store::RepositoryId;
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

/// An access control list in the kernel's form as text; `None` if it is none.
pub fn acl_text(value: &[u8]) -> Option<String> {
    acl::text(value)
}

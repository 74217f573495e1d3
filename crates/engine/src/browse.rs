//! Looking into a snapshot without restoring it: `ls` and `dump`.

use crate::snapshots::SnapshotView;
use crate::{EngineError, Observer};
use siltstone_store::catalog::{Entry, EntryPath};
use siltstone_store::repository::Repository;
use std::io::Write;

/// Calls `visit` for the entry at `path` (if any was given) and for what is below it: its children, or all if `recursive`.
pub fn ls(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    recursive: bool,
    visit: &mut dyn FnMut(&Entry) -> Result<(), EngineError>,
) -> Result<(), EngineError> {
    let _ = (repository, snapshot, path, recursive, visit);
    todo!()
}

/// Writes the content of a file; of a directory, a tar archive of everything below it.
pub fn dump(
    repository: &Repository,
    snapshot: &SnapshotView,
    path: Option<&EntryPath>,
    output: &mut dyn Write,
    observer: &dyn Observer,
) -> Result<(), EngineError> {
    let _ = (repository, snapshot, path, output, observer);
    todo!()
}

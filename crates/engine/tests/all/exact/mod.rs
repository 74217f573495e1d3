//! A backup keeps and a restore gives back, on real folders: every kind of file and all that an inode carries,
//! whatever stands in the target, and what a source does while it is read.
//!
//! Tests of owners and device nodes only say something when run by root; as anybody else they pass over those parts.

mod damaged;
mod dumped;
mod in_the_way;
mod metadata;
mod over_existing;
mod part;
mod source;

use crate::common::Sandbox;
use rustix::fs::XattrFlags;
use siltstone_store::SnapshotId;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

fn folder() -> TempDir {
    TempDir::new().expect("a temporary folder")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn set_mode(path: impl AsRef<Path>, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("permissions");
}

fn set_xattr(path: impl AsRef<Path>, name: &str, value: &[u8]) {
    rustix::fs::lsetxattr(path.as_ref(), name, value, XattrFlags::empty()).expect("an attribute");
}

/// Restores everything into a folder; gives where the source is to be found in it.
fn restore_into(sandbox: &Sandbox, id: SnapshotId, target: &Path) -> PathBuf {
    let summary = sandbox.restore(id, target).expect("a restore");
    assert!(summary.problems == 0 || !is_root(), "the folders above belong to root");
    target.join(sandbox.source().strip_prefix("/").expect("an absolute path"))
}

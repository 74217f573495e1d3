//! Metadata as a backup keeps it, from what the file system says.

use super::{
    change_time::covers_xattrs,
    names::OwnerNames,
    status::{NodeKind, Status},
    xattrs::{Xattr, XattrReader},
};
use rustix::io::Result;
use siltstone_store::catalog::Metadata;
use std::{ffi::CStr, os::fd::BorrowedFd};

/// How much of an entry is looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ScanDetail {
    /// All that a catalog keeps.
    #[default]
    Full,
    /// As [`ScanDetail::Full`], but for the extended attributes of regular files on file systems whose change time
    /// covers them: whoever takes a file reads these by its [handle](super::FileHandle), or knows them already.
    XattrsLater,
    /// Only what `stat` tells, for an estimate: no names of owners, no extended attributes, no targets of links.
    StatusOnly,
}

/// Reads metadata; keeps names and buffers from one entry to the next.
#[derive(Default)]
pub(super) struct MetadataReader {
    detail: ScanDetail,
    names: OwnerNames,
    xattrs: XattrReader,
    /// The device looked at last, and whether its change times cover extended attributes.
    covered: Option<(u64, bool)>,
}

impl MetadataReader {
    pub(super) fn new(detail: ScanDetail) -> Self {
        Self { detail, ..Self::default() }
    }

    pub(super) fn detail(&self) -> ScanDetail {
        self.detail
    }

    /// Tells whether extended attributes of what a directory holds are left to whoever takes the entry.
    pub(super) fn leaves_xattrs(&mut self, directory: BorrowedFd<'_>, status: &Status) -> bool {
        if self.detail != ScanDetail::XattrsLater || status.kind != NodeKind::File {
            return false;
        }
        match self.covered {
            Some((device, covers)) if device == status.device => covers,
            _ => {
                let covers = covers_xattrs(directory, status);
                self.covered = Some((status.device, covers));
                covers
            }
        }
    }

    /// Metadata from a status, and what became of reading the extended attributes of that name in its directory.
    pub(super) fn read(&mut self, directory: BorrowedFd<'_>, name: &CStr, status: &Status) -> (Metadata, Result<()>) {
        match self.detail {
            ScanDetail::StatusOnly => (assemble(status), Ok(())),
            ScanDetail::Full | ScanDetail::XattrsLater => {
                let is_left = self.leaves_xattrs(directory, status);
                let found = if is_left { Ok(Vec::new()) } else { self.xattrs.read_at(directory, name) };
                let (xattrs, outcome) = split(found);
                let (user, group) = (self.names.user(status.uid), self.names.group(status.gid));
                (Metadata { user, group, xattrs, ..assemble(status) }, outcome)
            }
        }
    }
}

fn split(found: Result<Vec<Xattr>>) -> (Vec<Xattr>, Result<()>) {
    match found {
        Ok(xattrs) => (xattrs, Ok(())),
        Err(error) => (Vec::new(), Err(error)),
    }
}

fn assemble(status: &Status) -> Metadata {
    Metadata {
        mode: status.mode,
        uid: status.uid,
        gid: status.gid,
        modified: status.modified,
        changed: status.changed,
        inode: status.inode,
        device: status.device,
        links: status.links,
        ..Metadata::default()
    }
}

//! Applying metadata: owner, then attributes and access control lists, then permissions, then times. Each may clear
//! what comes after: a change of owner drops set-id bits and capabilities, an access control list rewrites permissions,
//! and all of them touch times.
//!
//! Without root's rights owners and some attributes cannot be set; that is reported and the rest goes on.

use super::TargetDir;
use crate::acl;
use crate::fs::{
    names::Owner,
    problem::{Problem, ProblemKind},
    status::{NodeKind, Status},
    writer::file::TargetFile,
    xattrs::{list_of, proc_path, split_names},
};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};
use rustix::io::{Errno, Result};
use siltstone_store::{
    Time,
    catalog::{EntryPath, Metadata},
};
use std::{
    collections::BTreeSet,
    ffi::{CStr, CString},
    io,
    os::fd::{AsFd, BorrowedFd, OwnedFd},
};

/// The set-user-id and set-group-id bits.
const SET_ID_BITS: u32 = 0o6000;

impl TargetDir {
    /// Applies metadata to what lies under a path (`None`: to the target itself), not following a symbolic link. For a
    /// directory this comes after everything below it.
    pub fn apply_metadata(&self, path: Option<&EntryPath>, metadata: &Metadata) -> Vec<Problem> {
        let report = |error: Errno| vec![Problem::at(path, ProblemKind::NotWritten, io::Error::from(error))];
        let Some(entry) = path else {
            return self.apply(&Node::Open(self.beneath.root()), path, metadata).unwrap_or_else(report);
        };
        self.beneath
            .parent(entry)
            .and_then(|(parent, name)| {
                if let Ok(directory) = crate::fs::directory::open_directory(&parent, &name) {
                    return self.apply(&Node::Open(directory.as_fd()), path, metadata);
                }
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let place = rustix::fs::openat(&parent, &name, flags, Mode::empty())?;
                let proc_path = proc_path(&place);
                self.apply(&Node::Place { place, proc_path, parent: parent.as_fd(), name: &name }, path, metadata)
            })
            .unwrap_or_else(report)
    }

    /// Applies metadata to an open file; its content must be complete, or writing would change its times again.
    pub fn apply_to_file(&self, file: &TargetFile, path: &EntryPath, metadata: &Metadata) -> Vec<Problem> {
        self.apply(&Node::Open(file.file().as_fd()), Some(path), metadata)
            .unwrap_or_else(|error| vec![Problem::entry(path, ProblemKind::NotWritten, io::Error::from(error))])
    }

    fn apply(&self, node: &Node<'_>, path: Option<&EntryPath>, metadata: &Metadata) -> Result<Vec<Problem>> {
        let status = node.status()?;
        let mut problems = Vec::new();
        let mut report = |kind, reason: &dyn std::fmt::Display| problems.push(Problem::at(path, kind, reason));

        let owner = self.owners.owner_of(metadata);
        let owner_set = owner.map_or(Ok(()), |owner| node.set_owner(&status, owner));
        if let Err(error) = owner_set {
            let reason = format!("user {}, group {}: {}", metadata.uid, metadata.gid, io::Error::from(error));
            report(ProblemKind::Owner, &reason);
        }
        let failed = node.set_xattrs(&metadata.xattrs);
        let has_list = failed.iter().all(|(name, _)| name != acl::ACCESS);
        for (name, error) in failed {
            report(ProblemKind::Attribute, &format!("{}: {}", name.escape_ascii(), io::Error::from(error)));
        }
        if status.kind != NodeKind::Symlink {
            let is_foreign = match owner {
                Some(_) => owner_set.is_err(),
                None => (status.uid, status.gid) != (metadata.uid, metadata.gid),
            };
            // Whoever owns the file now was never meant to lend his rights to those who run it.
            let dropped = if is_foreign && status.kind != NodeKind::Directory { SET_ID_BITS } else { 0 };
            // Without the list the group would have what its mask leaves to those that it names.
            let mode = if has_list { metadata.mode } else { acl::mode_without_list(metadata) };
            if let Err(error) = node.set_mode(mode & 0o7777 & !dropped) {
                report(ProblemKind::Permissions, &io::Error::from(error));
            }
        }
        if let Err(error) = node.set_modified(metadata.modified) {
            report(ProblemKind::Times, &io::Error::from(error));
        }
        Ok(problems)
    }
}

/// Node that metadata is applied to.
enum Node<'a> {
    /// Something open for reading or writing.
    Open(BorrowedFd<'a>),
    /// Something that cannot or should not be opened: a link, a pipe, a device, an unreadable directory.
    Place {
        /// Holds on to the inode.
        place: OwnedFd,
        /// Names the inode, and no link is followed from there.
        proc_path: CString,
        parent: BorrowedFd<'a>,
        name: &'a CStr,
    },
}

impl Node<'_> {
    fn status(&self) -> Result<Status> {
        match self {
            Self::Open(file) => Status::of(file),
            Self::Place { place, .. } => Status::of(place),
        }
    }

    /// Sets owner and group where they differ; the group alone where the owner may not be set.
    fn set_owner(&self, status: &Status, owner: Owner) -> Result<()> {
        let uid = (owner.uid != status.uid).then_some(owner.uid);
        let gid = (owner.gid != status.gid).then_some(owner.gid);
        if uid.is_none() && gid.is_none() {
            return Ok(());
        }
        self.change_owner(uid, gid).inspect_err(|_| {
            if uid.is_some() && gid.is_some() {
                let _ = self.change_owner(None, gid);
            }
        })
    }

    fn change_owner(&self, uid: Option<u32>, gid: Option<u32>) -> Result<()> {
        // The greatest number means "leave it" to the kernel and can be nobody's.
        if uid == Some(u32::MAX) || gid == Some(u32::MAX) {
            return Err(Errno::INVAL);
        }
        let (uid, gid) = (uid.map(Uid::from_raw), gid.map(Gid::from_raw));
        match self {
            Self::Open(file) => rustix::fs::fchown(file, uid, gid),
            Self::Place { place, .. } => rustix::fs::chownat(place, c"", uid, gid, AtFlags::EMPTY_PATH),
        }
    }

    /// Sets attributes, and removes those that are not among them where this program would have recorded them (a new
    /// file may have inherited an access control list). Gives the names that could not be set.
    fn set_xattrs(&self, wanted: &[(Vec<u8>, Vec<u8>)]) -> Vec<(Vec<u8>, Errno)> {
        let mut failed = Vec::new();
        let wanted_names: BTreeSet<&[u8]> = wanted.iter().map(|(name, _)| name.as_slice()).collect();
        for name in split_names(&self.list_xattrs().unwrap_or_default()) {
            if is_ours_to_remove(name.to_bytes())
                && !wanted_names.contains(name.to_bytes())
                && let Err(error) = self.remove_xattr(name)
            {
                failed.push((name.to_bytes().to_vec(), error));
            }
        }
        for (name, value) in wanted {
            let set =
                CString::new(name.as_slice()).map_err(|_| Errno::INVAL).and_then(|name| self.set_xattr(&name, value));
            if let Err(error) = set {
                failed.push((name.clone(), error));
            }
        }
        failed
    }

    fn list_xattrs(&self) -> Result<Vec<u8>> {
        match self {
            Self::Open(file) => list_of(file),
            Self::Place { proc_path, .. } => crate::fs::xattrs::list_at(proc_path),
        }
    }

    fn set_xattr(&self, name: &CStr, value: &[u8]) -> Result<()> {
        match self {
            Self::Open(file) => rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()),
            Self::Place { proc_path, .. } => rustix::fs::setxattr(proc_path, name, value, XattrFlags::empty()),
        }
    }

    fn remove_xattr(&self, name: &CStr) -> Result<()> {
        match self {
            Self::Open(file) => rustix::fs::fremovexattr(file, name),
            Self::Place { proc_path, .. } => rustix::fs::removexattr(proc_path, name),
        }
    }

    fn set_mode(&self, mode: u32) -> Result<()> {
        let mode = Mode::from_raw_mode(mode);
        match self {
            Self::Open(file) => rustix::fs::fchmod(file, mode),
            Self::Place { proc_path, parent, name, .. } => match rustix::fs::chmod(proc_path, mode) {
                // Without `/proc`; that it is no symbolic link was seen a moment ago.
                Err(Errno::NOENT) => rustix::fs::chmodat(parent, *name, mode, AtFlags::empty()),
                other => other,
            },
        }
    }

    /// Sets when the content last changed; when it was last read is left as it is.
    fn set_modified(&self, time: Time) -> Result<()> {
        // Values beyond a second mean "now" or "leave it" to the kernel.
        let nanoseconds = time.nanoseconds.min(999_999_999);
        let times = Timestamps {
            last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
            last_modification: Timespec { tv_sec: time.seconds, tv_nsec: nanoseconds.into() },
        };
        match self {
            Self::Open(file) => rustix::fs::futimens(file, &times),
            Self::Place { parent, name, .. } => rustix::fs::utimensat(parent, *name, &times, AtFlags::SYMLINK_NOFOLLOW),
        }
    }
}

/// Tells whether an attribute that the snapshot does not have is to go: the user's own, access control lists and
/// capabilities. Labels that security modules and file systems set on their own stay.
fn is_ours_to_remove(name: &[u8]) -> bool {
    name.starts_with(b"user.") || name.starts_with(b"system.posix_acl_") || name == b"security.capability"
}

//! File systems whose change time (ctime) tells of every change of an inode, its extended attributes among them.

use super::status::Status;
use rustix::fs::fstatfs;
use std::os::fd::AsFd;

/// Magic numbers of `statfs`, from `linux/magic.h`. All of these set the time whenever an attribute is set or removed.
/// Others may as well; but a file system in user space or on a server does as its author liked, and tmpfs did not
/// before Linux 6.0.
const RELIABLE: [u64; 5] = [
    0xEF53,      // ext2, ext3, ext4
    0x5846_5342, // XFS
    0x9123_683E, // Btrfs
    0xF2F5_2010, // F2FS
    0xCA45_1A4E, // bcachefs
];

/// Tells whether the change time of a file in this directory covers its extended attributes. It does not where the file
/// is of another file system, as one that is mounted by itself.
pub(super) fn covers_xattrs(directory: impl AsFd, file: &Status) -> bool {
    let is_reliable = |kind| u64::try_from(kind).is_ok_and(|kind| RELIABLE.contains(&kind));
    Status::of(&directory).is_ok_and(|status| status.device == file.device)
        && fstatfs(directory).is_ok_and(|found| is_reliable(found.f_type))
}

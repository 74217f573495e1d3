//! Status of one inode from the file system, in the catalog's words.

use rustix::fs::{AtFlags, FileType, StatxFlags};
use rustix::io::Result;
use siltstone_store::Time;
use std::{ffi::CStr, os::fd::AsFd};

/// Kind of an inode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
    /// A symbolic link.
    Symlink,
    /// A named pipe.
    Fifo,
    /// A socket; never backed up.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
    /// Something this program does not know.
    Unknown,
}

/// The status of an inode at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Status {
    /// Kind of the file.
    pub kind: NodeKind,
    /// Permission, set-id and sticky bits: the lower twelve bits of `st_mode`.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Length in bytes, holes included.
    pub size: u64,
    /// Units of 512 bytes the file system has allotted.
    pub blocks: u64,
    /// When the content last changed.
    pub modified: Time,
    /// When the inode last changed.
    pub changed: Time,
    /// Number of the inode on its device.
    pub inode: u64,
    /// Number of the device that holds it.
    pub device: u64,
    /// How many names the inode has.
    pub links: u64,
    /// The device a device node stands for: major number.
    pub special_major: u32,
    /// The device a device node stands for: minor number.
    pub special_minor: u32,
}

impl Status {
    /// The status of what a name in a directory stands for; a symbolic link is not followed.
    pub(super) fn at(directory: impl AsFd, name: &CStr) -> Result<Self> {
        Self::read(directory, name, AtFlags::SYMLINK_NOFOLLOW)
    }

    /// The status of an open file.
    pub(super) fn of(file: impl AsFd) -> Result<Self> {
        Self::read(file, c"", AtFlags::EMPTY_PATH)
    }

    fn read(directory: impl AsFd, name: &CStr, flags: AtFlags) -> Result<Self> {
        let found = rustix::fs::statx(directory, name, flags, StatxFlags::BASIC_STATS)?;
        let time = |time: rustix::fs::StatxTimestamp| Time { seconds: time.tv_sec, nanoseconds: time.tv_nsec };
        Ok(Self {
            kind: NodeKind::of_mode(found.stx_mode),
            mode: u32::from(found.stx_mode) & 0o7777,
            uid: found.stx_uid,
            gid: found.stx_gid,
            size: found.stx_size,
            blocks: found.stx_blocks,
            modified: time(found.stx_mtime),
            changed: time(found.stx_ctime),
            inode: found.stx_ino,
            device: rustix::fs::makedev(found.stx_dev_major, found.stx_dev_minor),
            links: u64::from(found.stx_nlink),
            special_major: found.stx_rdev_major,
            special_minor: found.stx_rdev_minor,
        })
    }

    /// Tells whether both are the same inode.
    pub fn is_same_inode(&self, other: &Self) -> bool {
        (self.device, self.inode) == (other.device, other.inode)
    }

    /// Tells whether all that a write changes is equal.
    pub fn is_same_content(&self, other: &Self) -> bool {
        (self.size, self.modified, self.changed) == (other.size, other.modified, other.changed)
    }
}

impl NodeKind {
    fn of_mode(mode: u16) -> Self {
        match FileType::from_raw_mode(mode.into()) {
            FileType::Directory => Self::Directory,
            FileType::RegularFile => Self::File,
            FileType::Symlink => Self::Symlink,
            FileType::Fifo => Self::Fifo,
            FileType::Socket => Self::Socket,
            FileType::CharacterDevice => Self::CharDevice,
            FileType::BlockDevice => Self::BlockDevice,
            FileType::Unknown => Self::Unknown,
        }
    }
}

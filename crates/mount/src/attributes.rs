//! Attributes of files, as the kernel asks for them.

use fuser::{FileAttr, FileType, INodeNo};
use rustix::process::{getgid, getuid};
use siltstone_engine::restore::mode_without_list;
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Bytes of a block, as `st_blocks` counts them.
const BLOCK_BYTES: u64 = 512;
/// Bytes that programs should read at once.
const READ_BYTES: u32 = 128 << 10;
/// Permissions of folders above the snapshots.
const FOLDER_MODE: u16 = 0o555;

/// Makes attributes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Attributes {
    owned_by_root: bool,
    /// Permissions are heeded: by the kernel, which goes by the mode alone.
    checks_permissions: bool,
    /// User and group of whoever mounted.
    own: (u32, u32),
}

impl Attributes {
    pub(crate) fn new(owned_by_root: bool, checks_permissions: bool) -> Self {
        Self { owned_by_root, checks_permissions, own: (getuid().as_raw(), getgid().as_raw()) }
    }

    /// Those of an entry of a snapshot.
    pub(crate) fn of_entry(self, number: u64, entry: &Entry) -> FileAttr {
        let metadata = &entry.metadata;
        let (size, rdev) = match &entry.content {
            Content::File { size, .. } => (*size, 0),
            Content::Symlink { target } => (target.len() as u64, 0),
            Content::CharDevice { major, minor } | Content::BlockDevice { major, minor } => (0, device(*major, *minor)),
            Content::Directory | Content::Fifo => (0, 0),
        };
        let (uid, gid) = if self.owned_by_root { (0, 0) } else { (metadata.uid, metadata.gid) };
        // A snapshot may leave folders out, so it does not know how many are in one; 1 says so.
        let links = if entry.is_directory() { 1 } else { u32::try_from(metadata.links).unwrap_or(u32::MAX) };
        let mode = if self.checks_permissions { mode_without_list(metadata) } else { metadata.mode };
        FileAttr {
            ino: INodeNo(number),
            size,
            blocks: size.div_ceil(BLOCK_BYTES),
            atime: system_time(metadata.modified),
            mtime: system_time(metadata.modified),
            ctime: system_time(metadata.changed),
            crtime: UNIX_EPOCH,
            kind: kind_of(entry),
            perm: u16::try_from(mode & 0o7777).unwrap_or_default(),
            nlink: links.max(1),
            uid,
            gid,
            rdev,
            blksize: READ_BYTES,
            flags: 0,
        }
    }

    /// Those of a folder above the entries of a snapshot.
    pub(crate) fn of_folder(self, number: u64, time: Time) -> FileAttr {
        let (uid, gid) = if self.owned_by_root { (0, 0) } else { self.own };
        let time = system_time(time);
        FileAttr {
            ino: INodeNo(number),
            size: 0,
            blocks: 0,
            atime: time,
            mtime: time,
            ctime: time,
            crtime: UNIX_EPOCH,
            kind: FileType::Directory,
            perm: FOLDER_MODE,
            nlink: 1,
            uid,
            gid,
            rdev: 0,
            blksize: READ_BYTES,
            flags: 0,
        }
    }

    /// Those of a symbolic link above the snapshots.
    pub(crate) fn of_link(self, number: u64, time: Time, target: &[u8]) -> FileAttr {
        let folder = self.of_folder(number, time);
        FileAttr { size: target.len() as u64, kind: FileType::Symlink, perm: 0o777, ..folder }
    }
}

/// The type of an entry.
pub(crate) fn kind_of(entry: &Entry) -> FileType {
    match entry.content {
        Content::Directory => FileType::Directory,
        Content::File { .. } => FileType::RegularFile,
        Content::Symlink { .. } => FileType::Symlink,
        Content::Fifo => FileType::NamedPipe,
        Content::CharDevice { .. } => FileType::CharDevice,
        Content::BlockDevice { .. } => FileType::BlockDevice,
    }
}

/// A device number as the kernel's `new_encode_dev` packs it into 32 bits.
fn device(major: u32, minor: u32) -> u32 {
    (minor & 0xff) | (major << 8) | ((minor & !0xff) << 12)
}

fn system_time(time: Time) -> SystemTime {
    let seconds = Duration::from_secs(time.seconds.unsigned_abs());
    let whole = if time.seconds < 0 { UNIX_EPOCH.checked_sub(seconds) } else { UNIX_EPOCH.checked_add(seconds) };
    let nanoseconds = Duration::from_nanos(u64::from(time.nanoseconds));
    whole.and_then(|whole| whole.checked_add(nanoseconds)).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use siltstone_store::catalog::{EntryPath, Metadata};

    #[test]
    fn where_permissions_are_heeded_the_owning_group_does_not_get_the_mask_of_a_list() {
        // user::rw-, user:4321:rw-, group::---, mask::rw-, other::---
        let entries = [(1, 6, u32::MAX), (2, 6, 4321), (4, 0, u32::MAX), (16, 6, u32::MAX), (32, 0, u32::MAX)];
        let mut list = 2_u32.to_le_bytes().to_vec();
        for (tag, permissions, id) in entries {
            list.extend([tag, 0, permissions, 0]);
            list.extend(u32::to_le_bytes(id));
        }
        let xattrs = vec![(b"system.posix_acl_access".to_vec(), list)];
        let metadata = Metadata { mode: 0o660, uid: 1234, gid: 100, xattrs, ..Metadata::default() };
        let entry = Entry { path: EntryPath::new("file").expect("a path"), metadata, content: Content::Fifo };
        assert_eq!(Attributes::new(false, true).of_entry(2, &entry).perm, 0o600);
        assert_eq!(Attributes::new(false, false).of_entry(2, &entry).perm, 0o660);
    }
}

//! The entry of one file in a catalog: its path, its inode's metadata, and its content.

use super::EntryPath;
use crate::{ids::Time, recipe::Recipe};
use std::{fmt, sync::Arc};

/// One file, directory or special file of a snapshot.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Path of the file below the catalog's root.
    pub path: EntryPath,
    /// Metadata of the file's inode.
    pub metadata: Metadata,
    /// Kind of the file, with the content of that kind.
    pub content: Content,
}

impl Entry {
    /// Tells whether other entries may lie beneath this one.
    pub fn is_directory(&self) -> bool {
        matches!(self.content, Content::Directory)
    }
}

/// The name of a user or group, as bytes; cheap to clone, since the same few names return on every entry.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(pub Arc<[u8]>);

impl Name {
    /// The bytes of the name.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl From<&[u8]> for Name {
    fn from(bytes: &[u8]) -> Self {
        Self(bytes.into())
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Name(\"{}\")", self.0.escape_ascii())
    }
}

/// An extended attribute: name and value.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// Metadata of an inode, beside its content.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Metadata {
    /// Permission, set-id and sticky bits: the lower twelve bits of `st_mode`.
    pub mode: u32,
    /// Number of the owner.
    pub uid: u32,
    /// Number of the group.
    pub gid: u32,
    /// Name of the owner, where the machine knew one.
    pub user: Option<Name>,
    /// Name of the group, where the machine knew one.
    pub group: Option<Name>,
    /// Time of the last change of the content (`mtime`).
    pub modified: Time,
    /// Time of the last change of the inode (`ctime`); it cannot be restored, but tells an unchanged file.
    pub changed: Time,
    /// Number of the inode on its device.
    pub inode: u64,
    /// Number of the device that holds it.
    pub device: u64,
    /// Number of names that the inode has; entries of one device and inode with more than one are hard links of each
    /// other.
    pub links: u64,
    /// Extended attributes, access control lists included, in the order of the names.
    pub xattrs: Vec<Xattr>,
}

/// The kind of a file, with its content. Sockets are never stored: they mean nothing without their process.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// A directory; what it holds are the entries beneath its path.
    Directory,
    /// A regular file. Each name of a hard-linked file carries the whole content.
    File {
        /// Length in bytes, holes included.
        size: u64,
        /// Recipe of the bytes.
        recipe: Recipe,
    },
    /// A symbolic link.
    Symlink {
        /// Target of the link, as bytes; never followed.
        target: Vec<u8>,
    },
    /// A named pipe.
    Fifo,
    /// A character device.
    CharDevice {
        /// Number of the driver.
        major: u32,
        /// Number of the device under that driver.
        minor: u32,
    },
    /// A block device.
    BlockDevice {
        /// Number of the driver.
        major: u32,
        /// Number of the device under that driver.
        minor: u32,
    },
}

//! Which folder is which, by whatever path: canonical paths see through symbolic links, device and inode through bind
//! mounts.

use nix::unistd::{Uid, User};
use std::collections::HashSet;
use std::fs::Metadata;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Tells one folder from all others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct FolderIdentity {
    pub(super) device: u64,
    pub(super) inode: u64,
}

impl FolderIdentity {
    /// The folder under a path, through symbolic links.
    pub fn of(path: &Path) -> io::Result<Self> {
        Ok(Self::from(&std::fs::metadata(path)?))
    }

    /// A folder and all folders above it, itself first. Of one that does not exist: those above it that do.
    pub fn with_those_above(path: &Path) -> io::Result<Vec<Self>> {
        let absolute = std::path::absolute(path)?;
        let existing = absolute.ancestors().find(|path| path.exists()).unwrap_or(Path::new("/"));
        existing.canonicalize()?.ancestors().map(Self::of).collect()
    }

    /// A folder and those in it, so many levels deep. What cannot be looked at is passed over; no link is followed.
    pub fn with_those_in(path: &Path, levels: u32) -> HashSet<Self> {
        let mut found: HashSet<Self> = Self::of(path).into_iter().collect();
        if levels > 0 {
            let folders = std::fs::read_dir(path).into_iter().flatten().flatten();
            for folder in folders.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
                found.extend(Self::with_those_in(&folder.path(), levels - 1));
            }
        }
        found
    }
}

impl From<&Metadata> for FolderIdentity {
    fn from(metadata: &Metadata) -> Self {
        Self { device: metadata.dev(), inode: metadata.ino() }
    }
}

/// Tells whether a folder is somebody's home: in the system's list of users, by `$HOME`, or because the system says so
/// of its owner.
pub fn is_home(folder: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(folder) else { return false };
    let listed = std::fs::read("/etc/passwd").unwrap_or_default();
    let homes = listed.split(|byte| *byte == b'\n').filter_map(|line| line.split(|byte| *byte == b':').nth(5));
    let homes = homes.map(|home| PathBuf::from(std::ffi::OsStr::from_bytes(home)));
    let of_owner = User::from_uid(Uid::from_raw(metadata.uid())).ok().flatten().map(|user| user.dir);
    let mut homes = homes.chain(of_owner).chain(std::env::home_dir());
    homes.any(|home| FolderIdentity::of(&home).is_ok_and(|home| home == FolderIdentity::from(&metadata)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_is_the_same_by_every_path() {
        let base = tempfile::tempdir().expect("a folder");
        std::fs::create_dir_all(base.path().join("a/b/c")).expect("made");
        std::os::unix::fs::symlink(base.path().join("a/b"), base.path().join("link")).expect("linked");
        let identity = |name: &str| FolderIdentity::of(&base.path().join(name)).expect("a folder");
        let above = |name: &str| FolderIdentity::with_those_above(&base.path().join(name)).expect("folders");
        assert_eq!(above("link/c")[..4], above("a/b/c")[..4]);
        assert_eq!(above("link/c")[..3], ["a/b/c", "a/b", "a"].map(identity));
        assert_eq!(above("link/c/not/yet"), above("a/b/c"));
        assert_eq!(above("a").last(), Some(&FolderIdentity::of(Path::new("/")).expect("the root")));
        let inside = FolderIdentity::with_those_in(base.path(), 2);
        assert_eq!(
            inside,
            HashSet::from(
                [base.path().join(""), base.path().join("a"), base.path().join("a/b")]
                    .map(|path| FolderIdentity::of(&path).expect("a folder"))
            )
        );
    }

    #[test]
    fn homes_are_known_and_other_folders_are_not() {
        let base = tempfile::tempdir().expect("a folder");
        assert!(!is_home(base.path()) && !is_home(&base.path().join("missing")));
        let mine = User::from_uid(Uid::effective()).expect("asked").expect("a user").dir;
        assert_eq!(is_home(&mine), mine.exists());
    }
}

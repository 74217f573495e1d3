//! From a path to an open parent directory, never leaving the root and never through a symbolic link.
//!
//! The kernel does it in one call (`openat2` with `RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS`), or in several for a path
//! beyond what one call takes. Where that call is missing or forbidden, the path is walked name by name.

use crate::fs::{identity::FolderIdentity, status::Status};
use crate::parallel::lock;
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, Result};
use siltstone_store::catalog::EntryPath;
use std::{
    collections::{HashSet, VecDeque},
    ffi::{CStr, CString},
    os::fd::{AsFd, BorrowedFd, OwnedFd},
    sync::{Arc, Mutex},
};

/// Bytes of a path given to one call; the kernel takes less than 4096.
const STEP_BYTES_MAX: usize = 4000;

/// How many parents are kept open.
const PARENTS_MAX: usize = 32;

/// Opens a mere place: enough to go on from.
const WAY: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Stands for "this folder is protected". No file system gives it for a path.
pub(super) const PROTECTED: Errno = Errno::KEYREJECTED;

pub(super) struct Beneath {
    root: Arc<OwnedFd>,
    /// Folders in which nothing is to be touched.
    protected: HashSet<FolderIdentity>,
    has_openat2: bool,
    /// Parents last used, the latest first.
    parents: Mutex<VecDeque<(Vec<u8>, Arc<OwnedFd>)>>,
}

impl Beneath {
    pub(super) fn new(root: OwnedFd) -> Self {
        let has_openat2 = rustix::fs::openat2(&root, c".", WAY, Mode::empty(), ResolveFlags::BENEATH).is_ok();
        Self { root: Arc::new(root), protected: HashSet::new(), has_openat2, parents: Mutex::default() }
    }

    pub(super) fn protect(&mut self, folders: HashSet<FolderIdentity>) {
        self.protected = folders;
    }

    /// Tells whether nothing in this folder is to be touched.
    pub(super) fn is_protected(&self, folder: FolderIdentity) -> bool {
        self.protected.contains(&folder)
    }

    /// An open folder, unless it is protected ([`PROTECTED`]).
    fn unprotected(&self, folder: OwnedFd) -> Result<OwnedFd> {
        if self.protected.is_empty() {
            return Ok(folder);
        }
        let Status { device, inode, .. } = Status::of(&folder)?;
        if self.is_protected(FolderIdentity { device, inode }) { Err(PROTECTED) } else { Ok(folder) }
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The directory that holds an entry, and the entry's name in it.
    pub(super) fn parent(&self, path: &EntryPath) -> Result<(Arc<OwnedFd>, CString)> {
        let bytes = path.as_bytes();
        let (parent, name) = match bytes.iter().rposition(|&byte| byte == b'/') {
            Some(slash) => (bytes.get(..slash).unwrap_or_default(), bytes.get(slash + 1..).unwrap_or_default()),
            None => (&[][..], bytes),
        };
        let name = CString::new(name).map_err(|_| Errno::INVAL)?;
        Ok((self.way(parent)?, name))
    }

    /// Opens a directory to list it; `None` is the root.
    pub(super) fn open_directory(&self, path: Option<&EntryPath>) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match path {
            None => rustix::fs::openat(&self.root, c".", flags, Mode::empty()),
            Some(path) => {
                let (parent, name) = self.parent(path)?;
                rustix::fs::openat(&parent, &name, flags, Mode::empty())
            }
        }
    }

    /// Opens a directory inside another, unless something is mounted on it ([`Errno::XDEV`]) or it is protected
    /// ([`PROTECTED`]).
    pub(super) fn open_same_mount(&self, parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
        self.unprotected(self.open_on_same_mount(parent, name)?)
    }

    fn open_on_same_mount(&self, parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if self.has_openat2 {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
            return rustix::fs::openat2(parent, name, flags, Mode::empty(), resolve);
        }
        let above = rustix::fs::fstat(&parent)?.st_dev;
        let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        if rustix::fs::fstat(&directory)?.st_dev == above { Ok(directory) } else { Err(Errno::XDEV) }
    }

    /// Forgets open parents, because some of them have been removed.
    pub(super) fn forget_parents(&self) {
        lock(&self.parents).clear();
    }

    /// A directory by its path, to go on from; the empty path is the root.
    fn way(&self, path: &[u8]) -> Result<Arc<OwnedFd>> {
        if path.is_empty() {
            return Ok(self.root.clone());
        }
        if let Some(known) = self.known(path) {
            return Ok(known);
        }
        let opened = Arc::new(self.unprotected(self.resolve(path)?)?);
        let mut parents = lock(&self.parents);
        parents.truncate(PARENTS_MAX - 1);
        parents.push_front((path.to_vec(), opened.clone()));
        Ok(opened)
    }

    fn known(&self, path: &[u8]) -> Option<Arc<OwnedFd>> {
        let mut parents = lock(&self.parents);
        let index = parents.iter().position(|(known, _)| known == path)?;
        if index > 0 {
            let found = parents.remove(index)?;
            parents.push_front(found);
        }
        Some(parents.front()?.1.clone())
    }

    fn resolve(&self, path: &[u8]) -> Result<OwnedFd> {
        let mut reached: Option<OwnedFd> = None;
        for step in steps(path, if self.has_openat2 { STEP_BYTES_MAX } else { 0 }) {
            let from = reached.as_ref().unwrap_or(&self.root);
            reached = Some(self.step(from, step)?);
        }
        reached.ok_or(Errno::INVAL)
    }

    fn step(&self, from: &OwnedFd, step: &[u8]) -> Result<OwnedFd> {
        if self.has_openat2 {
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            rustix::fs::openat2(from, step, WAY, Mode::empty(), resolve)
        } else {
            rustix::fs::openat(from, step, WAY, Mode::empty())
        }
    }

    /// As if the kernel had no `openat2`.
    #[cfg(test)]
    pub(super) fn forgo_openat2(&mut self) {
        self.has_openat2 = false;
    }
}

/// Cuts a path at slashes into pieces of at most so many bytes, or of one name where that is longer.
fn steps(path: &[u8], bytes_max: usize) -> impl Iterator<Item = &[u8]> {
    let mut rest = path;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let cut = if rest.len() <= bytes_max { rest.len() } else { cut_at_slash(rest, bytes_max) };
        let (step, tail) = rest.split_at_checked(cut)?;
        rest = tail.strip_prefix(b"/").unwrap_or(tail);
        Some(step)
    })
}

fn cut_at_slash(path: &[u8], bytes_max: usize) -> usize {
    let is_slash = |&byte: &u8| byte == b'/';
    let within = path.iter().take(bytes_max + 1).rposition(is_slash);
    within.or_else(|| path.iter().position(is_slash)).unwrap_or(path.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_rejoin_to_the_path_and_keep_the_bound() {
        let path = b"a/bb/ccc/dddd/eeeee";
        for bytes_max in 0..path.len() + 2 {
            let pieces: Vec<_> = steps(path, bytes_max).collect();
            assert_eq!(pieces.join(&b'/'), path, "{bytes_max}");
            assert!(pieces.iter().all(|piece| piece.len() <= bytes_max || !piece.contains(&b'/')), "{bytes_max}");
        }
        assert_eq!(steps(path, 0).count(), 5);
        assert_eq!(steps(b"", 10).count(), 0);
    }
}

//! Everything that is made at once: directories, links, pipes, device nodes.

use super::{ConflictPolicy, DirectoryOutcome, TargetDir, not_made};
use crate::fs::{
    problem::Problem,
    status::{NodeKind, Status},
};
use rustix::fs::{AtFlags, FileType, Mode, RenameFlags};
use rustix::io::{Errno, Result as SystemResult};
use siltstone_store::catalog::EntryPath;
use std::{
    ffi::{CStr, CString},
    os::fd::OwnedFd,
};

impl TargetDir {
    /// Makes a directory, open to its owner only until its metadata is applied. One that is there is kept (and made
    /// writable to its owner).
    pub fn make_directory(&self, path: &EntryPath, on_conflict: ConflictPolicy) -> Result<DirectoryOutcome, Problem> {
        let made = self.beneath.parent(path).and_then(|(parent, name)| make_directory_at(&parent, &name, on_conflict));
        made.map_err(|error| not_made(path, error))
    }

    /// Makes a symbolic link; its target is not looked at.
    pub fn make_symlink(&self, path: &EntryPath, target: &[u8], on_conflict: ConflictPolicy) -> Result<(), Problem> {
        let target = CString::new(target).map_err(|_| not_made(path, Errno::INVAL))?;
        self.place(path, on_conflict, |parent, name| rustix::fs::symlinkat(&target, parent, name))
    }

    /// Makes a named pipe.
    pub fn make_fifo(&self, path: &EntryPath, on_conflict: ConflictPolicy) -> Result<(), Problem> {
        self.make_node(path, FileType::Fifo, 0, on_conflict)
    }

    /// Makes a character device; for root only.
    pub fn make_char_device(
        &self,
        path: &EntryPath,
        (major, minor): (u32, u32),
        on_conflict: ConflictPolicy,
    ) -> Result<(), Problem> {
        self.make_node(path, FileType::CharacterDevice, rustix::fs::makedev(major, minor), on_conflict)
    }

    /// Makes a block device; for root only.
    pub fn make_block_device(
        &self,
        path: &EntryPath,
        (major, minor): (u32, u32),
        on_conflict: ConflictPolicy,
    ) -> Result<(), Problem> {
        self.make_node(path, FileType::BlockDevice, rustix::fs::makedev(major, minor), on_conflict)
    }

    /// Gives a file that was restored already a further name.
    pub fn make_hard_link(
        &self,
        existing: &EntryPath,
        path: &EntryPath,
        on_conflict: ConflictPolicy,
    ) -> Result<(), Problem> {
        let (from, old_name) = self.beneath.parent(existing).map_err(|error| not_made(path, error))?;
        self.place(path, on_conflict, |parent, name| {
            rustix::fs::linkat(&from, &old_name, parent, name, AtFlags::empty())
        })
    }

    fn make_node(
        &self,
        path: &EntryPath,
        kind: FileType,
        device: u64,
        on_conflict: ConflictPolicy,
    ) -> Result<(), Problem> {
        let mode = Mode::RUSR | Mode::WUSR;
        self.place(path, on_conflict, |parent, name| rustix::fs::mknodat(parent, name, kind, mode, device))
    }

    /// Makes something under its name or, where that is taken and may be, under a passing name that then takes its
    /// place at once.
    fn place(
        &self,
        path: &EntryPath,
        on_conflict: ConflictPolicy,
        make: impl Fn(&OwnedFd, &CStr) -> SystemResult<()>,
    ) -> Result<(), Problem> {
        let placed = self.beneath.parent(path).and_then(|(parent, name)| match make(&parent, &name) {
            Err(Errno::EXIST) if on_conflict == ConflictPolicy::Replace => {
                let passing = self.passing_name();
                make(&parent, &passing)?;
                rename_over(&parent, &passing, &name)
            }
            other => other,
        });
        placed.map_err(|error| not_made(path, error))
    }
}

fn make_directory_at(parent: &OwnedFd, name: &CStr, on_conflict: ConflictPolicy) -> SystemResult<DirectoryOutcome> {
    match rustix::fs::mkdirat(parent, name, Mode::RWXU) {
        Ok(()) => return Ok(DirectoryOutcome::New),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error),
    }
    let status = Status::at(parent, name)?;
    if status.kind == NodeKind::Directory {
        open_to_owner(parent, name, &status);
        return Ok(DirectoryOutcome::Existing);
    }
    if on_conflict == ConflictPolicy::Keep {
        return Err(Errno::EXIST);
    }
    rustix::fs::unlinkat(parent, name, AtFlags::empty())?;
    rustix::fs::mkdirat(parent, name, Mode::RWXU)?;
    Ok(DirectoryOutcome::New)
}

/// Lets the owner of a directory write into it. Where that fails, so will making what it is to hold, and that is
/// reported.
fn open_to_owner(parent: &OwnedFd, name: &CStr, status: &Status) {
    let wanted = status.mode | Mode::RWXU.bits();
    if wanted != status.mode
        && let Ok(directory) = crate::fs::directory::open_way_here(parent, name)
    {
        let _ = rustix::fs::chmod(crate::fs::xattrs::proc_path(&directory), Mode::from_raw_mode(wanted));
    }
}

/// Renames within a directory to a name that nothing has. On an error the passing name is removed.
pub(super) fn rename_new(parent: &OwnedFd, passing: &CStr, name: &CStr) -> SystemResult<()> {
    let renamed = match rustix::fs::renameat_with(parent, passing, parent, name, RenameFlags::NOREPLACE) {
        // A file system that cannot do that in one step.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => link_new(parent, passing, name),
        other => other,
    };
    if renamed.is_err() {
        let _ = rustix::fs::unlinkat(parent, passing, AtFlags::empty());
    }
    renamed
}

/// Links by a second name and, where there are no hard links either, by looking first.
fn link_new(parent: &OwnedFd, passing: &CStr, name: &CStr) -> SystemResult<()> {
    match rustix::fs::linkat(parent, passing, parent, name, AtFlags::empty()) {
        Ok(()) => rustix::fs::unlinkat(parent, passing, AtFlags::empty()),
        Err(Errno::EXIST) => Err(Errno::EXIST),
        Err(_) => match Status::at(parent, name) {
            Err(Errno::NOENT) => rustix::fs::renameat(parent, passing, parent, name),
            Err(error) => Err(error),
            Ok(_) => Err(Errno::EXIST),
        },
    }
}

/// Renames within a directory over whatever has the name, but for a directory that is not empty. On an error the
/// passing name is removed.
pub(super) fn rename_over(parent: &OwnedFd, passing: &CStr, name: &CStr) -> SystemResult<()> {
    let renamed = match rustix::fs::renameat(parent, passing, parent, name) {
        Err(Errno::ISDIR) => rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR)
            .and_then(|()| rustix::fs::renameat(parent, passing, parent, name)),
        other => other,
    };
    // Renaming one of a file's names to another of its names leaves both: so this is for hard links too.
    let _ = rustix::fs::unlinkat(parent, passing, AtFlags::empty());
    renamed
}

//! Regular files under way.

use super::{TargetDir, not_made};
use crate::fs::problem::Problem;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use siltstone_store::catalog::EntryPath;
use std::{ffi::CString, fs::File, io, os::unix::fs::FileExt};

/// Under which name a file lies while its content is incomplete.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Draft {
    /// Under its own: nothing may stand there. Saves a rename, and an interrupted restore leaves the file incomplete.
    InPlace,
    /// Under a hidden name in the same directory, made from this serial (one per file of a restore).
    Beside(u64),
}

/// An open file of the target; any offset may be written, from several threads.
#[derive(Debug)]
pub struct TargetFile {
    file: File,
}

impl TargetDir {
    /// Makes an empty file, readable by its owner only.
    ///
    /// # Errors
    /// A [`Problem`] if it cannot be made, or if something has the name already.
    pub fn create_file(&self, path: &EntryPath, draft: Draft) -> Result<TargetFile, Problem> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        self.open_named(path, Some(draft), flags).map_err(|error| not_made(path, error))
    }

    /// Opens a draft made before, so that more files can be under way than may be open.
    pub fn open_draft(&self, path: &EntryPath, draft: Draft) -> Result<TargetFile, Problem> {
        self.open_named(path, Some(draft), OFlags::RDWR).map_err(|error| not_made(path, error))
    }

    /// Opens a file that is there, to compare it.
    pub fn open_existing(&self, path: &EntryPath) -> io::Result<TargetFile> {
        // NONBLOCK: a pipe may stand there.
        Ok(self.open_named(path, None, OFlags::RDONLY | OFlags::NONBLOCK)?)
    }

    /// Gives a complete draft its name; a file, a link or an empty directory that has it is replaced.
    pub fn publish(&self, path: &EntryPath, draft: Draft) -> Result<(), Problem> {
        let Draft::Beside(_) = draft else { return Ok(()) };
        let renamed = self
            .draft_name(path, draft)
            .and_then(|(parent, passing, name)| super::make::rename_over(&parent, &passing, &name));
        renamed.map_err(|error| not_made(path, error))
    }

    /// Removes a draft that will not be completed.
    pub fn discard(&self, path: &EntryPath, draft: Draft) -> Result<(), Problem> {
        let removed = self
            .draft_name(path, draft)
            .and_then(|(parent, passing, _)| rustix::fs::unlinkat(&parent, &passing, AtFlags::empty()));
        removed.map_err(|error| not_made(path, error))
    }

    fn open_named(&self, path: &EntryPath, draft: Option<Draft>, flags: OFlags) -> rustix::io::Result<TargetFile> {
        let (parent, name, _) = self.draft_name(path, draft.unwrap_or(Draft::InPlace))?;
        let flags = flags | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&parent, &name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(TargetFile { file: File::from(file) })
    }

    /// The open parent, the name the draft has, and the name it is to have.
    fn draft_name(
        &self,
        path: &EntryPath,
        draft: Draft,
    ) -> Result<(std::sync::Arc<std::os::fd::OwnedFd>, CString, CString), Errno> {
        let (parent, name) = self.beneath.parent(path)?;
        let passing = match draft {
            Draft::InPlace => name.clone(),
            Draft::Beside(serial) => self.hidden_name('d', serial),
        };
        Ok((parent, passing, name))
    }
}

impl TargetFile {
    /// Writes all of some bytes at an offset; the file grows as needed and what is skipped is a hole.
    pub fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.file.write_all_at(bytes, offset)
    }

    /// Sets the length; what is added is a hole.
    pub fn set_size(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }

    /// Reads some bytes at an offset; 0 only at the end of the file.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        loop {
            match self.file.read_at(buffer, offset) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Fills a buffer from an offset; an error if the file ends before.
    pub fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(buffer, offset)
    }

    /// The length of the file.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    pub(super) fn file(&self) -> &File {
        &self.file
    }
}

//! Regular files under way: written under a hidden name, and given their own when they are complete.

use super::{ConflictPolicy, TargetDir, make, not_made};
use crate::fs::problem::Problem;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use siltstone_store::catalog::EntryPath;
use std::os::fd::OwnedFd;
use std::{ffi::CString, fs::File, io, os::unix::fs::FileExt, sync::Arc};

/// End of the names under which what could be had of damaged files is kept aside.
pub const DAMAGED_SUFFIX: &str = ".silt-damaged";

/// The most bytes that a file's name has.
const NAME_BYTES_MAX: usize = 255;

/// A file under way. It lies under a hidden name in its directory, so that neither an interruption nor damage leaves
/// anything that looks like the file itself.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Draft {
    /// Makes the hidden name; one per file of a restore.
    pub serial: u64,
    /// Policy for an object that has the file's name when it is complete.
    pub on_conflict: ConflictPolicy,
}

/// An open file of the target; any offset may be written, from several threads.
#[derive(Debug)]
pub struct TargetFile {
    file: File,
}

/// Where a draft lies.
struct DraftPlace {
    parent: Arc<OwnedFd>,
    hidden: CString,
    /// The name it is to have.
    name: CString,
}

impl TargetDir {
    /// Makes an empty file, readable by its owner only.
    ///
    /// # Errors
    /// A [`Problem`] if it cannot be made.
    pub fn create_file(&self, path: &EntryPath, draft: Draft) -> Result<TargetFile, Problem> {
        self.open_at(path, draft, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    /// Opens a draft made before, so that more files can be under way than may be open.
    pub fn open_draft(&self, path: &EntryPath, draft: Draft) -> Result<TargetFile, Problem> {
        self.open_at(path, draft, OFlags::RDWR)
    }

    fn open_at(&self, path: &EntryPath, draft: Draft, flags: OFlags) -> Result<TargetFile, Problem> {
        let opened = self.draft_place(path, draft).and_then(|place| open_file(&place.parent, &place.hidden, flags));
        opened.map_err(|error| not_made(path, error))
    }

    /// Opens a file that is there, to compare it.
    pub fn open_existing(&self, path: &EntryPath) -> io::Result<TargetFile> {
        let (parent, name) = self.beneath.parent(path)?;
        // NONBLOCK: a pipe may stand there.
        Ok(open_file(&parent, &name, OFlags::RDONLY | OFlags::NONBLOCK)?)
    }

    /// Gives a complete draft its name. What has it is replaced if it may be (a file, a link or an empty directory).
    pub fn publish(&self, path: &EntryPath, draft: Draft) -> Result<(), Problem> {
        let renamed =
            self.draft_place(path, draft).and_then(|DraftPlace { parent, hidden, name }| match draft.on_conflict {
                ConflictPolicy::Replace => make::rename_over(&parent, &hidden, &name),
                ConflictPolicy::Keep => make::rename_new(&parent, &hidden, &name),
            });
        renamed.map_err(|error| not_made(path, error))
    }

    /// Gives a draft that will not be completed the name that [`aside`] has for it. What has that name is kept, and the
    /// draft removed.
    pub fn set_aside(&self, path: &EntryPath, draft: Draft) -> Result<(), Problem> {
        let Some(aside) = aside(path) else { return Err(not_made(path, Errno::NAMETOOLONG)) };
        let renamed = self.draft_place(path, draft).and_then(|DraftPlace { parent, hidden, .. }| {
            let name = CString::new(aside.name()).map_err(|_| Errno::INVAL)?;
            make::rename_new(&parent, &hidden, &name)
        });
        renamed.map_err(|error| not_made(&aside, error))
    }

    /// Removes a draft that will not be completed.
    pub fn discard(&self, path: &EntryPath, draft: Draft) -> Result<(), Problem> {
        let removed = self
            .draft_place(path, draft)
            .and_then(|place| rustix::fs::unlinkat(&place.parent, &place.hidden, AtFlags::empty()));
        removed.map_err(|error| not_made(path, error))
    }

    fn draft_place(&self, path: &EntryPath, draft: Draft) -> Result<DraftPlace, Errno> {
        let (parent, name) = self.beneath.parent(path)?;
        Ok(DraftPlace { parent, hidden: self.hidden_name('d', draft.serial), name })
    }
}

fn open_file(parent: &OwnedFd, name: &std::ffi::CStr, flags: OFlags) -> Result<TargetFile, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, name, flags, Mode::RUSR | Mode::WUSR)?;
    Ok(TargetFile { file: File::from(file) })
}

/// The path under which what could be had of a damaged file is kept; a long name is cut short. `None` if no path is
/// that long.
pub fn aside(path: &EntryPath) -> Option<EntryPath> {
    let name = path.name();
    let kept = name.get(..NAME_BYTES_MAX - DAMAGED_SUFFIX.len()).unwrap_or(name);
    let name = [kept, DAMAGED_SUFFIX.as_bytes()].concat();
    match path.parent() {
        Some(parent) => parent.join(&name),
        None => EntryPath::new(name),
    }
    .ok()
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

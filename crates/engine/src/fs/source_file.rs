//! Reading one source file: the one that was seen in the scan and no other, with its holes known, and whether it
//! changed meanwhile.

use super::{
    directory::open_without_access_time,
    problem::{Problem, ProblemKind},
    status::{NodeKind, Status},
    xattrs::{self, Xattr},
};
use rustix::fs::{Advice, CWD, Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::{
    ffi::CString,
    fs::File,
    io::{self, Read},
    num::NonZeroU64,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::fs::FileExt,
    },
    sync::Arc,
};

/// From this size on the kernel is told that the file will be read from front to back, which doubles its read-ahead.
/// Below, the call costs more than it brings.
const SEQUENTIAL_BYTES_MIN: u64 = 1 << 20;

/// Without `NONBLOCK` a pipe that took the file's place would hold the backup up for ever.
const OPEN_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// As [`OPEN_FLAGS`], for what is known to be a regular file, by a link of `/proc` to it.
const WAITING_OPEN_FLAGS: OFlags = OFlags::RDONLY.union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Handle to open a file of the scan later, from any thread. Holds its directory open.
#[derive(Clone, Debug)]
pub struct FileHandle {
    directory: Arc<OwnedFd>,
    name: CString,
    /// Boxed, for handles go on in items that stand beside small ones.
    status: Box<Status>,
    xattrs_later: bool,
}

impl FileHandle {
    pub(super) fn new(directory: Arc<OwnedFd>, name: CString, status: &Status, xattrs_later: bool) -> Self {
        Self { directory, name, status: Box::new(*status), xattrs_later }
    }

    /// True if the scan has not read the file's extended attributes, and while its change time is the same they are.
    pub fn xattrs_later(&self) -> bool {
        self.xattrs_later
    }

    /// Opens the file without a look at it: it may be another one than the scan saw, or have changed.
    /// [`SourceFile::is_as_opened`] tells once it was read. Costs a system call less than [`FileHandle::open`].
    ///
    /// # Errors
    /// Those of the system.
    pub fn open_as_seen(&self) -> io::Result<SourceFile> {
        let file = open_without_access_time(&self.directory, &self.name, OPEN_FLAGS)?;
        Ok(SourceFile { file: File::from(file), status: *self.status, position: 0 })
    }

    /// Opens the file for reading, if it still is the one the scan saw. `path` only serves the report.
    ///
    /// # Errors
    /// A [`Problem`] if it has vanished, cannot be read, or has been replaced.
    pub fn open(&self, path: &EntryPath) -> Result<SourceFile, Problem> {
        let opened = match open_without_access_time(&self.directory, &self.name, OPEN_FLAGS) {
            Err(Errno::AGAIN) => self.open_leased(),
            other => other,
        };
        let (file, status) = match opened.and_then(|file| Status::of(&file).map(|status| (file, status))) {
            Ok(opened) => opened,
            Err(error @ Errno::NOENT) => {
                return Err(Problem::entry(path, ProblemKind::Vanished, io::Error::from(error)));
            }
            Err(Errno::LOOP) => return Err(Problem::entry(path, ProblemKind::Replaced, "it is a symbolic link now")),
            Err(error) => return Err(Problem::entry(path, ProblemKind::Unreadable, io::Error::from(error))),
        };
        if status.kind != NodeKind::File || !status.is_same_inode(&self.status) {
            return Err(Problem::entry(path, ProblemKind::Replaced, "another file has its name now"));
        }
        if status.size >= SEQUENTIAL_BYTES_MIN {
            // Only advice: a file system that does not take it reads as it likes.
            let _ = rustix::fs::fadvise(&file, 0, None::<NonZeroU64>, Advice::Sequential);
        }
        Ok(SourceFile { file: File::from(file), status, position: 0 })
    }

    /// Opens a file on which another program has a lease, such as a file server for its clients. The kernel asks it to
    /// give the lease up, and makes us wait for that no longer than `lease-break-time`. Anything but a regular file
    /// comes as what names it and cannot be read: opening that could take for ever.
    fn open_leased(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::openat(&self.directory, &self.name, flags, Mode::empty())?;
        if Status::of(&found)?.kind != NodeKind::File {
            return Ok(found);
        }
        let link = CString::new(format!("/proc/self/fd/{}", found.as_raw_fd())).unwrap_or_default();
        // Where there is no `/proc`, what was said first holds.
        open_without_access_time(CWD, &link, WAITING_OPEN_FLAGS)
            .map_err(|error| if error == Errno::NOENT { Errno::AGAIN } else { error })
    }
}

/// An open source file. [`Read`] goes from front to back; [`SourceFile::read_at`] goes anywhere and does not move it.
#[derive(Debug)]
pub struct SourceFile {
    file: File,
    status: Status,
    position: u64,
}

/// A stretch of a file that holds data; what lies between stretches is holes, which read as zeros.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Where it begins.
    pub offset: u64,
    /// How long it is; never 0.
    pub bytes: u64,
}

impl Extent {
    /// Where it ends.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }
}

impl SourceFile {
    /// The file's status when it was opened.
    pub fn status(&self) -> &Status {
        &self.status
    }

    /// Its length in bytes when it was opened. Where files are made as they are read, such as in `/proc`, it may be 0
    /// though there is content: only reading tells.
    pub fn size(&self) -> u64 {
        self.status.size
    }

    /// Brings metadata read in the scan up to the moment of opening. Names and attributes stay.
    pub fn update(&self, metadata: &mut Metadata) {
        metadata.mode = self.status.mode;
        metadata.modified = self.status.modified;
        metadata.changed = self.status.changed;
        metadata.links = self.status.links;
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

    /// Reads some bytes from where the last such read ended; 0 only at the end of the file. Files that are made as they
    /// are read may not be read in any other way.
    pub fn read_on(&self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match (&self.file).read(buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => return other,
            }
        }
    }

    /// Tells whether the file system keeps less than the file's length, so that it may have holes (or be compressed).
    pub fn may_have_holes(&self) -> bool {
        self.status.blocks.saturating_mul(512) < self.status.size
    }

    /// The first stretch of data at or after an offset, within the length at opening; `None` if only a hole is left.
    /// Where the file system knows no holes, everything is data.
    pub fn next_data(&self, offset: u64) -> io::Result<Option<Extent>> {
        let end = self.status.size;
        if offset >= end {
            return Ok(None);
        }
        let start = match rustix::fs::seek(&self.file, SeekFrom::Data(offset)) {
            Ok(start) => start,
            // Nothing but a hole, or the file has become shorter.
            Err(Errno::NXIO) => return Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => return Ok(extent(offset, end)),
            Err(error) => return Err(error.into()),
        };
        if start >= end {
            return Ok(None);
        }
        match rustix::fs::seek(&self.file, SeekFrom::Hole(start)) {
            Ok(hole) => Ok(extent(start, hole.min(end))),
            Err(Errno::NXIO) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// All stretches of data, in order; one that covers the whole file if it [may not have
    /// holes](SourceFile::may_have_holes).
    pub fn data_extents(&self) -> impl Iterator<Item = io::Result<Extent>> + '_ {
        let mut offset = 0;
        std::iter::from_fn(move || {
            let found =
                if self.may_have_holes() { self.next_data(offset) } else { Ok(extent(offset, self.status.size)) };
            match found {
                Ok(found) => {
                    offset = found?.end();
                    found.map(Ok)
                }
                Err(error) => {
                    offset = u64::MAX;
                    Some(Err(error))
                }
            }
        })
    }

    /// Its extended attributes, in the order of their names.
    ///
    /// # Errors
    /// Those of the system.
    pub fn xattrs(&self) -> io::Result<Vec<Xattr>> {
        Ok(xattrs::read_of(&self.file)?)
    }

    /// Tells whether the file has been written to (or its inode changed) since it was opened.
    pub fn changed_since_open(&self) -> io::Result<bool> {
        Ok(!Status::of(&self.file)?.is_same_content(&self.status))
    }

    /// Tells whether this is the file of the status it was opened with, and nothing of it has changed since that.
    pub fn is_as_opened(&self) -> io::Result<bool> {
        Ok(Status::of(&self.file)? == self.status)
    }
}

fn extent(start: u64, end: u64) -> Option<Extent> {
    (start < end).then(|| Extent { offset: start, bytes: end - start })
}

impl Read for SourceFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.read_at(buffer, self.position)?;
        self.position = self.position.saturating_add(count as u64);
        Ok(count)
    }
}

//! Open directories and their names in catalog order.

use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::{Errno, Result};
use std::{
    ffi::CStr,
    os::fd::{AsFd, OwnedFd},
};

/// Room for the directory entries of one system call.
const BUFFER_BYTES: usize = 64 << 10;

/// Opens a directory to list it. A symbolic link is an error, not followed.
pub(super) fn open_directory(parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    open_without_access_time(parent, name, flags)
}

/// Opens a directory that only leads to others: it need not be readable, and may be a symbolic link to one.
pub(super) fn open_way(parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    rustix::fs::openat(parent, name, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
}

/// As [`open_way`], but a symbolic link is an error.
pub(super) fn open_way_here(parent: impl AsFd, name: &CStr) -> Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens for reading and, where that is permitted (to the owner and to root), without leaving a trace in the access
/// time.
pub(super) fn open_without_access_time(parent: impl AsFd, name: &CStr, flags: OFlags) -> Result<OwnedFd> {
    match rustix::fs::openat(&parent, name, flags | OFlags::NOATIME, Mode::empty()) {
        Err(Errno::PERM) => rustix::fs::openat(&parent, name, flags, Mode::empty()),
        other => other,
    }
}

/// The names in a directory, sorted by their bytes. Costs the bytes of the names and 17 more for each.
#[derive(Default)]
pub(super) struct NameList {
    /// All names, each ended by NUL.
    bytes: Vec<u8>,
    /// Where each lies in `bytes`, NUL included.
    spans: Vec<Span>,
}

#[derive(Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        bytes.get(self.start..self.end).unwrap_or_default()
    }
}

impl NameList {
    /// Reads the names in a directory but for `.` and `..`. What was read before an error is kept and comes with it.
    pub(super) fn read(directory: impl AsFd, buffer: &mut Vec<u8>) -> (Self, Result<()>) {
        let mut list = Self::default();
        buffer.clear();
        buffer.reserve(BUFFER_BYTES);
        let mut entries = RawDir::new(directory, buffer.spare_capacity_mut());
        let mut outcome = Ok(());
        while let Some(entry) = entries.next() {
            match entry {
                Ok(entry) => list.push(entry.file_name()),
                Err(Errno::INTR) => {}
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        let Self { bytes, spans } = &mut list;
        spans.sort_unstable_by(|left, right| left.of(bytes).cmp(right.of(bytes)));
        (list, outcome)
    }

    /// A single name.
    pub(super) fn of_one(name: &CStr) -> Self {
        let mut list = Self::default();
        list.push(name);
        list
    }

    fn push(&mut self, name: &CStr) {
        if name != c"." && name != c".." {
            let start = self.bytes.len();
            self.bytes.extend_from_slice(name.to_bytes_with_nul());
            self.spans.push(Span { start, end: self.bytes.len() });
        }
    }

    /// The name at a place of the sorted list; `None` past its end.
    pub(super) fn get(&self, index: usize) -> Option<&CStr> {
        CStr::from_bytes_with_nul(self.spans.get(index)?.of(&self.bytes)).ok()
    }

    /// Tells whether a name is in the list.
    pub(super) fn contains(&self, name: &CStr) -> bool {
        self.spans.binary_search_by(|span| span.of(&self.bytes).cmp(name.to_bytes_with_nul())).is_ok()
    }

    /// Keeps one name, if it is there.
    pub(super) fn keep_only(&mut self, name: &CStr) {
        let Self { bytes, spans } = self;
        spans.retain(|span| span.of(bytes) == name.to_bytes_with_nul());
    }

    /// The names in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CStr> {
        (0..self.spans.len()).filter_map(|index| self.get(index))
    }
}

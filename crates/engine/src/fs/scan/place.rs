//! A source that is recorded at another place: the mounted snapshot of a file system as what it is a snapshot of.

use super::{Scanner, open_directory, open_way};
use crate::fs::problem::{Problem, ProblemKind};
use crate::fs::scan_item::{FileKind, ScanEntry, ScanItem, ScanOptions};
use crate::fs::status::Status;
use rustix::fs::CWD;
use siltstone_store::catalog::{EntryPath, Metadata};
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Mode of a directory above the place that is not on this machine.
const DIRECTORY_MODE: u32 = 0o755;

/// The place at which a source is recorded.
pub(super) struct Place {
    /// `None`: the root itself.
    path: Option<EntryPath>,
    /// Devices in the order in which they were met. Each mount of a snapshot has a number of its own; recorded is
    /// which of them it is, so that the entries of the next snapshot are the same where nothing changed.
    devices: Vec<u64>,
}

impl Place {
    fn device(&mut self, device: u64) -> u64 {
        let known = self.devices.iter().position(|known| *known == device);
        let position = known.unwrap_or_else(|| {
            self.devices.push(device);
            self.devices.len() - 1
        });
        position as u64 + 1
    }
}

impl Scanner {
    /// Begins a walk over one source that is recorded at `place`, `None` for the root. Patterns see the paths that are
    /// recorded. Directories above the place are recorded as they are on this machine, if they are there.
    ///
    /// # Errors
    /// As [`Scanner::new`].
    pub fn placed(source: PathBuf, place: Option<EntryPath>, options: ScanOptions) -> io::Result<Self> {
        let mut scanner = Self::new(&[source], options)?;
        let above = std::iter::successors(place.as_ref().and_then(EntryPath::parent), EntryPath::parent);
        let mut above: Vec<EntryPath> = above.collect();
        above.reverse();
        for path in above {
            let metadata = scanner.live(&path);
            scanner.ready.push_back(ScanItem::Entry(ScanEntry { path, metadata, kind: FileKind::Directory }));
        }
        scanner.place = Some(Place { path: place, devices: Vec::new() });
        Ok(scanner)
    }

    /// Metadata of a directory of this machine, or what stands for one that is not there.
    fn live(&mut self, path: &EntryPath) -> Metadata {
        let full = Path::new("/").join(OsStr::from_bytes(path.as_bytes()));
        let opened = CString::new(full.into_os_string().into_encoded_bytes()).ok().and_then(|full| {
            let directory = open_way(CWD, &full).ok()?;
            Status::of(&directory).ok().map(|status| (status, directory))
        });
        match opened {
            Some((status, directory)) => self.reader.read(directory.as_fd(), c".", &status).0,
            None => Metadata { mode: DIRECTORY_MODE, links: 1, ..Metadata::default() },
        }
    }

    /// The source itself, at its place.
    pub(super) fn visit_placed(&mut self, parent: &Arc<OwnedFd>, name: CString) {
        if let Some(path) = self.place.as_ref().and_then(|place| place.path.clone()) {
            self.path = path.as_bytes().to_vec();
            return self.visit_listed(parent, name, path, None);
        }
        self.path.clear();
        match open_directory(parent, &name).and_then(|directory| Ok((Status::of(&directory)?, directory))) {
            Ok((status, directory)) => self.enter_listed(Arc::new(directory), status, status.device),
            Err(error) => {
                let problem = Problem::root(ProblemKind::SourceMissing, io::Error::from(error));
                self.ready.push_back(ScanItem::Problem(problem));
            }
        }
    }

    /// An item as it is recorded.
    pub(super) fn as_recorded(&mut self, mut item: ScanItem) -> ScanItem {
        if let (Some(place), ScanItem::Entry(entry)) = (&mut self.place, &mut item) {
            entry.metadata.device = place.device(entry.metadata.device);
        }
        item
    }
}

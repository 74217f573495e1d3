//! Walking only what was chosen: paths at or below the sources. On the way to them directories are looked at but not
//! listed; what was chosen is walked as a whole. So a walk costs what was chosen, whatever lies beside it.
//!
//! Everything else is as in a walk of the sources: the order, what is left out, and that no symbolic link below a
//! source is followed.

use super::{EntryPath, Errno, FileKind, MetadataReader, NameList, NodeKind, Scanner, Status, present};
use crate::fs::directory::open_way_here;
use crate::fs::scan_item::{ScanEntry, ScanItem, ScanOptions, SkipReason};
use crate::fs::source_tree::SourceTree;
use std::collections::{BTreeSet, VecDeque};
use std::ffi::{CStr, CString};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;

/// The paths chosen: in catalog order, none beneath another.
pub(super) type Choice = Arc<[EntryPath]>;

/// Those names of a directory that lead to what was chosen.
pub(super) struct ChosenNames {
    choice: Choice,
    /// Those beneath the directory that are still ahead.
    ahead: Range<usize>,
    /// Bytes of a path before the name.
    before: usize,
}

/// Part chosen of an entry and of all beneath it.
enum Reach {
    Nothing,
    Part(Range<usize>),
    Whole,
}

impl Iterator for ChosenNames {
    type Item = CString;

    fn next(&mut self) -> Option<CString> {
        let rest = self.choice.get(self.ahead.clone())?;
        let path = rest.first()?.as_bytes();
        let name_bytes = path.get(self.before..)?.split(|&byte| byte == b'/').next()?;
        let shared = path.get(..self.before + name_bytes.len())?;
        let is_same = |path: &EntryPath| {
            let behind = path.as_bytes().strip_prefix(shared);
            behind.is_some_and(|behind| behind.first().is_none_or(|&byte| byte == b'/'))
        };
        self.ahead.start += rest.partition_point(is_same);
        CString::new(name_bytes).ok()
    }
}

impl Scanner {
    /// Begins a walk over those parts of the sources that were chosen. Of each entry it looks at on the way it gives
    /// what it is now; a [`ScanItem::Anew`] stands before what is walked as a whole. What was chosen and is not there
    /// is no problem: the `Anew` before nothing tells it. A source that is not there is one, if something was chosen in
    /// it.
    ///
    /// # Errors
    /// As [`Scanner::new`].
    pub fn of_chosen(sources: &[PathBuf], mut chosen: Vec<EntryPath>, options: ScanOptions) -> io::Result<Self> {
        crate::fs::raise_open_file_limit();
        chosen.sort_unstable();
        chosen.dedup_by(|later, earlier| later == earlier || later.is_beneath(earlier));
        let SourceTree { root, nested } = SourceTree::new(sources)?;
        let reader = MetadataReader::new(options.detail);
        let (directories, path, ready) = (Vec::new(), Vec::new(), VecDeque::new());
        let choice = Some(Choice::from(chosen));
        let (place, buffer) = (None, Vec::new());
        // That nothing was chosen in a source is no problem.
        let unmet = BTreeSet::new();
        let mut scanner = Self { options, reader, nested, unmet, choice, place, directories, path, ready, buffer };
        scanner.enter_root(root);
        Ok(scanner)
    }

    fn reach(&self, path: &EntryPath) -> Reach {
        let Some(choice) = &self.choice else {
            return Reach::Whole;
        };
        let start = choice.partition_point(|chosen| chosen < path);
        let rest = choice.get(start..).unwrap_or_default();
        if rest.first() == Some(path) {
            return Reach::Whole;
        }
        match rest.partition_point(|chosen| chosen.is_beneath(path)) {
            0 => Reach::Nothing,
            count => Reach::Part(start..start + count),
        }
    }

    /// The root, as a source of which a part was chosen.
    pub(super) fn enter_chosen_root(&mut self, directory: OwnedFd, status: Status) {
        let all = 0..self.choice.as_ref().map_or(0, |choice| choice.len());
        self.enter_chosen(Arc::new(directory), status, status.device, all);
    }

    /// Tells whether there is a way through this directory above the sources to anything chosen.
    pub(super) fn leads_to_chosen(&self, path: &EntryPath) -> bool {
        !matches!(self.reach(path), Reach::Nothing)
    }

    /// An entry at or below a source that was chosen, or leads to what was. `device` is that of the source; `None` for
    /// the source itself.
    pub(super) fn visit_chosen(&mut self, parent: &Arc<OwnedFd>, name: CString, path: EntryPath, device: Option<u64>) {
        match self.reach(&path) {
            Reach::Nothing => {}
            Reach::Whole => self.visit_anew(parent, name, path, device),
            Reach::Part(part) => match self.open_plain(parent, &name, &path, device) {
                Some((status, directory)) => {
                    let (metadata, outcome) = self.reader.read(parent.as_fd(), &name, &status);
                    self.report_attributes(&path, outcome);
                    let kind = FileKind::Directory;
                    let found = ScanEntry { path: path.clone(), metadata, kind };
                    self.ready.push_back(ScanItem::Entry(found));
                    let device = self.device_inside(&path, &status, device);
                    self.enter_chosen(Arc::new(directory), status, device, part);
                }
                // It is gone, no directory any more, left out, or cannot be entered: then what lies beneath it is gone
                // as well.
                None => self.visit_anew(parent, name, path, device),
            },
        }
    }

    /// Walks an entry as a whole, if it is there.
    fn visit_anew(&mut self, parent: &Arc<OwnedFd>, name: CString, path: EntryPath, device: Option<u64>) {
        self.ready.push_back(ScanItem::Anew { path: path.clone() });
        // A name that the file system cannot hold is not there either.
        let is_gone = || matches!(Status::at(parent, &name), Err(Errno::NOENT | Errno::NAMETOOLONG));
        if device.is_none() || !is_gone() {
            self.visit_listed(parent, name, path, device);
        }
    }

    /// A directory that a walk of the whole source would enter.
    fn open_plain(
        &self,
        parent: &OwnedFd,
        name: &CStr,
        path: &EntryPath,
        device: Option<u64>,
    ) -> Option<(Status, OwnedFd)> {
        let status = Status::at(parent, name).ok()?;
        let is_plain = status.kind == NodeKind::Directory
            && self.skip_reason(path, &status, device).is_none()
            && (!self.is_border(&status, device) || self.leads_to_nested(path));
        if !is_plain {
            return None;
        }
        let directory = open_way_here(parent, name).ok()?;
        let opened = Status::of(&directory).ok()?;
        opened.is_same_inode(&status).then_some((opened, directory))
    }

    /// Goes on with what was chosen beneath the directory whose path is the current one.
    fn enter_chosen(&mut self, directory: Arc<OwnedFd>, status: Status, device: u64, part: Range<usize>) {
        let is_there = |name: &CStr| Status::at(&directory, name).is_ok();
        let mark = self.options.exclude.marks().iter().find_map(|mark| present(mark, &directory, is_there));
        let Some(mark) = mark else {
            let before = if self.path.is_empty() { 0 } else { self.path.len() + 1 };
            let choice = self.choice.clone().unwrap_or_default();
            let names = super::Names::Chosen(ChosenNames { choice, ahead: part, before });
            return self.push_frame(directory, status, device, names);
        };
        // Of what it holds only the mark is kept.
        if let Ok(path) = EntryPath::new(self.path.clone()) {
            self.ready.push_back(ScanItem::Anew { path: path.clone() });
            self.ready.push_back(ScanItem::Skipped { path, why: SkipReason::Marked });
        }
        self.push_frame(directory, status, device, super::Names::Listed(NameList::of_one(&mark), 0));
    }
}

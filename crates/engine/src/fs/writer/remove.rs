//! Removing what a snapshot does not hold. Never outside the target, never through a link, never from another file
//! system.

use super::{TargetDir, beneath::PROTECTED};
use crate::fs::{
    directory::{NameList, open_way},
    identity::FolderIdentity,
    problem::{Problem, ProblemKind},
    status::{NodeKind, Status},
};
use rustix::fs::AtFlags;
use rustix::io::{Errno, Result};
use siltstone_store::catalog::EntryPath;
use std::{
    ffi::{CStr, CString},
    io,
    os::fd::OwnedFd,
};

impl TargetDir {
    /// Removes what a directory (`None`: the target itself) holds beside the names wanted, with all that is below.
    /// Every path removed is told to `removed`.
    pub fn remove_extra(
        &self,
        directory: Option<&EntryPath>,
        is_wanted: impl Fn(&[u8]) -> bool,
        removed: &mut dyn FnMut(&EntryPath),
    ) -> Vec<Problem> {
        let names = match self.list(directory) {
            Ok(names) => names,
            Err(error) => return vec![Problem::at(directory, ProblemKind::NotRemoved, error)],
        };
        let mut problems = Vec::new();
        for name in names.iter().filter(|name| !is_wanted(name)) {
            let path = directory.map_or_else(|| EntryPath::new(name.as_slice()), |directory| directory.join(name));
            match path {
                Ok(path) => problems.extend(self.remove_tree(&path, removed)),
                Err(error) => problems.push(Problem::at(directory, ProblemKind::NotRemoved, error)),
            }
        }
        problems
    }

    /// Removes the drafts that a killed restore left in a directory (`None`: in the target itself) beside the names
    /// wanted, unless another restore is at work in this target. What cannot be removed does no harm.
    pub fn sweep(&self, directory: Option<&EntryPath>, is_wanted: impl Fn(&[u8]) -> bool) {
        let Ok(opened) = self.beneath.open_directory(directory) else { return };
        if !self.is_alone {
            return;
        }
        let (names, _) = NameList::read(&opened, &mut Vec::new());
        let is_draft = |name: &[u8]| Self::is_hidden_name(name) && !is_wanted(name);
        for name in names.iter().filter(|name| is_draft(name.to_bytes())) {
            let _ = rustix::fs::unlinkat(&opened, name, AtFlags::empty());
        }
    }

    /// Visits what [`TargetDir::remove_extra`] would remove. What cannot be looked at is passed over.
    pub fn visit_extra(
        &self,
        directory: Option<&EntryPath>,
        is_wanted: impl Fn(&[u8]) -> bool,
        visit: &mut dyn FnMut(&EntryPath),
    ) {
        for name in self.list(directory).unwrap_or_default().iter().filter(|name| !is_wanted(name)) {
            let path = directory.map_or_else(|| EntryPath::new(name.as_slice()), |directory| directory.join(name));
            if let Ok(path) = path {
                self.visit_tree(&path, visit);
            }
        }
    }

    /// Visits what [`TargetDir::remove_tree`] would remove.
    pub fn visit_tree(&self, path: &EntryPath, visit: &mut dyn FnMut(&EntryPath)) {
        let mut left = vec![path.clone()];
        while let Some(path) = left.pop() {
            let Ok(Some(status)) = self.state(&path) else { continue };
            if self.beneath.is_protected(FolderIdentity { device: status.device, inode: status.inode }) {
                continue;
            }
            visit(&path);
            if status.kind == NodeKind::Directory {
                let names = self.list(Some(&path)).unwrap_or_default();
                left.extend(names.iter().rev().filter_map(|name| path.join(name).ok()));
            }
        }
    }

    /// Removes an entry with all that is below it, at any depth. Every path removed is told to `removed`; what could
    /// not be removed is reported and the rest goes on.
    pub fn remove_tree(&self, path: &EntryPath, removed: &mut dyn FnMut(&EntryPath)) -> Vec<Problem> {
        let problem = |error: Errno| Problem::entry(path, ProblemKind::NotRemoved, io::Error::from(error));
        let (parent, name) = match self.beneath.parent(path) {
            Ok(found) => found,
            Err(Errno::NOENT) => return Vec::new(),
            Err(error) => return vec![problem(error)],
        };
        match rustix::fs::unlinkat(&parent, &name, AtFlags::empty()) {
            Ok(()) => {
                removed(path);
                return Vec::new();
            }
            Err(Errno::NOENT) => return Vec::new(),
            Err(Errno::ISDIR) => {}
            Err(error) => return vec![problem(error)],
        }
        self.beneath.forget_parents();
        match self
            .beneath
            .open_same_mount(&parent, &name)
            .and_then(|top| Level::new(&top, name).map(|level| (top, level)))
        {
            Ok((top, level)) => {
                let mut removal = Removal { target: self, removed, problems: Vec::new(), path: path.clone() };
                removal.run(top, level, &parent);
                removal.problems
            }
            Err(error) => vec![not_opened(path, error)],
        }
    }
}

/// A removal under way. One directory is open at a time, however deep it goes.
struct Removal<'a> {
    target: &'a TargetDir,
    removed: &'a mut dyn FnMut(&EntryPath),
    problems: Vec<Problem>,
    /// Path of the directory that is open.
    path: EntryPath,
}

/// A directory being emptied.
struct Level {
    /// Its name in the directory above.
    name: CString,
    status: Status,
    names: NameList,
    next: usize,
}

impl Level {
    fn new(directory: &OwnedFd, name: CString) -> Result<Self> {
        let status = Status::of(directory)?;
        let (names, outcome) = NameList::read(directory, &mut Vec::new());
        outcome?;
        Ok(Self { name, status, names, next: 0 })
    }
}

impl Removal<'_> {
    fn run(&mut self, top: OwnedFd, level: Level, above_top: &OwnedFd) {
        let mut levels = vec![level];
        let mut current = top;
        while let Some(level) = levels.last_mut() {
            if let Some(name) = level.names.get(level.next).map(CStr::to_owned) {
                level.next += 1;
                if let Some((below, level)) = self.remove_or_open(&current, name) {
                    current = below;
                    levels.push(level);
                }
                continue;
            }
            let Some(emptied) = levels.pop() else { return };
            match levels.last() {
                None => self.remove_emptied(above_top, &emptied.name),
                Some(above) => {
                    let Some(directory) = self.go_up(&current, above) else {
                        return;
                    };
                    current = directory;
                    self.remove_emptied(&current, &emptied.name);
                    self.path = self.path.parent().unwrap_or_else(|| self.path.clone());
                }
            }
        }
    }

    /// Removes a name of the open directory; if it is a directory that must be emptied first, opens that.
    fn remove_or_open(&mut self, directory: &OwnedFd, name: CString) -> Option<(OwnedFd, Level)> {
        let path = match self.path.join(name.to_bytes()) {
            Ok(path) => path,
            Err(error) => {
                self.problems.push(Problem::entry(&self.path, ProblemKind::NotRemoved, error));
                return None;
            }
        };
        match rustix::fs::unlinkat(directory, &name, AtFlags::empty()) {
            Ok(()) => (self.removed)(&path),
            Err(Errno::NOENT) => {}
            Err(Errno::ISDIR) => {
                let opened = self.target.beneath.open_same_mount(directory, &name);
                match opened.and_then(|below| Level::new(&below, name).map(|level| (below, level))) {
                    Ok(opened) => {
                        self.path = path;
                        return Some(opened);
                    }
                    Err(error) => self.problems.push(not_opened(&path, error)),
                }
            }
            Err(error) => self.problems.push(Problem::entry(&path, ProblemKind::NotRemoved, io::Error::from(error))),
        }
        None
    }

    /// Removes the directory of the current path, which has been emptied, by its name in the directory above.
    fn remove_emptied(&mut self, above: &OwnedFd, name: &CStr) {
        match rustix::fs::unlinkat(above, name, AtFlags::REMOVEDIR) {
            Ok(()) => (self.removed)(&self.path),
            // What is left in it has been reported.
            Err(Errno::NOTEMPTY) if self.problems.iter().any(|problem| is_beneath(problem, &self.path)) => {}
            Err(error) => {
                self.problems.push(Problem::entry(&self.path, ProblemKind::NotRemoved, io::Error::from(error)));
            }
        }
    }

    /// Back to the directory above, if it still is the one we came from.
    fn go_up(&mut self, from: &OwnedFd, above: &Level) -> Option<OwnedFd> {
        let found = open_way(from, c"..").ok();
        let directory = found.filter(|found| Status::of(found).is_ok_and(|status| status.is_same_inode(&above.status)));
        if directory.is_none() {
            let reason = "it was moved meanwhile; nothing more is removed here";
            self.problems.push(Problem::entry(&self.path, ProblemKind::NotRemoved, reason));
        }
        directory
    }
}

fn is_beneath(problem: &Problem, path: &EntryPath) -> bool {
    matches!(&problem.subject, crate::fs::Subject::Entry(other) if other.is_beneath(path))
}

fn not_opened(path: &EntryPath, error: Errno) -> Problem {
    match error {
        Errno::XDEV => Problem::entry(path, ProblemKind::NotRemoved, "another file system is mounted on it"),
        PROTECTED => Problem::entry(path, ProblemKind::NotRemoved, "it is the folder of the repository"),
        error => Problem::entry(path, ProblemKind::NotRemoved, io::Error::from(error)),
    }
}

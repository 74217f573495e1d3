//! The planning stage of a virtual full backup: the previous catalog beside what a walk of the listed paths finds.
//!
//! Both come in catalog order. An entry of the previous catalog is copied unless the walk gives another for its path,
//! or has said that it looks at all there is at or above that path anew.
//!
//! Names of one file are found by device and inode. Devices may have other numbers than at the time of the previous
//! snapshot, exchanged ones even: an inode of the walk is held against the previous catalog only by what it was there.

use crate::EngineError;
use crate::backup::changed_list::ChangedList;
use crate::backup::flow::{Disconnected, Item};
use crate::backup::links::{Inode, inode_of};
use crate::backup::outcome::Planned;
use crate::backup::plan::{Halt, Planner};
use crate::fs::{FileKind, ProblemKind, ScanEntry, ScanItem, Scanner};
use crate::observer::{EntryAction, Notice};
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata};
use siltstone_store::recipe::Recipe;
use std::collections::HashMap;

/// A file with several names of which some were copied.
struct Copied {
    name: EntryPath,
    size: u64,
    modified: Time,
    recipe: Recipe,
    names_left: u64,
}

struct Merge<'m, 's, 'r> {
    planner: Planner<'s, 'r>,
    list: &'m ChangedList,
    /// Path that is looked at anew as a whole; `true` if anything was or is there.
    anew: Option<(EntryPath, bool)>,
    /// By device and inode of the previous catalog, until all names are copied.
    copied: HashMap<Inode, Copied>,
    /// Files with several names of which one is being read: by their inodes in the previous catalog, those of now.
    reading: HashMap<Inode, Inode>,
    /// Numbers of devices in the previous catalog, by those of now.
    devices: HashMap<u64, u64>,
}

impl Planner<'_, '_> {
    /// As [`Planner::run`], for a walk of what is listed; everything else is copied.
    pub(super) fn run_changes(mut self, scanner: Scanner, list: &ChangedList) -> Result<Planned, EngineError> {
        // Names that are copied are not there to be read.
        self.keep_links();
        let (copied, reading, devices) = (HashMap::new(), HashMap::new(), HashMap::new());
        let mut merge = Merge { planner: self, list, anew: None, copied, reading, devices };
        let mut planned = Planned::default();
        match merge.run(scanner, &mut planned) {
            Ok(()) | Err(Halt::Disconnected) => Ok(planned),
            Err(Halt::Failed(error)) => Err(error),
        }
    }
}

impl Merge<'_, '_, '_> {
    fn run(&mut self, scanner: Scanner, planned: &mut Planned) -> Result<(), Halt> {
        for item in scanner {
            self.planner.check_cancelled()?;
            match item {
                ScanItem::Anew { path } => {
                    self.copy_before(Some(&path))?;
                    self.end_anew();
                    self.anew = Some((path, false));
                }
                ScanItem::Entry(found) => {
                    self.copy_before(Some(&found.path))?;
                    self.is_anew(&found.path);
                    self.found(found)?;
                }
                // An unmounted disk must not pass for the deletion of all it holds.
                ScanItem::Problem(problem) if problem.kind == ProblemKind::SourceMissing => {
                    return Err(EngineError::SourceGone { problem: problem.to_string() }.into());
                }
                other => self.planner.tell(other, planned),
            }
        }
        self.copy_before(None)?;
        self.end_anew();
        Ok(self.planner.flush()?)
    }

    /// Takes an entry that the walk found. The previous catalog stands at its path or behind it.
    fn found(&mut self, found: ScanEntry) -> Result<(), Halt> {
        let ranges = self.list.ranges_of(&found.path);
        let (inode, before) = (inode_of(&found.metadata), self.inode_before(&found));
        let copied = before.and_then(|before| self.copied.get(&before));
        if let (FileKind::File { size, .. }, Some(copied)) = (&found.kind, copied)
            && found.metadata.links > 1
        {
            // Two names of one file must hold the same content, and the other is in the catalog already.
            if ranges.is_some() || (*size, found.metadata.modified) != (copied.size, copied.modified) {
                let (listed, other) = (found.path.to_string(), copied.name.to_string());
                return Err(EngineError::UnlistedName { listed, other }.into());
            }
            let content = Content::File { size: copied.size, recipe: copied.recipe.clone() };
            let entry = Entry { path: found.path, metadata: found.metadata, content };
            return self.copy_file(entry, EntryAction::Changed);
        }
        self.planner.plan(found.into(), ranges)?;
        if let Some(before) = before
            && self.planner.is_being_read(inode)
        {
            self.reading.insert(before, inode);
        }
        Ok(())
    }

    /// Returns an entry's inode in the previous catalog. A new name of an inode that had others is on a device of
    /// which something else was met: at least the folder that it lies in.
    fn inode_before(&mut self, found: &ScanEntry) -> Option<Inode> {
        let (device, number) = inode_of(&found.metadata);
        match self.planner.previous_inode(&found.path) {
            Some(before @ (device_before, number_before)) if number_before == number => {
                self.devices.insert(device, device_before);
                Some(before)
            }
            _ => self.devices.get(&device).map(|device_before| (*device_before, number)),
        }
    }

    /// Copies previous entries before this path; `None`: all that are left.
    fn copy_before(&mut self, path: Option<&EntryPath>) -> Result<(), Halt> {
        while let Some(entry) = self.planner.previous_before(path)? {
            self.planner.check_cancelled()?;
            if !self.is_anew(&entry.path) {
                self.copy(entry)?;
            }
        }
        Ok(())
    }

    /// Tells whether the path is among what is looked at anew; then there was, or is, something to look at.
    fn is_anew(&mut self, path: &EntryPath) -> bool {
        match &mut self.anew {
            Some((anew, has_any)) if *path == *anew || path.is_beneath(anew) => {
                *has_any = true;
                true
            }
            _ => false,
        }
    }

    /// A path that neither is nor was there may be a mistake of the list's maker.
    fn end_anew(&mut self) {
        if let Some((path, false)) = self.anew.take() {
            self.planner.notice(&Notice::ListedUnknown { path });
        }
    }

    fn copy(&mut self, entry: Entry) -> Result<(), Halt> {
        let inode = inode_of(&entry.metadata);
        let Content::File { size, recipe } = &entry.content else {
            let action = EntryAction::Unchanged;
            return Ok(self.planner.add(Item::Ready { entry, action, needs: Vec::new() })?);
        };
        if entry.metadata.links > 1 {
            if let Some((device, inode)) = self.reading.get(&inode).copied() {
                // The file changed under another name, which the list has.
                let Entry { path, metadata, .. } = entry;
                let metadata = Metadata { device, inode, ..metadata };
                return Ok(self.planner.add(Item::Link { path, metadata, action: EntryAction::Changed })?);
            }
            let names_left = match self.copied.get_mut(&inode) {
                Some(copied) => {
                    copied.names_left = copied.names_left.saturating_sub(1);
                    copied.names_left
                }
                None => {
                    let names_left = entry.metadata.links - 1;
                    let (name, modified) = (entry.path.clone(), entry.metadata.modified);
                    let copied = Copied { name, size: *size, modified, recipe: recipe.clone(), names_left };
                    self.copied.insert(inode, copied);
                    names_left
                }
            };
            if names_left == 0 {
                self.copied.remove(&inode);
            }
        }
        self.copy_file(entry, EntryAction::Unchanged)
    }

    fn copy_file(&mut self, entry: Entry, action: EntryAction) -> Result<(), Halt> {
        let lost =
            || EngineError::PreviousUnusable { reason: format!("some of the content of /{} is lost", entry.path) };
        let (_, needs) = self.planner.reusable(&entry).ok_or_else(lost)?;
        Ok(self.planner.add(Item::Ready { entry, action, needs })?)
    }
}

impl From<Disconnected> for Halt {
    fn from(_: Disconnected) -> Self {
        Self::Disconnected
    }
}

impl From<EngineError> for Halt {
    fn from(error: EngineError) -> Self {
        Self::Failed(error)
    }
}

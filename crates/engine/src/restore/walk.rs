//! The first walk: everything but the metadata of directories.

use super::batch::{Batch, FilePlan, FileTask};
use super::fetch::{Fetching, Running};
use super::place::Placing;
use super::{Overwrite, RestoreSummary, Task, manifest_of};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::fs::{Draft, InTheWay, Made, NodeKind, Problem, ProblemKind, Selection, Status, Subject};
use crate::observer::{EntryAction, Notice};
use crate::parallel::Pool;
use crate::unfold::Worker;
use siltstone_store::Time;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use siltstone_store::region::RegionDecoder;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// What is to become of an entry.
enum Fate {
    /// It is made, under this draft if it is a file.
    Make(Draft),
    /// What is there stays, whether or not it is what the snapshot holds.
    Keep { as_wanted: bool },
}

/// A name that a file has, another that it is to have, and what becomes of what stands there.
type Link = (EntryPath, EntryPath, InTheWay);

/// A directory on the way to the current entry.
struct Above {
    path: EntryPath,
    /// Whether it exists in the target by now; one that is only passed through is made when something below it is taken.
    made: Option<Made>,
}

/// Something with several names.
struct Linked {
    first: EntryPath,
    /// How many names are to come.
    names: u64,
    /// What must agree with a further name's: an inode's number may have been given anew during the backup.
    kind: std::mem::Discriminant<Content>,
    size: u64,
    modified: Time,
}

/// The walk's state.
struct Walk<'w, 'a> {
    task: &'w Task<'w>,
    placing: &'w Placing<'w>,
    pool: Pool<'w, Worker>,
    chunks: &'w Arc<ChunkSource<'a>>,
    summary: &'w mut RestoreSummary,
    above: Vec<Above>,
    next_draft: u64,
    batch: Batch,
    batch_bytes: u64,
    /// What has several names and was taken under its first, by device and inode.
    linked: HashMap<(u64, u64), Linked>,
    /// Names to be linked once the batch is in place.
    links: Vec<Link>,
    /// The batch before, being placed, and its links.
    running: Option<(Running<'w>, Vec<Link>)>,
    /// First names of files with several that could not be put in place: something else may stand there.
    missing: HashSet<EntryPath>,
}

/// Walks the part of the snapshot and places all of it.
pub(super) fn place_all<'a>(
    task: &Task<'_>,
    placing: &Placing<'a>,
    chunks: &Arc<ChunkSource<'a>>,
    summary: &mut RestoreSummary,
) -> Result<(), EngineError> {
    std::thread::scope(|scope| {
        let workers = placing.fetching.workers;
        let batch_bytes = Fetching::batch_bytes(task.options.memory_bytes);
        let mut walk = Walk {
            task,
            placing,
            pool: Pool::start(scope, "place", workers, 2 * workers, RegionDecoder::new)?,
            chunks,
            summary,
            above: Vec::new(),
            next_draft: 0,
            batch: Batch::new(batch_bytes),
            batch_bytes,
            linked: HashMap::new(),
            links: Vec::new(),
            running: None,
            missing: HashSet::new(),
        };
        for entry in task.entries(chunks) {
            if task.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            match entry {
                Ok(entry) => walk.entry(entry)?,
                Err(error) => placing.report(&Problem::object("the catalog", ProblemKind::Damaged, error)),
            }
            if walk.batch.is_full() {
                walk.hand_on()?;
            }
        }
        walk.hand_on()?;
        walk.finish()
    })
}

/// A container has vanished: if the series has moved on, its newest manifest says where the chunks are now.
fn reload<'a>(task: &Task<'a>) -> Option<Arc<ChunkSource<'a>>> {
    let manifest = manifest_of(task.repository, task.snapshot).ok()?;
    task.observer.notice(&Notice::Replanned);
    Some(Arc::new(ChunkSource::new(task.repository, &manifest)))
}

impl Walk<'_, '_> {
    /// Hands the batch to the workers once the one before is in place.
    fn hand_on(&mut self) -> Result<(), EngineError> {
        self.finish()?;
        let batch = std::mem::replace(&mut self.batch, Batch::new(self.batch_bytes));
        let links = std::mem::take(&mut self.links);
        if !batch.is_empty() || !links.is_empty() {
            self.running = Some((self.placing.start(&self.pool, self.chunks, batch), links));
        }
        Ok(())
    }

    /// Waits for the batch being placed, then makes further names and verifies.
    fn finish(&mut self) -> Result<(), EngineError> {
        let Some((running, links)) = self.running.take() else { return Ok(()) };
        let (task, placing) = (self.task, self.placing);
        let batch = placing.finish(running, &self.pool, &mut || reload(task))?;
        let is_missing = |file: &&Arc<FileTask>| file.metadata.links > 1 && !file.is_in_place();
        self.missing.extend(batch.files.iter().filter(is_missing).map(|file| file.path.clone()));
        for (existing, path, in_the_way) in links {
            if self.missing.contains(&existing) {
                let reason = format!("it is another name of {}, which failed", Subject::Entry(existing));
                placing.report(&Problem::entry(&path, ProblemKind::NotWritten, reason));
            } else if let Err(problem) = placing.target.make_hard_link(&existing, &path, in_the_way) {
                placing.report(&problem);
            }
        }
        if placing.verify {
            placing.verify_batch(&batch, self.chunks);
        }
        Ok(())
    }

    fn entry(&mut self, entry: Entry) -> Result<(), EngineError> {
        let selection = self.task.options.filter.select(&entry.path, entry.is_directory());
        if selection == Selection::Excluded {
            return Ok(());
        }
        let Some(path) = self.task.part.target_path(&entry.path) else {
            return Ok(());
        };
        self.above.retain(|above| path.is_beneath(&above.path));
        self.add_missing_above(&path);
        if entry.is_directory() {
            self.above.push(Above { path, made: None });
            if selection == Selection::Selected {
                self.summary.entries += 1;
                self.make_directories();
            }
            return Ok(());
        }
        self.summary.entries += 1;
        if let Content::File { size, .. } = &entry.content {
            self.summary.bytes_total += size;
        }
        self.make_directories();
        match self.fate(&path, &entry) {
            Ok(Fate::Make(draft)) => return self.make(path, entry, draft),
            Ok(Fate::Keep { as_wanted }) => self.keep(&path, &entry, as_wanted),
            Err(problem) => self.placing.report(&problem),
        }
        Ok(())
    }

    /// Directories above an entry that did not come before it, because their part of the catalog is damaged or a pattern leaves them out.
    fn add_missing_above(&mut self, path: &EntryPath) {
        let bytes = path.as_bytes();
        let known = self.above.last().map_or(0, |above| above.path.as_bytes().len() + 1);
        for (end, _) in bytes.iter().enumerate().skip(known).filter(|(_, byte)| **byte == b'/') {
            if let Some(path) = bytes.get(..end).and_then(|bytes| EntryPath::new(bytes).ok()) {
                self.above.push(Above { path, made: None });
            }
        }
    }

    /// Makes the directories above that do not exist yet.
    fn make_directories(&mut self) {
        for above in &mut self.above {
            if above.made.is_some() {
                continue;
            }
            let in_the_way = match self.task.options.overwrite {
                Overwrite::Never => InTheWay::Keep,
                _ => InTheWay::Replace,
            };
            above.made = Some(match self.placing.target.make_directory(&above.path, in_the_way) {
                Ok(made) => made,
                Err(problem) => {
                    self.placing.report(&problem);
                    Made::Existing
                }
            });
        }
    }

    /// What to do, given what stands there. In a directory made just now there is nothing.
    fn fate(&mut self, path: &EntryPath, entry: &Entry) -> Result<Fate, Problem> {
        if self.above.last().is_some_and(|above| above.made == Some(Made::New)) {
            return Ok(Fate::Make(Draft::InPlace));
        }
        let there = self.placing.target.state(path);
        let there = there.map_err(|error| Problem::entry(path, ProblemKind::NotWritten, error))?;
        let Some(there) = there else {
            return Ok(Fate::Make(Draft::InPlace));
        };
        let keep = match self.task.options.overwrite {
            Overwrite::Always => false,
            Overwrite::Never => true,
            Overwrite::IfChanged => is_as_wanted(&there, entry),
            Overwrite::IfNewer => there.modified >= entry.metadata.modified,
        };
        if keep {
            return Ok(Fate::Keep { as_wanted: is_as_wanted(&there, entry) });
        }
        if there.kind == NodeKind::Directory && self.task.options.delete && self.task.options.filter.takes_everything()
        {
            // Nothing it holds is in the snapshot, or the entry could not be no directory.
            self.remove_directory(path);
            return Ok(Fate::Make(Draft::InPlace));
        }
        self.next_draft += 1;
        Ok(Fate::Make(Draft::Beside(self.next_draft)))
    }

    fn remove_directory(&mut self, path: &EntryPath) {
        let (mut deleted, task) = (0, self.task);
        let mut removed = |path: &EntryPath| {
            deleted += 1;
            if task.observer.wants_entries() {
                task.observer.entry(path, EntryAction::Deleted, 0);
            }
        };
        for problem in self.placing.target.remove_tree(path, &mut removed) {
            self.placing.report(&problem);
        }
        self.summary.deleted += deleted;
    }

    fn keep(&mut self, path: &EntryPath, entry: &Entry, as_wanted: bool) {
        if let Content::File { size, .. } = entry.content {
            self.summary.files_kept += 1;
            self.task.observer.advance(1, size);
        }
        self.tell(&entry.path, EntryAction::Kept, 0);
        // Another file that has the name must not get the snapshot's other names too.
        if as_wanted {
            self.remember_link(path, entry);
        }
    }

    fn make(&mut self, path: EntryPath, entry: Entry, draft: Draft) -> Result<(), EngineError> {
        let in_the_way = if draft == Draft::InPlace { InTheWay::Keep } else { InTheWay::Replace };
        if self.link(&path, &entry, in_the_way) {
            return Ok(());
        }
        let target = self.placing.target;
        let made = match &entry.content {
            Content::File { size, recipe } => {
                self.remember_link(&path, &entry);
                return self.file(FilePlan::new(self.chunks, (path, entry.metadata, draft), (*size, recipe)));
            }
            Content::Directory => Ok(()),
            Content::Symlink { target: to } => target.make_symlink(&path, to, in_the_way),
            Content::Fifo => target.make_fifo(&path, in_the_way),
            Content::CharDevice { major, minor } => target.make_char_device(&path, (*major, *minor), in_the_way),
            Content::BlockDevice { major, minor } => target.make_block_device(&path, (*major, *minor), in_the_way),
        };
        match made {
            Err(problem) => self.placing.report(&problem),
            Ok(()) => {
                for problem in target.apply_metadata(Some(&path), &entry.metadata) {
                    self.placing.report(&problem);
                }
                self.remember_link(&path, &entry);
                self.tell(&entry.path, EntryAction::Restored, 0);
            }
        }
        Ok(())
    }

    /// Plans a file, over as many batches as it takes.
    fn file(&mut self, mut plan: FilePlan<'_, '_>) -> Result<(), EngineError> {
        let placing = self.placing;
        while !plan.fill(&mut self.batch, &mut |problem| placing.report(&problem)) {
            if self.task.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            self.hand_on()?;
        }
        Ok(())
    }

    /// Whether this is a further name of what was taken under another; then it is linked once the batch is in place.
    fn link(&mut self, path: &EntryPath, entry: &Entry, in_the_way: InTheWay) -> bool {
        let inode = (entry.metadata.device, entry.metadata.inode);
        let Some(linked) = self.linked.get_mut(&inode).filter(|linked| linked.is_same_as(entry)) else {
            return false;
        };
        self.links.push((linked.first.clone(), path.clone(), in_the_way));
        linked.names -= 1;
        if linked.names == 0 {
            self.linked.remove(&inode);
        }
        if let Content::File { size, .. } = entry.content {
            self.summary.files_restored += 1;
            self.task.observer.advance(1, size);
        }
        self.tell(&entry.path, EntryAction::Restored, 0);
        true
    }

    fn remember_link(&mut self, path: &EntryPath, entry: &Entry) {
        let metadata = &entry.metadata;
        if metadata.links > 1 {
            let inode = (metadata.device, metadata.inode);
            self.linked.entry(inode).or_insert_with(|| Linked {
                first: path.clone(),
                names: metadata.links - 1,
                kind: std::mem::discriminant(&entry.content),
                size: size_of(&entry.content),
                modified: metadata.modified,
            });
        }
    }

    fn tell(&self, path: &EntryPath, action: EntryAction, bytes: u64) {
        if self.task.observer.wants_entries() {
            self.task.observer.entry(path, action, bytes);
        }
    }
}

impl Linked {
    fn is_same_as(&self, entry: &Entry) -> bool {
        self.kind == std::mem::discriminant(&entry.content)
            && self.size == size_of(&entry.content)
            && self.modified == entry.metadata.modified
    }
}

fn size_of(content: &Content) -> u64 {
    if let Content::File { size, .. } = content { *size } else { 0 }
}

/// Whether what stands there has the kind, size and modification time of the entry.
fn is_as_wanted(there: &Status, entry: &Entry) -> bool {
    let same_time = there.modified == entry.metadata.modified;
    match &entry.content {
        Content::File { size, .. } => there.kind == NodeKind::File && there.size == *size && same_time,
        Content::Symlink { target } => {
            there.kind == NodeKind::Symlink && there.size == target.len() as u64 && same_time
        }
        _ => false,
    }
}

impl Task<'_> {
    /// Counts what a restore would do, looking at the target but writing nothing.
    pub(super) fn dry_run(&self, chunks: &ChunkSource<'_>) -> Result<RestoreSummary, EngineError> {
        let target = crate::fs::TargetDir::open(&self.options.target, self.options.ownership).ok();
        let mut summary = RestoreSummary::default();
        for entry in self.entries(chunks) {
            let entry = entry?;
            let selection = self.options.filter.select(&entry.path, entry.is_directory());
            let path = self.part.target_path(&entry.path);
            let (Selection::Selected, Some(path)) = (selection, path) else {
                continue;
            };
            summary.entries += 1;
            let there = target.as_ref().and_then(|target| target.state(&path).ok().flatten());
            let keep = there.is_some_and(|there| match self.options.overwrite {
                Overwrite::Always => false,
                Overwrite::Never => true,
                Overwrite::IfChanged => is_as_wanted(&there, &entry),
                Overwrite::IfNewer => there.modified >= entry.metadata.modified,
            });
            let mut bytes = 0;
            if let Content::File { size, .. } = entry.content {
                bytes = size;
                summary.bytes_total += size;
                if keep {
                    summary.files_kept += 1;
                } else {
                    summary.files_restored += 1;
                    summary.bytes_restored += size;
                }
            }
            if self.observer.wants_entries() {
                let action = if keep { EntryAction::Kept } else { EntryAction::Restored };
                self.observer.entry(&entry.path, action, bytes);
            }
        }
        if self.options.delete
            && let Some(target) = &target
        {
            summary.deleted = super::finish::count_extra(self, target, chunks)?;
        }
        Ok(summary)
    }
}

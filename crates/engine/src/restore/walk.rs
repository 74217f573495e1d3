//! The walk: directories, links and special files are made as they come by, regular files gathered into batches.
//!
//! Work left to do when a batch is in place (further names of its files, directories that the walk has left) waits
//! beside it.

use super::action::Action;
use super::batch::{Batch, FilePlan, FileTask};
use super::fetch::{Fetching, Running};
use super::frames::{Frame, Frames};
use super::options::RestoreSummary;
use super::place::Placing;
use super::run::{RestoreRun, manifest_of};
use crate::EngineError;
use crate::chunks::ChunkSource;
use crate::decode::Worker;
use crate::fs::{ConflictPolicy, DirectoryOutcome, Draft, EntrySelection, Problem, ProblemKind, Selector, Subject};
use crate::linked::Linked;
use crate::observer::{EntryAction, Notice};
use crate::parallel::Pool;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A name that a file has, another that it is to have, and what becomes of what stands there.
type Link = (EntryPath, EntryPath, ConflictPolicy);

/// Work to be done once a batch is in place.
#[derive(Default)]
struct After {
    links: Vec<Link>,
    /// Directories that the walk has left.
    left: Vec<Frame>,
    /// About the memory they take.
    left_bytes: u64,
}

impl After {
    fn is_empty(&self) -> bool {
        self.links.is_empty() && self.left.is_empty()
    }
}

/// The walk's state.
struct Walk<'w, 'a> {
    run: &'w RestoreRun<'w>,
    placing: &'w Placing<'w>,
    fetching: &'w Fetching<'w>,
    pool: Pool<'w, Worker>,
    chunks: &'w Arc<ChunkSource<'a>>,
    summary: &'w mut RestoreSummary,
    frames: Frames<'w>,
    selector: Selector<'w>,
    next_draft: u64,
    batch: Batch,
    batch_bytes: u64,
    /// Files with several names that were taken under their first.
    linked: Linked,
    /// Work that waits for the batch.
    after: After,
    /// The batch before, being placed, and what waits for it.
    running: Option<(Running<'w>, After)>,
    /// First names of files with several that could not be put in place: something else may stand there.
    missing: HashSet<EntryPath>,
}

/// Walks the part of the snapshot and places all of it; `made` says whether the target is new.
pub(super) fn place_all<'a>(
    run: &RestoreRun<'_>,
    fetching: &Fetching<'a>,
    chunks: &Arc<ChunkSource<'a>>,
    made: DirectoryOutcome,
    summary: &mut RestoreSummary,
) -> Result<(), EngineError> {
    std::thread::scope(|scope| {
        let (placing, workers) = (fetching.placing, fetching.workers);
        let batch_bytes = run.resources.restore_shares().batch_bytes;
        let mut walk = Walk {
            run,
            placing,
            fetching,
            pool: Pool::start(scope, "place", workers, 2 * workers, || Ok(Worker::default()))?,
            chunks,
            summary,
            frames: Frames::new(run, made),
            selector: run.selector(),
            next_draft: 0,
            batch: Batch::new(batch_bytes),
            batch_bytes,
            linked: Linked::default(),
            after: After::default(),
            running: None,
            missing: HashSet::new(),
        };
        for entry in run.entries(chunks) {
            if run.resources.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            match entry {
                Ok(entry) => walk.entry(entry)?,
                Err(error) => {
                    placing.report(&Problem::object("the catalog", ProblemKind::Damaged, error));
                    walk.frames.mark_incomplete();
                }
            }
            if walk.batch.is_full() || walk.after.left_bytes >= batch_bytes {
                walk.hand_on(0)?;
            }
        }
        walk.leave(None);
        // No other batch is gathered beside the last.
        walk.hand_on(batch_bytes)?;
        walk.finish()?;
        let problems = placing.counts.problems.load(Ordering::Relaxed);
        run.report_unmatched(&walk.selector, walk.summary.entries, problems)
    })
}

/// A container has vanished: if the series has moved on, its newest manifest says where the chunks are now.
fn reload<'a>(run: &RestoreRun<'a>) -> Option<Arc<ChunkSource<'a>>> {
    let manifest = manifest_of(run.repository, run.snapshot).ok()?;
    run.resources.observer.notice(&Notice::Replanned);
    Some(Arc::new(ChunkSource::new(run.repository, &manifest)))
}

impl Walk<'_, '_> {
    /// Hands the batch to the workers once the one before is in place, and with it memory that nothing else takes.
    fn hand_on(&mut self, spare_bytes: u64) -> Result<(), EngineError> {
        self.finish()?;
        let batch = std::mem::replace(&mut self.batch, Batch::new(self.batch_bytes));
        let after = std::mem::take(&mut self.after);
        if !batch.is_empty() || !after.is_empty() {
            self.running = Some((self.fetching.start(&self.pool, self.chunks, batch, spare_bytes), after));
        }
        Ok(())
    }

    /// Waits for the batch being placed, then makes further names, verifies, and finishes the directories left by then.
    fn finish(&mut self) -> Result<(), EngineError> {
        let Some((running, after)) = self.running.take() else { return Ok(()) };
        let (run, placing) = (self.run, self.placing);
        let batch = self.fetching.finish(running, &self.pool, &mut || reload(run))?;
        let is_missing = |file: &&Arc<FileTask>| file.metadata.links > 1 && file.is_faulty();
        self.missing.extend(batch.files.iter().filter(is_missing).map(|file| file.path.clone()));
        for (existing, path, on_conflict) in after.links {
            if self.missing.contains(&existing) {
                let existing = Subject::Entry(placing.origin.path(&existing));
                let reason = format!("it is another name of {existing}, which failed");
                placing.report(&Problem::entry(&path, ProblemKind::NotWritten, reason));
            } else if let Err(problem) = placing.target.make_hard_link(&existing, &path, on_conflict) {
                placing.report(&problem);
            }
        }
        if placing.verify {
            placing.verify_batch(&batch, self.chunks);
        }
        for frame in &after.left {
            run.finish(placing, frame, self.summary);
        }
        Ok(())
    }

    /// Leaves the directories that do not hold this entry.
    fn leave(&mut self, next: Option<&EntryPath>) {
        while let Some(left) = self.frames.leave(next) {
            if left.used || left.selected {
                self.after.left_bytes += left.bytes();
                self.after.left.push(left);
            }
        }
    }

    fn entry(&mut self, entry: Entry) -> Result<(), EngineError> {
        self.leave(Some(&entry.path));
        self.frames.note(&entry);
        let selection = self.selector.select(&entry.path, entry.is_directory());
        if selection == EntrySelection::Excluded {
            return Ok(());
        }
        let path = self.run.part.target_path(&entry.path);
        if entry.is_directory() {
            self.frames.enter(&entry, selection);
            if selection == EntrySelection::Selected && path.is_some() {
                self.summary.entries += 1;
                self.make_directories();
            }
            return Ok(());
        }
        let Some(path) = path else { return Ok(()) };
        self.summary.entries += 1;
        if let Content::File { size, .. } = &entry.content {
            self.summary.bytes_total += size;
        }
        self.frames.use_last();
        self.make_directories();
        match self.action(&path, &entry) {
            Ok(Action::New) => return self.make(path, entry, ConflictPolicy::Keep),
            Ok(Action::Replace { directory, only_looked_right }) => {
                if let Some(problem) = only_looked_right {
                    self.run
                        .resources
                        .observer
                        .notice(&Notice::OnlyLookedRight { path: path.clone(), reason: problem.reason });
                }
                return if directory && self.run.empties_directories() {
                    self.remove_directory(&path);
                    self.make(path, entry, ConflictPolicy::Keep)
                } else {
                    self.make(path, entry, ConflictPolicy::Replace)
                };
            }
            Ok(Action::Keep { as_wanted, verified, differs }) => {
                self.summary.files_verified += u64::from(verified && matches!(entry.content, Content::File { .. }));
                if let Some(problem) = differs {
                    self.placing.report(&problem);
                }
                self.keep(&path, &entry, as_wanted);
            }
            Err(problem) => self.placing.report(&problem),
        }
        Ok(())
    }

    /// Makes the directories above that do not exist yet.
    fn make_directories(&mut self) {
        let (run, placing) = (self.run, self.placing);
        for frame in self.frames.iter_mut().filter(|frame| frame.made.is_none()) {
            let Some(path) = &frame.target else { continue };
            let on_conflict = run.directory_conflict(placing.target, path, frame.metadata.as_ref());
            frame.made = Some(placing.target.make_directory(path, on_conflict).unwrap_or_else(|problem| {
                placing.report(&problem);
                DirectoryOutcome::Blocked
            }));
        }
    }

    /// Chooses the action for an entry. In a directory made just now nothing stands in its way.
    fn action(&self, path: &EntryPath, entry: &Entry) -> Result<Action, Problem> {
        if self.frames.last().is_some_and(|frame| frame.made == Some(DirectoryOutcome::New)) {
            return Ok(Action::New);
        }
        Action::of(self.run, self.placing.target, self.chunks, path, entry)
    }

    /// Removes a directory that stands where something else is to be. Nothing it holds is in the snapshot.
    fn remove_directory(&mut self, path: &EntryPath) {
        let mut removed = |path: &EntryPath| self.run.tell_deleted(path, self.summary);
        for problem in self.placing.target.remove_tree(path, &mut removed) {
            self.placing.report(&problem);
        }
    }

    fn keep(&mut self, path: &EntryPath, entry: &Entry, as_wanted: bool) {
        if let Content::File { size, .. } = entry.content {
            self.summary.files_kept += 1;
            self.run.resources.observer.advance(1, size);
        }
        self.tell(path, EntryAction::Kept, 0);
        // Another file that has the name must not get the snapshot's other names too.
        if as_wanted {
            self.linked.remember(path, entry);
        }
    }

    fn make(&mut self, path: EntryPath, entry: Entry, on_conflict: ConflictPolicy) -> Result<(), EngineError> {
        if self.link(&path, &entry, on_conflict) {
            return Ok(());
        }
        let target = self.placing.target;
        let made = match &entry.content {
            Content::File { size, recipe } => {
                self.linked.remember(&path, &entry);
                self.next_draft += 1;
                let draft = Draft { serial: self.next_draft, on_conflict };
                return self.file(FilePlan::new(self.chunks, (path, entry.metadata, draft), (*size, recipe)));
            }
            Content::Directory => Ok(()),
            Content::Symlink { target: to } => target.make_symlink(&path, to, on_conflict),
            Content::Fifo => target.make_fifo(&path, on_conflict),
            Content::CharDevice { major, minor } => target.make_char_device(&path, (*major, *minor), on_conflict),
            Content::BlockDevice { major, minor } => target.make_block_device(&path, (*major, *minor), on_conflict),
        };
        match made {
            Err(problem) => self.placing.report(&problem),
            Ok(()) => {
                for problem in target.apply_metadata(Some(&path), &entry.metadata) {
                    self.placing.report(&problem);
                }
                self.linked.remember(&path, &entry);
                self.tell(&path, EntryAction::Restored, 0);
            }
        }
        Ok(())
    }

    /// Plans a file, over as many batches as it takes.
    fn file(&mut self, mut plan: FilePlan<'_, '_>) -> Result<(), EngineError> {
        let placing = self.placing;
        while !plan.fill(&mut self.batch, &mut |file, error| placing.damaged(file, error)) {
            if self.run.resources.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            self.hand_on(0)?;
        }
        Ok(())
    }

    /// Tells whether this is a further name of a file that was taken under another; then it is linked once the batch is
    /// in place.
    fn link(&mut self, path: &EntryPath, entry: &Entry, on_conflict: ConflictPolicy) -> bool {
        let Some(first) = self.linked.first_name(entry) else { return false };
        self.after.links.push((first, path.clone(), on_conflict));
        if let Content::File { size, .. } = entry.content {
            self.summary.files_restored += 1;
            self.run.resources.observer.advance(1, size);
        }
        self.tell(path, EntryAction::Restored, 0);
        true
    }

    fn tell(&self, path: &EntryPath, action: EntryAction, bytes: u64) {
        if self.run.resources.observer.wants_entries() {
            self.run.resources.observer.entry(path, action, bytes);
        }
    }
}

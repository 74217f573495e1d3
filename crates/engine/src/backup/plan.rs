//! The first stage: take the source's entries, compare with the previous snapshot, and say for each entry whether it is
//! ready or must be read.
//!
//! The walk and the previous catalog come in the same order, so the comparison is a merge: no table of files is held,
//! whatever the size of the tree. Entries go on in batches; a batch in which something must be read becomes a job for
//! the readers, and its place in the order is kept by the channel that the job's results will come through.

use super::flow::{Disconnected, Item, Job, Patch, Step, ToRead, Unusable};
use super::fresh::distrust_fresh;
use super::links::{Inode, Links, Seen, inode_of};
use super::options::BackupOptions;
use super::outcome::Planned;
use super::previous::Chained;
use super::source::{EntrySource, SourceEntry, SourceItem, SourceKind, Unread};
use crate::chunks::ChunkSource;
use crate::fs::{Problem, ProblemKind, ScanItem, SkipReason};
use crate::lease::now;
use crate::observer::{EntryAction, Notice};
use crate::{EngineError, Observer};
use crossbeam_channel::{Sender, bounded};
use siltstone_store::catalog::{Content, Entry, EntryPath, Metadata};
use siltstone_store::recipe::{Piece, Recipe};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::iter::Peekable;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A batch is handed on at this many entries,
const BATCH_ENTRIES_MAX: usize = 256;
/// or this many bytes to read. A larger file is a batch of its own.
const BATCH_BYTES_MAX: u64 = 1 << 20;
/// Pieces of one file that may wait for their turn.
const PIECES_WAITING_MAX: usize = 6;

/// The entries of the previous snapshot, as far as they can be read.
struct Previous<'s, 'r> {
    source: &'s ChunkSource<'r>,
    entries: Peekable<Box<dyn Iterator<Item = Result<Entry, StoreError>> + 's>>,
    /// Set once the catalog turned out to be damaged; from there on all is new.
    damaged: &'s AtomicBool,
}

pub(super) struct Planner<'s, 'r> {
    options: &'s BackupOptions,
    observer: &'s dyn Observer,
    unusable: &'s Unusable,
    previous: Option<Previous<'s, 'r>>,
    /// Files with several names of which one is being read.
    links: Links,
    steps: Sender<Step>,
    jobs: Sender<Job>,
    batch: Vec<Item>,
    batch_bytes: u64,
    has_reads: bool,
    /// True if no file is unchanged by the word of its source alone.
    reads_all: bool,
}

/// Why planning ended before its end.
pub(super) enum Halt {
    Disconnected,
    Failed(EngineError),
}

impl<'s, 'r> Planner<'s, 'r> {
    pub(super) fn new(
        options: &'s BackupOptions,
        observer: &'s dyn Observer,
        source: &'s ChunkSource<'r>,
        roots: Vec<ChunkNumber>,
        unusable: &'s Unusable,
        steps: Sender<Step>,
        jobs: Sender<Job>,
    ) -> Self {
        let previous = (!roots.is_empty()).then(|| {
            let entries: Box<dyn Iterator<Item = _> + 's> = Box::new(Chained::new(source, roots));
            Previous { source, entries: entries.peekable(), damaged: &unusable.catalog_damaged }
        });
        let (links, batch) = (Links::default(), Vec::new());
        Self {
            options,
            observer,
            unusable,
            previous,
            links,
            steps,
            jobs,
            batch,
            batch_bytes: 0,
            has_reads: false,
            reads_all: false,
        }
    }

    /// Keeps files of which further names are expected here.
    pub(super) fn with_links(self, links: Links) -> Self {
        Self { links, ..self }
    }

    /// Trusts no source that says a file is unchanged.
    pub(super) fn reading_all(self) -> Self {
        Self { reads_all: true, ..self }
    }

    /// Takes all entries, until a later stage goes away or the user asks to stop.
    pub(super) fn run(mut self, source: &mut dyn EntrySource) -> Result<Planned, EngineError> {
        let mut planned = Planned::default();
        while let Some(item) = source.next_item()? {
            self.check_cancelled()?;
            match item {
                SourceItem::Entry(found) => {
                    if self.plan(found, None).is_err() {
                        return Ok(planned);
                    }
                }
                SourceItem::Aside(other) => self.tell(other, &mut planned),
            }
        }
        let _ = self.flush();
        Ok(planned)
    }

    /// Tells of a thing the walk met that is no entry.
    pub(super) fn tell(&self, item: ScanItem, planned: &mut Planned) {
        match item {
            ScanItem::Problem(problem) => {
                planned.problems += 1;
                planned.missing_sources += u64::from(problem.kind == ProblemKind::SourceMissing);
                self.observer.problem(&problem);
            }
            ScanItem::Skipped { path, why: SkipReason::OwnFolder } => {
                self.observer.notice(&Notice::OwnFolderLeftOut { path });
            }
            ScanItem::Skipped { path, why } => {
                self.observer.notice(&Notice::LeftOut { path, why: why.words() });
            }
            ScanItem::Entry(_) | ScanItem::Anew { .. } => {}
        }
    }

    /// Plans for an entry of the source. `changed`: if it is a file, only these ranges of it changed.
    pub(super) fn plan(&mut self, found: SourceEntry, changed: Option<&[Range<u64>]>) -> Result<(), Disconnected> {
        let previous = self.previous.as_mut().and_then(|previous| previous.at(&found.path, self.observer));
        let SourceEntry { path, metadata, kind } = found;
        let item = match kind {
            SourceKind::File { size, unread } => self.file((path, metadata), (size, unread), previous, changed),
            SourceKind::Other(content) => ready(path, metadata, content, previous),
        };
        self.add(item)?;
        while let Some(inode) = self.links.next_forgotten() {
            self.add(Item::Forget(inode))?;
        }
        Ok(())
    }

    fn file(
        &mut self,
        (path, mut metadata): (EntryPath, Metadata),
        (size, unread): (u64, Unread),
        previous: Option<Entry>,
        changed: Option<&[Range<u64>]>,
    ) -> Item {
        let (inode, seen) = (inode_of(&metadata), Seen::new(&metadata, size));
        let is_known = |previous: &&Entry| changed.is_none() && self.is_unchanged(previous, &metadata, size, &unread);
        let reused = previous.as_ref().filter(is_known).and_then(|previous| self.reusable(previous));
        let has_all = |previous: &Entry| has_xattrs(&mut metadata, &previous.metadata, &unread);
        if let Some((recipe, needs)) = reused
            && previous.as_ref().is_some_and(has_all)
        {
            if let Unread::Described(_) = unread {
                // A name that follows may be of this content, which is not being read.
                self.links.forget(inode);
            }
            let entry = Entry { path, metadata, content: Content::File { size, recipe } };
            return Item::Ready { entry, action: EntryAction::Unchanged, needs };
        }
        let action = if previous.is_some() { EntryAction::Changed } else { EntryAction::New };
        let is_remembered = metadata.links > 1;
        if is_remembered && self.is_link(inode, seen, &unread) {
            return Item::Link { path, metadata, action };
        }
        if is_remembered {
            self.links.remember(inode, seen, metadata.links);
        }
        let patch = previous.zip(changed).and_then(|(previous, changed)| self.patch(previous, changed));
        Item::Read(ToRead { path, metadata, size, unread, action, patch, is_remembered })
    }

    /// Tells whether the content is still what it was: by size, times and inode of a file on disk, else by the word of
    /// its source.
    fn is_unchanged(&self, previous: &Entry, metadata: &Metadata, size: u64, unread: &Unread) -> bool {
        let same_size = matches!(previous.content, Content::File { size: before, .. } if before == size);
        let before = &previous.metadata;
        let same_status = || {
            before.modified == metadata.modified
                && (self.options.ignore_ctime || before.changed == metadata.changed)
                && (self.options.ignore_inode || before.inode == metadata.inode)
        };
        !self.options.force
            && same_size
            && match unread {
                Unread::OnDisk(_) => same_status(),
                Unread::Described(described) => described.is_unchanged && !self.reads_all,
            }
    }

    /// Returns the facts known of a file of which only ranges changed.
    fn patch(&self, previous: Entry, changed: &[Range<u64>]) -> Option<Box<Patch>> {
        let is_whole = self.unusable.lost.is_empty() || self.reusable(&previous).is_some();
        match previous.content {
            Content::File { size, recipe } if is_whole && !self.options.force => {
                Some(Box::new(Patch { recipe, size, changed: changed.to_vec() }))
            }
            _ => None,
        }
    }

    /// The recipe of an unchanged file, unless some of what it needs is lost and must be stored again.
    pub(super) fn reusable(&self, previous: &Entry) -> Option<(Recipe, Vec<ChunkRun>)> {
        let Content::File { recipe, .. } = &previous.content else {
            return None;
        };
        let source = self.previous.as_ref()?.source;
        let needs = match recipe {
            Recipe::Inline(_) => Vec::new(),
            Recipe::Indirect(_) => {
                let mut runs = Vec::new();
                if recipe.visit_chunks(source, &mut |run| runs.push(run)).is_err() {
                    // Its parts are chunks of the catalog, and would be met again.
                    self.unusable.catalog_damaged.store(true, Ordering::Release);
                    return None;
                }
                runs
            }
        };
        let lost = &self.unusable.lost;
        let is_lost = |run: &ChunkRun| source.answered(*run).map_or(true, |range| lost.range_cardinality(range) > 0);
        let lost = needs.iter().any(is_lost) || inline_runs(recipe).any(|run| is_lost(&run));
        (!lost).then(|| (recipe.clone(), needs))
    }

    /// Tells whether another name of this file is being read already.
    fn is_link(&mut self, inode: Inode, seen: Seen, unread: &Unread) -> bool {
        match unread {
            Unread::OnDisk(_) => self.links.take(inode, Some(seen)),
            // It has compared what it needs to.
            Unread::Described(described) => described.is_link && self.links.take(inode, None),
        }
    }

    /// Keeps all files of which a name is read, however many there are.
    pub(super) fn keep_links(&mut self) {
        self.links.keep_all();
    }

    /// Tells whether a name of this file is being read.
    pub(super) fn is_being_read(&self, inode: Inode) -> bool {
        self.links.has(inode)
    }

    /// The inode that the previous catalog has at the path, if it comes next there.
    pub(super) fn previous_inode(&mut self, path: &EntryPath) -> Option<Inode> {
        match self.previous.as_mut()?.entries.peek()? {
            Ok(entry) if entry.path == *path => Some(inode_of(&entry.metadata)),
            _ => None,
        }
    }

    /// The next entry of the previous catalog, if it stands before this path; `None`: whatever it is.
    pub(super) fn previous_before(&mut self, path: Option<&EntryPath>) -> Result<Option<Entry>, EngineError> {
        let unusable = |error: StoreError| EngineError::PreviousUnusable { reason: error.to_string() };
        let Some(previous) = &mut self.previous else {
            return Ok(None);
        };
        let is_before = |next: &Result<Entry, StoreError>| match (next, path) {
            (Ok(entry), Some(path)) => entry.path < *path,
            _ => true,
        };
        previous.entries.next_if(is_before).transpose().map_err(unusable)
    }

    pub(super) fn notice(&self, notice: &Notice) {
        self.observer.notice(notice);
    }

    pub(super) fn check_cancelled(&self) -> Result<(), EngineError> {
        if self.observer.is_cancelled() { Err(EngineError::Interrupted) } else { Ok(()) }
    }

    pub(super) fn add(&mut self, item: Item) -> Result<(), Disconnected> {
        if let Item::Read(file) = &item {
            if self.batch_bytes > 0 && self.batch_bytes + file.size > BATCH_BYTES_MAX {
                self.flush()?;
            }
            self.batch_bytes += file.size.max(1);
            self.has_reads = true;
        }
        self.batch.push(item);
        if self.batch.len() >= BATCH_ENTRIES_MAX || self.batch_bytes >= BATCH_BYTES_MAX {
            self.flush()?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), Disconnected> {
        let items = std::mem::take(&mut self.batch);
        let has_reads = std::mem::take(&mut self.has_reads);
        self.batch_bytes = 0;
        if items.is_empty() {
            return Ok(());
        }
        if !has_reads {
            return self.steps.send(Step::Items(items)).map_err(|_| Disconnected);
        }
        let (pieces, receiver) = bounded(PIECES_WAITING_MAX);
        self.steps.send(Step::Pieces(receiver)).map_err(|_| Disconnected)?;
        self.jobs.send(Job { items, pieces }).map_err(|_| Disconnected)
    }
}

/// Completes the metadata of a file whose content is unchanged with its extended attributes: those of the previous
/// snapshot if the inode is unchanged as well. `false` if they cannot be read.
fn has_xattrs(metadata: &mut Metadata, before: &Metadata, unread: &Unread) -> bool {
    let Unread::OnDisk(handle) = unread else { return true };
    if !handle.xattrs_later() {
        return true;
    }
    if (before.changed, before.inode) == (metadata.changed, metadata.inode) {
        metadata.xattrs.clone_from(&before.xattrs);
        return true;
    }
    distrust_fresh(metadata, now());
    let read = handle.open_as_seen().and_then(|file| file.xattrs());
    read.map(|xattrs| metadata.xattrs = xattrs).is_ok()
}

/// An entry that needs no reading.
pub(super) fn ready(path: EntryPath, metadata: Metadata, content: Content, previous: Option<Entry>) -> Item {
    let action = match previous {
        None => EntryAction::New,
        Some(previous) if previous.metadata == metadata && previous.content == content => EntryAction::Unchanged,
        Some(_) => EntryAction::Changed,
    };
    Item::Ready { entry: Entry { path, metadata, content }, action, needs: Vec::new() }
}

/// The runs that stand in a short recipe.
pub(super) fn inline_runs(recipe: &Recipe) -> impl Iterator<Item = ChunkRun> + '_ {
    let pieces = match recipe {
        Recipe::Inline(pieces) => pieces.as_slice(),
        Recipe::Indirect(_) => &[],
    };
    pieces.iter().filter_map(|piece| match piece {
        Piece::Run(run) => Some(*run),
        Piece::Hole(_) => None,
    })
}

impl Previous<'_, '_> {
    /// The entry at `path`; what comes before it in the previous catalog is passed over.
    fn at(&mut self, path: &EntryPath, observer: &dyn Observer) -> Option<Entry> {
        if self.damaged.load(Ordering::Relaxed) {
            return None;
        }
        loop {
            match self.entries.peek()? {
                Err(error) => {
                    let reason = format!("{error}; files from here on are read again");
                    observer.problem(&Problem::object("the previous catalog", ProblemKind::Damaged, reason));
                    self.damaged.store(true, Ordering::Release);
                    return None;
                }
                Ok(entry) if entry.path > *path => return None,
                Ok(entry) if entry.path == *path => return self.entries.next()?.ok(),
                Ok(_) => drop(self.entries.next()),
            }
        }
    }
}

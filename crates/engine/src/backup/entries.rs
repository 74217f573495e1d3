//! Turning what the readers bring into entries of the catalog, in order: chunks into recipes, files into entries,
//! counts kept.

use super::assemble::ChunkStore;
use super::flow::{FileEnd, Item, Part};
use super::links::{Inode, inode_of};
use super::outcome::Tally;
use super::plan::inline_runs;
use crate::fs::{Problem, ProblemKind};
use crate::half_read::half_read_name;
use crate::observer::EntryAction;
use crate::{EngineError, Observer};
use siltstone_store::catalog::{CatalogWriter, Content, Entry, EntryPath, Metadata};
use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
use siltstone_store::recipe::RecipeWriter;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;

/// Makes entries of the catalog.
pub(super) struct Entries<'s, 'a, 'env> {
    catalog: CatalogWriter<&'s mut ChunkStore<'a, 'env>>,
    observer: &'s dyn Observer,
    is_heard: bool,
    tells_paths: bool,
    /// The recipe of the file whose chunks are coming in.
    recipe: RecipeWriter,
    /// The large file whose chunks are coming in, and the bytes of it so far.
    coming: Option<(EntryPath, u64)>,
    /// Files of which further names may follow, as they were read. The planner says when none will.
    linked: HashMap<Inode, Box<(Content, Metadata)>>,
    tally: Tally,
}

impl<'s, 'a, 'env> Entries<'s, 'a, 'env> {
    pub(super) fn new(store: &'s mut ChunkStore<'a, 'env>, observer: &'s dyn Observer) -> Self {
        Self {
            catalog: CatalogWriter::new(store),
            observer,
            is_heard: observer.wants_entries(),
            tells_paths: observer.wants_paths(),
            recipe: RecipeWriter::new(),
            coming: None,
            linked: HashMap::new(),
            tally: Tally::default(),
        }
    }

    /// An item that needs no reading.
    pub(super) fn item(&mut self, item: Item) -> Result<(), EngineError> {
        match item {
            Item::Ready { entry, action, needs } => {
                let is_kept = self.push(&entry, action)?;
                if let Content::File { recipe, size } = &entry.content {
                    if is_kept {
                        let store = self.catalog.sink_mut();
                        inline_runs(recipe).chain(needs).for_each(|run| store.keep_range(run.range()));
                    }
                    self.observer.advance(1, *size);
                }
                Ok(())
            }
            Item::Link { path, metadata, action } => self.link(path, &metadata, action),
            Item::Forget(inode) => {
                self.linked.remove(&inode);
                Ok(())
            }
            Item::Read(_) => unreachable!("files to be read come as pieces"),
        }
    }

    /// The parts of a piece, in order.
    pub(super) fn piece(&mut self, parts: Vec<Part>, bytes: &[u8]) -> Result<(), EngineError> {
        for part in parts {
            match part {
                Part::Item(item) => self.item(item)?,
                Part::Begin(path) => {
                    self.at(&path);
                    self.coming = Some((path, 0));
                }
                Part::Chunk { start, length, fingerprint } => {
                    let store = self.catalog.sink_mut();
                    let before = store.new_bytes();
                    let number = store.data_chunk(fingerprint, &bytes[start..start + length])?;
                    if store.new_bytes() == before {
                        self.observer.duplicate(length as u64);
                    }
                    self.recipe.push_chunk(number, length as u64, &mut *store)?;
                    self.came(length as u64);
                }
                Part::Kept { run, bytes } => {
                    let store = self.catalog.sink_mut();
                    store.known_run(run);
                    self.recipe.push_run(run, bytes, &mut *store)?;
                    self.observer.duplicate(bytes);
                    self.came(bytes);
                }
                Part::Hole(bytes) => {
                    self.recipe.push_hole(bytes, self.catalog.sink_mut())?;
                    self.came(bytes);
                }
                Part::End(end) => self.end(*end)?,
            }
        }
        Ok(())
    }

    /// So much of the current file is in.
    fn came(&mut self, bytes: u64) {
        if let Some((_, so_far)) = &mut self.coming {
            *so_far += bytes;
        }
        self.observer.advance(0, bytes);
    }

    fn at(&self, path: &EntryPath) {
        if self.tells_paths {
            self.observer.at(path);
        }
    }

    fn end(&mut self, end: FileEnd) -> Result<(), EngineError> {
        if self.coming.take().is_none() {
            self.at(&end.path);
        }
        let recipe = std::mem::take(&mut self.recipe).finish(self.catalog.sink_mut())?;
        self.tally.statistics.read_bytes += end.read_bytes;
        self.observer.advance(1, 0);
        if let Some(problem) = &end.problem {
            self.problem(problem);
        }
        if end.is_remembered {
            // Of another file that had the number of its inode before.
            self.linked.remove(&inode_of(&end.metadata));
        }
        if !end.is_complete {
            self.catalog.sink_mut().drop_entry();
            return Ok(());
        }
        let content = Content::File { size: end.size, recipe };
        let entry = Entry { path: end.path, metadata: end.metadata, content };
        let is_kept = self.push(&entry, end.action)?;
        let Entry { metadata, content, .. } = entry;
        if is_kept && end.is_remembered {
            // A copy takes no more memory than it needs.
            self.linked.insert(inode_of(&metadata), Box::new((content.clone(), metadata)));
        }
        Ok(())
    }

    /// Another name of a file that was read before it. It gets the metadata that was read with the content, not what
    /// the walk found later: newer times beside older content would pass for unchanged ever after.
    fn link(&mut self, path: EntryPath, metadata: &Metadata, action: EntryAction) -> Result<(), EngineError> {
        self.observer.advance(1, 0);
        let Some((content, metadata)) = self.linked.get(&inode_of(metadata)).map(|linked| (**linked).clone()) else {
            self.problem(&Problem::entry(
                &path,
                ProblemKind::Unreadable,
                "its content could not be read by another name",
            ));
            return Ok(());
        };
        self.push(&Entry { path, metadata, content }, action).map(drop)
    }

    /// Puts an entry into the catalog; `false` if it is one that the catalog cannot hold, which is told.
    fn push(&mut self, entry: &Entry, action: EntryAction) -> Result<bool, EngineError> {
        match self.catalog.push(entry) {
            Ok(()) => self.catalog.sink_mut().keep_entry(),
            Err(error @ (StoreError::Limit { .. } | StoreError::Refused { .. })) => {
                self.catalog.sink_mut().drop_entry();
                self.problem(&Problem::entry(&entry.path, ProblemKind::Unreadable, error));
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        self.count(entry, action);
        if self.is_heard {
            let bytes = if let Content::File { size, .. } = entry.content { size } else { 0 };
            self.observer.entry(&entry.path, action, bytes);
        }
        Ok(true)
    }

    fn count(&mut self, entry: &Entry, action: EntryAction) {
        let statistics = &mut self.tally.statistics;
        match &entry.content {
            Content::Directory => statistics.directories += 1,
            Content::File { size, .. } => {
                statistics.files += 1;
                statistics.logical_bytes += size;
                match action {
                    EntryAction::New => statistics.files_new += 1,
                    EntryAction::Unchanged => statistics.files_unchanged += 1,
                    _ => statistics.files_changed += 1,
                }
            }
            _ => statistics.others += 1,
        }
    }

    fn problem(&mut self, problem: &Problem) {
        self.tally.statistics.problems += 1;
        self.observer.problem(problem);
    }

    /// Bytes of new chunks so far.
    pub(super) fn new_bytes(&mut self) -> u64 {
        self.catalog.sink_mut().new_bytes()
    }

    /// Hands on a checkpoint: a catalog of the entries so far, the snapshot that `make` makes of it, and all chunks up
    /// to here.
    pub(super) fn checkpoint(
        &mut self,
        is_last: bool,
        make: impl FnOnce(ChunkNumber, SnapshotStatistics, &mut ChunkStore<'a, 'env>) -> Result<Snapshot, EngineError>,
    ) -> Result<(), EngineError> {
        if !self.catalog.sink_mut().takes_checkpoints() {
            return Ok(());
        }
        let kept = self.catalog.sink_mut().begin_checkpoint()?;
        let part = self.half_read()?;
        let root = self.catalog.root_so_far(part.as_ref())?;
        let (tally, store) = (self.tally, self.catalog.sink_mut());
        let snapshot = make(root, tally.statistics, store)?;
        store.end_checkpoint(kept, snapshot, tally, is_last)
    }

    /// The large file that is coming in, as far as it came, under a name of its own.
    fn half_read(&mut self) -> Result<Option<Entry>, EngineError> {
        let Some((path, size)) = self.coming.clone().filter(|(_, bytes)| *bytes > 0) else {
            return Ok(None);
        };
        let Ok(path) = half_read_name(&path) else { return Ok(None) };
        let recipe = self.recipe.clone().finish(self.catalog.sink_mut())?;
        let metadata = Metadata { mode: 0o600, links: 1, ..Metadata::default() };
        Ok(Some(Entry { path, metadata, content: Content::File { size, recipe } }))
    }

    /// Ends the catalog; gives its root.
    pub(super) fn finish(self) -> Result<(Tally, ChunkNumber), EngineError> {
        Ok((self.tally, self.catalog.finish()?))
    }
}

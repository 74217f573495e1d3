//! Turning what the readers bring into entries of the catalog, in order: chunks into recipes, files into entries, counts kept.

use super::assemble::ChunkStore;
use super::plan::{Item, inline_runs};
use super::read::{FileEnd, Part};
use crate::fs::{Problem, ProblemKind};
use crate::observer::EntryAction;
use crate::{EngineError, Observer};
use siltstone_store::catalog::{CatalogWriter, Content, Entry, EntryPath, Metadata};
use siltstone_store::manifest::SnapshotStatistics;
use siltstone_store::recipe::RecipeWriter;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;

/// What the entries add up to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    /// Counts of entries and bytes; the rest is filled in elsewhere.
    pub(super) statistics: SnapshotStatistics,
}

pub(super) struct Entries<'s, 'a, 'env> {
    catalog: CatalogWriter<&'s mut ChunkStore<'a, 'env>>,
    observer: &'s dyn Observer,
    is_heard: bool,
    /// The recipe of the file whose chunks are coming in.
    recipe: RecipeWriter,
    /// Files with several names, by device and inode, as they were read, and how many names are still to come.
    linked: HashMap<(u64, u64), (Content, Metadata, u64)>,
    tally: Tally,
}

impl<'s, 'a, 'env> Entries<'s, 'a, 'env> {
    pub(super) fn new(store: &'s mut ChunkStore<'a, 'env>, observer: &'s dyn Observer) -> Self {
        Self {
            catalog: CatalogWriter::new(store),
            observer,
            is_heard: observer.wants_entries(),
            recipe: RecipeWriter::new(),
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
            Item::Read(_) => unreachable!("files to be read come as pieces"),
        }
    }

    /// The parts of a piece, in order.
    pub(super) fn piece(&mut self, parts: Vec<Part>, bytes: &[u8]) -> Result<(), EngineError> {
        for part in parts {
            match part {
                Part::Item(item) => self.item(item)?,
                Part::Chunk { start, length, fingerprint } => {
                    let store = self.catalog.sink_mut();
                    let number = store.data_chunk(fingerprint, &bytes[start..start + length])?;
                    self.recipe.push_chunk(number, length as u64, &mut *store)?;
                    self.observer.advance(0, length as u64);
                }
                Part::Kept { run, bytes } => {
                    let store = self.catalog.sink_mut();
                    store.known_run(run);
                    self.recipe.push_run(run, bytes, &mut *store)?;
                    self.observer.advance(0, bytes);
                }
                Part::Hole(bytes) => {
                    self.recipe.push_hole(bytes, self.catalog.sink_mut())?;
                    self.observer.advance(0, bytes);
                }
                Part::End(end) => self.end(*end)?,
            }
        }
        Ok(())
    }

    fn end(&mut self, end: FileEnd) -> Result<(), EngineError> {
        let recipe = std::mem::take(&mut self.recipe).finish(self.catalog.sink_mut())?;
        self.tally.statistics.read_bytes += end.read_bytes;
        self.observer.advance(1, 0);
        if let Some(problem) = &end.problem {
            self.problem(problem);
        }
        if !end.is_complete {
            self.catalog.sink_mut().drop_entry();
            return Ok(());
        }
        let content = Content::File { size: end.size, recipe };
        let entry = Entry { path: end.path, metadata: end.metadata, content };
        let is_kept = self.push(&entry, end.action)?;
        let Entry { metadata, content, .. } = entry;
        if is_kept && metadata.links > 1 {
            let names = metadata.links - 1;
            self.linked.insert((metadata.device, metadata.inode), (content, metadata, names));
        }
        Ok(())
    }

    /// Another name of a file that was read before it. It gets the metadata that was read with the content, not what the walk found
    /// later: newer times beside older content would pass for unchanged ever after.
    fn link(&mut self, path: EntryPath, metadata: &Metadata, action: EntryAction) -> Result<(), EngineError> {
        let inode = (metadata.device, metadata.inode);
        self.observer.advance(1, 0);
        let Some((content, as_read, names)) = self.linked.get_mut(&inode) else {
            self.problem(&Problem::entry(
                &path,
                ProblemKind::Unreadable,
                "its content could not be read by another name",
            ));
            return Ok(());
        };
        let (content, metadata) = (content.clone(), as_read.clone());
        *names -= 1;
        if *names == 0 {
            self.linked.remove(&inode);
        }
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

    /// Ends the catalog; gives its root.
    pub(super) fn finish(self) -> Result<(Tally, ChunkNumber), EngineError> {
        Ok((self.tally, self.catalog.finish()?))
    }
}

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
    wants_entries: bool,
    /// The recipe of the file whose chunks are coming in.
    recipe: RecipeWriter,
    /// Content of files with several names, by device and inode, and how many names are still to come.
    linked: HashMap<(u64, u64), (Content, u64)>,
    tally: Tally,
}

impl<'s, 'a, 'env> Entries<'s, 'a, 'env> {
    pub(super) fn new(store: &'s mut ChunkStore<'a, 'env>, observer: &'s dyn Observer) -> Self {
        Self {
            catalog: CatalogWriter::new(store),
            observer,
            wants_entries: observer.wants_entries(),
            recipe: RecipeWriter::new(),
            linked: HashMap::new(),
            tally: Tally::default(),
        }
    }

    /// An item that needs no reading.
    pub(super) fn item(&mut self, item: Item) -> Result<(), EngineError> {
        match item {
            Item::Ready { entry, action, needs } => {
                if let Content::File { recipe, size } = &entry.content {
                    let store = self.catalog.sink_mut();
                    inline_runs(recipe).chain(needs).for_each(|run| store.keep_range(run.range()));
                    self.observer.advance(1, *size);
                }
                self.push(&entry, action)
            }
            Item::Link { path, metadata, action } => self.link(path, metadata, action),
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
            self.catalog.sink_mut().drop_file();
            return Ok(());
        }
        self.catalog.sink_mut().keep_file();
        let content = Content::File { size: end.size, recipe };
        if end.metadata.links > 1 {
            let names = end.metadata.links - 1;
            self.linked.insert((end.metadata.device, end.metadata.inode), (content.clone(), names));
        }
        self.push(&Entry { path: end.path, metadata: end.metadata, content }, end.action)
    }

    /// Another name of a file that was read before it.
    fn link(&mut self, path: EntryPath, metadata: Metadata, action: EntryAction) -> Result<(), EngineError> {
        let inode = (metadata.device, metadata.inode);
        self.observer.advance(1, 0);
        let Some((content, names)) = self.linked.get_mut(&inode) else {
            self.problem(&Problem::entry(
                &path,
                ProblemKind::Unreadable,
                "its content could not be read by another name",
            ));
            return Ok(());
        };
        let content = content.clone();
        *names -= 1;
        if *names == 0 {
            self.linked.remove(&inode);
        }
        self.push(&Entry { path, metadata, content }, action)
    }

    fn push(&mut self, entry: &Entry, action: EntryAction) -> Result<(), EngineError> {
        match self.catalog.push(entry) {
            Ok(()) => {}
            Err(error @ (StoreError::Limit { .. } | StoreError::Refused { .. })) => {
                self.problem(&Problem::entry(&entry.path, ProblemKind::Unreadable, error));
                return Ok(());
            }
            Err(error) => return Err(error.into()),
        }
        self.count(entry, action);
        if self.wants_entries {
            let bytes = if let Content::File { size, .. } = entry.content { size } else { 0 };
            self.observer.entry(&entry.path, action, bytes);
        }
        Ok(())
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

//! The entries of a snapshot as a backup takes them: beside those of the snapshot that was copied before it, in batches
//! whose content is fetched together.

use super::content::{Fetches, Outage, Portion, StoredFile};
use crate::EngineError;
use crate::backup::source::{Described, SourceEntry, SourceKind, Unread};
use crate::chunks::ChunkSource;
use crossbeam_channel::Sender;
use siltstone_store::catalog::{CatalogReader, Content, Entry, EntryPath, Metadata};
use siltstone_store::recipe::{Piece, Recipe};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::collections::HashMap;
use std::iter::Peekable;
use std::sync::Arc;

/// A batch is handed on at this many entries, however little their content is.
const BATCH_ENTRIES_MAX: usize = 1024;

/// Walks through a snapshot's catalog.
pub(super) struct Walk<'w, 'r> {
    pub(super) chunks: &'w ChunkSource<'r>,
    pub(super) root: ChunkNumber,
    /// The root of the catalog that unchanged files are unchanged since.
    pub(super) base: Option<ChunkNumber>,
    pub(super) fetches: Fetches,
    pub(super) outage: Outage,
}

/// The planner has gone away, or there is nothing more to give it.
struct Disconnected;

impl Walk<'_, '_> {
    /// Gives all entries; the error that `failed` makes of it where the catalog, or the source, cannot be read.
    pub(super) fn run(
        self,
        failed: impl Fn(EngineError) -> EngineError,
        out: &Sender<Result<SourceEntry, EngineError>>,
    ) {
        let fail = |error: StoreError| {
            let _ = out.send(Err(failed(error.into())));
            Err(Disconnected)
        };
        let mut base = Previous { entries: self.base.map(|root| self.entries(root).peekable()) };
        let mut links = Links::default();
        let mut batch = Batch { fetches: &self.fetches, entries: Vec::new(), runs: Vec::new(), bytes: 0 };
        for entry in self.entries(self.root) {
            let sent = match (entry, self.outage.failure()) {
                (Ok(entry), None) => {
                    let judged = Judged { is_unchanged: base.has(&entry), is_link: links.is_link(&entry) };
                    batch.add(entry, judged, out)
                }
                (_, Some(error)) => fail(StoreError::Shared(error)),
                (Err(error), None) => fail(error),
            };
            if sent.is_err() {
                return;
            }
        }
        let _ = batch.hand_on(out);
    }

    fn entries(&self, root: ChunkNumber) -> impl Iterator<Item = Result<Entry, StoreError>> + '_ {
        CatalogReader::new(self.chunks, root).entries()
    }
}

/// The entries of the snapshot before, as far as they can be read.
struct Previous<E: Iterator> {
    entries: Option<Peekable<E>>,
}

impl<E: Iterator<Item = Result<Entry, StoreError>>> Previous<E> {
    /// Tells whether it has a file of this path and content; what comes before it is passed over.
    fn has(&mut self, wanted: &Entry) -> bool {
        let found = self.at(&wanted.path);
        found.is_some_and(|found| matches!(found.content, Content::File { .. }) && found.content == wanted.content)
    }

    fn at(&mut self, path: &EntryPath) -> Option<Entry> {
        let entries = self.entries.as_mut()?;
        while entries.next_if(|next| next.as_ref().is_ok_and(|entry| entry.path < *path)).is_some() {}
        match entries.peek()? {
            Ok(entry) if entry.path == *path => entries.next()?.ok(),
            Ok(_) => None,
            Err(_) => {
                // From here on all is read.
                self.entries = None;
                None
            }
        }
    }
}

/// Files with several names, by device and inode: the entry that came last, and how many names are to come.
#[derive(Default)]
struct Links(HashMap<(u64, u64), (Recipe, Metadata, u64)>);

impl Links {
    /// Tells whether this is a further name of the file of this inode that came last. An inode's number may have been
    /// given anew while the source was backed up, so content and metadata are compared.
    fn is_link(&mut self, entry: &Entry) -> bool {
        let Content::File { recipe, .. } = &entry.content else { return false };
        let metadata = &entry.metadata;
        if metadata.links < 2 {
            return false;
        }
        let inode = (metadata.device, metadata.inode);
        let is_link = self.0.get_mut(&inode).is_some_and(|(content, before, names)| {
            *names -= 1;
            content == recipe && before == metadata
        });
        if !is_link {
            self.0.insert(inode, (recipe.clone(), metadata.clone(), metadata.links - 1));
        } else if self.0.get(&inode).is_some_and(|(.., names)| *names == 0) {
            self.0.remove(&inode);
        }
        is_link
    }
}

/// Facts of a file that only its source knows.
#[derive(Clone, Copy)]
struct Judged {
    is_unchanged: bool,
    is_link: bool,
}

/// Entries whose content is fetched together.
struct Batch<'f> {
    fetches: &'f Fetches,
    /// Entries, and of files that are to be read whether their content is in the portion.
    entries: Vec<(Entry, Judged, bool)>,
    runs: Vec<ChunkRun>,
    bytes: u64,
}

impl Batch<'_> {
    fn add(
        &mut self,
        entry: Entry,
        judged: Judged,
        out: &Sender<Result<SourceEntry, EngineError>>,
    ) -> Result<(), Disconnected> {
        let content = if judged.is_unchanged || judged.is_link { None } else { self.portion_of(&entry) };
        let size = content.as_ref().map_or(0, |(size, _)| *size);
        if self.entries.len() >= BATCH_ENTRIES_MAX || self.bytes.saturating_add(size) > self.fetches.ahead_bytes {
            self.hand_on(out)?;
        }
        let is_in_portion = content.is_some();
        if let Some((size, runs)) = content {
            self.bytes += size;
            self.runs.extend(runs);
        }
        self.entries.push((entry, judged, is_in_portion));
        Ok(())
    }

    /// The size and the chunks of a file that fits into a portion.
    fn portion_of(&self, entry: &Entry) -> Option<(u64, Vec<ChunkRun>)> {
        let Content::File { size, recipe: Recipe::Inline(pieces) } = &entry.content else { return None };
        let run = |piece: &Piece| if let Piece::Run(run) = piece { Some(*run) } else { None };
        (*size <= self.fetches.ahead_bytes).then(|| (*size, pieces.iter().filter_map(run).collect()))
    }

    fn hand_on(&mut self, out: &Sender<Result<SourceEntry, EngineError>>) -> Result<(), Disconnected> {
        self.bytes = 0;
        let portion = Arc::new(Portion::new(std::mem::take(&mut self.runs)));
        for (entry, judged, is_in_portion) in std::mem::take(&mut self.entries) {
            let Entry { path, metadata, content } = entry;
            let kind = match content {
                Content::File { size, recipe } => {
                    let portion = is_in_portion.then(|| portion.clone());
                    let content = Box::new(StoredFile { size, recipe, portion, fetches: self.fetches.clone() });
                    let Judged { is_unchanged, is_link } = judged;
                    SourceKind::File { size, unread: Unread::Described(Described { content, is_unchanged, is_link }) }
                }
                other => SourceKind::Other(other),
            };
            out.send(Ok(SourceEntry { path, metadata, kind })).map_err(|_| Disconnected)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(path: &str, first: u64, links: u64) -> Entry {
        let recipe = Recipe::Inline(vec![Piece::Run(ChunkRun { first: ChunkNumber(first), count: 1 })]);
        let metadata = Metadata { inode: 7, device: 1, links, ..Metadata::default() };
        let path = EntryPath::new(path.as_bytes()).expect("a path");
        Entry { path, metadata, content: Content::File { size: 1, recipe } }
    }

    #[test]
    fn a_further_name_has_the_content_of_the_one_that_came_last() {
        let mut links = Links::default();
        let told: Vec<bool> =
            [("a", 1), ("b", 1), ("c", 2), ("d", 1)].map(|(path, first)| links.is_link(&name(path, first, 4))).to_vec();
        assert_eq!(told, [false, true, false, false], "the number of the inode was given anew");
    }

    #[test]
    fn a_file_has_no_more_further_names_than_it_says() {
        let mut links = Links::default();
        let told: Vec<bool> = ["a", "b", "c"].map(|path| links.is_link(&name(path, 1, 2))).to_vec();
        assert_eq!(told, [false, true, false]);
        assert!(!links.is_link(&name("d", 1, 1)), "it has one name");
    }

    #[test]
    fn files_are_unchanged_by_path_and_recipe_until_the_catalog_before_cannot_be_read() {
        let damaged = || Err(StoreError::damaged(&"a node", "it", "is damaged"));
        let entries =
            vec![Ok(name("a", 1, 1)), Ok(name("b", 2, 1)), Ok(name("d", 3, 1)), damaged(), Ok(name("f", 4, 1))];
        let mut previous = Previous { entries: Some(entries.into_iter().peekable()) };
        let wanted = [("a", 1, true), ("b", 9, false), ("c", 2, false), ("d", 3, true), ("f", 4, false)];
        for (path, first, is_there) in wanted {
            assert_eq!(previous.has(&name(path, first, 1)), is_there, "{path}");
        }
    }
}

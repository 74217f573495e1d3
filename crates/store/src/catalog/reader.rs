//! Reads a catalog: all of it, a subtree, one directory, one path.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{
    Content, Entry, EntryPath, MetadataSource,
    walk::{Bound, Step, Walk},
};
use crate::{
    error::StoreError,
    ids::{ChunkNumber, ChunkRun},
};

use roaring::RoaringTreemap;

/// A snapshot's tree, read from where its metadata chunks are. `S` is cheap to clone: a reference or an `Arc`.
///
/// Iterators hold one node per level. They report a node that is missing or damaged as one error and go on behind it.
#[derive(Clone, Debug)]
pub struct CatalogReader<S> {
    source: S,
    root: ChunkNumber,
}

impl<S: MetadataSource + Clone> CatalogReader<S> {
    /// The catalog with this root. Nothing is loaded yet.
    pub fn new(source: S, root: ChunkNumber) -> Self {
        Self { source, root }
    }

    /// Returns the source of its chunks, for the recipes of its files.
    pub fn source(&self) -> &S {
        &self.source
    }

    /// All entries in order.
    pub fn entries(&self) -> Entries<S> {
        Entries { walk: Walk::new(self.source.clone(), self.root) }
    }

    /// The entry at this path and all beneath it. None, if there are none.
    pub fn under(&self, path: &EntryPath) -> Entries<S> {
        let mut entries = self.entries();
        entries.walk.stay_within(path.clone());
        entries
    }

    /// The entries in these nodes, as far as the nodes above are among them too. With the nodes that another catalog
    /// lacks: the entries that can differ from that catalog's, and some more.
    pub fn entries_in(&self, nodes: RoaringTreemap) -> Entries<S> {
        let mut entries = self.entries();
        entries.walk.stay_in(nodes);
        entries
    }

    /// Lists the entries of a directory, `None` being the root; not what lies deeper. Subtrees are passed over without
    /// being read.
    ///
    /// A directory that has no entry of its own is not listed, nor what is in it.
    pub fn children(&self, directory: Option<&EntryPath>) -> Children<S> {
        let entries = directory.map_or_else(|| self.entries(), |path| self.under(path));
        Children { entries, depth: directory.map_or(0, |path| path.components().count()) }
    }

    /// The entry at this path.
    ///
    /// # Errors
    /// A node on the way to it that cannot be read.
    pub fn find(&self, path: &EntryPath) -> Result<Option<Entry>, StoreError> {
        let first = self.under(path).next().transpose()?;
        Ok(first.filter(|entry| entry.path == *path))
    }

    /// Shows every chunk the snapshot needs: the nodes of its catalog, the parts of its recipes and the data of its
    /// files. Errors are shown in their place and the rest goes on. The same chunk may come up several times.
    pub fn visit_chunks(&self, visit: &mut impl FnMut(Result<ChunkRun, StoreError>)) {
        let mut walk = Walk::new(self.source.clone(), self.root);
        while let Some(step) = walk.step() {
            match step {
                Ok(Step::Node(first)) => visit(Ok(ChunkRun { first, count: 1 })),
                Ok(Step::Entry(Entry { content: Content::File { recipe, .. }, .. })) => {
                    if let Err(error) = recipe.visit_chunks(&self.source, &mut |run| visit(Ok(run))) {
                        visit(Err(error));
                    }
                }
                Ok(Step::Entry(_)) => {}
                Err(error) => visit(Err(error)),
            }
        }
    }
}

/// Entries in order.
#[derive(Debug)]
pub struct Entries<S> {
    walk: Walk<S>,
}

impl<S: MetadataSource> Entries<S> {
    /// Jumps ahead to this path, or to the first entry behind it; entries before it are passed over, whole nodes
    /// unread. Stays in place if it is there already.
    pub fn skip_to(&mut self, path: &EntryPath) {
        self.walk.seek(Bound::From(path.clone()));
    }

    /// Jumps behind everything that lies beneath this path.
    pub fn skip_beneath(&mut self, path: &EntryPath) {
        self.walk.seek(Bound::Behind(path.clone()));
    }
}

impl<S: MetadataSource> Iterator for Entries<S> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.walk.step()? {
                Ok(Step::Node(_)) => {}
                Ok(Step::Entry(entry)) => return Some(Ok(entry)),
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

/// The entries of one directory, in the order of their names.
#[derive(Debug)]
pub struct Children<S> {
    entries: Entries<S>,
    /// Components of the directory's path.
    depth: usize,
}

impl<S: MetadataSource> Children<S> {
    /// Jumps behind the entry at this path, and to what follows it in the directory.
    pub fn skip_past(&mut self, path: &EntryPath) {
        self.entries.skip_beneath(path);
    }
}

impl<S: MetadataSource> Iterator for Children<S> {
    type Item = Result<Entry, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match self.entries.next()? {
                Ok(entry) if entry.path.components().count() == self.depth + 1 => {
                    if entry.is_directory() {
                        self.entries.skip_beneath(&entry.path);
                    }
                    return Some(Ok(entry));
                }
                Ok(_) => {}
                Err(error) => return Some(Err(error)),
            }
        }
    }
}

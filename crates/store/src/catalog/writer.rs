//! Writes a catalog: a tree of nodes cut by content (a prolly tree: search tree whose nodes end where a hash of the key
//! says so).
//!
//! A leaf ends after an entry chosen by a hash of its path alone, one in 2^[`CUT_BITS`], once it has
//! [`NODE_BYTES_CUT_MIN`]; an inner node after a child chosen by its first path in the same way. So the same tree of
//! files gives the same nodes however it came to be, and an edit changes the leaf it lies in, at most a few after it,
//! and one node of each level above. Metadata does not move cuts, but for the sizes it adds.
//!
//! Cost: one pass, memory of one node per level.

use super::{
    Entry, EntryPath, MetadataSink, PATH_BYTES_MAX,
    fields::check_entry,
    node::{Child, InnerEncoder, LEVELS_MAX, LeafEncoder, NODE_BYTES_MAX},
    wire::mix,
};
use crate::{error::StoreError, ids::ChunkNumber};

/// A node is not cut by content before it has this many bytes.
pub(super) const NODE_BYTES_CUT_MIN: usize = 4 << 10;

/// A node is cut before what would make it larger, unless that is all it holds (or, in an inner node, only one child
/// stands before).
pub(super) const NODE_BYTES_CUT_MAX: usize = 64 << 10;

/// The most bytes of the paths in a node before front coding, as [`NODE_BYTES_CUT_MAX`] is of the node.
const NODE_PATHS_BYTES_CUT_MAX: usize = 4 << 20;

/// A node is cut after one path in 2^7, so that at 25 to 90 bytes an entry leaves come out at 7 to 15 KiB: large enough
/// that their own cost (fingerprint, index entry) stays below 1 %, small enough that a scattered edit costs little.
const CUT_BITS: u32 = 7;

/// Greatest size of one entry: what a node can hold, less its head.
pub const ENTRY_BYTES_MAX: usize = NODE_BYTES_MAX - 64;

// Two children that share nothing and a head must fit an inner node.
const _: () = assert!(NODE_BYTES_CUT_MAX + 2 * PATH_BYTES_MAX + 64 < NODE_BYTES_MAX);

/// Takes the entries of a snapshot in strictly ascending order of their paths and stores the nodes of its catalog.
#[derive(Debug)]
pub struct CatalogWriter<S> {
    sink: S,
    leaf: LeafEncoder,
    /// Inner nodes being written, level 1 first.
    inner: Vec<InnerEncoder>,
    last: Option<Last>,
}

/// The entry before.
#[derive(Clone, Debug)]
struct Last {
    path: EntryPath,
    is_directory: bool,
}

impl<S: MetadataSink> CatalogWriter<S> {
    /// Begins a catalog; its nodes go to `sink` as they are complete.
    pub fn new(sink: S) -> Self {
        Self { sink, leaf: LeafEncoder::default(), inner: Vec::new(), last: None }
    }

    /// The sink, for the recipes of the entries to come.
    pub fn sink_mut(&mut self) -> &mut S {
        &mut self.sink
    }

    /// Appends an entry.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if the path does not follow the one before, lies beneath an entry that is no directory,
    /// or something in the entry is out of its range; [`StoreError::Limit`] beyond [`ENTRY_BYTES_MAX`]. After each of
    /// these the writer is as if the entry had not been given. Whatever the sink says; then the catalog cannot be
    /// finished.
    pub fn push(&mut self, entry: &Entry) -> Result<(), StoreError> {
        self.check_place(entry)?;
        let bytes = check_entry(entry).map_err(|fault| refused(entry, fault))?;
        if bytes > ENTRY_BYTES_MAX {
            let (found, limit) = (bytes as u64, ENTRY_BYTES_MAX as u64);
            return Err(StoreError::limit(&entry.path, "size of the catalog entry in bytes", found, limit));
        }
        if !self.leaf.is_empty() && is_full(self.leaf.bytes() + bytes, self.leaf.paths_bytes()) {
            self.close_leaf()?;
        }
        self.leaf.push(entry);
        self.remember(entry);
        if self.leaf.bytes() >= NODE_BYTES_CUT_MIN && is_cut_at(0, &entry.path) { self.close_leaf() } else { Ok(()) }
    }

    /// Stores the catalog of the entries so far, with `more` behind them unless it is one that the catalog cannot hold,
    /// and returns its root. The writer goes on as if it had not been asked.
    ///
    /// # Errors
    /// Whatever the sink says.
    pub fn root_so_far(&mut self, more: Option<&Entry>) -> Result<ChunkNumber, StoreError> {
        let (leaf, inner, last) = (self.leaf.clone(), self.inner.clone(), self.last.clone());
        let mut copy = CatalogWriter { sink: &mut self.sink, leaf, inner, last };
        match more.map(|entry| copy.push(entry)) {
            None | Some(Ok(()) | Err(StoreError::Limit { .. } | StoreError::Refused { .. })) => copy.finish(),
            Some(Err(error)) => Err(error),
        }
    }

    /// Ends the catalog and returns the number of its root. Without any entry the root is an empty leaf.
    ///
    /// # Errors
    /// Whatever the sink says.
    pub fn finish(mut self) -> Result<ChunkNumber, StoreError> {
        if self.leaf.is_empty() && self.inner.is_empty() {
            return self.sink.store(&self.leaf.take().1);
        }
        if !self.leaf.is_empty() {
            self.close_leaf()?;
        }
        let mut index = 0;
        loop {
            let is_top = index + 1 == self.inner.len();
            match self.inner[index].only_child() {
                Some(child) if is_top => return Ok(child),
                _ if is_top => return Ok(self.store_inner(index)?.node),
                _ if self.inner[index].count() == 0 => {}
                _ => self.close_inner(index)?,
            }
            index += 1;
        }
    }

    /// Checks that the entry follows the last one and lies in a directory, as far as the catalog has its directory at
    /// all: an entry beneath another one can only be refused right after it, since nothing else stands between the two
    /// in the order.
    fn check_place(&self, entry: &Entry) -> Result<(), StoreError> {
        match &self.last {
            Some(last) if entry.path <= last.path => Err(refused(entry, "its path does not follow the one before")),
            Some(last) if !last.is_directory && entry.path.is_beneath(&last.path) => {
                Err(refused(entry, "it lies beneath an entry that is no directory"))
            }
            _ => Ok(()),
        }
    }

    fn remember(&mut self, entry: &Entry) {
        let is_directory = entry.is_directory();
        if let Some(last) = &mut self.last {
            last.path.clone_from(&entry.path);
            last.is_directory = is_directory;
        } else {
            let path = entry.path.clone();
            self.last = Some(Last { path, is_directory });
        }
    }

    fn close_leaf(&mut self) -> Result<(), StoreError> {
        let (first, bytes) = self.leaf.take();
        let node = self.sink.store(&bytes)?;
        self.add_child(0, &Child { first: first.expect("a leaf with entries has a first path"), node })
    }

    fn close_inner(&mut self, index: usize) -> Result<(), StoreError> {
        let child = self.store_inner(index)?;
        self.add_child(index + 1, &child)
    }

    fn store_inner(&mut self, index: usize) -> Result<Child, StoreError> {
        let (first, bytes) = self.inner[index].take(level(index)?);
        let node = self.sink.store(&bytes)?;
        Ok(Child { first: first.expect("an inner node has children"), node })
    }

    /// Lists a finished node in the level above it. A node is only cut when it has two children: so each level has at
    /// most half the nodes of the one below, whatever the paths.
    fn add_child(&mut self, index: usize, child: &Child) -> Result<(), StoreError> {
        if index == self.inner.len() {
            self.inner.push(InnerEncoder::default());
        }
        let node = &self.inner[index];
        if node.count() >= 2 && is_full(node.bytes() + child.bytes_bound(), node.paths_bytes()) {
            self.close_inner(index)?;
        }
        let node = &mut self.inner[index];
        node.push(child);
        let may_cut = node.count() >= 2 && node.bytes() >= NODE_BYTES_CUT_MIN;
        if may_cut && is_cut_at(level(index)?, &child.first) { self.close_inner(index) } else { Ok(()) }
    }
}

/// The level of the inner nodes at this place of the list: leaves are level 0.
fn level(index: usize) -> Result<u8, StoreError> {
    let level = u8::try_from(index + 1).ok().filter(|&level| level <= LEVELS_MAX);
    level.ok_or_else(|| StoreError::limit("catalog", "height", index as u64 + 1, LEVELS_MAX.into()))
}

/// Tells whether a node must be cut before it grows to so many bytes.
fn is_full(bytes: usize, paths_bytes: usize) -> bool {
    bytes > NODE_BYTES_CUT_MAX || paths_bytes > NODE_PATHS_BYTES_CUT_MAX
}

/// Tells whether nodes of this level may end at this path: FNV-1a over the path, begun with the level so that each
/// level decides anew.
fn is_cut_at(level: u8, path: &EntryPath) -> bool {
    let begin = 0xcbf2_9ce4_8422_2325 ^ u64::from(level);
    let hash =
        path.as_bytes().iter().fold(begin, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    mix(hash) >> (64 - CUT_BITS) == 0
}

fn refused(entry: &Entry, reason: &str) -> StoreError {
    StoreError::Refused { what: format!("catalog entry \"{}\"", entry.path), reason: reason.to_owned() }
}

//! The nodes of a catalog: leaves hold entries, inner nodes hold the first path and the number of each child.
//!
//! Both begin with a tag and a count. Paths are front-coded: the number of leading bytes shared with the path before,
//! then the rest. An entry leaves out what it has in common with the one before it, and writes numbers that grow slowly
//! as differences; all of that starts anew in each node, so that a node is read without any other. `docs/FORMAT.md`
//! draws the boxes.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{
    Entry, EntryPath,
    fields::{Inherited, put_fields, read_fields},
    path::shared_bytes,
    wire::{Fault, WireReader, put_bytes, put_difference, put_number},
};
use crate::ids::ChunkNumber;
use std::{cmp::Ordering, sync::Arc};

/// Greatest size of a node, plain.
pub const NODE_BYTES_MAX: usize = 8 << 20;

/// Greatest sum of the paths in a node, once they are whole again: bounds what front coding can hide in a few bytes.
pub(super) const NODE_PATHS_BYTES_MAX: usize = 8 << 20;

/// Greatest height of a catalog above its leaves: with two children a node, more leaves than there are chunk numbers.
pub(super) const LEVELS_MAX: u8 = 64;

const TAG_LEAF: u8 = 1;
const TAG_INNER: u8 = 2;

/// Writes a leaf entry by entry.
#[derive(Clone, Debug, Default)]
pub(super) struct LeafEncoder {
    body: Vec<u8>,
    first: Option<EntryPath>,
    count: u64,
    paths_bytes: usize,
    /// The path before.
    path: Vec<u8>,
    inherited: Inherited,
}

impl LeafEncoder {
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn paths_bytes(&self) -> usize {
        self.paths_bytes
    }

    /// Appends an entry that `check_entry` has passed.
    pub(super) fn push(&mut self, entry: &Entry) {
        if self.first.is_none() {
            self.first = Some(entry.path.clone());
        }
        put_path(&mut self.body, entry.path.as_bytes(), &mut self.path);
        put_fields(&mut self.body, entry, &mut self.inherited);
        self.count += 1;
        self.paths_bytes += entry.path.as_bytes().len();
    }

    /// The first path and the bytes of the finished leaf; the encoder is then as new.
    pub(super) fn take(&mut self) -> (Option<EntryPath>, Vec<u8>) {
        let done = std::mem::take(self);
        let mut node = vec![TAG_LEAF];
        put_number(&mut node, done.count);
        node.extend_from_slice(&done.body);
        (done.first, node)
    }
}

/// Writes an inner node child by child.
#[derive(Clone, Debug, Default)]
pub(super) struct InnerEncoder {
    body: Vec<u8>,
    first: Option<Child>,
    count: u64,
    paths_bytes: usize,
    /// Path and number of the child before.
    path: Vec<u8>,
    node: Option<ChunkNumber>,
}

impl InnerEncoder {
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    pub(super) fn bytes(&self) -> usize {
        self.body.len()
    }

    pub(super) fn paths_bytes(&self) -> usize {
        self.paths_bytes
    }

    /// The node's child, if it has exactly one.
    pub(super) fn only_child(&self) -> Option<ChunkNumber> {
        self.first.as_ref().filter(|_| self.count == 1).map(|child| child.node)
    }

    pub(super) fn push(&mut self, child: &Child) {
        if self.first.is_none() {
            self.first = Some(child.clone());
        }
        put_path(&mut self.body, child.first.as_bytes(), &mut self.path);
        put_difference(&mut self.body, child.node.0, self.node.unwrap_or(ChunkNumber::METADATA_FIRST).0);
        self.node = Some(child.node);
        self.count += 1;
        self.paths_bytes += child.first.as_bytes().len();
    }

    /// The first path and the bytes of the finished node; the encoder is then as new.
    pub(super) fn take(&mut self, level: u8) -> (Option<EntryPath>, Vec<u8>) {
        let done = std::mem::take(self);
        let mut node = vec![TAG_INNER, level];
        put_number(&mut node, done.count);
        node.extend_from_slice(&done.body);
        (done.first.map(|child| child.first), node)
    }
}

/// A child of an inner node.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Child {
    /// The first path beneath it.
    pub(super) first: EntryPath,
    pub(super) node: ChunkNumber,
}

impl Child {
    /// More bytes than it takes in a node.
    pub(super) fn bytes_bound(&self) -> usize {
        self.first.as_bytes().len() + 30
    }
}

/// A node as loaded.
#[derive(Debug)]
pub(super) enum Node {
    Leaf(LeafDecoder),
    Inner { level: u8, children: Vec<Child> },
}

impl Node {
    /// Reads the head of a leaf, or the whole of an inner node.
    pub(super) fn open(bytes: Arc<[u8]>) -> Result<Self, Fault> {
        if bytes.len() > NODE_BYTES_MAX {
            return Err("it exceeds the size of a node");
        }
        let mut reader = WireReader::new(&bytes);
        match reader.byte()? {
            TAG_LEAF => {
                let left = reader.number()?;
                let offset = bytes.len() - reader.left();
                Ok(Self::Leaf(LeafDecoder {
                    bytes,
                    offset,
                    left,
                    paths_bytes: 0,
                    path: Vec::new(),
                    inherited: Inherited::default(),
                }))
            }
            TAG_INNER => {
                let level = reader.byte()?;
                if !(1..=LEVELS_MAX).contains(&level) {
                    return Err("its level is not one an inner node can have");
                }
                Ok(Self::Inner { level, children: read_children(&mut reader)? })
            }
            _ => Err("it is no node of a catalog"),
        }
    }

    /// 0 for a leaf.
    pub(super) fn level(&self) -> u8 {
        match self {
            Self::Leaf(_) => 0,
            Self::Inner { level, .. } => *level,
        }
    }
}

/// Reads a leaf entry by entry.
#[derive(Debug)]
pub(super) struct LeafDecoder {
    bytes: Arc<[u8]>,
    offset: usize,
    left: u64,
    paths_bytes: usize,
    /// The path before.
    path: Vec<u8>,
    inherited: Inherited,
}

impl LeafDecoder {
    /// The next entry. After an error the node is not to be used.
    pub(super) fn next(&mut self) -> Result<Option<Entry>, Fault> {
        let mut reader = WireReader::new(self.bytes.get(self.offset..).unwrap_or_default());
        if self.left == 0 {
            return reader.end().map(|()| None);
        }
        let path = read_path(&mut reader, &mut self.path, &mut self.paths_bytes)?;
        let (metadata, content) = read_fields(&mut reader, &mut self.inherited)?;
        self.offset = self.bytes.len() - reader.left();
        self.left -= 1;
        Ok(Some(Entry { path, metadata, content }))
    }
}

fn read_children(reader: &mut WireReader<'_>) -> Result<Vec<Child>, Fault> {
    let count = reader.number()?;
    if count == 0 {
        return Err("it has no children");
    }
    let (mut path, mut paths_bytes) = (Vec::new(), 0);
    let mut before = ChunkNumber::METADATA_FIRST;
    let mut children = Vec::new();
    for _ in 0..count {
        let first = read_path(reader, &mut path, &mut paths_bytes)?;
        let node = ChunkNumber(reader.difference(before.0)?);
        if !node.is_metadata() {
            return Err("a child is no metadata chunk");
        }
        before = node;
        children.push(Child { first, node });
    }
    reader.end()?;
    Ok(children)
}

/// Appends a path, given the one before it, which it then replaces.
fn put_path(out: &mut Vec<u8>, path: &[u8], before: &mut Vec<u8>) {
    let shared = shared_bytes(before, path);
    put_number(out, shared as u64);
    put_bytes(out, path.get(shared..).unwrap_or_default());
    before.truncate(shared);
    before.extend_from_slice(path.get(shared..).unwrap_or_default());
}

/// Reads a path, given the one before it, which it then replaces and which it must follow in the order.
fn read_path(reader: &mut WireReader<'_>, before: &mut Vec<u8>, paths_bytes: &mut usize) -> Result<EntryPath, Fault> {
    let shared = usize::try_from(reader.number()?).map_err(|_| "a path shares more than the one before it has")?;
    let suffix = reader.bytes()?;
    let head = before.get(..shared).ok_or("a path shares more than the one before it has")?;
    *paths_bytes = paths_bytes.saturating_add(shared).saturating_add(suffix.len());
    if *paths_bytes > NODE_PATHS_BYTES_MAX {
        return Err("its paths exceed the size all paths of a node can have");
    }
    let path = [head, suffix].concat();
    if EntryPath::compare_bytes(before, &path) != Ordering::Less {
        return Err("its paths are not in order");
    }
    before.truncate(shared);
    before.extend_from_slice(suffix);
    EntryPath::decode(path)
}

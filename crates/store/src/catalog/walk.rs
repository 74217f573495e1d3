//! Goes through the nodes of a catalog in order, able to jump ahead, and checks on the way that they form a catalog at
//! all.
//!
//! The walk holds the inner nodes from the root to where it is, and one leaf. A [`Bound`] says up to where entries are
//! of no interest; children that end before it are never loaded. A node that is missing or wrong costs what lies
//! beneath it: it is reported once and the walk goes on behind it.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::{
    Entry, EntryPath, MetadataSource,
    node::{Child, LEVELS_MAX, LeafDecoder, Node},
};
use crate::{error::StoreError, ids::ChunkNumber};
use roaring::RoaringTreemap;
use std::{iter::Peekable, vec::IntoIter};

/// A place that a walk comes to.
#[derive(Debug)]
pub(super) enum Step {
    /// A node was loaded and its head is sound.
    Node(ChunkNumber),
    Entry(Entry),
}

/// The begin of the part of a catalog that is walked.
#[derive(Clone, Debug)]
pub(super) enum Bound {
    /// The entry of this path.
    From(EntryPath),
    /// Behind this path and everything beneath it.
    Behind(EntryPath),
}

impl Bound {
    fn is_ahead_of(&self, path: &EntryPath) -> bool {
        match self {
            Self::From(bound) => path < bound,
            Self::Behind(bound) => path <= bound || path.is_beneath(bound),
        }
    }
}

#[derive(Debug)]
pub(super) struct Walk<S> {
    source: S,
    root: Option<ChunkNumber>,
    /// The children still ahead, of each inner node from the root down.
    inner: Vec<InnerNode>,
    leaf: Option<Leaf>,
    bound: Option<Bound>,
    /// The subtree to stay in.
    within: Option<EntryPath>,
    /// The nodes to load; all if there is none.
    only: Option<RoaringTreemap>,
    last: Option<Last>,
}

#[derive(Debug)]
struct InnerNode {
    level: u8,
    children: Peekable<IntoIter<Child>>,
}

#[derive(Debug)]
struct Leaf {
    number: ChunkNumber,
    /// The first path the node above announced, until it is found.
    announced: Option<EntryPath>,
    decoder: LeafDecoder,
}

/// The last entry decoded, given out or not.
#[derive(Debug)]
struct Last {
    path: EntryPath,
    is_directory: bool,
}

/// Facts that the node above states of a node to be loaded.
struct Expected {
    number: ChunkNumber,
    /// Path and level; nothing is known of the root.
    place: Option<(EntryPath, u8)>,
}

impl<S: MetadataSource> Walk<S> {
    pub(super) fn new(source: S, root: ChunkNumber) -> Self {
        Self {
            source,
            root: Some(root),
            inner: Vec::new(),
            leaf: None,
            bound: None,
            within: None,
            only: None,
            last: None,
        }
    }

    /// Begins at this path and ends behind the last entry beneath it.
    pub(super) fn stay_within(&mut self, path: EntryPath) {
        self.seek(Bound::From(path.clone()));
        self.within = Some(path);
    }

    /// Loads these nodes only.
    pub(super) fn stay_in(&mut self, nodes: RoaringTreemap) {
        self.only = Some(nodes);
    }

    fn is_left_out(&self, node: ChunkNumber) -> bool {
        self.only.as_ref().is_some_and(|only| !only.contains(node.0))
    }

    /// Jumps ahead, or stays where it is if it is already there.
    pub(super) fn seek(&mut self, bound: Bound) {
        let is_passed = |node: &mut InnerNode| node.children.peek().is_some_and(|next| bound.is_ahead_of(&next.first));
        if let Some(depth) = self.inner.iter_mut().position(is_passed) {
            self.inner.truncate(depth + 1);
            self.leaf = None;
        }
        self.bound = Some(bound);
    }

    pub(super) fn step(&mut self) -> Option<Result<Step, StoreError>> {
        loop {
            if let Some(leaf) = &mut self.leaf {
                match leaf.next(&mut self.last) {
                    Ok(Some(entry)) if self.bound.as_ref().is_some_and(|bound| bound.is_ahead_of(&entry.path)) => {}
                    Ok(Some(entry)) if self.is_over(&entry.path) => self.end(),
                    Ok(Some(entry)) => return Some(Ok(Step::Entry(entry))),
                    Ok(None) => self.leaf = None,
                    Err(error) => {
                        self.leaf = None;
                        return Some(Err(error));
                    }
                }
            } else {
                let expected = self.next_node()?;
                let number = expected.number;
                return Some(self.open(expected).map(|()| Step::Node(number)));
            }
        }
    }

    /// The next node to load: the root at first, then the next child that does not end before the bound.
    fn next_node(&mut self) -> Option<Expected> {
        if let Some(number) = self.root.take().filter(|root| !self.is_left_out(*root)) {
            return Some(Expected { number, place: None });
        }
        let only = self.only.take();
        let next = self.next_child(only.as_ref());
        self.only = only;
        next
    }

    fn next_child(&mut self, only: Option<&RoaringTreemap>) -> Option<Expected> {
        while let Some(node) = self.inner.last_mut() {
            while let Some(child) = node.children.next() {
                let is_behind = match (&self.bound, node.children.peek()) {
                    (Some(bound), Some(next)) => bound.is_ahead_of(&next.first),
                    _ => false,
                };
                if is_behind || only.is_some_and(|only| !only.contains(child.node.0)) {
                    continue;
                }
                let level = node.level.saturating_sub(1);
                if self.is_over(&child.first) {
                    self.end();
                    return None;
                }
                return Some(Expected { number: child.node, place: Some((child.first, level)) });
            }
            self.inner.pop();
        }
        None
    }

    /// Tells whether the subtree to stay in ends before this path.
    fn is_over(&self, path: &EntryPath) -> bool {
        self.within.as_ref().is_some_and(|within| path > within && !path.is_beneath(within))
    }

    fn end(&mut self) {
        self.leaf = None;
        self.inner.clear();
    }

    /// Loads a node. Levels fall by one from node to child, so that no node can hold itself.
    fn open(&mut self, expected: Expected) -> Result<(), StoreError> {
        let Expected { number, place } = expected;
        let node = Node::open(self.source.load(number)?).map_err(|fault| damaged(number, fault))?;
        let fits = place.as_ref().map_or(node.level() <= LEVELS_MAX, |(_, level)| node.level() == *level);
        if !fits {
            return Err(damaged(number, "its level is not the one below its parent"));
        }
        let announced = place.map(|(path, _)| path);
        match node {
            Node::Leaf(decoder) => {
                self.leaf = Some(Leaf { number, announced, decoder });
            }
            Node::Inner { level, children } => {
                if announced.is_some_and(|path| children.first().is_none_or(|child| child.first != path)) {
                    return Err(damaged(number, "it does not begin with the path its parent names"));
                }
                self.inner.push(InnerNode { level, children: children.into_iter().peekable() });
            }
        }
        Ok(())
    }
}

impl Leaf {
    fn next(&mut self, last: &mut Option<Last>) -> Result<Option<Entry>, StoreError> {
        let entry = self.decoder.next().map_err(|fault| damaged(self.number, fault))?;
        if self.announced.take().is_some_and(|path| entry.as_ref().is_none_or(|entry| entry.path != path)) {
            return Err(damaged(self.number, "it does not begin with the path its parent names"));
        }
        let Some(entry) = entry else { return Ok(None) };
        if let Some(last) = last {
            if entry.path <= last.path {
                return Err(damaged(self.number, "its paths do not follow those of the node before"));
            }
            if !last.is_directory && entry.path.is_beneath(&last.path) {
                return Err(damaged(self.number, "an entry lies beneath one that is no directory"));
            }
            last.path.clone_from(&entry.path);
            last.is_directory = entry.is_directory();
        } else {
            *last = Some(Last { path: entry.path.clone(), is_directory: entry.is_directory() });
        }
        Ok(Some(entry))
    }
}

fn damaged(number: ChunkNumber, fault: &str) -> StoreError {
    StoreError::damaged(&format!("chunk {number}"), "catalog node", fault)
}

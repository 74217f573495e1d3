//! The trees of several chunks at once, level by level.
//!
//! A level is one list of values: those of the first chunk's nodes, of the second's, and so on. So each level is one
//! call of the compression whichever chunks it belongs to, and a chunk that is done is one node moving up as it is.

use super::compress::{Compress, Node, PADDED, Padded};
use super::{LEAF_BYTES, Value};
use crate::Isa;
use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;
use core::cmp::Reverse;

const START: u32 = 1 << 0;
const END: u32 = 1 << 1;
const PARENT: u32 = 1 << 2;
const ROOT: u32 = 1 << 3;

/// Leaves of a chunk.
pub(super) fn leaf_count(chunk: &[u8]) -> usize {
    chunk.len().div_ceil(LEAF_BYTES).max(1)
}

/// Computes trees of fewer than 2^32 leaves together.
pub(super) struct Trees<'k> {
    key: &'k [u32; 8],
    isa: Isa,
    padded: Box<Padded>,
}

impl<'k> Trees<'k> {
    pub(super) fn new(key: &'k [u32; 8], isa: Isa) -> Self {
        Self { key, isa, padded: Box::new(PADDED) }
    }

    /// The topmost values of the chunks, in their order.
    pub(super) fn roots(&mut self, chunks: &[&[u8]]) -> Vec<Value> {
        let mut widths: Vec<usize> = chunks.iter().map(|chunk| leaf_count(chunk)).collect();
        let mut level = self.leaves(chunks, widths.iter().sum());
        while widths.iter().any(|width| *width > 1) {
            level = self.parents(&level, &widths);
            for width in &mut widths {
                *width = width.div_ceil(2);
            }
        }
        level
    }

    /// The lowest level. Leaves of equally many blocks run together, whatever chunk they are of.
    fn leaves(&mut self, chunks: &[&[u8]], count: usize) -> Vec<Value> {
        let (mut whole, mut partial) = (Vec::with_capacity(count), Vec::with_capacity(chunks.len()));
        let mut place = 0;
        for chunk in chunks {
            let root = if chunk.len() <= LEAF_BYTES { ROOT } else { 0 };
            let empty = chunk.is_empty().then_some(*chunk);
            for (counter, input) in (0..).zip(chunk.chunks(LEAF_BYTES).chain(empty)) {
                let nodes = if input.len() == LEAF_BYTES { &mut whole } else { &mut partial };
                nodes.push(Node { input, counter, first: START, last: END | root, place });
                place += 1;
            }
        }
        partial.sort_unstable_by_key(|node| Reverse(node.last_block()));
        whole.append(&mut partial);
        self.values(&whole, vec![[0; 32]; count])
    }

    /// The level above one whose chunks have so many nodes each: neighbours get a parent, an odd last one moves up.
    fn parents(&mut self, level: &[Value], widths: &[usize]) -> Vec<Value> {
        let mut nodes = Vec::with_capacity(level.len() / 2);
        let mut above = Vec::with_capacity(level.len() / 2 + widths.len());
        let (mut rest, mut place) = (level, 0);
        for width in widths {
            let (tree, others) = rest.split_at(*width);
            let root = if *width == 2 { ROOT } else { 0 };
            for pair in tree.chunks(2) {
                if pair.len() == 2 {
                    nodes.push(Node { input: pair.as_flattened(), counter: 0, first: PARENT, last: root, place });
                }
                above.push(pair[0]);
                place += 1;
            }
            rest = others;
        }
        self.values(&nodes, above)
    }

    /// Puts the nodes' values in their places.
    fn values(&mut self, nodes: &[Node<'_>], mut values: Vec<Value>) -> Vec<Value> {
        self.isa.run(Compress { key: self.key, nodes, padded: &mut self.padded, values: &mut values });
        values
    }
}

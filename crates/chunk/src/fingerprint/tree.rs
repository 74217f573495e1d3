//! The trees of several chunks at once, level by level.
//!
//! A level is one list: the nodes of the first chunk, of the second, and so on. So a level is one call of the compression
//! whatever chunks it belongs to, and a chunk that is done is one node moving up unchanged.

use super::compress::{Compress, Node};
use super::{LEAF_BYTES, Value};
use crate::Isa;
use alloc::vec;
use alloc::vec::Vec;

const START: u32 = 1 << 0;
const END: u32 = 1 << 1;
const PARENT: u32 = 1 << 2;
const ROOT: u32 = 1 << 3;

/// Leaves of a chunk.
pub(super) fn leaves(chunk: &[u8]) -> usize {
    chunk.len().div_ceil(LEAF_BYTES).max(1)
}

/// The topmost nodes of the chunks, in their order.
pub(super) fn roots(key: &[u32; 8], isa: Isa, chunks: &[&[u8]]) -> Vec<Value> {
    let mut widths: Vec<usize> = chunks.iter().map(|chunk| leaves(chunk)).collect();
    let mut level = leaf_values(key, isa, chunks, widths.iter().sum());
    while widths.iter().any(|width| *width > 1) {
        level = parent_values(key, isa, &level, &widths);
        widths.iter_mut().for_each(|width| *width = width.div_ceil(2));
    }
    level
}

/// The lowest level.
fn leaf_values(key: &[u32; 8], isa: Isa, chunks: &[&[u8]], count: usize) -> Vec<Value> {
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
    partial.sort_unstable_by_key(|node| core::cmp::Reverse(node.last_block()));
    whole.append(&mut partial);
    values(key, isa, &whole, vec![[0; 32]; count])
}

/// The level above one whose chunks have so many nodes each: neighbours get a parent, an odd last one moves up as it is.
fn parent_values(key: &[u32; 8], isa: Isa, level: &[Value], widths: &[usize]) -> Vec<Value> {
    let mut nodes = Vec::with_capacity(level.len() / 2);
    let mut above = Vec::with_capacity(level.len() / 2 + widths.len());
    let mut rest = level;
    for width in widths {
        let (tree, others) = rest.split_at(*width);
        let root = if *width == 2 { ROOT } else { 0 };
        for pair in tree.chunks(2) {
            if pair.len() == 2 {
                let input = pair.as_flattened();
                nodes.push(Node { input, counter: 0, first: PARENT, last: root, place: above.len() });
            }
            above.push(pair[0]);
        }
        rest = others;
    }
    values(key, isa, &nodes, above)
}

/// Puts the nodes' values in their places.
fn values(key: &[u32; 8], isa: Isa, nodes: &[Node<'_>], mut values: Vec<Value>) -> Vec<Value> {
    isa.run(Compress { key, nodes, values: &mut values });
    values
}

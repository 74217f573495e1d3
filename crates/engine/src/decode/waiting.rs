//! Regions that wait for others: region deltas for their bases, bases for their delta, within a budget.

use super::plan::Plan;
use super::spill::{Span, Spill};
use siltstone_store::StoreError;
use siltstone_store::region::EncodedRegion;
use siltstone_store::repository::Repository;
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Bytes in memory or in the temporary file.
#[derive(Clone, Debug)]
pub(super) enum Piece {
    Memory(Arc<[u8]>),
    Spilled(Span),
}

/// A region delta of which something has come.
#[derive(Debug, Default)]
pub(super) struct Delta {
    /// The region without its payload, once it has come.
    pub(super) region: Option<EncodedRegion>,
    pub(super) payload: Option<Piece>,
    /// Its bases as far as they have come.
    pub(super) bases: Vec<Option<Piece>>,
    /// Bytes of all these in memory.
    memory_bytes: u64,
}

/// State of a node.
#[derive(Debug)]
struct Held {
    /// How much is to come: its bases and itself.
    missing: u32,
    is_done: bool,
    delta: Option<Box<Delta>>,
}

/// All nodes of a plan, and what they hold.
#[derive(Debug)]
pub(super) struct Waiting {
    held: Vec<Held>,
    /// Nodes that hold something in memory, the oldest first; in forward-reference order those are wanted last.
    oldest: VecDeque<u32>,
    memory_bytes: u64,
    memory_bytes_max: u64,
    spill: Spill,
    /// True if writing to the temporary file failed: then all stays in memory.
    is_spill_broken: bool,
    /// Nodes neither decoded nor failed.
    pub(super) left: usize,
}

impl Waiting {
    pub(super) fn new(plan: &Plan, memory_bytes_max: u64, folder: &Path) -> Self {
        let held = plan.nodes.iter().map(|node| Held { missing: node.bases + 1, is_done: false, delta: None });
        Self {
            held: held.collect(),
            oldest: VecDeque::new(),
            memory_bytes: 0,
            memory_bytes_max,
            spill: Spill::new(folder),
            is_spill_broken: false,
            left: plan.nodes.len(),
        }
    }

    /// Bytes written to the temporary file.
    pub(super) fn bytes_spilled(&self) -> u64 {
        self.spill.bytes_written
    }

    /// Tells whether a node was decoded or has failed.
    pub(super) fn is_done(&self, node: u32) -> bool {
        self.held[node as usize].is_done
    }

    /// Marks a node as decoded or failed and drops what it holds; `false` if it was done before.
    pub(super) fn finish(&mut self, node: u32) -> bool {
        let held = &mut self.held[node as usize];
        if std::mem::replace(&mut held.is_done, true) {
            return false;
        }
        self.left -= 1;
        if let Some(delta) = held.delta.take() {
            self.release(&delta);
        }
        true
    }

    /// A region delta has come. Gives it back with its bases if those are all there.
    pub(super) fn add_region(&mut self, node: u32, mut region: EncodedRegion) -> Option<Box<Delta>> {
        let payload: Arc<[u8]> = std::mem::take(&mut region.payload).into();
        let bytes = payload.len() as u64;
        self.add(node, bytes, |delta| {
            delta.region = Some(region);
            delta.payload = Some(Piece::Memory(payload));
        })
    }

    /// A base of a region delta has come. Gives the delta back if it is complete now.
    pub(super) fn add_base(&mut self, node: u32, slot: u32, base: Arc<[u8]>) -> Option<Box<Delta>> {
        let bytes = base.len() as u64;
        self.add(node, bytes, |delta| {
            let slot = slot as usize;
            if delta.bases.len() <= slot {
                delta.bases.resize(slot + 1, None);
            }
            delta.bases[slot] = Some(Piece::Memory(base));
        })
    }

    fn add(&mut self, node: u32, bytes: u64, change: impl FnOnce(&mut Delta)) -> Option<Box<Delta>> {
        let held = &mut self.held[node as usize];
        if held.is_done {
            return None;
        }
        let delta = held.delta.get_or_insert_default();
        change(delta);
        if delta.memory_bytes == 0 {
            self.oldest.push_back(node);
        }
        delta.memory_bytes += bytes;
        self.memory_bytes += bytes;
        held.missing -= 1;
        if held.missing > 0 {
            return None;
        }
        let delta = held.delta.take()?;
        self.memory_bytes -= delta.memory_bytes;
        Some(delta)
    }

    /// Writes what waits longest to the temporary file until the rest is within the budget.
    ///
    /// # Errors
    /// The first time that the file cannot be written; from then on all stays in memory.
    pub(super) fn keep_within_budget(&mut self, repository: &Repository) -> Result<(), StoreError> {
        while self.memory_bytes > self.memory_bytes_max && !self.is_spill_broken {
            let Some(node) = self.oldest.pop_front() else { return Ok(()) };
            let Some(delta) = &mut self.held[node as usize].delta else { continue };
            let pieces = delta.bases.iter_mut().flatten().chain(&mut delta.payload);
            for piece in pieces {
                let Piece::Memory(bytes) = piece else { continue };
                let count = bytes.len() as u64;
                match self.spill.write(repository, bytes) {
                    Ok(span) => *piece = Piece::Spilled(span),
                    Err(error) => {
                        self.is_spill_broken = true;
                        return Err(error);
                    }
                }
                delta.memory_bytes -= count;
                self.memory_bytes -= count;
            }
        }
        Ok(())
    }

    /// Brings a piece of a delta that was given back.
    pub(super) fn bring(&mut self, piece: Piece) -> Result<Arc<[u8]>, StoreError> {
        match piece {
            Piece::Memory(bytes) => Ok(bytes),
            Piece::Spilled(span) => {
                let bytes = self.spill.read(span);
                self.spill.give_back(span);
                bytes.map(Arc::from)
            }
        }
    }

    fn release(&mut self, delta: &Delta) {
        self.memory_bytes -= delta.memory_bytes;
        for piece in delta.bases.iter().flatten().chain(&delta.payload) {
            if let Piece::Spilled(span) = piece {
                self.spill.give_back(*span);
            }
        }
    }
}

//! Keeping what waits for others: region deltas for their bases, bases for the deltas that need them, within a budget.
//!
//! A base is held once, however many deltas wait for it. Beyond the budget bases are compressed, and what gains
//! nothing by that goes to the temporary file; of both what is needed last comes first, as far as the plan can tell.

use super::Bytes;
use super::plan::{Feed, Plan};
use super::spill::Spilled;
use crate::held::HeldBytes;
use siltstone_store::ChunkNumber;
use siltstone_store::region::EncodedRegion;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

/// Bytes in memory or in the temporary file.
#[derive(Clone, Debug)]
pub(super) enum Waited {
    Memory(HeldBytes),
    Spilled(Arc<Spilled>),
}

/// Bytes that wait.
#[derive(Debug)]
struct Holding {
    bytes: Waited,
    /// Bytes that they are counted as: 0 once they are to be compressed, or to go to the temporary file.
    memory_bytes: u64,
}

/// A base that has come.
#[derive(Debug)]
struct Base {
    holding: Holding,
    /// Region deltas that wait for it.
    users: u32,
}

/// A region delta of which something has come.
#[derive(Debug, Default)]
struct Delta {
    /// The region without its payload, and that, once it has come.
    region: Option<(EncodedRegion, Holding)>,
    /// Its bases as far as they have come.
    bases: Vec<Option<ChunkNumber>>,
}

/// A region delta and all its bases.
#[derive(Debug)]
pub(super) struct CompleteDelta {
    /// The region without its payload.
    pub(super) region: EncodedRegion,
    pub(super) payload: Waited,
    pub(super) bases: Vec<Waited>,
}

/// State of a node.
#[derive(Debug)]
struct Held {
    /// How much is to come: its bases and itself.
    missing: u32,
    /// When it is complete, about: a place in the order of the plan's regions.
    complete_at: u32,
    is_done: bool,
    delta: Option<Delta>,
}

/// Which bytes. Of those needed at the same time the last of them go first: bases, which make more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Item {
    /// The payload of a region delta.
    Payload(u32),
    Base(ChunkNumber),
}

/// Bytes that are to be compressed, or to go to the temporary file.
#[derive(Debug)]
pub(super) struct Excess {
    pub(super) item: Item,
    pub(super) bytes: HeldBytes,
    /// When they are needed first.
    needed_at: u32,
}

/// All nodes of a plan, and what they hold.
#[derive(Debug)]
pub(super) struct Waiting {
    held: Vec<Held>,
    bases: HashMap<ChunkNumber, Base>,
    /// Items held in memory as they are, by when they are needed first; also some that are held no longer.
    latest: BinaryHeap<(u32, Item)>,
    /// Those held compressed.
    latest_compressed: BinaryHeap<(u32, Item)>,
    memory_bytes: u64,
    memory_bytes_max: u64,
    /// True if writing to the temporary file failed: then all stays in memory.
    is_spill_broken: bool,
    /// Nodes neither decoded nor failed.
    pub(super) left: usize,
}

impl Waiting {
    pub(super) fn new(plan: &Plan, memory_bytes_max: u64) -> Self {
        let held = plan.nodes.iter().zip(plan.completions()).map(|(node, complete_at)| Held {
            missing: node.bases + 1,
            complete_at,
            is_done: false,
            delta: None,
        });
        Self {
            held: held.collect(),
            bases: HashMap::new(),
            latest: BinaryHeap::new(),
            latest_compressed: BinaryHeap::new(),
            memory_bytes: 0,
            memory_bytes_max,
            is_spill_broken: false,
            left: plan.nodes.len(),
        }
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
            if let Some((_, payload)) = delta.region {
                self.memory_bytes -= payload.memory_bytes;
            }
            for base in delta.bases.into_iter().flatten() {
                self.use_base(base);
            }
        }
        true
    }

    /// A region delta has come. Returns `true` if all its bases are there.
    pub(super) fn add_region(&mut self, node: u32, mut region: EncodedRegion) -> bool {
        let held = &mut self.held[node as usize];
        if held.is_done {
            return false;
        }
        let payload = HeldBytes::Plain(std::mem::take(&mut region.payload).into());
        let memory_bytes = payload.memory_bytes();
        let holding = Holding { bytes: Waited::Memory(payload), memory_bytes };
        held.delta.get_or_insert_default().region = Some((region, holding));
        held.missing -= 1;
        self.memory_bytes += memory_bytes;
        if held.missing > 0 {
            self.latest.push((held.complete_at, Item::Payload(node)));
        }
        held.missing == 0
    }

    /// A base has come, for these slots of region deltas. Those that are complete now are added to the list.
    pub(super) fn add_base(&mut self, base: Bytes, feeds: &[Feed], complete: &mut Vec<u32>) {
        let (mut users, mut needed_at) = (0, u32::MAX);
        for Feed { number, to, slot, .. } in feeds {
            let held = &mut self.held[*to as usize];
            if held.is_done {
                continue;
            }
            let (delta, slot) = (held.delta.get_or_insert_default(), *slot as usize);
            if delta.bases.len() <= slot {
                delta.bases.resize(slot + 1, None);
            }
            delta.bases[slot] = Some(*number);
            held.missing -= 1;
            users += 1;
            if held.missing == 0 {
                complete.push(*to);
            } else {
                needed_at = needed_at.min(held.complete_at);
            }
        }
        let Some(Feed { number, .. }) = feeds.first().filter(|_| users > 0) else { return };
        let memory_bytes = base.len() as u64;
        let holding = Holding { bytes: Waited::Memory(HeldBytes::Plain(base)), memory_bytes };
        self.bases.insert(*number, Base { holding, users });
        self.memory_bytes += memory_bytes;
        // If all that need it are complete, they are decoded at once.
        if needed_at < u32::MAX {
            self.latest.push((needed_at, Item::Base(*number)));
        }
    }

    /// Takes a region delta that is complete; `None` if it was taken before.
    pub(super) fn take(&mut self, node: u32) -> Option<CompleteDelta> {
        let Delta { region, bases } = self.held[node as usize].delta.take()?;
        let (region, payload) = region?;
        self.memory_bytes -= payload.memory_bytes;
        // Made for all of them: collecting would let it grow, and the other workers wait meanwhile.
        let mut held = Vec::with_capacity(bases.len());
        for base in bases {
            held.push(self.use_base(base?)?);
        }
        Some(CompleteDelta { region, payload: payload.bytes, bases: held })
    }

    /// Gives a base to one that waits for it; the last one takes it away.
    fn use_base(&mut self, number: ChunkNumber) -> Option<Waited> {
        let base = self.bases.get_mut(&number)?;
        base.users -= 1;
        if base.users > 0 {
            return Some(base.holding.bytes.clone());
        }
        let base = self.bases.remove(&number)?;
        self.memory_bytes -= base.holding.memory_bytes;
        Some(base.holding.bytes)
    }

    /// Chooses what is to be compressed, or to go to the temporary file, so that the rest is within the budget: what is
    /// needed last first, compressed bytes once there are no others. It is counted no longer.
    pub(super) fn excess(&mut self) -> Vec<Excess> {
        let mut chosen = Vec::new();
        while self.memory_bytes > self.memory_bytes_max && !self.is_spill_broken {
            let Some((needed_at, item)) = self.latest.pop().or_else(|| self.latest_compressed.pop()) else { break };
            let Some(holding) = self.holding(item) else { continue };
            let Waited::Memory(bytes) = &holding.bytes else { continue };
            chosen.push(Excess { item, bytes: bytes.clone(), needed_at });
            let counted = std::mem::take(&mut holding.memory_bytes);
            self.memory_bytes -= counted;
        }
        chosen
    }

    /// Notes that bytes are compressed now.
    pub(super) fn compressed(&mut self, Excess { item, needed_at, .. }: Excess, compressed: HeldBytes) {
        let memory_bytes = compressed.memory_bytes();
        // Whoever waited for them may have taken them meanwhile.
        if let Some(holding) = self.holding(item) {
            *holding = Holding { bytes: Waited::Memory(compressed), memory_bytes };
            self.memory_bytes += memory_bytes;
            self.latest_compressed.push((needed_at, item));
        }
    }

    /// Notes that something lies in the temporary file now.
    pub(super) fn spilled(&mut self, item: Item, bytes: Spilled) {
        // Whoever waited for it may have taken it meanwhile.
        if let Some(holding) = self.holding(item) {
            holding.bytes = Waited::Spilled(Arc::new(bytes));
        }
    }

    /// Notes that the temporary file cannot be written: all stays in memory from then on. Returns `true` once.
    pub(super) fn break_spill(&mut self) -> bool {
        !std::mem::replace(&mut self.is_spill_broken, true)
    }

    fn holding(&mut self, item: Item) -> Option<&mut Holding> {
        match item {
            Item::Base(number) => Some(&mut self.bases.get_mut(&number)?.holding),
            Item::Payload(node) => Some(&mut self.held[node as usize].delta.as_mut()?.region.as_mut()?.1),
        }
    }
}

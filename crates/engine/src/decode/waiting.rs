//! Keeping what waits for others: region deltas for their bases, bases for the deltas that need them, within a budget.
//!
//! A base is held once, however many deltas wait for it. Bases lie in the text of their region, in the memory that it
//! was decoded into, which is held, and counted, as long as one of them waits. Beyond the budget bases are compressed,
//! and what gains nothing by that goes to the temporary file; of both what is needed last comes first, as far as the
//! plan can tell, but before all others the few that are left of a text.

use super::Bytes;
use super::plan::{Feed, Plan};
use super::spill::Spilled;
use crate::held::HeldBytes;
use siltstone_store::ChunkNumber;
use siltstone_store::region::EncodedRegion;
use std::cmp::Reverse;
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
    /// Bytes that they are counted as: 0 where a text is counted for them, and once they are to be compressed, or to go
    /// to the temporary file.
    memory_bytes: u64,
}

/// A base that has come.
#[derive(Debug)]
struct Base {
    holding: Holding,
    /// Region deltas that wait for it.
    users: u32,
    /// The node in whose text it lies, and how many bytes of that it is.
    text: Option<(u32, u64)>,
}

/// Memory that a node's region was decoded into, in which bases lie.
#[derive(Clone, Copy, Debug)]
pub(super) struct TextMemory {
    pub(super) node: u32,
    pub(super) bytes: u64,
}

/// A base that was put into slots of region deltas.
struct Fed {
    number: ChunkNumber,
    /// How many of them there are, and when the first is decoded.
    users: u32,
    needed_at: u32,
    /// True if one of them lacks others: those that are complete are decoded at once.
    waits: bool,
}

/// Memory of a decoded region in which bases lie.
#[derive(Debug)]
struct Text {
    /// Bytes that it is counted as: 0 once its bases are to be compressed, or to go to the temporary file.
    memory_bytes: u64,
    /// Bytes of the bases that still lie in it.
    held_bytes: u64,
    /// Bases, and when each is needed, the first one last. That one still lies in it; others may not.
    bases: Vec<(u32, ChunkNumber)>,
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
    /// When it is decoded, about: its place in the order.
    turn: u32,
    is_done: bool,
    delta: Option<Delta>,
}

/// Which bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Item {
    /// The payload of a region delta.
    Payload(u32),
    Base(ChunkNumber),
}

/// Memory that may be had. Of what is needed at the same time the last go first: texts, which make more room.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Victim {
    Item(Item),
    /// A node's text, with all bases that lie in it.
    Text(u32),
}

/// Bytes that are to be compressed, or to go to the temporary file.
#[derive(Debug)]
pub(super) struct Excess {
    pub(super) item: Item,
    pub(super) bytes: HeldBytes,
    /// True if they keep a text in memory of which little is needed: a copy of them takes less.
    pub(super) is_of_sparse_text: bool,
    /// When they are needed first.
    needed_at: u32,
}

/// All nodes of a plan, and what they hold.
#[derive(Debug)]
pub(super) struct Waiting {
    held: Vec<Held>,
    bases: HashMap<ChunkNumber, Base>,
    /// Texts in which bases lie, by their nodes.
    texts: HashMap<u32, Text>,
    /// Those of which less than half is bases that still wait; also some that are held no longer.
    sparse: Vec<u32>,
    /// Items and texts held in memory as they are, by when each is needed first; also some that are held no longer.
    latest: BinaryHeap<(u32, Victim)>,
    /// Items held compressed.
    latest_compressed: BinaryHeap<(u32, Item)>,
    memory_bytes: u64,
    memory_bytes_max: u64,
    /// True if writing to the temporary file failed: then all stays in memory.
    is_spill_broken: bool,
    /// Nodes neither decoded nor failed.
    pub(super) left: usize,
}

impl Text {
    /// Tells whether less than half of it is bases that still wait.
    fn is_sparse(&self) -> bool {
        2 * self.held_bytes < self.memory_bytes
    }
}

impl Waiting {
    pub(super) fn new(plan: &Plan, memory_bytes_max: u64) -> Self {
        let held = plan.nodes.iter().zip(plan.turns()).map(|(node, turn)| Held {
            missing: node.bases + 1,
            turn,
            is_done: false,
            delta: None,
        });
        Self {
            held: held.collect(),
            bases: HashMap::new(),
            texts: HashMap::new(),
            sparse: Vec::new(),
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
            self.latest.push((held.turn, Victim::Item(Item::Payload(node))));
        }
        held.missing == 0
    }

    /// Bases have come, each for these slots of region deltas. If they lie in the text of a node, that is counted.
    /// Those that are complete now are added to the list.
    pub(super) fn add_bases(
        &mut self,
        bases: Vec<(&[Feed], Bytes)>,
        memory: Option<TextMemory>,
        complete: &mut Vec<u32>,
    ) {
        let (mut held_bytes, mut members, mut any_waits) = (0, Vec::new(), false);
        for (feeds, bytes) in bases {
            let Some(Fed { number, users, needed_at, waits }) = self.feed(feeds, complete) else { continue };
            let base_bytes = bytes.len() as u64;
            let memory_bytes = if memory.is_some() { 0 } else { base_bytes };
            let holding = Holding { bytes: Waited::Memory(HeldBytes::Plain(bytes)), memory_bytes };
            let text = memory.map(|memory| (memory.node, base_bytes));
            self.bases.insert(number, Base { holding, users, text });
            self.memory_bytes += memory_bytes;
            held_bytes += base_bytes;
            any_waits |= waits;
            if memory.is_some() {
                members.push((needed_at, number));
            } else if waits {
                self.latest.push((needed_at, Victim::Item(Item::Base(number))));
            }
        }
        let Some(TextMemory { node, bytes }) = memory.filter(|_| held_bytes > 0) else { return };
        members.sort_unstable_by_key(|base| Reverse(*base));
        if let Some((needed_at, _)) = members.last().filter(|_| any_waits) {
            self.latest.push((*needed_at, Victim::Text(node)));
        }
        let text = Text { memory_bytes: bytes, held_bytes, bases: members };
        if text.is_sparse() {
            self.sparse.push(node);
        }
        self.texts.insert(node, text);
        self.memory_bytes += bytes;
    }

    /// Puts a base into these slots; `None` if nobody waits for it any longer.
    fn feed(&mut self, feeds: &[Feed], complete: &mut Vec<u32>) -> Option<Fed> {
        let mut fed = Fed { number: feeds.first()?.number, users: 0, needed_at: u32::MAX, waits: false };
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
            fed.users += 1;
            fed.needed_at = fed.needed_at.min(held.turn);
            if held.missing == 0 {
                complete.push(*to);
            } else {
                fed.waits = true;
            }
        }
        (fed.users > 0).then_some(fed)
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
        self.leave_text(base.text);
        Some(base.holding.bytes)
    }

    /// Bytes of a base no longer lie in the text of a node.
    fn leave_text(&mut self, place: Option<(u32, u64)>) {
        let Some((node, base_bytes)) = place else { return };
        let Some(text) = self.texts.get_mut(&node) else { return };
        let was_sparse = text.is_sparse();
        text.held_bytes -= base_bytes;
        if text.held_bytes == 0 {
            self.memory_bytes -= text.memory_bytes;
            self.texts.remove(&node);
        } else if text.is_sparse() {
            if !was_sparse {
                self.sparse.push(node);
            }
        } else {
            let before = text.bases.len();
            let lies_here = |number| self.bases.get(&number).is_some_and(|base| base.text.is_some());
            while text.bases.pop_if(|(_, number)| !lies_here(*number)).is_some() {}
            if let Some((needed_at, _)) = text.bases.last().filter(|_| text.bases.len() < before) {
                self.latest.push((*needed_at, Victim::Text(node)));
            }
        }
    }

    /// Chooses what is to be compressed, or to go to the temporary file, so that the rest is within the budget: what is
    /// left of texts that are mostly used, what is needed last, and compressed bytes once there are no others. It is
    /// counted no longer.
    pub(super) fn excess(&mut self) -> Vec<Excess> {
        let mut chosen = Vec::new();
        while self.memory_bytes > self.memory_bytes_max && !self.is_spill_broken {
            if let Some(node) = self.sparse.pop() {
                self.choose_text(node, &mut chosen);
            } else if let Some((needed_at, victim)) = self.latest.pop() {
                match victim {
                    Victim::Item(item) => self.choose(item, needed_at, &mut chosen),
                    Victim::Text(node) if self.is_needed_at(node, needed_at) => self.choose_text(node, &mut chosen),
                    Victim::Text(_) => {}
                }
            } else if let Some((needed_at, item)) = self.latest_compressed.pop() {
                self.choose(item, needed_at, &mut chosen);
            } else {
                break;
            }
        }
        chosen
    }

    fn choose(&mut self, item: Item, needed_at: u32, chosen: &mut Vec<Excess>) {
        let Some(holding) = self.holding(item) else { return };
        let Waited::Memory(bytes) = &holding.bytes else { return };
        chosen.push(Excess { item, bytes: bytes.clone(), is_of_sparse_text: false, needed_at });
        let counted = std::mem::take(&mut holding.memory_bytes);
        self.memory_bytes -= counted;
    }

    /// Tells whether the text of a node is needed then, not later.
    fn is_needed_at(&self, node: u32, at: u32) -> bool {
        let first = self.texts.get(&node).and_then(|text| text.bases.last());
        first.is_some_and(|(needed_at, _)| *needed_at == at)
    }

    /// Chooses all bases that lie in the text of a node.
    fn choose_text(&mut self, node: u32, chosen: &mut Vec<Excess>) {
        let Some(text) = self.texts.get_mut(&node).filter(|text| text.memory_bytes > 0) else { return };
        let is_of_sparse_text = text.is_sparse();
        self.memory_bytes -= std::mem::take(&mut text.memory_bytes);
        for (needed_at, number) in std::mem::take(&mut text.bases) {
            let base = self.bases.get(&number).filter(|base| base.text.is_some());
            if let Some(Waited::Memory(bytes)) = base.map(|base| &base.holding.bytes) {
                chosen.push(Excess { item: Item::Base(number), bytes: bytes.clone(), is_of_sparse_text, needed_at });
            }
        }
    }

    /// Notes that bytes are held otherwise now: compressed, or a copy of them.
    pub(super) fn replace(&mut self, Excess { item, needed_at, .. }: Excess, bytes: HeldBytes) {
        let is_compressed = matches!(bytes, HeldBytes::Compressed { .. });
        let memory_bytes = bytes.memory_bytes();
        // Whoever waited for them may have taken them meanwhile.
        let Some(holding) = self.holding(item) else { return };
        *holding = Holding { bytes: Waited::Memory(bytes), memory_bytes };
        self.memory_bytes += memory_bytes;
        self.take_out_of_text(item);
        if is_compressed {
            self.latest_compressed.push((needed_at, item));
        } else {
            self.latest.push((needed_at, Victim::Item(item)));
        }
    }

    fn take_out_of_text(&mut self, item: Item) {
        let Item::Base(number) = item else { return };
        let place = self.bases.get_mut(&number).and_then(|base| base.text.take());
        self.leave_text(place);
    }

    /// Notes that something lies in the temporary file now.
    pub(super) fn spilled(&mut self, item: Item, bytes: Spilled) {
        // Whoever waited for it may have taken it meanwhile.
        if let Some(holding) = self.holding(item) {
            holding.bytes = Waited::Spilled(Arc::new(bytes));
            self.take_out_of_text(item);
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

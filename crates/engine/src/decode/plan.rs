//! Which regions are decoded together: those wanted, and whatever their bases lie in.
//!
//! The plan knows, from indexes alone, which chunk of which region goes into which slot of which others ([`Feed`]), so
//! nothing has to be looked up while the data flows. Regions whose bases lead back to them, or cannot be found, are
//! faults from the start.

use super::DecodeSettings;
use super::order::Order;
use crate::bases::{Pending, RegionGraph};
use crate::chunks::{Address, ChunkSource};
use siltstone_store::container::RegionEntry;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// A base chunk on its way into a region delta.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Feed {
    from: u32,
    pub(super) number: ChunkNumber,
    /// The region delta: its place among the nodes.
    pub(super) to: u32,
    /// Which of its bases.
    pub(super) slot: u32,
}

/// A region of the plan.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) address: Address,
    /// How many bases it has.
    pub(super) bases: u32,
    /// Whom it feeds: a range of the feeds.
    feeds: Range<usize>,
}

/// A container to visit, and the nodes to read there by ascending region.
#[derive(Clone, Debug)]
pub(super) struct Visit {
    pub(super) container: usize,
    pub(super) nodes: Vec<u32>,
}

/// Nodes whose regions are fetched by one range read: their places in the visit's list.
pub(super) type Run = Range<usize>;

/// Regions to decode. Nodes are numbered; the first ones are those wanted, in the order they were given.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    pub(super) nodes: Vec<Node>,
    feeds: Vec<Feed>,
    pub(super) visits: Vec<Visit>,
    /// True if containers are visited, and regions decoded, in the order they lie: there is no delta.
    pub(super) is_plain: bool,
    /// Nodes that cannot be decoded, and why.
    pub(super) faults: BTreeMap<u32, Arc<StoreError>>,
}

impl Plan {
    /// Plans the decoding of these regions, each given once.
    pub(crate) fn new(chunks: &ChunkSource<'_>, wanted: &[Address], order: &Order<'_>) -> Self {
        Self::visiting(chunks, wanted, &[], order)
    }

    /// Plans the decoding of these regions, visiting these containers too if nothing of them is needed.
    pub(crate) fn visiting(
        chunks: &ChunkSource<'_>,
        wanted: &[Address],
        containers: &[usize],
        order: &Order<'_>,
    ) -> Self {
        let mut plan = Self::default();
        plan.add_nodes(chunks, wanted);
        plan.feeds.sort_unstable();
        plan.is_plain = plan.feeds.is_empty();
        let mut start = 0;
        for of_one in plan.feeds.chunk_by(|a, b| a.from == b.from) {
            if let Some(feed) = of_one.first() {
                plan.nodes[feed.from as usize].feeds = start..start + of_one.len();
            }
            start += of_one.len();
        }
        plan.find_cycles(chunks);
        plan.add_visits(chunks, containers, order);
        plan
    }

    /// The containers it visits.
    pub(crate) fn containers(&self) -> impl Iterator<Item = usize> {
        self.visits.iter().map(|visit| visit.container)
    }

    /// Returns the number of range reads that decoding makes for the regions, and the bytes that they bring. Containers
    /// whose index cannot be read are left out.
    pub(crate) fn reads(&self, chunks: &ChunkSource<'_>, settings: &DecodeSettings) -> (u64, u64) {
        let (mut reads, mut bytes) = (0, 0);
        for Visit { container, nodes } in &self.visits {
            let Ok(reader) = chunks.reader(*container) else { continue };
            let regions = reader.index().regions();
            let runs = self.runs(nodes, regions, settings);
            reads += runs.len() as u64;
            let nodes = runs.into_iter().filter_map(|run| Some((*nodes.get(run.start)?, *nodes.get(run.end - 1)?)));
            bytes += nodes.map(|(first, last)| self.span(last, regions).1 - self.span(first, regions).0).sum::<u64>();
        }
        (reads, bytes)
    }

    /// Splits nodes of one container, by ascending region, into runs with small gaps.
    pub(super) fn runs(&self, nodes: &[u32], regions: &[RegionEntry], settings: &DecodeSettings) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        // First and last byte of the run being made.
        let mut range = (0, 0);
        for (at, node) in nodes.iter().enumerate() {
            let (start, end) = self.span(*node, regions);
            match runs.last_mut() {
                Some(run)
                    if start.saturating_sub(range.1) <= settings.gap_bytes
                        && end.saturating_sub(range.0) <= settings.read_bytes_max =>
                {
                    run.end = at + 1;
                    range.1 = end;
                }
                _ => {
                    runs.push(at..at + 1);
                    range = (start, end);
                }
            }
        }
        runs
    }

    /// First byte of a node's region in its container, and the end of it.
    fn span(&self, node: u32, regions: &[RegionEntry]) -> (u64, u64) {
        let entry = regions.get(self.address(node as usize).region);
        entry.map_or((0, 0), |entry| (entry.offset, entry.offset + u64::from(entry.sealed_bytes)))
    }

    /// Where a node's region lies.
    pub(crate) fn address(&self, node: usize) -> Address {
        self.nodes[node].address
    }

    /// Returns about when each node is decoded: its place in the order in which one worker does it, by which regions
    /// come backwards, and what is complete goes before what comes next.
    pub(super) fn turns(&self) -> Vec<u32> {
        let mut turns = vec![u32::MAX; self.nodes.len()];
        let mut missing: Vec<u32> = self.nodes.iter().map(|node| node.bases + 1).collect();
        let (mut complete, mut turn) = (Vec::new(), 0);
        let mut bring = |node: u32, complete: &mut Vec<u32>| {
            missing[node as usize] -= 1;
            if missing[node as usize] == 0 {
                complete.push(node);
            }
        };
        for node in self.visits.iter().flat_map(|visit| visit.nodes.iter().rev()) {
            bring(*node, &mut complete);
            while let Some(node) = complete.pop() {
                turns[node as usize] = turn;
                turn += 1;
                self.feeds(node).iter().for_each(|feed| bring(feed.to, &mut complete));
            }
        }
        turns
    }

    /// Whom a node feeds, by ascending number.
    pub(super) fn feeds(&self, node: u32) -> &[Feed] {
        &self.feeds[self.nodes[node as usize].feeds.clone()]
    }

    fn add_nodes(&mut self, chunks: &ChunkSource<'_>, wanted: &[Address]) {
        let mut known: HashMap<Address, u32> = HashMap::new();
        let mut pending = Pending::new();
        for address in wanted {
            self.node(*address, &mut known, &mut pending);
        }
        while let Some((_, nodes)) = pending.pop() {
            for to in nodes {
                let bases = match chunks.bases_of(self.nodes[to as usize].address) {
                    Ok(bases) => bases,
                    Err(error) => {
                        self.faults.insert(to, Arc::new(error));
                        continue;
                    }
                };
                self.nodes[to as usize].bases = index(bases.len());
                for (slot, base) in bases.iter().enumerate() {
                    let from = self.node(base.address, &mut known, &mut pending);
                    self.feeds.push(Feed { from, number: base.place.chunk.number, to, slot: index(slot) });
                }
            }
        }
    }

    fn node(&mut self, address: Address, known: &mut HashMap<Address, u32>, pending: &mut Pending<u32>) -> u32 {
        *known.entry(address).or_insert_with(|| {
            let node = index(self.nodes.len());
            self.nodes.push(Node { address, bases: 0, feeds: 0..0 });
            pending.push(address.container, node);
            node
        })
    }

    fn find_cycles(&mut self, chunks: &ChunkSource<'_>) {
        let pairs = self.feeds.iter().map(|feed| (feed.from, feed.to)).collect();
        for node in RegionGraph::new(self.nodes.len(), pairs).cyclic() {
            let error = chunks.damaged(self.nodes[node as usize].address, "its bases lead back to it");
            self.faults.insert(node, Arc::new(error));
        }
    }

    fn add_visits(&mut self, chunks: &ChunkSource<'_>, containers: &[usize], order: &Order<'_>) {
        let mut visits: BTreeMap<usize, Vec<u32>> = containers.iter().map(|at| (*at, Vec::new())).collect();
        for (node, region) in self.nodes.iter().enumerate() {
            visits.entry(region.address.container).or_default().push(index(node));
        }
        self.visits = visits.into_iter().map(|(container, nodes)| Visit { container, nodes }).collect();
        for visit in &mut self.visits {
            visit.nodes.sort_unstable_by_key(|node| self.nodes[*node as usize].address.region);
        }
        if !self.is_plain {
            let records = chunks.records();
            self.visits.sort_by_cached_key(|visit| order.rank(&records[visit.container]));
        }
    }
}

/// An index as the plan keeps it. A plan of more than 2^32 regions would take terabytes.
fn index(at: usize) -> u32 {
    u32::try_from(at).expect("a plan that fits into memory")
}

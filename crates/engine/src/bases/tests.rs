//! Walks along bases, held against naive ones.

use super::*;
use proptest::prelude::*;
use roaring::RoaringTreemap;
use siltstone_store::ChunkNumber;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::convert::Infallible;

const NODES: u32 = 8;

/// Which of a few nodes hang on which, by one step or more; the first index is the base.
fn reach(pairs: &BTreeSet<(u32, u32)>) -> [[bool; NODES as usize]; NODES as usize] {
    let mut reach = [[false; NODES as usize]; NODES as usize];
    for (from, to) in pairs {
        reach[*from as usize][*to as usize] = true;
    }
    for over in 0..NODES as usize {
        for from in 0..NODES as usize {
            for to in 0..NODES as usize {
                reach[from][to] |= reach[from][over] && reach[over][to];
            }
        }
    }
    reach
}

fn graph(count: usize, pairs: &[(u32, u32)]) -> RegionGraph {
    RegionGraph::new(count, pairs.to_vec())
}

#[test]
fn only_what_leads_back_is_cyclic() {
    assert_eq!(graph(4, &[(0, 1), (1, 2), (2, 3)]).cyclic(), [0u32; 0]);
    // 0 feeds the cycle 1-2, which feeds 3; 4 is on its own.
    assert_eq!(graph(5, &[(0, 1), (1, 2), (2, 1), (2, 3), (1, 2)]).cyclic(), [1, 2]);
    assert_eq!(graph(2, &[(1, 1)]).cyclic(), [1]);
    let chain: Vec<_> = (0..100_000).map(|at| (at, at + 1)).collect();
    assert!(graph(100_001, &chain).cyclic().is_empty());
}

#[test]
fn a_long_chain_is_walked_in_every_direction_without_recursion() {
    let length = 100_000u64;
    let mut graph = BaseGraph::default();
    (0..length).for_each(|number| graph.add([ChunkNumber(number)], &[ChunkNumber(number + 1)]));
    assert_eq!(graph.closure(&RoaringTreemap::from_iter([7])).len(), length + 1 - 7);
    assert_eq!(graph.roots(&[ChunkNumber(0)]).iter().collect::<Vec<_>>(), [length]);
    let mut lost = RoaringTreemap::from_iter([length]);
    graph.add_dependents(&mut lost);
    assert_eq!(lost.len(), length + 1);
    let below = |number| Ok::<_, Infallible>(Some(Vec::from_iter((number < length).then_some(number + 1))));
    assert_eq!(depth_of(0, &mut HashMap::new(), below), Ok(100_000));
}

#[test]
fn a_delta_without_chunks_is_nothing_and_numbers_out_of_deltas_stay_as_they_are() {
    let mut graph = BaseGraph::default();
    graph.add([], &[ChunkNumber(5)]);
    graph.add([ChunkNumber(1)], &[ChunkNumber(2)]);
    assert_eq!(graph.closure(&RoaringTreemap::from_iter([1, 9])).iter().collect::<Vec<_>>(), [1, 2, 9]);
    assert_eq!(graph.roots(&[ChunkNumber(1), ChunkNumber(9)]).iter().collect::<Vec<_>>(), [2, 9]);
    let mut lost = RoaringTreemap::from_iter([5]);
    graph.add_dependents(&mut lost);
    assert_eq!(lost.iter().collect::<Vec<_>>(), [5]);
}

#[test]
fn levels_only_rise_and_hold_each_number_once() {
    let mut levels = Vec::new();
    for (number, level) in [(1, 0), (2, 3), (3, 1), (4, 3), (3, 2), (2, 1)] {
        raise(&mut levels, ChunkNumber(number), level);
    }
    assert_eq!([1, 2, 3, 4, 5].map(|number| level_of(&levels, ChunkNumber(number))), [0, 3, 2, 3, 0]);
    assert_eq!(levels.iter().map(RoaringTreemap::len).sum::<u64>(), 3);
}

/// Calls that a descent made.
#[derive(Default)]
struct Heard {
    bases: BTreeMap<u32, Vec<u32>>,
    known: BTreeSet<u32>,
    left: Vec<u32>,
    cycles: BTreeSet<u32>,
    deepest: usize,
}

impl Descent for Heard {
    type Node = u32;
    type Base = u32;
    type Error = Infallible;

    fn node_of(base: &u32) -> u32 {
        *base
    }

    fn is_known(&mut self, node: u32) -> bool {
        self.known.contains(&node)
    }

    fn step(&mut self, step: Step<u32>) -> Result<(), Infallible> {
        match step {
            Step::Cycle(node) => drop(self.cycles.insert(node)),
            Step::Down(_, count) => self.deepest = self.deepest.max(count),
        }
        Ok(())
    }

    fn bases(&mut self, node: u32) -> Result<Vec<u32>, Infallible> {
        Ok(self.bases.get(&node).cloned().unwrap_or_default())
    }

    fn leave(&mut self, node: u32, _: Vec<u32>) {
        self.left.push(node);
    }
}

fn pairs() -> impl Strategy<Value = BTreeSet<(u32, u32)>> {
    prop::collection::btree_set((0..NODES, 0..NODES), 0..20)
}

/// The bases of each node.
fn bases(pairs: &BTreeSet<(u32, u32)>) -> BTreeMap<u32, Vec<u32>> {
    let mut bases: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (from, to) in pairs {
        bases.entry(*to).or_default().push(*from);
    }
    bases
}

/// The longest chain below a node, by trying all; a cycle has no end.
fn naive_depth(bases: &BTreeMap<u32, Vec<u32>>, node: u32, above: &[u32]) -> Option<u32> {
    if above.contains(&node) {
        return None;
    }
    let above = [above, &[node]].concat();
    let mut deepest = 0;
    for base in bases.get(&node).into_iter().flatten() {
        deepest = deepest.max(1 + naive_depth(bases, *base, &above)?);
    }
    Some(deepest)
}

proptest! {
    #[test]
    fn cyclic_is_what_reaches_a_cycle_both_ways(pairs in pairs()) {
        let reach = reach(&pairs);
        let on_cycle = |node: usize| reach[node][node];
        let expected: Vec<u32> = (0..NODES)
            .filter(|node| {
                let node = *node as usize;
                let from_one = on_cycle(node) || (0..8).any(|other| on_cycle(other) && reach[other][node]);
                let to_one = on_cycle(node) || (0..8).any(|other| on_cycle(other) && reach[node][other]);
                from_one && to_one
            })
            .collect();
        prop_assert_eq!(graph(8, &Vec::from_iter(pairs)).cyclic(), expected);
    }

    #[test]
    fn a_fault_reaches_all_that_hangs_on_it_and_nothing_else(
        pairs in pairs(),
        faults in prop::collection::btree_set(0..NODES, 0..3),
    ) {
        let reach = reach(&pairs);
        let failed = graph(8, &Vec::from_iter(pairs)).with_dependents(faults.iter().map(|at| (*at, *at)).collect());
        let fails = |node: &u32| {
            faults.contains(node) || faults.iter().any(|fault| reach[*fault as usize][*node as usize])
        };
        prop_assert_eq!(failed.keys().copied().collect::<Vec<_>>(), (0..NODES).filter(fails).collect::<Vec<_>>());
        for (node, fault) in failed {
            prop_assert!(node == fault || reach[fault as usize][node as usize], "{} does not hang on {}", node, fault);
        }
    }

    #[test]
    fn closures_and_roots_and_losses_are_those_of_single_steps(
        deltas in prop::collection::vec((1u64..4, prop::collection::btree_set(0u64..24, 1..4)), 0..8),
        start in prop::collection::btree_set(0u64..24, 0..4),
    ) {
        // The chunks of each delta follow those of the one before.
        let (mut graph, mut bases_of, mut next) = (BaseGraph::default(), BTreeMap::new(), 0);
        for (count, bases) in &deltas {
            let chunks = next..next + count;
            next += count;
            let numbers: Vec<ChunkNumber> = bases.iter().copied().map(ChunkNumber).collect();
            graph.add(chunks.clone().map(ChunkNumber), &numbers);
            bases_of.extend(chunks.map(|chunk| (chunk, bases.clone())));
        }
        prop_assert_eq!(graph.in_deltas(), &(0..next).collect::<RoaringTreemap>());
        let mut closure = start.clone();
        while let Some(more) =
            closure.iter().filter_map(|chunk| bases_of.get(chunk)).flatten().find(|base| !closure.contains(base))
        {
            closure.insert(*more);
        }
        let found = graph.closure(&start.iter().collect());
        prop_assert_eq!(found.iter().collect::<BTreeSet<_>>(), closure.clone());
        let roots = graph.roots(&start.iter().copied().map(ChunkNumber).collect::<Vec<_>>());
        closure.retain(|chunk| *chunk >= next);
        prop_assert_eq!(roots.iter().collect::<BTreeSet<_>>(), closure);
        let mut expected = start.clone();
        while let Some((more, _)) =
            bases_of.iter().find(|(chunk, bases)| !expected.contains(chunk) && !bases.is_disjoint(&expected))
        {
            expected.insert(*more);
        }
        let mut lost = start.iter().collect();
        graph.add_dependents(&mut lost);
        prop_assert_eq!(lost.iter().collect::<BTreeSet<_>>(), expected);
    }

    #[test]
    fn a_descent_leaves_all_that_is_below_once_and_bases_first(
        pairs in pairs(),
        known in prop::collection::btree_set(1..NODES, 0..3),
    ) {
        let bases = bases(&pairs);
        // Nothing is seen through what is known.
        let open: BTreeSet<_> = pairs.iter().copied().filter(|(_, to)| !known.contains(to)).collect();
        let reach = reach(&open);
        let mut heard = Heard { bases: bases.clone(), known: known.clone(), ..Heard::default() };
        let Ok(()) = descend(&mut heard, 0);
        let below = (0..NODES).filter(|node| *node == 0 || (reach[*node as usize][0] && !known.contains(node)));
        prop_assert_eq!(heard.left.iter().copied().collect::<BTreeSet<_>>(), below.collect::<BTreeSet<_>>());
        prop_assert_eq!(heard.left.iter().collect::<BTreeSet<_>>().len(), heard.left.len());
        prop_assert_eq!(heard.left.last(), Some(&0));
        let place = |node: &u32| heard.left.iter().position(|left| left == node);
        for node in &heard.left {
            for base in bases.get(node).into_iter().flatten().filter(|base| !known.contains(base)) {
                let is_cyclic = reach[*node as usize][*base as usize] || node == base;
                prop_assert!(is_cyclic || place(base) < place(node), "{} after {}", base, node);
            }
        }
        let is_any_cyclic = heard.left.iter().any(|node| reach[*node as usize][*node as usize]);
        prop_assert_eq!(is_any_cyclic, !heard.cycles.is_empty());
        prop_assert!(heard.cycles.iter().all(|node| reach[*node as usize][*node as usize]));
        prop_assert!((1..=NODES as usize).contains(&heard.deepest));
    }

    #[test]
    fn depths_are_those_of_the_longest_chain_whatever_was_found_before(
        pairs in pairs(),
        order in prop::collection::vec(0..NODES, 1..8),
    ) {
        let bases = bases(&pairs);
        let mut found = HashMap::new();
        for node in order {
            let below = |node| Ok::<_, Infallible>(Some(bases.get(&node).cloned().unwrap_or_default()));
            let Ok(depth) = depth_of(node, &mut found, below);
            match naive_depth(&bases, node, &[]) {
                Some(expected) => prop_assert_eq!(depth, expected),
                None => prop_assert_eq!(depth, BOTTOMLESS),
            }
        }
    }
}

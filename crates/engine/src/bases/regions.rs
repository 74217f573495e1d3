//! Region deltas alone, numbered from 0: which lead back to themselves, and what fails with one.

use std::collections::BTreeMap;

/// Which regions hang on which: pairs of a base's region and one that needs it, sorted, each once.
#[derive(Debug, Default)]
pub(crate) struct RegionGraph {
    count: usize,
    pairs: Vec<(u32, u32)>,
}

impl RegionGraph {
    /// A graph of `count` regions and these pairs, in any order.
    pub(crate) fn new(count: usize, mut pairs: Vec<(u32, u32)>) -> Self {
        pairs.sort_unstable();
        pairs.dedup();
        Self { count, pairs }
    }

    /// Returns the regions on cycles (and those between two cycles), ascending.
    ///
    /// # Complexity
    /// Linear in regions and pairs, without recursion.
    pub(crate) fn cyclic(&self) -> Vec<u32> {
        // What is not downstream of a cycle goes first, then what no cycle is downstream of.
        let after = self.not_reached();
        let within = self.pairs.iter().filter(|(from, to)| after[*from as usize] && after[*to as usize]);
        let backwards = Self::new(self.count, within.map(|(from, to)| (*to, *from)).collect());
        let before = backwards.not_reached();
        let is_cyclic = after.iter().zip(&before).map(|(after, before)| *after && *before);
        (0u32..).zip(is_cyclic).filter(|(_, is_cyclic)| *is_cyclic).map(|(region, _)| region).collect()
    }

    /// Returns these regions and all that hang on them, each with the reason where it begins. Of several reasons for
    /// one region the last that is met counts.
    pub(crate) fn with_dependents<R: Clone>(&self, faults: BTreeMap<u32, R>) -> BTreeMap<u32, R> {
        let mut pending: Vec<(u32, R)> = faults.into_iter().collect();
        let mut failed = BTreeMap::new();
        while let Some((region, reason)) = pending.pop() {
            if failed.insert(region, reason.clone()).is_none() {
                pending.extend(self.dependents(region).map(|dependent| (dependent, reason.clone())));
            }
        }
        failed
    }

    /// The regions that hang on this one by one step.
    fn dependents(&self, region: u32) -> impl Iterator<Item = u32> {
        let start = self.pairs.partition_point(|(from, _)| *from < region);
        self.pairs[start..].iter().take_while(move |(from, _)| *from == region).map(|(_, to)| *to)
    }

    /// Tells which regions cannot be put in an order in which every pair leads forward.
    fn not_reached(&self) -> Vec<bool> {
        let mut to_come = vec![0u32; self.count];
        for (_, to) in &self.pairs {
            to_come[*to as usize] += 1;
        }
        let mut free: Vec<u32> =
            (0u32..).zip(&to_come).filter(|(_, count)| **count == 0).map(|(region, _)| region).collect();
        while let Some(region) = free.pop() {
            for to in self.dependents(region) {
                to_come[to as usize] -= 1;
                if to_come[to as usize] == 0 {
                    free.push(to);
                }
            }
        }
        to_come.into_iter().map(|count| count > 0).collect()
    }
}

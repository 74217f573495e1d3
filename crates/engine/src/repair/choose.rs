//! Which container answers for which chunk.
//!
//! A chunk may lie in several containers: one that was rewritten or superseded can still be there. A whole copy is
//! preferred to a delta, and a newer container to an older one. A delta counts once all its bases do, so that by
//! construction no chunk hangs on itself.

use super::gather::Holding;
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerRecord, RegionEntry};
use siltstone_store::{ChunkNumber, ChunkRun};

/// The chunks that can be had, by the container that answers for each.
#[derive(Debug)]
pub(super) struct Answers {
    /// By the place of the container among the holdings.
    pub(super) by_holding: Vec<RoaringTreemap>,
    /// All of them.
    pub(super) available: RoaringTreemap,
}

/// Chooses for every chunk.
///
/// # Complexity
/// One pass over all indexes, and one over the deltas left for each step of the longest chain.
pub(super) fn choose(holdings: &[Holding]) -> Answers {
    let mut answers =
        Answers { by_holding: vec![RoaringTreemap::new(); holdings.len()], available: RoaringTreemap::new() };
    let mut deltas = Vec::new();
    for (at, holding) in holdings.iter().enumerate().rev() {
        for region in holding.reader.index().regions() {
            if region.bases.is_empty() { answers.take(at, region) } else { deltas.push((at, region)) }
        }
    }
    loop {
        let before = deltas.len();
        deltas.retain(|(at, region)| {
            let is_complete = region.bases.iter().all(|base| answers.available.contains(base.0));
            if is_complete {
                answers.take(*at, region);
            }
            !is_complete
        });
        if deltas.len() == before {
            return answers;
        }
    }
}

impl Answers {
    fn take(&mut self, at: usize, region: &RegionEntry) {
        for chunk in &region.chunks {
            if self.available.insert(chunk.number.0) {
                self.by_holding[at].insert(chunk.number.0);
            }
        }
    }

    /// The records of the containers that answer for anything.
    pub(super) fn records(&self, holdings: &[Holding]) -> Vec<ContainerRecord> {
        let both = holdings.iter().zip(&self.by_holding).filter(|(_, numbers)| !numbers.is_empty());
        both.map(|(holding, numbers)| ContainerRecord { chunks: runs(numbers), ..holding.reader.record().clone() })
            .collect()
    }
}

/// The numbers as ascending runs.
pub(super) fn runs(numbers: &RoaringTreemap) -> Vec<ChunkRun> {
    let mut runs: Vec<ChunkRun> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some(run) if run.range().end().checked_add(1) == Some(number) => run.count += 1,
            _ => runs.push(ChunkRun { first: ChunkNumber(number), count: 1 }),
        }
    }
    runs
}

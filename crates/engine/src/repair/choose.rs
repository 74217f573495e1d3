//! Which container answers for which chunk.
//!
//! A chunk may lie in several containers: one that was rewritten or superseded can still be there. A whole copy is
//! preferred to a delta, and a newer container to an older one. A delta counts once all its bases do, so that by
//! construction no chunk hangs on itself.

use super::gather::Holding;
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerRecord, RegionEntry};

/// The chunks that can be had, by the container that answers for each.
#[derive(Debug)]
pub(super) struct Answers {
    /// By the place of the container among the holdings.
    pub(super) by_holding: Vec<RoaringTreemap>,
    /// All of them, and those that are borrowed.
    pub(super) available: RoaringTreemap,
}

/// Chooses for every chunk. What is `borrowed` needs no container; a whole copy of the series' own is preferred to it.
///
/// # Complexity
/// One pass over all indexes, and one over the deltas left for each step of the longest chain.
pub(super) fn choose(holdings: &[Holding], borrowed: &RoaringTreemap) -> Answers {
    let mut answers =
        Answers { by_holding: vec![RoaringTreemap::new(); holdings.len()], available: RoaringTreemap::new() };
    let mut deltas = Vec::new();
    for (at, holding) in holdings.iter().enumerate().rev() {
        for region in holding.reader.index().regions() {
            if region.bases.is_empty() { answers.take(at, region) } else { deltas.push((at, region)) }
        }
    }
    answers.available |= borrowed;
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
        let record = |(holding, numbers): (&Holding, &RoaringTreemap)| {
            let mut record = holding.reader.record().clone();
            record.set_numbers(holding.reader.index(), numbers);
            record
        };
        both.map(record).collect()
    }
}

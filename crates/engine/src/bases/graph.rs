//! Chunks in deltas and what they hang on, for walks from many chunks at once.

use super::regions::RegionGraph;
use roaring::RoaringTreemap;
use siltstone_store::ChunkNumber;
use siltstone_store::manifest::{Manifest, NecessaryChunks};
use std::collections::HashMap;

/// Deltas, their chunks and their bases. Some 40 bytes for each chunk, 8 for each base.
#[derive(Debug, Default)]
pub(crate) struct BaseGraph {
    /// Which delta a chunk is part of.
    delta_of: HashMap<u64, u32>,
    /// Numbers of all chunks in `delta_of`.
    in_deltas: RoaringTreemap,
    /// The bases of each delta.
    bases: Vec<Box<[ChunkNumber]>>,
}

impl BaseGraph {
    /// Adds a delta of these chunks, each of which is in one delta only. One without chunks is nothing.
    pub(crate) fn add(&mut self, chunks: impl IntoIterator<Item = ChunkNumber>, bases: &[ChunkNumber]) {
        let delta = u32::try_from(self.bases.len()).expect("a graph that fits into memory");
        let mut is_any = false;
        for chunk in chunks {
            is_any = true;
            self.delta_of.insert(chunk.0, delta);
            self.in_deltas.insert(chunk.0);
        }
        if is_any {
            self.bases.push(bases.into());
        }
    }

    /// The chunks that are in deltas.
    pub(crate) fn in_deltas(&self) -> &RoaringTreemap {
        &self.in_deltas
    }

    /// Returns the numbers with all their bases, transitively.
    pub(crate) fn closure(&self, numbers: &RoaringTreemap) -> RoaringTreemap {
        let mut all = numbers.clone();
        let mut is_seen = vec![false; self.bases.len()];
        let mut pending: Vec<u64> = (numbers & &self.in_deltas).iter().collect();
        while let Some(number) = pending.pop() {
            let Some(delta) = self.delta_of.get(&number).map(|delta| *delta as usize) else { continue };
            if std::mem::replace(&mut is_seen[delta], true) {
                continue;
            }
            pending.extend(self.bases[delta].iter().map(|base| base.0).filter(|base| all.insert(*base)));
        }
        all
    }

    /// Returns the ends of all chains from these chunks: of what they are or hang on, that which is in no delta.
    pub(crate) fn roots(&self, chunks: &[ChunkNumber]) -> RoaringTreemap {
        let (mut roots, mut seen) = (RoaringTreemap::new(), RoaringTreemap::new());
        let mut pending = chunks.to_vec();
        while let Some(chunk) = pending.pop() {
            match self.delta_of.get(&chunk.0) {
                _ if !seen.insert(chunk.0) => {}
                Some(delta) => pending.extend_from_slice(&self.bases[*delta as usize]),
                None => {
                    roots.insert(chunk.0);
                }
            }
        }
        roots
    }

    /// Returns what each snapshot of `manifest` needs itself, whatever those around it need.
    pub(crate) fn needs(&self, manifest: &Manifest) -> NecessaryChunks {
        let (mut needs, mut before) = (NecessaryChunks::default(), RoaringTreemap::new());
        manifest.for_each_direct(|_, direct| {
            let now = self.closure(direct);
            needs.push_after(&before, &now);
            before = now;
        });
        needs
    }

    /// Adds the chunks that cannot be decoded without one of `lost`, transitively.
    pub(crate) fn add_dependents(&self, lost: &mut RoaringTreemap) {
        let deltas = || (0u32..).zip(&self.bases);
        let pairs = deltas().flat_map(|(delta, bases)| {
            bases.iter().filter_map(move |base| Some((*self.delta_of.get(&base.0)?, delta)))
        });
        let regions = RegionGraph::new(self.bases.len(), pairs.collect());
        let is_hit = |bases: &[ChunkNumber]| bases.iter().any(|base| lost.contains(base.0));
        let hit = deltas().filter(|(_, bases)| is_hit(bases)).map(|(delta, _)| (delta, ())).collect();
        let failing = regions.with_dependents(hit);
        lost.extend(self.delta_of.iter().filter(|(_, delta)| failing.contains_key(delta)).map(|(chunk, _)| *chunk));
    }
}

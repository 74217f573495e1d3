//! Which chunks are needed for these: their bases, and the bases of those.

use super::{Address, ChunkSource};
use crate::repack::numbers_of;
use roaring::RoaringTreemap;
use siltstone_store::manifest::{Manifest, NecessaryChunks};
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What all deltas of a series hang on, out of the indexes, for looking at many sets of chunks.
#[derive(Debug, Default)]
pub(crate) struct Hangings {
    /// Which delta a chunk is part of.
    delta_of: HashMap<u64, usize>,
    /// The same chunks.
    in_deltas: RoaringTreemap,
    /// The bases of each delta.
    bases: Vec<Vec<ChunkNumber>>,
}

impl Hangings {
    /// The numbers with all their bases, transitively.
    pub(crate) fn closure(&self, numbers: &RoaringTreemap) -> RoaringTreemap {
        let mut all = numbers.clone();
        let mut is_seen = vec![false; self.bases.len()];
        let mut pending: Vec<u64> = (numbers & &self.in_deltas).iter().collect();
        while let Some(number) = pending.pop() {
            let Some(delta) = self.delta_of.get(&number) else { continue };
            if std::mem::replace(&mut is_seen[*delta], true) {
                continue;
            }
            pending.extend(self.bases[*delta].iter().map(|base| base.0).filter(|base| all.insert(*base)));
        }
        all
    }

    /// What each snapshot of `manifest` needs itself, whatever those around it need.
    pub(crate) fn needs(&self, manifest: &Manifest) -> NecessaryChunks {
        let (mut needs, mut before) = (NecessaryChunks::default(), RoaringTreemap::new());
        manifest.for_each_direct(|_, direct| {
            let now = self.closure(direct);
            needs.push_after(&before, &now);
            before = now;
        });
        needs
    }
}

impl ChunkSource<'_> {
    /// The numbers with all their bases, transitively: a region that holds one of them needs all of its bases. Reads
    /// indexes only, and only of containers with deltas.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`] for a number that no container answers for; what reading the indexes gives.
    ///
    /// # Complexity
    /// Every number and base once; an index is opened again for each generation of bases that leads into it.
    pub(crate) fn closure(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let mut all = numbers.clone();
        let mut pending: BTreeMap<usize, Vec<ChunkNumber>> = BTreeMap::new();
        for number in numbers {
            let number = ChunkNumber(number);
            pending.entry(self.container_of(number)?).or_default().push(number);
        }
        let mut seen: HashSet<Address> = HashSet::new();
        while let Some((container, numbers)) = pending.pop_first() {
            if !self.record(container).has_deltas {
                continue;
            }
            let reader = self.reader(container)?;
            for number in numbers {
                let place = reader.index().find(number).ok_or(StoreError::MissingChunk { number })?;
                if !seen.insert(Address { container, region: place.region }) {
                    continue;
                }
                let entry = reader.index().regions().get(place.region);
                for base in entry.iter().flat_map(|entry| &entry.bases) {
                    if all.insert(base.0) {
                        pending.entry(self.container_of(*base)?).or_default().push(*base);
                    }
                }
            }
        }
        Ok(all)
    }

    /// What all deltas hang on.
    ///
    /// # Errors
    /// What reading the indexes gives.
    ///
    /// # Complexity
    /// Each index of a container with deltas is read once; what they list is in memory, some 40 bytes for each chunk in
    /// a delta.
    pub(crate) fn hangings(&self) -> Result<Hangings, StoreError> {
        let mut hangings = Hangings::default();
        for (at, record) in self.records().iter().enumerate().filter(|(_, record)| record.has_deltas) {
            let answered = numbers_of(record);
            let reader = self.reader(at)?;
            for entry in reader.index().regions().iter().filter(|entry| !entry.bases.is_empty()) {
                let chunks =
                    entry.chunks.iter().map(|chunk| chunk.number.0).filter(|number| answered.contains(*number));
                let before = hangings.delta_of.len();
                hangings.delta_of.extend(chunks.map(|number| (number, hangings.bases.len())));
                if hangings.delta_of.len() > before {
                    hangings.bases.push(entry.bases.clone());
                }
            }
        }
        hangings.in_deltas = hangings.delta_of.keys().copied().collect();
        Ok(hangings)
    }

    /// The bases of the regions that hold these numbers, not theirs in turn.
    ///
    /// # Errors
    /// As [`closure`](Self::closure).
    pub(crate) fn bases(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let mut bases = RoaringTreemap::new();
        for (at, record) in self.records().iter().enumerate().filter(|(_, record)| record.has_deltas) {
            if record.chunks.iter().all(|run| numbers.range_cardinality(run.range()) == 0) {
                continue;
            }
            for entry in self.reader(at)?.index().regions() {
                if entry.chunks.iter().any(|chunk| numbers.contains(chunk.number.0)) {
                    bases.extend(entry.bases.iter().map(|base| base.0));
                }
            }
        }
        Ok(bases)
    }

    /// Adds the chunks that cannot be decoded without one of `lost`, transitively. Containers whose index cannot be
    /// read are passed over.
    ///
    /// # Complexity
    /// All indexes of containers with deltas, and what they list in memory: for after a loss.
    pub(crate) fn add_dependents(&self, lost: &mut RoaringTreemap) -> Result<(), StoreError> {
        let mut regions = Vec::new();
        for (at, record) in self.records().iter().enumerate().filter(|(_, record)| record.has_deltas) {
            if record.chunks.iter().all(|run| lost.range_cardinality(run.range()) == run.count) {
                continue;
            }
            match self.reader(at) {
                Ok(reader) => regions.extend(
                    reader.index().regions().iter().filter(|entry| !entry.bases.is_empty()).map(|entry| {
                        let answered = |number: &u64| record.chunks.iter().any(|run| run.range().contains(number));
                        let chunks: Vec<u64> =
                            entry.chunks.iter().map(|chunk| chunk.number.0).filter(answered).collect();
                        (entry.bases.clone(), chunks)
                    }),
                ),
                Err(error) if error.is_damage() => {}
                Err(error) => return Err(error),
            }
        }
        loop {
            let before = regions.len();
            regions.retain(|(bases, chunks)| {
                let is_lost = bases.iter().any(|base| lost.contains(base.0));
                if is_lost {
                    lost.extend(chunks.iter().copied());
                }
                !is_lost
            });
            if regions.len() == before {
                return Ok(());
            }
        }
    }
}

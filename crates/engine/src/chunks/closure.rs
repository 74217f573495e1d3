//! Bases as containers' indexes give them: which chunks are needed for these, and the graph of all.

use super::{Address, ChunkSource};
use crate::bases::{BaseGraph, Pending};
use roaring::RoaringTreemap;
use siltstone_store::container::{ContainerReader, ContainerRecord};
use siltstone_store::{ChunkNumber, ChunkRun, StoreError};
use std::collections::HashSet;

impl ChunkSource<'_> {
    /// The numbers with all their bases, transitively: a region that holds one of them needs all of its bases. Reads
    /// indexes only, and only of containers with deltas. Bases of what is borrowed are the lender's to keep.
    ///
    /// # Errors
    /// [`StoreError::MissingChunk`] for a number that no container answers for; what reading the indexes gives.
    ///
    /// # Complexity
    /// Every number beside deltas and every base once; an index is opened again for each generation of bases that leads
    /// into it.
    pub(crate) fn closure(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let mut all = numbers.clone();
        let mut pending = Pending::new();
        let borrowed = self.borrowed();
        let own = numbers - &borrowed;
        for run in ChunkRun::runs_of(&own) {
            self.answered(run)?;
        }
        // Only these can have bases: the numbers of a large snapshot, one by one, would take much memory.
        let mut beside_deltas = RoaringTreemap::new();
        for (_, record) in self.own_records().iter().filter(|(_, record)| record.has_deltas) {
            beside_deltas |= record.numbers() & &own;
        }
        for number in beside_deltas.iter().map(ChunkNumber) {
            pending.push(self.container_of(number)?, number);
        }
        let mut seen: HashSet<Address> = HashSet::new();
        while let Some((container, numbers)) = pending.pop() {
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
                    if all.insert(base.0) && !borrowed.contains(base.0) {
                        pending.push(self.container_of(*base)?, *base);
                    }
                }
            }
        }
        Ok(all)
    }

    /// The closure of numbers of which a live snapshot needs each. Where no container with deltas answers for any, they
    /// have no bases, and none is looked for.
    ///
    /// # Errors
    /// As [`closure`](Self::closure).
    pub(crate) fn closure_of_live(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let touches = |record: &ContainerRecord| record.has_deltas && !record.numbers().is_disjoint(numbers);
        let is_any = self.own_records().iter().any(|(_, record)| touches(record));
        if is_any { self.closure(numbers) } else { Ok(numbers.clone()) }
    }

    /// All deltas of the series, and what they hang on.
    ///
    /// # Errors
    /// Errors of reading the indexes.
    ///
    /// # Complexity
    /// Each index of a container with deltas is read once; what they list is in memory.
    pub(crate) fn base_graph(&self) -> Result<BaseGraph, StoreError> {
        let mut graph = BaseGraph::default();
        for (at, record) in self.own_records().into_iter().filter(|(_, record)| record.has_deltas) {
            add_deltas(&mut graph, &record, &*self.reader(at)?);
        }
        Ok(graph)
    }

    /// The bases of the regions that hold these numbers, not theirs in turn.
    ///
    /// # Errors
    /// As [`closure`](Self::closure).
    pub(crate) fn bases(&self, numbers: &RoaringTreemap) -> Result<RoaringTreemap, StoreError> {
        let mut bases = RoaringTreemap::new();
        for (at, record) in self.own_records().into_iter().filter(|(_, record)| record.has_deltas) {
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
    /// read are passed over. With a key that opens none, all chunks count that lie beside deltas.
    ///
    /// # Complexity
    /// All indexes of containers with deltas, and what they list in memory: for after a loss.
    pub(crate) fn add_dependents(&self, lost: &mut RoaringTreemap) -> Result<(), StoreError> {
        if !self.repository.may_read() {
            let records = self.own_records();
            let with_deltas = records.iter().filter(|(_, record)| record.has_deltas);
            *lost |= with_deltas.fold(RoaringTreemap::new(), |all, (_, record)| all | record.numbers());
            return Ok(());
        }
        let mut graph = BaseGraph::default();
        for (at, record) in self.own_records().into_iter().filter(|(_, record)| record.has_deltas) {
            if record.chunks.iter().all(|run| lost.range_cardinality(run.range()) == run.count) {
                continue;
            }
            if let Some(reader) = self.sound_reader(at)? {
                add_deltas(&mut graph, &record, &reader);
            }
        }
        graph.add_dependents(lost);
        Ok(())
    }
}

/// Adds the deltas of a container, with the chunks that it answers for.
fn add_deltas(graph: &mut BaseGraph, record: &ContainerRecord, reader: &ContainerReader) {
    let answered = record.numbers();
    for entry in reader.index().regions().iter().filter(|entry| !entry.bases.is_empty()) {
        let numbers = entry.chunks.iter().map(|chunk| chunk.number);
        graph.add(numbers.filter(|number| answered.contains(number.0)), &entry.bases);
    }
}

//! Checks how region deltas hang together: every base is in some container, and no region is, over others, its own
//! base.
//!
//! Indexes only, and only of containers with deltas. Memory: 8 bytes for each pair of a region delta and a region delta
//! it needs.

use super::series::{ContainerDamage, Cost, SeriesCheck, answered};
use crate::bases::RegionGraph;
use crate::chunks::{Address, ChunkSource};
use siltstone_store::StoreError;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// The region deltas of a series.
#[derive(Default)]
struct Regions {
    nodes: Vec<Address>,
    known: HashMap<Address, u32>,
    /// A region that others need, and one that needs it.
    pairs: Vec<(u32, u32)>,
    faults: BTreeMap<u32, Arc<StoreError>>,
}

impl SeriesCheck<'_> {
    /// Damage of containers whose deltas cannot be decoded because of what indexes say. `open` tells whose index is
    /// sound.
    pub(super) fn check_bases(&self, chunks: &ChunkSource<'_>, open: &[bool]) -> Vec<ContainerDamage> {
        let mut regions = Regions::default();
        let with_deltas =
            self.manifest.containers.iter().enumerate().filter(|(at, record)| record.has_deltas && open[*at]);
        for (container, record) in with_deltas {
            let Ok(reader) = chunks.reader(container) else { continue };
            for (region, entry) in reader.index().regions().iter().enumerate() {
                let is_needed = !answered(record, entry.chunks.iter().map(|chunk| chunk.number)).is_empty();
                if is_needed && !entry.bases.is_empty() {
                    regions.add(chunks, Address { container, region });
                }
            }
        }
        self.unreadable(chunks, regions.unreadable(chunks))
    }

    /// One damage for each container that holds some of these regions.
    pub(super) fn unreadable(
        &self,
        chunks: &ChunkSource<'_>,
        regions: impl IntoIterator<Item = (Address, Arc<StoreError>)>,
    ) -> Vec<ContainerDamage> {
        let mut by_container: BTreeMap<usize, Vec<(usize, Arc<StoreError>)>> = BTreeMap::new();
        for (address, error) in regions {
            by_container.entry(address.container).or_default().push((address.region, error));
        }
        let damage_of = |(container, mut regions): (usize, Vec<(usize, Arc<StoreError>)>)| {
            regions.sort_by_key(|(region, _)| *region);
            let record = chunks.record(container);
            let reader = chunks.reader(container).ok();
            let entries = reader.as_ref().map_or(&[][..], |reader| reader.index().regions());
            let lost = regions.iter().filter_map(|(region, _)| entries.get(*region));
            let lost = answered(&record, lost.flat_map(|entry| &entry.chunks).map(|chunk| chunk.number));
            let (first, error) =
                regions.first().map(|(region, error)| (*region, error.to_string())).unwrap_or_default();
            let what = match regions.len() {
                1 => format!("region {first} cannot be decoded for want of its bases: {error}"),
                many => {
                    format!("{many} regions, the first {first}, cannot be decoded for want of their bases: {error}")
                }
            };
            ContainerDamage { cost: Cost::Hangs, ..self.damaged(&record, what, lost) }
        };
        by_container.into_iter().map(damage_of).collect()
    }
}

impl Regions {
    fn node(&mut self, address: Address) -> u32 {
        *self.known.entry(address).or_insert_with(|| {
            self.nodes.push(address);
            u32::try_from(self.nodes.len() - 1).expect("regions of one series")
        })
    }

    fn add(&mut self, chunks: &ChunkSource<'_>, address: Address) {
        let node = self.node(address);
        match chunks.bases_of(address) {
            Ok(bases) => {
                let mut from: Vec<Address> = bases.into_iter().map(|base| base.address).collect();
                from.sort_unstable();
                from.dedup();
                from.retain(|address| chunks.record(address.container).has_deltas);
                for address in from {
                    let from = self.node(address);
                    self.pairs.push((from, node));
                }
            }
            Err(error) => {
                self.faults.insert(node, Arc::new(error));
            }
        }
    }

    /// Regions that cannot be decoded, each with the reason where it begins.
    fn unreadable(mut self, chunks: &ChunkSource<'_>) -> BTreeMap<Address, Arc<StoreError>> {
        let graph = RegionGraph::new(self.nodes.len(), self.pairs);
        for node in graph.cyclic() {
            let error = chunks.damaged(self.nodes[node as usize], "its bases lead back to it");
            self.faults.insert(node, Arc::new(error));
        }
        let failed = graph.with_dependents(self.faults);
        failed.into_iter().map(|(node, error)| (self.nodes[node as usize], error)).collect()
    }
}

//! Decoding one region on demand, and before it whatever its bases lie in.
//!
//! ```text
//! plan     indexes only: from the region wanted down to plain regions (or decoded ones still at hand), deepest first
//! execute  each planned region once: decode, keep the chunks that later ones need until their last use
//! ```
//! Those are not compared with their fingerprints: whoever takes chunks of the region wanted does that with them.
//!
//! Both go by lists, not by calls, so a chain may be hundreds of regions long. What is kept while it runs are the base
//! chunks of regions whose other bases are still to come: in chains one region's, at most those along one path of the
//! plan.

use super::{Address, ChunkSource, PlainRegion};
use crate::bases::{CHAIN_REGIONS_MAX, Descent, Step, descend};
use siltstone_store::container::ChunkPlace;
use siltstone_store::region::RegionDecoder;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::HashMap;
use std::sync::Arc;

/// A base chunk, and where it lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BasePlace {
    pub(crate) address: Address,
    pub(crate) place: ChunkPlace,
}

/// Result of decoding that may cost too much.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Resolved<T> {
    /// It was decoded.
    Had(T),
    /// It was not: so many regions would have to be decoded for it.
    TooMany(usize),
}

/// Regions to be decoded, each after all its bases.
#[derive(Default)]
struct RegionPlan {
    steps: Vec<(Address, Vec<BasePlace>)>,
    /// Regions that need not be decoded.
    at_hand: HashMap<Address, PlainRegion>,
}

impl ChunkSource<'_> {
    /// The bases of a region, in its order, and where they lie.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] of the region if one is in no container.
    pub(crate) fn bases_of(&self, address: Address) -> Result<Vec<BasePlace>, StoreError> {
        let reader = self.reader(address.container)?;
        let Some(entry) = reader.index().regions().get(address.region) else {
            return Err(self.damaged(address, "the container has no such region"));
        };
        let place_of = |number: &ChunkNumber| match self.place_of(*number) {
            Ok((container, place)) => Ok(BasePlace { address: Address { container, region: place.region }, place }),
            Err(StoreError::MissingChunk { number }) => {
                Err(self.damaged(address, format!("its base, chunk {number}, is in no container of the series")))
            }
            Err(error) => Err(error),
        };
        entry.bases.iter().map(place_of).collect()
    }

    /// Tells whether a region hangs on others.
    pub(crate) fn has_bases(&self, address: Address) -> Result<bool, StoreError> {
        let reader = self.reader(address.container)?;
        Ok(reader.index().regions().get(address.region).is_some_and(|entry| !entry.bases.is_empty()))
    }

    /// Returns how many bytes a region has when it is decoded.
    pub(crate) fn plain_bytes(&self, address: Address) -> Result<usize, StoreError> {
        let reader = self.reader(address.container)?;
        Ok(reader.index().regions().get(address.region).map_or(0, |entry| entry.plain_bytes as usize))
    }

    /// Decodes a region that is not at hand.
    pub(super) fn resolve(&self, wanted: Address) -> Result<PlainRegion, StoreError> {
        self.decode(self.plan_region(wanted)?, wanted)
    }

    /// Decodes a region that is not at hand, unless more than `regions_max` have to be decoded for it, itself included.
    pub(super) fn resolve_within(
        &self,
        wanted: Address,
        regions_max: usize,
    ) -> Result<Resolved<PlainRegion>, StoreError> {
        let plan = self.plan_region(wanted)?;
        match plan.steps.len() {
            regions if regions > regions_max => Ok(Resolved::TooMany(regions)),
            _ => self.decode(plan, wanted).map(Resolved::Had),
        }
    }

    fn decode(&self, plan: RegionPlan, wanted: Address) -> Result<PlainRegion, StoreError> {
        let mut uses: HashMap<ChunkNumber, usize> = HashMap::new();
        let mut needed: HashMap<Address, Vec<ChunkPlace>> = HashMap::new();
        for base in plan.steps.iter().flat_map(|(_, bases)| bases) {
            let count = uses.entry(base.place.chunk.number).or_default();
            *count += 1;
            if *count == 1 {
                needed.entry(base.address).or_default().push(base.place);
            }
        }
        let mut kept: HashMap<ChunkNumber, Arc<[u8]>> = HashMap::new();
        let keep = |kept: &mut HashMap<_, _>, address: Address, plain: &[u8]| -> Result<(), StoreError> {
            for place in needed.get(&address).into_iter().flatten() {
                let bytes = place.of(plain).ok_or_else(|| self.damaged(address, "a chunk ends beyond it"))?;
                kept.insert(place.chunk.number, Arc::from(bytes));
            }
            Ok(())
        };
        for (address, plain) in &plan.at_hand {
            keep(&mut kept, *address, plain)?;
        }
        drop(plan.at_hand);
        let mut decoder = RegionDecoder::new();
        let mut last = None;
        for (address, bases) in &plan.steps {
            let missing = |number| self.damaged(*address, format!("its base, chunk {number}, was not decoded"));
            let bytes = |base: &BasePlace| {
                let number = base.place.chunk.number;
                kept.get(&number).cloned().ok_or_else(|| missing(number))
            };
            let bytes = bases.iter().map(bytes).collect::<Result<Vec<Arc<[u8]>>, _>>()?;
            let slices: Vec<&[u8]> = bytes.iter().map(AsRef::as_ref).collect();
            let reader = self.reader(address.container)?;
            let encoded = self.encoded(&reader, address.region)?;
            let part = format!("region {}", address.region);
            let memory = self.regions.spare(usize::try_from(encoded.plain_bytes).unwrap_or(usize::MAX));
            let plain = encoded.decode_into(memory, &mut decoder, reader.object_name(), &part, &slices)?;
            let plain = Arc::new(plain);
            for base in bases {
                let number = base.place.chunk.number;
                if let Some(count) = uses.get_mut(&number) {
                    *count -= 1;
                    if *count == 0 {
                        kept.remove(&number);
                    }
                }
            }
            keep(&mut kept, *address, &plain)?;
            self.keep_region(*address, plain.clone());
            last = Some(plain);
        }
        last.ok_or_else(|| self.damaged(wanted, "it was not decoded"))
    }

    /// Lists the regions that have to be decoded, deepest first; the region wanted comes last.
    fn plan_region(&self, wanted: Address) -> Result<RegionPlan, StoreError> {
        let mut planning = Planning { chunks: self, plan: RegionPlan::default() };
        descend(&mut planning, wanted)?;
        Ok(planning.plan)
    }
}

/// A walk down from the region wanted, to plain regions or those at hand.
struct Planning<'p, 'r> {
    chunks: &'p ChunkSource<'r>,
    plan: RegionPlan,
}

impl Descent for Planning<'_, '_> {
    type Node = Address;
    type Base = BasePlace;
    type Error = StoreError;

    fn node_of(base: &BasePlace) -> Address {
        base.address
    }

    fn is_known(&mut self, address: Address) -> bool {
        if self.plan.at_hand.contains_key(&address) {
            return true;
        }
        let plain = self.chunks.region_at_hand(address);
        plain.map(|plain| self.plan.at_hand.insert(address, plain)).is_some()
    }

    fn step(&mut self, step: Step<Address>) -> Result<(), StoreError> {
        let most = u64::from(CHAIN_REGIONS_MAX);
        match step {
            Step::Cycle(address) => Err(self.chunks.damaged(address, "its bases lead back to it")),
            Step::Down(address, regions) if regions as u64 > most => {
                let object = self.chunks.object_name(address.container);
                Err(StoreError::limit(&object, "the length of a chain of bases", regions as u64, most))
            }
            Step::Down(..) => Ok(()),
        }
    }

    fn bases(&mut self, address: Address) -> Result<Vec<BasePlace>, StoreError> {
        self.chunks.bases_of(address)
    }

    fn leave(&mut self, address: Address, bases: Vec<BasePlace>) {
        self.plan.steps.push((address, bases));
    }
}

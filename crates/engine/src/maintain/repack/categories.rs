//! Containers in the making, one for each class of chunks that there is enough of.
//!
//! A class whose regions make less than [`SMALL_BYTES`] gets no container of its own: it shares one with the classes
//! next to it, so that the number of objects stays bounded, and what a reader takes in vain stays below what another
//! request would cost. Under exact layout (threshold 0) nothing is shared.

use crate::pack::{ContainerSink, Packed, begin, hand_over};
use siltstone_store::container::{ContainerBuilder, ContainerKind};
use siltstone_store::region::EncodedRegion;
use siltstone_store::repository::Repository;
use siltstone_store::{ChunkNumber, SeriesId, StoreError};
use std::collections::BTreeMap;

/// Below this a class shares its container: about what a disk reads in the time that finding another object takes.
pub(crate) const SMALL_BYTES: usize = 256 << 10;

/// Bytes of containers in the making at the same time, beside those of a full one. It shapes the repository's bytes.
const OPEN_BYTES_BESIDE: u64 = 48 << 20;

/// Class of chunks that are laid together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Class {
    /// Whose chunks.
    pub(crate) kind: ContainerKind,
    /// True if the last snapshot needs them.
    pub(crate) is_open: bool,
    /// Since which snapshots they are needed: one class of rows.
    pub(crate) rows: u32,
}

/// Regions of one class that are not yet many enough, and their container once they are.
#[derive(Default)]
struct Stack {
    waiting: Vec<(EncodedRegion, Vec<ChunkNumber>)>,
    waiting_bytes: usize,
    builder: Option<ContainerBuilder>,
}

/// Fills containers by class.
pub(crate) struct Categories<'a> {
    repository: &'a Repository,
    series: SeriesId,
    sink: &'a dyn ContainerSink,
    is_exact: bool,
    open_bytes_max: u64,
    stacks: BTreeMap<Class, Stack>,
    packed: Packed,
}

impl<'a> Categories<'a> {
    /// Containers for one series; classes share none if `is_exact`.
    pub(crate) fn new(
        repository: &'a Repository,
        series: SeriesId,
        sink: &'a dyn ContainerSink,
        is_exact: bool,
    ) -> Self {
        let open_bytes_max = repository.container_bytes(ContainerKind::Data) + OPEN_BYTES_BESIDE;
        Self { repository, series, sink, is_exact, open_bytes_max, stacks: BTreeMap::new(), packed: Packed::default() }
    }

    /// Lays a region with those of its class. Another container answers for its `superseded` chunks.
    pub(crate) fn push(
        &mut self,
        class: Class,
        region: EncodedRegion,
        superseded: Vec<ChunkNumber>,
    ) -> Result<(), StoreError> {
        let stack = self.stacks.entry(class).or_default();
        if stack.builder.is_none() {
            stack.waiting_bytes += region.payload.len();
            stack.waiting.push((region, superseded));
            if !self.is_exact && stack.waiting_bytes < SMALL_BYTES {
                return Ok(());
            }
            let regions = std::mem::take(&mut stack.waiting);
            return regions.into_iter().try_for_each(|(region, superseded)| self.add(class, &region, superseded));
        }
        self.add(class, &region, superseded)
    }

    /// Seals a region into the container of its class; a full one is handed over first.
    fn add(&mut self, class: Class, region: &EncodedRegion, superseded: Vec<ChunkNumber>) -> Result<(), StoreError> {
        let stack = self.stacks.entry(class).or_default();
        if let Some(full) = stack.builder.take_if(|builder| !builder.fits(region)) {
            self.packed.containers.push(hand_over(full, self.sink)?);
        }
        let builder = match &mut stack.builder {
            Some(builder) => builder,
            none => none.insert(begin(self.repository, self.series, self.sink, class.kind)?),
        };
        builder.supersede(superseded);
        builder.push(region)?;
        self.bound_what_is_open()
    }

    /// Hands the fullest containers over as long as those in the making have too many bytes together.
    fn bound_what_is_open(&mut self) -> Result<(), StoreError> {
        let bytes = |stack: &Stack| stack.builder.as_ref().map_or(0, ContainerBuilder::planned_bytes);
        while self.stacks.values().map(bytes).sum::<u64>() > self.open_bytes_max {
            let fullest = self.stacks.values_mut().max_by_key(|stack| bytes(stack));
            let Some(builder) = fullest.and_then(|stack| stack.builder.take()) else { break };
            self.packed.containers.push(hand_over(builder, self.sink)?);
        }
        Ok(())
    }

    /// Hands over what is open; small classes share containers, in their order: those of one kind that are open, and
    /// those that are not.
    pub(crate) fn finish(mut self) -> Result<Packed, StoreError> {
        for (class, stack) in std::mem::take(&mut self.stacks) {
            if let Some(builder) = stack.builder {
                self.packed.containers.push(hand_over(builder, self.sink)?);
            }
            let shared = Class { rows: u32::MAX, ..class };
            for (region, superseded) in stack.waiting {
                self.add(shared, &region, superseded)?;
            }
        }
        for stack in std::mem::take(&mut self.stacks).into_values() {
            if let Some(builder) = stack.builder {
                self.packed.containers.push(hand_over(builder, self.sink)?);
            }
        }
        Ok(self.packed)
    }
}

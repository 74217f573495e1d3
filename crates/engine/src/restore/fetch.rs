//! Fetching what a batch needs: its placements sorted by region, decoded with all bases, each container visited once.
//!
//! Each result of the workers comes back as a `decode::DecodeVisitor` call per region and is placed at once. Regions
//! whose container has vanished (a migration or a `forget` beside us) are gathered, and planned again once the batch is
//! done, by the newest manifest: chunk numbers do not move.

use super::batch::{Batch, Placement};
use super::options::RestoreOptions;
use super::place::Placing;
use crate::chunks::ChunkSource;
use crate::decode::{DecodeSettings, DecodeVisitor, Decoding, Order, Plan, PlannedRegion, Tally, Worker};
use crate::fs::{Problem, ProblemKind};
use crate::parallel::{Pool, Ticket, lock};
use crate::resources::shares::{RestoreShares, restore_spare_bytes};
use crate::{EngineError, Resources};
use siltstone_store::region::ChunkEntry;
use siltstone_store::{ContainerId, StoreError};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// Times that the remainder of a batch is planned anew because containers went on vanishing.
const REPLANS_MAX: u32 = 8;

/// Fetching of batches, and what that took.
pub(super) struct Fetching<'m> {
    pub(super) placing: &'m Placing<'m>,
    pub(super) order: Order<'m>,
    pub(super) settings: DecodeSettings,
    pub(super) workers: usize,
    pub(super) tally: Arc<Tally>,
    needed: Mutex<HashSet<ContainerId>>,
}

impl<'m> Fetching<'m> {
    /// Fetching within these resources. What waits for bases beyond them goes to the target, which has the room.
    pub(super) fn new(
        placing: &'m Placing<'m>,
        order: Order<'m>,
        resources: &Resources,
        options: &RestoreOptions,
    ) -> Self {
        let settings = settings(resources, options);
        Self { placing, order, settings, workers: resources.fetches, tally: Arc::default(), needed: Mutex::default() }
    }

    /// Different containers that anything was read of.
    pub(super) fn containers_needed(&self) -> u64 {
        lock(&self.needed).len() as u64
    }
}

/// Bounds of the decoding within these resources.
pub(super) fn settings(resources: &Resources, options: &RestoreOptions) -> DecodeSettings {
    let RestoreShares { waiting_bytes, read_bytes_max, .. } = resources.restore_shares();
    DecodeSettings {
        gap_bytes: options.gap_bytes,
        read_bytes_max,
        waiting_bytes_max: waiting_bytes,
        // Each chunk is when it is placed.
        verifies_bases: false,
        spill_folder: options.target.clone(),
    }
}

/// A batch being worked on.
pub(super) struct Running<'env> {
    decoding: Arc<Decoding<'env, PlacingVisitor<'env>>>,
    tickets: Vec<Ticket<()>>,
}

/// Places what is decoded for a batch.
pub(super) struct PlacingVisitor<'env> {
    fetching: &'env Fetching<'env>,
    chunks: Arc<ChunkSource<'env>>,
    batch: Arc<Batch>,
    /// Placements of each region wanted.
    ranges: Vec<Range<usize>>,
    /// Regions whose container, or a base's, has vanished: their placements, and what was said.
    vanished: Mutex<Vec<(Range<usize>, Arc<StoreError>)>>,
}

impl<'env> Fetching<'env> {
    /// Hands a batch to the workers. Its files that are planned to their end count as such from here on. What it leaves
    /// of its memory, and `spare_bytes`, may be taken by what waits for bases.
    pub(super) fn start(
        &'env self,
        pool: &Pool<'env, Worker>,
        chunks: &Arc<ChunkSource<'env>>,
        batch: Batch,
        spare_bytes: u64,
    ) -> Running<'env> {
        self.placing.end_files(&batch);
        let spare_bytes = spare_bytes + batch.unused_bytes();
        self.decode(pool, chunks, batch, spare_bytes)
    }

    fn decode(
        &'env self,
        pool: &Pool<'env, Worker>,
        chunks: &Arc<ChunkSource<'env>>,
        mut batch: Batch,
        spare_bytes: u64,
    ) -> Running<'env> {
        batch.placements.sort_unstable_by_key(|placement| {
            (placement.container, placement.place.region, placement.place.offset, placement.file, placement.file_offset)
        });
        let (mut wanted, mut ranges, mut start) = (Vec::new(), Vec::new(), 0);
        for group in batch.placements.chunk_by(|a, b| a.address() == b.address()) {
            wanted.extend(group.first().map(Placement::address));
            ranges.push(start..start + group.len());
            start += group.len();
        }
        let plan = Plan::new(chunks, &wanted, &self.order);
        {
            let records = chunks.records();
            let mut needed = lock(&self.needed);
            needed.extend(plan.containers().filter_map(|at| records.get(at)).map(|record| record.id));
        }
        let visitor = PlacingVisitor {
            fetching: self,
            chunks: chunks.clone(),
            batch: Arc::new(batch),
            ranges,
            vanished: Mutex::default(),
        };
        let waiting_bytes_max = self.settings.waiting_bytes_max + restore_spare_bytes(spare_bytes);
        let (settings, tally) = (DecodeSettings { waiting_bytes_max, ..self.settings.clone() }, self.tally.clone());
        let decoding = Arc::new(Decoding::new(chunks.clone(), plan, settings, tally, visitor));
        let tickets = decoding.start(pool, self.workers);
        Running { decoding, tickets }
    }

    /// Waits for a batch. What had vanished is planned again with `reload`'s chunks, as long as it has newer ones.
    pub(super) fn finish(
        &'env self,
        mut running: Running<'env>,
        pool: &Pool<'env, Worker>,
        reload: &mut dyn FnMut() -> Option<Arc<ChunkSource<'env>>>,
    ) -> Result<Arc<Batch>, EngineError> {
        let whole = running.decoding.visitor().batch.clone();
        let mut sequence = None;
        for attempt in 0.. {
            running.decoding.wait(running.tickets)?;
            if self.placing.observer.is_cancelled() {
                return Err(EngineError::Interrupted);
            }
            let visitor = running.decoding.visitor();
            let vanished = std::mem::take(&mut *lock(&visitor.vanished));
            if vanished.is_empty() {
                break;
            }
            // Once at least: the source may have moved on by itself since this was planned.
            let newer = if attempt < REPLANS_MAX { reload() } else { None };
            let newer = newer.filter(|newer| sequence.replace(newer.sequence()) != Some(newer.sequence()));
            let Some(chunks) = newer else {
                for (range, error) in vanished {
                    self.placing.write_placements(
                        &visitor.batch,
                        &visitor.batch.placements[range],
                        &visitor.chunks,
                        Err(&error),
                    );
                }
                break;
            };
            let mut moved = Vec::new();
            for placement in vanished.into_iter().flat_map(|(range, _)| &visitor.batch.placements[range]) {
                match chunks.place_of(placement.number) {
                    Ok((container, place)) => {
                        let container = u32::try_from(container).unwrap_or(u32::MAX);
                        moved.push(Placement { container, place, ..*placement });
                    }
                    Err(error) => self.placing.write_placements(&visitor.batch, &[*placement], &chunks, Err(&error)),
                }
            }
            running = self.decode(pool, &chunks, visitor.batch.with_placements(moved), 0);
        }
        Ok(whole)
    }
}

impl DecodeVisitor for PlacingVisitor<'_> {
    fn decoded(&self, region: PlannedRegion, _: &[ChunkEntry], plain: &[u8]) {
        if let Some(range) = self.ranges.get(region.node) {
            let placements = &self.batch.placements[range.clone()];
            self.fetching.placing.write_placements(&self.batch, placements, &self.chunks, Ok(plain));
        }
    }

    fn failed(&self, region: PlannedRegion, _: PlannedRegion, error: &Arc<StoreError>) {
        let Some(range) = self.ranges.get(region.node) else { return };
        if error.is_not_found() {
            let mut vanished = lock(&self.vanished);
            vanished.push((range.clone(), error.clone()));
        } else {
            let placements = &self.batch.placements[range.clone()];
            self.fetching.placing.write_placements(&self.batch, placements, &self.chunks, Err(error));
        }
    }

    fn spill_failed(&self, error: &StoreError) {
        let object = self.fetching.settings.spill_folder.display().to_string();
        self.fetching.placing.report(&Problem::object(&object, ProblemKind::NotWritten, error));
    }

    fn is_cancelled(&self) -> bool {
        self.fetching.placing.observer.is_cancelled()
    }
}

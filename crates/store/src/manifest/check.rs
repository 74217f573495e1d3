//! Checks that the parts of a manifest agree with each other: `check` asks it first, and a writer before it
//! commits.

use super::Manifest;
use crate::{error::StoreError, ids::ChunkNumber};
use roaring::RoaringTreemap;
use std::collections::BTreeSet;

impl Manifest {
    /// All contradictions within the manifest; none in a sound one.
    ///
    /// - each number is needed in one stretch of the series (the interval property); differences are minimal;
    /// - what a catalog refers to is among what its snapshot needs;
    /// - no two containers are the same, none is written under a lease yet to come, no number is in two of them;
    /// - each live number is in a container or borrowed, not both, and below the next number to be given;
    /// - what others have borrowed, or may have, is in a container;
    /// - the lease was granted by this manifest or one before.
    ///
    /// # Complexity
    /// Linear in the bitmaps; memory of a few of them.
    pub fn faults(&self) -> Vec<StoreError> {
        let mut faults: Vec<StoreError> = self.interval_fault().into_iter().collect();
        let (stored, imported) = (self.check_containers(&mut faults), self.imported());
        if let Some(number) = (&stored & &imported).min() {
            faults.push(self.fault(format!("chunk {} is borrowed and in a container, too", ChunkNumber(number))));
        }
        let needed = (self.live() - &imported) | &self.lent | &self.unclaimed;
        if let Some(number) = (needed - &stored).min() {
            faults.push(StoreError::MissingChunk { number: ChunkNumber(number) });
        }
        if self.lease.as_ref().is_some_and(|lease| lease.number > self.sequence) {
            faults.push(self.fault("its lease was granted by a later manifest".to_owned()));
        }
        if let Some(number) = self.number_out_of_range(&(stored | imported | self.live())) {
            faults.push(self.fault(format!("chunk {number} is in use but was never given out")));
        }
        faults
    }

    /// Checks that each number lives in one stretch of the series.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the first number that does not.
    pub fn verify_intervals(&self) -> Result<(), StoreError> {
        self.interval_fault().map_or(Ok(()), Err)
    }

    fn interval_fault(&self) -> Option<StoreError> {
        let fault = self.necessary.first_fault().or_else(|| self.direct.first_fault());
        let fault = fault.or_else(|| self.necessary.first_return());
        let (position, number, fault) = fault.or_else(|| self.necessary.first_lack(&self.direct))?;
        let snapshot = self.snapshots.get(position).map(|snapshot| snapshot.id.short()).unwrap_or_default();
        Some(self.fault(format!("snapshot {snapshot}: chunk {} {fault}", ChunkNumber(number))))
    }

    /// All numbers that containers hold.
    fn check_containers(&self, faults: &mut Vec<StoreError>) -> RoaringTreemap {
        let mut ids = BTreeSet::new();
        let mut stored = RoaringTreemap::new();
        for container in &self.containers {
            if !ids.insert(container.id) {
                faults.push(self.fault(format!("container {} is listed twice", container.id)));
            }
            if container.id.lease > self.sequence {
                faults.push(self.fault(format!("container {} was written under a later lease", container.id)));
            }
            let fresh: u64 = container.chunks.iter().map(|run| stored.insert_range(run.range())).sum();
            if fresh != container.chunk_count() {
                faults.push(self.fault(format!("container {} holds chunks of another container", container.id)));
            }
        }
        stored
    }

    /// The least number in use that was never given out.
    fn number_out_of_range(&self, used: &RoaringTreemap) -> Option<ChunkNumber> {
        let mut beyond = used.clone();
        beyond.remove_range(..self.next_data.0);
        beyond.remove_range(ChunkNumber::METADATA_FIRST.0..self.next_metadata.0);
        beyond.min().map(ChunkNumber)
    }

    fn fault(&self, reason: String) -> StoreError {
        StoreError::damaged(&self.object_name(), "manifest", reason)
    }
}

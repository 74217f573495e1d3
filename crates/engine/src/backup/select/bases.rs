//! The bases of a segment.

use super::Selector;
use siltstone_similar::region::Offer;
use siltstone_store::{ChunkNumber, StoreError};
use std::collections::BTreeSet;
use std::sync::Arc;

impl Selector<'_, '_> {
    /// Reads what the chunks of a segment may be encoded against; what cannot be read is never offered again.
    ///
    /// # Errors
    /// A worker went away.
    pub(super) fn read_bases(&mut self, offers: &[Vec<Offer<ChunkNumber>>]) -> Result<(), StoreError> {
        let numbers: BTreeSet<ChunkNumber> = offers.iter().flatten().map(|offer| offer.number).collect();
        let (found, failures) = self.gatherer.chunks(&numbers)?;
        if self.observer.is_cancelled() {
            return Ok(());
        }
        let missing: Vec<ChunkNumber> = numbers.into_iter().filter(|number| !found.contains_key(number)).collect();
        if let Some(number) = missing.first().copied() {
            let unknown = || Arc::new(StoreError::MissingChunk { number });
            self.leave_alone(missing, &failures.into_iter().next().unwrap_or_else(unknown));
        }
        self.filling.bases = found;
        Ok(())
    }
}

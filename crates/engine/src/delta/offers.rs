//! Offers: chunks that another may be encoded against.

use siltstone_similar::region::Offer;
use siltstone_store::ChunkNumber;

/// Bases looked up for each chunk, by sketch and by place.
pub(crate) const CANDIDATES: usize = 2;

/// Offers a chunk of so many bytes that has so many features in common with the one it is offered to.
pub(crate) fn offer(number: ChunkNumber, bytes: usize, matches: usize) -> Offer<ChunkNumber> {
    Offer { number, bytes, weight: u32::try_from(matches).unwrap_or(u32::MAX) }
}

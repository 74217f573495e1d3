//! Bases among the new chunks themselves: those before them in the same segment, whose bytes are at hand.
//!
//! They serve what resembles nothing in the last snapshot, above all in a first backup: the same code in several
//! bundles, the same page in several files. Only what stays whole becomes a base here, so that such a delta is one step
//! deep.

use super::Selector;
use super::known::BYTES_PER_CHUNK_MAX;
use crate::backup::flow::Segment;
use crate::decode::Bytes;
use crate::delta::{CANDIDATES, SimilarIndex, offer};
use siltstone_similar::region::Offer;
use siltstone_similar::sketch::Sketch;
use siltstone_store::ChunkNumber;
use siltstone_store::container::ContainerKind;
use std::collections::HashMap;
use std::ops::Range;

/// Features in common from which on a chunk is offered as a base, of 12. Of those with fewer, most deltas are rejected,
/// and what was laid apart for them compresses worse.
const MATCHES_LEAST: usize = 3;

impl Selector<'_, '_> {
    /// Offers chunks that have no offers yet those of the segment before them that they promise to be like.
    pub(super) fn offer_intra_segment(
        &mut self,
        segment: &Segment,
        sketches: &[Option<Sketch>],
        offers: &mut [Vec<Offer<ChunkNumber>>],
    ) {
        if !self.known.forward.intra_segment {
            return;
        }
        let mut similar = SimilarIndex::within(segment.chunks.len() as u64 * BYTES_PER_CHUNK_MAX);
        let mut whole: HashMap<u64, Range<usize>> = HashMap::new();
        let mut end = 0;
        for ((chunk, sketch), offers) in segment.chunks.iter().zip(sketches).zip(offers) {
            let start = end;
            end += chunk.length as usize;
            let (Some(sketch), true) = (sketch, offers.is_empty()) else {
                continue;
            };
            let kind = ContainerKind::of(chunk.number);
            let found = similar.candidates(kind, Some(sketch), CANDIDATES);
            for (number, matches) in found.filter(|(_, matches)| *matches >= MATCHES_LEAST) {
                let Some(range) = whole.get(&number.0) else { continue };
                offers.push(offer(number, range.len(), matches));
                self.filling
                    .bases
                    .entry(number)
                    .or_insert_with(|| Bytes::copy_from_slice(&segment.plain[range.clone()]));
            }
            if offers.is_empty() {
                similar.insert(chunk.number.0, sketch);
                whole.insert(chunk.number.0, start..end);
            }
        }
    }
}

//! Whether a region is kept as a delta.

use siltstone_similar::benefit::Benefit;
use siltstone_store::region::{Base, ChunkEntry, Codec, EncodedRegion, RegionEncoder};
use siltstone_store::{ChunkNumber, StoreError};
use std::sync::Arc;

/// A delta of at most this part of its text is kept unasked: hardly anything compresses so well that it would not pay.
const CLEAR_PART: usize = 10;

/// A region against its bases, or whole where that does not pay: see [`Benefit`]. As the paper has it, a delta pays if
/// it is smaller than its text.
pub(super) fn encode_offered(
    encoder: &mut RegionEncoder,
    bases: &[(ChunkNumber, Arc<[u8]>)],
    chunks: Vec<ChunkEntry>,
    plain: &[u8],
    is_paper: bool,
) -> Result<EncodedRegion, StoreError> {
    if bases.is_empty() {
        return EncodedRegion::encode(encoder, chunks, plain);
    }
    let bases: Vec<_> = bases.iter().map(|(number, bytes)| Base { number: *number, bytes }).collect();
    let delta = EncodedRegion::encode_against(encoder, &bases, chunks, plain)?;
    let is_smaller = delta.codec == Codec::Zstd;
    if is_smaller && (is_paper || delta.payload.len() * CLEAR_PART <= plain.len()) {
        return Ok(delta);
    }
    let whole = EncodedRegion::encode(encoder, delta.chunks.clone(), plain)?;
    let pays = is_smaller && Benefit::DEFAULT.accepts(delta.payload.len() as u64, whole.payload.len() as u64);
    Ok(if pays { delta } else { whole })
}

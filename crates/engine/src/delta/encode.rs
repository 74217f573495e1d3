//! Encoding a region against its bases.

use super::keep::KeepRule;
use crate::decode::Bytes;
use siltstone_store::region::{Base, ChunkEntry, Codec, EncodedRegion, RegionEncoder};
use siltstone_store::{ChunkNumber, StoreError};

/// Encodes a region against its bases, or whole where the rule does not keep a delta.
pub(crate) fn encode_region(
    encoder: &mut RegionEncoder,
    bases: &[(ChunkNumber, Bytes)],
    chunks: Vec<ChunkEntry>,
    plain: &[u8],
    rule: KeepRule,
) -> Result<EncodedRegion, StoreError> {
    if bases.is_empty() {
        return EncodedRegion::encode(encoder, chunks, plain);
    }
    let bases: Vec<_> = bases.iter().map(|(number, bytes)| Base { number: *number, bytes }).collect();
    let delta = EncodedRegion::encode_against(encoder, &bases, chunks, plain)?;
    let is_smaller = delta.codec == Codec::Zstd;
    if is_smaller && rule.is_clear(delta.payload.len(), plain.len()) {
        return Ok(delta);
    }
    let whole = EncodedRegion::encode(encoder, delta.chunks.clone(), plain)?;
    let is_kept = is_smaller && rule.accepts(delta.payload.len(), whole.payload.len());
    Ok(if is_kept { delta } else { whole })
}

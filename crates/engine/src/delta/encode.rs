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
    members: &[&[u8]],
    rule: KeepRule,
) -> Result<EncodedRegion, StoreError> {
    if bases.is_empty() {
        return EncodedRegion::encode_members(encoder, chunks, members);
    }
    let bases: Vec<_> = bases.iter().map(|(number, bytes)| Base { number: *number, bytes }).collect();
    let delta = EncodedRegion::encode_against(encoder, &bases, chunks, members)?;
    let is_smaller = delta.codec == Codec::Zstd;
    if is_smaller && rule.is_clear(delta.payload.len(), delta.plain_bytes as usize) {
        return Ok(delta);
    }
    let whole = EncodedRegion::encode_members(encoder, delta.chunks.clone(), members)?;
    let is_kept = is_smaller && rule.accepts(delta.payload.len(), whole.payload.len());
    Ok(if is_kept { delta } else { whole })
}

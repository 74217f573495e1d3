//! Encoding and restoring: pure functions of bytes.

use super::layout::{Layout, SUM_BYTES};
use crate::error::StoreError;
use crate::storage::ObjectName;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateDecoder, HighRateEncoder, RateDecoder, RateEncoder};
use std::borrow::Cow;

/// A parity object of this layout but for its header.
pub(super) fn encode(layout: Layout, container: &[u8]) -> Result<Vec<u8>, StoreError> {
    let mut encoder =
        HighRateEncoder::new(layout.shards(), layout.parity(), layout.shard(), DefaultEngine::new(), None)
            .map_err(refused)?;
    let mut sums = Vec::new();
    for shard in 0..layout.shards() {
        let shard = shard_of(layout, container, shard);
        sums.extend_from_slice(&sum_of(&shard));
        encoder.add_original_shard(&shard).map_err(refused)?;
    }
    let encoded = encoder.encode().map_err(refused)?;
    let mut shards = Vec::new();
    for shard in encoded.recovery_iter() {
        sums.extend_from_slice(&sum_of(shard));
        shards.extend_from_slice(shard);
    }
    let layout = layout.encode();
    Ok([layout.as_slice(), &sums, &shards, &layout].concat())
}

/// The container's bytes, from what is left of it and of its parity object. They have to be verified.
///
/// # Errors
/// [`StoreError::Damaged`] of the parity object if too much is lost.
pub(super) fn mend(name: &ObjectName, container: &[u8], object: &[u8]) -> Result<Vec<u8>, StoreError> {
    let layout = Layout::find(name, object)?;
    let container = container.get(..length(layout)).unwrap_or(container);
    let is_sound = |shard: usize, bytes: &[u8]| object.get(Layout::sum_at(shard)) == Some(sum_of(bytes).as_slice());
    let of_container = |shard: usize| shard_of(layout, container, shard);
    let lost: Vec<bool> = (0..layout.shards()).map(|shard| !is_sound(shard, &of_container(shard))).collect();
    let wanted = lost.iter().filter(|lost| **lost).count();
    let parity = |shard: usize| object.get(layout.parity_at(shard)).map(|bytes| (shard, bytes));
    let parity: Vec<(usize, &[u8])> = (0..layout.parity())
        .filter_map(parity)
        .filter(|(shard, bytes)| is_sound(layout.shards() + shard, bytes))
        .take(wanted)
        .collect();
    if parity.len() < wanted {
        let left = parity.len();
        let reason = format!("{wanted} shards of its container are lost, and it restores {left} at most");
        return Err(StoreError::damaged(name, "shards", reason));
    }
    let mut whole = container.to_vec();
    whole.resize(layout.shards() * layout.shard(), 0);
    if wanted > 0 {
        restore(layout, &lost, &parity, &mut whole)?;
    }
    whole.truncate(length(layout));
    Ok(whole)
}

fn length(layout: Layout) -> usize {
    usize::try_from(layout.container_bytes).unwrap_or(usize::MAX)
}

/// Writes the lost shards of `whole`.
fn restore(layout: Layout, lost: &[bool], parity: &[(usize, &[u8])], whole: &mut [u8]) -> Result<(), StoreError> {
    let mut decoder =
        HighRateDecoder::new(layout.shards(), layout.parity(), layout.shard(), DefaultEngine::new(), None)
            .map_err(refused)?;
    for ((at, shard), lost) in whole.chunks(layout.shard()).enumerate().zip(lost) {
        if !lost {
            decoder.add_original_shard(at, shard).map_err(refused)?;
        }
    }
    for (at, shard) in parity {
        decoder.add_recovery_shard(*at, shard).map_err(refused)?;
    }
    let decoded = decoder.decode().map_err(refused)?;
    for (at, shard) in whole.chunks_mut(layout.shard()).enumerate() {
        if let Some(restored) = decoded.restored_original(at) {
            shard.copy_from_slice(restored);
        }
    }
    Ok(())
}

/// A shard of the container, filled up with zeros; all zeros beyond its end.
fn shard_of(layout: Layout, container: &[u8], shard: usize) -> Cow<'_, [u8]> {
    let start = (shard * layout.shard()).min(container.len());
    let left = container.get(start..).unwrap_or_default();
    match left.get(..layout.shard()) {
        Some(whole) => Cow::Borrowed(whole),
        None => {
            let mut filled = left.to_vec();
            filled.resize(layout.shard(), 0);
            Cow::Owned(filled)
        }
    }
}

fn sum_of(shard: &[u8]) -> [u8; SUM_BYTES] {
    let mut sum = [0; SUM_BYTES];
    blake3::Hasher::new().update(shard).finalize_xof().fill(&mut sum);
    sum
}

fn refused(error: reed_solomon_simd::Error) -> StoreError {
    StoreError::Machine { operation: "encoding or decoding parity", reason: error.to_string() }
}

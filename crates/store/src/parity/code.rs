//! Encoding and restoring: pure functions of bytes.

use super::layout::{Layout, SUM_BYTES};
use crate::error::StoreError;
use crate::storage::ObjectName;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateDecoder, HighRateEncoder, RateDecoder, RateEncoder};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Bytes of every shard that are encoded at once. The code treats each place in the shards by itself; so narrow a strip
/// of them stays in a processor's cache.
const STRIP_BYTES: usize = 512;
/// Shards whose checksums are one piece of work.
const SUMMED_SHARDS: usize = 256;

/// A parity object of this layout but for its header, made by so many threads.
pub(super) fn encode(layout: Layout, container: &[u8], threads: usize) -> Result<Vec<u8>, StoreError> {
    let strips = layout.shard().div_ceil(STRIP_BYTES);
    let tasks = strips + layout.shards().div_ceil(SUMMED_SHARDS);
    let mut done = on_threads(threads, tasks, |encoder, task| match task.checked_sub(strips) {
        None => encode_strip(encoder, layout, container, task * STRIP_BYTES),
        Some(block) => {
            let shards = block * SUMMED_SHARDS..((block + 1) * SUMMED_SHARDS).min(layout.shards());
            Ok(shards.flat_map(|shard| sum_of(&shard_of(layout, container, shard))).collect())
        }
    })?;
    let mut sums = done.split_off(strips).concat();
    let mut shards = Vec::with_capacity(layout.parity() * layout.shard());
    for shard in 0..layout.parity() {
        let start = shards.len();
        // A strip has its part of the one parity shard after that of the other.
        for strip in &done {
            let width = strip.len() / layout.parity();
            shards.extend_from_slice(strip.get(shard * width..(shard + 1) * width).unwrap_or_default());
        }
        sums.extend_from_slice(&sum_of(shards.get(start..).unwrap_or_default()));
    }
    let layout = layout.encode();
    Ok([layout.as_slice(), &sums, &shards, &layout].concat())
}

/// The strip of all parity shards from this byte of each on, one after the other.
fn encode_strip(
    encoder: &mut Option<HighRateEncoder<DefaultEngine>>,
    layout: Layout,
    container: &[u8],
    start: usize,
) -> Result<Vec<u8>, StoreError> {
    let strip = start..(start + STRIP_BYTES).min(layout.shard());
    let (shards, parity, bytes) = (layout.shards(), layout.parity(), strip.len());
    let encoder = match encoder {
        Some(encoder) => {
            encoder.reset(shards, parity, bytes).map_err(refused)?;
            encoder
        }
        None => {
            encoder.insert(HighRateEncoder::new(shards, parity, bytes, DefaultEngine::new(), None).map_err(refused)?)
        }
    };
    for shard in 0..shards {
        let shard = shard_of(layout, container, shard);
        encoder.add_original_shard(shard.get(strip.clone()).unwrap_or_default()).map_err(refused)?;
    }
    Ok(encoder.encode().map_err(refused)?.recovery_iter().flatten().copied().collect())
}

/// Results of all tasks in order, done by this thread and the others that the system gives, each with a state of its
/// own.
fn on_threads<S: Default, R: Send>(
    threads: usize,
    tasks: usize,
    work: impl Fn(&mut S, usize) -> Result<R, StoreError> + Sync,
) -> Result<Vec<R>, StoreError> {
    let (next, done) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work_off = || {
        let mut state = S::default();
        while let Some(task) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|task| *task < tasks) {
            let result = work(&mut state, task);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(task, result);
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.min(tasks) {
            if thread::Builder::new().name("parity".to_owned()).spawn_scoped(scope, work_off).is_err() {
                break;
            }
        }
        work_off();
    });
    done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
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

//! Costs of storing a chunk: whole, or as a delta. Each delta is encoded once and remembered, because most policies
//! choose the same.

use anyhow::Result;
use siltstone_lab::sketch::parallel::in_parallel;
use siltstone_lab::sketch::versions::Versions;
use siltstone_similar::region::{Level, RegionEncoder};
use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Bytes of whole chunks that are compressed together.
const REGION_BYTES: usize = 256 << 10;
/// The zstd level of everything here.
pub(super) const LEVEL: i32 = 3;
/// Locks, so that threads seldom meet.
const SHARDS: usize = 64;

/// Bytes of every chunk, each way.
pub(super) struct Costs<'v, 'd> {
    versions: &'v Versions<'d>,
    plain: Vec<u64>,
    deltas: Vec<Mutex<HashMap<(usize, usize), u64>>>,
}

impl<'v, 'd> Costs<'v, 'd> {
    /// Compresses every chunk with its neighbours.
    pub(super) fn of(versions: &'v Versions<'d>) -> Result<Self> {
        let regions = versions.regions(REGION_BYTES);
        let sizes = in_parallel(regions.len(), |region| {
            let members: Vec<&[u8]> = regions[region].clone().map(|number| versions.bytes(number)).collect();
            (encoded(&[], &members), members.iter().map(|member| member.len() as u64).sum::<u64>())
        });
        let mut plain = Vec::with_capacity(versions.chunks.len());
        for (region, (size, whole)) in regions.into_iter().zip(sizes) {
            let size = size?;
            plain.extend(region.map(|number| (versions.bytes(number).len() as u64 * size).div_ceil(whole)));
        }
        let deltas = std::iter::repeat_with(Mutex::default).take(SHARDS).collect();
        Ok(Self { versions, plain, deltas })
    }

    /// A chunk's share of the region it is compressed in.
    pub(super) fn plain(&self, number: usize) -> u64 {
        self.plain[number]
    }

    /// All chunks whole.
    pub(super) fn plain_total(&self) -> u64 {
        self.plain.iter().sum()
    }

    /// A chunk encoded against another, alone.
    pub(super) fn delta(&self, base: usize, target: usize) -> Result<u64> {
        let shard = &self.deltas[(base ^ target) % SHARDS];
        if let Some(size) = shard.lock().unwrap_or_else(PoisonError::into_inner).get(&(base, target)) {
            return Ok(*size);
        }
        let size = encoded(&[self.versions.bytes(base)], &[self.versions.bytes(target)])?;
        shard.lock().unwrap_or_else(PoisonError::into_inner).insert((base, target), size);
        Ok(size)
    }
}

/// The size of the members encoded against the bases.
fn encoded(bases: &[&[u8]], members: &[&[u8]]) -> Result<u64> {
    thread_local!(static ENCODER: RefCell<Option<RegionEncoder>> = const { RefCell::new(None) });
    ENCODER.with_borrow_mut(|encoder| {
        let encoder = match encoder {
            Some(encoder) => encoder,
            None => encoder.insert(RegionEncoder::new(Level::Zstd(LEVEL))?),
        };
        let mut payload = Vec::new();
        encoder.encode(bases, members, &mut payload);
        Ok(payload.len() as u64)
    })
}

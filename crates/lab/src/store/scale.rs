//! Sizes of the parts of a store, in the proportions that MeGA (ATC 2022, sections 2.2, 4.2 and 5.1) has them for
//! versions of 2.7 to 16 GB: containers of 4 MiB, segments of five containers' size, a cache of an eighth of a version.
//! Smaller versions get smaller parts, since a version that fits into a few containers has no locality to lose, and a
//! cache that holds them all hides it.

use crate::settings::Settings;
use siltstone_store::container::CONTAINER_BYTES_DEFAULT;
use siltstone_store::region::{DATA_REGION_BYTES_TARGET, ZSTD_LEVEL_DEFAULT};

/// Bytes of a container as the paper has it.
const CONTAINER_BYTES_MAX: u64 = 4 << 20;
/// Below, what lies together no longer compresses.
const CONTAINER_BYTES_MIN: u64 = 256 << 10;
/// Versions are at least so many containers long, if they were stored as they are.
const CONTAINERS_PER_VERSION: u64 = 128;
/// The cache holds so many at least.
const CONTAINERS_PER_CACHE: u64 = 8;
/// 20 MiB of text for containers of 4 MiB.
const CONTAINERS_PER_SEGMENT: u64 = 5;
/// Bytes of the paper's caches at most.
const CACHE_BYTES_MAX: u64 = 512 << 20;
/// The paper's cache holds 3 to 19 percent of a version.
const VERSIONS_PER_CACHE: u64 = 8;

/// Bounds of the memory of Siltstone's engine, bytes.
const ENGINE_MEMORY_BYTES: std::ops::RangeInclusive<u64> = (256 << 20)..=(1 << 30);
/// The part of its memory in which Siltstone's engine keeps bases during a restore: a quarter. Its batches of what it
/// restores take more; the papers' methods have none.
const ENGINE_MEMORY_PER_CACHE: u64 = 4;

/// Expected size of chunks unless the user says otherwise, bytes: the paper's.
const EXPECTED_BYTES: u32 = 8 << 10;

/// Origin of the sizes of a store's parts.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sizes {
    /// The paper's proportions, for all methods but Siltstone's engine, which has its own.
    Paper,
    /// Siltstone's, for all methods.
    Siltstone,
}

/// Syncs, calls that wait until something is durable, of one backup and of settling it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SyncCounts {
    /// Syncs of a backup.
    pub(super) backup: u64,
    /// Syncs of settling what it left behind.
    pub(super) settle: u64,
}

/// Counts of Siltstone's engine, for its lease, its containers, its manifest and the copies of these: after the first
/// backup, and where there is something to settle.
pub(super) const SILTSTONE_SYNCS: SyncCounts = SyncCounts { backup: 5, settle: 8 };

/// Sizes, and what else is the same for all methods.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// Expected size of chunks, bytes.
    pub(super) expected_bytes: u32,
    /// Size to which a container is filled, bytes before compression.
    pub(super) container_bytes: u64,
    /// Size of what is compressed together, bytes before compression.
    pub(super) region_bytes: usize,
    /// Size of what is looked at together, bytes of the version.
    pub(super) segment_bytes: usize,
    /// Size of the cache of containers, decompressed bytes.
    pub(super) cache_bytes: usize,
    /// Level of zstd.
    pub(super) level: i32,
    /// Threads that hash, sketch, encode, compress and read; and CPUs, for all that a method does.
    pub(super) threads: usize,
    /// Memory of Siltstone's engine, bytes: a quarter of all there is, within bounds.
    pub(super) engine_memory_bytes: u64,
    /// Syncs that every method makes at least; `None`: as many as it needs.
    pub(super) syncs: Option<SyncCounts>,
}

impl Scale {
    /// For versions of so many bytes in the mean.
    pub(super) fn of(version_bytes: u64, settings: &Settings) -> Self {
        let wanted = (version_bytes / CONTAINERS_PER_VERSION).max(1);
        let container_bytes = (1 << wanted.ilog2()).clamp(CONTAINER_BYTES_MIN, CONTAINER_BYTES_MAX);
        let cache_bytes =
            (version_bytes / VERSIONS_PER_CACHE).clamp(CONTAINERS_PER_CACHE * container_bytes, CACHE_BYTES_MAX);
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            expected_bytes: settings.expected_bytes.first().copied().unwrap_or(EXPECTED_BYTES),
            container_bytes,
            region_bytes: bytes(container_bytes).min(DATA_REGION_BYTES_TARGET),
            segment_bytes: bytes(CONTAINERS_PER_SEGMENT * container_bytes),
            cache_bytes: bytes(cache_bytes),
            level: ZSTD_LEVEL_DEFAULT,
            threads: settings.threads.max(1),
            engine_memory_bytes: (settings.memory_mib << 18)
                .clamp(*ENGINE_MEMORY_BYTES.start(), *ENGINE_MEMORY_BYTES.end()),
            syncs: None,
        }
    }

    /// Siltstone's sizes and syncs, whatever the versions. The cache of containers is as large as what its engine keeps
    /// bases in, with the least memory it is given here.
    pub(super) fn of_siltstone(settings: &Settings) -> Self {
        let container_bytes = CONTAINER_BYTES_DEFAULT;
        let engine_memory_bytes = *ENGINE_MEMORY_BYTES.start();
        let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Self {
            container_bytes,
            region_bytes: DATA_REGION_BYTES_TARGET,
            segment_bytes: bytes(CONTAINERS_PER_SEGMENT * container_bytes),
            cache_bytes: bytes(engine_memory_bytes / ENGINE_MEMORY_PER_CACHE),
            engine_memory_bytes,
            syncs: Some(SILTSTONE_SYNCS),
            ..Self::of(0, settings)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_versions_get_the_papers_sizes_and_small_ones_keep_the_proportions() {
        let large = Scale::of(2_700_000_000, &Settings::default());
        assert_eq!((large.container_bytes, large.segment_bytes), (4 << 20, 20 << 20));
        let small = Scale::of(150_000_000, &Settings::default());
        assert_eq!((small.container_bytes, small.segment_bytes, small.region_bytes), (1 << 20, 5 << 20, 1 << 20));
        assert_eq!(small.cache_bytes, 150_000_000 / 8);
        assert_eq!(Scale::of(0, &Settings::default()).container_bytes, CONTAINER_BYTES_MIN);
    }
}

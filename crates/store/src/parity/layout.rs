//! Cutting a container into shards, and the parity it gets: a pure function of its size and of the share asked
//! for.

use crate::config::PARITY_PERCENT_MAX;
use crate::container::CONTAINER_BYTES_MAX;
use crate::error::StoreError;
use crate::header::{Fields, HEADER_BYTES};
use crate::storage::ObjectName;
use std::ops::Range;

/// The largest shard: a disk's page, the least that is lost at once.
const SHARD_BYTES_MAX: u32 = 4096;
/// The smallest shard; every one is a multiple of it.
const SHARD_BYTES_MIN: u32 = 64;
/// Shards that a small container is cut into, about; large ones have as many as there are pages.
const SHARDS_SMALL: u64 = 64;
/// The least parity, but for containers that are smaller: so that one lost page of a small one is healed too.
const PARITY_BYTES_MIN: u64 = 4096;
/// The most shards of a container, and the most parity shards of one.
const SHARDS_MAX: u64 = CONTAINER_BYTES_MAX / 4096;
/// Bytes of a checksum: the first of BLAKE3.
pub(super) const SUM_BYTES: usize = 8;
/// Bytes of the layout as written.
const LAYOUT_BYTES: usize = 32;

/// Sizes of a container's shards and parity.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Layout {
    /// Length of the container.
    pub container_bytes: u64,
    /// Bytes of a shard; the container's last one is filled up with zeros.
    pub shard_bytes: u32,
    /// Number of parity shards: so many lost shards are healed.
    pub parity_shards: u32,
}

impl Layout {
    /// The layout for a container of this size with this share of parity; `None` for none.
    pub fn plan(container_bytes: u64, percent: u8) -> Option<Self> {
        if percent == 0 || container_bytes == 0 || container_bytes > CONTAINER_BYTES_MAX {
            return None;
        }
        let granule = u64::from(SHARD_BYTES_MIN);
        let shard_bytes =
            (container_bytes / SHARDS_SMALL).next_multiple_of(granule).clamp(granule, SHARD_BYTES_MAX.into());
        let shards = container_bytes.div_ceil(shard_bytes);
        let share = (shards * u64::from(percent.min(PARITY_PERCENT_MAX))).div_ceil(100);
        let parity_shards = share.max(PARITY_BYTES_MIN / shard_bytes).min(shards);
        let [shard_bytes, parity_shards] = [shard_bytes, parity_shards].map(u32::try_from);
        Some(Self { container_bytes, shard_bytes: shard_bytes.ok()?, parity_shards: parity_shards.ok()? })
    }

    /// The layout that a parity object states, at its start or, where that is damaged, at its end.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if it does so nowhere.
    pub fn find(name: &ObjectName, object: &[u8]) -> Result<Self, StoreError> {
        let front = object.get(HEADER_BYTES..).and_then(<[u8]>::first_chunk).and_then(Self::decode);
        let found = front.or_else(|| object.last_chunk().and_then(Self::decode));
        found.ok_or_else(|| StoreError::damaged(name, "layout", "neither copy of it can be read"))
    }

    /// `container bytes 8 | shard bytes 4 | parity shards 4 | checksum 16`.
    pub(super) fn encode(self) -> [u8; LAYOUT_BYTES] {
        let mut bytes = [0; LAYOUT_BYTES];
        let fields = self.container_bytes.to_le_bytes().into_iter();
        let fields = fields.chain(self.shard_bytes.to_le_bytes()).chain(self.parity_shards.to_le_bytes());
        bytes.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
        let sum = sum_of(&bytes);
        bytes.iter_mut().skip(LAYOUT_BYTES - sum.len()).zip(sum).for_each(|(to, from)| *to = from);
        bytes
    }

    /// The inverse of [`Self::encode`]; `None` for damage and for sizes that no writer chooses.
    pub(super) fn decode(bytes: &[u8; LAYOUT_BYTES]) -> Option<Self> {
        let mut rest = Fields(bytes);
        let (container_bytes, shard_bytes, parity_shards) = (rest.take_u64()?, rest.take_u32()?, rest.take_u32()?);
        let layout = Self { container_bytes, shard_bytes, parity_shards };
        let is_sound = rest.0 == sum_of(bytes)
            && (1..=CONTAINER_BYTES_MAX).contains(&container_bytes)
            && (SHARD_BYTES_MIN..=SHARD_BYTES_MAX).contains(&shard_bytes)
            && shard_bytes.is_multiple_of(SHARD_BYTES_MIN)
            && layout.shards() as u64 <= SHARDS_MAX
            && (1..=layout.shards()).contains(&layout.parity());
        is_sound.then_some(layout)
    }

    /// Returns the number of shards of the container.
    pub(super) fn shards(self) -> usize {
        usize::try_from(self.container_bytes.div_ceil(self.shard_bytes.max(1).into())).unwrap_or(usize::MAX)
    }

    /// Returns the number of parity shards.
    pub(super) fn parity(self) -> usize {
        usize::try_from(self.parity_shards).unwrap_or(usize::MAX)
    }

    /// Bytes of a shard.
    pub(super) fn shard(self) -> usize {
        usize::try_from(self.shard_bytes).unwrap_or(usize::MAX)
    }

    /// Length of the parity object.
    pub fn object_bytes(self) -> u64 {
        (self.parity_at(self.parity()).start + LAYOUT_BYTES) as u64
    }

    /// Returns the place of a shard's checksum in the object; those of parity shards follow the container's.
    pub(super) fn sum_at(shard: usize) -> Range<usize> {
        let start = HEADER_BYTES + LAYOUT_BYTES + shard * SUM_BYTES;
        start..start + SUM_BYTES
    }

    /// Returns the place of a parity shard in the object.
    pub(super) fn parity_at(self, shard: usize) -> Range<usize> {
        let start = Self::sum_at(self.shards() + self.parity()).start + shard * self.shard();
        start..start + self.shard()
    }
}

/// The checksum of a layout: over all before it.
fn sum_of(layout: &[u8; LAYOUT_BYTES]) -> [u8; 16] {
    let mut sum = [0; 16];
    let fields = layout.first_chunk::<16>().map_or(&[][..], |fields| fields);
    blake3::Hasher::new().update(fields).finalize_xof().fill(&mut sum);
    sum
}

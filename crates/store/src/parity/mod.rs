//! Parity: a second object beside a container, with Reed-Solomon shards of it, so that a flipped bit costs nothing.
//!
//! ```text
//! header | layout | a checksum for each shard of the container, then for each parity shard | parity shards | layout
//! ```
//! The container is cut into shards of equal size. Of these and the parity shards any as many as the container has
//! restore it. A shard whose checksum does not match counts as lost; so a flip in the list of checksums makes one shard
//! look lost, and no more. The code is that of Lin, Chung and Han (FOCS 2014) over GF(2^16), as Leopard and the library
//! `reed-solomon-simd` have it: its cost grows with the logarithm of the number of parity shards, so that shards can be
//! as small as a disk's page, and much damage in many places is healed by little.
//!
//! **A parity object is a hint.** It is neither sealed nor named by any manifest: what it heals counts only after the
//! container's own seals hold, under the recorded salt ([`heal()`]). It may be missing, and be made anew from a sound
//! container at any time ([`protect`]).
//!
//! Cost, beside the bytes: measured in `docs/MEASUREMENTS.md`. Memory: an eighth of the container for each thread that
//! encodes, where shards are as long as a page, and at most as much as the container has; about three times the
//! container, while it is healed.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

mod code;
mod heal;
mod layout;
#[cfg(test)]
mod tests;

pub(crate) use heal::read_what_is_left;
pub use heal::{Healer, heal, recover};
pub use layout::Layout;

use crate::config::ParitySettings;
use crate::container::{CONTAINER_BYTES_MAX, ContainerKind};
use crate::error::StoreError;
use crate::sealed::{ObjectKey, ObjectKind};
use crate::secrets::RepositoryKeys;
use crate::storage::ObjectName;
use crate::{ContainerId, SeriesId};

/// The least share that containers of metadata get, in percent: whole snapshots hang on them, and they are small.
pub const METADATA_PERCENT_MIN: u8 = 10;
/// The most bytes of a parity object: as many shards as the largest container, their checksums, and a frame.
pub const PARITY_BYTES_MAX: u64 = CONTAINER_BYTES_MAX + CONTAINER_BYTES_MAX / 64;

impl ParitySettings {
    /// The share of containers of this kind.
    pub const fn percent(self, kind: ContainerKind) -> u8 {
        match kind {
            ContainerKind::Data => self.data_percent,
            ContainerKind::Metadata if self.metadata_percent < METADATA_PERCENT_MIN => METADATA_PERCENT_MIN,
            ContainerKind::Metadata => self.metadata_percent,
        }
    }

    /// The bytes of the parity object that a container of this kind and size gets; 0 for none.
    pub fn object_bytes(self, kind: ContainerKind, container_bytes: u64) -> u64 {
        Layout::plan(container_bytes, self.percent(kind)).map_or(0, Layout::object_bytes)
    }
}

/// Bytes of a container that another thread is worth.
const BYTES_PER_THREAD: usize = 1 << 20;

/// The threads that encode the parity of a container: no more than there are cores.
fn threads_for(container: &[u8]) -> usize {
    match container.len() / BYTES_PER_THREAD {
        0 | 1 => 1,
        worth => std::thread::available_parallelism().map_or(1, usize::from).min(worth),
    }
}

/// The parity object of a container, given its bytes, made by several threads if it is large; `None` if the layout has
/// no parity for it.
///
/// # Errors
/// [`StoreError::Machine`] if the library refuses.
pub fn protect(
    keys: &RepositoryKeys,
    series: SeriesId,
    id: ContainerId,
    container: &[u8],
    percent: u8,
) -> Result<Option<Vec<u8>>, StoreError> {
    let Some(layout) = Layout::plan(container.len() as u64, percent) else { return Ok(None) };
    let key = ObjectKey::create(keys, ObjectName::Parity(series, id), ObjectKind::Parity)?;
    Ok(Some([key.header().to_bytes().to_vec(), code::encode(layout, container, threads_for(container))?].concat()))
}

/// Checks that this is a parity object of these container bytes, whole and without a flipped bit.
///
/// # Errors
/// [`StoreError::Damaged`] of the parity object, or the library's.
pub fn check(
    keys: &RepositoryKeys,
    series: SeriesId,
    id: ContainerId,
    container: &[u8],
    object: &[u8],
) -> Result<(), StoreError> {
    let name = ObjectName::Parity(series, id);
    let key = ObjectKey::open(keys, name, ObjectKind::Parity, object)?;
    let layout = Layout::find(&name, object)?;
    let is_whole = layout.container_bytes == container.len() as u64
        && object.get(key.header().to_bytes().len()..) == Some(code::encode(layout, container, 1)?.as_slice());
    if is_whole { Ok(()) } else { Err(StoreError::damaged(&name, "shards", "they are not those of its container")) }
}

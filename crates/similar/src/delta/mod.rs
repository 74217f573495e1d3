//! One chunk against another.
//!
//! A delta says how to make a chunk, the *target*, from another that is like it, its *base*. Two codecs stand behind
//! one trait:
//!
//! | codec | what a delta is | for |
//! |---|---|---|
//! | [`CopyInsert`] | literals and copies, to be compressed many together (`PoolWriter`) | most |
//! | `Prefix` | a zstd frame that has the base as its past | deltas that stand alone |
//!
//! The first byte of a delta names codec and version, so no delta of one is taken for the other's.
//!
//! No decoder trusts a delta: whatever its bytes say, it makes exactly as many bytes as were asked for, or an error.

mod copy_insert;
mod error;
#[cfg(feature = "zstd")]
mod pool;
#[cfg(feature = "zstd")]
mod prefix;
mod varint;

pub use copy_insert::{CopyInsert, Parts, Slices};
pub use error::{DeltaError, EncodeError};
#[cfg(feature = "zstd")]
pub use pool::{POOL_BYTES_MAX, PoolReader, PoolWriter};
#[cfg(feature = "zstd")]
pub use prefix::Prefix;

use alloc::vec::Vec;

/// The longest base and the longest target that are encoded: 16 MiB.
pub const INPUT_BYTES_MAX: usize = 16 << 20;

/// Makes deltas, and targets of deltas. It holds memory that is used again, so it is kept for many.
pub trait ChunkDelta: Send {
    /// Returns the codec's name, for command lines and tables.
    fn name(&self) -> &'static str;

    /// Appends to `delta` what makes `target` of `base`, in at most `bytes_max` bytes. It gives up as soon as it sees
    /// that they will not do; then `delta` is as before.
    ///
    /// # Errors
    /// [`EncodeError::NotWorthIt`] if more bytes are needed, [`EncodeError::TooLong`] if base or target has more than
    /// [`INPUT_BYTES_MAX`].
    fn encode(&mut self, base: &[u8], target: &[u8], bytes_max: usize, delta: &mut Vec<u8>) -> Result<(), EncodeError>;

    /// Appends to `target` the `target_bytes` bytes that a delta makes of its base. If it fails, `target` is as before.
    ///
    /// # Errors
    /// [`DeltaError`] if it is no delta that makes so many bytes of this base.
    fn decode(
        &mut self,
        base: &[u8],
        delta: &[u8],
        target_bytes: usize,
        target: &mut Vec<u8>,
    ) -> Result<(), DeltaError>;
}

fn check_lengths(base: &[u8], target: &[u8]) -> Result<(), EncodeError> {
    let bytes = base.len().max(target.len());
    if bytes > INPUT_BYTES_MAX { Err(EncodeError::TooLong { bytes }) } else { Ok(()) }
}

//! Many deltas, compressed together.
//!
//! Deltas of neighbouring chunks are alike: one edit is made in many files, one counter grows in many records. So the
//! streams of many copy-insert deltas are put one after another, instructions with instructions and literals with
//! literals, and each is compressed whole. The definition, which is format:
//!
//! ```text
//! pool     = version (1 byte, 1), stream of instructions, stream of literals
//! stream   = varint (bytes), varint (bytes of the payload), payload
//! payload  = a region's in the codec `Zstd`, without bases; or, where it is as long, the bytes as they are
//! ```
//!
//! Where a delta ends in its streams follows from the length of its target, which is known from elsewhere: instructions
//! are read until they make so many bytes. A pool costs 16 bytes beyond its payloads at most; a delta in it costs
//! nothing beyond its own.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::copy_insert::{CopyInsert, Parts, Slices};
use super::{DeltaError, EncodeError, varint};
use crate::region::{Codec, Level, RegionDecoder, RegionEncoder, RegionError};
use alloc::vec::Vec;
use siltstone_simd::Isa;

const VERSION: u8 = 1;

/// The most bytes that the streams of a pool may have together: 64 MiB.
pub const POOL_BYTES_MAX: usize = 64 << 20;

/// Makes pools.
pub struct PoolWriter {
    codec: CopyInsert,
    parts: Parts,
    encoder: RegionEncoder,
    payload: Vec<u8>,
}

impl PoolWriter {
    /// A writer of pools that are compressed at this level.
    ///
    /// # Errors
    /// [`RegionError::BadLevel`] if there is no such level.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn new(isa: Isa, level: Level) -> Result<Self, RegionError> {
        let encoder = RegionEncoder::new(level)?;
        Ok(Self { codec: CopyInsert::new(isa), parts: Parts::default(), encoder, payload: Vec::new() })
    }

    /// Adds the delta that makes `target` of `base`, if it takes at most `bytes_max` bytes before it is compressed.
    ///
    /// # Errors
    /// As [`CopyInsert::encode_apart`]; [`EncodeError::PoolFull`] if the pool would hold more than [`POOL_BYTES_MAX`].
    /// Then the pool is as before.
    pub fn add(&mut self, base: &[u8], target: &[u8], bytes_max: usize) -> Result<(), EncodeError> {
        let room = POOL_BYTES_MAX - self.parts.bytes();
        match self.codec.encode_apart(base, target, bytes_max.min(room), &mut self.parts) {
            Err(EncodeError::NotWorthIt { .. }) if room < bytes_max => Err(EncodeError::PoolFull),
            result => result,
        }
    }

    /// Bytes of the deltas added, before they are compressed.
    pub fn bytes(&self) -> usize {
        self.parts.bytes()
    }

    /// Appends the pool of all deltas added to `out`, and begins another. Of none it is five bytes.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        out.push(VERSION);
        for stream in [&self.parts.instructions, &self.parts.literals] {
            self.encoder.encode(&[], &[stream], &mut self.payload);
            varint::write(out, stream.len() as u64);
            varint::write(out, self.payload.len() as u64);
            out.extend_from_slice(&self.payload);
        }
        self.parts.clear();
    }
}

/// Opens pools.
pub struct PoolReader {
    decoder: RegionDecoder,
    parts: Parts,
}

impl PoolReader {
    /// A reader.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn new() -> Self {
        Self { decoder: RegionDecoder::new(), parts: Parts::default() }
    }

    /// The streams of a pool, from which [`Slices::next`] takes one delta after another. They have at most `bytes_max`
    /// bytes together.
    ///
    /// # Errors
    /// [`DeltaError`] if `pool` is none, or its streams are longer.
    pub fn open(&mut self, mut pool: &[u8], bytes_max: usize) -> Result<Slices<'_>, DeltaError> {
        let (&version, rest) = pool.split_first().ok_or(DeltaError::Truncated)?;
        if version != VERSION {
            return Err(DeltaError::UnknownVersion { version });
        }
        pool = rest;
        self.parts.clear();
        let Parts { instructions, literals } = &mut self.parts;
        let mut room = bytes_max.min(POOL_BYTES_MAX);
        for stream in [instructions, literals] {
            open_stream(&mut self.decoder, &mut pool, room, stream)?;
            room -= stream.len();
        }
        if !pool.is_empty() {
            return Err(DeltaError::TrailingBytes);
        }
        Ok(self.parts.as_slices())
    }
}

impl Default for PoolReader {
    fn default() -> Self {
        Self::new()
    }
}

/// Takes a stream off the front of `pool` and appends what it holds.
fn open_stream(
    decoder: &mut RegionDecoder,
    pool: &mut &[u8],
    bytes_max: usize,
    stream: &mut Vec<u8>,
) -> Result<(), DeltaError> {
    let mut length = || usize::try_from(varint::read(pool)?).map_err(|_| DeltaError::Truncated);
    let (bytes, payload_bytes) = (length()?, length()?);
    let (payload, rest) = pool.split_at_checked(payload_bytes).ok_or(DeltaError::Truncated)?;
    *pool = rest;
    if bytes > bytes_max {
        return Err(DeltaError::PoolTooLong { bytes_max });
    }
    let codec = if payload_bytes == bytes { Codec::Raw } else { Codec::Zstd };
    stream.extend_from_slice(decoder.decode(codec, &[], payload, bytes).map_err(DeltaError::Payload)?);
    Ok(())
}

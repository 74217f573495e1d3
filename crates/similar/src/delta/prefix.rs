//! A zstd frame that has the base as its past.
//!
//! This is a [region](crate::region) of one member with one base. It compresses literals too, so a delta is small
//! alone; so it is the codec for deltas that are not pooled, and the one to compare with. The definition, which is
//! format:
//!
//! ```text
//! delta = version (1 byte), payload
//! 2       the payload is a region's in the codec `Zstd`, of one base and one member
//! 3       the same in the codec `Raw`: the target as it is
//! ```
//!
//! Cost: the library enters every position, or every second, of the base into its tables before it looks at the target.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::{ChunkDelta, DeltaError, EncodeError, check_lengths};
use crate::region::{Codec, Level, RegionDecoder, RegionEncoder, RegionError};
use alloc::vec::Vec;

const ZSTD: u8 = 2;
const RAW: u8 = 3;

/// The codec `zstd-prefix`.
pub struct Prefix {
    encoder: RegionEncoder,
    decoder: RegionDecoder,
    payload: Vec<u8>,
}

impl Prefix {
    /// The codec at this level.
    ///
    /// # Errors
    /// [`RegionError::BadLevel`] if there is no such level.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn new(level: Level) -> Result<Self, RegionError> {
        Ok(Self { encoder: RegionEncoder::new(level)?, decoder: RegionDecoder::new(), payload: Vec::new() })
    }
}

impl ChunkDelta for Prefix {
    fn name(&self) -> &'static str {
        "zstd-prefix"
    }

    fn encode(&mut self, base: &[u8], target: &[u8], bytes_max: usize, delta: &mut Vec<u8>) -> Result<(), EncodeError> {
        check_lengths(base, target)?;
        let version = match self.encoder.encode(&[base], &[target], &mut self.payload) {
            Codec::Zstd => ZSTD,
            Codec::Raw => RAW,
        };
        if self.payload.len() >= bytes_max {
            return Err(EncodeError::NotWorthIt { bytes_max });
        }
        delta.push(version);
        delta.extend_from_slice(&self.payload);
        Ok(())
    }

    fn decode(
        &mut self,
        base: &[u8],
        delta: &[u8],
        target_bytes: usize,
        target: &mut Vec<u8>,
    ) -> Result<(), DeltaError> {
        let (&version, payload) = delta.split_first().ok_or(DeltaError::Truncated)?;
        let codec = match version {
            ZSTD => Codec::Zstd,
            RAW => Codec::Raw,
            _ => return Err(DeltaError::UnknownVersion { version }),
        };
        let text = self.decoder.decode(codec, &[base], payload, target_bytes).map_err(DeltaError::Payload)?;
        target.extend_from_slice(text);
        Ok(())
    }
}

//! The codecs of regions that are measured: the crate's own, deltas of single chunks, and zstd as it comes.

use super::regions::Region;
use anyhow::{Result, anyhow};
use siltstone_similar::delta::{ChunkDelta, Prefix};
use siltstone_similar::region::{Form, Level, RegionDecoder, RegionEncoder};
use std::hint::black_box;
use zstd_safe::{CCtx, CParameter, DCtx, DParameter, FrameFormat};

/// Encodes a region, the `at`-th, and decodes it.
pub(super) trait Codec {
    /// Into `out`, whose content is replaced.
    fn encode(&mut self, at: usize, region: &Region, out: &mut Vec<u8>) -> Result<()>;
    fn decode(&mut self, at: usize, region: &Region, written: &[u8]) -> Result<&[u8]>;
}

/// `RegionEncoder` and `RegionDecoder`.
pub(super) struct OwnRegions {
    encoder: RegionEncoder,
    decoder: RegionDecoder,
}

impl OwnRegions {
    pub(super) fn new(level: Level) -> Result<Self> {
        Ok(Self { encoder: RegionEncoder::new(level)?, decoder: RegionDecoder::new() })
    }
}

impl Codec for OwnRegions {
    fn encode(&mut self, _: usize, region: &Region, out: &mut Vec<u8>) -> Result<()> {
        self.encoder.encode(&region.bases, &region.members, out);
        Ok(())
    }

    fn decode(&mut self, _: usize, region: &Region, written: &[u8]) -> Result<&[u8]> {
        // Only what does not shrink is stored raw.
        let form = if written.len() == region.text_bytes() { Form::Raw } else { Form::Zstd };
        Ok(self.decoder.decode(form, &region.bases, written, region.text_bytes())?)
    }
}

/// Each member against its likest chunk, and the others together.
pub(super) struct PerChunk {
    prefix: Prefix,
    whole: RegionEncoder,
    decoder: RegionDecoder,
    text: Vec<u8>,
}

/// The level of both.
const LEVEL: Level = Level::Zstd(3);
/// Before each member, the length of its delta; this if it has none.
const NO_DELTA: u32 = u32::MAX;
const LENGTH_BYTES: usize = 4;

impl PerChunk {
    pub(super) fn new() -> Result<Self> {
        let (prefix, whole) = (Prefix::new(LEVEL)?, RegionEncoder::new(LEVEL)?);
        Ok(Self { prefix, whole, decoder: RegionDecoder::new(), text: Vec::new() })
    }
}

//! The codecs of regions that are measured: the crate's own, deltas of single chunks, and zstd as it comes.

use super::regions::Region;
use crate::zstd_error;
use anyhow::{Context, Result};
use siltstone_similar::region::{self, Level, RegionDecoder, RegionEncoder};
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
        let form = if written.len() == region.text_bytes() { region::Codec::Raw } else { region::Codec::Zstd };
        Ok(self.decoder.decode(form, &region.bases, written, region.text_bytes())?)
    }
}

/// The level of what the crate's regions are held against.
const LEVEL: i32 = 3;

/// Each member against its likest chunk where that is smaller, the others together.
pub(super) struct PerChunk<'r> {
    encoder: RegionEncoder,
    decoder: RegionDecoder,
    /// Bases of each region's members.
    bases: Vec<Vec<Option<&'r [u8]>>>,
    /// And how each part was written, the last being the members without base.
    parts: Vec<Vec<(region::Codec, usize)>>,
    text: Vec<u8>,
}

impl<'r> PerChunk<'r> {
    /// Decides which members get a delta: those whose delta is smaller than their share of all members compressed
    /// together.
    pub(super) fn new(regions: &[Region<'r>]) -> Result<Self> {
        let mut encoder = RegionEncoder::new(Level::Zstd(LEVEL))?;
        let mut out = Vec::new();
        let mut chosen = |region: &Region<'r>| {
            encoder.encode(&[], &region.members, &mut out);
            let (together, text_bytes) = (out.len(), region.text_bytes());
            let base = |(member, likest): (&&[u8], Option<&'r [u8]>)| {
                likest.filter(|base| {
                    encoder.encode(&[base], &[member], &mut out);
                    out.len() * text_bytes < member.len() * together
                })
            };
            region.members.iter().zip(region.likest.iter().copied()).map(base).collect()
        };
        let bases = regions.iter().map(&mut chosen).collect();
        let parts = vec![Vec::new(); regions.len()];
        Ok(Self { encoder, decoder: RegionDecoder::new(), bases, parts, text: Vec::new() })
    }

    /// Bytes of all regions so.
    pub(super) fn bytes(regions: &[Region]) -> Result<u64> {
        let (mut codec, mut out) = (PerChunk::new(regions)?, Vec::new());
        let mut bytes = 0;
        for (at, region) in regions.iter().enumerate() {
            codec.encode(at, region, &mut out)?;
            bytes += out.len() as u64;
        }
        Ok(bytes)
    }
}

impl Codec for PerChunk<'_> {
    fn encode(&mut self, at: usize, region: &Region, out: &mut Vec<u8>) -> Result<()> {
        let (mut parts, mut others, mut part) = (Vec::new(), Vec::new(), Vec::new());
        out.clear();
        for (member, base) in region.members.iter().zip(&self.bases[at]) {
            match base {
                Some(base) => {
                    parts.push((self.encoder.encode(&[base], &[member], &mut part), part.len()));
                    out.extend_from_slice(&part);
                }
                None => others.push(*member),
            }
        }
        parts.push((self.encoder.encode(&[], &others, &mut part), part.len()));
        out.extend_from_slice(&part);
        self.parts[at] = parts;
        Ok(())
    }

    fn decode(&mut self, at: usize, region: &Region, written: &[u8]) -> Result<&[u8]> {
        let (parts, bases) = (&self.parts[at], &self.bases[at]);
        let (&(form, bytes), deltas) = parts.split_last().context("no part")?;
        let others_bytes = region.members.iter().zip(bases).filter(|(_, base)| base.is_none());
        let others_bytes = others_bytes.map(|(member, _)| member.len()).sum();
        let (mut rest, others) = written.split_at(written.len() - bytes);
        let others = self.decoder.decode(form, &[], others, others_bytes)?.to_vec();
        let (mut others, mut deltas) = (others.as_slice(), deltas.iter());
        self.text.clear();
        for (member, base) in region.members.iter().zip(bases) {
            if let (Some(base), Some((form, bytes))) = (base, base.and_then(|_| deltas.next())) {
                let (delta, after) = rest.split_at(*bytes);
                self.text.extend_from_slice(self.decoder.decode(*form, &[base], delta, member.len())?);
                rest = after;
            } else {
                let (whole, after) = others.split_at(member.len());
                self.text.extend_from_slice(whole);
                others = after;
            }
        }
        Ok(&self.text)
    }
}

/// zstd with the bases as its prefix, as an application would use it: they lie in memory of their own, and it chooses
/// its tables. The library wants to borrow a prefix for as long as its context lives, so they are put together
/// beforehand; that copying them takes time is not forgotten.
pub(super) struct PlainZstd<'p> {
    prefixes: &'p [Vec<u8>],
    compressor: CCtx<'p>,
    decompressor: DCtx<'p>,
    scratch: Vec<u8>,
    text: Vec<u8>,
}

impl<'p> PlainZstd<'p> {
    /// `prefixes` are the bases of each region.
    pub(super) fn new(prefixes: &'p [Vec<u8>]) -> Result<Self> {
        let (mut compressor, mut decompressor) = (CCtx::create(), DCtx::create());
        for parameter in [
            CParameter::CompressionLevel(LEVEL),
            CParameter::Format(FrameFormat::Magicless),
            CParameter::ContentSizeFlag(false),
            CParameter::DeterministicRefPrefix(true),
        ] {
            compressor.set_parameter(parameter).map_err(zstd_error)?;
        }
        decompressor.set_parameter(DParameter::Format(FrameFormat::Magicless)).map_err(zstd_error)?;
        Ok(Self { prefixes, compressor, decompressor, scratch: Vec::new(), text: Vec::new() })
    }

    /// Copies the bases, as whoever has them in pieces must; their length.
    fn copy(&mut self, bases: &[&[u8]]) -> usize {
        self.scratch.clear();
        for base in bases {
            self.scratch.extend_from_slice(base);
        }
        black_box(&self.scratch).len()
    }
}

impl Codec for PlainZstd<'_> {
    fn encode(&mut self, at: usize, region: &Region, out: &mut Vec<u8>) -> Result<()> {
        let bytes = self.copy(&region.bases) + region.text_bytes();
        self.text.clear();
        for member in &region.members {
            self.text.extend_from_slice(member);
        }
        let window_log = bytes.max(1 << 10).next_power_of_two().ilog2();
        self.compressor.set_parameter(CParameter::WindowLog(window_log)).map_err(zstd_error)?;
        self.compressor.ref_prefix(&self.prefixes[at]).map_err(zstd_error)?;
        out.clear();
        out.reserve(zstd_safe::compress_bound(self.text.len()));
        self.compressor.compress2(out, &self.text).map_err(zstd_error)?;
        Ok(())
    }

    fn decode(&mut self, at: usize, region: &Region, written: &[u8]) -> Result<&[u8]> {
        self.copy(&region.bases);
        self.decompressor.ref_prefix(&self.prefixes[at]).map_err(zstd_error)?;
        self.text.clear();
        self.text.reserve(region.text_bytes());
        self.decompressor.decompress(&mut self.text, written).map_err(zstd_error)?;
        Ok(&self.text)
    }
}

//! Regions: consecutive stored chunks compressed together, the unit of reading and decompressing.
//!
//! A region is one zstd frame over the concatenation of its chunks, or the bytes themselves where zstd does not make them smaller.
//! It carries a list of base chunks that prime the compressor; version 1 writes and reads only regions whose list is empty.
//!
//! [`RegionEncoder::encode`] decodes what it encoded and compares before it returns, always: a bit flipped by memory or processor
//! between reading a file and sealing a region is found while the source is still there. That takes 15-20 % of the speed (420 MB of
//! Rust sources, level 3, one core: 343-388 MB/s unchecked, 262-320 checked). Sealing is the container's work.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::ids::{ChunkNumber, Fingerprint};
use serde::{Deserialize, Serialize};
use std::fmt;
use zstd::zstd_safe::CParameter;

/// What a region of file chunks is filled to, in plain bytes; one longer chunk makes a region of its own.
pub const DATA_REGION_BYTES_TARGET: usize = 2 << 20;
/// The same for catalogs: they are read a node at a time, and what a damaged region costs should be little.
pub const METADATA_REGION_BYTES_TARGET: usize = 512 << 10;
/// The longest chunk, and with it the longest region, in plain bytes. Bounds the memory that decoding one region takes.
pub const CHUNK_BYTES_MAX: usize = 16 << 20;
/// The default zstd level. At it the encoder's tables are made larger (`TABLES_AT_DEFAULT`).
pub const ZSTD_LEVEL_DEFAULT: i32 = 2;
/// Window and hash table at the default level, as powers of two: a window of a whole region and a table twice that of zstd's level 2.
/// On 200 MB of a database in regions of 2 MiB this gives the size of level 3 (78.4 against 78.3 MB) at 234 against 190 MB/s, on a
/// source tree 4 % more than level 3 at 10 % more speed (one core, November 2026, zstd 1.5.4).
const TABLES_AT_DEFAULT: [CParameter; 2] = [CParameter::WindowLog(21), CParameter::HashLog(17)];

/// A chunk as a container's index knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkEntry {
    /// Its number.
    pub number: ChunkNumber,
    /// The keyed hash of its content.
    pub fingerprint: Fingerprint,
    /// Its length in bytes, at least 1.
    pub length: u32,
}

/// How a region's payload is to be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub enum Codec {
    /// The payload is the plain bytes.
    Raw,
    /// The payload is one zstd frame.
    Zstd,
}

/// A region, compressed and not yet sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedRegion {
    /// How the payload is to be decoded.
    pub codec: Codec,
    /// The chunks whose bytes prime the compressor. Empty: a plain region, the only kind in version 1.
    pub bases: Vec<ChunkNumber>,
    /// The chunks in the order of their bytes; numbers ascending.
    pub chunks: Vec<ChunkEntry>,
    /// The sum of the chunks' lengths.
    pub plain_bytes: u32,
    /// The encoded bytes.
    pub payload: Vec<u8>,
}

/// Compresses regions, one after another, reusing its working memory (about 1.5 MiB at level 3).
pub struct RegionEncoder {
    compressor: zstd::bulk::Compressor<'static>,
    decoder: RegionDecoder,
}

impl RegionEncoder {
    /// An encoder at this zstd level.
    pub fn new(level: i32) -> Result<Self, StoreError> {
        let failed = |error| machine("preparing zstd", &error);
        let mut compressor = zstd::bulk::Compressor::new(level).map_err(failed)?;
        if level == ZSTD_LEVEL_DEFAULT {
            TABLES_AT_DEFAULT.into_iter().try_for_each(|table| compressor.set_parameter(table)).map_err(failed)?;
        }
        Ok(Self { compressor, decoder: RegionDecoder::new()? })
    }

    /// Encodes the chunks whose bytes, one after another, are `plain`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if lengths and bytes disagree, numbers do not ascend, or there is no chunk; [`StoreError::Limit`] past
    /// [`CHUNK_BYTES_MAX`]; [`StoreError::SelfCheck`] if the result does not decode to `plain`.
    pub fn encode(&mut self, chunks: Vec<ChunkEntry>, plain: &[u8]) -> Result<EncodedRegion, StoreError> {
        let plain_bytes = validate_chunks(&"a new region", &chunks).map_err(own_mistake)?;
        if usize::try_from(plain_bytes).ok() != Some(plain.len()) {
            let reason = format!("its chunks have {plain_bytes} bytes, {} were given", plain.len());
            return Err(StoreError::Refused { what: "a new region".into(), reason });
        }
        let compressed = self.compressor.compress(plain).map_err(|error| machine("compressing a region", &error))?;
        let (codec, payload) =
            if compressed.len() < plain.len() { (Codec::Zstd, compressed) } else { (Codec::Raw, plain.to_vec()) };
        let region = EncodedRegion { codec, bases: Vec::new(), chunks, plain_bytes, payload };
        self.check(&region, plain)?;
        Ok(region)
    }

    fn check(&mut self, region: &EncodedRegion, plain: &[u8]) -> Result<(), StoreError> {
        let same = match region.codec {
            Codec::Raw => region.payload == plain,
            Codec::Zstd => {
                self.decoder.decompress_to_scratch(&region.payload, plain.len()).is_ok_and(|bytes| bytes == plain)
            }
        };
        if same { Ok(()) } else { Err(StoreError::SelfCheck { what: "a region".into() }) }
    }
}

impl fmt::Debug for RegionEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionEncoder")
    }
}

/// Decompresses regions, reusing its working memory.
pub struct RegionDecoder {
    decompressor: zstd::bulk::Decompressor<'static>,
    scratch: Vec<u8>,
}

impl RegionDecoder {
    /// A decoder.
    pub fn new() -> Result<Self, StoreError> {
        let decompressor = zstd::bulk::Decompressor::new().map_err(|error| machine("preparing zstd", &error))?;
        Ok(Self { decompressor, scratch: Vec::new() })
    }

    /// The plain bytes of a region's payload; `object` and `part` name it in errors. Never gives or allocates more than
    /// `plain_bytes`.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the payload does not decode to exactly `plain_bytes`; [`StoreError::Limit`] past
    /// [`CHUNK_BYTES_MAX`]; [`StoreError::UnknownFeature`] if it has bases.
    pub fn decode(
        &mut self,
        object: &dyn fmt::Display,
        part: &str,
        region: EncodedRegion,
    ) -> Result<Vec<u8>, StoreError> {
        require_no_bases(object, &region.bases)?;
        let plain_bytes = bounded_plain_bytes(object, region.plain_bytes.into())?;
        let plain = match region.codec {
            Codec::Raw => region.payload,
            Codec::Zstd => {
                let mut plain = Vec::with_capacity(plain_bytes);
                self.decompressor
                    .decompress_to_buffer(&region.payload, &mut plain)
                    .map_err(|error| StoreError::damaged(object, part, error.to_string()))?;
                plain
            }
        };
        if plain.len() != plain_bytes {
            let reason = format!("it decodes to {} bytes instead of {plain_bytes}", plain.len());
            return Err(StoreError::damaged(object, part, reason));
        }
        Ok(plain)
    }

    fn decompress_to_scratch(&mut self, payload: &[u8], plain_bytes: usize) -> std::io::Result<&[u8]> {
        self.scratch.clear();
        self.scratch.reserve(plain_bytes);
        self.decompressor.decompress_to_buffer(payload, &mut self.scratch)?;
        Ok(&self.scratch)
    }
}

impl fmt::Debug for RegionDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionDecoder")
    }
}

/// The chunks of a decoded region, each with its bytes. Stops short where the bytes end before the chunks do.
pub fn split_region<'p>(chunks: &[ChunkEntry], plain: &'p [u8]) -> impl Iterator<Item = (ChunkEntry, &'p [u8])> {
    let mut rest = plain;
    chunks.iter().map_while(move |chunk| {
        let (bytes, after) = rest.split_at_checked(usize::try_from(chunk.length).ok()?)?;
        rest = after;
        Some((*chunk, bytes))
    })
}

/// Checks a region's chunks, and gives the sum of their lengths: at least one, none empty, numbers ascending.
pub(crate) fn validate_chunks(object: &dyn fmt::Display, chunks: &[ChunkEntry]) -> Result<u32, StoreError> {
    let damaged = |reason: &str| StoreError::damaged(object, "list of chunks", reason);
    if chunks.is_empty() {
        return Err(damaged("there is none"));
    }
    if chunks.iter().any(|chunk| chunk.length == 0) {
        return Err(damaged("one is empty"));
    }
    if !chunks.is_sorted_by(|a, b| a.number < b.number) {
        return Err(damaged("their numbers do not ascend"));
    }
    let sum = chunks.iter().fold(0u64, |sum, chunk| sum.saturating_add(chunk.length.into()));
    bounded_plain_bytes(object, sum)?;
    u32::try_from(sum).map_err(|_| damaged("they are too long"))
}

pub(crate) fn require_no_bases(object: &dyn fmt::Display, bases: &[ChunkNumber]) -> Result<(), StoreError> {
    if bases.is_empty() {
        return Ok(());
    }
    Err(StoreError::UnknownFeature { object: object.to_string(), feature: "region deltas".into() })
}

fn bounded_plain_bytes(object: &dyn fmt::Display, found: u64) -> Result<usize, StoreError> {
    usize::try_from(found)
        .ok()
        .filter(|bytes| *bytes <= CHUNK_BYTES_MAX)
        .ok_or_else(|| StoreError::limit(object, "the plain size of a region", found, CHUNK_BYTES_MAX as u64))
}

/// The same complaint about what the caller gave, not about bytes at rest.
fn own_mistake(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { object, part, reason } => {
            StoreError::Refused { what: format!("{object} ({part})"), reason }
        }
        other => other,
    }
}

fn machine(operation: &'static str, error: &std::io::Error) -> StoreError {
    StoreError::Machine { operation, reason: error.to_string() }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entries(lengths: &[usize]) -> Vec<ChunkEntry> {
        let entry = |(number, length): (usize, &usize)| ChunkEntry {
            number: ChunkNumber(number as u64),
            fingerprint: Fingerprint([0; 16]),
            length: *length as u32,
        };
        lengths.iter().enumerate().map(entry).collect()
    }

    fn encode(lengths: &[usize], plain: &[u8]) -> Result<EncodedRegion, StoreError> {
        RegionEncoder::new(ZSTD_LEVEL_DEFAULT)?.encode(entries(lengths), plain)
    }

    fn decode(region: EncodedRegion) -> Result<Vec<u8>, StoreError> {
        RegionDecoder::new()?.decode(&"containers/x", "region 0", region)
    }

    #[test]
    fn text_shrinks_and_noise_is_stored_raw() {
        let text = b"silt settles, stone stays. ".repeat(1000);
        let region = encode(&[text.len()], &text).unwrap();
        assert_eq!(region.codec, Codec::Zstd);
        assert!(region.payload.len() < text.len() / 50);
        assert_eq!(decode(region).unwrap(), text);

        let noise = blake3::hash(b"noise").as_bytes().to_vec();
        let region = encode(&[30, 2], &noise).unwrap();
        assert_eq!((region.codec, &region.payload), (Codec::Raw, &noise));
    }

    #[test]
    fn an_encoder_gives_the_same_bytes_whatever_it_did_before() {
        let (one, two) = (b"one ".repeat(500), vec![3; 70_000]);
        let mut encoder = RegionEncoder::new(3).unwrap();
        let fresh = encode(&[one.len()], &one).unwrap();
        encoder.encode(entries(&[two.len()]), &two).unwrap();
        assert_eq!(encoder.encode(entries(&[one.len()]), &one).unwrap(), fresh);
    }

    #[test]
    fn what_is_not_a_region_is_refused() {
        assert!(encode(&[], b"").is_err());
        assert!(encode(&[3, 0], b"abc").is_err());
        assert!(encode(&[3], b"abcd").is_err());
        assert!(matches!(encode(&[CHUNK_BYTES_MAX + 1], b""), Err(StoreError::Limit { .. })));
        let mut unordered = entries(&[1, 1]);
        unordered.swap(0, 1);
        let error = RegionEncoder::new(3).unwrap().encode(unordered, b"ab").unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    }

    #[test]
    fn a_decompression_bomb_stops_at_the_stated_size() {
        let bomb = zstd::bulk::compress(&vec![0; 100 << 20], 3).unwrap();
        let region = |plain_bytes, payload: &[u8]| EncodedRegion {
            codec: Codec::Zstd,
            bases: Vec::new(),
            chunks: Vec::new(),
            plain_bytes,
            payload: payload.to_vec(),
        };
        assert!(matches!(decode(region(1000, &bomb)), Err(StoreError::Damaged { .. })));
        assert!(matches!(decode(region(u32::MAX, &bomb)), Err(StoreError::Limit { .. })));
        let short = zstd::bulk::compress(&[0; 999], 3).unwrap();
        assert!(matches!(decode(region(1000, &short)), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn bases_are_refused_by_name() {
        let region = EncodedRegion { bases: vec![ChunkNumber(1)], ..encode(&[3], b"abc").unwrap() };
        let error = decode(region).unwrap_err().to_string();
        assert!(error.contains("region deltas") && error.contains("containers/x"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_come_back(plain in prop::collection::vec(0u8..4, 1..5000), cut in 1usize..4999) {
            let cut = cut.min(plain.len());
            let lengths: Vec<_> = [cut, plain.len() - cut].into_iter().filter(|length| *length > 0).collect();
            let region = encode(&lengths, &plain).unwrap();
            prop_assert_eq!(decode(region).unwrap(), plain);
        }

        #[test]
        fn no_payload_makes_the_decoder_panic_or_overrun(payload in prop::collection::vec(any::<u8>(), 0..300), plain_bytes in 0u32..2000) {
            let mut framed = vec![0x28, 0xb5, 0x2f, 0xfd];
            framed.extend_from_slice(&payload);
            let region = EncodedRegion { codec: Codec::Zstd, bases: Vec::new(), chunks: Vec::new(), plain_bytes, payload: framed };
            if let Ok(plain) = decode(region) {
                prop_assert_eq!(plain.len(), plain_bytes as usize);
            }
        }
    }
}

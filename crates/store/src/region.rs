//! Regions: consecutive stored chunks compressed together, the unit of reading and decompressing.
//!
//! A *plain* region is one zstd frame over the concatenation of its chunks, or the bytes themselves where zstd does not
//! make them smaller. A region *delta* carries a list of base chunks, and its frame has their bytes as its past (see
//! [`siltstone_similar::region`], whose format it is): whoever decodes it must bring them.
//!
//! [`RegionEncoder`] decodes what it encoded and compares before it returns, always: a bit flipped by memory or
//! processor between reading a file and sealing a region is found while the source is still there. That takes 15-20 %
//! of the speed (420 MB of Rust sources, level 3, one core: 343-388 MB/s unchecked, 262-320 checked). Sealing is the
//! container's work.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::ids::{ChunkNumber, Fingerprint};
use serde::{Deserialize, Serialize};
use siltstone_similar::region::{self as delta, Form, Level, RegionError};
use std::fmt;
use zstd::zstd_safe::CParameter;

/// What a region of file chunks is filled to, in plain bytes; one longer chunk makes a region of its own.
pub const DATA_REGION_BYTES_TARGET: usize = 2 << 20;
/// The same for catalogs: they are read a node at a time, and what a damaged region costs should be little.
pub const METADATA_REGION_BYTES_TARGET: usize = 512 << 10;
/// The longest chunk, and with it the longest region, in plain bytes. Bounds the memory that decoding one region takes.
pub const CHUNK_BYTES_MAX: usize = 16 << 20;
/// The most bytes the bases of a region can have together; with [`CHUNK_BYTES_MAX`] it bounds the memory that decoding
/// a delta takes.
pub const DELTA_BYTES_MAX: usize = 64 << 20;
/// The default zstd level. At it the encoder's window and table are chosen here (`TABLES_AT_DEFAULT`).
pub const ZSTD_LEVEL_DEFAULT: i32 = 2;
/// What differs from zstd's own parameters at the default level: a window of a whole region, and a hash table that
/// stays in the cache next to the core. To a table of four times the size this gives 0.7 to 1.4 % more bytes at 1.2 to
/// 1.5 times the speed, to zstd's level 1 1 to 3 % fewer at 0.9 of it (sources, Redis dumps, a root file system in
/// regions of 2 MiB; one core, November 2026, zstd 1.5.7).
const TABLES_AT_DEFAULT: [CParameter; 3] =
    [CParameter::WindowLog(21), CParameter::HashLog(15), CParameter::MinMatch(6)];

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
    /// The payload is one zstd frame: of a plain region an ordinary one, of a delta one without its magic number.
    Zstd,
}

/// A base chunk with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Base<'b> {
    /// Its number.
    pub number: ChunkNumber,
    /// Its bytes, verified.
    pub bytes: &'b [u8],
}

/// A region, compressed and not yet sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedRegion {
    /// How the payload is to be decoded.
    pub codec: Codec,
    /// The chunks whose bytes are the frame's past, ascending. Empty: a plain region.
    pub bases: Vec<ChunkNumber>,
    /// The chunks in the order of their bytes; numbers ascending.
    pub chunks: Vec<ChunkEntry>,
    /// The sum of the chunks' lengths.
    pub plain_bytes: u32,
    /// The encoded bytes.
    pub payload: Vec<u8>,
}

/// Compresses regions, one after another, reusing its working memory: about 1.5 MiB at level 3, and for deltas the
/// longest region with its bases, twice.
pub struct RegionEncoder {
    compressor: zstd::bulk::Compressor<'static>,
    /// Made with the first delta.
    delta: Option<delta::RegionEncoder>,
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
        Ok(Self { compressor, delta: None, decoder: RegionDecoder::new()? })
    }

    /// Encodes the chunks whose bytes, one after another, are `plain`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if lengths and bytes disagree, numbers do not ascend, or there is no chunk;
    /// [`StoreError::Limit`] past [`CHUNK_BYTES_MAX`]; [`StoreError::SelfCheck`] if the result does not decode to
    /// `plain`.
    pub fn encode(&mut self, chunks: Vec<ChunkEntry>, plain: &[u8]) -> Result<EncodedRegion, StoreError> {
        let plain_bytes = validated_bytes(&chunks, plain)?;
        let compressed = self.compressor.compress(plain).map_err(|error| machine("compressing a region", &error))?;
        let (codec, payload) =
            if compressed.len() < plain.len() { (Codec::Zstd, compressed) } else { (Codec::Raw, plain.to_vec()) };
        self.checked(EncodedRegion { codec, bases: Vec::new(), chunks, plain_bytes, payload }, &[], plain)
    }

    /// Encodes the chunks whose bytes, one after another, are `plain`, as a delta against `bases`, ascending by number.
    ///
    /// # Errors
    /// As [`encode`](Self::encode); [`StoreError::Refused`] too if the bases do not ascend, are of the other kind or
    /// among the chunks, [`StoreError::Limit`] past [`DELTA_BYTES_MAX`] of bases.
    pub fn encode_against(
        &mut self,
        bases: &[Base<'_>],
        chunks: Vec<ChunkEntry>,
        plain: &[u8],
    ) -> Result<EncodedRegion, StoreError> {
        if bases.is_empty() {
            return self.encode(chunks, plain);
        }
        let plain_bytes = validated_bytes(&chunks, plain)?;
        let numbers: Vec<_> = bases.iter().map(|base| base.number).collect();
        validate_bases(&"a new region", &numbers, &chunks).map_err(own_mistake)?;
        let bytes: Vec<&[u8]> = bases.iter().map(|base| base.bytes).collect();
        bounded_base_bytes(&"a new region", &bytes)?;
        let encoder = match &mut self.delta {
            Some(encoder) => encoder,
            none => none.insert(delta::RegionEncoder::new(Level::Fast).map_err(|error| unable(&error))?),
        };
        let mut payload = Vec::new();
        let codec = codec_of(encoder.encode(&bytes, &[plain], &mut payload));
        self.checked(EncodedRegion { codec, bases: numbers, chunks, plain_bytes, payload }, &bytes, plain)
    }

    fn checked(&mut self, region: EncodedRegion, bases: &[&[u8]], plain: &[u8]) -> Result<EncodedRegion, StoreError> {
        let same = match (bases.is_empty(), region.codec) {
            (true, Codec::Raw) => region.payload == plain,
            (true, Codec::Zstd) => {
                self.decoder.decompress_to_scratch(&region.payload, plain.len()).is_ok_and(|bytes| bytes == plain)
            }
            (false, codec) => {
                let form = form_of(codec);
                self.decoder.delta.decode(form, bases, &region.payload, plain.len()).is_ok_and(|bytes| bytes == plain)
            }
        };
        if same { Ok(region) } else { Err(StoreError::SelfCheck { what: "a region".into() }) }
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
    delta: delta::RegionDecoder,
    scratch: Vec<u8>,
}

impl RegionDecoder {
    /// A decoder.
    pub fn new() -> Result<Self, StoreError> {
        let decompressor = zstd::bulk::Decompressor::new().map_err(|error| machine("preparing zstd", &error))?;
        Ok(Self { decompressor, delta: delta::RegionDecoder::new(), scratch: Vec::new() })
    }

    /// The plain bytes of a region's payload; `object` and `part` name it in errors. `bases` are the bytes of the
    /// region's bases, in its order. Never gives or allocates more than `plain_bytes` and, of a delta, its bases.
    ///
    /// A wrong base of the right length can give wrong bytes without an error: fingerprints tell.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the payload does not decode to exactly `plain_bytes`; [`StoreError::Limit`] past
    /// [`CHUNK_BYTES_MAX`] or [`DELTA_BYTES_MAX`]; [`StoreError::Refused`] if not as many bases are brought as the
    /// region has.
    pub fn decode(
        &mut self,
        object: &dyn fmt::Display,
        part: &str,
        region: EncodedRegion,
        bases: &[&[u8]],
    ) -> Result<Vec<u8>, StoreError> {
        if bases.len() != region.bases.len() {
            let reason = format!("{} bases were brought for {}", bases.len(), region.bases.len());
            return Err(StoreError::Refused { what: format!("{object} ({part})"), reason });
        }
        let plain_bytes = bounded_plain_bytes(object, region.plain_bytes.into())?;
        let damaged = |reason: String| StoreError::damaged(object, part, reason);
        let plain = match region.codec {
            _ if !bases.is_empty() => {
                bounded_base_bytes(object, bases)?;
                let decoded = self.delta.decode(form_of(region.codec), bases, &region.payload, plain_bytes);
                decoded.map_err(|error| damaged(error.to_string()))?.to_vec()
            }
            Codec::Raw => region.payload,
            Codec::Zstd => {
                let mut plain = Vec::with_capacity(plain_bytes);
                let decompressed = self.decompressor.decompress_to_buffer(&region.payload, &mut plain);
                decompressed.map_err(|error| damaged(error.to_string()))?;
                plain
            }
        };
        if plain.len() != plain_bytes {
            return Err(damaged(format!("it decodes to {} bytes instead of {plain_bytes}", plain.len())));
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

/// Checks a region's bases: ascending, of the kind of its chunks, none of them among the chunks.
pub(crate) fn validate_bases(
    object: &dyn fmt::Display,
    bases: &[ChunkNumber],
    chunks: &[ChunkEntry],
) -> Result<(), StoreError> {
    let damaged = |reason: &str| Err(StoreError::damaged(object, "list of bases", reason));
    if !bases.is_sorted_by(|a, b| a < b) {
        return damaged("their numbers do not ascend");
    }
    let kind = chunks.first().map(|chunk| chunk.number.is_metadata());
    if bases.iter().any(|base| Some(base.is_metadata()) != kind) {
        return damaged("one is of the other kind");
    }
    let is_member = |base: &ChunkNumber| chunks.binary_search_by_key(base, |chunk| chunk.number).is_ok();
    if bases.iter().any(is_member) {
        return damaged("one is a chunk of the region itself");
    }
    Ok(())
}

fn validated_bytes(chunks: &[ChunkEntry], plain: &[u8]) -> Result<u32, StoreError> {
    let plain_bytes = validate_chunks(&"a new region", chunks).map_err(own_mistake)?;
    if usize::try_from(plain_bytes).ok() != Some(plain.len()) {
        let reason = format!("its chunks have {plain_bytes} bytes, {} were given", plain.len());
        return Err(StoreError::Refused { what: "a new region".into(), reason });
    }
    Ok(plain_bytes)
}

fn bounded_base_bytes(object: &dyn fmt::Display, bases: &[&[u8]]) -> Result<(), StoreError> {
    let bytes = bases.iter().fold(0usize, |sum, base| sum.saturating_add(base.len()));
    if bytes > DELTA_BYTES_MAX {
        return Err(StoreError::limit(object, "the bytes of a region's bases", bytes as u64, DELTA_BYTES_MAX as u64));
    }
    Ok(())
}

fn codec_of(form: Form) -> Codec {
    match form {
        Form::Raw => Codec::Raw,
        Form::Zstd => Codec::Zstd,
    }
}

fn form_of(codec: Codec) -> Form {
    match codec {
        Codec::Raw => Form::Raw,
        Codec::Zstd => Form::Zstd,
    }
}

fn unable(error: &RegionError) -> StoreError {
    StoreError::Machine { operation: "preparing region deltas", reason: error.to_string() }
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
        RegionDecoder::new()?.decode(&"containers/x", "region 0", region, &[])
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
    fn a_delta_needs_its_bases_and_little_else() {
        let base: Vec<u8> = (0..40_000u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        let mut plain = base.clone();
        plain[70_000..70_004].copy_from_slice(b"edit");
        let bases = [Base { number: ChunkNumber(7), bytes: &base }];
        let chunks = entries(&[100_000, plain.len() - 100_000]);
        let region = RegionEncoder::new(3).unwrap().encode_against(&bases, chunks, &plain).unwrap();
        assert_eq!(region.bases, [ChunkNumber(7)]);
        assert!(region.payload.len() < 200, "{}", region.payload.len());
        let mut decoder = RegionDecoder::new().unwrap();
        assert_eq!(decoder.decode(&"x", "region 0", region.clone(), &[&base]).unwrap(), plain);
        assert!(matches!(decoder.decode(&"x", "region 0", region.clone(), &[]), Err(StoreError::Refused { .. })));
        let other = vec![0; base.len()];
        let wrong = decoder.decode(&"x", "region 0", region, &[&other]);
        assert!(wrong.is_err() || wrong.is_ok_and(|bytes| bytes != plain));
    }

    #[test]
    fn what_is_no_base_is_refused() {
        let bytes = [1u8; 100];
        let base = |number| Base { number, bytes: &bytes };
        let refused = |bases: &[Base<'_>]| {
            let result = RegionEncoder::new(3).unwrap().encode_against(bases, entries(&[50, 50]), &bytes);
            matches!(result, Err(StoreError::Refused { .. }))
        };
        assert!(refused(&[base(ChunkNumber(1))]), "a member");
        assert!(refused(&[base(ChunkNumber(9)), base(ChunkNumber(8))]), "not ascending");
        assert!(refused(&[base(ChunkNumber(9)), base(ChunkNumber(9))]), "twice");
        assert!(refused(&[base(ChunkNumber::METADATA_FIRST)]), "of the other kind");
        assert!(!refused(&[base(ChunkNumber(8)), base(ChunkNumber(9))]));
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

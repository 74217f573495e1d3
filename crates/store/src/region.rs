//! Regions: consecutive stored chunks compressed together, the unit of reading and decompressing.
//!
//! A *plain* region is one zstd frame over the concatenation of its chunks, or the bytes themselves where zstd does not
//! make them smaller. A region *delta* carries a list of base chunks, and its frame has their bytes as its past:
//! whoever decodes it must bring them. How payloads are made and read, [`siltstone_similar::region`] says; here is
//! which chunks lie in one, and what is refused. Sealing is the container's work.
//!
//! [`EncodedRegion::encode`] decodes what it encoded and compares before it returns, always: a bit flipped by memory or
//! processor between reading a file and sealing a region is found while the source is still there. That takes 15-20 %
//! of the speed (420 MB of Rust sources, level 3, one core: 343-388 MB/s unchecked, 262-320 checked).

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::error::StoreError;
use crate::ids::{ChunkNumber, Fingerprint};
use std::fmt;

pub use siltstone_similar::region::{Codec, Level, RegionDecoder, RegionEncoder, RegionError, ZSTD_LEVEL_DEFAULT};

/// The plain bytes that a region of file chunks is filled to; one longer chunk makes a region of its own.
pub const DATA_REGION_BYTES_TARGET: usize = 2 << 20;
/// The plain bytes that a region of a catalog is filled to: few, because catalogs are read a node at a time, and a
/// damaged region should cost little.
pub const METADATA_REGION_BYTES_TARGET: usize = 512 << 10;
/// The longest chunk, and with it the longest region, in plain bytes. Bounds the memory that decoding one region takes.
pub const CHUNK_BYTES_MAX: usize = 16 << 20;
/// The most bytes the bases of a region can have together; with [`CHUNK_BYTES_MAX`] it bounds the memory that decoding
/// a delta takes.
pub const DELTA_BYTES_MAX: usize = 64 << 20;

/// A chunk as a container's index knows it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct ChunkEntry {
    /// Number of the chunk.
    pub number: ChunkNumber,
    /// The keyed hash of its content.
    pub fingerprint: Fingerprint,
    /// Length of the chunk in bytes, at least 1.
    pub length: u32,
}

/// A base chunk with its bytes.
#[derive(Clone, Copy, Debug)]
pub struct Base<'b> {
    /// Number of the chunk.
    pub number: ChunkNumber,
    /// Bytes of the chunk, verified.
    pub bytes: &'b [u8],
}

/// A region, compressed and not yet sealed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EncodedRegion {
    /// Encoding of the payload.
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

impl EncodedRegion {
    /// Encodes the chunks whose bytes, one after another, are `plain`.
    ///
    /// # Errors
    /// [`StoreError::Refused`] if lengths and bytes disagree, numbers do not ascend, or there is no chunk;
    /// [`StoreError::Limit`] past [`CHUNK_BYTES_MAX`]; [`StoreError::SelfCheck`] if the result does not decode to
    /// `plain`; [`StoreError::Machine`] if memory runs out.
    pub fn encode(encoder: &mut RegionEncoder, chunks: Vec<ChunkEntry>, plain: &[u8]) -> Result<Self, StoreError> {
        Self::encode_members(encoder, chunks, &[plain])
    }

    /// As [`encode`](Self::encode), of chunks whose bytes lie apart: they are those of `members`, one after another.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode).
    pub fn encode_members(
        encoder: &mut RegionEncoder,
        chunks: Vec<ChunkEntry>,
        members: &[&[u8]],
    ) -> Result<Self, StoreError> {
        let plain_bytes = validated_bytes(&chunks, members)?;
        let mut payload = Vec::new();
        let codec = encoder.encode_plain(members, &mut payload).map_err(unable)?;
        encoder.check_plain(codec, &payload, members).map_err(unable)?;
        let payload = fitted(payload);
        Ok(Self { codec, bases: Vec::new(), chunks, plain_bytes, payload })
    }

    /// Encodes the chunks whose bytes, one after another, are those of `members`, as a delta against `bases`, ascending
    /// by number; as a plain region if there are none.
    ///
    /// # Errors
    /// Those of [`encode`](Self::encode); [`StoreError::Refused`] too if the bases do not ascend, are of the other kind
    /// or among the chunks, [`StoreError::Limit`] past [`DELTA_BYTES_MAX`] of bases.
    pub fn encode_against(
        encoder: &mut RegionEncoder,
        bases: &[Base<'_>],
        chunks: Vec<ChunkEntry>,
        members: &[&[u8]],
    ) -> Result<Self, StoreError> {
        if bases.is_empty() {
            return Self::encode_members(encoder, chunks, members);
        }
        let plain_bytes = validated_bytes(&chunks, members)?;
        let numbers: Vec<_> = bases.iter().map(|base| base.number).collect();
        validate_bases(&"a new region", &numbers, &chunks).map_err(own_mistake)?;
        let bytes: Vec<&[u8]> = bases.iter().map(|base| base.bytes).collect();
        bounded_base_bytes(&"a new region", &bytes)?;
        let mut payload = Vec::new();
        let codec = encoder.encode(&bytes, members, &mut payload);
        encoder.check(codec, &bytes, &payload, members).map_err(unable)?;
        let payload = fitted(payload);
        Ok(Self { codec, bases: numbers, chunks, plain_bytes, payload })
    }

    /// Decodes the payload to the region's plain bytes; `object` and `part` name it in errors. `bases` are the bytes of
    /// the region's bases, in its order. Never gives or allocates more than `plain_bytes` and, of a delta, its bases.
    ///
    /// A wrong base of the right length can give wrong bytes without an error: fingerprints tell.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if the payload does not decode to exactly `plain_bytes`; [`StoreError::Limit`] past
    /// [`CHUNK_BYTES_MAX`] or [`DELTA_BYTES_MAX`]; [`StoreError::Refused`] if not as many bases are brought as the
    /// region has; [`StoreError::Machine`] if memory runs out.
    pub fn decode(
        self,
        decoder: &mut RegionDecoder,
        object: &dyn fmt::Display,
        part: &str,
        bases: &[&[u8]],
    ) -> Result<Vec<u8>, StoreError> {
        self.decode_into(Vec::new(), decoder, object, part, bases)
    }

    /// As [`decode`](Self::decode), into the memory of a vector whose content is not wanted any more.
    ///
    /// # Errors
    /// Those of [`decode`](Self::decode).
    pub fn decode_into(
        self,
        mut plain: Vec<u8>,
        decoder: &mut RegionDecoder,
        object: &dyn fmt::Display,
        part: &str,
        bases: &[&[u8]],
    ) -> Result<Vec<u8>, StoreError> {
        let place = (object, part);
        let plain_bytes = self.plain_bytes_for(place, bases)?;
        if bases.is_empty() && self.codec == Codec::Raw && self.payload.len() == plain_bytes {
            return Ok(self.payload);
        }
        let decoded = match bases {
            [] => decoder.decode_plain(self.codec, &self.payload, plain_bytes, &mut plain),
            bases => decoder.decode_into(self.codec, bases, &self.payload, plain_bytes, &mut plain),
        };
        decoded.map_err(|error| error_of(place, error))?;
        Ok(plain)
    }

    /// The length of the plain bytes, if it and these bases are within bounds.
    fn plain_bytes_for(&self, (object, part): Place<'_>, bases: &[&[u8]]) -> Result<usize, StoreError> {
        if bases.len() != self.bases.len() {
            let reason = format!("{} bases were brought for {}", bases.len(), self.bases.len());
            return Err(StoreError::Refused { what: format!("{object} ({part})"), reason });
        }
        let plain_bytes = bounded_plain_bytes(object, self.plain_bytes.into())?;
        bounded_base_bytes(object, bases)?;
        Ok(plain_bytes)
    }
}

/// An object, and a part of it.
type Place<'p> = (&'p dyn fmt::Display, &'p str);

/// An error of a decoder, as one of the region there.
fn error_of((object, part): Place<'_>, error: RegionError) -> StoreError {
    match error {
        RegionError::Failed { .. } => unable(error),
        _ => StoreError::damaged(object, part, error.to_string()),
    }
}

/// Returns the chunks of a decoded region, each with its bytes. Stops short where the bytes end before the chunks do.
pub fn split_region<'p>(chunks: &[ChunkEntry], plain: &'p [u8]) -> impl Iterator<Item = (ChunkEntry, &'p [u8])> {
    let mut rest = plain;
    chunks.iter().map_while(move |chunk| {
        let (bytes, after) = rest.split_at_checked(usize::try_from(chunk.length).ok()?)?;
        rest = after;
        Some((*chunk, bytes))
    })
}

/// Gives back the room that an encoder had made for the worst case, where much of it was not needed: encoded regions
/// wait for others, and are counted by their lengths.
fn fitted(mut payload: Vec<u8>) -> Vec<u8> {
    if payload.capacity() / 2 > payload.len() {
        payload.shrink_to_fit();
    }
    payload
}

/// Checks a region's chunks, and returns the sum of their lengths: at least one, none empty, numbers ascending.
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

fn validated_bytes(chunks: &[ChunkEntry], members: &[&[u8]]) -> Result<u32, StoreError> {
    let plain_bytes = validate_chunks(&"a new region", chunks).map_err(own_mistake)?;
    let given = members.iter().fold(0u64, |sum, member| sum.saturating_add(member.len() as u64));
    if u64::from(plain_bytes) != given {
        let reason = format!("its chunks have {plain_bytes} bytes, {given} were given");
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

/// The error of a region that cannot be encoded, or not decoded for want of memory.
fn unable(error: RegionError) -> StoreError {
    match error {
        RegionError::CheckFailed => StoreError::SelfCheck { what: "a region".into() },
        error => StoreError::Machine { operation: "encoding or decoding a region", reason: error.to_string() },
    }
}

fn bounded_plain_bytes(object: &dyn fmt::Display, found: u64) -> Result<usize, StoreError> {
    usize::try_from(found)
        .ok()
        .filter(|bytes| *bytes <= CHUNK_BYTES_MAX)
        .ok_or_else(|| StoreError::limit(object, "the plain size of a region", found, CHUNK_BYTES_MAX as u64))
}

/// Turns a complaint about bytes at rest into one about what the caller gave.
fn own_mistake(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { object, part, reason } => {
            StoreError::Refused { what: format!("{object} ({part})"), reason }
        }
        other => other,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use siltstone_similar::region::plain;

    fn entries(lengths: &[usize]) -> Vec<ChunkEntry> {
        let entry = |(number, length): (usize, &usize)| ChunkEntry {
            number: ChunkNumber(number as u64),
            fingerprint: Fingerprint([0; 16]),
            length: *length as u32,
        };
        lengths.iter().enumerate().map(entry).collect()
    }

    fn encode(lengths: &[usize], plain: &[u8]) -> Result<EncodedRegion, StoreError> {
        EncodedRegion::encode(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), entries(lengths), plain)
    }

    fn decode(region: EncodedRegion) -> Result<Vec<u8>, StoreError> {
        region.decode(&mut RegionDecoder::new(), &"data/x", "region 0", &[])
    }

    #[test]
    fn text_shrinks_and_noise_is_stored_raw() {
        let text = b"silt settles, stone stays. ".repeat(1000);
        let region = encode(&[text.len()], &text).unwrap();
        let room = region.payload.capacity();
        assert!(room < 2 * region.payload.len(), "{room} for {}", region.payload.len());
        assert_eq!(region.codec, Codec::Zstd);
        assert!(region.payload.len() < text.len() / 50);
        assert_eq!(decode(region).unwrap(), text);

        let noise = blake3::hash(b"noise").as_bytes().to_vec();
        let region = encode(&[30, 2], &noise).unwrap();
        assert_eq!((region.codec, &region.payload), (Codec::Raw, &noise));
    }

    #[test]
    fn what_is_not_a_region_is_refused() {
        assert!(encode(&[], b"").is_err());
        assert!(encode(&[3, 0], b"abc").is_err());
        assert!(encode(&[3], b"abcd").is_err());
        assert!(matches!(encode(&[CHUNK_BYTES_MAX + 1], b""), Err(StoreError::Limit { .. })));
        let mut unordered = entries(&[1, 1]);
        unordered.swap(0, 1);
        let error = EncodedRegion::encode(&mut RegionEncoder::fast(3), unordered, b"ab").unwrap_err();
        assert!(matches!(error, StoreError::Refused { .. }), "{error:?}");
    }

    #[test]
    fn a_decompression_bomb_stops_at_the_stated_size() {
        let bomb = plain::compress(&vec![0; 100 << 20], 3).unwrap();
        let region = |plain_bytes, payload: &[u8]| EncodedRegion {
            codec: Codec::Zstd,
            bases: Vec::new(),
            chunks: Vec::new(),
            plain_bytes,
            payload: payload.to_vec(),
        };
        assert!(matches!(decode(region(1000, &bomb)), Err(StoreError::Damaged { .. })));
        assert!(matches!(decode(region(u32::MAX, &bomb)), Err(StoreError::Limit { .. })));
        let short = plain::compress(&[0; 999], 3).unwrap();
        assert!(matches!(decode(region(1000, &short)), Err(StoreError::Damaged { .. })));
    }

    #[test]
    fn a_delta_needs_its_bases_and_little_else() {
        let base: Vec<u8> = (0..40_000u32).flat_map(|i| i.wrapping_mul(i).to_le_bytes()).collect();
        let mut plain = base.clone();
        plain[70_000..70_004].copy_from_slice(b"edit");
        let bases = [Base { number: ChunkNumber(7), bytes: &base }];
        let chunks = entries(&[100_000, plain.len() - 100_000]);
        let region = EncodedRegion::encode_against(&mut RegionEncoder::fast(3), &bases, chunks, &[&plain]).unwrap();
        assert_eq!(region.bases, [ChunkNumber(7)]);
        assert!(region.payload.len() < 200, "{}", region.payload.len());
        let mut decoder = RegionDecoder::new();
        assert_eq!(region.clone().decode(&mut decoder, &"x", "region 0", &[&base]).unwrap(), plain);
        assert!(matches!(region.clone().decode(&mut decoder, &"x", "region 0", &[]), Err(StoreError::Refused { .. })));
        let other = vec![0; base.len()];
        let wrong = region.decode(&mut decoder, &"x", "region 0", &[&other]);
        assert!(wrong.is_err() || wrong.is_ok_and(|bytes| bytes != plain));
    }

    #[test]
    fn what_is_no_base_is_refused() {
        let bytes = [1u8; 100];
        let base = |number| Base { number, bytes: &bytes };
        let refused = |bases: &[Base<'_>]| {
            let result =
                EncodedRegion::encode_against(&mut RegionEncoder::fast(3), bases, entries(&[50, 50]), &[&bytes]);
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

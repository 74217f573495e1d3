//! Encoding regions: plain ones, and deltas against bases.

use super::delta::DeltaEncoder;
use super::levels::Level;
use super::plain::{PlainEncoder, ZSTD_LEVEL_DEFAULT};
use super::{Codec, RegionDecoder, RegionError, length};
use alloc::vec::Vec;
use core::fmt;
use siltstone_simd::Isa;

/// Encodes regions, one after another, reusing its memory. Nothing is allocated for what it is not asked for: plain
/// regions take about 1.5 MiB at level 3; deltas the longest region with its bases, and some tables; checks as much as
/// a [`RegionDecoder`] does.
pub struct RegionEncoder {
    plain_level: i32,
    plain: Option<PlainEncoder>,
    delta_level: i32,
    /// The instruction set of the search at [`Level::Fast`].
    search: Option<Isa>,
    delta: Option<DeltaEncoder>,
    decoder: RegionDecoder,
    /// Members of a plain region, one after another, where they are several.
    joined: Vec<u8>,
    /// The text of the plain region that is checked.
    text: Vec<u8>,
}

impl RegionEncoder {
    /// Creates an encoder at a level. At [`Level::Fast`] it encodes plain regions at [`ZSTD_LEVEL_DEFAULT`].
    ///
    /// # Errors
    /// [`RegionError::BadLevel`] if it is not one of zstd's 1 to 19.
    pub fn new(level: Level) -> Result<Self, RegionError> {
        Self::with_isa(level, Isa::best())
    }

    /// Creates an encoder that searches with the vectors of `isa`: the payloads are the same.
    ///
    /// # Errors
    /// [`RegionError::BadLevel`] if the level is not one of zstd's 1 to 19.
    pub fn with_isa(level: Level, isa: Isa) -> Result<Self, RegionError> {
        let delta_level = level.number()?;
        let (plain_level, search) = match level {
            Level::Fast => (ZSTD_LEVEL_DEFAULT, Some(isa)),
            Level::Zstd(level) => (level, None),
        };
        Ok(Self::at(plain_level, delta_level, search))
    }

    /// Creates an encoder of deltas at [`Level::Fast`] and of plain regions at any of zstd's levels, of which it takes
    /// the nearest.
    pub fn fast(plain_level: i32) -> Self {
        Self::at(plain_level, Level::FALLBACK, Some(Isa::best()))
    }

    fn at(plain_level: i32, delta_level: i32, search: Option<Isa>) -> Self {
        let (decoder, joined, text) = (RegionDecoder::new(), Vec::new(), Vec::new());
        Self { plain_level, plain: None, delta_level, search, delta: None, decoder, joined, text }
    }

    /// Encodes a plain region, the members, one after another, into `out`, whose content is replaced. The same bytes
    /// give the same payload, whatever was encoded before.
    ///
    /// # Errors
    /// [`RegionError::Failed`] if memory runs out.
    pub fn encode_plain(&mut self, members: &[&[u8]], out: &mut Vec<u8>) -> Result<Codec, RegionError> {
        let encoder = match &mut self.plain {
            Some(encoder) => encoder,
            none => none.insert(PlainEncoder::new(self.plain_level)?),
        };
        let text = match members {
            [text] => text,
            _ => {
                self.joined.clear();
                for member in members {
                    self.joined.extend_from_slice(member);
                }
                self.joined.as_slice()
            }
        };
        encoder.encode(text, out)
    }

    /// Encodes a region delta: the members, one after another, with the bases as their past, which may be none. `out`
    /// is replaced by the payload. The same bases and members give the same payload, whatever was encoded before.
    ///
    /// # Panics
    /// If memory runs out, or bases and members are more than [`REGION_BYTES_MAX`](super::REGION_BYTES_MAX) together.
    pub fn encode(&mut self, bases: &[&[u8]], members: &[&[u8]], out: &mut Vec<u8>) -> Codec {
        self.delta.get_or_insert_with(|| DeltaEncoder::new(self.delta_level, self.search)).encode(bases, members, out)
    }

    /// Decodes the payload of a plain region again, and compares it with its members: a bit flipped by memory or
    /// processor is found while they are still there.
    ///
    /// # Errors
    /// [`RegionError::CheckFailed`] if it does not decode to them; [`RegionError::Failed`] if memory runs out.
    pub fn check_plain(&mut self, codec: Codec, payload: &[u8], members: &[&[u8]]) -> Result<(), RegionError> {
        verdict(match codec {
            Codec::Raw => Ok(is_of(payload, members)),
            Codec::Zstd => {
                let decoded = self.decoder.decode_plain(codec, payload, length(members), &mut self.text);
                decoded.map(|()| is_of(&self.text, members))
            }
        })
    }

    /// Decodes the payload of a region delta again, and compares it with its members.
    ///
    /// # Errors
    /// [`RegionError::CheckFailed`] if it does not decode to them; [`RegionError::Failed`] if memory runs out.
    pub fn check(
        &mut self,
        codec: Codec,
        bases: &[&[u8]],
        payload: &[u8],
        members: &[&[u8]],
    ) -> Result<(), RegionError> {
        let decoded = self.decoder.decode(codec, bases, payload, length(members));
        verdict(decoded.map(|decoded| is_of(decoded, members)))
    }
}

/// Tells whether a text is these members, one after another.
fn is_of(text: &[u8], members: &[&[u8]]) -> bool {
    let rest = members.iter().try_fold(text, |rest, member| rest.strip_prefix(*member));
    rest.is_some_and(<[u8]>::is_empty)
}

/// Turns the comparison of a text decoded again into the result of a check.
fn verdict(is_same: Result<bool, RegionError>) -> Result<(), RegionError> {
    match is_same {
        Ok(true) => Ok(()),
        Err(error @ RegionError::Failed { .. }) => Err(error),
        Ok(false) | Err(_) => Err(RegionError::CheckFailed),
    }
}

impl fmt::Debug for RegionEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionEncoder")
    }
}

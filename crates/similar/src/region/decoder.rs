//! Decoding regions: bounded in output, memory and work, whatever the payload is.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::kernel::{Complaint, Decompressor, window_bytes};
use super::plain::{decompress_into, failed};
use super::{Codec, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use alloc::vec::Vec;
use core::fmt;

/// Decodes regions, one after another, reusing its memory: as much as a delta's bases had at most, and its text where
/// the decoder keeps that. Nothing is allocated before the first.
#[derive(Default)]
pub struct RegionDecoder {
    plain: Option<Decompressor>,
    prefixed: Option<Decompressor>,
    /// Prefix of the delta at work: its bases, one after another.
    prefix: Vec<u8>,
    /// Text of the delta decoded last.
    text: Vec<u8>,
}

impl RegionDecoder {
    /// Creates a decoder.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes a plain region into `text`, whose content is replaced by its members, one after another, `text_bytes` in
    /// all. A payload that lies about its text cannot make it write or allocate more.
    ///
    /// # Errors
    /// [`RegionError::TooLong`] if the text is longer than [`REGION_BYTES_MAX`]; [`RegionError::BadFrame`] and
    /// [`RegionError::WrongLength`] if the payload is not one of such a text; [`RegionError::Failed`] if memory runs
    /// out.
    pub fn decode_plain(
        &mut self,
        codec: Codec,
        payload: &[u8],
        text_bytes: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), RegionError> {
        if text_bytes > REGION_BYTES_MAX {
            return Err(RegionError::TooLong { bytes: text_bytes });
        }
        match codec {
            Codec::Zstd => decompress_into(ready(&mut self.plain, Decompressor::plain)?, payload, text_bytes, text),
            Codec::Raw => copy(payload, text_bytes, text),
        }
    }

    /// Decodes a region delta with the bytes of its bases, and returns its text, which the decoder keeps until the next
    /// one.
    ///
    /// # Errors
    /// Those of [`decode_into`](Self::decode_into).
    pub fn decode(
        &mut self,
        codec: Codec,
        bases: &[&[u8]],
        payload: &[u8],
        text_bytes: usize,
    ) -> Result<&[u8], RegionError> {
        let mut text = core::mem::take(&mut self.text);
        let decoded = self.decode_into(codec, bases, payload, text_bytes, &mut text);
        self.text = text;
        decoded.map(|()| self.text.as_slice())
    }

    /// Decodes a region delta with the bytes of its bases into `text`, whose content is replaced by its members, one
    /// after another, `text_bytes` in all.
    ///
    /// A payload that lies about its text cannot make it write more than `text_bytes`, or allocate more than these and
    /// the bases' bytes. A damaged payload, or other bases than it was encoded with, can give a wrong text: who stores
    /// chunks knows their fingerprints.
    ///
    /// # Errors
    /// [`RegionError::TooLong`] if bases and text have more than [`REGION_BYTES_MAX`] together;
    /// [`RegionError::BadFrame`] and [`RegionError::WrongLength`] if the payload is not one of such a text;
    /// [`RegionError::Failed`] if memory runs out.
    pub fn decode_into(
        &mut self,
        codec: Codec,
        bases: &[&[u8]],
        payload: &[u8],
        text_bytes: usize,
        text: &mut Vec<u8>,
    ) -> Result<(), RegionError> {
        let prefix_bytes = length(bases);
        let bytes = prefix_bytes.saturating_add(text_bytes);
        if bytes > REGION_BYTES_MAX {
            return Err(RegionError::TooLong { bytes });
        }
        if codec == Codec::Raw {
            return copy(payload, text_bytes, text);
        }
        let bad = |reason| RegionError::BadFrame { reason };
        if window_bytes(payload).map_err(bad)? > 1 << window_log(bytes) {
            return Err(bad("its window is larger than bases and text"));
        }
        grow(&mut self.prefix, prefix_bytes);
        let prefix = self.prefix.get_mut(..prefix_bytes).unwrap_or_default();
        concatenate(prefix, bases);
        let decompressor = ready(&mut self.prefixed, Decompressor::prefixed)?;
        decompressor.decompress(prefix, payload, text_bytes, text).map_err(bad)?;
        if text.len() != text_bytes {
            return Err(RegionError::WrongLength { expected: text_bytes, found: text.len() });
        }
        Ok(())
    }
}

impl fmt::Debug for RegionDecoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionDecoder")
    }
}

/// The decompressor, made when it is first asked for.
pub(super) fn ready(
    decompressor: &mut Option<Decompressor>,
    make: fn() -> Result<Decompressor, Complaint>,
) -> Result<&mut Decompressor, RegionError> {
    match decompressor {
        Some(decompressor) => Ok(decompressor),
        none => Ok(none.insert(make().map_err(failed)?)),
    }
}

/// Replaces the text by a payload that is one of so many bytes as it stands.
fn copy(payload: &[u8], text_bytes: usize, text: &mut Vec<u8>) -> Result<(), RegionError> {
    if payload.len() != text_bytes {
        return Err(RegionError::WrongLength { expected: text_bytes, found: payload.len() });
    }
    text.clear();
    text.extend_from_slice(payload);
    Ok(())
}

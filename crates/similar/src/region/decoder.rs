//! Decoding regions: bounded in output, memory and work, whatever the payload is.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::kernel::{Complaint, Decompressor, window_bytes};
use super::plain::{decompress_into, failed};
use super::{Codec, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use alloc::vec::Vec;
use core::fmt;

/// Decodes regions, one after another, reusing its memory: as much as the longest delta had with its bases. Nothing is
/// allocated before the first.
#[derive(Default)]
pub struct RegionDecoder {
    plain: Option<Decompressor>,
    prefixed: Option<Decompressor>,
    /// Prefix and text of the delta at work.
    whole: Vec<u8>,
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
            Codec::Raw if payload.len() == text_bytes => {
                text.clear();
                text.extend_from_slice(payload);
                Ok(())
            }
            Codec::Raw => Err(RegionError::WrongLength { expected: text_bytes, found: payload.len() }),
        }
    }

    /// Decodes a region delta with the bytes of its bases, and returns its text: its members, one after another,
    /// `text_bytes` in all.
    ///
    /// A payload that lies about its text cannot make it write more than `text_bytes`, or allocate more than these and
    /// the bases' bytes. A damaged payload, or other bases than it was encoded with, can give a wrong text: who stores
    /// chunks knows their fingerprints.
    ///
    /// # Errors
    /// [`RegionError::TooLong`] if bases and text have more than [`REGION_BYTES_MAX`] together;
    /// [`RegionError::BadFrame`] and [`RegionError::WrongLength`] if the payload is not one of such a text;
    /// [`RegionError::Failed`] if memory runs out.
    pub fn decode(
        &mut self,
        codec: Codec,
        bases: &[&[u8]],
        payload: &[u8],
        text_bytes: usize,
    ) -> Result<&[u8], RegionError> {
        let prefix_bytes = length(bases);
        let bytes = prefix_bytes.saturating_add(text_bytes);
        if bytes > REGION_BYTES_MAX {
            return Err(RegionError::TooLong { bytes });
        }
        grow(&mut self.whole, bytes);
        let whole = self.whole.get_mut(..bytes).unwrap_or_default();
        let found = match codec {
            Codec::Raw => copy(payload, whole.get_mut(prefix_bytes..).unwrap_or_default()),
            Codec::Zstd => {
                let bad = |reason| RegionError::BadFrame { reason };
                if window_bytes(payload).map_err(bad)? > 1 << window_log(bytes) {
                    return Err(bad("its window is larger than bases and text"));
                }
                concatenate(whole, bases);
                let decompressor = ready(&mut self.prefixed, Decompressor::prefixed)?;
                decompressor.decompress(whole, prefix_bytes, payload).map_err(bad)?
            }
        };
        if found != text_bytes {
            return Err(RegionError::WrongLength { expected: text_bytes, found });
        }
        Ok(self.whole.get(prefix_bytes..bytes).unwrap_or_default())
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

/// Copies the payload over the text if they are equally long, and returns the bytes that the payload has.
fn copy(payload: &[u8], text: &mut [u8]) -> usize {
    if payload.len() == text.len() {
        text.copy_from_slice(payload);
    }
    payload.len()
}

//! Decoding regions: bounded in output, memory and work, whatever the payload is.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::kernel::{Decompressor, window_bytes};
use super::{Form, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use alloc::vec::Vec;
use core::fmt;

/// Decodes regions, one after another, reusing its memory: as much as the longest region had with its bases.
pub struct RegionDecoder {
    decompressor: Decompressor,
    /// Prefix and text of the region at work.
    whole: Vec<u8>,
}

impl RegionDecoder {
    /// A decoder.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn new() -> Self {
        Self { decompressor: Decompressor::new(), whole: Vec::new() }
    }

    /// The text of a region: its members, one after another, `text_bytes` in all.
    ///
    /// A payload that lies about its text cannot make it write more than `text_bytes`, or allocate more than these and
    /// the bases' bytes. A damaged payload, or other bases than it was encoded with, can give a wrong text: who stores
    /// chunks knows their fingerprints.
    ///
    /// # Errors
    /// [`RegionError::TooLong`] if bases and text are more than [`REGION_BYTES_MAX`] together;
    /// [`RegionError::BadFrame`] and [`RegionError::WrongLength`] if the payload is not one of such a text.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn decode(
        &mut self,
        form: Form,
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
        let found = match form {
            Form::Raw => copy(payload, whole.get_mut(prefix_bytes..).unwrap_or_default()),
            Form::Zstd => {
                let bad = |reason| RegionError::BadFrame { reason };
                if window_bytes(payload).map_err(bad)? > 1 << window_log(bytes) {
                    return Err(bad("its window is larger than bases and text"));
                }
                concatenate(whole, bases);
                self.decompressor.decompress(whole, prefix_bytes, payload).map_err(bad)?
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

impl Default for RegionDecoder {
    fn default() -> Self {
        Self::new()
    }
}

/// Copies the payload over the text if they are equally long; gives the bytes that the payload has.
fn copy(payload: &[u8], text: &mut [u8]) -> usize {
    if payload.len() == text.len() {
        text.copy_from_slice(payload);
    }
    payload.len()
}

//! Plain frames: ordinary zstd frames of a text alone, with magic number and content size, which every zstd decoder
//! reads.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::kernel::{Compressor, Decompressor, content_bytes};
use super::{Codec, RegionError, window_log};
use alloc::vec::Vec;

/// The default zstd level of plain regions. At it window and table are chosen here, not by zstd: a window of a whole
/// region, and a hash table that stays in the cache next to the core. Beside a table of four times the size this gives
/// 0.7 to 1.4 % more bytes at 1.2 to 1.5 times the speed, beside zstd's level 1 1 to 3 % fewer at 0.9 of it (sources,
/// Redis dumps, a root file system in regions of 2 MiB; one core, November 2026, zstd 1.5.7).
pub const ZSTD_LEVEL_DEFAULT: i32 = 2;
/// Logarithm of the window at the default level, bytes: 2 MiB.
const WINDOW_LOG: u32 = 21;
/// Stands for the window that a level has by itself.
const OWN_WINDOW: u32 = 0;
/// Sizes of the tables at the default level.
const TABLES: super::levels::Tables = super::levels::Tables { hash_log: 15, chain_log: 0, word_bytes: 6 };

/// Encodes plain regions, one after another, reusing its memory: about 1.5 MiB at level 3.
pub(super) struct PlainEncoder {
    compressor: Compressor,
    level: i32,
}

impl PlainEncoder {
    /// An encoder at this level of zstd.
    ///
    /// # Errors
    /// [`RegionError::Failed`] if memory runs out.
    pub(super) fn new(level: i32) -> Result<Self, RegionError> {
        let mut compressor = compressor(level)?;
        if level == ZSTD_LEVEL_DEFAULT {
            compressor.set_window(WINDOW_LOG);
            compressor.set_tables(TABLES);
        }
        Ok(Self { compressor, level })
    }

    /// Encodes a text into `out`, whose content is replaced: a frame, or the text itself if that is not longer.
    ///
    /// # Errors
    /// [`RegionError::Failed`] if memory runs out.
    pub(super) fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<Codec, RegionError> {
        if self.level != ZSTD_LEVEL_DEFAULT {
            // Levels up to 15 would not look back over all of a long text; for a short one the level's own is right.
            let is_long = text.len() > 1 << WINDOW_LOG;
            self.compressor.set_window(if is_long { window_log(text.len()) } else { OWN_WINDOW });
        }
        self.compressor.compress_plain(text, out).map_err(failed)?;
        if out.len() < text.len() {
            return Ok(Codec::Zstd);
        }
        out.clear();
        out.extend_from_slice(text);
        Ok(Codec::Raw)
    }
}

/// Compresses a text into one plain frame, at one of zstd's levels as they are.
///
/// # Errors
/// [`RegionError::Failed`] if memory runs out.
pub fn compress(text: &[u8], level: i32) -> Result<Vec<u8>, RegionError> {
    let mut frame = Vec::new();
    compressor(level)?.compress_plain(text, &mut frame).map_err(failed)?;
    Ok(frame)
}

/// Decompresses one plain frame of `text_bytes`. It never gives or allocates more, whatever the frame says.
///
/// # Errors
/// [`RegionError::BadFrame`] and [`RegionError::WrongLength`] if `frame` is not one of such a text;
/// [`RegionError::Failed`] if memory runs out.
pub fn decompress(frame: &[u8], text_bytes: usize) -> Result<Vec<u8>, RegionError> {
    let mut text = Vec::new();
    decompress_into(&mut Decompressor::plain().map_err(failed)?, frame, text_bytes, &mut text)?;
    Ok(text)
}

/// Decompresses one plain frame of `text_bytes` into `text`, whose content is replaced.
pub(super) fn decompress_into(
    decompressor: &mut Decompressor,
    frame: &[u8],
    text_bytes: usize,
    text: &mut Vec<u8>,
) -> Result<(), RegionError> {
    let bad = |reason| RegionError::BadFrame { reason };
    let wrong = |found| Err(RegionError::WrongLength { expected: text_bytes, found });
    // Nothing is allocated for a frame that says itself that it is of another text.
    if let Some(stated) = content_bytes(frame).map_err(bad)? {
        let stated = usize::try_from(stated).unwrap_or(usize::MAX);
        if stated != text_bytes {
            return wrong(stated);
        }
    }
    decompressor.decompress_plain(frame, text_bytes, text).map_err(bad)?;
    if text.len() == text_bytes { Ok(()) } else { wrong(text.len()) }
}

fn compressor(level: i32) -> Result<Compressor, RegionError> {
    Compressor::plain(level).map_err(failed)
}

pub(super) fn failed(reason: super::kernel::Complaint) -> RegionError {
    RegionError::Failed { reason }
}

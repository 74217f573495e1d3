//! Plain frames: ordinary zstd frames of a text alone, with magic number and content size, which every zstd decoder
//! reads.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::decoder::ready;
use super::kernel::{Compressor, Decompressor, content_bytes};
use super::levels::Tables;
use super::{Codec, RegionError, window_log};
use alloc::vec::Vec;
use core::cell::RefCell;

/// The default zstd level of plain regions. At it the window is a whole region, the hash table is chosen here, and a
/// text that is short or compresses well is encoded at zstd's level 3.
pub const ZSTD_LEVEL_DEFAULT: i32 = 2;
/// Logarithm of the window at the default level, bytes: 2 MiB.
const WINDOW_LOG: u32 = 21;
/// Stands for the window that a level has by itself.
const OWN_WINDOW: u32 = 0;

/// Parameters of zstd's search for matches.
#[derive(Clone, Copy)]
struct Parameters {
    level: i32,
    tables: Tables,
}

/// zstd's level 2 with a hash table of 256 KiB, which stays in the cache next to the core. Half of that table gives 0.4
/// to 7.4 % more bytes in 0.90 to 0.97 of the time, where records of text have most to lose; twice the table 0.1 to
/// 3.9 % fewer in 0.95 to 1.4 of it. (Here and below: JSON, CSV, logs, headers, binaries, sources, and JavaScript in
/// regions of 2 MiB; one core of an AMD EPYC that has 512 KiB of that cache, November 2026, zstd 1.5.)
const QUICK: Parameters =
    Parameters { level: ZSTD_LEVEL_DEFAULT, tables: Tables { hash_log: 16, chain_log: 0, word_bytes: 6 } };
/// zstd's level 3 as it is: beside [`QUICK`] 5 to 8 % fewer bytes of headers, sources and JavaScript in 1.1 to 1.3 of
/// the time, 5 % of binaries in 1.4; but 2 and 3 % of logs and JSON in 1.3 and 1.4, and of CSV 1 % more in 1.6.
const THOROUGH: Parameters = Parameters { level: 3, tables: Tables { hash_log: 0, chain_log: 0, word_bytes: 0 } };
/// Bytes in the middle of a text by which it is judged. A text of less than four times as many is always searched
/// thoroughly.
const SAMPLE_BYTES: usize = 32 << 10;
/// A text compresses well if its sample has at least so many times the bytes of its frame. There a thorough search
/// costs least, for it has few steps, and as a rule it finds most.
const WELL: usize = 3;

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
        Ok(Self { compressor: compressor(level)?, level })
    }

    /// Encodes a text into `out`, whose content is replaced: a frame, or the text itself if that is not longer.
    ///
    /// # Errors
    /// [`RegionError::Failed`] if memory runs out.
    pub(super) fn encode(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<Codec, RegionError> {
        if self.level == ZSTD_LEVEL_DEFAULT {
            let parameters = self.parameters(text, out)?;
            self.choose(parameters);
        } else {
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

    /// Returns the parameters for a text, at the default level; `out` is memory for what its sample comes to.
    fn parameters(&mut self, text: &[u8], out: &mut Vec<u8>) -> Result<Parameters, RegionError> {
        let begin = text.len() / 2;
        let Some(sample) = text.get(begin..begin + SAMPLE_BYTES).filter(|_| text.len() >= 4 * SAMPLE_BYTES) else {
            return Ok(THOROUGH);
        };
        self.choose(QUICK);
        self.compressor.compress_plain(sample, out).map_err(failed)?;
        Ok(if WELL * out.len() <= sample.len() { THOROUGH } else { QUICK })
    }

    fn choose(&mut self, parameters: Parameters) {
        self.compressor.set_tables(parameters.tables);
        self.compressor.set_level(parameters.level);
        self.compressor.set_window(WINDOW_LOG);
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
    DECOMPRESSOR.with_borrow_mut(|decompressor| {
        decompress_into(ready(decompressor, Decompressor::plain)?, frame, text_bytes, &mut text)
    })?;
    Ok(text)
}

thread_local! {
    /// Decompressor of this thread's frames, about 100 kB. Making one asks the processor what it can do. In a virtual
    /// machine the hypervisor answers, and takes some 30 microseconds, more than a small frame does.
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
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
    decompressor.decompress(&[], frame, text_bytes, text).map_err(bad)?;
    if text.len() == text_bytes { Ok(()) } else { wrong(text.len()) }
}

fn compressor(level: i32) -> Result<Compressor, RegionError> {
    Compressor::plain(level).map_err(failed)
}

pub(super) fn failed(reason: super::kernel::Complaint) -> RegionError {
    RegionError::Failed { reason }
}

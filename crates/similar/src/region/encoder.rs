//! Encoding regions.
//!
//! Prefix and text are copied into one slice. The library would take them where they are, but its loops for a past that
//! lies elsewhere are slower: at level 3, on the data of `mod.rs` in regions of 256 KiB, one slice was 17 / 29 / 23 / 7
//! % faster, copying counted, at the same size (November 2026).

use super::kernel::{BLOCK_BYTES_MAX, Compressor, Sequence};
use super::levels::{Level, Tables, looks_random};
use super::search::Search;
use super::{Form, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use crate::compare::BLOCK_BYTES;
use alloc::vec::Vec;
use core::fmt;
use siltstone_simd::Isa;

/// A frame must save a text's 64th: less is not worth decoding it.
const SAVED_SHARE: usize = 64;
/// From this level on, text that looks like noise is first tried at level 1.
const TRIED_LEVEL: i32 = 5;

/// Encodes regions, one after another, reusing its memory: that of the longest region with its bases, and some tables.
pub struct RegionEncoder {
    level: i32,
    compressor: Compressor,
    own: Option<Own>,
    /// For a first try.
    quick: Option<Compressor>,
    /// Prefix and text of the region at work.
    whole: Vec<u8>,
}

impl RegionEncoder {
    /// An encoder at this level.
    ///
    /// # Errors
    /// [`RegionError::BadLevel`] if it is not one of zstd's 1 to 19.
    ///
    /// # Panics
    /// If memory runs out.
    pub fn new(level: Level) -> Result<Self, RegionError> {
        Self::with_isa(level, Isa::best())
    }

    /// An encoder that searches with the vectors of `isa`: the payloads are the same.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    ///
    /// # Panics
    /// If memory runs out.
    pub fn with_isa(level: Level, isa: Isa) -> Result<Self, RegionError> {
        let own = (level == Level::Fast).then(|| Own::new(isa));
        let level = level.number()?;
        let quick = (level >= TRIED_LEVEL).then(|| Compressor::new(1));
        Ok(Self { level, compressor: Compressor::new(level), own, quick, whole: Vec::new() })
    }

    /// Encodes the members, one after another, with the bases as their past; without bases as an ordinary region. `out`
    /// is replaced by the payload. The same bases and members give the same payload, whatever was encoded before.
    ///
    /// # Panics
    /// If memory runs out, or bases and members are more than [`REGION_BYTES_MAX`] together.
    pub fn encode(&mut self, bases: &[&[u8]], members: &[&[u8]], out: &mut Vec<u8>) -> Form {
        let (prefix_bytes, text_bytes) = (length(bases), length(members));
        let bytes = prefix_bytes.saturating_add(text_bytes);
        assert!(bytes <= REGION_BYTES_MAX, "{}", RegionError::TooLong { bytes });
        grow(&mut self.whole, bytes + BLOCK_BYTES);
        concatenate(&mut self.whole, bases);
        concatenate(&mut self.whole[prefix_bytes..], members);
        self.whole[bytes..bytes + BLOCK_BYTES].fill(0);
        if self.compress(prefix_bytes, bytes, out) {
            return Form::Zstd;
        }
        out.clear();
        out.extend_from_slice(&self.whole[prefix_bytes..bytes]);
        Form::Raw
    }

    /// Compresses `whole[prefix_bytes..bytes]` into `out`; whether that was worth it.
    fn compress(&mut self, prefix_bytes: usize, bytes: usize, out: &mut Vec<u8>) -> bool {
        let text_bytes = bytes - prefix_bytes;
        let saves = |out: &Vec<u8>| out.len() + text_bytes / SAVED_SHARE < text_bytes;
        match &mut self.own {
            Some(own) if prefix_bytes >= text_bytes / 2 && prefix_bytes > 0 => {
                own.compress(&self.whole[..bytes + BLOCK_BYTES], prefix_bytes, out);
            }
            _ => {
                let (whole, log) = (&self.whole[..bytes], window_log(bytes));
                if let Some(quick) = &mut self.quick {
                    if looks_random(&whole[prefix_bytes..]) {
                        quick.set_tables(Tables::of(1, prefix_bytes, text_bytes, log));
                        quick.compress(log, whole, prefix_bytes, out);
                        if !saves(out) {
                            return false;
                        }
                    }
                }
                self.compressor.set_tables(Tables::of(self.level, prefix_bytes, text_bytes, log));
                self.compressor.compress(log, whole, prefix_bytes, out);
            }
        }
        saves(out)
    }
}

impl fmt::Debug for RegionEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RegionEncoder")
    }
}

/// What takes the place of zstd's search.
struct Own {
    search: Search,
    writer: Compressor,
    sequences: Vec<Sequence>,
}

impl Own {
    fn new(isa: Isa) -> Self {
        Self { search: Search::new(isa), writer: Compressor::writer(), sequences: Vec::new() }
    }

    /// Compresses what lies in `whole` between its prefix and the last window, which is zeros.
    fn compress(&mut self, whole: &[u8], prefix_bytes: usize, out: &mut Vec<u8>) {
        let text_end = whole.len() - BLOCK_BYTES;
        let window_log = window_log(text_end - prefix_bytes);
        let block_bytes = BLOCK_BYTES_MAX.min(1 << window_log);
        self.search.run(whole, prefix_bytes, text_end, block_bytes, &mut self.sequences);
        self.writer.write(window_log, &self.sequences, &whole[prefix_bytes..text_end], out);
    }
}

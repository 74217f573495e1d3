//! Encoding region deltas.
//!
//! Prefix and text are copied into one slice. The library would take them where they are, but its loops for a past that
//! lies elsewhere are slower: at level 3, on the data of `mod.rs` in regions of 256 KiB, one slice was 17 / 29 / 23 / 7
//! % faster, copying counted, at the same size (November 2026).

use super::kernel::{BLOCK_BYTES_MAX, Compressor, Sequence};
use super::levels::{Tables, looks_random};
use super::search::Search;
use super::{Codec, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use crate::compare::BLOCK_BYTES;
use alloc::vec::Vec;
use siltstone_simd::Isa;

/// A frame must save a text's 64th: less is not worth decoding it.
const SAVED_SHARE: usize = 64;
/// The level from which on text that looks like noise is first tried at level 1.
const TRIED_LEVEL: i32 = 5;

/// Encodes region deltas, one after another, reusing its memory.
pub(super) struct DeltaEncoder {
    level: i32,
    compressor: Compressor,
    own: Option<Own>,
    /// Compressor for a first try.
    quick: Option<Compressor>,
    /// Prefix and text of the region at work.
    whole: Vec<u8>,
}

impl DeltaEncoder {
    /// An encoder at one of zstd's levels, 1 to 19. With `search` it searches itself, by the vectors of that
    /// instruction set, what resembles its bases.
    ///
    /// # Panics
    /// If memory runs out.
    pub(super) fn new(level: i32, search: Option<Isa>) -> Self {
        let quick = (level >= TRIED_LEVEL).then(|| Compressor::prefixed(1));
        Self { level, compressor: Compressor::prefixed(level), own: search.map(Own::new), quick, whole: Vec::new() }
    }

    /// Encodes the members, one after another, with the bases as their past, into `out`, whose content is replaced.
    ///
    /// # Panics
    /// If memory runs out, or bases and members are more than [`REGION_BYTES_MAX`] together.
    pub(super) fn encode(&mut self, bases: &[&[u8]], members: &[&[u8]], out: &mut Vec<u8>) -> Codec {
        let (prefix_bytes, text_bytes) = (length(bases), length(members));
        let bytes = prefix_bytes.saturating_add(text_bytes);
        assert!(bytes <= REGION_BYTES_MAX, "{}", RegionError::TooLong { bytes });
        grow(&mut self.whole, bytes + BLOCK_BYTES);
        concatenate(&mut self.whole, bases);
        concatenate(&mut self.whole[prefix_bytes..], members);
        self.whole[bytes..bytes + BLOCK_BYTES].fill(0);
        if self.compress(prefix_bytes, bytes, out) {
            return Codec::Zstd;
        }
        out.clear();
        out.extend_from_slice(&self.whole[prefix_bytes..bytes]);
        Codec::Raw
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

/// The search that takes the place of zstd's, and a writer of what it finds.
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

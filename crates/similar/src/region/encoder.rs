//! Encoding regions.

use super::kernel::{BLOCK_BYTES_MAX, Compressor, Parameter, Sequence};
use super::search::{Search, WINDOW_BYTES};
use super::{Form, REGION_BYTES_MAX, RegionError, concatenate, grow, length, window_log};
use alloc::vec::Vec;
use siltstone_simd::Isa;

/// How hard the encoder tries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Siltstone's own search: made for text that is mostly copied from its bases.
    Fast,
    /// zstd's, 1 to 19.
    Zstd(i32),
}

/// Encodes regions, one after another, reusing its memory.
pub struct RegionEncoder {
    compressor: Compressor,
    own: Option<Own>,
    /// Prefix and text of the region at work.
    whole: Vec<u8>,
}

/// What takes the place of zstd's search.
struct Own {
    search: Search,
    writer: Compressor,
    sequences: Vec<Sequence>,
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
        let (level, own) = match level {
            Level::Fast => (3, Some(Own::new(Isa::best()))),
            Level::Zstd(level @ 1..=19) => (level.unsigned_abs(), None),
            Level::Zstd(level) => return Err(RegionError::BadLevel { level }),
        };
        let mut compressor = Compressor::new();
        compressor.set(Parameter::ZSTD_c_compressionLevel, level);
        Ok(Self { compressor, own, whole: Vec::new() })
    }

    /// Encodes the members, one after another, with the bases as their past; without bases as an ordinary region. `out` is
    /// replaced by the payload. The same bases and members give the same payload, whatever was encoded before.
    ///
    /// # Panics
    /// If memory runs out, or bases and members are more than [`REGION_BYTES_MAX`] together.
    pub fn encode(&mut self, bases: &[&[u8]], members: &[&[u8]], out: &mut Vec<u8>) -> Form {
        let (prefix_bytes, text_bytes) = (length(bases), length(members));
        let bytes = prefix_bytes.saturating_add(text_bytes);
        assert!(bytes <= REGION_BYTES_MAX, "{}", RegionError::TooLong { bytes });
        grow(&mut self.whole, bytes + WINDOW_BYTES);
        concatenate(&mut self.whole, bases);
        concatenate(&mut self.whole[prefix_bytes..], members);
        match &mut self.own {
            Some(own) if prefix_bytes > 0 => {
                self.whole[bytes..bytes + WINDOW_BYTES].fill(0);
                own.encode(&self.whole[..bytes + WINDOW_BYTES], prefix_bytes, out);
            }
            _ => {
                self.compressor.compress(window_log(bytes), &self.whole[..bytes], prefix_bytes, out);
            }
        }
        if out.len() < text_bytes {
            return Form::Zstd;
        }
        out.clear();
        out.extend_from_slice(&self.whole[prefix_bytes..bytes]);
        Form::Raw
    }
}

impl Own {
    fn new(isa: Isa) -> Self {
        let mut writer = Compressor::new();
        for (parameter, value) in [
            (Parameter::ZSTD_c_strategy, 4),
            (Parameter::ZSTD_c_hashLog, 6),
            (Parameter::ZSTD_c_chainLog, 6),
            (Parameter::ZSTD_c_minMatch, 4),
            (Parameter::ZSTD_c_experimentalParam11, 1),
            (Parameter::ZSTD_c_experimentalParam19, 1),
        ] {
            writer.set(parameter, value);
        }
        Self { search: Search::new(isa), writer, sequences: Vec::new() }
    }

    /// Encodes what lies in `whole` between its prefix and the last window, which is zeros.
    fn encode(&mut self, whole: &[u8], prefix_bytes: usize, out: &mut Vec<u8>) {
        let text_end = whole.len() - WINDOW_BYTES;
        let window_log = window_log(text_end - prefix_bytes);
        let block_bytes = BLOCK_BYTES_MAX.min(1 << window_log);
        self.search.run(whole, prefix_bytes, text_end, block_bytes, &mut self.sequences);
        self.writer.write(window_log, &self.sequences, &whole[prefix_bytes..text_end], out);
    }
}

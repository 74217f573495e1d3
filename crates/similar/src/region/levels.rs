//! The levels of encoding, and the sizes of zstd's tables.
//!
//! zstd's own sizes are made for a text and, beside it, a small dictionary; here the prefix is longer than the text. Of
//! it the fast levels load only as many bytes as eight times their table's entries: at level 1 regions of 256 KiB were
//! stored as if they had no bases, at level 3 those of 1 MiB (sources: 8.8 % of the text instead of 4.2 %). What was
//! measured, regions of 128 KiB and 1 MiB:
//!
//! 1. **Levels 1 and 2**: words of 6 bytes, and tables for all of the prefix.
//! 2. **Levels 3 and 4**: the same tables, for all of the prefix.
//! 3. **Levels 5 to 12**: tables half as large as zstd's: up to 45 % faster, less than 1 % larger.
//! 4. **Levels 13 to 19**: as they are. Half of their tables made regions up to 15 % larger.
//! 5. **No long-distance matching**: at level 6 sources were 4 % smaller with it, binaries 5 % larger, all slower.

use super::RegionError;
use super::kernel::usual_tables;

/// A level of encoding: the effort that the encoder makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Level {
    /// Siltstone's own search, made for text that is mostly copied from its bases. What has few bases or none is
    /// encoded at zstd's level 3.
    Fast,
    /// zstd's, 1 to 19.
    Zstd(i32),
}

/// Below this logarithm of prefix and text zstd's own sizes are right.
const OWN_SIZES_LOG: u32 = 18;

impl Level {
    /// zstd's level for what [`Level::Fast`] does not search itself.
    pub(super) const FALLBACK: i32 = 3;

    /// Returns zstd's number for it.
    pub(super) fn number(self) -> Result<i32, RegionError> {
        match self {
            Self::Fast => Ok(Self::FALLBACK),
            Self::Zstd(level @ 1..=19) => Ok(level),
            Self::Zstd(level) => Err(RegionError::BadLevel { level }),
        }
    }
}

/// Sizes of zstd's tables for a frame; 0 leaves the choice to zstd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tables {
    /// Logarithm of the entries of its hash table.
    pub(super) hash_log: u32,
    /// Logarithm of the entries of its other table.
    pub(super) chain_log: u32,
    /// Bytes of the words that are hashed.
    pub(super) word_bytes: u32,
}

impl Tables {
    /// Chooses the sizes for a region whose prefix and text need a window of this logarithm.
    pub(super) fn of(level: i32, prefix_bytes: usize, text_bytes: usize, window_log: u32) -> Self {
        if window_log < OWN_SIZES_LOG {
            return Self::default();
        }
        match level {
            1 => Self { hash_log: 16.max(window_log - 3), word_bytes: 6, ..Self::default() },
            2 => Self { hash_log: 17.max(window_log - 2), word_bytes: 6, ..Self::default() },
            3 => Self { hash_log: 17.max(window_log - 3), chain_log: 16.max(window_log - 4), ..Self::default() },
            4 => Self { hash_log: 18.max(window_log - 2), chain_log: 18.max(window_log - 3), ..Self::default() },
            5..=12 => usual_tables(level, prefix_bytes, text_bytes).map_or_else(Self::default, |usual| Self {
                hash_log: usual.hash_log.min(window_log - 1),
                chain_log: usual.chain_log.min(window_log - 1),
                ..usual
            }),
            _ => Self::default(),
        }
    }
}

/// Tells whether bytes look like noise, as compressed or encrypted ones do: whether the values of every eighth KiB come
/// up nearly equally often. Two equal values are then drawn with a probability near 1/256.
pub(super) fn looks_random(text: &[u8]) -> bool {
    let mut counts = [0u64; 256];
    for stretch in text.chunks(1 << 10).step_by(8) {
        for byte in stretch {
            counts[usize::from(*byte)] += 1;
        }
    }
    let all: u64 = counts.iter().sum();
    let pairs: u64 = counts.iter().map(|count| count * count.saturating_sub(1)).sum();
    // A sixteenth more than of noise; less would be met by chance.
    256 * pairs <= all * all + all * all / 16
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    #[test]
    fn noise_looks_random_and_text_does_not() {
        let mut noise = vec![0; 64 << 10];
        blake3::Hasher::new().finalize_xof().fill(&mut noise);
        assert!(looks_random(&noise));
        let hexadecimal: vec::Vec<u8> = noise.iter().map(|byte| byte % 16 + b'a').collect();
        assert!(!looks_random(&hexadecimal));
        assert!(!looks_random(&[0; 5000]));
        let printed: vec::Vec<u8> = noise.iter().map(|byte| byte & 0x7f).collect();
        assert!(!looks_random(&printed));
    }

    #[test]
    fn levels_are_one_to_nineteen() {
        assert!((1..=19).all(|level| Level::Zstd(level).number() == Ok(level)));
        for level in [-5, 0, 20, 22] {
            assert_eq!(Level::Zstd(level).number(), Err(RegionError::BadLevel { level }));
        }
    }

    #[test]
    fn the_fast_levels_can_load_all_of_the_prefix() {
        for level in 1..=4 {
            for window_log in OWN_SIZES_LOG..=27 {
                let tables = Tables::of(level, 1 << (window_log - 1), 1 << (window_log - 1), window_log);
                assert!(8 << tables.hash_log.max(tables.chain_log) >= 1 << window_log, "{level} {window_log}");
            }
        }
    }
}

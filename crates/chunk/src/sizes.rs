//! The three sizes every chunker takes, checked once so that no chunker has to.

use crate::ChunkerError;

/// Smallest, expected and largest chunk, in bytes. The expected size is the average on random bytes. Smallest and
/// largest may be absent: the hashless chunkers need neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sizes {
    /// 0 for none.
    min: u32,
    expected: u32,
    /// `u32::MAX` for none.
    max: u32,
}

impl Sizes {
    /// 8 KiB, 16 KiB, 64 KiB. Where compression reaches across chunks their size hardly changes the ratio (10, 40 and
    /// 90 KB averages lay within 7 %, 2026), and 16 KiB halves the index that 8 KiB needs.
    pub const DEFAULT: Self = Self { min: 8 << 10, expected: 16 << 10, max: 64 << 10 };

    /// Least minimum that can be set, bytes, but for none at all: the widest window any chunker looks at, so that a
    /// window never leaves its chunk.
    pub const MIN_BYTES_LOWEST: u32 = 64;

    /// Greatest maximum that can be set, bytes, but for none at all: as much as a stream must buffer.
    pub const MAX_BYTES_HIGHEST: u32 = 64 << 20;

    /// Checks and keeps the three sizes.
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] unless 64 <= `min`, `min` <= 3/4 `expected`, 2 `expected` <= `max` <= 64 MiB: the
    /// range in which the real average is the expected one.
    pub fn new(min: u32, expected: u32, max: u32) -> Result<Self, ChunkerError> {
        let broken = |rule| Err(ChunkerError::BadSizes { min, expected, max, rule });
        if min < Self::MIN_BYTES_LOWEST {
            broken("min must be at least 64")
        } else if max > Self::MAX_BYTES_HIGHEST {
            broken("max must be at most 64 MiB")
        } else if u64::from(min) * 4 > u64::from(expected) * 3 {
            broken("min must be at most three quarters of expected")
        } else if u64::from(expected) * 2 > u64::from(max) {
            broken("max must be at least twice expected")
        } else {
            Ok(Self { min, expected, max })
        }
    }

    /// The usual limits around an expected size: half of it and four times it.
    ///
    /// Half, not the quarter of `FastCDC`: skipping more bytes makes Gear 1.3 times faster at the same deduplication
    /// (1.700 against 1.697 on source tars, 2026).
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] if `expected` is below 128 bytes or above 16 MiB.
    pub fn around(expected: u32) -> Result<Self, ChunkerError> {
        Self::new(expected / 2, expected, expected.saturating_mul(4))
    }

    /// The limits of `FastCDC` (ATC'16) and of AE's `Rabin_0.25` (TC'17) around an expected size: a quarter of it
    /// and eight times it, as far as [`Sizes::new`] takes them.
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] if `expected` is below 128 bytes or above 16 MiB.
    pub fn quarter(expected: u32) -> Result<Self, ChunkerError> {
        Self::around(expected)?;
        let min = (expected / 4).max(Self::MIN_BYTES_LOWEST);
        Self::new(min, expected, expected.saturating_mul(8).min(Self::MAX_BYTES_HIGHEST))
    }

    /// The limits of TTTD (HPL-2005-30(R.1)) around an expected size: 0.46 times it and 2.8 times it.
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] if `expected` is below 128 bytes or above 16 MiB.
    pub fn tttd(expected: u32) -> Result<Self, ChunkerError> {
        Self::around(expected)?;
        let min = (expected / 50 * 23 + expected % 50 * 23 / 50).max(Self::MIN_BYTES_LOWEST);
        Self::new(min, expected, expected / 5 * 14 + expected % 5 * 14 / 5)
    }

    /// An expected size alone: no chunk is too small or too large. A stream then buffers the longest chunk it meets,
    /// whatever that is.
    ///
    /// # Errors
    /// [`ChunkerError::BadSizes`] if `expected` is below 128 bytes or above 16 MiB.
    pub fn unlimited(expected: u32) -> Result<Self, ChunkerError> {
        let Self { expected, .. } = Self::around(expected)?;
        Ok(Self { min: 0, expected, max: u32::MAX })
    }

    /// Returns these sizes without a smallest one.
    #[must_use]
    pub const fn without_min(self) -> Self {
        Self { min: 0, ..self }
    }

    /// Smallest chunk in bytes, 0 for none; only the last of a stream may be smaller.
    pub const fn min(self) -> usize {
        self.min as usize
    }

    /// Average chunk in bytes on random data.
    pub const fn expected(self) -> usize {
        self.expected as usize
    }

    /// Returns the part of `data` that a chunk may take.
    pub(crate) fn limit(self, data: &[u8]) -> &[u8] {
        &data[..data.len().min(self.max())]
    }

    /// Cuts where `search` finds a cut in what follows the smallest chunk, or else at the limit or the end of `data`.
    #[inline(always)]
    pub(crate) fn cut(self, data: &[u8], search: impl FnOnce(&[u8]) -> Option<usize>) -> usize {
        let data = self.limit(data);
        let found = data.get(self.min()..).and_then(search);
        found.map_or(data.len(), |cut| self.min() + cut)
    }

    /// Bytes of an average chunk beyond the smallest.
    pub(crate) const fn searched(self) -> u32 {
        self.expected - self.min
    }

    /// Largest chunk in bytes, `usize::MAX` for none.
    pub const fn max(self) -> usize {
        if self.max == u32::MAX { usize::MAX } else { self.max as usize }
    }
}

impl Default for Sizes {
    fn default() -> Self {
        Self::DEFAULT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_what_around_gives() {
        assert_eq!(Sizes::around(16 << 10), Ok(Sizes::DEFAULT));
    }

    #[test]
    fn each_rule_is_enforced_at_its_border() {
        assert!(Sizes::new(64, 128, 256).is_ok());
        assert!(Sizes::new(63, 128, 256).is_err());
        assert!(Sizes::new(96, 128, 256).is_ok());
        assert!(Sizes::new(97, 128, 256).is_err());
        assert!(Sizes::new(64, 128, 255).is_err());
        assert!(Sizes::new(64, 32 << 20, 64 << 20).is_ok());
        assert!(Sizes::new(64, 128, (64 << 20) + 1).is_err());
        assert!(Sizes::new(0, 0, 0).is_err());
        assert!(Sizes::new(u32::MAX, u32::MAX, u32::MAX).is_err());
        assert!(Sizes::around(127).is_err());
        assert!(Sizes::around(u32::MAX).is_err());
        assert!(Sizes::unlimited(127).is_err());
        assert!(Sizes::unlimited(16 << 20).is_ok_and(|sizes| sizes.min() == 0 && sizes.max() == usize::MAX));
    }
}

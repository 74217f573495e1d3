//! Chunkers of others, to compare with: the crates `fastcdc` and `gearhash`, in the loops their documentation shows.

use anyhow::Result;
use fastcdc::v2020;
use siltstone_chunk::{Chunker, ChunkerError, Sizes};

/// The crate `fastcdc`, its form of 2020, level 2, with the limits of the paper: a quarter of the expected size, eight
/// times it. Its masks know powers of two only, so its real average is not the expected size.
#[derive(Clone, Copy, Debug)]
pub(super) struct FastcdcCrate {
    sizes: Sizes,
    strict: u64,
    loose: u64,
}

impl FastcdcCrate {
    /// Its name in tables.
    pub(super) const NAME: &'static str = "crate:fastcdc";

    /// The chunker; it takes even sizes only.
    pub(super) fn new(expected: u32) -> Result<Self, ChunkerError> {
        let even = |size: u32| size & !1;
        let sizes = Sizes::new(even(expected / 4), even(expected), even(expected).saturating_mul(8))?;
        let (strict, loose) = v2020::select_masks(sizes.expected(), v2020::Normalization::Level2);
        Ok(Self { sizes, strict, loose })
    }
}

impl Chunker for FastcdcCrate {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let Self { sizes, strict, loose } = *self;
        v2020::cut(data, sizes.min(), sizes.expected(), sizes.max(), strict, loose, strict << 1, loose << 1).1
    }
}

/// The crate `gearhash`: its search for a match, begun a window before the smallest size. As with our own Gear that is
/// about half of the expected size: the expected size less the power of two that its mask stands for.
#[derive(Clone, Copy, Debug)]
pub(super) struct GearhashCrate {
    sizes: Sizes,
    mask: u64,
}

/// Bytes that the hash depends on.
const WINDOW_BYTES: usize = 64;

impl GearhashCrate {
    /// Its name in tables.
    pub(super) const NAME: &'static str = "crate:gearhash";

    /// The chunker.
    pub(super) fn new(expected: u32) -> Result<Self, ChunkerError> {
        let bits = expected.max(4).ilog2() - 1;
        let sizes = Sizes::new(expected.saturating_sub(1 << bits), expected, expected.saturating_mul(4))?;
        // The highest bits depend on the whole window.
        Ok(Self { sizes, mask: u64::MAX << (u64::BITS - bits) })
    }
}

impl Chunker for GearhashCrate {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let end = data.len().min(self.sizes.max());
        let min = self.sizes.min();
        if end <= min {
            return end;
        }
        let mut hasher = gearhash::Hasher::default();
        hasher.update(&data[min - WINDOW_BYTES..min]);
        hasher.next_match(&data[min..end], self.mask).map_or(end, |past_min| min + past_min)
    }
}

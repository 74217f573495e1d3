//! Gear: a sum of table entries, each doubled once per byte that followed.
//!
//! Source: Ddelta, Performance Evaluation 2014. Where to cut is told in `rolling.rs`; the hash, which is format:
//!
//! ```text
//! h      sum over k in 0..32 of table[window[31 - k]] << k    (mod 2^32)
//! table  i-th little-endian u32 of BLAKE3's extendable output: "siltstone gear table"
//! ```
//!
//! The window is what a 32-bit sum holds: after 32 doublings a byte has left it. Ddelta starts a chunk with h = 0 and takes
//! the highest bits, as a threshold does; here the sum is warmed up over the window before the first place that counts, so
//! that a candidate depends on 32 bytes only.
//!
//! Cost: a table lookup, a shift and an addition per byte. Its vector form is in `two_stage.rs`.

use crate::average::floor;
use crate::rolling::RollingHash;
use alloc::boxed::Box;

/// The sum over 32 bytes.
#[derive(Clone, Debug)]
pub(crate) struct GearHash {
    pub(crate) table: Box<[u32; 256]>,
}

impl GearHash {
    pub(crate) fn new() -> Self {
        Self { table: Box::new(table(b"siltstone gear table", u32::from_le_bytes)) }
    }
}

impl RollingHash for GearHash {
    const WINDOW_BYTES: usize = 32;
    type Value = u32;

    #[inline(always)]
    fn slide(&self, value: u32, _: u8, entering: u8) -> u32 {
        (value << 1).wrapping_add(self.table[usize::from(entering)])
    }

    fn threshold(positions: f64) -> u32 {
        const VALUES: f64 = 4_294_967_296.0;
        u32::try_from(floor(VALUES / positions)).unwrap_or(u32::MAX)
    }

    #[inline(always)]
    fn is_below(value: u32, threshold: u32) -> bool {
        value < threshold
    }
}

/// The table of random numbers that belongs to a name.
pub(crate) fn table<const BYTES: usize, T>(name: &[u8], number: fn([u8; BYTES]) -> T) -> [T; 256] {
    let mut output = blake3::Hasher::new().update(name).finalize_xof();
    core::array::from_fn(|_| {
        let mut bytes = [0; BYTES];
        output.fill(&mut bytes);
        number(bytes)
    })
}

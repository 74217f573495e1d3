//! Gear: a sum of table entries, each doubled once per byte that followed.
//!
//! Source: Ddelta, Performance Evaluation 2014. The definition, which is format:
//!
//! ```text
//! h      sum over k in 0..32 of table[window[31 - k]] << k    (mod 2^32); of fewer bytes the sum is as much shorter
//! table  i-th little-endian u32 of BLAKE3's extendable output: "siltstone gear table"
//! ```
//!
//! The window is what a 32-bit sum holds: after 32 doublings a byte has left it.
//!
//! Cost: a table lookup, a shift and an addition per byte.

use crate::RollingHash;
use alloc::boxed::Box;

/// The sum over 32 bytes.
#[derive(Clone, Debug)]
pub struct Gear {
    table: Box<[u32; 256]>,
}

impl Gear {
    /// Creates the hash with the table that belongs to the name "siltstone gear table".
    pub fn new() -> Self {
        Self { table: Box::new(table(None, b"siltstone gear table", u32::from_le_bytes)) }
    }

    /// Returns the number that each byte adds.
    pub fn table(&self) -> &[u32; 256] {
        &self.table
    }
}

impl Default for Gear {
    fn default() -> Self {
        Self::new()
    }
}

impl RollingHash for Gear {
    const WINDOW_BYTES: usize = 32;
    type Value = u32;

    #[inline(always)]
    fn slide(&self, value: u32, _: u8, entering: u8) -> u32 {
        (value << 1).wrapping_add(self.table[usize::from(entering)])
    }
}

/// The table of random numbers that belongs to a name, and to a key if there is one.
pub fn table<const BYTES: usize, T>(key: Option<&[u8; 32]>, name: &[u8], number: fn([u8; BYTES]) -> T) -> [T; 256] {
    let mut hasher = key.map_or_else(blake3::Hasher::new, blake3::Hasher::new_keyed);
    let mut output = hasher.update(name).finalize_xof();
    core::array::from_fn(|_| {
        let mut bytes = [0; BYTES];
        output.fill(&mut bytes);
        number(bytes)
    })
}

//! CRC: the CRC-32 of the last 48 bytes.
//!
//! Source: SS-CDC, SYSTOR'19, which rolls a CRC-32; `VectorCDC`, TOS'25, section 6, has it as a row. Where to cut is
//! told in `rolling.rs`; the hash, which is format:
//!
//! ```text
//! c     0 at first; for every byte of the window, oldest first: its bits, lowest first, each exclusive-ored into the
//!       lowest bit of c; then c is shifted down by one and, if that lowest bit was set, exclusive-ored with 0xEDB88320
//! h     the complement of c, 32 bits
//! ```
//!
//! That is the reflected register of IEEE 802.3 started at 0, so that leading zeros leave it alone and a byte can be
//! taken back. Two tables as for Rabin: `ENTERING` for the byte that comes, `LEAVING` for the one that 48 others have
//! followed.
//!
//! Cost: as Rabin. Its vector form is in `two_stage.rs`.

use crate::rolling::{CutHash, threshold_u32};
use siltstone_rolling::RollingHash;

/// CRC-32 of IEEE 802.3: the coefficient of x^31 is the lowest bit.
const POLYNOMIAL: u32 = 0xEDB8_8320;
const WINDOW_BYTES: usize = 48;

pub(crate) static ENTERING: [u32; 256] = entering();
pub(crate) static LEAVING: [u32; 256] = leaving();

/// The register after 48 bytes, not complemented.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrcHash;

impl RollingHash for CrcHash {
    const WINDOW_BYTES: usize = WINDOW_BYTES;
    type Value = u32;

    #[inline(always)]
    fn slide(&self, value: u32, leaving: u8, entering: u8) -> u32 {
        let [lowest, ..] = (value ^ u32::from(entering)).to_le_bytes();
        value >> 8 ^ LEAVING[usize::from(leaving)] ^ ENTERING[usize::from(lowest)]
    }
}

impl CutHash for CrcHash {
    fn threshold(positions: f64) -> u32 {
        threshold_u32(positions)
    }

    #[inline(always)]
    fn is_below(value: u32, threshold: u32) -> bool {
        !value < threshold
    }
}

/// The register after each byte.
const fn entering() -> [u32; 256] {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut value, mut bit) = (byte, 0);
        while bit < 8 {
            value = (value >> 1) ^ ((value & 1) * POLYNOMIAL);
            bit += 1;
        }
        table[byte as usize] = value;
        byte += 1;
    }
    table
}

/// The register after each byte and 48 zeros.
const fn leaving() -> [u32; 256] {
    let mut table = entering();
    let mut byte = 0;
    while byte < 256 {
        let mut zeros = 0;
        while zeros < WINDOW_BYTES {
            table[byte] = table[byte] >> 8 ^ ENTERING[(table[byte] & 0xFF) as usize];
            zeros += 1;
        }
        byte += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_register_is_that_of_the_standard() {
        // The standard starts at all ones and complements the end; its check value is that of the nine digits.
        let register = b"123456789".iter().fold(u32::MAX, |value, &byte| CrcHash.slide(value, 0, byte));
        assert_eq!(!register, 0xCBF4_3926);
    }
}

//! Numbers in as many bytes as they need: seven bits in each, the lowest first; the highest bit says that more follow.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::DeltaError;
use alloc::vec::Vec;

/// Bytes of the longest number that is read.
const BYTES_MAX: u32 = 5;

/// Appends a number.
#[inline]
#[allow(clippy::cast_possible_truncation)] // Seven bits at a time.
pub(super) fn write(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Takes a number off the front.
#[inline]
pub(super) fn read(bytes: &mut &[u8]) -> Result<u64, DeltaError> {
    let (&first, rest) = bytes.split_first().ok_or(DeltaError::Truncated)?;
    *bytes = rest;
    let mut number = u64::from(first & 0x7F);
    if first < 0x80 {
        return Ok(number);
    }
    for place in 1..BYTES_MAX {
        let (&byte, rest) = bytes.split_first().ok_or(DeltaError::Truncated)?;
        *bytes = rest;
        number |= u64::from(byte & 0x7F) << (7 * place);
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(DeltaError::NumberTooLong)
}

//! One instruction: what to insert, then what to copy.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use super::super::{DeltaError, varint};
use alloc::vec::Vec;

/// A record as it is read.
#[derive(Clone, Copy)]
pub(super) struct Record {
    /// Literals to insert, bytes.
    pub(super) inserted: usize,
    /// Distance from where the base goes on to where it is copied from, bytes.
    pub(super) jump: i64,
    /// Bytes to copy then.
    pub(super) copied: usize,
}

/// Appends the record of a copy: `copied` is 0 for all that is wanted then.
#[inline(always)]
pub(super) fn write(out: &mut Vec<u8>, inserted: usize, expected: usize, from: usize, copied: usize) {
    let head = (inserted as u64) << 1;
    if from == expected {
        varint::write(out, head);
    } else {
        varint::write(out, head | 1);
        let distance = from.abs_diff(expected) as u64;
        varint::write(out, (distance << 1) - if from < expected { 2 } else { 1 });
    }
    varint::write(out, copied as u64);
}

/// Appends the last record of a target that ends with literals.
pub(super) fn write_last(out: &mut Vec<u8>, inserted: usize) {
    varint::write(out, (inserted as u64) << 1);
}

impl Record {
    /// Takes a record off the front, of a target that `wanted` more bytes complete. It makes at least one of them, and
    /// no more.
    #[inline(always)]
    pub(super) fn read(instructions: &mut &[u8], wanted: usize) -> Result<Self, DeltaError> {
        let head = varint::read(instructions)?;
        let inserted = length(head >> 1, wanted)?;
        let wanted = wanted - inserted;
        if wanted == 0 {
            // Nothing is left to be copied.
            return if head & 1 == 0 {
                Ok(Self { inserted, jump: 0, copied: 0 })
            } else {
                Err(DeltaError::WrongLength)
            };
        }
        let jump = if head & 1 == 0 { 0 } else { jump(varint::read(instructions)?) };
        let copied = match varint::read(instructions)? {
            0 => wanted,
            number => length(number, wanted)?,
        };
        Ok(Self { inserted, jump, copied })
    }
}

/// A length that the target has room for.
#[inline(always)]
fn length(number: u64, wanted: usize) -> Result<usize, DeltaError> {
    match usize::try_from(number) {
        Ok(bytes) if bytes <= wanted => Ok(bytes),
        _ => Err(DeltaError::WrongLength),
    }
}

/// 0, 1, 2, 3, ... stand for -1, 1, -2, 2, ...
#[inline(always)]
fn jump(number: u64) -> i64 {
    let distance = i64::try_from((number >> 1) + 1).unwrap_or(i64::MAX);
    if number & 1 == 0 { -distance } else { distance }
}

//! Following instructions that may say anything.
//!
//! Each record makes at least one byte of the target and none beyond its end. So there is no more work, and no more
//! memory used, than the caller asked for bytes.

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use super::Slices;
use super::record::Record;
use crate::delta::DeltaError;

/// Bytes that are moved at once where few are wanted: a move of known length is some instructions, of unknown length a
/// call.
const MOVED_BYTES: usize = 32;

/// Makes the whole target. What is used of the two streams is taken off their fronts.
pub(super) fn decode(base: &[u8], streams: &mut Slices<'_>, target: &mut [u8]) -> Result<(), DeltaError> {
    let (mut rest, mut next) = (target, 0_usize);
    while !rest.is_empty() {
        let Record { inserted, jump, copied } = Record::read(&mut streams.instructions, rest.len())?;
        rest = put(rest, streams.literals, inserted).ok_or(DeltaError::Truncated)?;
        streams.literals = streams.literals.get(inserted..).ok_or(DeltaError::Truncated)?;
        if copied > 0 {
            let from = begin(next, inserted, jump).ok_or(DeltaError::OutsideBase)?;
            rest = put(rest, base.get(from..).unwrap_or_default(), copied).ok_or(DeltaError::OutsideBase)?;
            next = from + copied;
        }
    }
    Ok(())
}

/// Returns the place in the base at which a copy begins.
#[inline(always)]
fn begin(next: usize, inserted: usize, jump: i64) -> Option<usize> {
    let expected = i64::try_from(next.checked_add(inserted)?).ok()?;
    usize::try_from(expected.checked_add(jump)?).ok()
}

/// Puts the first `bytes` of `source` into the front of `target`; gives what lies behind them. `None` if either is too
/// short.
#[inline(always)]
fn put<'t>(target: &'t mut [u8], source: &[u8], bytes: usize) -> Option<&'t mut [u8]> {
    if bytes <= MOVED_BYTES {
        if let (Some(front), Some(source)) = (target.first_chunk_mut::<MOVED_BYTES>(), source.first_chunk()) {
            // Those behind are written again later.
            *front = *source;
            return target.get_mut(bytes..);
        }
    }
    let (front, rest) = target.split_at_mut_checked(bytes)?;
    front.copy_from_slice(source.get(..bytes)?);
    Some(rest)
}

/// Takes what makes a target of `wanted` bytes off the fronts of both streams, without making it.
pub(super) fn split<'a>(streams: &mut Slices<'a>, mut wanted: usize) -> Result<Slices<'a>, DeltaError> {
    let all = *streams;
    let mut literals = 0;
    let mut instructions = all.instructions;
    while wanted > 0 {
        let Record { inserted, copied, .. } = Record::read(&mut instructions, wanted)?;
        literals += inserted;
        wanted -= inserted + copied;
    }
    let used = all.instructions.len() - instructions.len();
    let (own_instructions, instructions) = all.instructions.split_at_checked(used).ok_or(DeltaError::Truncated)?;
    let (own_literals, literals) = all.literals.split_at_checked(literals).ok_or(DeltaError::Truncated)?;
    *streams = Slices { instructions, literals };
    Ok(Slices { instructions: own_instructions, literals: own_literals })
}

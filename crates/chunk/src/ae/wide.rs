//! AE over eight-byte values.
//!
//! A value exceeds the record if their first differing byte does. So the lanes of a block are compared byte by byte,
//! the first byte of all values in one vector, their second in the next. Four vectors are passed over at once if no
//! lane can hold a record, judged by its first two bytes, which takes no mask; in a block that is not passed over, the
//! lanes that do are found, and of those the extreme: inside a block no longer than w no chunk can end.

use super::{Order, any_beyond, cut_scalar};
use crate::Isa;
use crate::scalar::Number;
use crate::scan::{STEP, prefetch};
use core::marker::PhantomData;
use core::ops::Range;
use siltstone_simd::{Kernel, Simd};

const VALUE_BYTES: usize = u64::BYTES;

/// The first cut of `data`; its length if there is none.
#[inline(never)] // `cargo xtask cross` looks for its module in the names of functions.
pub(super) fn cut<O: Order>(data: &[u8], window: usize, isa: Isa) -> usize {
    let scalar = || cut_scalar::<u64, O>(data, window);
    isa.run(Cut::<O> { data, window, order: PhantomData }).unwrap_or_else(scalar)
}

/// Lanes whose values are compared one by one before all lanes are compared at once: in text, pairs of bytes that equal
/// the record's are frequent and scattered.
const FEW: usize = 4;

struct Cut<'d, O> {
    data: &'d [u8],
    window: usize,
    order: PhantomData<O>,
}

#[derive(Clone, Copy)]
struct Record {
    value: u64,
    at: usize,
}

impl<O: Order> Kernel for Cut<'_, O> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { data, window, .. } = self;
        let count = u64::count(data);
        if count == 0 {
            return data.len();
        }
        let mut record = Record { value: u64::read(data, 0), at: 0 };
        let mut done = 1;
        loop {
            let end = count.min(record.at + window + 1);
            match next_record::<S, O>(s, data, done..end, record, window) {
                Some((next, next_done)) => (record, done) = (next, next_done),
                None if end == record.at + window + 1 => return end,
                None => return data.len(),
            }
        }
    }
}

/// The extreme of the first block in `range` that holds values beyond the record, and where the search goes on. Values
/// before `range` are not beyond it. No block is longer than the window.
#[inline(always)]
fn next_record<S: Simd, O: Order>(
    s: S,
    data: &[u8],
    range: Range<usize>,
    record: Record,
    window: usize,
) -> Option<(Record, usize)> {
    let mut at = range.start;
    while STEP * S::LANES <= window && at + STEP * S::LANES <= range.end {
        prefetch(s, data, at, STEP * S::LANES);
        let next = next_of_block::<S, O, STEP>(s, data, at, record);
        at += STEP * S::LANES;
        if next.at != record.at {
            return Some((next, at));
        }
    }
    while S::LANES <= window.min(range.end) && at < range.end {
        // The last vector may overlap what is done.
        let start = at.min(range.end - S::LANES);
        let next = next_of_block::<S, O, 1>(s, data, start, record);
        at = start + S::LANES;
        if next.at != record.at {
            return Some((next, at));
        }
    }
    let at = (at..range.end).find(|at| O::beyond(u64::read(data, *at), record.value))?;
    Some((Record { value: u64::read(data, at), at }, at + 1))
}

/// The extreme of the record and the values of `VECTORS` vectors.
#[inline(always)]
fn next_of_block<S: Simd, O: Order, const VECTORS: usize>(s: S, data: &[u8], at: usize, mut record: Record) -> Record {
    let block = &data[at..at + VECTORS * S::LANES + VALUE_BYTES - 1];
    if perhaps_beyond::<S, O, VECTORS>(s, block, record.value) {
        for vector in 0..VECTORS {
            record = raise::<S, O>(s, block, vector * S::LANES, at, record);
        }
    }
    record
}

/// Tells whether the first two bytes of some value do not rule out that it is beyond the record. A record of eight
/// equal bytes, as in a run of zeros, is exceeded only where a byte is beyond those.
#[inline(always)]
fn perhaps_beyond<S: Simd, O: Order, const VECTORS: usize>(s: S, block: &[u8], record: u64) -> bool {
    let bytes = record.to_be_bytes();
    let (first, second) = (s.splat(bytes[0]), s.splat(bytes[1]));
    // The extreme of all bytes; and how far the first two of a value stay behind the record's, at least.
    let (mut extreme, mut behind) = (s.load(block, block.len() - S::LANES), s.splat(u8::MAX));
    for vector in 0..VECTORS {
        let (a, b) = (s.load(block, vector * S::LANES), s.load(block, vector * S::LANES + 1));
        if O::MAX {
            extreme = s.max(extreme, a);
            behind = s.min(behind, s.max(s.sub_saturating(first, a), s.sub_saturating(second, b)));
        } else {
            extreme = s.min(extreme, a);
            behind = s.min(behind, s.max(s.sub_saturating(a, first), s.sub_saturating(b, second)));
        }
    }
    let is_run = record == u64::from_be_bytes([bytes[0]; VALUE_BYTES]);
    any_beyond::<S, O>(s, extreme, first) || !is_run && s.any_eq(behind, s.splat(0))
}

/// The extreme of the record and the values of the vector that lies `within` the block at `at`.
#[inline(always)]
fn raise<S: Simd, O: Order>(s: S, block: &[u8], within: usize, at: usize, mut record: Record) -> Record {
    // Where masks are dear, so is comparing all at once.
    let few = if S::LANES == 16 { 16 } else { FEW };
    let mut lanes = perhaps_lanes::<S, O>(s, block, within, record.value);
    loop {
        for _ in 0..few {
            if lanes == 0 {
                return record;
            }
            let lane = within + lanes.trailing_zeros() as usize;
            let next = u64::read(block, lane);
            if O::beyond(next, record.value) {
                record = Record { value: next, at: at + lane };
            }
            lanes &= lanes - 1;
        }
        lanes &= beyond::<S, O>(s, block, within, record.value);
    }
}

/// Lanes whose first two bytes do not rule out that the value is beyond the record.
#[inline(always)]
fn perhaps_lanes<S: Simd, O: Order>(s: S, block: &[u8], at: usize, record: u64) -> u64 {
    let bytes = record.to_be_bytes();
    let (a, b) = (s.load(block, at), s.load(block, at + 1));
    let (first, second) = (s.splat(bytes[0]), s.splat(bytes[1]));
    if O::MAX {
        s.gt(a, first) | s.eq(a, first) & s.ge(b, second)
    } else {
        s.gt(first, a) | s.eq(a, first) & s.ge(second, b)
    }
}

/// Lanes whose value is beyond the record.
#[inline(always)]
fn beyond<S: Simd, O: Order>(s: S, block: &[u8], at: usize, record: u64) -> u64 {
    let (mut beyond, mut equal) = (0, S::ALL);
    for (k, byte) in record.to_be_bytes().into_iter().enumerate() {
        let (a, b) = (s.load(block, at + k), s.splat(byte));
        beyond |= equal & if O::MAX { s.gt(a, b) } else { s.gt(b, a) };
        equal &= s.eq(a, b);
        if equal == 0 {
            break;
        }
    }
    beyond
}

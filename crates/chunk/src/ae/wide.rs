//! AE over eight-byte values.
//!
//! A value exceeds the record if their first differing byte does. So the lanes of a block are compared byte by byte, the
//! first byte of all values in one vector, their second in the next; after the first vector hardly any lane is still equal.

use super::{Order, cut_scalar};
use crate::Isa;
use core::marker::PhantomData;
use siltstone_simd::{Kernel, Simd};

pub(super) const VALUE_BYTES: usize = 8;

/// The first cut of `data`; its length if there is none.
pub(super) fn cut<O: Order>(data: &[u8], window: usize, isa: Isa) -> usize {
    let scalar = || cut_scalar(data.len(), values(data), window, |i| value(data, i), O::beyond);
    isa.run(Cut::<O> { data, window, order: PhantomData }).unwrap_or_else(scalar)
}

/// Positions that have a value.
pub(super) fn values(data: &[u8]) -> usize {
    (data.len() + 1).saturating_sub(VALUE_BYTES)
}

#[inline(always)]
pub(super) fn value(data: &[u8], at: usize) -> u64 {
    data[at..].first_chunk().map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

struct Cut<'d, O> {
    data: &'d [u8],
    window: usize,
    order: PhantomData<O>,
}

impl<O: Order> Kernel for Cut<'_, O> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { data, window, .. } = self;
        let count = values(data);
        if count == 0 {
            return data.len();
        }
        let (mut record, mut at, mut from) = (value(data, 0), 0, 1);
        loop {
            let end = count.min(at + window + 1);
            match next_record::<S, O>(s, data, from, end, record) {
                Some(next) => (record, at, from) = (value(data, next), next, next + 1),
                None if end == at + window + 1 => return end,
                None => return data.len(),
            }
        }
    }
}

/// The first position in `from ..< end` whose value is beyond the record.
#[inline(always)]
fn next_record<S: Simd, O: Order>(s: S, data: &[u8], from: usize, end: usize, record: u64) -> Option<usize> {
    let record_bytes = record.to_be_bytes();
    let (first, second) = (s.splat(record_bytes[0]), s.splat(record_bytes[1]));
    let mut at = from;
    // Positions at ..< at + 2 LANES and all bytes of their values.
    while at + 2 * S::LANES <= end {
        let block = &data[at..at + 2 * S::LANES + VALUE_BYTES - 1];
        let low = perhaps_beyond::<S, O>(s, block, 0, first, second);
        let high = perhaps_beyond::<S, O>(s, block, S::LANES, first, second);
        if low | high != 0 {
            let lanes = beyond::<S, O>(s, block, 0, record_bytes);
            if lanes != 0 {
                return Some(at + lanes.trailing_zeros() as usize);
            }
            let lanes = beyond::<S, O>(s, block, S::LANES, record_bytes);
            if lanes != 0 {
                return Some(at + S::LANES + lanes.trailing_zeros() as usize);
            }
        }
        at += 2 * S::LANES;
    }
    (at..end).find(|at| O::beyond(value(data, *at), record))
}

/// Lanes whose first two bytes do not rule out that the value is beyond the record.
#[inline(always)]
fn perhaps_beyond<S: Simd, O: Order>(s: S, block: &[u8], at: usize, first: S::Bytes, second: S::Bytes) -> u64 {
    let (a, b) = (s.load(block, at), s.load(block, at + 1));
    if O::MAX {
        s.gt(a, first) | s.eq(a, first) & s.ge(b, second)
    } else {
        s.gt(first, a) | s.eq(a, first) & s.ge(second, b)
    }
}

/// Lanes whose value is beyond the record.
#[inline(always)]
fn beyond<S: Simd, O: Order>(s: S, block: &[u8], at: usize, record: [u8; VALUE_BYTES]) -> u64 {
    let (mut beyond, mut equal) = (0, S::ALL);
    for (k, byte) in record.into_iter().enumerate() {
        let (a, b) = (s.load(block, at + k), s.splat(byte));
        beyond |= equal & if O::MAX { s.gt(a, b) } else { s.gt(b, a) };
        equal &= s.eq(a, b);
        if equal == 0 {
            break;
        }
    }
    beyond
}

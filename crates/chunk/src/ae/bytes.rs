//! AE over single bytes.

use super::{Order, any_beyond, cut_scalar};
use crate::Isa;
use crate::scan::{STEP, prefetch};
use core::marker::PhantomData;
use siltstone_simd::{Kernel, Simd};

/// The first cut of `data`; its length if there is none.
#[inline(never)] // `cargo xtask cross` looks for its module in the names of functions.
pub(super) fn cut<O: Order>(data: &[u8], window: usize, isa: Isa) -> usize {
    let scalar = || cut_scalar::<u8, O>(data, window);
    isa.run(Cut::<O> { data, window, order: PhantomData }).unwrap_or_else(scalar)
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
        if window < S::LANES || data.is_empty() {
            return cut_scalar::<u8, O>(data, window);
        }
        let mut record = Record { byte: data[0], at: 0 };
        let mut done = 1;
        loop {
            let end = data.len().min(record.at + window + 1);
            if record.byte == O::LAST {
                return end;
            }
            match next_record::<S, O>(s, &data[..end], done, record.byte, window) {
                Some((next, next_done)) => (record, done) = (next, next_done),
                None => return end,
            }
        }
    }
}

#[derive(Clone, Copy)]
struct Record {
    byte: u8,
    at: usize,
}

/// The extreme of the first block from `from` on that holds a byte beyond `record`, and where the search goes on. Bytes
/// before `from` are not beyond it. No block is longer than the window.
#[inline(always)]
fn next_record<S: Simd, O: Order>(
    s: S,
    data: &[u8],
    from: usize,
    record: u8,
    window: usize,
) -> Option<(Record, usize)> {
    let mut at = from;
    let records = s.splat(record);
    if window >= STEP * S::LANES {
        while let Some(block) = data.get(at..at + STEP * S::LANES) {
            prefetch(s, data, at, STEP * S::LANES);
            let low = extreme::<S, O>(s, s.load(block, 0), s.load(block, S::LANES));
            let high = extreme::<S, O>(s, s.load(block, 2 * S::LANES), s.load(block, 3 * S::LANES));
            let extremes = extreme::<S, O>(s, low, high);
            if any_beyond::<S, O>(s, extremes, records) {
                return Some((found::<S, O>(s, block, at, extremes), at + block.len()));
            }
            at += STEP * S::LANES;
        }
    }
    while at < data.len() {
        // The last vector may overlap what is done; a record's window never begins after it.
        let start = at.min(data.len().saturating_sub(S::LANES));
        let Some(block) = data.get(start..start + S::LANES) else {
            return next_record_scalar::<O>(data, at, record);
        };
        let bytes = s.load(block, 0);
        if any_beyond::<S, O>(s, bytes, records) {
            return Some((found::<S, O>(s, block, start, bytes), start + block.len()));
        }
        at = start + S::LANES;
    }
    None
}

/// Finds the next record in data shorter than a vector.
#[inline(always)]
fn next_record_scalar<O: Order>(data: &[u8], from: usize, record: u8) -> Option<(Record, usize)> {
    let at = (from..data.len()).find(|at| O::beyond(data[*at], record))?;
    Some((Record { byte: data[at], at }, at + 1))
}

#[inline(always)]
fn extreme<S: Simd, O: Order>(s: S, a: S::Bytes, b: S::Bytes) -> S::Bytes {
    if O::MAX { s.max(a, b) } else { s.min(a, b) }
}

/// The first record of the block at `at`, whose vectors have these extremes.
#[inline(always)]
fn found<S: Simd, O: Order>(s: S, block: &[u8], at: usize, extremes: S::Bytes) -> Record {
    let byte = if O::MAX { s.reduce_max(extremes) } else { s.reduce_min(extremes) };
    let bytes = s.splat(byte);
    let mut within = 0;
    while within + S::LANES <= block.len() {
        let vector = s.load(block, within);
        if s.any_eq(vector, bytes) {
            return Record { byte, at: at + within + s.eq(vector, bytes).trailing_zeros() as usize };
        }
        within += S::LANES;
    }
    Record { byte, at }
}

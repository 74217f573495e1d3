//! Questions that the extremal chunkers ask of a stretch of bytes: its largest, where one first reaches a threshold.
//!
//! Each question is answered four vectors at a time, so that the test hides behind the loads, then one at a time, the
//! last vector overlapping what is done. Stretches shorter than a vector are looked at byte by byte. Loops, no
//! closures: a closure around an instruction of `Simd` is only as fast as its own compilation, which knows nothing of
//! the instruction set.

use core::ops::Range;
use siltstone_simd::Simd;

/// Vectors looked at together: enough to hide the test behind the loads.
pub(crate) const STEP: usize = 4;

/// Asks memory for what comes 2 KiB after the `len` bytes at `at`. Branches that are not foreseen keep the processor
/// from running ahead: this made 8-byte AE 1.1 to 1.2, MAXP 1.06 to 1.2, AE of bytes 1.0 to 1.1 times as fast (random
/// bytes, text, database, AVX-512, 2026-11); 1 and 4 KiB did less.
#[inline(always)]
pub(crate) fn prefetch<S: Simd>(s: S, data: &[u8], at: usize, len: usize) {
    for line in (at..at + len).step_by(64) {
        s.prefetch(data, line + 2048);
    }
}

/// The largest byte; 0 if there is none. Once it is 255 the rest is not read.
#[inline(always)]
pub(crate) fn largest<S: Simd>(s: S, data: &[u8]) -> u8 {
    if data.len() < S::LANES {
        return data.iter().copied().fold(0, u8::max);
    }
    let top = s.splat(u8::MAX);
    let mut all = s.splat(0);
    let mut at = 0;
    while let Some(step) = data.get(at..at + STEP * S::LANES) {
        all = s.max(all, largest_lanes(s, step));
        if s.any_eq(all, top) {
            return u8::MAX;
        }
        at += STEP * S::LANES;
    }
    while at < data.len() {
        all = s.max(all, s.load(data, at.min(data.len() - S::LANES)));
        at += S::LANES;
    }
    s.reduce_max(all)
}

/// The first block of one or four vectors, from `from` on, with a byte of `threshold` or more, where bytes before
/// `from` are less than that. A stretch shorter than a vector has blocks of one byte.
#[inline(always)]
pub(crate) fn block_reaching<S: Simd>(s: S, data: &[u8], from: usize, threshold: u8) -> Option<Range<usize>> {
    if data.len() < S::LANES {
        let at = (from..data.len()).find(|at| data[*at] >= threshold)?;
        return Some(at..at + 1);
    }
    let thresholds = s.splat(threshold);
    let mut at = from;
    while let Some(step) = data.get(at..at + STEP * S::LANES) {
        if s.any_ge(largest_lanes(s, step), thresholds) {
            return Some(at..at + STEP * S::LANES);
        }
        at += STEP * S::LANES;
    }
    while at < data.len() {
        let start = at.min(data.len() - S::LANES);
        if s.any_ge(s.load(data, start), thresholds) {
            return Some(start..start + S::LANES);
        }
        at = start + S::LANES;
    }
    None
}

/// The first position whose byte is `threshold` or more.
#[inline(always)]
pub(crate) fn first_reaching<S: Simd>(s: S, data: &[u8], threshold: u8) -> Option<usize> {
    let block = block_reaching(s, data, 0, threshold)?;
    let thresholds = s.splat(threshold);
    let mut at = block.start;
    while at + S::LANES <= block.end {
        let bytes = s.load(data, at);
        if s.any_ge(bytes, thresholds) {
            return Some(at + s.ge(bytes, thresholds).trailing_zeros() as usize);
        }
        at += S::LANES;
    }
    Some(block.start)
}

/// The last position of the largest byte of a block.
#[inline(always)]
pub(crate) fn last_largest<S: Simd>(s: S, block: &[u8]) -> usize {
    let mut all = s.splat(0);
    let mut at = 0;
    while at + S::LANES <= block.len() {
        all = s.max(all, s.load(block, at));
        at += S::LANES;
    }
    let largest = s.splat(s.reduce_max(all));
    while at > 0 {
        at -= S::LANES;
        let bytes = s.load(block, at);
        if s.any_eq(bytes, largest) {
            return at + s.eq(bytes, largest).ilog2() as usize;
        }
    }
    0
}

/// Lane by lane, the largest of `STEP` vectors.
#[inline(always)]
fn largest_lanes<S: Simd>(s: S, step: &[u8]) -> S::Bytes {
    let low = s.max(s.load(step, 0), s.load(step, S::LANES));
    let high = s.max(s.load(step, 2 * S::LANES), s.load(step, 3 * S::LANES));
    s.max(low, high)
}

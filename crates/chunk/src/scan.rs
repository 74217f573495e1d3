//! What the extremal chunkers ask of a stretch of bytes: its largest, the first that reaches a threshold, the last of a value.
//!
//! Each question is answered four vectors at a time, so that the test hides behind the loads, then one at a time, the last
//! vector overlapping what is done. Stretches shorter than a vector are looked at byte by byte.

use siltstone_simd::Simd;

/// Vectors looked at together.
pub(crate) const STEP: usize = 4;

/// The largest byte; 0 if there is none. Once it is 255 the rest is not read.
#[inline(always)]
pub(crate) fn largest<S: Simd>(s: S, data: &[u8]) -> u8 {
    if data.len() < S::LANES {
        return data.iter().copied().fold(0, u8::max);
    }
    let top = s.splat(u8::MAX);
    let mut all = s.splat(0);
    let mut steps = data.chunks_exact(STEP * S::LANES);
    for step in steps.by_ref() {
        all = s.max(all, largest_of_step(s, step));
        if s.any_eq(all, top) {
            return u8::MAX;
        }
    }
    let rest = data.len() - steps.remainder().len();
    for at in (rest..data.len()).step_by(S::LANES) {
        all = s.max(all, s.load(data, at.min(data.len() - S::LANES)));
    }
    s.reduce_max(all)
}

/// The first position whose byte is `threshold` or more.
#[inline(always)]
pub(crate) fn first_reaching<S: Simd>(s: S, data: &[u8], threshold: u8) -> Option<usize> {
    if data.len() < S::LANES {
        return data.iter().position(|byte| *byte >= threshold);
    }
    let thresholds = s.splat(threshold);
    let mut at = 0;
    while let Some(step) = data.get(at..at + STEP * S::LANES) {
        if s.any_ge(largest_of_step(s, step), thresholds) {
            break;
        }
        at += STEP * S::LANES;
    }
    // In the step that holds one, or in the rest.
    while at < data.len() {
        let start = at.min(data.len() - S::LANES);
        let bytes = s.load(data, start);
        if s.any_ge(bytes, thresholds) {
            return Some(start + s.ge(bytes, thresholds).trailing_zeros() as usize);
        }
        at = start + S::LANES;
    }
    None
}

/// The last position of `byte`.
#[inline(always)]
pub(crate) fn last_equal<S: Simd>(s: S, data: &[u8], byte: u8) -> Option<usize> {
    if data.len() < S::LANES {
        return data.iter().rposition(|other| *other == byte);
    }
    let wanted = s.splat(byte);
    let mut end = data.len();
    while end > 0 {
        let start = end.saturating_sub(S::LANES);
        let bytes = s.load(data, start);
        if s.any_eq(bytes, wanted) {
            return Some(start + s.eq(bytes, wanted).ilog2() as usize);
        }
        end = start;
    }
    None
}

/// Lane by lane, the largest of `STEP` vectors.
#[inline(always)]
fn largest_of_step<S: Simd>(s: S, step: &[u8]) -> S::Bytes {
    let low = s.max(s.load(step, 0), s.load(step, S::LANES));
    let high = s.max(s.load(step, 2 * S::LANES), s.load(step, 3 * S::LANES));
    s.max(low, high)
}

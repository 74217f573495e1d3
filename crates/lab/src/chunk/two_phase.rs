//! AE, RAM and MAXP as `VectorCDC`, TOS'25, section 4, puts them together: out of extreme byte searches and range
//! scans, each with vectors or without. The cuts are those of the one-pass forms of `siltstone_chunk`; the way to them
//! is what the paper measures.
//!
//! ```text
//! RAM     search the window; scan on for a byte that reaches its largest: cut after it
//! AE      search the window after the target; if it holds nothing beyond the target, cut after it,
//!         else scan it for the next target
//! MAXP    scan the window after the target for a byte that reaches it: the next target; if there is none, search the window before:
//!         if all of it is below the target, cut there, else the next target comes after the window
//! ```
//!
//! The paper gives MAXP as range scans, each followed by two searches, and no more detail. Here a scan takes the place
//! of one of the two, so that bytes between targets are looked at once; the cuts are the same.

use siltstone_chunk::{Extreme, Isa, Sizes};
use siltstone_simd::{Kernel, Simd};
use std::ops::Range;

/// Comparison with the target by which a byte ends a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    /// A byte above the target.
    Greater,
    /// At the target or above.
    NotLess,
    /// Below.
    Less,
}

/// Who searches and scans; positions are those in the data.
pub(super) trait Phases {
    /// The extreme byte of a range; what nothing is beyond the other way, if it is empty.
    fn search(&mut self, range: Range<usize>, extreme: Extreme) -> u8;

    /// The first position in a range whose byte compares so with the target.
    fn scan(&mut self, range: Range<usize>, target: u8, compare: Compare) -> Option<usize>;
}

/// An algorithm with its window in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum TwoPhase {
    /// AE over single bytes.
    Ae(Extreme, usize),
    /// MAXP.
    Maxp(usize),
    /// RAM.
    Ram(usize),
}

impl TwoPhase {
    /// Calls `each` with the length of every chunk of `data`, none of them longer than `sizes` allow.
    pub(super) fn cut_all(self, data: &[u8], sizes: Sizes, phases: &mut impl Phases, mut each: impl FnMut(usize)) {
        let mut from = 0;
        while from < data.len() {
            let length = self.cut(data, from, sizes, phases);
            each(length);
            from += length;
        }
    }

    /// The length of the chunk of `data` that begins there.
    pub(super) fn cut(self, data: &[u8], from: usize, sizes: Sizes, phases: &mut impl Phases) -> usize {
        let stretch = &data[..data.len().min(from.saturating_add(sizes.max()))];
        let end = match self {
            Self::Ae(extreme, window) => ae(stretch, from, window, extreme, phases),
            Self::Maxp(window) => maxp(stretch, from, window, phases),
            Self::Ram(window) => ram(stretch, from, window, phases),
        };
        end - from
    }
}

fn ae(data: &[u8], from: usize, window: usize, extreme: Extreme, phases: &mut impl Phases) -> usize {
    let compare = if extreme == Extreme::Max { Compare::Greater } else { Compare::Less };
    let mut at = from;
    while at < data.len() {
        let end = data.len().min(at + 1 + window);
        let found = phases.search(at + 1..end, extreme);
        if !compare.holds(found, data[at]) {
            return end;
        }
        match phases.scan(at + 1..end, data[at], compare) {
            Some(next) => at = next,
            None => return end,
        }
    }
    data.len()
}

fn ram(data: &[u8], from: usize, window: usize, phases: &mut impl Phases) -> usize {
    let end = from + window;
    if end > data.len() {
        return data.len();
    }
    let largest = phases.search(from..end, Extreme::Max);
    phases.scan(end..data.len(), largest, Compare::NotLess).map_or(data.len(), |at| at + 1)
}

fn maxp(data: &[u8], from: usize, window: usize, phases: &mut impl Phases) -> usize {
    let mut at = from + window;
    while at + window < data.len() {
        match phases.scan(at + 1..at + window + 1, data[at], Compare::NotLess) {
            Some(next) => at = next,
            None if phases.search(at - window..at, Extreme::Max) < data[at] => return at + 1,
            None => at += window + 1,
        }
    }
    data.len()
}

/// Searches with the vectors of one instruction set, scans with those of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Vectors<'d> {
    /// Data that is gone through.
    pub(super) data: &'d [u8],
    /// For searches.
    pub(super) search: Isa,
    /// For scans.
    pub(super) scan: Isa,
}

impl Phases for Vectors<'_> {
    #[inline]
    fn search(&mut self, range: Range<usize>, extreme: Extreme) -> u8 {
        let data = &self.data[range];
        let scalar = || match extreme {
            Extreme::Max => data.iter().max().copied().unwrap_or(0),
            Extreme::Min => data.iter().min().copied().unwrap_or(u8::MAX),
        };
        self.search.run(Search { data, extreme }).unwrap_or_else(scalar)
    }

    #[inline]
    fn scan(&mut self, range: Range<usize>, target: u8, compare: Compare) -> Option<usize> {
        let (data, start) = (&self.data[range.clone()], range.start);
        let scalar = || scan_scalar(data, target, compare);
        self.scan.run(Scan { data, target, compare }).unwrap_or_else(scalar).map(|at| start + at)
    }
}

impl Compare {
    #[inline(always)]
    fn holds(self, byte: u8, target: u8) -> bool {
        match self {
            Self::Greater => byte > target,
            Self::NotLess => byte >= target,
            Self::Less => byte < target,
        }
    }

    #[inline(always)]
    fn lanes<S: Simd>(self, s: S, bytes: S::Bytes, targets: S::Bytes) -> u64 {
        match self {
            Self::Greater => s.gt(bytes, targets),
            Self::NotLess => s.ge(bytes, targets),
            Self::Less => s.gt(targets, bytes),
        }
    }
}

fn scan_scalar(data: &[u8], target: u8, compare: Compare) -> Option<usize> {
    match compare {
        Compare::Greater => data.iter().position(|byte| *byte > target),
        Compare::NotLess => data.iter().position(|byte| *byte >= target),
        Compare::Less => data.iter().position(|byte| *byte < target),
    }
}

/// The extreme byte, by a tree over four vectors at a time (section 4.1).
struct Search<'d> {
    data: &'d [u8],
    extreme: Extreme,
}

impl Kernel for Search<'_> {
    type Output = u8;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u8 {
        let Self { data, extreme } = self;
        if extreme == Extreme::Max { extreme_of::<S, true>(s, data) } else { extreme_of::<S, false>(s, data) }
    }
}

#[inline(always)]
fn extreme_of<S: Simd, const MAX: bool>(s: S, data: &[u8]) -> u8 {
    let none = if MAX { 0 } else { u8::MAX };
    if data.len() < S::LANES {
        return data.iter().copied().fold(none, if MAX { u8::max } else { u8::min });
    }
    let mut all = s.splat(none);
    let mut steps = data.chunks_exact(4 * S::LANES);
    for step in steps.by_ref() {
        let low = further::<S, MAX>(s, s.load(step, 0), s.load(step, S::LANES));
        let high = further::<S, MAX>(s, s.load(step, 2 * S::LANES), s.load(step, 3 * S::LANES));
        all = further::<S, MAX>(s, all, further::<S, MAX>(s, low, high));
    }
    let mut at = data.len() - steps.remainder().len();
    while at < data.len() {
        // The last vector overlaps what is done.
        all = further::<S, MAX>(s, all, s.load(data, at.min(data.len() - S::LANES)));
        at += S::LANES;
    }
    if MAX { s.reduce_max(all) } else { s.reduce_min(all) }
}

#[inline(always)]
fn further<S: Simd, const MAX: bool>(s: S, a: S::Bytes, b: S::Bytes) -> S::Bytes {
    if MAX { s.max(a, b) } else { s.min(a, b) }
}

/// The first byte that compares so, vector by vector with a mask (section 4.2).
struct Scan<'d> {
    data: &'d [u8],
    target: u8,
    compare: Compare,
}

impl Kernel for Scan<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        let Self { data, target, compare } = self;
        let targets = s.splat(target);
        let mut at = 0;
        while let Some(vector) = data.get(at..at + S::LANES) {
            let lanes = compare.lanes(s, s.load(vector, 0), targets);
            if lanes != 0 {
                return Some(at + lanes.trailing_zeros() as usize);
            }
            at += S::LANES;
        }
        data[at..].iter().position(|byte| compare.holds(*byte, target)).map(|rest| at + rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;

    #[test]
    fn searches_and_scans_find_the_same_with_all_vectors() {
        let bytes = Sequence::new(1).bytes(700);
        for isa in Isa::available() {
            let mut vectors = Vectors { data: &bytes, search: isa, scan: isa };
            for end in (0..bytes.len()).step_by(13) {
                let range = end / 3..end;
                let data = &bytes[range.clone()];
                assert_eq!(vectors.search(range.clone(), Extreme::Max), data.iter().copied().max().unwrap_or(0));
                assert_eq!(vectors.search(range.clone(), Extreme::Min), data.iter().copied().min().unwrap_or(255));
                for (target, compare) in
                    [(250, Compare::Greater), (251, Compare::NotLess), (4, Compare::Less), (9, Compare::Less)]
                {
                    let wanted = data.iter().position(|byte| compare.holds(*byte, target));
                    let found = vectors.scan(range.clone(), target, compare);
                    assert_eq!(found, wanted.map(|at| range.start + at), "{isa} {compare:?} {range:?}");
                }
            }
        }
    }
}

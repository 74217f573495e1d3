//! The search for candidates: a byte at a time, and by vectors, whatever is then done with them.

use super::Sample;
use super::hash::{DIRECT_LAGS, Hash, LAGS, Rolled};
use siltstone_simd::{Kernel, Simd};

/// Memory is asked for this far ahead, beyond what the next chunk will skip if this one ends soon: skipping so much
/// stops the CPU's own foresight. 8.8 GB/s without, 12.1 with it (AVX-512 with GFNI, 8 KiB expected, 2026-11).
const AHEAD_BYTES: usize = 2 << 10;

/// A receiver of candidates.
pub(super) trait Candidates {
    /// Takes `first` and those after it whose bits are set; gives the one that ends the search.
    fn take(&mut self, hash: &Hash, data: &[u8], first: usize, mask: u64) -> Option<usize>;
}

/// The search ends at the first for which this is true, told its length and its mix.
pub(super) struct First<F>(pub(super) F);

impl<F: FnMut(usize, u64) -> bool> Candidates for First<F> {
    #[inline(always)]
    fn take(&mut self, hash: &Hash, data: &[u8], first: usize, mut mask: u64) -> Option<usize> {
        while mask != 0 {
            let length = first + mask.trailing_zeros() as usize;
            if (self.0)(length, hash.mix(data, length)) {
                return Some(length);
            }
            mask &= mask - 1;
        }
        None
    }
}

/// The search never ends. Candidates are written down without asking whether there are any, and mixed many at a time: a
/// branch would be mispredicted at one block in four.
pub(super) struct All<F> {
    each: F,
    ends: [usize; ALL_FULL + 64],
    count: usize,
}

/// Candidates mixed together, at least.
const ALL_FULL: usize = 64;

impl<F: FnMut(Sample)> All<F> {
    pub(super) fn new(each: F) -> Self {
        Self { each, ends: [0; ALL_FULL + 64], count: 0 }
    }

    /// Mixes those written down.
    #[inline(always)]
    pub(super) fn see(&mut self, hash: &Hash, data: &[u8]) {
        for end in &self.ends[..self.count] {
            (self.each)(Sample { end: *end, hash: hash.mix(data, *end) });
        }
        self.count = 0;
    }
}

impl<F: FnMut(Sample)> Candidates for All<F> {
    #[inline(always)]
    fn take(&mut self, hash: &Hash, data: &[u8], first: usize, mask: u64) -> Option<usize> {
        let room = &mut self.ends[self.count..][..64];
        let mut rest = mask;
        for (i, end) in room.iter_mut().enumerate() {
            // Two are written whether they are there or not.
            if i >= 2 && rest == 0 {
                break;
            }
            *end = first + rest.trailing_zeros() as usize;
            rest &= rest.wrapping_sub(1);
        }
        self.count += mask.count_ones() as usize;
        if self.count >= ALL_FULL {
            self.see(hash, data);
        }
        None
    }
}

/// The definition for `from ..= to`, with the hash rolled.
pub(super) fn scan_scalar(
    hash: &Hash,
    data: &[u8],
    from: usize,
    to: usize,
    candidates: &mut impl Candidates,
) -> Option<usize> {
    // The byte that completes the window of length L lies at L - 1.
    let mut rolled = Rolled::default();
    for byte in &data[from - LAGS..from - 1] {
        rolled.next(hash, *byte);
    }
    for (length, byte) in (from..=to).zip(&data[from - 1..to]) {
        let value = rolled.next(hash, *byte);
        if (value ^ hash.target) & hash.filter == 0 {
            let found = candidates.take(hash, data, length, 1);
            if found.is_some() {
                return found;
            }
        }
    }
    None
}

/// The candidates from `from` on.
pub(super) struct Scan<'d, C> {
    pub(super) hash: &'d Hash,
    pub(super) data: &'d [u8],
    pub(super) from: usize,
    pub(super) candidates: &'d mut C,
}

impl<C: Candidates> Kernel for Scan<'_, C> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        let Self { hash, data, from, candidates } = self;
        // The byte that completes the window of length L lies at L - 1.
        let (mut at, mut known) = (from - 1 - UNKNOWN, from - 1);
        if !S::MATRICES || data.len() < at + 2 * S::LANES {
            return scan_scalar(hash, data, from, data.len(), candidates);
        }
        let mut lags = Lags::new(s, hash);
        while at + 2 * S::LANES <= data.len() {
            s.prefetch(data, at + from + AHEAD_BYTES);
            s.prefetch(data, at + from + AHEAD_BYTES + S::LANES);
            let found = lags.pair(s, hash, data, at, known, candidates);
            if found.is_some() {
                return found;
            }
            at += 2 * S::LANES;
            known = at;
        }
        // The last two vectors once more from further back, after what they would not know.
        let back = data.len() - 2 * S::LANES;
        let known = at.max(back + UNKNOWN).min(data.len());
        let found = scan_scalar(hash, data, at + 1, known, candidates);
        if found.is_some() || known == data.len() {
            return found;
        }
        Lags::new(s, hash).pair(s, hash, data, back, known, candidates)
    }
}

/// Lanes of a first vector whose hashes lack sums from before it.
const UNKNOWN: usize = LAGS - DIRECT_LAGS;

/// The sums of the vector before.
struct Lags<S: Simd> {
    h4: S::Bytes,
    h8: S::Bytes,
    target: S::Bytes,
    filter: S::Bytes,
}

impl<S: Simd> Lags<S> {
    /// Creates the state before the first vector.
    #[inline(always)]
    fn new(s: S, hash: &Hash) -> Self {
        let (target, filter) = (s.splat(hash.target & hash.filter), s.splat(hash.filter));
        Self { h4: s.splat(0), h8: s.splat(0), target, filter }
    }

    /// Shows the candidates among two vectors of bytes from `at` on to `candidates`, but for those whose last byte lies
    /// before `known`.
    #[inline(always)]
    fn pair(
        &mut self,
        s: S,
        hash: &Hash,
        data: &[u8],
        at: usize,
        known: usize,
        candidates: &mut impl Candidates,
    ) -> Option<usize> {
        let block = &data[at + 1 - DIRECT_LAGS..at + 2 * S::LANES];
        let low = self.next(s, hash, block, 0);
        let high = self.next(s, hash, block, S::LANES);
        let low = s.eq(s.and(low, self.filter), self.target);
        let high = s.eq(s.and(high, self.filter), self.target);
        let [low, high] = if known > at { without([low, high], known - at, S::LANES) } else { [low, high] };
        if S::LANES < 64 {
            return candidates.take(hash, data, at + 1, low | high << (S::LANES % 64));
        }
        let found = candidates.take(hash, data, at + 1, low);
        if found.is_some() { found } else { candidates.take(hash, data, at + 1 + S::LANES, high) }
    }

    /// The hashes of the positions from `DIRECT_LAGS - 1` after `at` on.
    #[inline(always)]
    fn next(&mut self, s: S, hash: &Hash, block: &[u8], at: usize) -> S::Bytes {
        let mut h4 = s.apply(&hash.matrices[0], s.load(block, at + DIRECT_LAGS - 1));
        for k in 1..DIRECT_LAGS {
            h4 = s.xor(h4, s.apply(&hash.matrices[k], s.load(block, at + DIRECT_LAGS - 1 - k)));
        }
        let h8 = s.xor(h4, s.apply(&hash.doublings[0], s.shift_in::<4>(self.h4, h4)));
        let h16 = s.xor(h8, s.apply(&hash.doublings[1], s.shift_in::<8>(self.h8, h8)));
        (self.h4, self.h8) = (h4, h8);
        h16
    }
}

/// Two masks of so many lanes without their first `count` bits.
fn without(masks: [u64; 2], count: usize, lanes: usize) -> [u64; 2] {
    let keep = |count: usize| if count < lanes { u64::MAX << count } else { 0 };
    [masks[0] & keep(count), masks[1] & keep(count.saturating_sub(lanes))]
}

//! MAXP: a chunk ends with a byte that exceeds all w bytes before it and all w bytes after it.
//!
//! Sources: Bjorner, Blass, Gurevich: "Content-dependent chunking for differential compression, the local maximum
//! approach" (Journal of Computer and System Sciences 2010); `VectorCDC`, TOS'25, sections 2.1 and 4.3. The definition,
//! which is format; a chunk's first position is 0, `b(i)` the byte at position i:
//!
//! ```text
//! peak   a position q with b(q) > b(i) for all other i in q - w ..= q + w, all of which lie in the chunk's stretch:
//!        from its beginning up to max or the end of the stream
//! cut    q + 1 for the least peak q >= min - 1;  max, or the end of the stream, if there is none
//! ```
//!
//! **Cuts are those of the whole stream** if there are no limits: two peaks are more than w apart, as each must exceed
//! the other otherwise. So the left window of the next peak begins after the cut, and lies in the next chunk by itself.
//!
//! **Window.** Peaks have the density `P = sum over v of (1/256) (v/256)^(2w)` on random bytes; `w` is the least that
//! makes the mean distance `1 / P` the expected size (less `min`).
//!
//! **One pass.** No sliding maximum is needed. Let q be a position, all before it being decided, and look for the first
//! position in its right window whose byte reaches `b(q)`:
//! 1. if r is the first, q is no peak, and nor is any position between q and r: q exceeds it. Go on with r;
//! 2. if there is none, q exceeds all of its right window. If it exceeds all of the left one too, it is a peak;
//!    otherwise go on with `q + w + 1`.
//!
//! In place of r, a vector form may take the last position with the largest byte of any stretch of w bytes or less that
//! r lies in: it reaches all others there, and lies in their windows. Each byte is looked at once, and at most w of
//! `w + 1` bytes again for a left window, whatever the data.
//!
//! **Cells.** That pass asks at every other step a question whose answer cannot be foreseen, which halves its speed. So
//! vectors first find the largest byte of each cell of 64 bytes, which takes no decision at all. If n is the greatest
//! number with `64 n + 63 <= w`, then n whole cells on each side lie in the window of every position of the cell
//! between, and a peak's cell exceeds them. On random bytes that leaves 1.5 cells in an average chunk, and never more
//! than one of `n + 1`; the rest of their windows is looked at. Where windows are narrower than two cells, and where
//! the data ends, one pass is made as above.
//!
//! Cost: each byte is read once, the first window and the last cells again by the next chunk. 0.7 of the speed of
//! reading memory on random bytes, 0.8 on text; 25 GB/s in cache (AVX-512, average 8 KiB, 2026-11). Runs and periods
//! are as fast.

use crate::average::{least_reaching, power};
use crate::scalar::first;
use crate::scan::{block_reaching, last_largest, prefetch};
use crate::{Chunker, Isa, Sizes};
use siltstone_simd::{Kernel, Simd};

/// The chunker `maxp`.
#[derive(Clone, Copy, Debug)]
pub struct Maxp {
    name: &'static str,
    sizes: Sizes,
    window: usize,
    isa: Isa,
}

impl Maxp {
    /// The chunker in its form for `isa`, known by `name`.
    pub fn new(name: &'static str, sizes: Sizes, isa: Isa) -> Self {
        let goal = sizes.searched();
        let window = least_reaching(1, goal, f64::from(goal), |window| 1.0 / peaks_per_byte(window));
        Self { name, sizes, window: window as usize, isa }
    }

    /// Bytes on each side that a peak must exceed.
    pub fn window(&self) -> usize {
        self.window
    }
}

impl Chunker for Maxp {
    fn name(&self) -> &'static str {
        self.name
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let data = self.sizes.limit(data);
        let (window, from) = (self.window, self.window.max(self.sizes.min().saturating_sub(1)));
        let peak = self.isa.run(Peak { data, window, from }).unwrap_or_else(|| peak_scalar(data, window, from));
        peak.map_or(data.len(), |peak| peak + 1)
    }
}

/// The first peak from `at` on.
fn peak_scalar(data: &[u8], window: usize, mut at: usize) -> Option<usize> {
    loop {
        let (byte, right) = (*data.get(at)?, data.get(..=at + window)?);
        let reaches = |_, other: u8| other >= byte;
        match first(right, at + 1, reaches) {
            Some(rival) => at = rival,
            None if first(&data[..at], at - window, reaches).is_none() => return Some(at),
            None => at += window + 1,
        }
    }
}

/// Bytes of a cell: as many as a mask has bits.
const CELL: usize = 64;
/// Cells whose largest bytes are found before any of them is compared.
const BATCH: usize = 16;
/// Cells whose largest bytes are kept.
const CELLS: usize = 512;
/// Cells on each side that are compared at most. The window of the highest expected size has 21.
const REACH_MAX: usize = 32;

struct Peak<'d> {
    data: &'d [u8],
    window: usize,
    from: usize,
}

impl Kernel for Peak<'_> {
    type Output = Option<usize>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<usize> {
        // Cells on each side that lie in the window of every position of the cell between.
        let reach = (self.window + 1).saturating_sub(CELL) / CELL;
        if reach == 0 || reach > REACH_MAX { self.by_strides(s, self.from) } else { self.by_cells(s, reach) }
    }
}

impl Peak<'_> {
    #[inline(always)]
    fn by_cells<S: Simd>(&self, s: S, reach: usize) -> Option<usize> {
        let mut largest = [0; CELLS + 64];
        // Where the cells begin, how many of them have their largest byte found, and are compared.
        let (mut origin, mut found, mut done) = (self.from - self.window, 0, self.window / CELL);
        while let Some(batch) = self.data.get(origin + found * CELL..origin + (found + BATCH) * CELL) {
            prefetch(s, self.data, origin + found * CELL, BATCH * CELL);
            for cell in 0..BATCH {
                largest[found + cell] = largest_of_cell(s, &batch[cell * CELL..(cell + 1) * CELL]);
            }
            found += BATCH;
            while done + reach < found {
                let count = S::LANES.min(found - reach - done);
                let mut cells = leading(s, &largest, done, reach) & u64::MAX >> (64 - count);
                while cells != 0 {
                    let cell = done + cells.trailing_zeros() as usize;
                    if let Some(peak) = self.peak_of_cell(s, origin + cell * CELL, largest[cell], reach) {
                        return Some(peak);
                    }
                    cells &= cells - 1;
                }
                done += count;
            }
            if found + BATCH > CELLS {
                let forget = done - reach;
                largest.copy_within(forget..found, 0);
                (origin, found, done) = (origin + forget * CELL, found - forget, reach);
            }
        }
        self.by_strides(s, self.from.max(origin + done * CELL))
    }

    /// The peak in the cell that begins there, whose largest byte is given and exceeds `reach` cells on each side.
    #[inline(always)]
    fn peak_of_cell<S: Simd>(&self, s: S, cell: usize, byte: u8, reach: usize) -> Option<usize> {
        let mut lanes = 0;
        for at in (0..CELL).step_by(S::LANES) {
            lanes |= s.eq(s.load(&self.data[cell..cell + CELL], at), s.splat(byte)) << at;
        }
        let peak = cell + lanes.trailing_zeros() as usize;
        if lanes & (lanes - 1) != 0 || peak < self.from {
            return None;
        }
        // What lies farther than those cells, and a vector at least.
        let (begin, end) = (peak - self.window, peak + 1 + self.window);
        let left = begin..(cell - reach * CELL).max(begin + S::LANES);
        let right = (cell + (reach + 1) * CELL).min(end - S::LANES)..end;
        let reached = block_reaching(s, self.data.get(right)?, 0, byte).is_some()
            || block_reaching(s, &self.data[left], 0, byte).is_some();
        (!reached).then_some(peak)
    }

    /// The first peak from `at` on.
    #[inline(always)]
    fn by_strides<S: Simd>(&self, s: S, mut at: usize) -> Option<usize> {
        let Self { data, window, .. } = *self;
        // Bytes of the right window that are known to be exceeded.
        let mut exceeded = 0;
        loop {
            let (byte, right) = (*data.get(at)?, data.get(at + 1..=at + window)?);
            if let Some(block) = block_reaching(s, right, exceeded, byte) {
                let rival = block.start + last_largest(s, &right[block.clone()]);
                at += 1 + rival;
                exceeded = block.end - rival - 1;
            } else if block_reaching(s, &data[at - window..at], 0, byte).is_none() {
                return Some(at);
            } else {
                at += window + 1;
                exceeded = 0;
            }
        }
    }
}

#[inline(always)]
fn largest_of_cell<S: Simd>(s: S, cell: &[u8]) -> u8 {
    let mut all = s.load(cell, 0);
    let mut at = S::LANES;
    while at < CELL {
        all = s.max(all, s.load(cell, at));
        at += S::LANES;
    }
    s.reduce_max(all)
}

/// A bit for each of the `LANES` cells from `first` on: whether it exceeds `reach` cells on each side.
#[inline(always)]
fn leading<S: Simd>(s: S, largest: &[u8], first: usize, reach: usize) -> u64 {
    let mut sides = s.splat(0);
    for distance in 1..=reach {
        sides = s.max(sides, s.max(s.load(largest, first - distance), s.load(largest, first + distance)));
    }
    s.gt(s.load(largest, first), sides)
}

/// The share of positions that are peaks on random bytes.
fn peaks_per_byte(window: u32) -> f64 {
    (0..256).map(|byte| power(f64::from(byte) / 256.0, 2 * window)).sum::<f64>() / 256.0
}

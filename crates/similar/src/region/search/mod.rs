//! The search for copies, made for text of which most is copied from the prefix.
//!
//! Siltstone's own. zstd's searches look at every place of the prefix before they look at the text: for a region that
//! is nearly all copies this takes longer than finding them. Here every fourth place is learnt, which is enough to find
//! where something was copied from; after that it is *followed*, 64 bytes at a time.
//!
//! ```text
//! learn every 4th place of the prefix by its next 8 bytes
//! from `at` on, the first place that belongs to no copy:
//! 1  compare 64 bytes with those at the last distance; run: the first 4 or more equal ones in a row
//!    take the run if it begins at once
//! 2  learn the KiB around the prefix's place at the last distance again: of equal places the nearest is found then
//! 3  look before the run and at its first 2 places, or through the 64 bytes: for the last place with the same next 8
//!    bytes; or the same 6, unless the place after has the same 8. What is found grows both ways, the places looked at
//!    are learnt
//! 4  found one: while it is shorter than 64 take a better one instead, found from the 2 places after, or from 4 places
//!    whose 8 bytes hold its end and what differs there. Then take the run instead, if it reaches as far, and what is
//!    copied before it begins is not worth a distance
//!    found none: take the run; without a run go on where looking stopped
//! 5  as long as the next 4 bytes are those at the distance before the last, copy these
//! better: 4 length - log2 distance, less 4 for each byte it begins later, is greater by more than 4 (zstd's measure)
//! ```
//!
//! Reasons, as bytes on the data of `mod.rs` (sources, dumps, binaries, a database, in this order) and on a
//! `PostgreSQL` folder between two runs of pgbench, 62 MB of text, in regions of 512 KiB (November 2026):
//! 1. **Every fourth place** of the prefix. Every eighth: 6 / 1 / 0 / 5 % larger, `PostgreSQL` 43 %. Every second: 1 %
//!    larger / same / same / 4 % smaller, `PostgreSQL` 8 % smaller, at half the speed.
//! 2. **The nearest of equal places** (2): without it 8 / 1 / 1 / 3 % larger, `PostgreSQL` 8 %.
//! 3. **Better ones** (4): without them 19 / 2 / 3 / 2 % larger, `PostgreSQL` 45 %. Most come from the end: a copy that
//!    contains the one that was found is seldom found at its begin, because equal begins are learnt over one another.
//! 4. **Runs only after a look** (1, 3): numbers and addresses change in place, and going on at the last distance costs
//!    least; but rows of a database are like each other, and the last distance is often that of the wrong one. Taking
//!    runs unseen that begin within 1 byte, or within 3 and have 8: 4 % smaller / same / 1 % smaller / same,
//!    `PostgreSQL` 58 % larger. Looking at 8 places of a run: 5 / 0 / 3 / 0 % larger.
//! 5. **Short words only of the text**: learning those of the prefix too saved 0 to 0.5 %, 4 % of the database, for a
//!    tenth to a quarter of the speed. Five bytes instead of six: no smaller, since a copy from far away costs three
//!    bytes.
//!
//! Results are the same on every instruction set: vectors only compare. Memory: 640 KiB of tables, 16 bytes for each
//! copy.

mod compare;
mod tables;

use super::kernel::Sequence;
use crate::compare::{BLOCK_BYTES, Compare, Scalar, Vectors};
use alloc::vec::Vec;
use compare::{backward, equal, forward, word};
use siltstone_simd::{Isa, Kernel, Simd};
use tables::{LONG_BYTES, Tables};

/// The shortest run.
const RUN_BYTES_MIN: usize = 4;
/// Places of a run at which a copy is still looked for.
const RUN_PLACES: usize = 2;
/// Copies from this length on are not improved.
const GOOD_BYTES: usize = 64;
/// Places behind the begin of a copy from which a better one is looked for.
const NEXT_PLACES: usize = 2;
/// The first place before the end of a copy from which a better one is looked for, and how many are.
const END_BYTES: usize = 7;
const END_PLACES: usize = 4;
/// Gain by which a copy must be better.
const GAIN_MIN: i64 = 4;
/// Every so many bytes without a copy, one more place is left out between two that are looked at.
const SKIP_BYTES: usize = 128;

/// Finds copies, region by region, reusing its memory.
pub(super) struct Search {
    tables: Tables,
    isa: Isa,
}

impl Search {
    pub(super) fn new(isa: Isa) -> Self {
        Self { tables: Tables::new(), isa }
    }

    /// The sequences of `whole[prefix_bytes..text_end]` in blocks of at most `block_bytes`, into `sequences`, whose
    /// content is replaced. What lies behind the text, [`BLOCK_BYTES`] at least, must be the same each time.
    pub(super) fn run(
        &mut self,
        whole: &[u8],
        prefix_bytes: usize,
        text_end: usize,
        block_bytes: usize,
        sequences: &mut Vec<Sequence>,
    ) {
        sequences.clear();
        self.tables.begin(whole, prefix_bytes);
        let Self { tables, isa } = self;
        let blocks = Blocks { whole, text_end, block_bytes, tables, sequences, anchor: prefix_bytes };
        if *isa == Isa::SCALAR {
            blocks.run(Scalar);
        } else {
            isa.run(blocks);
        }
    }
}

/// The work, before the instruction set is known.
struct Blocks<'r> {
    whole: &'r [u8],
    text_end: usize,
    block_bytes: usize,
    tables: &'r mut Tables,
    sequences: &'r mut Vec<Sequence>,
    anchor: usize,
}

impl Kernel for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        Blocks::run(self, Vectors(s));
    }
}

impl Blocks<'_> {
    #[inline(always)]
    fn run<C: Compare>(self, compare: C) {
        let Self { whole, text_end, block_bytes, tables, sequences, anchor } = self;
        let mut walk = Walk { compare, whole, tables, sequences, anchor, end: anchor, distances: [1, 4] };
        while walk.end < text_end {
            walk.end = text_end.min(walk.anchor + block_bytes);
            walk.block();
        }
    }
}

/// `whole[start..stop]` is what lies at `source`.
#[derive(Clone, Copy)]
struct Copied {
    start: usize,
    source: usize,
    stop: usize,
}

impl Copied {
    fn distance(self) -> usize {
        self.start - self.source
    }

    fn length(self) -> usize {
        self.stop - self.start
    }

    /// Returns the cost of its distance, in quarters of a byte; `free` if it is the last one.
    #[inline(always)]
    fn cost(self, free: bool) -> i64 {
        if free { 1 } else { i64::from(usize::BITS - self.distance().leading_zeros()) }
    }

    /// Returns what it saves, in quarters of a byte, beside another one that begins elsewhere.
    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)]
    fn gain(self, free: bool, other: Self) -> i64 {
        4 * self.length() as i64 - 4 * (self.start as i64 - other.start as i64) - self.cost(free)
    }

    /// Tells whether the bytes it copies before a later one begins are not worth its distance.
    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)]
    fn is_poor_before(self, later: Self) -> bool {
        4 * (later.start as i64 - self.start as i64) < self.cost(false)
    }
}

/// A search on its way through a block.
struct Walk<'r, C> {
    compare: C,
    whole: &'r [u8],
    tables: &'r mut Tables,
    sequences: &'r mut Vec<Sequence>,
    /// End of the last copy.
    anchor: usize,
    /// End of the block.
    end: usize,
    /// The last distance and the one before, as the decoder remembers them.
    distances: [usize; 2],
}

impl<C: Compare> Walk<'_, C> {
    #[inline(always)]
    fn block(&mut self) {
        let mut at = self.anchor;
        while at + LONG_BYTES <= self.end {
            at = self.step(at);
        }
        let literals = self.end - self.anchor;
        self.push(literals, 0, 0);
        self.anchor = self.end;
    }

    /// The next copy from `at` on, if one is near; gives where to go on.
    #[inline(always)]
    fn step(&mut self, at: usize) -> usize {
        let run = self.run_ahead(at);
        let found = match run {
            Some(run) if run.start == at => Some(run),
            _ => {
                self.tables.learn_around(self.whole, at.wrapping_sub(self.distances[0]));
                let last = self.end - LONG_BYTES + 1;
                let stop = run.map_or(at + BLOCK_BYTES, |run| run.start + RUN_PLACES).min(last);
                match self.look(at, stop) {
                    Ok((found, place)) => Some(self.improve(found, place + 1, run)),
                    Err(next) if run.is_none() => return next,
                    Err(_) => run,
                }
            }
        };
        found.map_or(at + 1, |found| self.take(found))
    }

    /// The first run of equal bytes at the last distance that begins within a window from `at` on.
    #[inline(always)]
    fn run_ahead(&self, at: usize) -> Option<Copied> {
        let distance = self.distances[0];
        let source = at.checked_sub(distance)?;
        let mut equal = equal(self.compare, self.whole, at, source);
        let left = self.end - at;
        if left < BLOCK_BYTES {
            equal &= (1 << left) - 1;
        }
        let pairs = equal & (equal >> 1);
        let runs = pairs & (pairs >> 2);
        if runs == 0 {
            return None;
        }
        let ahead = runs.trailing_zeros();
        let length = (!(equal >> ahead)).trailing_zeros();
        let start = at + ahead as usize;
        let stop = start + length as usize;
        let stop = if stop < at + BLOCK_BYTES {
            stop
        } else {
            forward(self.compare, self.whole, stop, stop - distance, self.end)
        };
        Some(Copied { start, source: start - distance, stop })
    }

    /// The first copy that is found from one of `at..stop`, and from which place; or else the place where looking
    /// stopped.
    #[inline(always)]
    fn look(&mut self, mut at: usize, stop: usize) -> Result<(Copied, usize), usize> {
        while at < stop {
            let seen = self.tables.look(self.whole, at);
            if seen.long < at && word(self.whole, seen.long) == seen.word {
                return Ok((self.grown(at, seen.long), at));
            }
            if seen.short < at && seen.short_equals(word(self.whole, seen.short)) {
                if at + 1 + LONG_BYTES <= self.end {
                    if let Some(source) = self.tables.look_long(self.whole, at + 1) {
                        return Ok((self.grown(at + 1, source), at + 1));
                    }
                }
                return Ok((self.grown(at, seen.short), at));
            }
            at += 1 + (at - self.anchor) / SKIP_BYTES;
        }
        Err(at)
    }

    /// All that is equal around two places.
    #[inline(always)]
    fn grown(&self, at: usize, source: usize) -> Copied {
        let stop = forward(self.compare, self.whole, at, source, self.end);
        let back = backward(self.whole, at, source, source.min(at - self.anchor));
        Copied { start: at - back, source: source - back, stop }
    }

    /// A copy that is better than the one found, if there is one; looks from `place` on.
    #[inline(always)]
    fn improve(&mut self, found: Copied, mut place: usize, run: Option<Copied>) -> Copied {
        let mut best = found;
        let mut tries = NEXT_PLACES;
        while tries > 0 && best.length() < GOOD_BYTES && place + LONG_BYTES <= self.end {
            tries -= 1;
            if self.replace(&mut best, place) {
                tries = NEXT_PLACES;
            }
            place += 1;
        }
        let first = (best.stop - END_BYTES).max(best.start + 1);
        for place in first..best.stop - END_BYTES + END_PLACES {
            if best.length() >= GOOD_BYTES || place + LONG_BYTES > self.end || self.replace(&mut best, place) {
                break;
            }
        }
        match run {
            Some(run) if run.stop >= best.stop && best.is_poor_before(run) => run,
            _ => best,
        }
    }

    /// Replaces a copy by the one that is found at a place, if that is better.
    #[inline(always)]
    fn replace(&mut self, best: &mut Copied, place: usize) -> bool {
        let Some(source) = self.tables.look_long(self.whole, place) else { return false };
        if place - source == best.distance() {
            return false;
        }
        let other = self.grown(place, source);
        let better = other.gain(false, *best) > best.gain(best.distance() == self.distances[0], *best) + GAIN_MIN;
        if better {
            *best = other;
        }
        better
    }

    /// Notes a copy, and those at the distance before that follow it at once; gives where they end.
    #[inline(always)]
    fn take(&mut self, copied: Copied) -> usize {
        let Copied { start, stop, .. } = copied;
        let distance = copied.distance();
        self.push(start - self.anchor, distance, stop - start);
        self.anchor = stop;
        if distance != self.distances[0] {
            self.distances = [distance, self.distances[0]];
            if start + 2 + LONG_BYTES < stop {
                self.tables.learn(self.whole, start + 2);
            }
            self.tables.learn(self.whole, stop - 2);
        }
        while self.anchor + LONG_BYTES <= self.end && self.repeats_before(self.anchor) {
            let [last, before] = self.distances;
            let stop = forward(self.compare, self.whole, self.anchor, self.anchor - before, self.end);
            self.push(0, before, stop - self.anchor);
            self.distances = [before, last];
            self.anchor = stop;
        }
        self.anchor
    }

    /// Tells whether four bytes are those at the distance before the last.
    #[inline(always)]
    fn repeats_before(&self, at: usize) -> bool {
        let equal = |source| (word(self.whole, at) ^ word(self.whole, source)) << (64 - 8 * RUN_BYTES_MIN) == 0;
        at.checked_sub(self.distances[1]).is_some_and(equal)
    }

    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // A region is shorter.
    fn push(&mut self, literals: usize, distance: usize, length: usize) {
        let (offset, lit, len) = (distance as u32, literals as u32, length as u32);
        self.sequences.push(Sequence { offset, litLength: lit, matchLength: len, rep: 0 });
    }
}

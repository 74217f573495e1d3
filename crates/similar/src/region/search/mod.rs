//! The search for copies, made for text of which most is copied from the prefix.
//!
//! Siltstone's own. zstd's searches fill a table with the prefix before they look at the text: for a region that is nearly all
//! copies, this takes longer than finding them. Here most of the prefix is only known sparsely, which is enough to find where
//! something long was copied from; after that it is *followed*: what differs is skipped with one comparison of 64 bytes at the same
//! distance, and only around places where it does differ the prefix is learnt densely, because there small pieces are looked for.
//!
//! ```text
//! learn every 16th place of the prefix by its next 8 bytes
//! at    the first place that is not part of a copy
//! 1     equal: the 64 bytes from `at` on against those at the last distance; run: the first 4 or more equal ones in a row
//!       a run that begins within 1 byte, or within 3 and has 8: take it
//! 2     learn every 4th place of the KiB around the place that lies `at` minus the last distance
//! 3     up to the run: the last place with the same next 8 bytes; or the same 6, unless the place after has the same 8
//!       what is found grows both ways
//! 4     found one shorter than 64: instead of it a better one, from its next two places, or from four places whose 8 bytes
//!       hold its end and what differs there: so a longer copy that contains it is found; or the run
//!       found none: take the run; if there is none, go on where looking stopped
//! after each copy: while the next 4 bytes are those at the distance before the last, copy them
//! better    4 bytes more are worth 16 of distance: gain = 4 length - log2(distance), zstd's measure
//! ```
//!
//! Reasons, as bytes on new chunks of successive versions in regions of 256 KiB, OpenSSL / Redis / `NumPy` / SQLite:
//! 1. **Sparse and dense** (1, 2): beside every 4th place of all of the prefix 1 % smaller / same / 1 % / 2 % larger, and
//!    13 / 30 / 6 / 20 % faster. The dense parts are learnt when they are needed, so the nearest place comes last and is found.
//! 2. **The end of what was found** (4): 7 % smaller on OpenSSL; 3 % more from the next two places.
//! 3. **Runs at the last distance**: numbers and addresses change in place, and a copy at the last distance costs least. Taken before
//!    looking (not only where nothing else is found) `NumPy`'s binaries were 5 % smaller; taken further ahead sources were larger.
//! 4. **No short words of the prefix**: with them 0.3 % smaller and 10 % slower; SQLite, 4 %.
//!
//! The same on every instruction set: vectors only compare. Cost: 640 KiB of tables; a quarter to a half of the time of zstd's level 3.

mod compare;
mod tables;

use super::kernel::Sequence;
use alloc::vec::Vec;
use compare::{Compare, Plain, Vectors, backward, word};
use siltstone_simd::{Isa, Kernel, Simd};
use tables::{LONG_BYTES, Tables};

pub(super) use compare::WINDOW_BYTES;

/// A run within this distance is taken at once ...
const RUN_NEAR_BYTES: usize = 1;
/// ... or within this, if it has so many bytes.
const RUN_FAR_BYTES: usize = 3;
const RUN_LONG_BYTES: usize = 8;
/// The shortest run.
const RUN_BYTES_MIN: usize = 4;
/// Copies from this length on are not improved.
const GOOD_BYTES: usize = 64;
/// Places behind the begin of a copy from which a better one is looked for.
const NEXT_PLACES: usize = 2;
/// The first place before the end of a copy from which a better one is looked for, and how many are.
const END_BYTES: usize = 6;
const END_PLACES: usize = 4;
/// How much better a copy must be.
const GAIN_MIN: i64 = 4;
/// How much worse a run at the last distance may be.
const RUN_GAIN_MIN: i64 = -8;
/// Every so many bytes without a copy, one more place is left out between two that are looked at.
const SKIP_BYTES: usize = 256;

/// Finds copies, region by region, reusing its memory.
pub(super) struct Search {
    tables: Tables,
    isa: Isa,
}

impl Search {
    pub(super) fn new(isa: Isa) -> Self {
        Self { tables: Tables::new(), isa }
    }

    /// The sequences of `whole[prefix_bytes..text_end]` in blocks of at most `block_bytes`, into `sequences`, whose content is
    /// replaced. What lies behind the text, [`WINDOW_BYTES`] at least, must be the same each time.
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
            blocks.run(Plain);
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

    /// What it saves, in quarters of a byte; `free` if its distance costs nothing.
    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)]
    fn gain(self, free: bool) -> i64 {
        let cost = if free { 1 } else { i64::from(usize::BITS - self.distance().leading_zeros()) };
        4 * self.length() as i64 - cost
    }

    /// [`gain`](Self::gain), less the bytes by which it begins after another, or more those by which before.
    #[inline(always)]
    #[allow(clippy::cast_possible_wrap)]
    fn gain_beside(self, other: Self, free: bool) -> i64 {
        self.gain(free) - 4 * (self.start as i64 - other.start as i64)
    }
}

/// On its way through a block.
struct Walk<'r, C> {
    compare: C,
    whole: &'r [u8],
    tables: &'r mut Tables,
    sequences: &'r mut Vec<Sequence>,
    /// Where the last copy ended.
    anchor: usize,
    /// Where the block ends.
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
            Some(run) if self.is_sure(run, at) => Some(run),
            _ => {
                self.tables.learn_around(self.whole, at.wrapping_sub(self.distances[0]));
                let last = self.end - LONG_BYTES + 1;
                let stop = run.map_or(at + WINDOW_BYTES, |run| run.start - 1).min(last);
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
        let mut equal = self.compare.equal(self.whole, at, source);
        let left = self.end - at;
        if left < WINDOW_BYTES {
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
        let stop = if stop < at + WINDOW_BYTES { stop } else { self.compare.forward(self.whole, stop, stop - distance, self.end) };
        Some(Copied { start, source: start - distance, stop })
    }

    #[inline(always)]
    fn is_sure(&self, run: Copied, at: usize) -> bool {
        let ahead = run.start - at;
        ahead <= RUN_NEAR_BYTES || (ahead <= RUN_FAR_BYTES && run.length() >= RUN_LONG_BYTES)
    }

    /// The first copy that is found from one of `at..stop`, and from which place; or else the place where looking stopped.
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
        let stop = self.compare.forward(self.whole, at, source, self.end);
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
            Some(run) if run.gain_beside(best, true) > best.gain(best.distance() == self.distances[0]) + RUN_GAIN_MIN => run,
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
        let better = other.gain_beside(*best, false) > best.gain(best.distance() == self.distances[0]) + GAIN_MIN;
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
            let stop = self.compare.forward(self.whole, self.anchor, self.anchor - before, self.end);
            self.push(0, before, stop - self.anchor);
            self.distances = [before, last];
            self.anchor = stop;
        }
        self.anchor
    }

    /// Whether four bytes are those at the distance before the last.
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

//! Odess+: Odess with SWPR for Gear, and its vector form.
//!
//! Source: Odess, TOS, section 3.4, Algorithms 1 and 2, Table 3 for the numbers of windows. The definition, which is
//! format; W windows (2, 4 or 8) make hashes of B = 128 / W bits:
//!
//! ```text
//! x_j         the SWPR hash (crate `rolling`) of the 32 bytes that end with byte j, zeros standing before the begin
//! places      the bytes j below 16 floor((L - 1) / 16), L bytes being the chunk: the last 1 to 16 bytes end no window
//! sample      all places with x_j >= boundary
//! boundary    2^B - 1 - 2^B / d    for a rate of one in d
//! feature i   the least t_i(x_j mod 2^32) of the sample
//! ```
//!
//! Reasons:
//! 1. **Least values**: sections 2.3 and 3.5 say so; Algorithm 1 compares the other way and starts from 0, which would
//!    find nothing.
//! 2. **The tail** is that of the algorithms' `while n + 16 < L`. A chunk of 16 bytes or fewer has no places.
//! 3. **Four windows** are the paper's choice. Hashes of 16 bits (eight windows) leave 512 values to sample from, so
//!    that chunks share features that share nothing else.
//!
//! A chunk of which nothing is sampled has no sketch.
//!
//! The vector form asks first, by bytes, which places may reach the boundary ([`CandidateFilter`]): two of three that
//! it names do, at the usual rate. They are written down without asking whether there are any, for such a branch would
//! be foreseen at one block in two only. Of each, the hash is summed from its 32 bytes and kept by stepping over it or
//! not; what is kept goes through all functions at once. With four windows and up to the functions that runs at 12.2,
//! 10.5 and 6.7 GB/s in the cache (AVX-512, AVX2, SSSE3, 2026-11), with hashes by words at every place instead 8.9, 6.5
//! and 2.0.
//!
//! The paper's forms have as many lanes as windows, so that eight windows are faster there. Bytes are as many whatever
//! a hash is, and eight windows have more of them to add: whole sketches run at 0.96 (two windows) and 0.83 (eight) of
//! the speed of four with AVX2, 1.02 and 0.89 with SSSE3 (2026-11).
//!
//! Cost: some 20 instructions for a vector of bytes, 25 to 40 for each place named, a few for each sample.

use super::transforms::{Extreme, Extremes, Transforms};
use super::{Rate, Shape, Sketch, Sketcher};
use crate::anchors::anchor_at;
use alloc::vec::Vec;
use siltstone_rolling::swpr::{self, CandidateFilter, RollingWindows};
use siltstone_simd::{Isa, Kernel, Simd};

/// Places are taken in so many at once.
const STEP: usize = 16;

/// Number of windows that roll side by side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Windows {
    /// Hashes of 64 bits.
    Two,
    /// Hashes of 32 bits.
    Four,
    /// Hashes of 16 bits.
    Eight,
}

impl Windows {
    /// So many.
    fn count(self) -> u32 {
        match self {
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// The sketchers `odess-plus`, `odess-plus-2` and `odess-plus-8`.
#[derive(Clone, Debug)]
pub struct OdessPlus {
    name: &'static str,
    windows: Windows,
    rate: Rate,
    transforms: Transforms,
    isa: Isa,
}

impl OdessPlus {
    /// The sketcher, known by `name`, in its form for `isa`.
    pub fn new(name: &'static str, windows: Windows, rate: Rate, shape: Shape, isa: Isa) -> Self {
        Self { name, windows, rate, transforms: Transforms::new(shape), isa }
    }

    /// The number of places of a chunk, as the definition has it.
    pub fn places(chunk: &[u8]) -> usize {
        places(chunk)
    }

    /// The least hash that is sampled.
    pub fn boundary(&self) -> u64 {
        boundary(128 / self.windows.count(), self.rate)
    }

    /// The sketch of a sample that was taken elsewhere: the low halves of all hashes that reach the boundary.
    pub fn of_sample(&self, hashes: &[u32]) -> Option<Sketch> {
        let by_vectors = SeeAll { transforms: &self.transforms, hashes };
        let features = self.isa.run(by_vectors).unwrap_or_else(|| {
            let mut features = Extremes::none(Extreme::Min);
            for hash in hashes {
                self.transforms.see(*hash, Extreme::Min, &mut features);
            }
            features
        });
        (!hashes.is_empty()).then(|| self.transforms.sketch(&features))
    }

    /// The sketch of a chunk, and its [anchors](crate::anchors) at the places of the sample, in their order, added to
    /// `anchors`. The first 64 places have none.
    pub fn sketch_with_anchors(&self, chunk: &[u8], anchors: &mut Vec<u32>) -> Option<Sketch> {
        self.each_sampled(chunk, |place| anchors.extend(anchor_at(chunk, place)))
    }

    /// The sketch of a chunk; `each` is shown the places of the sample, in order, but for the first [`BLOCK`].
    fn each_sampled(&self, chunk: &[u8], each: impl FnMut(usize)) -> Option<Sketch> {
        match self.windows {
            Windows::Two => self.best::<2>(chunk, each),
            Windows::Four => self.best::<4>(chunk, each),
            Windows::Eight => self.best::<8>(chunk, each),
        }
    }

    /// The definition, word for word.
    #[allow(clippy::cast_possible_truncation)] // Functions take the low half.
    fn scalar<const WINDOWS: usize>(&self, chunk: &[u8], mut each: impl FnMut(usize)) -> Option<Sketch> {
        let boundary = boundary(RollingWindows::<WINDOWS>::BITS, self.rate);
        let (mut rolled, mut is_sampled) = (RollingWindows::<WINDOWS>::new(), false);
        let mut features = Extremes::none(Extreme::Min);
        for (place, byte) in chunk[..places(chunk)].iter().enumerate() {
            let hash = rolled.next(*byte);
            if hash >= boundary {
                self.transforms.see(hash as u32, Extreme::Min, &mut features);
                is_sampled = true;
                if place >= BLOCK {
                    each(place);
                }
            }
        }
        is_sampled.then(|| self.transforms.sketch(&features))
    }

    /// Sketches by vectors, where there are some and the chunk is long enough.
    fn best<const WINDOWS: usize>(&self, chunk: &[u8], mut each: impl FnMut(usize)) -> Option<Sketch> {
        if places(chunk) < LEAST_PLACES {
            return self.scalar::<WINDOWS>(chunk, each);
        }
        let vectors = Vectors::<WINDOWS, _> { sketcher: self, chunk, each: &mut each };
        self.isa.run(vectors).unwrap_or_else(|| self.scalar::<WINDOWS>(chunk, each))
    }
}

impl Sketcher for OdessPlus {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.transforms.shape()
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        self.each_sampled(chunk, |_| ())
    }
}

/// The least values of all functions over a whole sample.
struct SeeAll<'d> {
    transforms: &'d Transforms,
    hashes: &'d [u32],
}

impl Kernel for SeeAll<'_> {
    type Output = Extremes;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Extremes {
        let mut features = Extremes::none(Extreme::Min);
        self.transforms.see_all(s, self.hashes, &mut features);
        features
    }
}

/// `places` of the definition: how many there are.
fn places(chunk: &[u8]) -> usize {
    chunk.len().saturating_sub(1) / STEP * STEP
}

/// `boundary` of the definition.
fn boundary(bits: u32, rate: Rate) -> u64 {
    let greatest = u64::MAX >> (64 - bits);
    greatest - (greatest / u64::from(rate.one_in()) + 1)
}

/// Places looked at together.
const BLOCK: usize = 64;
/// Fewest places of a chunk that vectors sketch: with fewer there is no whole block after the first.
const LEAST_PLACES: usize = 2 * BLOCK;

/// Memory is asked for this far ahead.
const AHEAD_BYTES: usize = 2 << 10;

struct Vectors<'d, const WINDOWS: usize, F> {
    sketcher: &'d OdessPlus,
    chunk: &'d [u8],
    each: &'d mut F,
}

impl<const WINDOWS: usize, F: FnMut(usize)> Kernel for Vectors<'_, WINDOWS, F> {
    type Output = Option<Sketch>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Option<Sketch> {
        let Self { sketcher, chunk, each } = self;
        let end = places(chunk);
        let boundary = boundary(RollingWindows::<WINDOWS>::BITS, sketcher.rate);
        let mut filter = CandidateFilter::<S, WINDOWS>::new(s, boundary);
        let mut sample = Sample::<WINDOWS> { boundary, is_empty: true, features: Extremes::none(Extreme::Min) };
        let mut named = Named::new();
        // The first block, with the zeros before it.
        let mut head = [0; swpr::WINDOW_BYTES + BLOCK];
        head[swpr::WINDOW_BYTES..].copy_from_slice(&chunk[..BLOCK]);
        named.add(swpr::WINDOW_BYTES, block(s, &mut filter, &head, swpr::WINDOW_BYTES));
        sample.take(s, &sketcher.transforms, &head, &mut named, |_| ());
        let mut at = BLOCK;
        while at + BLOCK <= end {
            s.prefetch(chunk, at + AHEAD_BYTES);
            named.add(at, block(s, &mut filter, chunk, at));
            if named.is_full() {
                sample.take(s, &sketcher.transforms, chunk, &mut named, &mut *each);
            }
            at += BLOCK;
        }
        if at < end {
            // The last block once more from further back; what was looked at before is not looked at again.
            let back = end - BLOCK;
            named.add(back, block(s, &mut filter, chunk, back) & u64::MAX << (at - back));
        }
        sample.take(s, &sketcher.transforms, chunk, &mut named, &mut *each);
        (!sample.is_empty).then(|| sketcher.transforms.sketch(&sample.features))
    }
}

/// Tells which of the `BLOCK` places from `at` on may be sampled.
#[inline(always)]
fn block<S: Simd, const WINDOWS: usize>(s: S, filter: &mut CandidateFilter<S, WINDOWS>, data: &[u8], at: usize) -> u64 {
    let before = CandidateFilter::<S, WINDOWS>::BEFORE;
    let bytes = &data[at - before..at + BLOCK];
    let mut mask = 0;
    for vector in (0..BLOCK).step_by(S::LANES) {
        mask |= filter.next(s, &bytes[vector..vector + before + S::LANES]) << vector;
    }
    mask
}

/// Places to look at closely; then, from the front, their hashes.
struct Named {
    numbers: [u32; Self::FULL + BLOCK + Self::AT_ONCE],
    count: usize,
}

impl Named {
    /// Enough to make the mispredicted ends of loops over them rare.
    const FULL: usize = 192;
    /// Written whether there are so many or not: one block in 1000 has more.
    const AT_ONCE: usize = 3;

    fn new() -> Self {
        Self { numbers: [0; Self::FULL + BLOCK + Self::AT_ONCE], count: 0 }
    }

    fn is_full(&self) -> bool {
        self.count >= Self::FULL
    }

    /// Adds `first` and each of the places after it whose bit is set.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Chunks are smaller than 4 GiB.
    fn add(&mut self, first: usize, mask: u64) {
        let room = &mut self.numbers[self.count..][..BLOCK + Self::AT_ONCE];
        let mut rest = mask;
        for number in &mut room[..Self::AT_ONCE] {
            *number = (first + rest.trailing_zeros() as usize) as u32;
            rest &= rest.wrapping_sub(1);
        }
        for number in &mut room[Self::AT_ONCE..] {
            if rest == 0 {
                break;
            }
            *number = (first + rest.trailing_zeros() as usize) as u32;
            rest &= rest - 1;
        }
        self.count += mask.count_ones() as usize;
    }
}

/// The part of the sample that was seen.
struct Sample<const WINDOWS: usize> {
    boundary: u64,
    is_empty: bool,
    features: Extremes,
}

impl<const WINDOWS: usize> Sample<WINDOWS> {
    /// Sums the hashes of the places named, forgets these, and sees the hashes that are sampled.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)] // Functions take the low half.
    fn take<S: Simd>(
        &mut self,
        s: S,
        transforms: &Transforms,
        data: &[u8],
        named: &mut Named,
        mut each: impl FnMut(usize),
    ) {
        let mut count = 0;
        for i in 0..named.count.min(named.numbers.len()) {
            let place = named.numbers[i] as usize;
            let hash = swpr::hash::<WINDOWS>(data, place + 1);
            if hash >= self.boundary {
                each(place);
            }
            // Never ahead of what is read.
            named.numbers[count] = hash as u32;
            count += usize::from(hash >= self.boundary);
        }
        named.count = 0;
        self.is_empty &= count == 0;
        transforms.see_all(s, &named.numbers[..count], &mut self.features);
    }
}

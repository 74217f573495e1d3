//! Chunks by their sketches, in bounded memory.
//!
//! An index has its size from the start, and making a large one clears as many bytes: beside a small backup that would
//! be most of the work. So it begins small, with the sketches kept as well, and whenever a quarter of it is in use one
//! of four times the size is made from them. So little of it being in use, it loses next to nothing (of ten places in a
//! bucket 1.5 are taken): what is found is what the largest would have found. With a sixteenth of the largest in use,
//! that is made, and the sketches go.

use super::sketch::sketcher;
use siltstone_similar::index::{Candidate, Fit, Index};
use siltstone_similar::sketch::{Shape, Sketch};
use siltstone_store::ChunkNumber;
use siltstone_store::container::ContainerKind;

/// An index grows four times,
const GROWTH_BITS: u32 = 2;
/// and none is made for fewer chunks.
const CHUNKS_MIN: usize = 1 << 10;

/// Chunks by their sketches, in bounded memory: what does not fit is as if nothing resembled it.
pub(crate) struct SimilarIndex {
    index: Index,
    /// Chunks that the index may grow to; it has room for this, shifted right.
    chunks_max: usize,
    shift: u32,
    held: Held,
    make: fn(usize) -> Index,
}

/// Chunks of an index, in order, as long as it may grow.
#[derive(Default)]
struct Held {
    numbers: Vec<u64>,
    features: Vec<u32>,
}

impl Held {
    /// Bytes that a chunk takes.
    fn bytes_per_chunk() -> usize {
        size_of::<u64>() + size_of::<u32>() * Shape::DEFAULT.features()
    }

    fn push(&mut self, number: u64, sketch: &Sketch) {
        self.numbers.push(number);
        self.features.extend_from_slice(sketch.features());
    }

    fn each(&self) -> impl Iterator<Item = (u64, Sketch)> + '_ {
        let sketches = self.features.chunks_exact(Shape::DEFAULT.features());
        let sketches = sketches.map(|features| Sketch::from_features(features, Shape::DEFAULT));
        self.numbers.iter().copied().zip(sketches)
    }
}

impl SimilarIndex {
    /// An empty index, which takes about so many bytes at most.
    pub(crate) fn within(bytes: u64) -> Self {
        Self::growing(bytes, |chunks| Index::new(Fit::Best, chunks, Shape::DEFAULT.features(), 1))
    }

    /// An index of that size which finds by super-features, and of those that share one the newest.
    pub(crate) fn by_super_features(bytes: u64) -> Self {
        Self::growing(bytes, |chunks| {
            Index::new(Fit::First(sketcher().grouping()), chunks, Shape::DEFAULT.super_features(), 1)
        })
    }

    fn growing(bytes: u64, make: fn(usize) -> Index) -> Self {
        // While the largest is made, the sketches that were in the one before are there as well.
        let held = Held::bytes_per_chunk().div_ceil(1 << (2 * GROWTH_BITS));
        let one = make(CHUNKS_MIN).memory_bytes() / CHUNKS_MIN + held;
        let chunks_max = usize::try_from(bytes / one as u64).unwrap_or(usize::MAX).max(CHUNKS_MIN);
        let shift = (chunks_max / CHUNKS_MIN).ilog2() / GROWTH_BITS * GROWTH_BITS;
        Self { index: make(chunks_max >> shift), chunks_max, shift, held: Held::default(), make }
    }

    /// Adds a chunk.
    pub(crate) fn insert(&mut self, number: u64, sketch: &Sketch) {
        self.index.insert(number, sketch);
        if self.shift > 0 {
            self.held.push(number, sketch);
            if self.held.numbers.len() >= self.chunks_max >> (self.shift + GROWTH_BITS) {
                self.grow();
            }
        }
    }

    fn grow(&mut self) {
        self.shift -= GROWTH_BITS;
        // The one that goes makes room for the one that comes.
        self.index = (self.make)(0);
        self.index = (self.make)(self.chunks_max >> self.shift);
        for (number, sketch) in self.held.each() {
            self.index.insert(number, &sketch);
        }
        if self.shift == 0 {
            self.held = Held::default();
        }
    }

    /// The most similar chunks, at most `most`, the most similar first.
    fn find(&self, sketch: &Sketch, most: usize) -> Vec<Candidate> {
        self.index.find_some(sketch, most)
    }

    /// Returns those of the most similar chunks, at most `most`, that are of this kind, each with the features in
    /// common; the most similar first. A chunk without a sketch resembles nothing.
    pub(crate) fn candidates(
        &self,
        kind: ContainerKind,
        sketch: Option<&Sketch>,
        most: usize,
    ) -> impl Iterator<Item = (ChunkNumber, usize)> + use<> {
        let found = sketch.map(|sketch| self.find(sketch, most)).unwrap_or_default();
        let found = found.into_iter().map(|found| (ChunkNumber(found.number), found.matches));
        found.filter(move |(number, _)| ContainerKind::of(*number) == kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sketch of its own; neighbours share half of their features.
    fn sketch(number: u32) -> Sketch {
        let features: Vec<u32> = (0..12).map(|place| (number + place % 2).wrapping_mul(0x9E37_79B1) ^ place).collect();
        Sketch::from_features(&features, Shape::DEFAULT)
    }

    #[test]
    fn what_is_found_does_not_depend_on_how_it_grew() {
        for make in [SimilarIndex::within, SimilarIndex::by_super_features] {
            let mut similar = make(8 << 20);
            let mut whole = (similar.make)(similar.chunks_max);
            let (first, mut sizes) = (similar.index.memory_bytes(), 1);
            assert!(first < 1 << 20, "it begins small: {first}");
            for number in 0..30_000u32 {
                let before = similar.index.memory_bytes();
                similar.insert(u64::from(number), &sketch(number));
                whole.insert(u64::from(number), &sketch(number));
                sizes += usize::from(similar.index.memory_bytes() > before);
                if number % 7 == 0 {
                    let wanted = sketch(number / 2);
                    let (found, expected) = (similar.find(&wanted, 2), whole.find_some(&wanted, 2));
                    assert_eq!(found, expected, "of {number}");
                }
            }
            assert!(sizes >= 3 && similar.held.numbers.is_empty(), "{sizes} sizes");
            assert_eq!(similar.index.memory_bytes(), whole.memory_bytes());
        }
    }

    #[test]
    fn memory_is_bounded_while_it_grows() {
        for make in [SimilarIndex::within, SimilarIndex::by_super_features] {
            let bytes = 8 << 20;
            let mut similar = make(bytes);
            let largest = (similar.make)(similar.chunks_max).memory_bytes();
            for number in 0..30_000u32 {
                let held = similar.held.numbers.len() * Held::bytes_per_chunk();
                let index = if similar.shift == GROWTH_BITS { largest } else { similar.index.memory_bytes() };
                assert!((held + index) as u64 <= bytes + (64 << 10), "{held} + {index} with {number}");
                similar.insert(u64::from(number), &sketch(number));
            }
        }
    }
}

//! Siltstone's own sketch: features of hashes that somebody else sampled, such as the chunker while it cuts.
//!
//! Chunker `lagged` finds about one place in 256 by content and mixes the 32 bytes before it, to decide where a chunk
//! ends. Those places are a content-defined sample as good as any, and their mix a hash of a window: nothing is left
//! but the functions. The definition, which is format:
//!
//! ```text
//! feature i   the least t_i(x mod 2^32) for all hashes x added
//! ```
//!
//! The order in which hashes are added, and how often each is, does not matter. Where none is added there is no sketch.
//!
//! Cost: a few instructions per hash; hashes are kept until there are enough to fill vectors.

use super::transforms::{Extreme, Extremes, Transforms};
use super::{Shape, Sketch};
use siltstone_simd::{Isa, Kernel, Simd};

/// Hashes kept until they are looked at together.
const KEPT: usize = 64;

/// Makes one sketch after another of hashes that are added.
#[derive(Clone, Debug)]
pub struct SampleSketch {
    transforms: Transforms,
    isa: Isa,
    kept: [u32; KEPT],
    count: usize,
    is_empty: bool,
    features: Extremes,
}

impl SampleSketch {
    /// Creates the sketch of no hashes yet, in the form for [`Isa::best`].
    pub fn new(shape: Shape) -> Self {
        Self::with_isa(shape, Isa::best())
    }

    /// Creates the sketch of no hashes yet, in the form for `isa`.
    pub fn with_isa(shape: Shape, isa: Isa) -> Self {
        let transforms = Transforms::new(shape);
        Self { transforms, isa, kept: [0; KEPT], count: 0, is_empty: true, features: Extremes::none(Extreme::Min) }
    }

    /// Adds the hash of a window.
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // Functions take the low half.
    pub fn add(&mut self, hash: u64) {
        self.kept[self.count] = hash as u32;
        self.count += 1;
        if self.count == KEPT {
            self.see_kept();
        }
    }

    /// The sketch of the hashes added since the last; `None` if there are none. Then it is empty again.
    pub fn finish(&mut self) -> Option<Sketch> {
        self.see_kept();
        let sketch = (!self.is_empty).then(|| self.transforms.sketch(&self.features));
        (self.is_empty, self.features) = (true, Extremes::none(Extreme::Min));
        sketch
    }

    fn see_kept(&mut self) {
        let Self { transforms, isa, kept, count, features, .. } = self;
        let hashes = &kept[..*count];
        self.is_empty &= hashes.is_empty();
        if isa.run(SeeAll { transforms, hashes, features }).is_none() {
            for hash in hashes {
                transforms.see(*hash, Extreme::Min, features);
            }
        }
        self.count = 0;
    }
}

struct SeeAll<'d> {
    transforms: &'d Transforms,
    hashes: &'d [u32],
    features: &'d mut Extremes,
}

impl Kernel for SeeAll<'_> {
    type Output = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        self.transforms.see_all(s, self.hashes, self.features);
    }
}

//! N-Transform: every window of a chunk through every function. What all others are held against.
//!
//! Source: Broder, SEQUENCES'97; as Finesse, FAST'19, section 3 and Algorithm 1 has it (windows of 48 bytes, greatest
//! values), and as Odess, TOS, section 2.3 has it (32 bytes, least values). The definition, which is format:
//!
//! ```text
//! x_j         the Rabin fingerprint (crate `rolling`) of the window that ends with byte j, zeros standing before the begin
//! feature i   the greatest or least t_i(x_j mod 2^32) for all bytes j of the chunk
//! ```
//!
//! A chunk of no bytes has no sketch; any other has one, for its first windows begin before it, as in the papers.
//!
//! Cost: N products, sums and comparisons per byte.

use super::transforms::{Extreme, Extremes, Transforms};
use super::{Shape, Sketch, Sketcher};
use core::ops::Range;
use siltstone_rolling::{Rabin, RollingHash};

/// The sketchers `ntransform` and `ntransform-32`.
#[derive(Clone, Debug)]
pub struct NTransform<const WINDOW_BYTES: usize> {
    name: &'static str,
    transforms: Transforms,
    extreme: Extreme,
}

impl<const WINDOW_BYTES: usize> NTransform<WINDOW_BYTES> {
    /// The sketcher, known by `name`.
    pub fn new(name: &'static str, extreme: Extreme, shape: Shape) -> Self {
        Self { name, transforms: Transforms::new(shape), extreme }
    }

    /// The features; which extreme is known where this is compiled.
    #[inline(always)]
    fn features(&self, chunk: &[u8], extreme: Extreme) -> Extremes {
        let mut features = Extremes::none(extreme);
        let mut fingerprint = 0;
        slide::<WINDOW_BYTES>(chunk, 0..chunk.len(), &mut fingerprint, |hash| {
            self.transforms.see(hash, extreme, &mut features);
        });
        features
    }
}

impl<const WINDOW_BYTES: usize> Sketcher for NTransform<WINDOW_BYTES> {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.transforms.shape()
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        if chunk.is_empty() {
            return None;
        }
        let features = match self.extreme {
            Extreme::Max => self.features(chunk, Extreme::Max),
            Extreme::Min => self.features(chunk, Extreme::Min),
        };
        Some(self.transforms.sketch(&features))
    }
}

/// Calls `each` with `x_j mod 2^32` for the bytes of `range`; `fingerprint` is that of the byte before, and then of the
/// last.
#[inline(always)]
#[allow(clippy::cast_possible_truncation)] // The low half is what is wanted.
pub(super) fn slide<const WINDOW_BYTES: usize>(
    chunk: &[u8],
    range: Range<usize>,
    fingerprint: &mut u64,
    mut each: impl FnMut(u32),
) {
    let hash = Rabin::<WINDOW_BYTES>;
    let whole = range.start.max(WINDOW_BYTES).min(range.end);
    for entering in &chunk[range.start..whole] {
        *fingerprint = hash.slide(*fingerprint, 0, *entering);
        each(*fingerprint as u32);
    }
    let leaving = &chunk[whole.saturating_sub(WINDOW_BYTES)..];
    for (leaving, entering) in leaving.iter().zip(&chunk[whole..range.end]) {
        *fingerprint = hash.slide(*fingerprint, *leaving, *entering);
        each(*fingerprint as u32);
    }
}

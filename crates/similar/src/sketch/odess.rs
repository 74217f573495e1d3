//! Odess: N-Transform of a sample that content chooses.
//!
//! Source: Odess, TOS, sections 3.2 and 3.5. The definition, which is format:
//!
//! ```text
//! x_j         the Gear hash (crate `rolling`) of the bytes up to byte j of the chunk, at most 32
//! sample      all j with x_j & mask == 0
//! mask        the first k of the bits 30, 17, 8, 16, 9, 6, 0, 25, 13 for a rate of one in 2^k
//! feature i   the least t_i(x_j) of the sample
//! ```
//!
//! Reasons:
//! 1. **Scattered ones**, as section 3.2 finds best; for one in 128 they are its mask 4, 0x40030341. A rarer sample is
//!    part of a less rare one.
//! 2. **A window is sampled for what it holds**, so like chunks have like samples, and Broder's theorem holds for
//!    these.
//!
//! A chunk of which nothing is sampled has no sketch.
//!
//! Cost: a table lookup, a shift, an addition and a test per byte; N functions per sample.

use super::transforms::{Extreme, Extremes, Transforms};
use super::{Rate, Shape, Sketch, Sketcher};
use siltstone_rolling::{Gear, RollingHash};

/// The sketchers `odess`, `odess-32` .. `odess-512`.
#[derive(Clone, Debug)]
pub struct Odess {
    name: &'static str,
    gear: Gear,
    mask: u32,
    transforms: Transforms,
}

impl Odess {
    /// The sketcher, known by `name`.
    pub fn new(name: &'static str, rate: Rate, shape: Shape) -> Self {
        Self::with_mask(name, mask(rate), shape)
    }

    /// The sketcher that samples by another mask, to compare masks: which windows it samples is not format.
    pub fn with_mask(name: &'static str, mask: u32, shape: Shape) -> Self {
        Self { name, gear: Gear::new(), mask, transforms: Transforms::new(shape) }
    }
}

impl Sketcher for Odess {
    fn name(&self) -> &'static str {
        self.name
    }

    fn shape(&self) -> Shape {
        self.transforms.shape()
    }

    fn sketch(&self, chunk: &[u8]) -> Option<Sketch> {
        let (mut hash, mut is_sampled) = (0, false);
        let mut features = Extremes::none(Extreme::Min);
        for byte in chunk {
            hash = self.gear.slide(hash, 0, *byte);
            if hash & self.mask == 0 {
                self.transforms.see(hash, Extreme::Min, &mut features);
                is_sampled = true;
            }
        }
        is_sampled.then(|| self.transforms.sketch(&features))
    }
}

/// `mask` of the definition.
fn mask(rate: Rate) -> u32 {
    const BITS: [u32; 9] = [30, 17, 8, 16, 9, 6, 0, 25, 13];
    let ones = rate.one_in().ilog2() as usize;
    BITS.iter().take(ones).fold(0, |mask, bit| mask | 1 << bit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mask_of_the_usual_rate_is_that_of_the_paper() {
        assert_eq!(mask(Rate::DEFAULT), 0x4003_0341);
        assert!(Rate::ALL.iter().all(|rate| 1 << mask(*rate).count_ones() == rate.one_in()));
    }
}

//! The functions of which features are extremes.
//!
//! Source: Odess, TOS, section 2.3, equation 3; Finesse, FAST'19, section 3. The definition, which is format:
//!
//! ```text
//! t_i(x)      = m_i x + a_i    (mod 2^32)
//! m_i, a_i    the i-th pair of little-endian u32 of BLAKE3's extendable output over "siltstone transforms"; m_i made odd
//! ```
//!
//! Reasons:
//! 1. **Odd factors** make each function a permutation of 32-bit numbers, as Broder's theorem asks: no two hashes meet.
//! 2. **One list** for all methods, of which a sketch of N features takes the first N: a longer sketch begins with the
//!    shorter.
//! 3. **Features are lanes** of the vector form: one hash goes through 4, 8 or 16 functions at once, whatever their
//!    number.
//!
//! Cost: a product, a sum and a comparison per hash and function; 12 functions are one vector with AVX-512.

use super::{FEATURES_MAX, Shape, Sketch};
use siltstone_simd::Simd;

/// Functions there are: as many as whole vectors may look at.
const ROOM: usize = FEATURES_MAX + 12;

/// Functions, as many as a sketch has features.
#[derive(Clone, Debug)]
pub(super) struct Transforms {
    multipliers: [u32; ROOM],
    addends: [u32; ROOM],
    shape: Shape,
}

/// The value of a function that is the feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extreme {
    /// The greatest: N-Transform and Finesse as Finesse's authors have them.
    Max,
    /// The least: N-Transform and Odess as Odess's authors have them.
    Min,
}

/// The features of what was seen so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extremes([u32; ROOM]);

impl Extremes {
    /// Creates the extremes of no values.
    pub(super) fn none(extreme: Extreme) -> Self {
        Self([if extreme == Extreme::Max { 0 } else { u32::MAX }; ROOM])
    }
}

impl Transforms {
    pub(super) fn new(shape: Shape) -> Self {
        let mut output = blake3::Hasher::new().update(b"siltstone transforms").finalize_xof();
        let mut number = || {
            let mut bytes = [0; 4];
            output.fill(&mut bytes);
            u32::from_le_bytes(bytes)
        };
        let (mut multipliers, mut addends) = ([0; ROOM], [0; ROOM]);
        for (multiplier, addend) in multipliers.iter_mut().zip(&mut addends) {
            (*multiplier, *addend) = (number() | 1, number());
        }
        Self { multipliers, addends, shape }
    }

    pub(super) fn shape(&self) -> Shape {
        self.shape
    }

    /// Takes in one more hash.
    #[inline(always)]
    pub(super) fn see(&self, hash: u32, extreme: Extreme, features: &mut Extremes) {
        let functions = self.multipliers.iter().zip(&self.addends);
        for (feature, (multiplier, addend)) in features.0.iter_mut().zip(functions).take(self.shape.features()) {
            let value = multiplier.wrapping_mul(hash).wrapping_add(*addend);
            *feature = if extreme == Extreme::Max { value.max(*feature) } else { value.min(*feature) };
        }
    }

    /// Takes in many hashes, of which the least values are kept.
    #[inline(always)]
    pub(super) fn see_all<S: Simd>(&self, s: S, hashes: &[u32], features: &mut Extremes) {
        for first in (0..self.shape.features()).step_by(S::WORDS) {
            let (multipliers, addends) = (load(s, &self.multipliers, first), load(s, &self.addends, first));
            let mut least = load(s, &features.0, first);
            for hash in hashes {
                let value = s.words_add(s.words_mul(multipliers, s.words_splat(*hash)), addends);
                least = s.words_min(least, value);
            }
            let mut words = [0; 16];
            s.words_store(least, &mut words);
            features.0[first..first + S::WORDS].copy_from_slice(&words[..S::WORDS]);
        }
    }

    /// The sketch of what was seen.
    pub(super) fn sketch(&self, features: &Extremes) -> Sketch {
        Sketch::new(self.shape, |i| features.0[i])
    }
}

/// The words from `first` on.
#[inline(always)]
fn load<S: Simd>(s: S, words: &[u32; ROOM], first: usize) -> S::Word {
    s.words_load(words[first..].first_chunk().unwrap_or(&[0; 16]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_simd::{Isa, Kernel};

    struct SeeAll<'d>(&'d Transforms, &'d [u32]);

    impl Kernel for SeeAll<'_> {
        type Output = Sketch;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Sketch {
            let mut features = Extremes::none(Extreme::Min);
            self.0.see_all(s, self.1, &mut features);
            self.0.sketch(&features)
        }
    }

    #[test]
    fn vectors_of_functions_are_functions() {
        let hashes: alloc::vec::Vec<u32> = (0..50u32).map(|i| i.wrapping_mul(0x9E37_79B9)).collect();
        for features in 1..=FEATURES_MAX {
            let transforms = Transforms::new(Shape::new(features, 1).unwrap());
            let mut want = Extremes::none(Extreme::Min);
            for hash in &hashes {
                transforms.see(*hash, Extreme::Min, &mut want);
            }
            for isa in Isa::available().filter(|isa| *isa != Isa::SCALAR) {
                let found = isa.run(SeeAll(&transforms, &hashes)).unwrap();
                assert_eq!(found, transforms.sketch(&want), "{isa}, {features} features");
            }
        }
    }

    #[test]
    fn no_two_functions_are_alike() {
        let all = Transforms::new(Shape::DEFAULT);
        let pairs: alloc::collections::BTreeSet<_> = all.multipliers.iter().zip(&all.addends).collect();
        assert_eq!(pairs.len(), ROOM);
        assert!(all.multipliers.iter().all(|multiplier| multiplier % 2 == 1));
    }
}

//! Comparing 64 pairs of bytes for equality: the one question for which the searches for copies use vectors. Every
//! instruction set gives the same answer, so the same copies are found, and the same deltas written, on every machine.

use siltstone_simd::Simd;

/// Bytes compared at once.
pub(crate) const BLOCK_BYTES: usize = 64;

/// A block of bytes to compare.
pub(crate) type Block = [u8; BLOCK_BYTES];

/// A comparer of blocks.
pub(crate) trait Compare: Copy {
    /// A bit for each pair of bytes, set where they are equal, the lowest for the first.
    fn equal(self, one: &Block, other: &Block) -> u64;
}

/// A comparer that uses the vectors of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Vectors<S>(pub(crate) S);

impl<S: Simd> Compare for Vectors<S> {
    #[inline(always)]
    fn equal(self, one: &Block, other: &Block) -> u64 {
        let mut equal = 0;
        let mut at = 0;
        while at < BLOCK_BYTES {
            equal |= self.0.eq(self.0.load(one, at), self.0.load(other, at)) << at;
            at += S::LANES;
        }
        equal
    }
}

/// A comparer byte by byte.
#[derive(Clone, Copy)]
pub(crate) struct Scalar;

impl Compare for Scalar {
    #[inline(always)]
    fn equal(self, one: &Block, other: &Block) -> u64 {
        equal_bytes(one, other)
    }
}

/// Compares up to 64 pairs; bits of pairs that are not there are 0.
#[inline(always)]
pub(crate) fn equal_bytes(one: &[u8], other: &[u8]) -> u64 {
    one.iter().zip(other).rev().fold(0, |equal, (one, other)| equal << 1 | u64::from(one == other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_simd::{Isa, Kernel};

    struct Equal<'b>(&'b Block, &'b Block);

    impl Kernel for Equal<'_> {
        type Output = u64;
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> u64 {
            Vectors(s).equal(self.0, self.1)
        }
    }

    #[test]
    fn all_forms_find_the_same_bytes_equal() {
        let one = [7; BLOCK_BYTES];
        for first in 0..=BLOCK_BYTES {
            let mut other = one;
            other.iter_mut().skip(first).step_by(3).for_each(|byte| *byte = 8);
            let equal = (0..BLOCK_BYTES).filter(|at| other[*at] == 7).fold(0, |equal, at| equal | 1 << at);
            assert_eq!(Scalar.equal(&one, &other), equal);
            for isa in Isa::available() {
                assert_eq!(isa.run(Equal(&one, &other)).unwrap_or(equal), equal, "{isa}");
            }
        }
    }
}

//! Finding how far two chunks begin and end alike.

use crate::compare::{BLOCK_BYTES, Compare, equal_bytes};

const WORD_BYTES: usize = 8;

/// Returns a bit for each of the first 64 bytes that is equal in both.
#[inline(always)]
pub(super) fn equal_mask(compare: impl Compare, one: &[u8], other: &[u8]) -> u64 {
    match (one.first_chunk(), other.first_chunk()) {
        (Some(one), Some(other)) => compare.equal(one, other),
        _ => {
            let bytes = one.len().min(other.len());
            equal_bytes(&one[..bytes], &other[..bytes])
        }
    }
}

/// Counts the equal bytes at the begin of both, at most `bytes_max`. Bytes behind these is read too: whole blocks
/// are faster.
#[inline(always)]
pub(super) fn common_prefix(compare: impl Compare, mut one: &[u8], mut other: &[u8], bytes_max: usize) -> usize {
    let mut bytes = 0;
    while bytes < bytes_max {
        let (Some((block, rest)), Some((other_block, other_rest))) =
            (one.split_first_chunk(), other.split_first_chunk())
        else {
            bytes += one.iter().zip(other).take_while(|(one, other)| one == other).count();
            break;
        };
        let equal = compare.equal(block, other_block);
        if equal != u64::MAX {
            bytes += equal.trailing_ones() as usize;
            break;
        }
        bytes += BLOCK_BYTES;
        (one, other) = (rest, other_rest);
    }
    bytes.min(bytes_max)
}

/// Counts the equal bytes at the end of both, at most `bytes_max`. Bytes before these are read too.
#[inline(always)]
pub(super) fn common_suffix(compare: impl Compare, mut one: &[u8], mut other: &[u8], bytes_max: usize) -> usize {
    let mut bytes = 0;
    while bytes < bytes_max {
        let (Some((rest, block)), Some((other_rest, other_block))) = (one.split_last_chunk(), other.split_last_chunk())
        else {
            bytes += one.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
            break;
        };
        let equal = compare.equal(block, other_block);
        if equal != u64::MAX {
            bytes += equal.leading_ones() as usize;
            break;
        }
        bytes += BLOCK_BYTES;
        (one, other) = (rest, other_rest);
    }
    bytes.min(bytes_max)
}

/// The word of eight bytes at `at`; `None` if it does not lie in `bytes`.
#[inline(always)]
pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    bytes.get(at..at + WORD_BYTES)?.first_chunk().map(|word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::{Scalar, Vectors};
    use alloc::vec;
    use siltstone_simd::{Isa, Kernel, Simd};

    /// A comparison of two chunks: their common begin and end, and the equal bytes among the first 64.
    struct Compared<'a>(&'a [u8], &'a [u8], usize);

    impl Compared<'_> {
        fn with(&self, compare: impl Compare) -> (usize, usize, u64) {
            let Self(one, other, bytes_max) = *self;
            let (prefix, suffix) =
                (common_prefix(compare, one, other, bytes_max), common_suffix(compare, one, other, bytes_max));
            (prefix, suffix, equal_mask(compare, one, other))
        }
    }

    impl Kernel for Compared<'_> {
        type Output = (usize, usize, u64);
        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Output {
            self.with(Vectors(s))
        }
    }

    fn check(one: &[u8], other: &[u8], bytes_max: usize) {
        let same = |(one, other): &(&u8, &u8)| one == other;
        let prefix = one.iter().zip(other).take_while(same).count().min(bytes_max);
        let suffix = one.iter().rev().zip(other.iter().rev()).take_while(same).count().min(bytes_max);
        let pairs = one.iter().zip(other).take(64).enumerate();
        let mask = pairs.fold(0, |mask, (at, (one, other))| mask | u64::from(one == other) << at);
        for isa in Isa::available() {
            let compared = || Compared(one, other, bytes_max);
            let found = isa.run(compared()).unwrap_or_else(|| compared().with(Scalar));
            assert_eq!(
                found,
                (prefix, suffix, mask),
                "{isa}, {} and {} bytes, at most {bytes_max}",
                one.len(),
                other.len()
            );
        }
    }

    #[test]
    fn every_instruction_set_finds_each_difference() {
        for bytes in 0..200 {
            let one = vec![3; bytes];
            check(&one, &one, bytes);
            for at in 0..bytes {
                let mut other = one.clone();
                other[at] = 4;
                check(&one, &other, bytes);
                check(&one[bytes / 3..], &other, bytes - at);
                check(&one, &other[..bytes - at / 2], at / 2);
            }
        }
    }
}

//! Finding how far two stretches of the same slice are equal.

use crate::compare::{BLOCK_BYTES, Block, Compare};

/// The 64 bytes from `at` on. Whoever compares leaves as many behind the last byte of interest.
///
/// # Panics
/// If they do not lie in `data`.
#[inline(always)]
fn block(data: &[u8], at: usize) -> &Block {
    data[at..].first_chunk().expect("a block behind the text")
}

/// Bit i is set where `data[a + i] == data[b + i]`.
#[inline(always)]
pub(super) fn equal(compare: impl Compare, data: &[u8], a: usize, b: usize) -> u64 {
    compare.equal(block(data, a), block(data, b))
}

/// The first place from `a` on that differs from its partner from `b` on; `end` if there is none before.
#[inline(always)]
pub(super) fn forward(compare: impl Compare, data: &[u8], mut a: usize, mut b: usize, end: usize) -> usize {
    while a < end {
        let differ = !equal(compare, data, a, b);
        if differ != 0 {
            return end.min(a + differ.trailing_zeros() as usize);
        }
        a += BLOCK_BYTES;
        b += BLOCK_BYTES;
    }
    end
}

/// Counts the equal bytes before `a` and `b`, at most `most`.
#[inline(always)]
pub(super) fn backward(data: &[u8], a: usize, b: usize, most: usize) -> usize {
    let mut equal = 0;
    while equal + 8 <= most {
        let differ = word(data, a - equal - 8) ^ word(data, b - equal - 8);
        if differ != 0 {
            return equal + (differ.leading_zeros() / 8) as usize;
        }
        equal += 8;
    }
    while equal < most && data[a - equal - 1] == data[b - equal - 1] {
        equal += 1;
    }
    equal
}

/// Eight bytes from `at` on, little-endian.
#[inline(always)]
pub(super) fn word(data: &[u8], at: usize) -> u64 {
    data[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compare::Scalar;
    use alloc::vec;

    #[test]
    fn equality_ends_where_it_ends() {
        let mut data = vec![1; 400];
        data[70] = 2;
        assert_eq!(forward(Scalar, &data, 0, 200, 100), 70);
        assert_eq!(forward(Scalar, &data, 0, 200, 60), 60);
        assert_eq!(forward(Scalar, &data, 71, 200, 140), 140);
        for most in 0..40 {
            assert_eq!(backward(&data, 100, 200, most), most.min(29));
        }
    }
}

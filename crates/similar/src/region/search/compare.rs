//! Where two stretches of the same slice are equal: with vectors, or word by word. Both give the same, so the search does too.

use siltstone_simd::Simd;

/// Bytes compared at once. Whoever compares leaves as many behind the last byte of interest.
pub(crate) const WINDOW_BYTES: usize = 64;

/// Compares windows of 64 bytes.
pub(super) trait Compare: Copy {
    /// Bit i is set where `data[a + i] == data[b + i]`.
    ///
    /// # Panics
    /// If one of the windows does not lie in `data`.
    fn equal(self, data: &[u8], a: usize, b: usize) -> u64;

    /// The first place from `a` on that differs from its partner from `b` on; `end` if there is none before.
    #[inline(always)]
    fn forward(self, data: &[u8], mut a: usize, mut b: usize, end: usize) -> usize {
        while a < end {
            let differ = !self.equal(data, a, b);
            if differ != 0 {
                return end.min(a + differ.trailing_zeros() as usize);
            }
            a += WINDOW_BYTES;
            b += WINDOW_BYTES;
        }
        end
    }
}

/// Vectors of one instruction set.
#[derive(Clone, Copy)]
pub(super) struct Vectors<S>(pub(super) S);

impl<S: Simd> Compare for Vectors<S> {
    #[inline(always)]
    fn equal(self, data: &[u8], a: usize, b: usize) -> u64 {
        let Self(s) = self;
        let (a, b) = (&data[a..a + WINDOW_BYTES], &data[b..b + WINDOW_BYTES]);
        let mut equal = 0;
        let mut at = 0;
        while at < WINDOW_BYTES {
            equal |= s.eq(s.load(a, at), s.load(b, at)) << at;
            at += S::LANES;
        }
        equal
    }
}

/// No vectors.
#[derive(Clone, Copy)]
pub(super) struct Plain;

impl Compare for Plain {
    fn equal(self, data: &[u8], a: usize, b: usize) -> u64 {
        let (a, b) = (&data[a..a + WINDOW_BYTES], &data[b..b + WINDOW_BYTES]);
        let bit = |(at, (a, b)): (usize, (&u8, &u8))| u64::from(a == b) << at;
        a.iter().zip(b).enumerate().map(bit).fold(0, |equal, bit| equal | bit)
    }
}

/// How many bytes before `a` and `b` are equal, at most `most`.
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
    use alloc::vec;
    use siltstone_simd::{Isa, Kernel};

    struct Equal<'d>(&'d [u8]);

    impl Kernel for Equal<'_> {
        type Output = u64;
        fn run<S: Simd>(self, s: S) -> u64 {
            Vectors(s).equal(self.0, 0, WINDOW_BYTES)
        }
    }

    #[test]
    fn all_forms_find_the_same_bytes_equal() {
        for different in 0..=u64::BITS as usize {
            let mut data = vec![7; 2 * WINDOW_BYTES];
            for place in data[..WINDOW_BYTES].iter_mut().skip(different).step_by(3) {
                *place = 8;
            }
            let plain = Plain.equal(&data, 0, WINDOW_BYTES);
            assert_eq!(plain.trailing_ones() as usize, different);
            for isa in Isa::available() {
                assert_eq!(isa.run(Equal(&data)).unwrap_or(plain), plain, "{isa}");
            }
        }
    }

    #[test]
    fn equality_ends_where_it_ends() {
        let mut data = vec![1; 400];
        data[70] = 2;
        assert_eq!(Plain.forward(&data, 0, 200, 100), 70);
        assert_eq!(Plain.forward(&data, 0, 200, 60), 60);
        assert_eq!(Plain.forward(&data, 71, 200, 140), 140);
        for most in 0..40 {
            assert_eq!(backward(&data, 100, 200, most), most.min(29));
        }
    }
}

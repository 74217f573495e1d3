//! Sixteen lanes on x86-64: SSE2, which every such CPU has, and byte shuffles where SSSE3 is there.

use crate::isa::{Level, isa};
use crate::{Isa, Matrix, Simd, Words};
use core::arch::x86_64::*;
use core::array::from_fn;

/// The proof that SSE2, and SSSE3 if `SHUFFLE`, can be executed.
#[derive(Clone, Copy, Debug)]
pub struct Sse<const SHUFFLE: bool>(());

impl<const SHUFFLE: bool> Sse<SHUFFLE> {
    /// # Safety
    /// The CPU must have SSE2, and SSSE3 if `SHUFFLE`.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

/// Every method below is sound for one reason: its `self` exists only where the CPU has the instructions.
macro_rules! proven {
    ($intrinsics:expr) => {
        // SAFETY: `self` is the proof that the CPU has these instructions; memory is reached through checked slices
        // only.
        unsafe { $intrinsics }
    };
}
pub(crate) use proven;

/// The greatest number that names a whole word of `data`, as far as gathers take them: they are signed.
///
/// # Panics
/// If there is no whole word.
#[inline(always)]
pub(crate) fn last_word(data: &[u8]) -> u32 {
    assert!(data.len() >= 4, "a word out of range");
    data.len().min(i32::MAX as usize) as u32 - 4
}

impl<const SHUFFLE: bool> Simd for Sse<SHUFFLE> {
    const ISA: Isa = isa(if SHUFFLE { Level::Ssse3 } else { Level::Sse2 });
    const LANES: usize = 16;
    const MATRICES: bool = SHUFFLE;
    type Bytes = __m128i;

    #[inline(always)]
    fn load(self, data: &[u8], at: usize) -> __m128i {
        let bytes = &data[at..at + 16];
        proven!(_mm_loadu_si128(bytes.as_ptr().cast()))
    }
    #[inline(always)]
    fn prefetch(self, data: &[u8], at: usize) {
        proven!(_mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(at).cast()));
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> __m128i {
        proven!(_mm_set1_epi8(byte as i8))
    }
    #[inline(always)]
    fn max(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_max_epu8(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_min_epu8(a, b))
    }
    #[inline(always)]
    fn add(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_add_epi8(a, b))
    }
    #[inline(always)]
    fn mean(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_avg_epu8(a, b))
    }
    #[inline(always)]
    fn shl<const BITS: i32>(self, a: __m128i) -> __m128i {
        // No byte keeps what its neighbour shifted into it.
        proven!(_mm_and_si128(_mm_slli_epi16::<BITS>(a), _mm_set1_epi8((0xFF_u8 << BITS) as i8)))
    }
    #[inline(always)]
    fn shr<const BITS: i32>(self, a: __m128i) -> __m128i {
        proven!(_mm_and_si128(_mm_srli_epi16::<BITS>(a), _mm_set1_epi8((0xFF_u8 >> BITS) as i8)))
    }
    #[inline(always)]
    fn sub_saturating(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_subs_epu8(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_xor_si128(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_and_si128(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m128i, b: __m128i) -> u64 {
        proven!(u64::from(_mm_movemask_epi8(_mm_cmpeq_epi8(a, b)) as u32))
    }
    #[inline(always)]
    fn ge(self, a: __m128i, b: __m128i) -> u64 {
        self.eq(self.max(a, b), a)
    }
    #[inline(always)]
    fn reduce_max(self, a: __m128i) -> u8 {
        proven!({
            let a = _mm_max_epu8(a, _mm_srli_si128::<8>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<4>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<2>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<1>(a));
            _mm_cvtsi128_si32(a) as u8
        })
    }
    #[inline(always)]
    fn reduce_min(self, a: __m128i) -> u8 {
        !self.reduce_max(self.xor(a, self.splat(0xFF)))
    }
    #[inline(always)]
    fn shift_in<const COUNT: usize>(self, before: __m128i, a: __m128i) -> __m128i {
        proven!(if COUNT == 4 {
            _mm_or_si128(_mm_slli_si128::<4>(a), _mm_srli_si128::<12>(before))
        } else {
            _mm_or_si128(_mm_slli_si128::<8>(a), _mm_srli_si128::<8>(before))
        })
    }
    #[inline(always)]
    fn apply(self, matrix: &Matrix, a: __m128i) -> __m128i {
        proven!({
            if SHUFFLE {
                let nibble = _mm_set1_epi8(15);
                let low = _mm_loadu_si128(matrix.low.as_ptr().cast());
                let high = _mm_loadu_si128(matrix.high.as_ptr().cast());
                let low = _mm_shuffle_epi8(low, _mm_and_si128(a, nibble));
                let high = _mm_shuffle_epi8(high, _mm_and_si128(_mm_srli_epi16::<4>(a), nibble));
                _mm_xor_si128(low, high)
            } else {
                let mut bytes = [0_u8; 16];
                _mm_storeu_si128(bytes.as_mut_ptr().cast(), a);
                let bytes: [u8; 16] =
                    from_fn(|i| matrix.low[usize::from(bytes[i] & 15)] ^ matrix.high[usize::from(bytes[i] >> 4)]);
                _mm_loadu_si128(bytes.as_ptr().cast())
            }
        })
    }
}

impl<const SHUFFLE: bool> Words for Sse<SHUFFLE> {
    const WORDS: usize = 4;
    type Word = __m128i;

    #[inline(always)]
    fn words_splat(self, word: u32) -> __m128i {
        proven!(_mm_set1_epi32(word as i32))
    }
    #[inline(always)]
    fn words_load(self, words: &[u32; 16]) -> __m128i {
        proven!(_mm_loadu_si128(words.as_ptr().cast()))
    }
    #[inline(always)]
    fn words_store(self, a: __m128i, into: &mut [u32; 16]) {
        proven!(_mm_storeu_si128(into.as_mut_ptr().cast(), a));
    }
    #[inline(always)]
    fn words_add(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_add_epi32(a, b))
    }
    #[inline(always)]
    fn words_max(self, a: __m128i, b: __m128i) -> __m128i {
        self.where_gt(a, b, a, b)
    }
    #[inline(always)]
    fn words_min(self, a: __m128i, b: __m128i) -> __m128i {
        self.where_gt(a, b, b, a)
    }
    #[inline(always)]
    fn words_mul(self, a: __m128i, b: __m128i) -> __m128i {
        proven!({
            let even = _mm_mul_epu32(a, b);
            let odd = _mm_mul_epu32(_mm_srli_epi64::<32>(a), _mm_srli_epi64::<32>(b));
            let low = _mm_set_epi32(0, -1, 0, -1);
            _mm_or_si128(_mm_and_si128(even, low), _mm_slli_epi64::<32>(odd))
        })
    }
    #[inline(always)]
    fn words_xor(self, a: __m128i, b: __m128i) -> __m128i {
        proven!(_mm_xor_si128(a, b))
    }
    #[inline(always)]
    fn words_shl<const BITS: i32>(self, a: __m128i) -> __m128i {
        proven!(_mm_slli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn words_shr<const BITS: i32>(self, a: __m128i) -> __m128i {
        proven!(_mm_srli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn words_rotr<const BITS: i32>(self, a: __m128i) -> __m128i {
        proven!({
            match BITS {
                16 => _mm_or_si128(_mm_srli_epi32::<16>(a), _mm_slli_epi32::<16>(a)),
                12 => _mm_or_si128(_mm_srli_epi32::<12>(a), _mm_slli_epi32::<20>(a)),
                8 => _mm_or_si128(_mm_srli_epi32::<8>(a), _mm_slli_epi32::<24>(a)),
                _ => _mm_or_si128(_mm_srli_epi32::<7>(a), _mm_slli_epi32::<25>(a)),
            }
        })
    }
    #[inline(always)]
    fn words_lt(self, a: __m128i, b: __m128i) -> u64 {
        proven!({
            let sign = _mm_set1_epi32(i32::MIN);
            let less = _mm_cmplt_epi32(_mm_xor_si128(a, sign), _mm_xor_si128(b, sign));
            u64::from(_mm_movemask_ps(_mm_castsi128_ps(less)) as u32)
        })
    }
    #[inline(always)]
    fn words_sliding(self, data: &[u8], at: usize) -> __m128i {
        let bytes = &data[at..at + 7];
        let word = |i| u32::from_be_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]) as i32;
        proven!(_mm_set_epi32(word(3), word(2), word(1), word(0)))
    }
    #[inline(always)]
    fn words_shift_in<const COUNT: usize>(self, before: __m128i, _: __m128i) -> __m128i {
        debug_assert!(COUNT == 4);
        before
    }
    #[inline(always)]
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [__m128i; 16] {
        let mut columns = [self.words_splat(0); 16];
        for part in 0..4 {
            let row = |block: usize| proven!(_mm_loadu_si128(blocks[block].as_ptr().cast::<__m128i>().add(part)));
            columns[4 * part..][..4].copy_from_slice(&self.transposed([row(0), row(1), row(2), row(3)]));
        }
        columns
    }
    #[inline(always)]
    fn words_rows(self, columns: &[__m128i; 8], rows: &mut [[u8; 32]; 16]) {
        let [a, b, c, d, rest @ ..] = *columns;
        let (low, high) = (self.transposed([a, b, c, d]), self.transposed(rest));
        for ((row, low), high) in rows.iter_mut().zip(low).zip(high) {
            let (first, second) = row.split_at_mut(16);
            proven!(_mm_storeu_si128(first.as_mut_ptr().cast(), low));
            proven!(_mm_storeu_si128(second.as_mut_ptr().cast(), high));
        }
    }
}

#[allow(clippy::unused_self)] // It is the proof.
impl<const SHUFFLE: bool> Sse<SHUFFLE> {
    /// Words of `x` where `a > b`, unsigned, those of `y` elsewhere.
    #[inline(always)]
    fn where_gt(self, a: __m128i, b: __m128i, x: __m128i, y: __m128i) -> __m128i {
        proven!({
            let sign = _mm_set1_epi32(i32::MIN);
            let greater = _mm_cmpgt_epi32(_mm_xor_si128(a, sign), _mm_xor_si128(b, sign));
            _mm_or_si128(_mm_and_si128(greater, x), _mm_andnot_si128(greater, y))
        })
    }

    /// Word j of vector i becomes word i of vector j.
    #[inline(always)]
    fn transposed(self, [a, b, c, d]: [__m128i; 4]) -> [__m128i; 4] {
        proven!({
            let (ab_low, ab_high) = (_mm_unpacklo_epi32(a, b), _mm_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm_unpacklo_epi32(c, d), _mm_unpackhi_epi32(c, d));
            [
                _mm_unpacklo_epi64(ab_low, cd_low),
                _mm_unpackhi_epi64(ab_low, cd_low),
                _mm_unpacklo_epi64(ab_high, cd_high),
                _mm_unpackhi_epi64(ab_high, cd_high),
            ]
        })
    }
}

//! Sixty-four lanes on x86-64: AVX-512 with F, BW, VL, DQ, and bit matrices where GFNI is there.

use crate::isa::{Level, isa};
use crate::sse::{last_word, proven};
use crate::{AesKeys, Isa, Matrix, Simd, Words, matrix};
use core::arch::x86_64::*;

/// The proof that AVX-512 F, BW, VL and DQ, and VBMI, GFNI and VAES if `GFNI`, can be executed.
#[derive(Clone, Copy, Debug)]
pub struct Avx512<const GFNI: bool>(());

impl<const GFNI: bool> Avx512<GFNI> {
    /// # Safety
    /// The CPU must have AVX-512 F, BW, VL and DQ, and VBMI, GFNI and VAES if `GFNI`.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

impl<const GFNI: bool> Simd for Avx512<GFNI> {
    const ISA: Isa = isa(if GFNI { Level::Avx512Gfni } else { Level::Avx512 });
    const LANES: usize = 64;
    const AES_WINDOWS: usize = if GFNI { 32 } else { 0 };
    type Bytes = __m512i;

    #[inline(always)]
    fn load(self, data: &[u8], at: usize) -> __m512i {
        let bytes = &data[at..at + 64];
        proven!(_mm512_loadu_si512(bytes.as_ptr().cast()))
    }
    #[inline(always)]
    fn prefetch(self, data: &[u8], at: usize) {
        proven!(_mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(at).cast()));
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> __m512i {
        proven!(_mm512_set1_epi8(byte as i8))
    }
    #[inline(always)]
    fn max(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_max_epu8(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_min_epu8(a, b))
    }
    #[inline(always)]
    fn add(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_add_epi8(a, b))
    }
    #[inline(always)]
    fn mean(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_avg_epu8(a, b))
    }
    #[inline(always)]
    fn shl<const BITS: i32>(self, a: __m512i) -> __m512i {
        proven!(if GFNI {
            _mm512_gf2p8affine_epi64_epi8::<0>(a, _mm512_set1_epi64(matrix::shifted_up(BITS) as i64))
        } else {
            // No byte keeps what its neighbour shifted into it.
            _mm512_and_si512(_mm512_sll_epi16(a, _mm_cvtsi32_si128(BITS)), _mm512_set1_epi8((0xFF_u8 << BITS) as i8))
        })
    }
    #[inline(always)]
    fn shr<const BITS: i32>(self, a: __m512i) -> __m512i {
        proven!(if GFNI {
            _mm512_gf2p8affine_epi64_epi8::<0>(a, _mm512_set1_epi64(matrix::shifted_down(BITS) as i64))
        } else {
            _mm512_and_si512(_mm512_srl_epi16(a, _mm_cvtsi32_si128(BITS)), _mm512_set1_epi8((0xFF_u8 >> BITS) as i8))
        })
    }
    #[inline(always)]
    fn sub_saturating(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_subs_epu8(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_and_si512(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m512i, b: __m512i) -> u64 {
        proven!(_mm512_cmpeq_epu8_mask(a, b))
    }
    #[inline(always)]
    fn ge(self, a: __m512i, b: __m512i) -> u64 {
        proven!(_mm512_cmpge_epu8_mask(a, b))
    }
    #[inline(always)]
    fn gt(self, a: __m512i, b: __m512i) -> u64 {
        proven!(_mm512_cmpgt_epu8_mask(a, b))
    }
    #[inline(always)]
    fn reduce_max(self, a: __m512i) -> u8 {
        !self.reduce_min(self.xor(a, self.splat(0xFF)))
    }
    #[inline(always)]
    fn reduce_min(self, a: __m512i) -> u8 {
        proven!({
            let a = _mm256_min_epu8(_mm512_castsi512_si256(a), _mm512_extracti64x4_epi64::<1>(a));
            let a = _mm_min_epu8(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            // The smaller byte of each pair, then the smallest of the eight pairs.
            let a = _mm_min_epu8(a, _mm_srli_epi16::<8>(a));
            _mm_cvtsi128_si32(_mm_minpos_epu16(_mm_and_si128(a, _mm_set1_epi16(0xFF)))) as u8
        })
    }
    #[inline(always)]
    fn shift_in<const COUNT: usize>(self, before: __m512i, a: __m512i) -> __m512i {
        proven!(if COUNT == 4 { _mm512_alignr_epi32::<15>(a, before) } else { _mm512_alignr_epi64::<7>(a, before) })
    }
    #[inline(always)]
    fn apply(self, matrix: &Matrix, a: __m512i) -> __m512i {
        proven!({
            if GFNI {
                _mm512_gf2p8affine_epi64_epi8::<0>(a, _mm512_set1_epi64(matrix.rows as i64))
            } else {
                let nibble = _mm512_set1_epi8(15);
                let low = _mm512_broadcast_i32x4(_mm_loadu_si128(matrix.low.as_ptr().cast()));
                let high = _mm512_broadcast_i32x4(_mm_loadu_si128(matrix.high.as_ptr().cast()));
                let low = _mm512_shuffle_epi8(low, _mm512_and_si512(a, nibble));
                let high = _mm512_shuffle_epi8(high, _mm512_and_si512(_mm512_srli_epi16::<4>(a), nibble));
                _mm512_xor_si512(low, high)
            }
        })
    }
    #[inline(always)]
    fn aes_below(self, keys: &AesKeys, data: &[u8], at: usize, threshold: u64) -> u64 {
        const QUADS: usize = 8;
        const ONES: i64 = 0x0101_0101_0101_0101;
        const BYTES: usize = 4 * QUADS + 15;
        assert!(GFNI, "this level does not encrypt");
        let bytes = &data[at..at + BYTES];
        proven!({
            let round = |i: usize| _mm512_broadcast_i32x4(_mm_loadu_si128(keys.rounds[i].as_ptr().cast()));
            let source = _mm512_maskz_loadu_epi8((1 << BYTES) - 1, bytes.as_ptr().cast());
            let window_of_lane = _mm512_set_epi64(3 * ONES, 3 * ONES, 2 * ONES, 2 * ONES, ONES, ONES, 0, 0);
            // Lane l of window w takes byte w + l; each quad begins four bytes later.
            let lanes = _mm512_broadcast_i32x4(_mm_set_epi8(15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0));
            let order = _mm512_add_epi8(lanes, window_of_lane);
            let mut windows = [_mm512_setzero_si512(); QUADS];
            for (i, window) in windows.iter_mut().enumerate() {
                let order = _mm512_add_epi8(order, _mm512_set1_epi8(4 * i as i8));
                *window = _mm512_xor_si512(_mm512_permutexvar_epi8(order, source), round(0));
            }
            for i in 1..10 {
                for window in &mut windows {
                    *window = _mm512_aesenc_epi128(*window, round(i));
                }
            }
            let (threshold, mut below) = (_mm512_set1_epi64(threshold as i64), 0);
            for (i, window) in windows.into_iter().enumerate() {
                let hash = _mm512_aesenclast_epi128(window, round(10));
                // The even lanes are the windows' first halves.
                let mask = _mm512_cmplt_epu64_mask(hash, threshold);
                below |= u64::from(_pext_u32(mask.into(), 0x55)) << (4 * i);
            }
            below
        })
    }
}

impl<const GFNI: bool> Words for Avx512<GFNI> {
    const WORDS: usize = 16;
    type Word = __m512i;

    #[inline(always)]
    fn words_splat(self, word: u32) -> __m512i {
        proven!(_mm512_set1_epi32(word as i32))
    }
    #[inline(always)]
    fn words_load(self, words: &[u32; 16]) -> __m512i {
        proven!(_mm512_loadu_si512(words.as_ptr().cast()))
    }
    #[inline(always)]
    fn words_store(self, a: __m512i, into: &mut [u32; 16]) {
        proven!(_mm512_storeu_si512(into.as_mut_ptr().cast(), a));
    }
    #[inline(always)]
    fn words_add(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_add_epi32(a, b))
    }
    #[inline(always)]
    fn words_max(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_max_epu32(a, b))
    }
    #[inline(always)]
    fn words_min(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_min_epu32(a, b))
    }
    #[inline(always)]
    fn words_mul(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn words_xor(self, a: __m512i, b: __m512i) -> __m512i {
        proven!(_mm512_xor_si512(a, b))
    }
    #[inline(always)]
    fn words_shl<const BITS: i32>(self, a: __m512i) -> __m512i {
        proven!(_mm512_sllv_epi32(a, _mm512_set1_epi32(BITS)))
    }
    #[inline(always)]
    fn words_shr<const BITS: i32>(self, a: __m512i) -> __m512i {
        proven!(_mm512_srlv_epi32(a, _mm512_set1_epi32(BITS)))
    }
    #[inline(always)]
    fn words_lookup(self, table: &[u32; 256], a: __m512i) -> __m512i {
        proven!({
            // The lowest byte of a lane is below 256, the length of the table.
            let entry = _mm512_and_si512(a, _mm512_set1_epi32(0xFF));
            _mm512_i32gather_epi32::<4>(entry, table.as_ptr().cast())
        })
    }
    #[inline(always)]
    fn words_gather(self, data: &[u8], at: __m512i) -> __m512i {
        assert!(self.words_lt(self.words_splat(last_word(data)), at) == 0, "a word out of range");
        proven!(_mm512_i32gather_epi32::<1>(at, data.as_ptr().cast()))
    }
    #[inline(always)]
    fn words_rotr<const BITS: i32>(self, a: __m512i) -> __m512i {
        proven!(_mm512_ror_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn words_lt(self, a: __m512i, b: __m512i) -> u64 {
        proven!(u64::from(_mm512_cmplt_epu32_mask(a, b)))
    }
    #[inline(always)]
    fn words_sliding(self, data: &[u8], at: usize) -> __m512i {
        let bytes = &data[at..at + 19];
        proven!({
            let low = _mm_loadu_si128(bytes.as_ptr().cast());
            let high = _mm_loadu_si128(bytes.as_ptr().add(3).cast());
            // Dword d of the row holds bytes d .. d + 16 of it as needed: quarters from both loads, then bytes in
            // order.
            let quarter = |first: i8| {
                _mm_set_epi8(
                    first + 3,
                    first + 4,
                    first + 5,
                    first + 6,
                    first + 2,
                    first + 3,
                    first + 4,
                    first + 5,
                    first + 1,
                    first + 2,
                    first + 3,
                    first + 4,
                    first,
                    first + 1,
                    first + 2,
                    first + 3,
                )
            };
            let source = _mm512_inserti32x4::<3>(_mm512_broadcast_i32x4(low), high);
            let order = _mm512_inserti32x4::<1>(_mm512_castsi128_si512(quarter(0)), quarter(4));
            let order = _mm512_inserti32x4::<2>(order, quarter(8));
            let order = _mm512_inserti32x4::<3>(order, quarter(9));
            _mm512_shuffle_epi8(source, order)
        })
    }
    #[inline(always)]
    fn words_shift_in<const COUNT: usize>(self, before: __m512i, a: __m512i) -> __m512i {
        debug_assert!(COUNT == 4 || COUNT == 8);
        proven!(if COUNT == 4 { _mm512_alignr_epi32::<12>(a, before) } else { _mm512_alignr_epi32::<8>(a, before) })
    }
    #[inline(always)]
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [__m512i; 16] {
        let mut columns = [self.words_splat(0); 16];
        for half in 0..2 {
            // Pairing halves of two blocks on loading them spares a quarter of the shuffles.
            let pair = |block: usize| self.pair(blocks[block], blocks[block + 4], half);
            let low = self.quads([pair(0), pair(1), pair(2), pair(3)]);
            let high = self.quads([pair(8), pair(9), pair(10), pair(11)]);
            for i in 0..4 {
                columns[8 * half + i] = proven!(_mm512_shuffle_i32x4::<0x88>(low[i], high[i]));
                columns[8 * half + 4 + i] = proven!(_mm512_shuffle_i32x4::<0xDD>(low[i], high[i]));
            }
        }
        columns
    }
    #[inline(always)]
    fn words_rows(self, columns: &[__m512i; 8], rows: &mut [[u8; 32]; 16]) {
        let [a, b, c, d, rest @ ..] = *columns;
        let (low, high) = (self.quads([a, b, c, d]), self.quads(rest));
        let (first, second) =
            proven!((_mm512_set_epi64(11, 10, 3, 2, 9, 8, 1, 0), _mm512_set_epi64(15, 14, 7, 6, 13, 12, 5, 4),));
        for i in 0..4 {
            // Rows i and 4 + i, then 8 + i and 12 + i.
            let pairs = proven!([
                _mm512_permutex2var_epi64(low[i], first, high[i]),
                _mm512_permutex2var_epi64(low[i], second, high[i]),
            ]);
            for (k, pair) in pairs.into_iter().enumerate() {
                let halves = proven!([_mm512_castsi512_si256(pair), _mm512_extracti64x4_epi64::<1>(pair)]);
                proven!(_mm256_storeu_si256(rows[8 * k + i].as_mut_ptr().cast(), halves[0]));
                proven!(_mm256_storeu_si256(rows[8 * k + 4 + i].as_mut_ptr().cast(), halves[1]));
            }
        }
    }
}

#[allow(clippy::unused_self)] // It is the proof.
impl<const GFNI: bool> Avx512<GFNI> {
    /// Loads the same half of two blocks, side by side.
    #[inline(always)]
    fn pair(self, low: &[u8; 64], high: &[u8; 64], half: usize) -> __m512i {
        let (low, high) = (&low[32 * half..][..32], &high[32 * half..][..32]);
        proven!({
            let low = _mm512_castsi256_si512(_mm256_loadu_si256(low.as_ptr().cast()));
            _mm512_inserti64x4::<1>(low, _mm256_loadu_si256(high.as_ptr().cast()))
        })
    }

    /// Within each 128-bit lane, word j of vector i becomes word i of vector j.
    #[inline(always)]
    fn quads(self, [a, b, c, d]: [__m512i; 4]) -> [__m512i; 4] {
        proven!({
            let (ab_low, ab_high) = (_mm512_unpacklo_epi32(a, b), _mm512_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm512_unpacklo_epi32(c, d), _mm512_unpackhi_epi32(c, d));
            [
                _mm512_unpacklo_epi64(ab_low, cd_low),
                _mm512_unpackhi_epi64(ab_low, cd_low),
                _mm512_unpacklo_epi64(ab_high, cd_high),
                _mm512_unpackhi_epi64(ab_high, cd_high),
            ]
        })
    }
}

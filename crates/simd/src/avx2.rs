//! Thirty-two lanes on x86-64: AVX2, with bit matrices where GFNI is there.

use crate::isa::{Level, isa};
#[cfg(not(knows_avx512))]
use crate::older::{_mm256_aesenc_epi128, _mm256_aesenclast_epi128, _mm256_gf2p8affine_epi64_epi8};
use crate::sse::{last_word, proven};
use crate::{AesKeys, Isa, Matrix, Simd, Words, matrix};
use core::arch::x86_64::*;

/// The proof that AVX2 and what came with it (BMI, POPCNT), and GFNI and VAES if `GFNI`, can be executed.
#[derive(Clone, Copy, Debug)]
pub struct Avx2<const GFNI: bool>(());

impl<const GFNI: bool> Avx2<GFNI> {
    /// # Safety
    /// The CPU must have AVX2, and GFNI and VAES if `GFNI`.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

impl<const GFNI: bool> Simd for Avx2<GFNI> {
    const ISA: Isa = isa(if GFNI { Level::Avx2Gfni } else { Level::Avx2 });
    const LANES: usize = 32;
    const AES_WINDOWS: usize = if GFNI { 16 } else { 0 };
    type Bytes = __m256i;

    #[inline(always)]
    fn load(self, data: &[u8], at: usize) -> __m256i {
        let bytes = &data[at..at + 32];
        proven!(_mm256_loadu_si256(bytes.as_ptr().cast()))
    }
    #[inline(always)]
    fn prefetch(self, data: &[u8], at: usize) {
        proven!(_mm_prefetch::<_MM_HINT_T0>(data.as_ptr().wrapping_add(at).cast()));
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> __m256i {
        proven!(_mm256_set1_epi8(byte as i8))
    }
    #[inline(always)]
    fn max(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_max_epu8(a, b))
    }
    #[inline(always)]
    fn min(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_min_epu8(a, b))
    }
    #[inline(always)]
    fn add(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_add_epi8(a, b))
    }
    #[inline(always)]
    fn mean(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_avg_epu8(a, b))
    }
    #[inline(always)]
    fn shl<const BITS: i32>(self, a: __m256i) -> __m256i {
        proven!(if GFNI {
            _mm256_gf2p8affine_epi64_epi8::<0>(a, _mm256_set1_epi64x(matrix::shifted_up(BITS) as i64))
        } else {
            // No byte keeps what its neighbour shifted into it.
            _mm256_and_si256(_mm256_slli_epi16::<BITS>(a), _mm256_set1_epi8((0xFF_u8 << BITS) as i8))
        })
    }
    #[inline(always)]
    fn shr<const BITS: i32>(self, a: __m256i) -> __m256i {
        proven!(if GFNI {
            _mm256_gf2p8affine_epi64_epi8::<0>(a, _mm256_set1_epi64x(matrix::shifted_down(BITS) as i64))
        } else {
            _mm256_and_si256(_mm256_srli_epi16::<BITS>(a), _mm256_set1_epi8((0xFF_u8 >> BITS) as i8))
        })
    }
    #[inline(always)]
    fn sub_saturating(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_subs_epu8(a, b))
    }
    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_and_si256(a, b))
    }
    #[inline(always)]
    fn eq(self, a: __m256i, b: __m256i) -> u64 {
        proven!(u64::from(_mm256_movemask_epi8(_mm256_cmpeq_epi8(a, b)) as u32))
    }
    #[inline(always)]
    fn ge(self, a: __m256i, b: __m256i) -> u64 {
        self.eq(self.max(a, b), a)
    }
    #[inline(always)]
    fn reduce_max(self, a: __m256i) -> u8 {
        proven!({
            let a = _mm_max_epu8(_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<8>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<4>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<2>(a));
            let a = _mm_max_epu8(a, _mm_srli_si128::<1>(a));
            _mm_cvtsi128_si32(a) as u8
        })
    }
    #[inline(always)]
    fn reduce_min(self, a: __m256i) -> u8 {
        !self.reduce_max(self.xor(a, self.splat(0xFF)))
    }
    #[inline(always)]
    fn shift_in<const COUNT: usize>(self, before: __m256i, a: __m256i) -> __m256i {
        proven!({
            let middle = _mm256_permute2x128_si256::<0x21>(before, a);
            if COUNT == 4 { _mm256_alignr_epi8::<12>(a, middle) } else { _mm256_alignr_epi8::<8>(a, middle) }
        })
    }
    #[inline(always)]
    fn apply(self, matrix: &Matrix, a: __m256i) -> __m256i {
        proven!({
            if GFNI {
                _mm256_gf2p8affine_epi64_epi8::<0>(a, _mm256_set1_epi64x(matrix.rows as i64))
            } else {
                let nibble = _mm256_set1_epi8(15);
                let low = _mm256_broadcastsi128_si256(_mm_loadu_si128(matrix.low.as_ptr().cast()));
                let high = _mm256_broadcastsi128_si256(_mm_loadu_si128(matrix.high.as_ptr().cast()));
                let low = _mm256_shuffle_epi8(low, _mm256_and_si256(a, nibble));
                let high = _mm256_shuffle_epi8(high, _mm256_and_si256(_mm256_srli_epi16::<4>(a), nibble));
                _mm256_xor_si256(low, high)
            }
        })
    }
    #[inline(always)]
    fn aes_below(self, keys: &AesKeys, data: &[u8], at: usize, threshold: u64) -> u64 {
        const PAIRS: usize = 8;
        assert!(GFNI, "this level does not encrypt");
        let bytes = &data[at..at + 2 * PAIRS + 15];
        proven!({
            let round = |i: usize| _mm256_broadcastsi128_si256(_mm_loadu_si128(keys.rounds[i].as_ptr().cast()));
            let mut windows = [_mm256_setzero_si256(); PAIRS];
            for (i, window) in windows.iter_mut().enumerate() {
                let first = bytes.as_ptr().add(2 * i);
                let pair = _mm256_loadu2_m128i(first.add(1).cast(), first.cast());
                *window = _mm256_xor_si256(pair, round(0));
            }
            for i in 1..10 {
                for window in &mut windows {
                    *window = _mm256_aesenc_epi128(*window, round(i));
                }
            }
            let (sign, mut below) = (_mm256_set1_epi64x(i64::MIN), 0);
            let threshold = _mm256_xor_si256(_mm256_set1_epi64x(threshold as i64), sign);
            for (i, window) in windows.into_iter().enumerate() {
                let hash = _mm256_xor_si256(_mm256_aesenclast_epi128(window, round(10)), sign);
                let mask = _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpgt_epi64(threshold, hash))) as u64;
                below |= (mask & 1 | mask >> 1 & 2) << (2 * i);
            }
            below
        })
    }
}

impl<const GFNI: bool> Words for Avx2<GFNI> {
    const WORDS: usize = 8;
    type Word = __m256i;

    #[inline(always)]
    fn words_splat(self, word: u32) -> __m256i {
        proven!(_mm256_set1_epi32(word as i32))
    }
    #[inline(always)]
    fn words_load(self, words: &[u32; 16]) -> __m256i {
        proven!(_mm256_loadu_si256(words.as_ptr().cast()))
    }
    #[inline(always)]
    fn words_store(self, a: __m256i, into: &mut [u32; 16]) {
        proven!(_mm256_storeu_si256(into.as_mut_ptr().cast(), a));
    }
    #[inline(always)]
    fn words_add(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_add_epi32(a, b))
    }
    #[inline(always)]
    fn words_max(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_max_epu32(a, b))
    }
    #[inline(always)]
    fn words_min(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_min_epu32(a, b))
    }
    #[inline(always)]
    fn words_mul(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_mullo_epi32(a, b))
    }
    #[inline(always)]
    fn words_xor(self, a: __m256i, b: __m256i) -> __m256i {
        proven!(_mm256_xor_si256(a, b))
    }
    #[inline(always)]
    fn words_shl<const BITS: i32>(self, a: __m256i) -> __m256i {
        proven!(_mm256_slli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn words_shr<const BITS: i32>(self, a: __m256i) -> __m256i {
        proven!(_mm256_srli_epi32::<BITS>(a))
    }
    #[inline(always)]
    fn words_lookup(self, table: &[u32; 256], a: __m256i) -> __m256i {
        proven!({
            // The lowest byte of a lane is below 256, the length of the table.
            let entry = _mm256_and_si256(a, _mm256_set1_epi32(0xFF));
            _mm256_i32gather_epi32::<4>(table.as_ptr().cast(), entry)
        })
    }
    #[inline(always)]
    fn words_gather(self, data: &[u8], at: __m256i) -> __m256i {
        assert!(self.words_lt(self.words_splat(last_word(data)), at) == 0, "a word out of range");
        proven!(_mm256_i32gather_epi32::<1>(data.as_ptr().cast(), at))
    }
    #[inline(always)]
    fn words_rotr<const BITS: i32>(self, a: __m256i) -> __m256i {
        proven!({
            let bytes = |first: i8| {
                let byte = |i: i8| (i & !3) + ((i + first) & 3);
                let row = _mm_set_epi8(
                    byte(15),
                    byte(14),
                    byte(13),
                    byte(12),
                    byte(11),
                    byte(10),
                    byte(9),
                    byte(8),
                    byte(7),
                    byte(6),
                    byte(5),
                    byte(4),
                    byte(3),
                    byte(2),
                    byte(1),
                    byte(0),
                );
                _mm256_shuffle_epi8(a, _mm256_broadcastsi128_si256(row))
            };
            match BITS {
                16 => bytes(2),
                8 => bytes(1),
                12 => _mm256_or_si256(_mm256_srli_epi32::<12>(a), _mm256_slli_epi32::<20>(a)),
                _ => _mm256_or_si256(_mm256_srli_epi32::<7>(a), _mm256_slli_epi32::<25>(a)),
            }
        })
    }
    #[inline(always)]
    fn words_lt(self, a: __m256i, b: __m256i) -> u64 {
        proven!({
            let sign = _mm256_set1_epi32(i32::MIN);
            let less = _mm256_cmpgt_epi32(_mm256_xor_si256(b, sign), _mm256_xor_si256(a, sign));
            u64::from(_mm256_movemask_ps(_mm256_castsi256_ps(less)) as u32)
        })
    }
    #[inline(always)]
    fn words_sliding(self, data: &[u8], at: usize) -> __m256i {
        let bytes = &data[at..at + 11];
        proven!({
            // Bytes 0..8 and 4..12 would be natural; 3..11 keeps inside the slice.
            let low = _mm_loadl_epi64(bytes.as_ptr().cast());
            let high = _mm_loadl_epi64(bytes.as_ptr().add(3).cast());
            let low_lane = _mm_set_epi8(3, 4, 5, 6, 2, 3, 4, 5, 1, 2, 3, 4, 0, 1, 2, 3);
            let high_lane = _mm_set_epi8(4, 5, 6, 7, 3, 4, 5, 6, 2, 3, 4, 5, 1, 2, 3, 4);
            _mm256_shuffle_epi8(_mm256_set_m128i(high, low), _mm256_set_m128i(high_lane, low_lane))
        })
    }
    #[inline(always)]
    fn words_shift_in<const COUNT: usize>(self, before: __m256i, a: __m256i) -> __m256i {
        debug_assert!(COUNT == 4 || COUNT == 8);
        if COUNT == 8 { before } else { proven!(_mm256_permute2x128_si256::<0x21>(before, a)) }
    }
    #[inline(always)]
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [__m256i; 16] {
        let mut columns = [self.words_splat(0); 16];
        for half in 0..2 {
            let row = |block: usize| proven!(_mm256_loadu_si256(blocks[block].as_ptr().cast::<__m256i>().add(half)));
            let rows = [row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7)];
            columns[8 * half..][..8].copy_from_slice(&self.transposed(rows));
        }
        columns
    }
    #[inline(always)]
    fn words_rows(self, columns: &[__m256i; 8], rows: &mut [[u8; 32]; 16]) {
        for (row, vector) in rows.iter_mut().zip(self.transposed(*columns)) {
            proven!(_mm256_storeu_si256(row.as_mut_ptr().cast(), vector));
        }
    }
}

#[allow(clippy::unused_self)] // It is the proof.
impl<const GFNI: bool> Avx2<GFNI> {
    /// Word j of vector i becomes word i of vector j.
    #[inline(always)]
    fn transposed(self, vectors: [__m256i; 8]) -> [__m256i; 8] {
        let [a, b, c, d, rest @ ..] = vectors;
        let (low, high) = (self.quads([a, b, c, d]), self.quads(rest));
        let mut vectors = [a; 8];
        for i in 0..4 {
            vectors[i] = proven!(_mm256_permute2x128_si256::<0x20>(low[i], high[i]));
            vectors[4 + i] = proven!(_mm256_permute2x128_si256::<0x31>(low[i], high[i]));
        }
        vectors
    }

    /// Transposes 4x4 words within each 128-bit lane.
    #[inline(always)]
    fn quads(self, [a, b, c, d]: [__m256i; 4]) -> [__m256i; 4] {
        proven!({
            let (ab_low, ab_high) = (_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
            let (cd_low, cd_high) = (_mm256_unpacklo_epi32(c, d), _mm256_unpackhi_epi32(c, d));
            [
                _mm256_unpacklo_epi64(ab_low, cd_low),
                _mm256_unpackhi_epi64(ab_low, cd_low),
                _mm256_unpacklo_epi64(ab_high, cd_high),
                _mm256_unpackhi_epi64(ab_high, cd_high),
            ]
        })
    }
}

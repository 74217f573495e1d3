//! Sixteen lanes on aarch64, whose baseline NEON is. It has no instruction that makes a mask, so "any?" is asked with a
//! horizontal maximum, and a mask is summed from weighted lanes only where a hit is known.

#![allow(unused_unsafe)] // Newer compilers know that the baseline needs no proof.

use crate::isa::{Level, isa};
use crate::{Isa, Matrix, Simd, Words};
use core::arch::aarch64::*;

macro_rules! proven {
    ($intrinsics:expr) => {
        // SAFETY: `self` is the proof that the CPU has these instructions; memory is reached through checked slices
        // only.
        unsafe { $intrinsics }
    };
}

/// The proof that NEON can be executed: every aarch64 CPU has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Neon(());

impl Neon {
    /// The proof is trivial.
    pub const fn new() -> Self {
        Self(())
    }

    #[inline(always)]
    fn mask(self, lanes: uint8x16_t) -> u64 {
        const WEIGHTS: [u8; 16] = [1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128];
        proven!({
            let bits = vandq_u8(lanes, vld1q_u8(WEIGHTS.as_ptr()));
            u64::from(vaddv_u8(vget_low_u8(bits))) | u64::from(vaddv_u8(vget_high_u8(bits))) << 8
        })
    }
    #[inline(always)]
    fn any(self, lanes: uint8x16_t) -> bool {
        proven!(vmaxvq_u8(lanes) != 0)
    }
}

impl Simd for Neon {
    const ISA: Isa = isa(Level::Neon);
    const LANES: usize = 16;
    type Bytes = uint8x16_t;

    #[inline(always)]
    fn load(self, data: &[u8], at: usize) -> uint8x16_t {
        let bytes = &data[at..at + 16];
        proven!(vld1q_u8(bytes.as_ptr()))
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> uint8x16_t {
        proven!(vdupq_n_u8(byte))
    }
    #[inline(always)]
    fn max(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vmaxq_u8(a, b))
    }
    #[inline(always)]
    fn min(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vminq_u8(a, b))
    }
    #[inline(always)]
    fn add(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vaddq_u8(a, b))
    }
    #[inline(always)]
    fn mean(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vrhaddq_u8(a, b))
    }
    #[inline(always)]
    fn shl<const BITS: i32>(self, a: uint8x16_t) -> uint8x16_t {
        proven!(vshlq_n_u8::<BITS>(a))
    }
    #[inline(always)]
    fn shr<const BITS: i32>(self, a: uint8x16_t) -> uint8x16_t {
        proven!(vshrq_n_u8::<BITS>(a))
    }
    #[inline(always)]
    fn sub_saturating(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vqsubq_u8(a, b))
    }
    #[inline(always)]
    fn xor(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(veorq_u8(a, b))
    }
    #[inline(always)]
    fn and(self, a: uint8x16_t, b: uint8x16_t) -> uint8x16_t {
        proven!(vandq_u8(a, b))
    }
    #[inline(always)]
    fn eq(self, a: uint8x16_t, b: uint8x16_t) -> u64 {
        self.mask(proven!(vceqq_u8(a, b)))
    }
    #[inline(always)]
    fn ge(self, a: uint8x16_t, b: uint8x16_t) -> u64 {
        self.mask(proven!(vcgeq_u8(a, b)))
    }
    #[inline(always)]
    fn any_ge(self, a: uint8x16_t, b: uint8x16_t) -> bool {
        self.any(proven!(vcgeq_u8(a, b)))
    }
    #[inline(always)]
    fn any_gt(self, a: uint8x16_t, b: uint8x16_t) -> bool {
        self.any(proven!(vcgtq_u8(a, b)))
    }
    #[inline(always)]
    fn any_eq(self, a: uint8x16_t, b: uint8x16_t) -> bool {
        self.any(proven!(vceqq_u8(a, b)))
    }
    #[inline(always)]
    fn reduce_max(self, a: uint8x16_t) -> u8 {
        proven!(vmaxvq_u8(a))
    }
    #[inline(always)]
    fn reduce_min(self, a: uint8x16_t) -> u8 {
        proven!(vminvq_u8(a))
    }
    #[inline(always)]
    fn shift_in<const COUNT: usize>(self, before: uint8x16_t, a: uint8x16_t) -> uint8x16_t {
        proven!(if COUNT == 4 { vextq_u8::<12>(before, a) } else { vextq_u8::<8>(before, a) })
    }
    #[inline(always)]
    fn apply(self, matrix: &Matrix, a: uint8x16_t) -> uint8x16_t {
        proven!({
            let low = vqtbl1q_u8(vld1q_u8(matrix.low.as_ptr()), vandq_u8(a, vdupq_n_u8(15)));
            veorq_u8(low, vqtbl1q_u8(vld1q_u8(matrix.high.as_ptr()), vshrq_n_u8::<4>(a)))
        })
    }
}

impl Words for Neon {
    const WORDS: usize = 4;
    type Word = uint32x4_t;

    #[inline(always)]
    fn words_splat(self, word: u32) -> uint32x4_t {
        proven!(vdupq_n_u32(word))
    }
    #[inline(always)]
    fn words_load(self, words: &[u32; 16]) -> uint32x4_t {
        proven!(vld1q_u32(words.as_ptr()))
    }
    #[inline(always)]
    fn words_store(self, a: uint32x4_t, into: &mut [u32; 16]) {
        proven!(vst1q_u32(into.as_mut_ptr(), a));
    }
    #[inline(always)]
    fn words_add(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        proven!(vaddq_u32(a, b))
    }
    #[inline(always)]
    fn words_max(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        proven!(vmaxq_u32(a, b))
    }
    #[inline(always)]
    fn words_min(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        proven!(vminq_u32(a, b))
    }
    #[inline(always)]
    fn words_mul(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        proven!(vmulq_u32(a, b))
    }
    #[inline(always)]
    fn words_xor(self, a: uint32x4_t, b: uint32x4_t) -> uint32x4_t {
        proven!(veorq_u32(a, b))
    }
    #[inline(always)]
    fn words_shl<const BITS: i32>(self, a: uint32x4_t) -> uint32x4_t {
        proven!(vshlq_n_u32::<BITS>(a))
    }
    #[inline(always)]
    fn words_shr<const BITS: i32>(self, a: uint32x4_t) -> uint32x4_t {
        proven!(vshrq_n_u32::<BITS>(a))
    }
    #[inline(always)]
    fn words_rotr<const BITS: i32>(self, a: uint32x4_t) -> uint32x4_t {
        proven!({
            match BITS {
                16 => vreinterpretq_u32_u16(vrev32q_u16(vreinterpretq_u16_u32(a))),
                12 => vorrq_u32(vshrq_n_u32::<12>(a), vshlq_n_u32::<20>(a)),
                8 => vorrq_u32(vshrq_n_u32::<8>(a), vshlq_n_u32::<24>(a)),
                _ => vorrq_u32(vshrq_n_u32::<7>(a), vshlq_n_u32::<25>(a)),
            }
        })
    }
    #[inline(always)]
    fn words_lt(self, a: uint32x4_t, b: uint32x4_t) -> u64 {
        const WEIGHTS: [u32; 4] = [1, 2, 4, 8];
        proven!(u64::from(vaddvq_u32(vandq_u32(vcltq_u32(a, b), vld1q_u32(WEIGHTS.as_ptr())))))
    }
    #[inline(always)]
    fn words_sliding(self, data: &[u8], at: usize) -> uint32x4_t {
        const ORDER: [u8; 16] = [3, 2, 1, 0, 4, 3, 2, 1, 5, 4, 3, 2, 6, 5, 4, 3];
        let bytes = &data[at..at + 7];
        let mut row = [0; 16];
        row[..7].copy_from_slice(bytes);
        proven!(vreinterpretq_u32_u8(vqtbl1q_u8(vld1q_u8(row.as_ptr()), vld1q_u8(ORDER.as_ptr()))))
    }
    #[inline(always)]
    fn words_shift_in<const COUNT: usize>(self, before: uint32x4_t, _: uint32x4_t) -> uint32x4_t {
        debug_assert!(COUNT == 4);
        before
    }
    #[inline(always)]
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [uint32x4_t; 16] {
        let mut columns = [self.words_splat(0); 16];
        for part in 0..4 {
            let row = |block: usize| proven!(vreinterpretq_u32_u8(vld1q_u8(blocks[block].as_ptr().add(16 * part))));
            columns[4 * part..][..4].copy_from_slice(&self.transposed([row(0), row(1), row(2), row(3)]));
        }
        columns
    }
    #[inline(always)]
    fn words_rows(self, columns: &[uint32x4_t; 8], rows: &mut [[u8; 32]; 16]) {
        let [a, b, c, d, rest @ ..] = *columns;
        let (low, high) = (self.transposed([a, b, c, d]), self.transposed(rest));
        for ((row, low), high) in rows.iter_mut().zip(low).zip(high) {
            let (first, second) = row.split_at_mut(16);
            proven!(vst1q_u8(first.as_mut_ptr(), vreinterpretq_u8_u32(low)));
            proven!(vst1q_u8(second.as_mut_ptr(), vreinterpretq_u8_u32(high)));
        }
    }
}

#[allow(clippy::unused_self)] // It is the proof.
impl Neon {
    /// Word j of vector i becomes word i of vector j.
    #[inline(always)]
    fn transposed(self, [a, b, c, d]: [uint32x4_t; 4]) -> [uint32x4_t; 4] {
        proven!({
            let (ab_even, ab_odd) = (vtrn1q_u32(a, b), vtrn2q_u32(a, b));
            let (cd_even, cd_odd) = (vtrn1q_u32(c, d), vtrn2q_u32(c, d));
            [
                vcombine_u32(vget_low_u32(ab_even), vget_low_u32(cd_even)),
                vcombine_u32(vget_low_u32(ab_odd), vget_low_u32(cd_odd)),
                vcombine_u32(vget_high_u32(ab_even), vget_high_u32(cd_even)),
                vcombine_u32(vget_high_u32(ab_odd), vget_high_u32(cd_odd)),
            ]
        })
    }
}

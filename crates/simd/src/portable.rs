//! Vectors as plain arrays: sixty-four lanes written as loops over memory, which compilers turn into the vectors of the
//! target; `cargo xtask cross` looks for them in the machine code for POWER. Slow where they do not, right everywhere.
//!
//! Sixty-four, because loops of sixteen are unrolled before they are vectorised and put together again by chance only:
//! with Rust 1.85 that left comparisons in single bytes on POWER.

use crate::isa::{Level, isa};
use crate::{Isa, Matrix, Simd, Words};
use core::array::from_fn;

/// Sixty-four bytes as an array. Every CPU has it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Portable(());

impl Portable {
    /// The proof is trivial.
    pub const fn new() -> Self {
        Self(())
    }
}

const LANES: usize = 64;
const WORDS: usize = LANES / 4;

type Bytes = [u8; LANES];
type Word = [u32; WORDS];

#[inline(always)]
fn lanes(a: &Bytes, b: &Bytes, f: impl Fn(u8, u8) -> u8) -> Bytes {
    let mut lanes = [0; LANES];
    for i in 0..LANES {
        lanes[i] = f(a[i], b[i]);
    }
    lanes
}

/// Bit for bit what the lanes hold, which is all ones or 0.
#[inline(always)]
fn mask(lanes: &Bytes) -> u64 {
    // Times this, the lowest bits of eight bytes come together in the highest byte.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    const LOWEST: u64 = 0x0101_0101_0101_0101;
    let mut mask = 0;
    for first in (0..LANES).step_by(8) {
        let mut eight = [0; 8];
        eight.copy_from_slice(&lanes[first..first + 8]);
        mask |= ((u64::from_le_bytes(eight) & LOWEST).wrapping_mul(GATHER) >> 56) << first;
    }
    mask
}

#[inline(always)]
fn any(lanes: &Bytes) -> bool {
    lanes.iter().fold(0, |any, lane| any | lane) != 0
}

/// All ones for true: the form in which compilers keep comparisons in vectors.
#[inline(always)]
fn ones(set: bool) -> u8 {
    if set { 0xFF } else { 0 }
}

impl Simd for Portable {
    const ISA: Isa = isa(Level::Portable);
    const LANES: usize = LANES;
    const MATRICES: bool = false;
    type Bytes = Bytes;

    #[inline(always)]
    fn load(self, data: &[u8], at: usize) -> Bytes {
        let mut bytes = [0; LANES];
        bytes.copy_from_slice(&data[at..at + LANES]);
        bytes
    }
    #[inline(always)]
    fn splat(self, byte: u8) -> Bytes {
        [byte; LANES]
    }
    #[inline(always)]
    fn max(self, a: Bytes, b: Bytes) -> Bytes {
        lanes(&a, &b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, a: Bytes, b: Bytes) -> Bytes {
        lanes(&a, &b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn add(self, a: Bytes, b: Bytes) -> Bytes {
        lanes(&a, &b, u8::wrapping_add)
    }
    #[inline(always)]
    fn mean(self, a: Bytes, b: Bytes) -> Bytes {
        // Without a ninth bit: what both have, and half of what one has, rounded up.
        lanes(&a, &b, |a, b| (a | b) - ((a ^ b) >> 1))
    }
    #[inline(always)]
    fn shl<const BITS: i32>(self, a: Bytes) -> Bytes {
        lanes(&a, &a, |a, _| a << BITS)
    }
    #[inline(always)]
    fn shr<const BITS: i32>(self, a: Bytes) -> Bytes {
        lanes(&a, &a, |a, _| a >> BITS)
    }
    #[inline(always)]
    fn sub_saturating(self, a: Bytes, b: Bytes) -> Bytes {
        from_fn(|i| a[i].saturating_sub(b[i]))
    }
    #[inline(always)]
    fn xor(self, a: Bytes, b: Bytes) -> Bytes {
        lanes(&a, &b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn and(self, a: Bytes, b: Bytes) -> Bytes {
        lanes(&a, &b, |a, b| a & b)
    }
    #[inline(always)]
    fn eq(self, a: Bytes, b: Bytes) -> u64 {
        mask(&lanes(&a, &b, |a, b| ones(a == b)))
    }
    #[inline(always)]
    fn ge(self, a: Bytes, b: Bytes) -> u64 {
        mask(&lanes(&a, &b, |a, b| ones(a >= b)))
    }
    #[inline(always)]
    fn any_ge(self, a: Bytes, b: Bytes) -> bool {
        any(&lanes(&a, &b, |a, b| ones(a >= b)))
    }
    #[inline(always)]
    fn any_gt(self, a: Bytes, b: Bytes) -> bool {
        any(&lanes(&a, &b, |a, b| ones(a > b)))
    }
    #[inline(always)]
    fn any_eq(self, a: Bytes, b: Bytes) -> bool {
        any(&lanes(&a, &b, |a, b| ones(a == b)))
    }
    #[inline(always)]
    fn reduce_max(self, a: Bytes) -> u8 {
        a.into_iter().fold(0, u8::max)
    }
    #[inline(always)]
    fn reduce_min(self, a: Bytes) -> u8 {
        a.into_iter().fold(u8::MAX, u8::min)
    }
    #[inline(always)]
    fn shift_in<const COUNT: usize>(self, before: Bytes, a: Bytes) -> Bytes {
        let mut lanes = [0; LANES];
        lanes[..COUNT].copy_from_slice(&before[LANES - COUNT..]);
        lanes[COUNT..].copy_from_slice(&a[..LANES - COUNT]);
        lanes
    }
    #[inline(always)]
    fn apply(self, matrix: &Matrix, a: Bytes) -> Bytes {
        lanes(&a, &a, |a, _| matrix.low[usize::from(a & 15)] ^ matrix.high[usize::from(a >> 4)])
    }
}

#[inline(always)]
fn words(a: &Word, b: &Word, f: impl Fn(u32, u32) -> u32) -> Word {
    let mut words = [0; WORDS];
    for i in 0..WORDS {
        words[i] = f(a[i], b[i]);
    }
    words
}

impl Words for Portable {
    const WORDS: usize = WORDS;
    type Word = Word;

    #[inline(always)]
    fn words_splat(self, word: u32) -> Word {
        [word; WORDS]
    }
    #[inline(always)]
    fn words_load(self, words: &[u32; 16]) -> Word {
        *words
    }
    #[inline(always)]
    fn words_store(self, a: Word, into: &mut [u32; 16]) {
        *into = a;
    }
    #[inline(always)]
    fn words_add(self, a: Word, b: Word) -> Word {
        words(&a, &b, u32::wrapping_add)
    }
    #[inline(always)]
    fn words_max(self, a: Word, b: Word) -> Word {
        words(&a, &b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn words_min(self, a: Word, b: Word) -> Word {
        words(&a, &b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn words_mul(self, a: Word, b: Word) -> Word {
        words(&a, &b, u32::wrapping_mul)
    }
    #[inline(always)]
    fn words_xor(self, a: Word, b: Word) -> Word {
        words(&a, &b, |a, b| a ^ b)
    }
    #[inline(always)]
    fn words_shl<const BITS: i32>(self, a: Word) -> Word {
        words(&a, &a, |a, _| a << BITS)
    }
    #[inline(always)]
    fn words_shr<const BITS: i32>(self, a: Word) -> Word {
        words(&a, &a, |a, _| a >> BITS)
    }
    #[inline(always)]
    fn words_rotr<const BITS: i32>(self, a: Word) -> Word {
        words(&a, &a, |a, _| a.rotate_right(BITS as u32))
    }
    #[inline(always)]
    fn words_lt(self, a: Word, b: Word) -> u64 {
        (0..WORDS).fold(0, |mask, i| mask | u64::from(a[i] < b[i]) << i)
    }
    #[inline(always)]
    fn words_sliding(self, data: &[u8], at: usize) -> Word {
        let bytes = &data[at..at + WORDS + 3];
        from_fn(|i| u32::from_be_bytes([bytes[i], bytes[i + 1], bytes[i + 2], bytes[i + 3]]))
    }
    #[inline(always)]
    fn words_shift_in<const COUNT: usize>(self, before: Word, a: Word) -> Word {
        from_fn(|i| if i < COUNT { before[WORDS - COUNT + i] } else { a[i - COUNT] })
    }
    #[inline(always)]
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [Word; 16] {
        from_fn(|word| {
            from_fn(|block| {
                let bytes = &blocks[block][4 * word..4 * word + 4];
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
            })
        })
    }
    #[inline(always)]
    fn words_rows(self, columns: &[Word; 8], rows: &mut [[u8; 32]; 16]) {
        for (lane, row) in rows[..Self::WORDS].iter_mut().enumerate() {
            for (bytes, column) in row.chunks_exact_mut(4).zip(columns) {
                bytes.copy_from_slice(&column[lane].to_le_bytes());
            }
        }
    }
}

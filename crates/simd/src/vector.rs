//! Operations on vectors, and kernels that run on them.
//!
//! Only what the kernels of this project need. Masks are `u64` with one bit per lane, lane 0 lowest: AVX-512 has 64
//! lanes, and instruction sets without a mask instruction build the same number. Where only "any?" is asked, the
//! `any_*` form is cheaper there.

use crate::{AesKeys, Isa, Matrix};

/// An algorithm over vectors, to be run by [`Isa::run`].
///
/// Write `#[inline(always)]` on `run` and on the generic functions it calls: only then is all of it compiled with the
/// instructions of `S`.
pub trait Kernel {
    /// Result of the computation.
    type Output;

    /// Computes it with the vectors of `simd`.
    fn run<S: Simd>(self, simd: S) -> Self::Output;
}

/// Vectors of bytes. A value of an implementing type proves that this CPU has the instructions.
#[allow(missing_docs)] // Each operation is its name, lane by lane.
pub trait Simd: Words {
    /// The instruction set this is.
    const ISA: Isa;
    /// Bytes in a vector: 16, 32 or 64.
    const LANES: usize;
    /// True if [`apply`](Simd::apply) is a few instructions; otherwise it is a loop over the lanes.
    const MATRICES: bool = true;
    /// Number of windows that [`aes_below`](Simd::aes_below) encrypts at once; 0 where it cannot be called.
    const AES_WINDOWS: usize = 0;
    /// The `LANES` lowest bits.
    const ALL: u64 = u64::MAX >> (64 - Self::LANES);
    /// `LANES` bytes.
    type Bytes: Copy;

    /// The `LANES` bytes of `data` from `at` on.
    ///
    /// # Panics
    /// If `data` holds fewer.
    fn load(self, data: &[u8], at: usize) -> Self::Bytes;
    /// Asks for the cache line around `data[at]`, which need not be there: a hint, and nothing on some targets.
    #[inline(always)]
    fn prefetch(self, _data: &[u8], _at: usize) {}
    fn splat(self, byte: u8) -> Self::Bytes;
    fn max(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn min(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Sums, less 256 where they reach it.
    fn add(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Means, rounded up.
    fn mean(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Each lane shifted up by `BITS` (1 to 7), by itself.
    fn shl<const BITS: i32>(self, a: Self::Bytes) -> Self::Bytes;
    /// Each lane shifted down by `BITS` (1 to 7), by itself.
    fn shr<const BITS: i32>(self, a: Self::Bytes) -> Self::Bytes;
    /// `a - b` where that is positive, 0 elsewhere: 0 exactly where `a <= b`.
    fn sub_saturating(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn xor(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    fn and(self, a: Self::Bytes, b: Self::Bytes) -> Self::Bytes;
    /// Lanes where `a == b`.
    fn eq(self, a: Self::Bytes, b: Self::Bytes) -> u64;
    /// Lanes where `a >= b`, unsigned.
    fn ge(self, a: Self::Bytes, b: Self::Bytes) -> u64;
    /// Lanes where `a > b`, unsigned.
    #[inline(always)]
    fn gt(self, a: Self::Bytes, b: Self::Bytes) -> u64 {
        !self.ge(b, a) & Self::ALL
    }
    #[inline(always)]
    fn any_ge(self, a: Self::Bytes, b: Self::Bytes) -> bool {
        self.ge(a, b) != 0
    }
    #[inline(always)]
    fn any_gt(self, a: Self::Bytes, b: Self::Bytes) -> bool {
        self.gt(a, b) != 0
    }
    #[inline(always)]
    fn any_eq(self, a: Self::Bytes, b: Self::Bytes) -> bool {
        self.eq(a, b) != 0
    }
    /// The largest lane.
    fn reduce_max(self, a: Self::Bytes) -> u8;
    /// The smallest lane.
    fn reduce_min(self, a: Self::Bytes) -> u8;
    /// `matrix` applied to each lane.
    fn apply(self, matrix: &Matrix, a: Self::Bytes) -> Self::Bytes;
    /// The last `COUNT` lanes of `before` and then the first of `a`: each lane moves up by `COUNT`, which is 4 or 8.
    fn shift_in<const COUNT: usize>(self, before: Self::Bytes, a: Self::Bytes) -> Self::Bytes;
    /// Encrypts the `AES_WINDOWS` windows of 16 bytes that begin at `at`, `at + 1`, ...: a bit for each whose first
    /// eight bytes, little-endian, then lie below `threshold`.
    ///
    /// # Panics
    /// If `data` holds fewer than `AES_WINDOWS + 15` bytes from `at` on, or `AES_WINDOWS` is 0.
    #[inline(always)]
    fn aes_below(self, _keys: &AesKeys, _data: &[u8], _at: usize, _threshold: u64) -> u64 {
        unreachable!("{} does not encrypt", Self::ISA)
    }
}

/// Vectors of 32-bit words, as many as fit: `WORDS == LANES / 4`.
#[allow(missing_docs)]
pub trait Words: Copy + Send + Sync + 'static {
    /// Words in a vector: 4, 8 or 16.
    const WORDS: usize;
    /// `WORDS` words.
    type Word: Copy;

    fn words_splat(self, word: u32) -> Self::Word;
    /// The first `WORDS` of `words`.
    fn words_load(self, words: &[u32; 16]) -> Self::Word;
    /// Over the first `WORDS` of `into`.
    fn words_store(self, a: Self::Word, into: &mut [u32; 16]);
    fn words_add(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn words_max(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn words_min(self, a: Self::Word, b: Self::Word) -> Self::Word;
    /// Low halves of the products.
    fn words_mul(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn words_xor(self, a: Self::Word, b: Self::Word) -> Self::Word;
    fn words_shl<const BITS: i32>(self, a: Self::Word) -> Self::Word;
    fn words_shr<const BITS: i32>(self, a: Self::Word) -> Self::Word;
    /// Rotated right by 16, 12, 8 or 7.
    fn words_rotr<const BITS: i32>(self, a: Self::Word) -> Self::Word;
    /// Lanes where `a < b`, unsigned: one bit per word.
    fn words_lt(self, a: Self::Word, b: Self::Word) -> u64;
    /// The entry of `table` that each lane's lowest byte names.
    #[inline(always)]
    fn words_lookup(self, table: &[u32; 256], a: Self::Word) -> Self::Word {
        self.words_map(a, |word| table[(word & 0xFF) as usize])
    }
    /// The four bytes of `data` from each lane's number on, little-endian.
    ///
    /// # Panics
    /// If they do not all lie in `data`.
    #[inline(always)]
    fn words_gather(self, data: &[u8], at: Self::Word) -> Self::Word {
        self.words_map(at, |at| {
            let bytes = &data[at as usize..][..4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        })
    }
    /// `f` of each lane, one after the other.
    #[inline(always)]
    fn words_map(self, a: Self::Word, f: impl Fn(u32) -> u32) -> Self::Word {
        let mut words = [0; 16];
        self.words_store(a, &mut words);
        for word in &mut words[..Self::WORDS] {
            *word = f(*word);
        }
        self.words_load(&words)
    }
    /// The words that end at `WORDS` consecutive bytes: lane j holds `data[at + j] .. data[at + j + 4]`, big-endian.
    ///
    /// # Panics
    /// If `data` holds fewer than `WORDS + 3` bytes from `at` on.
    fn words_sliding(self, data: &[u8], at: usize) -> Self::Word;
    /// The last `COUNT` words of `before` and then the first of `a`: each lane moves up by `COUNT` (4 or 8, less than
    /// or equal to `WORDS`).
    fn words_shift_in<const COUNT: usize>(self, before: Self::Word, a: Self::Word) -> Self::Word;
    /// Columns of `WORDS` blocks: word i of block j becomes lane j of vector i; words are little-endian. Blocks beyond
    /// `WORDS` are not looked at.
    fn words_columns(self, blocks: &[&[u8; 64]; 16]) -> [Self::Word; 16];
    /// Rows of eight columns: lane j of vector i becomes word i of row j; words are little-endian. Rows beyond `WORDS`
    /// stay as they are.
    fn words_rows(self, columns: &[Self::Word; 8], rows: &mut [[u8; 32]; 16]);
}

//! The privacy form: cuts are a pseudo-random function of the 16 bytes before them.
//!
//! Siltstone's own. From chunk sizes seen beside known content the keys of all hashes that are linear, rolled or
//! windowed, can be computed (IACR ePrint 2025/532 and 2025/558); a filter that is, in front of a hash that is not,
//! still says that every cut is one of few positions. Here each position is decided by AES-128 on its window alone:
//! whoever does not have the key learns from a cut that this window is one that cuts, and nothing about any other. The
//! definition, which is format:
//!
//! ```text
//! x(L)    = first 8 bytes, little-endian, of AES-128(key; b[L-16] .. b[L-1])
//! cut     = the least L >= max(min, 16) with x(L) < strict if L < normal, x(L) < loose if L >= normal;
//!           max, or the end of the stream, if they come first
//! strict  = 2^62 / expected, loose = 2^66 / expected (rounded down); normal as in normalised.rs
//! key     = the first 16 bytes of keyed BLAKE3's extendable output over "siltstone aes16"
//! ```
//!
//! Reasons:
//! 1. **No universal hash in front**: a window is exactly a block, so there is no collision bound to watch, and equal
//!    windows give equal decisions, which is what deduplication needs.
//! 2. **All ten rounds**: four would be 1.4 times as fast, and a guess.
//!
//! Cost: ten AES rounds a position past the minimum, 16 or 32 windows at once where vectors encrypt; elsewhere the
//! crate `aes`, which takes the CPU's AES instructions where it finds them.

use crate::normalised::Normalised;
use crate::{Chunker, Isa, Sizes};
use aes::Aes128;
use aes::cipher::{Array, BlockCipherEncrypt, KeyInit};
use siltstone_simd::{AesKeys, Kernel, Simd};

const WINDOW_BYTES: usize = 16;
/// Normalisation level.
const LEVEL: u32 = 2;
/// Windows given to the cipher at once where vectors do not encrypt: a few times what it works on in parallel.
const BATCH: usize = 32;

/// The chunker `aes16`.
#[derive(Clone)]
pub struct Aes16 {
    sizes: Sizes,
    rule: Normalised,
    cipher: Aes128,
    keys: AesKeys,
    isa: Isa,
}

impl Aes16 {
    /// Name of this chunker in [`crate::by_name`].
    pub const NAME: &'static str = "aes16";

    /// A chunker whose cuts only the holder of `key` can tell from random ones, in its form for `isa`.
    pub fn new(sizes: Sizes, key: &[u8; 32], isa: Isa) -> Self {
        let mut block_key = [0; 16];
        blake3::Hasher::new_keyed(key).update(b"siltstone aes16").finalize_xof().fill(&mut block_key);
        let rule = Normalised::new(sizes, WINDOW_BYTES, LEVEL, 0);
        Self { sizes, rule, cipher: Aes128::new(&block_key.into()), keys: AesKeys::new(&block_key), isa }
    }

    fn cut_scalar(&self, data: &[u8], from: usize) -> usize {
        let mut blocks = [Array::default(); BATCH];
        for first in (from..=data.len()).step_by(BATCH) {
            let windows = data[first - WINDOW_BYTES..].windows(WINDOW_BYTES);
            let count = blocks.iter_mut().zip(windows).map(|(block, window)| block.copy_from_slice(window)).count();
            self.cipher.encrypt_blocks(&mut blocks[..count]);
            for (length, block) in (first..).zip(&blocks[..count]) {
                let hash = block.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
                if hash < self.rule.threshold(length) {
                    return length;
                }
            }
        }
        data.len()
    }
}

impl Chunker for Aes16 {
    fn name(&self) -> &'static str {
        Self::NAME
    }

    fn sizes(&self) -> Sizes {
        self.sizes
    }

    fn cut(&self, data: &[u8]) -> usize {
        let data = self.sizes.limit(data);
        if data.len() < self.rule.min {
            return data.len();
        }
        self.isa.run(Cut { chunker: self, data }).unwrap_or_else(|| self.cut_scalar(data, self.rule.min))
    }
}

struct Cut<'d> {
    chunker: &'d Aes16,
    data: &'d [u8],
}

impl Kernel for Cut<'_> {
    type Output = usize;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> usize {
        let Self { chunker, data } = self;
        let mut length = chunker.rule.min;
        // The windows of AES_WINDOWS lengths reach to the last of them.
        while S::AES_WINDOWS > 0 && length + S::AES_WINDOWS - 1 <= data.len() {
            let (last, at) = (length + S::AES_WINDOWS - 1, length - WINDOW_BYTES);
            let below = s.aes_below(&chunker.keys, data, at, chunker.rule.threshold(last));
            if below != 0 {
                // Where the thresholds change inside these windows, the looser one was asked.
                let found = chunker.cut_scalar(&data[..last], length + below.trailing_zeros() as usize);
                if found < last || below >> (S::AES_WINDOWS - 1) & 1 == 1 {
                    return found;
                }
            }
            length += S::AES_WINDOWS;
        }
        if length <= data.len() { chunker.cut_scalar(data, length) } else { data.len() }
    }
}

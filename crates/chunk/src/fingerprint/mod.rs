//! Fingerprints: keyed BLAKE3 of many chunks at once, with all lanes filled across the borders of chunks.
//!
//! Source: O'Connor, Aumasson, Neves, Wilcox-O'Hearn: BLAKE3, 2020, section 2. The definition, which is format: the
//! fingerprint of a chunk is `blake3::keyed_hash(key, chunk)`, that is
//!
//! ```text
//! leaf i of a chunk   its bytes 1024 i ..< 1024 (i + 1), or to its end; an empty chunk has one empty leaf
//! value of a leaf     from c = key, over its blocks of 64 bytes, the last one padded with zeros:
//!                     c = compress(c, block, counter i, bytes in the block, KEYED [START if first] [END if last])
//! value of a parent   compress(key, left value ++ right value, counter 0, 64 bytes, KEYED PARENT)
//! tree                level by level: neighbours get a parent, an odd last node moves up as it is
//! fingerprint         the value of the last node left, computed with ROOT in its last block
//! ```
//!
//! Reasons:
//! 1. **A chunk alone does not fill the lanes.** AVX-512 works on 16 leaves; a chunk of 8.5 KiB has 8 and a short one,
//!    then 4, 2, 1 and 1 parents. So the leaves of all chunks of a batch form one list, and so do the parents of each
//!    level: only the last group of a list has lanes to spare.
//! 2. **Leaves of different lengths do not wait for each other.** Whole ones come first, then the others by falling
//!    number of blocks; a lane idles for the block or two by which the longest of its group is longer.
//! 3. **Memory is bounded** by batches of [`BATCH_LEAVES`]. A chunk larger than that fills the lanes by itself, and few
//!    leaves fill none: both go to the crate, chunk by chunk.
//! 4. **So does everything where only portable vectors are there** ([`Fingerprinter::best`]): on x86-64 they reach a
//!    quarter of the crate's speed. On POWER neither has been measured.
//!
//! Cost: about 96 bytes of scratch per leaf of a batch, so 200 KiB at most. GB/s on one core of a 2.6 GHz Xeon beside
//! the crate chunk by chunk (2026-11, medians of nine alternating runs in CPU time on a busy machine). In each row the
//! crate was built for the same instructions, SSE4.1 in the row SSSE3:
//!
//! ```text
//!            from memory                                   from a cache of 2 MiB
//!            8 KiB        4..12 KiB    8..24 KiB           8 KiB        4..12 KiB    8..24 KiB
//! AVX-512    6.16 (3.47)  5.71 (2.35)  5.70 (3.29)         7.88 (5.61)  7.35 (3.53)  7.43 (5.08)
//! AVX2       4.03 (3.44)  3.66 (2.25)  3.67 (2.74)         4.15 (4.36)  3.99 (2.73)  4.01 (3.44)
//! SSSE3      2.22 (1.99)  2.10 (1.67)  2.10 (1.81)         2.13 (2.30)  2.08 (1.92)  2.06 (2.09)
//! SSE2       1.91 (1.74)  1.84 (1.47)  1.83 (1.58)         1.91 (1.93)  1.86 (1.61)  1.86 (1.74)
//! portable   0.41 (1.74)  0.40 (1.47)  0.40 (1.58)         0.40 (1.93)  0.39 (1.61)  0.39 (1.74)
//! ```
//!
//! Lengths in ranges are random, so with partial leaves, as chunkers give them. Level of comparison: the crate's
//! assembly on chunks of 64 KiB, which fill its lanes, 5.7 from memory and 8.2 from the cache; a block of 16 lanes
//! takes 848 instructions on two ports.

mod compress;
#[cfg(feature = "references")]
mod references;
mod tree;

#[cfg(feature = "references")]
pub use references::Reference;

use crate::Isa;
use alloc::vec::Vec;
use tree::{Trees, leaf_count};

/// Bytes the compression function takes at once.
const BLOCK_BYTES: usize = 64;
/// Bytes of BLAKE3's "chunk"; here a chunk is what is fingerprinted.
const LEAF_BYTES: usize = 1024;
/// Leaves worked on together at most.
const BATCH_LEAVES: usize = 2048;
/// Fewer leaves are not worth a batch: AVX-512's lanes.
const BATCH_LEAVES_MIN: usize = 16;

/// A node's chaining value.
type Value = [u8; 32];

/// Fingerprints chunks with one key.
#[derive(Clone)]
pub struct Fingerprinter {
    key: [u8; 32],
    key_words: [u32; 8],
    isa: Isa,
}

impl Fingerprinter {
    /// Creates one with this key, on the vectors of `isa`; `scalar` leaves all to the crate `blake3`, which chooses for
    /// itself.
    pub fn new(key: &[u8; 32], isa: Isa) -> Self {
        let mut key_words = [0; 8];
        for (word, bytes) in key_words.iter_mut().zip(key.chunks_exact(4)) {
            *word = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        }
        Self { key: *key, key_words, isa }
    }

    /// Creates one with the fastest instruction set of this CPU, or the one that `SILT_ISA` lowers it to.
    pub fn best(key: &[u8; 32]) -> Self {
        let isa = Isa::best();
        Self::new(key, if isa.name() == "portable" { Isa::SCALAR } else { isa })
    }

    /// Appends the fingerprint of each chunk, `blake3::keyed_hash(key, chunk)`, in order.
    pub fn fingerprints(&self, chunks: &[&[u8]], out: &mut Vec<[u8; 32]>) {
        if self.isa == Isa::SCALAR {
            return self.one_by_one(chunks, out);
        }
        let mut trees = Trees::new(&self.key_words, self.isa);
        let mut rest = chunks;
        while !rest.is_empty() {
            let (batch, others) = rest.split_at(batch_length(rest));
            let leaves: usize = batch.iter().map(|chunk| leaf_count(chunk)).sum();
            if (BATCH_LEAVES_MIN..=BATCH_LEAVES).contains(&leaves) {
                out.extend(trees.roots(batch));
            } else {
                self.one_by_one(batch, out);
            }
            rest = others;
        }
    }

    fn one_by_one(&self, chunks: &[&[u8]], out: &mut Vec<[u8; 32]>) {
        out.extend(chunks.iter().map(|chunk| *blake3::keyed_hash(&self.key, chunk).as_bytes()));
    }
}

/// Counts the first chunks that make a batch: one at least.
fn batch_length(chunks: &[&[u8]]) -> usize {
    let mut leaves = 0;
    let fits = |chunk: &&&[u8]| {
        leaves += leaf_count(chunk);
        leaves <= BATCH_LEAVES
    };
    chunks.iter().take_while(fits).count().max(1)
}

//! draft

mod compress;
mod tree;

use crate::Isa;
use alloc::vec::Vec;

/// draft
pub struct Fingerprinter { key: [u8; 32], words: [u32; 8], isa: Isa }

const BLOCK_BYTES: usize = 64;
const LEAF_BYTES: usize = 1024;
const BATCH_LEAVES: usize = 2048;
const LANES: usize = 16;
type Value = [u8; 32];

impl Fingerprinter {
    /// draft
    pub fn new(key: &[u8; 32], isa: Isa) -> Self {
        let mut words = [0; 8];
        for (w, b) in words.iter_mut().zip(key.chunks_exact(4)) { *w = u32::from_le_bytes(b.try_into().unwrap()); }
        Self { key: *key, words, isa } }
    /// draft
    pub fn fingerprints(&self, chunks: &[&[u8]], out: &mut Vec<[u8; 32]>) {
        let mut rest = chunks;
        while !rest.is_empty() {
            let mut leaves = 0;
            let mut fits = |chunk: &&&[u8]| {
                leaves += tree::leaves(chunk);
                leaves <= BATCH_LEAVES
            };
            let (batch, others) = rest.split_at(rest.iter().take_while(&mut fits).count().max(1));
            if leaves < LANES || batch.len() == 1 {
                out.extend(batch.iter().map(|chunk| *blake3::keyed_hash(&self.key, chunk).as_bytes()));
            } else {
                out.extend(tree::roots(&self.words, self.isa, batch));
            }
            rest = others;
        }
    }
}

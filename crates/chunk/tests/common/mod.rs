//! Inputs that are the same on every machine, and the chunkers to try them on.
#![allow(dead_code, unreachable_pub, missing_docs)]

use siltstone_chunk::{Chunker, Sizes, SliceChunks};

/// Bytes without any pattern: the BLAKE3 extendable output of the seed.
pub fn random_bytes(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn sizes(min: u32, expected: u32, max: u32) -> Sizes {
    Sizes::new(min, expected, max).expect("sizes fit together")
}

pub fn lengths(chunker: &dyn Chunker, data: &[u8]) -> Vec<usize> {
    SliceChunks::new(chunker, data).map(<[u8]>::len).collect()
}

//! Cuts files with every algorithm there is, and says how many chunks that makes, how long they are, and how much of
//! the bytes is stored when each different chunk is stored once.
//! `cargo run --release -p siltstone-chunk --example algorithms FILE...`

use siltstone_chunk::{ALGORITHMS, Fingerprinter, Isa, SliceChunks};
use std::collections::HashMap;
use std::error::Error;

const EXPECTED_BYTES: u32 = 8 << 10;
const KEY: [u8; 32] = [0; 32];

#[allow(clippy::cast_precision_loss)]
fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<Vec<u8>> = std::env::args_os().skip(1).map(std::fs::read).collect::<Result<_, _>>()?;
    let bytes: usize = files.iter().map(Vec::len).sum();
    println!("{:16} {:>9} {:>9} {:>9}  of {bytes} bytes", "algorithm", "chunks", "average", "stored");
    for algorithm in ALGORITHMS {
        let chunker = algorithm.make(algorithm.usual_sizes(EXPECTED_BYTES)?, &KEY, Isa::best());
        let chunks: Vec<&[u8]> = files.iter().flat_map(|file| SliceChunks::new(&chunker, file)).collect();
        let stored = different_bytes(&chunks);
        let (average, share) = (bytes / chunks.len().max(1), 100.0 * stored as f64 / bytes.max(1) as f64);
        println!("{:16} {:9} {average:9} {share:7.1} %  {}", algorithm.name, chunks.len(), algorithm.summary);
    }
    Ok(())
}

/// Bytes of the chunks, each content counted once.
fn different_bytes(chunks: &[&[u8]]) -> usize {
    let mut fingerprints = Vec::new();
    Fingerprinter::best(&KEY).fingerprints(chunks, &mut fingerprints);
    fingerprints.into_iter().zip(chunks.iter().map(|chunk| chunk.len())).collect::<HashMap<_, _>>().values().sum()
}

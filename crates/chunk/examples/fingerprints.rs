//! How fast many chunks are fingerprinted together, beside the crate `blake3` chunk by chunk: one thread, median of
//! eleven alternating runs, on each instruction set. The crate uses the best of the CPU in every row. `cargo run
//! --release -p siltstone-chunk --example fingerprints [-- ISA...]`

use siltstone_chunk::{Fingerprinter, Isa};
use std::time::Instant;

const RUNS: usize = 11;
/// Chunks handed over at once: what a mebibyte holds.
const TOGETHER: usize = 128;
const KEY: [u8; 32] = [7; 32];

#[allow(clippy::cast_precision_loss)]
fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).collect();
    let is_wanted = |isa: &Isa| wanted.is_empty() || wanted.iter().any(|name| name == isa.name());
    let mut data = vec![0; 256 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    for (place, bytes, repeats) in [("memory", data.len(), 1), ("cache", 1 << 20, 100)] {
        for (lengths, min, spread) in
            [("8 KiB", 8 << 10, 1), ("4..12 KiB", 4 << 10, 8 << 10), ("8..24 KiB", 8 << 10, 16 << 10)]
        {
            let chunks = cut(&data[..bytes], min, spread);
            for isa in Isa::available().filter(is_wanted) {
                let (crate_seconds, batch_seconds) = compare(&chunks, isa, repeats);
                let speed = |seconds: f64| 1e-9 * (bytes * repeats) as f64 / seconds;
                println!(
                    "{place:6} {lengths:9} {:12} {:5.2} GB/s, crate {:5.2}: {:.2} times",
                    isa.name(),
                    speed(batch_seconds),
                    speed(crate_seconds),
                    crate_seconds / batch_seconds,
                );
            }
        }
    }
}

/// Chunks of `min ..< min + spread` bytes.
fn cut(mut data: &[u8], min: usize, spread: usize) -> Vec<&[u8]> {
    let (mut chunks, mut random) = (Vec::new(), 1_u64);
    while !data.is_empty() {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (chunk, rest) = data.split_at(data.len().min(min + (random >> 40) as usize % spread));
        chunks.push(chunk);
        data = rest;
    }
    chunks
}

/// Median seconds of the crate and of the batch.
fn compare(chunks: &[&[u8]], isa: Isa, repeats: usize) -> (f64, f64) {
    let fingerprinter = Fingerprinter::new(&KEY, isa);
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let mut one_by_one = || {
        alone.clear();
        alone.extend(chunks.iter().map(|chunk| *blake3::keyed_hash(&KEY, chunk).as_bytes()));
    };
    let mut batch = || {
        together.clear();
        chunks.chunks(TOGETHER).for_each(|chunks| fingerprinter.fingerprints(chunks, &mut together));
    };
    let runs: Vec<_> = (0..RUNS).map(|_| (seconds(&mut one_by_one, repeats), seconds(&mut batch, repeats))).collect();
    assert!(alone == together, "wrong fingerprints on {isa}");
    (median(runs.iter().map(|run| run.0)), median(runs.iter().map(|run| run.1)))
}

fn seconds(run: &mut dyn FnMut(), repeats: usize) -> f64 {
    let start = Instant::now();
    (0..repeats).for_each(|_| run());
    start.elapsed().as_secs_f64()
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values[RUNS / 2]
}

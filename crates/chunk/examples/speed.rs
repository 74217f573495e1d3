//! How fast each chunker cuts random bytes in memory: median of eleven runs over 256 MiB, one thread.
//! `cargo run --release -p siltstone-chunk --example speed`

use siltstone_chunk::{CHUNKER_NAMES, Sizes, SliceChunks, by_name};
use std::time::Instant;

const DATA_BYTES: usize = 256 << 20;
const RUNS: usize = 11;

#[allow(clippy::cast_precision_loss)]
fn main() {
    let mut data = vec![0; DATA_BYTES];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    for name in CHUNKER_NAMES {
        for expected in [8 << 10, 16 << 10, 64 << 10] {
            let sizes = Sizes::around(expected).expect("sizes fit together");
            let chunker = by_name(name, sizes, &[0; 32]).expect("a known name");
            let mut chunks = 0;
            let mut seconds: Vec<f64> = (0..RUNS)
                .map(|_| {
                    let start = Instant::now();
                    chunks = SliceChunks::new(&chunker, &data).count();
                    start.elapsed().as_secs_f64()
                })
                .collect();
            seconds.sort_by(f64::total_cmp);
            let gigabytes = 1e-9 * DATA_BYTES as f64;
            println!(
                "{name} expected {expected}: real average {}, {:.2} GB/s ({:.2} .. {:.2})",
                DATA_BYTES / chunks,
                gigabytes / seconds[RUNS / 2],
                gigabytes / seconds[RUNS - 1],
                gigabytes / seconds[0],
            );
        }
    }
}

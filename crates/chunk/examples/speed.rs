//! How fast chunkers cut random bytes in memory, or those of files, in each of their forms: median of eleven runs, one
//! thread. `cargo run --release -p siltstone-chunk --example speed [-- NAME... FILE...]`

use siltstone_chunk::{ALGORITHMS, Isa};
use siltstone_simd::{Kernel, Simd};
use std::{fs::File, io::Read, path::Path, time::Instant};

const RUNS: usize = 11;

fn main() {
    let (files, wanted): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| Path::new(word).is_file());
    if files.is_empty() {
        all("memory", &wanted, &random_bytes(256 << 20), 1);
        all("cache", &wanted, &random_bytes(1 << 20), 100);
    } else {
        all("files", &wanted, &first_bytes(&files, 512 << 20), 1);
    }
}

/// Times all chunkers that are wanted, beside reading alone.
fn all(place: &str, wanted: &[String], data: &[u8], repeats: usize) {
    let read = |data: &[u8]| usize::from(Isa::highest().run(Largest(data)).unwrap_or(0));
    time("read", Isa::highest().name(), place, data, repeats, read);
    for algorithm in ALGORITHMS.iter().filter(|row| wanted.is_empty() || wanted.iter().any(|name| name == row.name)) {
        let isas: Vec<Isa> = if algorithm.vector { Isa::available().collect() } else { vec![Isa::SCALAR] };
        for isa in isas {
            let chunker = algorithm.make(algorithm.usual_sizes(8 << 10).expect("usual"), &[0; 32], isa);
            time(algorithm.name, isa.name(), place, data, repeats, |data| {
                let mut chunks = 0;
                chunker.cut_all(data, &mut |_| chunks += 1);
                chunks
            });
        }
    }
}

#[allow(clippy::cast_precision_loss)]
fn time(name: &str, isa: &str, place: &str, data: &[u8], repeats: usize, count: impl Fn(&[u8]) -> usize) {
    let mut chunks = 0;
    let mut speeds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            (0..repeats).for_each(|_| chunks = count(std::hint::black_box(data)));
            1e-9 * (data.len() * repeats) as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    speeds.sort_by(f64::total_cmp);
    let [slowest, median, fastest] = [0, RUNS / 2, RUNS - 1].map(|run| speeds[run]);
    let average = data.len() / chunks.max(1);
    println!("{name:16} {isa:12} {place}: average {average:6}, {median:6.2} GB/s ({slowest:.2} .. {fastest:.2})");
}

fn random_bytes(len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    data
}

/// The files one after the other, cut off at `most` bytes.
fn first_bytes(files: &[String], most: u64) -> Vec<u8> {
    let mut data = Vec::new();
    for file in files {
        let left = most - data.len() as u64;
        File::open(file).and_then(|file| file.take(left).read_to_end(&mut data)).expect("a readable file");
    }
    data
}

/// Reads everything and keeps the largest byte: nothing that looks at all bytes is faster.
struct Largest<'d>(&'d [u8]);

impl Kernel for Largest<'_> {
    type Output = u8;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> u8 {
        let mut largest = [s.splat(0); 8];
        for block in self.0.chunks_exact(8 * S::LANES) {
            for (i, lane) in largest.iter_mut().enumerate() {
                *lane = s.max(*lane, s.load(block, i * S::LANES));
            }
        }
        largest.into_iter().fold(0, |all, lanes| all.max(s.reduce_max(lanes)))
    }
}

//! draft
use siltstone_chunk::{Fingerprinter, Isa};
struct Instant(f64);
impl Instant { fn now() -> Self { Self(std::fs::read_to_string("/proc/thread-self/schedstat").unwrap().split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-9) }
fn elapsed(&self) -> El { El(Self::now().0 - self.0) } }
struct El(f64);
impl El { fn as_secs_f64(&self) -> f64 { self.0 } }

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let mut data = vec![0; 256 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut data);
    let key = [7; 32];
    for size in [0usize, 1, 8192, 16384, 65536] {
        for (place, total, reps) in [("dram", 256 << 20, 1), ("cache", 1 << 20, 100)] {
            let data = &data[..total];
            let chunks: Vec<&[u8]> = if size < 2 {
                let (mut v, mut at, mut r) = (vec![], 0, 12345u64);
                while at < data.len() {
                    r = r.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                    let e = 8192 << size;
                    let l = (e / 2 + (r >> 40) as usize % e).min(data.len() - at);
                    v.push(&data[at..at + l]);
                    at += l;
                }
                v
            } else {
                data.chunks(size).collect()
            };
            let want: Vec<[u8; 32]> = chunks.iter().map(|c| *blake3::keyed_hash(&key, c).as_bytes()).collect();
            let isas: Vec<Isa> =
                Isa::available().filter(|i| args.is_empty() || args.iter().any(|a| a == i.name())).collect();
            let mut times = vec![vec![]; isas.len() + 1];
            for _ in 0..7 {
                let t = Instant::now();
                for _ in 0..reps {
                    for c in &chunks {
                        std::hint::black_box(blake3::keyed_hash(&key, c));
                    }
                }
                times[0].push(t.elapsed().as_secs_f64());
                for (i, isa) in isas.iter().enumerate() {
                    let f = Fingerprinter::new(&key, *isa);
                    let mut out = vec![];
                    let t = Instant::now();
                    for _ in 0..reps {
                        out.clear();
                        for c in chunks.chunks(128) {
                            f.fingerprints(c, &mut out);
                        }
                    }
                    times[i + 1].push(t.elapsed().as_secs_f64());
                    if isa.name() != "scalar" {
                        assert!(out == want);
                    }
                }
            }
            for (i, t) in times.iter_mut().enumerate() {
                t.sort_by(f64::total_cmp);
                let gb = |t: f64| (total * reps) as f64 / t / 1e9;
                println!(
                    "{place} {size:6} {:12} {:.2} ({:.2}..{:.2})",
                    if i == 0 { "crate" } else { isas[i - 1].name() },
                    gb(t[3]),
                    gb(t[6]),
                    gb(t[0])
                );
            }
        }
    }
}

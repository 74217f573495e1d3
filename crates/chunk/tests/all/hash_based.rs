//! The hash-based chunkers and `SeqCDC` against their definitions, read word for word: every hash is computed anew from
//! its whole window, bit by bit; parameters come from the formulas of the definitions by other ways than the product's.
#![allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]

use crate::common::{EMULATED, algorithm, any_data, any_sizes, cases, lengths, random_bytes, sizes};
use proptest::prelude::*;
use siltstone_chunk::{Isa, Sizes};
use std::sync::LazyLock;

/// The length of the first chunk.
type Oracle = fn(Sizes, &[u8]) -> usize;

const ORACLES: [(&str, Oracle); 16] = [
    ("fixed", |sizes, data| data.len().min(sizes.expected())),
    ("rabin", |sizes, data| first_below::<48>(sizes, data, 64, rabin)),
    ("tttd", tttd),
    ("crc", |sizes, data| first_below::<48>(sizes, data, 32, crc)),
    ("ss-crc", |sizes, data| first_below::<48>(sizes, data, 32, crc)),
    ("gear", |sizes, data| first_below::<32>(sizes, data, 32, gear)),
    ("ss-gear", |sizes, data| first_below::<32>(sizes, data, 32, gear)),
    ("fastcdc-2016-nc0", |sizes, data| fastcdc(0, sizes, data)),
    ("fastcdc-2016-nc1", |sizes, data| fastcdc(1, sizes, data)),
    ("fastcdc-2016-nc2", |sizes, data| fastcdc(2, sizes, data)),
    ("fastcdc-2016-nc3", |sizes, data| fastcdc(3, sizes, data)),
    ("fastcdc-2020-nc0", |sizes, data| fastcdc(0, sizes, data)),
    ("fastcdc-2020-nc1", |sizes, data| fastcdc(1, sizes, data)),
    ("fastcdc-2020-nc2", |sizes, data| fastcdc(2, sizes, data)),
    ("fastcdc-2020-nc3", |sizes, data| fastcdc(3, sizes, data)),
    ("seqcdc", seqcdc),
];

/// Long division of the window's 384 bits by x^64 + 0x243F6A8885A30907; the remainder complemented.
fn rabin(window: &[u8]) -> u64 {
    let bits = window.iter().flat_map(|byte| (0..8).rev().map(move |bit| u128::from(byte >> bit & 1)));
    let remainder = bits.fold(0, |remainder, bit| {
        let brought_down = remainder << 1 | bit;
        if brought_down >> 64 == 1 { brought_down ^ 0x1_243F_6A88_85A3_0907 } else { brought_down }
    });
    !(remainder as u64)
}

fn crc(window: &[u8]) -> u64 {
    let bits = window.iter().flat_map(|byte| (0..8).map(move |bit| u32::from(byte >> bit & 1)));
    let register = bits.fold(0u32, |register, bit| {
        let (lowest, shifted) = ((register ^ bit) & 1, register >> 1);
        if lowest == 1 { shifted ^ 0xEDB8_8320 } else { shifted }
    });
    u64::from(!register)
}

fn gear(window: &[u8]) -> u64 {
    static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| table("siltstone gear table", 4));
    (0..32).map(|k| TABLE[usize::from(window[31 - k])] << k).sum::<u64>() & 0xFFFF_FFFF
}

/// Little-endian numbers of that many bytes from BLAKE3's extendable output.
fn table(name: &str, bytes: usize) -> Vec<u64> {
    let mut output = vec![0; 256 * bytes];
    blake3::Hasher::new().update(name.as_bytes()).finalize_xof().fill(&mut output);
    output.chunks(bytes).map(|word| word.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))).collect()
}

fn first_below<const WINDOW: usize>(sizes: Sizes, data: &[u8], bits: i32, hash: fn(&[u8]) -> u64) -> usize {
    let first = sizes.min().max(WINDOW);
    let n = (sizes.max() - first) as f64;
    let d = solve(sizes.expected() as f64, |d| first as f64 + d * (1.0 - (-n / d).exp()));
    let threshold = (2f64.powi(bits) / d).floor() as u64;
    let end = data.len().min(sizes.max());
    (first..end).find(|length| hash(&data[length - WINDOW..*length]) < threshold).unwrap_or(end)
}

fn tttd(sizes: Sizes, data: &[u8]) -> usize {
    let first = sizes.min().max(48);
    let n = (sizes.max() - first) as f64;
    let d = solve(sizes.expected() as f64, |d| {
        let q = (-n / d).exp();
        first as f64 + d * (1.0 - q).powi(2) + n * q * q
    });
    let t = (2f64.powi(64) / d).floor() as u64;
    let end = data.len().min(sizes.max());
    let is_below = |length: &usize, threshold| rabin(&data[length - 48..*length]) < threshold;
    if let Some(main) = (first..end).find(|length| is_below(length, t)) {
        return main;
    }
    let backup = (first..end).rev().find(|length| is_below(length, 2 * t));
    if data.len() >= sizes.max() { backup.unwrap_or(end) } else { end }
}

/// The `d` at which a function that increases from 0 on reaches `goal`.
fn solve(goal: f64, f: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (1e-3, 1e9);
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if f(middle) < goal { low = middle } else { high = middle }
    }
    low
}

fn fastcdc(level: u32, sizes: Sizes, data: &[u8]) -> usize {
    static TABLE: LazyLock<Vec<u64>> = LazyLock::new(|| table("siltstone fastcdc table", 8));
    let first = sizes.min().max(1);
    let (strict, loose) = ones(level, first, sizes);
    let normal = normal_point(first, sizes, strict, loose);
    let mask = |ones: u32| (0..ones).fold(0u64, |mask, j| mask | 1 << (62 - 48 * j / ones));
    let end = data.len().min(sizes.max());
    let is_cut = |length: &usize| {
        let window = &data[first.max(length.saturating_sub(63))..=*length];
        let terms = window.iter().rev().enumerate().map(|(k, byte)| TABLE[usize::from(*byte)] << k);
        terms.fold(0, u64::wrapping_add) & mask(if *length < normal { strict } else { loose }) == 0
    };
    (first..end).find(is_cut).unwrap_or(end)
}

fn ones(level: u32, first: usize, sizes: Sizes) -> (u32, u32) {
    let average = |ones: i32| {
        let (d, n) = (2f64.powi(ones), (sizes.max() - first) as f64);
        first as f64 + d * (1.0 - (-n / d).exp())
    };
    let m = (0..31).rev().find(|ones| average(*ones) <= sizes.expected() as f64).unwrap() as u32;
    let k = (sizes.expected() as f64).log2().round() as u32;
    if level == 0 { (m + 1, m) } else { (k + level, m.min(k - level)) }
}

fn normal_point(first: usize, sizes: Sizes, strict: u32, loose: u32) -> usize {
    let (p, big_p) = (0.5f64.powf(f64::from(strict)), 0.5f64.powf(f64::from(loose)));
    let average = |normal: usize| {
        let q = (-p * (normal - first) as f64).exp();
        let rest = 1.0 - (-big_p * (sizes.max() - normal) as f64).exp();
        first as f64 + (1.0 - q) / p + q * rest / big_p
    };
    // The sizes tried here are small, so every point can be.
    let highest = sizes.max().min(64 * sizes.expected());
    (first..highest).find(|normal| average(*normal) >= sizes.expected() as f64).unwrap_or(sizes.max())
}

fn seqcdc(sizes: Sizes, data: &[u8]) -> usize {
    let (run_wanted, trigger, skip) = seqcdc_parameters(sizes);
    let end = data.len().min(sizes.max());
    let (mut i, mut run, mut falls) = (sizes.min().saturating_sub(run_wanted).max(1), 0, 0);
    while i < end {
        if data[i] > data[i - 1] {
            run += 1;
            if run == run_wanted {
                return i + 1;
            }
        } else if data[i] < data[i - 1] {
            run = 0;
            falls += 1;
            if falls == trigger {
                falls = 0;
                i += skip;
            }
        }
        i += 1;
    }
    end
}

/// RUN, TRIGGER and SKIP.
fn seqcdc_parameters(sizes: Sizes) -> (usize, usize, usize) {
    static ROUNDS: LazyLock<Vec<(usize, usize, Round)>> = LazyLock::new(|| {
        [(5, 50), (4, 9), (3, 2), (2, 1)].map(|(run, trigger)| (run, trigger, round(run, trigger))).to_vec()
    });
    let fitting = ROUNDS.iter().find_map(|(run, trigger, round)| {
        let first = sizes.min().saturating_sub(*run).max(1);
        let n = (sizes.max() - first) as f64;
        let mean = solve((sizes.expected() - first) as f64, |mean| mean * (1.0 - (-n / mean).exp()));
        let skip = (mean * round.cut - round.bytes) / (1.0 - round.cut);
        (skip >= 0.0).then(|| (*run, *trigger, skip.round() as usize))
    });
    fitting.expect("runs of two are short enough")
}

#[derive(Clone, Copy)]
struct Round {
    cut: f64,
    bytes: f64,
}

/// One byte after the other: the chance of every state, a state being falls, run and last byte.
fn round(run: usize, trigger: usize) -> Round {
    let mut states = vec![vec![[0.0; 256]; run]; trigger];
    states[0][0] = [1.0 / 256.0; 256];
    let mut round = Round { cut: 0.0, bytes: 0.0 };
    loop {
        let left: f64 = states.iter().flatten().flatten().sum();
        if left < 1e-16 {
            return round;
        }
        round.bytes += left;
        let mut next = vec![vec![[0.0; 256]; run]; trigger];
        for (falls, of_falls) in states.iter().enumerate() {
            for (length, of_run) in of_falls.iter().enumerate() {
                let total: f64 = of_run.iter().sum();
                let mut below = 0.0;
                for (byte, chance) in of_run.iter().enumerate() {
                    next[falls][length][byte] += chance / 256.0;
                    let (risen, fallen) = (below / 256.0, (total - below - chance) / 256.0);
                    match next[falls].get_mut(length + 1) {
                        Some(longer) => longer[byte] += risen,
                        None => round.cut += risen,
                    }
                    if let Some(fallen_once_more) = next.get_mut(falls + 1) {
                        fallen_once_more[0][byte] += fallen;
                    }
                    below += chance;
                }
            }
        }
        states = next;
    }
}

fn assert_equal(name: &str, oracle: Oracle, sizes: Sizes, data: &[u8]) {
    let chunker = algorithm(name).make(sizes, &[0; 32], Isa::best());
    let mut rest = data;
    for length in lengths(&chunker, data) {
        let done = data.len() - rest.len();
        assert_eq!(length, oracle(sizes, rest), "{name}, {sizes:?}, {done} of {} bytes done", data.len());
        rest = &rest[length..];
    }
}

#[test]
fn every_length_is_cut_as_defined() {
    let data = [random_bytes("hash-based", 700), vec![0; 200], vec![3; 100]].concat();
    for sizes in [sizes(64, 128, 256), Sizes::unlimited(128).unwrap(), sizes(96, 128, 256)] {
        for (name, oracle) in ORACLES {
            for len in (0..=330).step_by(if EMULATED { 3 } else { 1 }).chain([data.len()]) {
                assert_equal(name, oracle, sizes, &data[data.len() - len..]);
            }
        }
    }
}

#[test]
fn usual_sizes_are_cut_as_defined() {
    let data = random_bytes("usual", 60_000);
    for (name, oracle) in ORACLES {
        for expected in [1 << 10, 3000] {
            assert_equal(name, oracle, algorithm(name).usual_sizes(expected).unwrap(), &data);
        }
    }
}

#[test]
fn zeros_are_not_cut_before_the_largest_size() {
    let data = vec![0; 300_000];
    for name in ["rabin", "tttd", "crc", "ss-crc", "seqcdc"] {
        let sizes = algorithm(name).usual_sizes(8 << 10).unwrap();
        let found = lengths(&algorithm(name).make(sizes, &[0; 32], Isa::best()), &data);
        assert!(found.iter().rev().skip(1).all(|length| *length == sizes.max()), "{name}: {found:?}");
    }
}

#[test]
fn two_bytes_per_step_give_the_cuts_of_one() {
    let data = [random_bytes("steps", 300_000), vec![0; 70_000], random_bytes("more", 100_001)].concat();
    for level in 0..=3 {
        for expected in [128, 1000, 5001] {
            let cut = |year: u32| {
                let algorithm = algorithm(&format!("fastcdc-{year}-nc{level}"));
                lengths(&algorithm.make(algorithm.usual_sizes(expected).unwrap(), &[0; 32], Isa::best()), &data)
            };
            assert_eq!(cut(2016), cut(2020), "level {level}, expected {expected}");
        }
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn everything_is_cut_as_defined(sizes in any_sizes(), data in any_data(2000)) {
        for (name, oracle) in ORACLES {
            assert_equal(name, oracle, sizes, &data);
        }
    }
}

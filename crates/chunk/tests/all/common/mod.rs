//! Helpers of the tests of all chunkers: data of every kind, and the lengths a chunker finds.
#![allow(dead_code, unreachable_pub, clippy::cast_possible_truncation)]

pub mod golden;

use proptest::prelude::*;
use siltstone_chunk::{ALGORITHMS, Algorithm, Chunker, Isa, Sizes, SliceChunks};

/// Whether the processor is most likely emulated, and thirty times as slow.
pub const EMULATED: bool = cfg!(not(target_arch = "x86_64"));

/// Number of random cases that a property is tried on: `usual`, fewer where processors are emulated, or what the
/// environment variable `PROPTEST_CASES` says, for long runs.
pub fn cases(usual: u32) -> ProptestConfig {
    let here = if EMULATED { usual.div_ceil(8) } else { usual };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        ProptestConfig::default()
    } else {
        ProptestConfig::with_cases(here)
    }
}

/// Bytes that look random and are the same in every run, on every machine.
pub fn random_bytes(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new().update(seed.as_bytes()).finalize_xof().fill(&mut bytes);
    bytes
}

pub fn sizes(min: u32, expected: u32, max: u32) -> Sizes {
    Sizes::new(min, expected, max).expect("sizes that fit together")
}

pub fn lengths(chunker: &dyn Chunker, data: &[u8]) -> Vec<usize> {
    SliceChunks::new(chunker, data).map(<[u8]>::len).collect()
}

pub fn algorithm(name: &str) -> &'static Algorithm {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name).expect("a known name")
}

/// The instruction sets on which `algorithm` has a form of its own.
pub fn forms(algorithm: &Algorithm) -> Vec<Isa> {
    if algorithm.vector { Isa::available().collect() } else { vec![Isa::SCALAR] }
}

/// Random, constant, periodic, rising and few-valued bytes, mixed.
pub fn any_data(part_bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..part_bytes_max),
        (any::<u8>(), 0..part_bytes_max).prop_map(|(byte, len)| vec![byte; len]),
        (prop::collection::vec(any::<u8>(), 1..90), 0..part_bytes_max).prop_map(|(period, len)| period
            .into_iter()
            .cycle()
            .take(len)
            .collect()),
        prop::collection::vec(0u8..2, 0..part_bytes_max),
        prop::collection::vec(250u8..=255, 0..part_bytes_max),
        (1..40usize, 0..part_bytes_max).prop_map(|(slow, len)| (0..len).map(|i| (i / slow) as u8).collect()),
        (1..40usize, 0..part_bytes_max).prop_map(|(slow, len)| (0..len).rev().map(|i| (i / slow) as u8).collect()),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

/// Small sizes of every kind: with both limits, without a smallest, without any.
pub fn any_sizes() -> impl Strategy<Value = Sizes> {
    let limited = (64u32..400)
        .prop_flat_map(|min| (Just(min), (min * 4).div_ceil(3).max(128)..min * 6))
        .prop_flat_map(|(min, expected)| (expected * 2..expected * 6).prop_map(move |max| sizes(min, expected, max)));
    let unlimited = (128u32..3000).prop_map(|expected| Sizes::unlimited(expected).expect("sizes that fit together"));
    prop_oneof![limited.clone(), limited.prop_map(Sizes::without_min), unlimited]
}

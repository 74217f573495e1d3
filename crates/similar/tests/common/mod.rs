//! Helpers of the tests of sketches: data of every kind.
#![allow(dead_code, unreachable_pub, clippy::cast_possible_truncation)]

pub mod golden;

use proptest::prelude::*;
use siltstone_similar::Isa;
use siltstone_similar::sketch::Method;

/// Number of random cases that a property is tried on: `usual`, fewer where processors are emulated, or what the
/// environment variable `PROPTEST_CASES` says, for long runs.
pub fn cases(usual: u32) -> ProptestConfig {
    let here = if cfg!(target_arch = "x86_64") { usual } else { usual.div_ceil(8) };
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

/// The instruction sets on which `method` has a form of its own.
pub fn forms(method: &Method) -> Vec<Isa> {
    if method.vector { Isa::available().collect() } else { vec![Isa::SCALAR] }
}

/// Random, constant, periodic and few-valued bytes, mixed.
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
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

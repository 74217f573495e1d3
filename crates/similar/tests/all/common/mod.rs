//! Helpers of the tests: data of every kind, the lines of the golden files of sketches; pairs and regions beside.
#![allow(dead_code, unreachable_pub, unused_imports, clippy::cast_possible_truncation)]

pub mod golden;
pub mod pairs;
#[cfg(feature = "zstd")]
pub mod regions;

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

/// Random, constant, periodic or few-valued bytes.
fn any_part(bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..bytes_max),
        (any::<u8>(), 0..bytes_max).prop_map(|(byte, len)| vec![byte; len]),
        (prop::collection::vec(any::<u8>(), 1..90), 0..bytes_max).prop_map(|(period, len)| period
            .into_iter()
            .cycle()
            .take(len)
            .collect()),
        prop::collection::vec(0u8..2, 0..bytes_max),
    ]
}

/// Random, constant, periodic and few-valued bytes, mixed.
pub fn any_data(part_bytes_max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any_part(part_bytes_max), 0..4).prop_map(|parts| parts.concat())
}

//! Cuts are format: `golden/*.txt` holds what every later version must find, and is never edited. A test that fails
//! here has found a change that would keep existing repositories from recognising what they already hold.
//!
//! One line per case: chunker, min, expected, max, the byte the key is made of, input, its length, number of chunks,
//! BLAKE3 of the chunk lengths as little-endian u32, then the first three lengths.
#![allow(missing_docs)]

mod common;

use common::{lengths, random_bytes, sizes};
use siltstone_chunk::{by_name, names};

fn input(name: &str, len: usize) -> Vec<u8> {
    match name {
        "zeros" => vec![0; len],
        "counter" => (0u32..).flat_map(u32::to_be_bytes).take(len).collect(),
        "bits" => random_bytes("bits", len).iter().map(|byte| byte & 1).collect(),
        seed => random_bytes(seed, len),
    }
}

fn found(case: &str) -> String {
    let fields: Vec<&str> = case.split_whitespace().take(7).collect();
    let number = |index: usize| fields[index].parse::<u32>().expect("a number");
    let sizes = sizes(number(1), number(2), number(3));
    let chunker = by_name(fields[0], sizes, &[u8::try_from(number(4)).expect("a byte"); 32]).expect("a known name");
    let lengths = lengths(&chunker, &input(fields[5], number(6) as usize));
    let mut digest = blake3::Hasher::new();
    for length in &lengths {
        digest.update(&u32::try_from(*length).expect("below max").to_le_bytes());
    }
    let first: Vec<String> = lengths.iter().take(3).map(ToString::to_string).collect();
    format!("{} {} {} {}", fields.join(" "), lengths.len(), &digest.finalize().to_hex()[..32], first.join(" "))
}

#[test]
fn cuts_are_those_of_the_golden_files() {
    for name in names() {
        let path = format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"));
        let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let cases: Vec<&str> = golden.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(cases.len() >= 8, "{path} holds too few cases");
        let now: Vec<String> = cases.iter().map(|case| found(case)).collect();
        assert_eq!(now, cases, "{path}");
    }
}

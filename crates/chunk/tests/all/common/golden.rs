//! The lines of the golden files: the cases of an algorithm, and what a case gives.

use super::{algorithm, lengths, random_bytes, sizes};
use siltstone_chunk::{Sizes, by_name};

/// Path of the golden file of an algorithm.
pub fn path(name: &str) -> String {
    format!("{}/tests/golden/{name}.txt", env!("CARGO_MANIFEST_DIR"))
}

/// The cases for an algorithm of that name: chunker, min, expected, max, the byte the key is made of, input, its
/// length.
pub fn cases(name: &str) -> Vec<String> {
    let usual = |expected| {
        let sizes = algorithm(name).usual_sizes(expected).expect("usual sizes");
        let max = u32::try_from(sizes.max()).unwrap_or(u32::MAX);
        format!("{} {expected} {max}", sizes.min())
    };
    let usual_8192 = usual(8192);
    let cases = [
        (usual_8192.as_str(), "0 golden-1 4194304"),
        (&usual_8192, "1 golden-1 4194304"),
        (&usual(128), "7 golden-2 65536"),
        (&usual(5000), "7 golden-2 1048576"),
        (&usual(1 << 20), "7 golden-3 16777216"),
        ("64 150 300", "7 golden-2 65536"),
        ("0 4096 16384", "7 golden-2 1048576"),
        ("2048 8192 65536", "7 golden-2 1048576"),
        ("0 8192 4294967295", "7 golden-2 4194304"),
        (&usual_8192, "7 zeros 1000000"),
        ("0 8192 4294967295", "7 zeros 1000000"),
        (&usual_8192, "7 counter 4194304"),
        (&usual_8192, "7 bits 4194304"),
        (&usual_8192, "7 golden-4 0"),
        (&usual_8192, "7 golden-4 1"),
        (&usual_8192, "7 golden-4 47"),
        (&usual_8192, "7 golden-4 2049"),
        (&usual_8192, "7 golden-4 100001"),
    ];
    cases.iter().map(|(sizes, input)| format!("{name} {sizes} {input}")).collect()
}

/// The line of a case, which it begins with: then number of chunks, BLAKE3 of the chunk lengths as little-endian u32,
/// and the first three lengths.
pub fn line(case: &str) -> String {
    let fields: Vec<&str> = case.split_whitespace().take(7).collect();
    let number = |index: usize| fields[index].parse::<u32>().expect("a number");
    let sizes = sizes_of(number(1), number(2), number(3));
    let chunker = by_name(fields[0], sizes, &[u8::try_from(number(4)).expect("a byte"); 32]).expect("a known name");
    let lengths = lengths(&chunker, &input(fields[5], number(6) as usize));
    let mut digest = blake3::Hasher::new();
    for length in &lengths {
        digest.update(&u32::try_from(*length).expect("below 4 GiB").to_le_bytes());
    }
    let first: Vec<String> = lengths.iter().take(3).map(ToString::to_string).collect();
    format!("{} {} {} {}", fields.join(" "), lengths.len(), &digest.finalize().to_hex()[..32], first.join(" "))
}

/// A min of 0 is none, and so is a max of `u32::MAX`.
fn sizes_of(min: u32, expected: u32, max: u32) -> Sizes {
    match (min, max) {
        (0, u32::MAX) => Sizes::unlimited(expected).expect("an expected size"),
        (0, _) => sizes(Sizes::MIN_BYTES_LOWEST, expected, max).without_min(),
        _ => sizes(min, expected, max),
    }
}

fn input(name: &str, len: usize) -> Vec<u8> {
    match name {
        "zeros" => vec![0; len],
        "counter" => (0u32..).flat_map(u32::to_be_bytes).take(len).collect(),
        "bits" => random_bytes("bits", len).iter().map(|byte| byte & 1).collect(),
        seed => random_bytes(seed, len),
    }
}

//! The lines of the golden files: a pair, its delta, and what that must make.

use super::{Pair, random_bytes};
use siltstone_similar::delta::ChunkDelta;

/// Deltas up to this length stand in the file as they are.
const SHOWN_BYTES_MAX: usize = 200;

/// Path of the golden file of a codec.
pub fn path(name: &str) -> String {
    format!("{}/tests/golden/delta-{name}.txt", env!("CARGO_MANIFEST_DIR"))
}

/// The pairs there are: base, changes, length of the base.
pub const CASES: [&str; 22] = [
    "random same 0",
    "random same 1",
    "random same 31",
    "random same 8192",
    "random unrelated 100",
    "random unrelated 5000",
    "random few 8192",
    "random many 8192",
    "random moved 8192",
    "random doubled 4000",
    "random emptied 4096",
    "random shortened 4096",
    "zeros few 8192",
    "zeros same 65536",
    "zeros doubled 3000",
    "counter few 16384",
    "counter many 65536",
    "counter moved 20000",
    "bits many 4096",
    "bits moved 9000",
    "random few 200000",
    "random moved 1500000",
];

/// The pair of a case.
pub fn pair(case: &str) -> Pair {
    let fields: Vec<&str> = case.split_whitespace().take(3).collect();
    let bytes: usize = fields[2].parse().expect("a number");
    let base = match fields[0] {
        "zeros" => vec![0; bytes],
        "counter" => (0u32..).flat_map(u32::to_be_bytes).take(bytes).collect(),
        "bits" => random_bytes("bits", bytes).iter().map(|byte| byte & 1).collect(),
        _ => random_bytes("golden", bytes),
    };
    let target = changed(fields[1], &base);
    (base, target)
}

fn changed(how: &str, base: &[u8]) -> Vec<u8> {
    let half = base.len() / 2;
    match how {
        "same" => base.to_vec(),
        "unrelated" => random_bytes("other", base.len()),
        "few" => {
            [&base[..half], b"some bytes", &base[half + 3..base.len() - 40], b"!", &base[base.len() - 39..]].concat()
        }
        "many" => base.chunks(50).enumerate().flat_map(|(i, part)| [part, &b"123456"[..i % 7]].concat()).collect(),
        "moved" => [&base[half..], &base[..half / 2], &base[half..half + 100], &base[half / 2..half]].concat(),
        "doubled" => [base, base].concat(),
        "emptied" => Vec::new(),
        "shortened" => base[half - 100..half + 200].to_vec(),
        other => panic!("no such change: {other}"),
    }
}

/// The line of a case, which it begins with: then the lengths of target and delta, BLAKE3 of both, and the delta itself
/// if it is short.
pub fn line(codec: &mut dyn ChunkDelta, case: &str) -> String {
    let pair = pair(case);
    let delta = super::delta(codec, &pair);
    let digest = |bytes: &[u8]| blake3::hash(bytes).to_hex()[..32].to_owned();
    let shown: String = match delta.len() {
        0..=SHOWN_BYTES_MAX => delta.iter().fold(String::new(), |shown, byte| shown + &format!("{byte:02x}")),
        _ => "-".to_owned(),
    };
    let fields: Vec<&str> = case.split_whitespace().take(3).collect();
    format!("{} {} {} {} {} {shown}", fields.join(" "), pair.1.len(), delta.len(), digest(&pair.1), digest(&delta))
}

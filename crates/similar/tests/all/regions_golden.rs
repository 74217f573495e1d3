//! Payloads are format: `golden/regions.txt` holds what every later version must read, and is never edited. What
//! encoders write may change with their version, and with that of zstd.
//!
//! One line per case: level, pair of base and target, codec, length of the text, BLAKE3 of the text, payload (`-` for
//! none).

use crate::common::regions::{golden_path, region};
use siltstone_similar::region::Codec;

#[test]
fn golden_payloads_give_their_texts() {
    let path = golden_path();
    let golden = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    let mut cases = 0;
    for line in golden.lines().filter(|line| !line.starts_with('#')) {
        let fields: Vec<&str> = line.split(' ').collect();
        let [_, _, _, _, codec, text_bytes, digest, payload] = fields[..] else { panic!("{line}: eight fields") };
        let codec = if codec == "Raw" { Codec::Raw } else { Codec::Zstd };
        let payload = if payload == "-" { "" } else { payload };
        let byte = |at: usize| u8::from_str_radix(&payload[at..at + 2], 16).expect("a hexadecimal number");
        let payload: Vec<u8> = (0..payload.len()).step_by(2).map(byte).collect();
        let region = region(&fields[..4].join(" "));
        let text = region.decoded(codec, &payload, text_bytes.parse().expect("a number")).expect(line);
        assert_eq!(&blake3::hash(&text).to_hex()[..32], digest, "{line}");
        assert_eq!(text, region.text(), "{line}");
        cases += 1;
    }
    assert!(cases >= 20, "{path} holds too few cases");
}

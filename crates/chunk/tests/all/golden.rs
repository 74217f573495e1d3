//! Cuts are format: `golden/*.txt` holds what every later version must find, and is never edited. A test that fails
//! here has found a change that would keep existing repositories from recognising what they already hold.
//!
//! One line per case: chunker, min (0 for none), expected, max (4294967295 for none), the byte the key is made of,
//! input, its length, number of chunks, BLAKE3 of the chunk lengths as little-endian u32, then the first three lengths.

use crate::common::golden::{line, path};
use siltstone_chunk::names;

#[test]
fn cuts_are_those_of_the_golden_files() {
    let missing: Vec<&str> = names().filter(|name| !std::fs::exists(path(name)).expect("a folder")).collect();
    for name in names().filter(|name| !missing.contains(name)) {
        let path = path(name);
        let golden = std::fs::read_to_string(&path).expect("a readable file");
        let cases: Vec<&str> = golden.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(cases.len() >= 8, "{path} holds too few cases");
        assert!(cases.iter().all(|case| case.starts_with(&format!("{name} "))), "{path} holds cases of others");
        let now: Vec<String> = cases.iter().map(|case| line(case)).collect();
        assert_eq!(now, cases, "{path}");
    }
    assert!(
        missing.is_empty(),
        "no golden file for {}; if their cuts are right, freeze them: cargo run --release -p siltstone-chunk --example \
         golden -- {}",
        missing.join(", "),
        missing.join(" "),
    );
}

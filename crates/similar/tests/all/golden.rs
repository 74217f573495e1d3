//! Features are format: `golden/*.txt` holds what every later version must find, on every instruction set, and is never
//! edited. A test that fails here has found a change that would keep existing repositories from recognising what their
//! chunks resemble.
//!
//! One line per case: method, features, super-features, input, its length; then the first two features, BLAKE3 of all
//! features as little-endian u32, and of the super-features as little-endian u64; or `none`. Inputs of `samples` are
//! hashes, eight bytes each.

use crate::common::golden::{line, names, path};
use siltstone_similar::Isa;

#[test]
fn features_are_those_of_the_golden_files() {
    let missing: Vec<&str> = names().filter(|name| !std::fs::exists(path(name)).expect("a folder")).collect();
    for name in names().filter(|name| !missing.contains(name)) {
        let path = path(name);
        let golden = std::fs::read_to_string(&path).expect("a readable file");
        let cases: Vec<&str> = golden.lines().filter(|line| !line.starts_with('#')).collect();
        assert!(cases.len() >= 8, "{path} holds too few cases");
        assert!(cases.iter().all(|case| case.starts_with(&format!("{name} "))), "{path} holds cases of others");
        for isa in Isa::available() {
            let now: Vec<String> = cases.iter().map(|case| line(case, isa)).collect();
            assert_eq!(now, cases, "{path}, {isa}");
        }
    }
    assert!(
        missing.is_empty(),
        "no golden file for {}; if their features are right, freeze them: cargo run --release -p siltstone-similar \
         --example golden_sketches -- {}",
        missing.join(", "),
        missing.join(" "),
    );
}

//! Deltas are format: `golden/delta-*.txt` holds what every later version must write, and read, and is never edited. A
//! test that fails here has found a change that would make stored chunks unreadable, or different from one machine to
//! the next.
//!
//! One line per case: base, change, length of the base, lengths of target and delta, BLAKE3 of target and delta, and
//! the delta itself where it is short.

use crate::common::pairs::golden::{line, pair, path};
use crate::common::pairs::{codecs, target};
use siltstone_similar::Isa;
use siltstone_similar::delta::CopyInsert;

/// The lines of a golden file.
fn golden(name: &str) -> Vec<String> {
    let path = path(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("{path}: {error}; if its deltas are right, freeze them: cargo run --release -p siltstone-similar --example golden_deltas")
    });
    let lines: Vec<String> = text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect();
    assert!(lines.len() >= 20, "{path} holds too few cases");
    lines
}

#[test]
fn copy_insert_deltas_are_those_of_the_golden_file() {
    for isa in Isa::available() {
        for case in golden("copy-insert") {
            assert_eq!(line(&mut CopyInsert::new(isa), &case), case, "{isa}");
        }
    }
}

/// A compression library may write other bytes with every version; those it wrote must stay readable.
#[test]
fn golden_deltas_make_their_targets() {
    for mut codec in codecs() {
        let mut read = 0;
        for case in golden(codec.name()) {
            let shown = case.split_whitespace().nth(7).expect("eight fields");
            if shown != "-" {
                let byte = |at: usize| u8::from_str_radix(&shown[at..at + 2], 16).expect("a hexadecimal number");
                let delta: Vec<u8> = (0..shown.len()).step_by(2).map(byte).collect();
                let pair = pair(&case);
                assert_eq!(target(&mut *codec, &pair.0, &delta, pair.1.len()), Ok(pair.1), "{case}");
                read += 1;
            }
        }
        assert!(read >= 10, "{} of {}", read, codec.name());
    }
}

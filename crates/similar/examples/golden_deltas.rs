//! Freezes the deltas of new codecs: writes `tests/golden/delta-NAME.txt` for each that has none yet. Files that are
//! there stay as they are, for ever. `cargo run --release -p siltstone-similar --example golden_deltas`

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::pairs;
use common::pairs::golden::{CASES, line, path};
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

fn main() -> std::io::Result<()> {
    for mut codec in pairs::codecs() {
        let path = path(codec.name());
        let mut file = match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
            file => file?,
        };
        let lines: Vec<String> = CASES.iter().map(|case| line(&mut *codec, case) + "\n").collect();
        write!(file, "# Never edited: see tests/all/deltas_golden.rs.\n{}", lines.concat())?;
        println!("{path}: {} cases", lines.len());
    }
    Ok(())
}

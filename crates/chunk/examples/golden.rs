//! Freezes the cuts of new algorithms: writes `tests/golden/NAME.txt` for each name given that has none yet. Files that
//! are there stay as they are, for ever. `cargo run --release -p siltstone-chunk --example golden -- NAME...`

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::golden::{cases, line, path};
use std::fs::OpenOptions;
use std::io::Write;

fn main() -> std::io::Result<()> {
    for name in std::env::args().skip(1) {
        let lines: Vec<String> = cases(&name).iter().map(|case| line(case) + "\n").collect();
        let mut file = OpenOptions::new().write(true).create_new(true).open(path(&name))?;
        write!(file, "# Never edited: see tests/all/golden.rs.\n{}", lines.concat())?;
        println!("{}: {} cases", path(&name), lines.len());
    }
    Ok(())
}

//! Freezes the payloads of regions: writes `tests/golden/regions.txt` if there is none yet. It stays as it is, for
//! ever. `cargo run --release -p siltstone-similar --example golden_regions`

#[path = "../tests/all/common/mod.rs"]
mod common;

use common::regions::{CASES, golden_path, line};
use std::fs::OpenOptions;
use std::io::Write;

fn main() -> std::io::Result<()> {
    let lines: Vec<String> = CASES.iter().map(|case| line(case) + "\n").collect();
    let mut file = OpenOptions::new().write(true).create_new(true).open(golden_path())?;
    write!(file, "# Never edited: see tests/all/regions_golden.rs.\n{}", lines.concat())?;
    println!("{}: {} cases", golden_path(), lines.len());
    Ok(())
}

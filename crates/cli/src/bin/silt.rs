//! The program `silt`.

use std::process::ExitCode;

fn main() -> ExitCode {
    siltstone::main()
}

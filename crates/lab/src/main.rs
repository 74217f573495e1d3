//! `silt-lab`: arguments in, tables and reports out.

#![allow(clippy::doc_markdown, reason = "the documentation of an option is its help text")]

mod cli;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::main()
}

//! `silt`: arguments in, text or JSON out. What a command does is the engine's; this program parses, asks and renders.

#![allow(clippy::doc_markdown, reason = "the documentation of an option is its help text")]

mod args;
mod commands;
mod environment;
mod error;
mod interrupt;
mod memory;
mod output;
mod parse;
mod password;
mod patterns;
mod progress;
mod render;
mod repository;
mod retry;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::main()
}

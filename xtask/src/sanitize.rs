//! The tests of the crates that reach memory through intrinsics, with every access checked, and on many more random
//! cases than usual: for an evening, not for every change. With the address sanitizer where a nightly compiler is
//! installed; else in valgrind, which has no AVX-512, so that level is not covered then.

use crate::cross;
use anyhow::Result;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::program;
use siltstone_testbed::workspace;
use std::process::Command;

/// Options: how long it takes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Random cases of each property; in valgrind a fiftieth of that.
    #[arg(long, default_value_t = 2000)]
    cases: u32,
}

const TARGET: &str = "x86_64-unknown-linux-gnu";
const VALGRIND: Needed = Needed { program: "valgrind", package: "valgrind" };
const VALGRIND_IS_SLOWER: u32 = 50;

/// Runs them.
pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&[install::COMPILER])?;
    let mut command = if has_nightly() { in_sanitizer(options.cases) } else { in_valgrind(options.cases)? };
    command.env("CARGO_TARGET_DIR", workspace::target()?.join("sanitize"));
    program::run(&mut command)
}

fn has_nightly() -> bool {
    let found = program::try_quietly(Command::new("rustup").args(["run", "nightly", "rustc", "--version"]));
    found.is_ok_and(|output| output.status.success())
}

fn in_sanitizer(cases: u32) -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(workspace::root());
    for ours in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(ours);
    }
    tests(&mut command, cases);
    command.env("RUSTFLAGS", "-Zsanitizer=address");
    command
}

fn in_valgrind(cases: u32) -> Result<Command> {
    install::ensure(&[VALGRIND])?;
    eprintln!("no nightly compiler is installed: checking in valgrind, which has no AVX-512");
    let mut command = workspace::cargo();
    tests(&mut command, cases.div_ceil(VALGRIND_IS_SLOWER));
    command.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", "valgrind --quiet --error-exitcode=9");
    Ok(command)
}

fn tests(command: &mut Command, cases: u32) {
    command.args(["test", "--release", "--locked", "--quiet", "--no-fail-fast"]);
    command.args(["--lib", "--tests", "--target", TARGET]).args(cross::PACKAGES);
    command.env("PROPTEST_CASES", cases.to_string());
    // What is found is told with names and lines.
    command.env("CARGO_PROFILE_RELEASE_STRIP", "none").env("CARGO_PROFILE_RELEASE_DEBUG", "line-tables-only");
}

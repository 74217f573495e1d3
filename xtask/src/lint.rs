//! The lint gate: everything that a reviewer should not have to look for.

use crate::test::cargo;
use anyhow::Result;
use siltstone_testbed::install;
use siltstone_testbed::program;
use siltstone_testbed::workspace;

/// Formatting, clippy, documentation, licences.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER, install::CPLUSPLUS])?;
    program::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    // With the fuzzer's program, which tests are built without.
    let all = |verb| {
        let mut command = cargo(verb);
        command.args(["--features", "siltstone-fuzz/guided"]);
        command
    };
    program::run(all("clippy").args(["--all-targets", "--", "--deny", "warnings"]))?;
    let mut documentation = all("doc");
    documentation.args(["--no-deps", "--document-private-items"]);
    program::run(documentation.env("RUSTDOCFLAGS", "--deny warnings"))?;
    licences_and_sources()
}

/// `cargo deny` with `deny.toml`. The table of known vulnerabilities is left to whoever has a network to fetch it from:
/// this gate gives the same answer today and tomorrow.
fn licences_and_sources() -> Result<()> {
    if install::find("cargo-deny").is_none() {
        let mut install = workspace::cargo();
        install.args(["install", "--quiet", "--locked", "cargo-deny"]);
        // It runs for seconds: optimised it would take longer to compile than it ever saves.
        install.env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0").env("CARGO_PROFILE_RELEASE_LTO", "off");
        let installed = program::run(install.env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16"));
        if let Err(error) = installed {
            eprintln!("licences were not checked, because cargo-deny could not be installed: {error:#}");
            return Ok(());
        }
    }
    program::run(workspace::cargo().args(["deny", "--workspace", "check", "bans", "licenses", "sources"]))
}

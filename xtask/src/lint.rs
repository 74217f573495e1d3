//! The lint gate: everything that a reviewer should not have to look for.

use anyhow::Result;
use siltstone_testbed::install;
use siltstone_testbed::program;
use siltstone_testbed::workspace;

/// Formatting, clippy, documentation, licences.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER])?;
    program::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    program::run(workspace::cargo().args([
        "clippy",
        "--workspace",
        "--features",
        "xtask/power",
        "--all-targets",
        "--",
        "--deny",
        "warnings",
    ]))?;
    let mut documentation = workspace::cargo();
    documentation.args(["doc", "--workspace", "--features", "xtask/power", "--no-deps", "--document-private-items"]);
    program::run(documentation.env("RUSTDOCFLAGS", "--deny warnings"))?;
    licences_and_sources()
}

/// `cargo deny` with `deny.toml`. The table of known vulnerabilities is left to whoever has a network to fetch it from:
/// this gate gives the same answer today and tomorrow.
fn licences_and_sources() -> Result<()> {
    if install::find("cargo-deny").is_none() {
        let installed = program::run(workspace::cargo().args(["install", "--quiet", "--locked", "cargo-deny"]));
        if let Err(error) = installed {
            eprintln!("licences were not checked, because cargo-deny could not be installed: {error:#}");
            return Ok(());
        }
    }
    program::run(workspace::cargo().args(["deny", "--workspace", "check", "bans", "licenses", "sources"]))
}

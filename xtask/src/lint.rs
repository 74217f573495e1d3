//! The lint gate: everything that a reviewer should not have to look for.

use crate::workspace;
use anyhow::Result;
use siltstone_lab::install;
use siltstone_lab::program;

/// Formatting, clippy, documentation, licences.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER])?;
    program::run(workspace::cargo().args(["fmt", "--all", "--check"]))?;
    program::run(workspace::cargo().args(["clippy", "--workspace", "--all-targets", "--", "--deny", "warnings"]))?;
    let mut documentation = workspace::cargo();
    documentation.args(["doc", "--workspace", "--no-deps", "--document-private-items"]);
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

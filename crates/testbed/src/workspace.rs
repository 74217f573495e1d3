//! Where things are in this workspace, and building its program.

use crate::corpus::Corpora;
use crate::{install, program};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Profile that `silt` is built with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Build {
    /// Quick to build, for tests of behaviour.
    Development,
    /// As users get it, for everything that is timed.
    Release,
}

impl Build {
    /// The build that a task's `--release` asks for.
    pub fn of(release: bool) -> Self {
        if release { Self::Release } else { Self::Development }
    }
}

/// The cargo that runs us.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Top of the checkout.
pub fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.ancestors().nth(2).unwrap_or(own).to_path_buf()
}

/// Returns what `cargo metadata` says of the workspace's own crates.
pub fn metadata() -> Result<Value> {
    let text = program::quietly(cargo().args(["metadata", "--format-version", "1", "--no-deps"]))?;
    serde_json::from_str(&text).context("`cargo metadata` gave something that is not JSON")
}

/// Folder of build results.
pub fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let folder = metadata["target_directory"].as_str().context("`cargo metadata` names no target directory")?;
    Ok(PathBuf::from(folder))
}

/// The corpora of the workspace: what is downloaded or generated stays in the build folder for the next run.
pub fn corpora() -> Result<Corpora> {
    Ok(Corpora::at(target()?.join("corpus")).installing())
}

/// Variable of the environment that names the program `silt` to be taken.
pub const SILT_VARIABLE: &str = "XTASK_SILT";
/// Variable of the environment that names the program `silt-import` to be taken.
pub const SILT_IMPORT_VARIABLE: &str = "XTASK_SILT_IMPORT";

/// Builds `silt` and says where it is. If `XTASK_SILT` names a program, that one is taken as it is: to compare two
/// builds.
pub fn build_silt(build: Build) -> Result<PathBuf> {
    built(SILT_VARIABLE, "siltstone", "silt", build)
}

/// Builds `silt-import` and says where it is. `XTASK_SILT_IMPORT` may name it as well.
pub fn build_silt_import(build: Build) -> Result<PathBuf> {
    built(SILT_IMPORT_VARIABLE, "siltstone-import", "silt-import", build)
}

fn built(variable: &str, package: &str, program: &str, build: Build) -> Result<PathBuf> {
    if let Some(program) = std::env::var_os(variable) {
        return Ok(PathBuf::from(program));
    }
    install::ensure(&[install::COMPILER])?;
    let mut command = cargo();
    command.args(["build", "--package", package, "--bin", program]);
    let folder = match build {
        Build::Development => "debug",
        Build::Release => {
            command.arg("--release");
            "release"
        }
    };
    program::run_telling(&mut command, &format!("building {program}"))?;
    Ok(target()?.join(folder).join(program))
}

/// The commit checked out, with `+` if files differ from it; "none" outside a repository or before the first commit.
pub fn commit() -> String {
    let git = |words: &[&str]| program::quietly(Command::new("git").current_dir(root()).args(words));
    let Ok(hash) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "none".into();
    };
    let changed = git(&["status", "--porcelain"]).is_ok_and(|text| !text.trim().is_empty());
    format!("{}{}", hash.trim(), if changed { "+" } else { "" })
}

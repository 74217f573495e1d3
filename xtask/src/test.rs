//! All tests, from a fresh clone.

use crate::{fuzz, kill_loop, reader, workspace};
use anyhow::Result;
use siltstone_lab::install;
use siltstone_lab::program;

/// Installs what tests need, runs the workspace's tests, a short loop of `kill -9` on the real program, the independent
/// reader, and some seconds of fuzzing.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER, install::SETFACL, install::SETFATTR])?;
    program::run(workspace::cargo().args(["test", "--workspace", "--quiet"]))?;
    kill_loop::run(&kill_loop::Options::short())?;
    reader::run()?;
    fuzz::run(&fuzz::Options::short())
}

//! All tests, from a fresh clone.

use crate::{kill_loop, reader, workspace};
use anyhow::Result;
use siltstone_lab::install;
use siltstone_lab::program;

/// Installs what tests need, runs the workspace's tests, a short loop of `kill -9` on the real program, and the independent reader.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER, install::SETFACL, install::SETFATTR])?;
    program::run(workspace::cargo().args(["test", "--workspace", "--quiet"]))?;
    kill_loop::run(&kill_loop::Options::short())?;
    reader::run()
}

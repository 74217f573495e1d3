//! All tests, from a fresh clone.

use crate::{damage, faults, kill_loop, power, reader, workspace};
use anyhow::Result;
use siltstone_lab::install;
use siltstone_lab::program;

/// Installs what tests need, runs the workspace's tests, and short forms of the long tasks: `kill -9` and damage on the real program,
/// failing system calls, power loss, the independent reader.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER, install::SETFACL, install::SETFATTR])?;
    program::run(workspace::cargo().args(["test", "--workspace", "--quiet"]))?;
    kill_loop::run(&kill_loop::Options::short())?;
    damage::run(&damage::Options::short())?;
    faults::run(&faults::Options::short())?;
    power::run(&power::Options::short())?;
    reader::run()
}

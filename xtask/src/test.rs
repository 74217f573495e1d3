//! All tests, from a fresh clone.

use crate::{damage, faults, fuzz, kill_loop, power, reader};
use anyhow::Result;
use siltstone_testbed::install;
use siltstone_testbed::program;
use siltstone_testbed::workspace;

/// Installs what tests need; runs the workspace's tests, then short forms of what is done to the real program, the
/// second reader, and some seconds of fuzzing.
pub(crate) fn run() -> Result<()> {
    install::ensure(&[install::COMPILER, install::SETFACL, install::SETFATTR])?;
    install::ensure(&[install::SSH, install::SSHD, install::SFTP_SERVER, install::RCLONE])?;
    let workspace_tests = ["test", "--workspace", "--features", "xtask/power"];
    // Building tells its progress; so many tests would bury what they say.
    program::run(workspace::cargo().args(workspace_tests).arg("--no-run"))?;
    program::run(workspace::cargo().args(workspace_tests).arg("--quiet"))?;
    kill_loop::run(&kill_loop::Options::short())?;
    damage::run(&damage::Options::short())?;
    faults::run(&faults::Options::short())?;
    power::run(&power::Options::short())?;
    reader::run()?;
    fuzz::run(&fuzz::Options::short())
}

//! All tests, from a fresh clone.

use crate::{campaign, damage, faults, import, kill_loop, power, reader};
use anyhow::Result;
use clap::Args;
use siltstone_testbed::install;
use siltstone_testbed::machine;
use siltstone_testbed::program;
use siltstone_testbed::workspace;
use std::process::Command;
use std::thread;

/// Option: how much.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Every order of two writers' calls, of which otherwise one in four with two changes is run, and more fates of
    /// writes that were pending when the power went; takes much longer.
    #[arg(long)]
    full: bool,
}

/// Returns cargo with a verb, and with the words that choose what is tested. What else is built with them has
/// dependencies with the same features.
pub(crate) fn cargo(verb: &str) -> Command {
    let mut command = workspace::cargo();
    command.args([verb, "--workspace", "--features", "xtask/power"]);
    command
}

/// Installs what tests need; runs the workspace's tests, then [`short_forms`].
pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&[install::COMPILER, install::SETFACL, install::SETFATTR])?;
    install::ensure(&[install::SSH, install::SSHD, install::SFTP_SERVER, install::RCLONE])?;
    // Building tells its progress; so many tests would bury what they say.
    program::run(cargo("test").arg("--no-run"))?;
    // They make thousands of small trees and repositories. On a disk they would mostly wait for it.
    let scratch = machine::scratch()?;
    let mut tests = cargo("test");
    tests.arg("--quiet").env("TMPDIR", scratch.path());
    // Many of them wait: for a program, for a thread, for a moment. With as many at once as there are cores, a core is
    // often idle.
    let at_once = thread::available_parallelism().map_or(4, |cores| 2 * cores.get());
    tests.env("RUST_TEST_THREADS", at_once.to_string());
    if options.full {
        tests.env("SILTSTONE_FULL", "1");
    }
    program::run(&mut tests)?;
    // What a file system keeps of a file is looked at on a disk as well. With a target named, dependencies would have
    // other features, and half of all would be compiled once more.
    program::run(cargo("test").args(["--quiet", "exact::"]))?;
    // Alone, this program, with the feature, and `silt` would have dependencies with other features than the tests
    // have: half of all would be compiled once more.
    program::run(cargo("build").args(["--tests", "--bin", "silt", "--bin", "silt-import", "--bin", "xtask"]))?;
    let built = workspace::target()?.join("debug");
    let mut short = Command::new(built.join("xtask"));
    short.arg("short").env(workspace::SILT_VARIABLE, built.join("silt"));
    program::run(short.env(workspace::SILT_IMPORT_VARIABLE, built.join("silt-import")))
}

/// Runs short forms of what is done to the real program, and the second reader.
pub(crate) fn short_forms() -> Result<()> {
    // These two keep all cores busy, the others one each.
    damage::run(&damage::Options::short())?;
    faults::run(&faults::Options::short())?;
    let tasks: [fn() -> Result<()>; 4] = [
        || kill_loop::run(&kill_loop::Options::short()),
        || power::run(&power::Options::short()),
        || import::run(&import::Options::short()),
        reader::run,
    ];
    campaign::each(tasks, |task| task()).map(drop)
}

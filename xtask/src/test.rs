//! All tests, from a fresh clone.

use crate::{campaign, damage, faults, import, kill_loop, power, reader};
use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;
use siltstone_testbed::{install, machine, program, workspace};
use std::cmp::Reverse;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

/// Programs of tests that run at a time: one that ends with a single long test leaves no core idle.
const LANES: usize = 2;

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
    let programs = build()?;
    // They make thousands of small trees and repositories. On a disk they would mostly wait for it.
    let scratch = machine::scratch()?;
    all(&programs, |tests| {
        tests.env("TMPDIR", scratch.path());
        if options.full {
            tests.env("SILTSTONE_FULL", "1");
        }
    })?;
    program::run(cargo("test").args(["--quiet", "--doc"]))?;
    // What a file system keeps of a file is looked at on a disk as well.
    all(&programs, |tests| {
        tests.arg("exact::");
    })?;
    let built = workspace::target()?.join("debug");
    let mut short = Command::new(built.join("xtask"));
    short.arg("short").env(workspace::SILT_VARIABLE, built.join("silt"));
    program::run(short.env(workspace::SILT_IMPORT_VARIABLE, built.join("silt-import")))
}

/// A program of tests.
struct Program {
    /// What it tests, for messages.
    name: String,
    path: PathBuf,
    /// Folder that it is run in, as by cargo: its package's.
    folder: PathBuf,
}

/// Builds all tests, and the programs that short forms run. Returns the programs of tests, the larger ones first.
///
/// All in one: built on their own, `silt` and this program would have dependencies with other features than the tests
/// have, and half of all would be compiled once more.
fn build() -> Result<Vec<Program>> {
    let mut build = cargo("build");
    build.args(["--tests", "--bin", "silt", "--bin", "silt-import", "--bin", "xtask"]);
    let messages = program::run_saying(build.arg("--message-format=json-render-diagnostics"))?;
    let messages = messages.lines().map(serde_json::from_str).collect::<Result<Vec<Value>, _>>();
    let messages = messages.context("cargo gave messages that are not JSON")?;
    let mut programs: Vec<Program> = messages.iter().filter_map(Program::of).collect();
    ensure!(!programs.is_empty(), "cargo named no program of tests");
    // As a rule a larger one takes longer.
    programs.sort_by_key(|program| Reverse(program.path.metadata().map_or(0, |metadata| metadata.len())));
    Ok(programs)
}

impl Program {
    /// The program of tests, if that is what a message of cargo tells of.
    fn of(message: &Value) -> Option<Self> {
        let path = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        let package = folder.file_name()?.to_string_lossy();
        let name = format!("{package}: {}", message["target"]["name"].as_str()?);
        message["profile"]["test"].as_bool()?.then_some(Self { name, path, folder })
    }

    /// Runs it and returns what it said, and whether all tests passed.
    fn run(&self, prepare: impl Fn(&mut Command)) -> Result<(String, bool)> {
        let mut command = Command::new(&self.path);
        command.arg("--quiet").current_dir(&self.folder);
        prepare(&mut command);
        let output = program::try_quietly(&mut command)?;
        let said = [output.stdout, output.stderr].concat();
        Ok((String::from_utf8_lossy(&said).into_owned(), output.status.success()))
    }
}

/// Runs all programs of tests, [`LANES`] at a time, and tells of each when it has ended. One that fails keeps no other
/// from being run.
fn all(programs: &[Program], prepare: impl Fn(&mut Command) + Sync) -> Result<()> {
    // Many tests wait: for a program, for a thread, for a moment. With as many at once as there are cores, a core is
    // often idle.
    let at_once = thread::available_parallelism().map_or(4, |cores| 2 * cores.get());
    let at_once = at_once.div_ceil(LANES).to_string();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    campaign::each(0..LANES, |_| {
        while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            let (said, has_passed) = program.run(|command| {
                command.env("RUST_TEST_THREADS", &at_once);
                prepare(command);
            })?;
            let result = said.lines().rfind(|line| line.starts_with("test result: ")).unwrap_or("no result");
            println!("{}: {result}", program.name);
            if !has_passed {
                println!("{said}");
                failed.lock().unwrap_or_else(PoisonError::into_inner).push(program.name.as_str());
            }
        }
        Ok(())
    })?;
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    ensure!(failed.is_empty(), "tests failed of {}", failed.join(", "));
    Ok(())
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

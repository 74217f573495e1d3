//! The one door to every task of the project: `cargo xtask <task>`. Each task is one file; what several of them need
//! (running and measuring programs, comparing trees, making test data) is in `siltstone-testbed`. Nothing here is part
//! of what users install, and none of its crates is needed here: what a task needs of them it starts as a program.

mod bench;
mod campaign;
mod cross;
mod damage;
mod demo;
mod faults;
mod fuzz;
#[cfg(test)]
mod glossary;
mod import;
#[cfg(test)]
mod imports;
mod kill_loop;
mod lab_report;
mod lint;
#[cfg(test)]
mod map;
#[cfg(test)]
mod oldest_rust;
mod package;
mod power;
mod publish_check;
mod reader;
mod real;
mod sanitize;
mod test;

use anyhow::Result;
use clap::{Parser, Subcommand};
use siltstone_testbed::emulators::{Azurite, FakeGcs};
use siltstone_testbed::minio::Minio;
use std::process::ExitCode;

/// Tasks of the Siltstone workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Back up this checkout twice, restore both snapshots, compare, forget, check; prints sizes and speeds.
    Demo(demo::Options),
    /// All tests: the workspace's own, the second reader, short forms of kill-loop, damage, faults, power and import.
    Test(test::Options),
    /// Short forms of damage, faults, kill-loop, power and import, and the reader: the second half of `test`.
    Short,
    /// Tests of chunking and its vectors on ARM and POWER, emulated, built with the oldest compiler they promise to
    /// build with.
    Cross,
    /// Tests of chunking and its vectors with every access to memory checked, on many random cases.
    Sanitize(sanitize::Options),
    /// Formatting, clippy, documentation and licences, each with warnings denied.
    Lint,
    /// All that continuous integration runs: test, some seconds of fuzz, cross, then lint.
    Ci,
    /// Kill the real program at random moments and see that nothing committed is lost.
    KillLoop(kill_loop::Options),
    /// Damage objects of a small repository at random and run commands on it: nothing may panic, hang or restore what
    /// is wrong.
    Damage(damage::Options),
    /// Let each system call of the real program fail, end early or be the last, in turn, and see that nothing committed
    /// is lost.
    Faults(faults::Options),
    /// Lose power at random moments below a real file system, and see that nothing that had ended is undone.
    Power(power::Options),
    /// Give every parser of outside bytes inputs that reach new code: none may panic, hang or take memory it was not
    /// paid for.
    Fuzz(fuzz::Options),
    /// Install MinIO, a server of an object store, compiled by Go: tests of remote places run against it where it is.
    Minio,
    /// Install MinIO, Azurite and fake-gcs-server, which emulate the clouds: tests of remote places run against those
    /// that are there.
    Servers,
    /// Read golden and fresh repositories by a reader that was written from docs/FORMAT.md alone.
    Reader,
    /// Successive releases of a real source tree and a growing database: back up, restore all, forget half, to the
    /// byte.
    Real(real::Options),
    /// Bring repositories of restic and borg along, restore every version by both programs and compare them by rsync.
    Import(import::Options),
    /// A report of `silt-lab`, looked at in a real browser: nothing too wide, cut off, written over something else or
    /// loaded from elsewhere.
    LabReport(lab_report::Options),
    /// What users install, in target/package: archives, a Debian package, checksums, files for Homebrew and the AUR.
    Package(package::Options),
    /// What `cargo publish` would say of the crates that are to be published.
    PublishCheck(publish_check::Options),
    /// Measurements against the peers.
    Bench {
        #[command(subcommand)]
        bench: bench::Bench,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: &Task) -> Result<()> {
    match task {
        Task::Demo(options) => demo::run(options),
        Task::Test(options) => test::run(options),
        Task::Short => test::short_forms(),
        Task::Cross => cross::run(),
        Task::Sanitize(options) => sanitize::run(options),
        Task::Lint => lint::run(),
        Task::Ci => continuous_integration(),
        Task::KillLoop(options) => kill_loop::run(options),
        Task::Damage(options) => damage::run(options),
        Task::Faults(options) => faults::run(options),
        Task::Power(options) => power::run(options),
        Task::Fuzz(options) => fuzz::run(options),
        Task::Minio => Minio::install(),
        Task::Servers => servers(),
        Task::Reader => reader::run(),
        Task::Real(options) => real::run(options),
        Task::Import(options) => import::run(options),
        Task::LabReport(options) => lab_report::run(options),
        Task::Package(options) => package::run(options),
        Task::PublishCheck(options) => publish_check::run(options),
        Task::Bench { bench } => bench::run(bench),
    }
}

/// Runs what continuous integration runs.
fn continuous_integration() -> Result<()> {
    test::run(&test::Options::default())?;
    fuzz::run(&fuzz::Options::quick())?;
    cross::run()?;
    lint::run()
}

/// Installs servers of object stores; that takes minutes.
fn servers() -> Result<()> {
    Minio::install()?;
    FakeGcs::install()?;
    Azurite::install()
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_task_can_be_asked_for() {
        Arguments::command().debug_assert();
    }
}

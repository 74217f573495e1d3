//! The real program on the real disk, with one system call that fails, ends early, or is the last thing it does: each
//! of them in turn, during every command that writes. `strace` counts the calls of an undisturbed run, then injects the
//! fault into the n-th.
//!
//! After each fault: every snapshot that was committed comes back exactly, a command that said it was done did it, some
//! password opens the repository, `check --read-data` is clean, and the next backup works.

use crate::campaign;
use crate::damage::edit;
use crate::kill_loop::generate;
use anyhow::{Context, Result, ensure};
use clap::Args;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::machine;
use siltstone_testbed::program;
use siltstone_testbed::record;
use siltstone_testbed::tool::{Reading, Repository, Tool, restored_place};
use siltstone_testbed::tree::Listing;
use siltstone_testbed::trials;
use siltstone_testbed::workspace::Build;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const STRACE: Needed = Needed { program: "strace", package: "strace" };
const TIME_MAX: Duration = Duration::from_mins(2);
/// The exit codes that are documented, and the loader's own for a program that it could not read.
const CODES: [i32; 9] = [0, 1, 3, 10, 11, 12, 13, 14, 127];
/// Calls that write, or make what was written durable or visible.
const WRITING: &str = "openat,write,pwrite64,writev,fsync,fdatasync,renameat2,renameat,rename,linkat,unlinkat,mkdirat,ftruncate,fallocate,syncfs";
/// Calls that read.
const READING: &str = "read,pread64,getdents64";
/// Calls that read files. A folder that the system says is empty is empty.
const READING_FILES: &str = "read,pread64";
/// A second password, for the commands that add and remove keys.
const OTHER_PASSWORD: &str = "another horse";

/// A writer whose reads failed may be unable to say who it is: then its lease is watched before it is taken over.
const SHORT_LEASES: [&str; 4] = ["--lease-renewal", "250ms", "--lease-timeout", "1s"];

/// Options: how many faults.
#[derive(Args)]
pub(crate) struct Options {
    /// Faults of each kind in each command, evenly spread over its calls; 0: every call.
    #[arg(long, default_value_t = 0)]
    each: u64,
    #[command(flatten)]
    campaign: campaign::Options,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { each: 1, campaign: campaign::Options::default() }
    }
}

/// A fault, as strace is told of it.
#[derive(Clone, Copy)]
struct Fault {
    name: &'static str,
    calls: &'static str,
    inject: &'static str,
}

const FAULTS: [Fault; 5] = [
    Fault { name: "input/output error", calls: WRITING, inject: "error=EIO" },
    Fault { name: "no space", calls: WRITING, inject: "error=ENOSPC" },
    Fault { name: "killed", calls: WRITING, inject: "signal=KILL" },
    Fault { name: "read error", calls: READING, inject: "error=EIO" },
    Fault { name: "end of file", calls: READING_FILES, inject: "retval=0" },
];

/// A command that writes, and what it may do to the snapshots there were.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Operation {
    Backup,
    Forget,
    Rewrite,
    Maintain,
    KeyAdd,
    KeyPasswd,
}

const OPERATIONS: [Operation; 6] = [
    Operation::Backup,
    Operation::Forget,
    Operation::Rewrite,
    Operation::Maintain,
    Operation::KeyAdd,
    Operation::KeyPasswd,
];

/// A folder that every version has; it is taken out of all of them.
const TAKEN_OUT: &str = "folder0";

/// Runs them all; the first thing that is not as it should be ends it.
pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&[STRACE])?;
    let folder = tempfile::tempdir()?;
    let scene = Scene::make(folder.path(), options.campaign.release)?;
    let kinds: Vec<(Operation, Fault)> =
        OPERATIONS.into_iter().flat_map(|operation| FAULTS.map(|fault| (operation, fault))).collect();
    let calls = on_each("faults: undisturbed runs", &kinds, |(operation, fault)| scene.count(*operation, *fault))?;
    let hits: Vec<Hit> = kinds.iter().zip(&calls).flat_map(|(kind, calls)| hits(*kind, *calls, options.each)).collect();
    on_each("faults", &hits, |hit| scene.trial(hit.operation, hit.fault, hit.call).with_context(|| hit.story()))?;
    let mut report = String::from("| command | fault | calls hit | calls made |\n|---|---|---:|---:|\n");
    for ((operation, fault), calls) in kinds.iter().zip(&calls) {
        let hit = hits.iter().filter(|hit| (hit.operation, hit.fault.name) == (*operation, fault.name)).count();
        println!("faults: {operation:?}, {}: {hit} of {calls} calls", fault.name);
        writeln!(report, "| {operation:?} | {} | {hit} | {calls} |", fault.name)?;
    }
    report += "\nCommitted snapshots lost, commands that were done and were not, passwords lost, damage found: 0.\n";
    if options.campaign.record { keep(&report, folder.path()) } else { Ok(()) }
}

/// A fault that hits one call of a command.
struct Hit {
    operation: Operation,
    fault: Fault,
    call: u64,
    /// Calls that an undisturbed run makes.
    calls: u64,
}

impl Hit {
    fn story(&self) -> String {
        format!("{:?}, {}, call {} of {}", self.operation, self.fault.name, self.call, self.calls)
    }
}

/// Returns `each` hits, evenly spread over the calls of a command; 0 for one at every call.
fn hits((operation, fault): (Operation, Fault), calls: u64, each: u64) -> impl Iterator<Item = Hit> {
    let count = if each == 0 { calls } else { each.min(calls) };
    (0..count).map(move |at| {
        let call = (1 + (2 * at + 1) * calls / (2 * count)).min(calls);
        Hit { operation, fault, call, calls }
    })
}

/// Does the work on each item, as many at once as there are cores.
fn on_each<I: Sync, T: Send>(name: &str, items: &[I], work: impl Fn(&I) -> Result<T> + Sync) -> Result<Vec<T>> {
    trials::run(name, items.len() as u64, |at| work(&items[usize::try_from(at)?]))
}

fn keep(report: &str, work: &Path) -> Result<()> {
    let notes =
        ["calls made: by the busiest thread of an undisturbed run; the n-th call of every thread is hit".to_owned()];
    record::keep("faults", &format!("faults-{}", machine::today()), report, &notes, work)
}

struct Scene {
    folder: PathBuf,
    source: PathBuf,
    other_password: PathBuf,
    repository: Repository,
    /// Content that each snapshot restores to.
    committed: BTreeMap<String, Listing>,
    /// The label of the snapshot that is forgotten.
    old: String,
}

impl Scene {
    /// A repository with three versions, the last of which has still to be settled, and a source that has changed
    /// since.
    fn make(folder: &Path, release: bool) -> Result<Self> {
        let silt = Tool::silt_for_trials(Build::of(release), &[])?;
        let source = folder.join("source");
        let other_password = folder.join("other-password");
        fs::write(&other_password, OTHER_PASSWORD)?;
        let mut sequence = Sequence::new(5);
        generate(&source, 2, &mut sequence)?;
        let repository = silt.init(&folder.join("pristine"))?;
        let mut committed = BTreeMap::new();
        for label in ["v0", "v1", "v2"] {
            edit(&source, &mut sequence)?;
            let mut backup = repository.backup_command(&source, label, Reading::Changed);
            if label == "v2" {
                backup.arg("--no-migrate");
            }
            program::quietly(&mut backup)?;
            committed.insert(label.to_owned(), Listing::of(&source)?);
        }
        edit(&source, &mut sequence)?;
        Ok(Self { folder: folder.into(), source, other_password, repository, committed, old: "v1".into() })
    }

    fn command(&self, operation: Operation, repository: &Repository) -> Result<Command> {
        let mut command = match operation {
            Operation::Backup => repository.backup_command(&self.source, "new", Reading::Changed),
            Operation::Forget => repository.forget_command(std::slice::from_ref(&self.old))?,
            _ => repository.command(),
        };
        match operation {
            // A source that cannot be read at all must make no snapshot.
            Operation::Backup => command.env_remove("SILT_SHRINK_GUARD"),
            Operation::Forget => &mut command,
            Operation::Rewrite => command.args(["rewrite", "--forget", "--exclude", TAKEN_OUT]),
            Operation::Maintain => command.arg("maintain"),
            Operation::KeyAdd => command.args(["key", "add", "--new-password-file"]).arg(&self.other_password),
            Operation::KeyPasswd => command.args(["key", "passwd", "--new-password-file"]).arg(&self.other_password),
        };
        command.args(SHORT_LEASES);
        Ok(command)
    }

    /// Counts how often the busiest thread of an undisturbed run makes the calls of this fault: strace counts each
    /// thread's by themselves, so the n-th of every thread is hit.
    fn count(&self, operation: Operation, fault: Fault) -> Result<u64> {
        let copy = tempfile::tempdir_in(&self.folder)?;
        let repository = self.repository.copied_to(&copy.path().join("copy"))?;
        let log = copy.path().join("calls");
        let trace = format!("trace={}", fault.calls);
        program::quietly(&mut under_strace(&self.command(operation, &repository)?, &trace, &log))?;
        let made = fs::read_to_string(log)?;
        let mut by_thread: BTreeMap<&str, u64> = BTreeMap::new();
        for line in made.lines().filter(|line| !line.contains("resumed>")) {
            *by_thread.entry(line.split(' ').next().unwrap_or_default()).or_default() += 1;
        }
        Ok(by_thread.into_values().max().unwrap_or_default())
    }

    fn trial(&self, operation: Operation, fault: Fault, call: u64) -> Result<()> {
        let copy = tempfile::tempdir_in(&self.folder)?;
        let repository = self.repository.copied_to(&copy.path().join("copy"))?;
        let inject = format!("inject={}:{}:when={call}", fault.calls, fault.inject);
        let mut command = under_strace(&self.command(operation, &repository)?, &inject, Path::new("/dev/null"));
        let ended = program::ended_within(&mut command, TIME_MAX)?;
        ensure!(!ended.overdue, "it did not end\n{}", ended.said);
        ensure!(!ended.said.contains("panicked"), "it panicked\n{}", ended.said);
        let killed = fault.inject == "signal=KILL";
        ensure!(
            ended.code.map_or(killed, |code| CODES.contains(&code) || (killed && code == 137)),
            "it ended with {:?}\n{}",
            ended.code,
            ended.said
        );
        self.verify(operation, &repository, ended.code, copy.path())
            .with_context(|| format!("the command ended with {:?} and said:\n{}", ended.code, ended.said.trim_end()))
    }

    /// Looks at what the command left that ended with this exit code.
    fn verify(&self, operation: Operation, repository: &Repository, code: Option<i32>, folder: &Path) -> Result<()> {
        let done = code == Some(0);
        let password = self.password(operation, repository, done)?;
        let quietly = |command: &mut Command| {
            if let Some(file) = &password {
                command.env_remove("SILT_PASSWORD").env("SILT_PASSWORD_FILE", file);
            }
            program::quietly(command)
        };
        let said = quietly(repository.command().args(["snapshots", "--json"]))?;
        let mut expected = self.committed.clone();
        let is_there = |label: &str| said.contains(&format!("\"{label}\""));
        match operation {
            Operation::Backup if is_there("new") => drop(expected.insert("new".into(), Listing::of(&self.source)?)),
            Operation::Backup => ensure!(!done, "a backup that was done is not listed"),
            Operation::Forget if !is_there(&self.old) => drop(expected.remove(&self.old)),
            Operation::Forget => ensure!(!done, "a snapshot that was forgotten is still listed"),
            Operation::Rewrite => {
                // All snapshots lose it by one commit, or none does.
                let listed = quietly(repository.command().args(["ls", "latest", "--tag", "v0"]))?;
                let is_there = listed.contains(&format!("/{TAKEN_OUT}/"));
                ensure!(!(done && is_there), "what was taken out is still listed");
                if !is_there {
                    let without = |(label, listing): (String, Listing)| (label, listing.without(Path::new(TAKEN_OUT)));
                    expected = expected.into_iter().map(without).collect();
                }
            }
            _ => {}
        }
        quietly(repository.command().args(["check", "--read-data"]))?;
        for (label, listing) in &expected {
            let target = tempfile::tempdir_in(folder)?;
            let mut restore = repository.command();
            restore.args(["restore", "latest", "--tag", label, "--target"]).arg(target.path());
            quietly(&mut restore)?;
            let place = restored_place(&self.source, target.path())?;
            let found = Listing::of(&place)?;
            // What of the source could not be read was named, and is not in the snapshot.
            let is_partial = label == "new" && code == Some(3);
            let compared = if is_partial { listing.expect_no_false_file(&found) } else { listing.expect_same(&found) };
            compared.with_context(|| format!("snapshot {label}"))?;
        }
        let mut after = repository.backup_command(&self.source, "after", Reading::Changed);
        quietly(after.args(SHORT_LEASES))?;
        quietly(repository.command().args(["check", "--read-data"])).map(drop)
    }

    /// The file with the password that opens the repository; `None` for the first one.
    fn password(&self, operation: Operation, repository: &Repository, done: bool) -> Result<Option<PathBuf>> {
        let old = program::try_quietly(repository.command().args(["snapshots"]))?.status.success();
        let mut with_other = repository.command();
        with_other.env_remove("SILT_PASSWORD").env("SILT_PASSWORD_FILE", &self.other_password).arg("snapshots");
        let other = program::try_quietly(&mut with_other)?.status.success();
        ensure!(old || other, "no password opens the repository");
        match operation {
            Operation::KeyAdd => ensure!(old && (other || !done), "a key that was added does not open"),
            Operation::KeyPasswd => ensure!(!done || (other && !old), "the password that was changed still opens"),
            _ => ensure!(old, "the password does not open"),
        }
        Ok((!old).then(|| self.other_password.clone()))
    }
}

/// Returns the command, run by strace with this expression, whose output goes to `log`.
fn under_strace(command: &Command, expression: &str, log: &Path) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-e", expression, "-o"]).arg(log);
    strace.arg("--").arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => strace.env(name, value),
            None => strace.env_remove(name),
        };
    }
    strace
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_spread_over_all_calls_or_hit_each() {
        let calls =
            |calls, each| hits((Operation::Backup, FAULTS[0]), calls, each).map(|hit| hit.call).collect::<Vec<_>>();
        assert_eq!(calls(4, 0), [1, 2, 3, 4]);
        assert_eq!(calls(100, 1), [51]);
        assert_eq!(calls(100, 4), [13, 38, 63, 88]);
        assert_eq!(calls(0, 3), [0_u64; 0]);
    }
}

//! Fuzzing, guided by coverage: every parser of outside bytes (`fuzz/`), from seeds taken from the golden repository, beginning with
//! the inputs that once failed. An input that fails is kept below `fuzz/artifacts`; once mended it moves to `fuzz/regressions`.

use crate::workspace;
use anyhow::{Context, Result, ensure};
use clap::Args;
use siltstone_lab::install::{self, Needed};
use siltstone_lab::{machine, program};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// libFuzzer is written in C++.
const CPLUSPLUS: Needed = Needed { program: "c++", package: "g++" };
/// No input may make a parser hold more.
const MEMORY_MIB: u32 = 1024;
/// No input may keep a parser busy for longer, on however slow a machine.
const SECONDS_PER_INPUT: u32 = 20;

/// What to fuzz, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Targets; all of them if none is named.
    targets: Vec<String>,
    /// Seconds for each target.
    #[arg(long, default_value_t = 3600)]
    seconds: u32,
    /// Keeps the result under bench/record.
    #[arg(long)]
    record: bool,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { targets: Vec::new(), seconds: 8, record: false }
    }
}

/// Fuzzes one target after another; the first input that fails ends it.
pub(crate) fn run(options: &Options) -> Result<()> {
    install::ensure(&[install::COMPILER, CPLUSPLUS])?;
    let cargo_fuzz = cargo_fuzz()?;
    let corpus = workspace::target()?.join("fuzz-corpus");
    seeds(&corpus)?;
    let mut report =
        String::from("| target | inputs tried | inputs that reach new code | seconds |\n|---|---:|---:|---:|\n");
    for target in targets(&options.targets)? {
        let said = fuzz(&cargo_fuzz, &target, &corpus.join(&target), options.seconds)?;
        let (tried, kept) = (number_after(&said, "stat::number_of_executed_units:"), kept(&corpus.join(&target))?);
        writeln!(report, "| {target} | {tried} | {kept} | {} |", options.seconds)?;
    }
    println!("{report}");
    if options.record { record(&report) } else { Ok(()) }
}

/// The names of all targets, or those asked for.
fn targets(asked: &[String]) -> Result<Vec<String>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder().join("fuzz_targets"))? {
        let path = entry?.path();
        all.push(path.file_stem().context("a file without a name")?.to_string_lossy().into_owned());
    }
    all.sort();
    if let Some(unknown) = asked.iter().find(|asked| !all.contains(asked)) {
        anyhow::bail!("there is no target {unknown}; there are {}", all.join(", "));
    }
    Ok(if asked.is_empty() { all } else { asked.to_vec() })
}

fn fuzz(cargo_fuzz: &Path, target: &str, corpus: &Path, seconds: u32) -> Result<String> {
    fs::create_dir_all(corpus)?;
    let mut command = fuzzing(cargo_fuzz);
    command.args(["run", "--sanitizer", "none", target]).arg(corpus);
    let regressions = folder().join("regressions").join(target);
    if regressions.is_dir() {
        command.arg(regressions);
    }
    command.args(["--", "-print_final_stats=1"]).args([
        format!("-max_total_time={seconds}"),
        format!("-rss_limit_mb={MEMORY_MIB}"),
        format!("-timeout={SECONDS_PER_INPUT}"),
    ]);
    eprintln!("$ {}", program::command_line(&command));
    let output = program::try_quietly(&mut command)?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let end: Vec<&str> = said.lines().rev().take(60).collect();
    let end: Vec<&str> = end.into_iter().rev().collect();
    ensure!(output.status.success(), "{target} met an input that fails:\n{}", end.join("\n"));
    Ok(said)
}

/// Makes the seeds of all targets.
fn seeds(corpus: &Path) -> Result<()> {
    let mut command = workspace::cargo();
    let golden = workspace::root().join("crates/engine/tests/golden/v1/repository");
    let manifest = folder().join("Cargo.toml");
    command.args(["run", "--quiet", "--release", "--bin", "seeds", "--manifest-path"]).arg(manifest);
    command.env("CARGO_TARGET_DIR", workspace::target()?.join("fuzz-seeds"));
    program::run(command.arg("--").arg(golden).arg(corpus))
}

fn fuzzing(cargo_fuzz: &Path) -> Command {
    let mut command = Command::new(cargo_fuzz);
    command.arg("fuzz").current_dir(workspace::root());
    command
}

/// The program, installed if it is not there.
fn cargo_fuzz() -> Result<PathBuf> {
    if let Some(found) = install::find("cargo-fuzz") {
        return Ok(found);
    }
    let place = workspace::target()?.join("tools");
    let program = place.join("bin/cargo-fuzz");
    if !program.is_file() {
        let mut command = workspace::cargo();
        program::run(command.args(["install", "cargo-fuzz", "--locked", "--version", "0.13.2", "--root"]).arg(&place))?;
    }
    Ok(program)
}

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

fn kept(corpus: &Path) -> Result<usize> {
    Ok(fs::read_dir(corpus)?.count())
}

fn number_after(said: &str, label: &str) -> u64 {
    let line = said.lines().find_map(|line| line.strip_prefix(label));
    line.and_then(|rest| rest.trim().parse().ok()).unwrap_or_default()
}

fn record(report: &str) -> Result<()> {
    let mut lines = vec![format!("commit: {}", workspace::commit())];
    lines.extend(machine::lines(&workspace::root()));
    let list: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    let text = format!("# cargo xtask fuzz, {}\n\n{}\n\n{report}", machine::today(), list.join("\n"));
    let name = format!("fuzz-{}.md", machine::today());
    fs::write(workspace::root().join("bench/record").join(&name), text)?;
    println!("recorded as bench/record/{name}");
    Ok(())
}

//! Fuzzing, guided by coverage: every parser of outside bytes (`crates/fuzz`), from seeds out of the golden repository
//! and fresh objects, and the inputs that once failed (`fuzz/regressions`).
//!
//! An input that fails is kept below `fuzz/artifacts`; once the parser is mended it moves to
//! `fuzz/regressions/<target>`, where the ordinary tests run it too. Inputs that reach new code stay in the corpus,
//! from which the next run goes on.

mod outcome;

use anyhow::{Result, bail, ensure};
use clap::Args;
use outcome::{Outcome, table};
use siltstone_testbed::install::{self, Needed};
use siltstone_testbed::record;
use siltstone_testbed::workspace;
use siltstone_testbed::{machine, program};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::Instant;

/// libFuzzer is written in C++.
const CPLUSPLUS: Needed = Needed { program: "c++", package: "g++" };
/// Variable of the environment that tells the program which target to run.
const TARGET: &str = "SILTSTONE_FUZZ_TARGET";
/// Flags of the compiler that make code say where it has been and what it compared, as `cargo fuzz build --sanitizer
/// none` (0.13) gives them; with them alone nothing has to be installed for it.
const FLAGS: [&str; 9] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-sanitizer-coverage-stack-depth",
    // Two branches that were folded into one look like one.
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg=fuzzing",
    "-Ccodegen-units=16",
];
/// Targets at a time.
const AT_ONCE: usize = 2;
/// No input may make a parser hold more.
const MEMORY_MIB: u32 = 1024;
/// No input may make a parser ask for more at once.
const ALLOCATION_MIB: u32 = 256;
/// No input may keep a parser busy for longer, on however slow a machine.
const SECONDS_PER_INPUT: u32 = 25;
/// Longer inputs reach nothing that shorter ones do not, and take longer.
const INPUT_BYTES_MAX: u32 = 64 << 10;

/// Options: targets to fuzz, and for how long.
#[derive(Args)]
pub(crate) struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 3600)]
    seconds: u32,
    /// Only this target (may be repeated).
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Folder of the inputs that reach code, one for each target: a run goes on where the one before ended.
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Keeps the result under bench/record.
    #[arg(long)]
    record: bool,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { seconds: 6, targets: Vec::new(), corpus: None, record: false }
    }
}

/// Fuzzes some targets at a time. One whose input fails ends; the others go on.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    install::ensure(&[install::COMPILER, CPLUSPLUS])?;
    let program = build()?;
    let names = names(&program, &options.targets)?;
    let built_seconds = begin.elapsed().as_secs();
    let corpus = options.corpus.clone().map_or_else(|| Ok(workspace::target()?.join("fuzz-corpus")), anyhow::Ok)?;
    plant(&program, &corpus)?;
    let campaign = Campaign { program, corpus, seconds: options.seconds, scratch: machine::scratch()? };
    let mut outcomes = campaign.run(&names)?;
    outcomes.sort_by(|a, b| a.target.cmp(&b.target));
    let report = table(&outcomes);
    println!("{report}\nfuzz: built in {built_seconds} s, {} s in all", begin.elapsed().as_secs());
    if options.record {
        keep(&outcomes, options.seconds)?;
    }
    for failed in outcomes.iter().filter(|outcome| outcome.failure.is_some()) {
        eprintln!("{}:\n{}\n", failed.target, failed.failure.as_deref().unwrap_or_default());
    }
    let failed: Vec<&str> =
        outcomes.iter().filter(|outcome| outcome.failure.is_some()).map(|outcome| outcome.target.as_str()).collect();
    ensure!(failed.is_empty(), "inputs that fail were found, see fuzz/artifacts: {}", failed.join(", "));
    Ok(())
}

/// Builds the program that holds all targets, in a folder of its own, and says where it is.
fn build() -> Result<PathBuf> {
    // With a target named, the flags are not those of build scripts.
    let triple = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let target = folder().join("target");
    let mut command = workspace::cargo();
    command.args(["build", "--release", "--target", &triple]).arg("--target-dir").arg(&target);
    command.arg("--manifest-path").arg(folder().join("Cargo.toml")).env("RUSTFLAGS", FLAGS.join(" "));
    program::run(&mut command)?;
    Ok(target.join(triple).join("release/targets"))
}

/// The names of all targets, or those asked for.
fn names(program: &Path, asked: &[String]) -> Result<Vec<String>> {
    let said = program::quietly(Command::new(program).arg("--list"))?;
    let all: Vec<&str> = said.lines().collect();
    if let Some(unknown) = asked.iter().find(|asked| !all.contains(&asked.as_str())) {
        bail!("there is no target {unknown}; there are {}", all.join(", "));
    }
    let is_asked = |name: &&str| asked.is_empty() || asked.iter().any(|asked| asked == name);
    Ok(all.into_iter().filter(is_asked).map(str::to_owned).collect())
}

/// Writes the seeds of all targets.
fn plant(program: &Path, corpus: &Path) -> Result<()> {
    let golden = workspace::root().join("crates/engine/tests/golden/v1/repository");
    program::quietly(Command::new(program).arg("--plant").arg(golden).arg(corpus)).map(drop)
}

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

struct Campaign {
    /// Holds all targets.
    program: PathBuf,
    corpus: PathBuf,
    seconds: u32,
    /// For the temporary files of programs that are killed: some targets write one for every input.
    scratch: tempfile::TempDir,
}

impl Campaign {
    fn run(&self, names: &[String]) -> Result<Vec<Outcome>> {
        let (left, outcomes) = (Mutex::new(names.iter()), Mutex::new(Vec::new()));
        let next = || left.lock().expect("no worker panics").next();
        std::thread::scope(|scope| {
            let work = || {
                while let Some(name) = next() {
                    let outcome = self.fuzz(name);
                    outcomes.lock().expect("no worker panics").push(outcome);
                }
            };
            (0..AT_ONCE).for_each(|_| drop(scope.spawn(work)));
        });
        outcomes.into_inner().expect("no worker panics").into_iter().collect()
    }

    fn fuzz(&self, target: &str) -> Result<Outcome> {
        let corpus = self.corpus.join(target);
        let artifacts = folder().join("artifacts").join(target);
        fs::create_dir_all(&artifacts)?;
        let mut command = Command::new(&self.program);
        command.env(TARGET, target).arg(&corpus).current_dir(self.scratch.path()).env("TMPDIR", self.scratch.path());
        let regressions = folder().join("regressions").join(target);
        if regressions.is_dir() {
            command.arg(regressions);
        }
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-print_final_stats=1").args([
            format!("-max_total_time={}", self.seconds),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            format!("-malloc_limit_mb={ALLOCATION_MIB}"),
            format!("-timeout={SECONDS_PER_INPUT}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
        ]);
        let begin = Instant::now();
        let output = program::try_quietly(&mut command)?;
        let said = String::from_utf8_lossy(&output.stderr);
        let outcome = Outcome::read(target, &said, output.status.success(), begin.elapsed());
        let outcome = Outcome { inputs: fs::read_dir(&corpus)?.count(), ..outcome };
        eprintln!("{outcome}");
        Ok(outcome)
    }
}

fn keep(outcomes: &[Outcome], seconds: u32) -> Result<()> {
    let notes = [
        format!("{seconds} seconds for each target, {AT_ONCE} targets at a time"),
        format!("limits: {MEMORY_MIB} MiB, {ALLOCATION_MIB} MiB at once, {SECONDS_PER_INPUT} s for an input"),
    ];
    let name = format!("fuzz-{}", machine::today());
    record::keep("fuzz", &name, &table(outcomes).to_string(), &notes, &workspace::root())
}

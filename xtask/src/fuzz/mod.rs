//! Fuzzing, guided by coverage: every parser of outside bytes (`crates/fuzz`), from seeds out of the golden repository
//! and fresh objects, and the inputs that once failed (`fuzz/regressions`).
//!
//! An input that fails is kept below `fuzz/artifacts`; once the parser is mended it moves to
//! `fuzz/regressions/<target>`, where the ordinary tests run it too. Inputs that reach new code stay in the corpus,
//! from which the next run goes on.
//!
//! Time is processor time, given in rounds, first to the target that has had least. With `--resume` the rounds of
//! earlier runs count: those on the same corpus, and those in the ledger that the repository keeps (`fuzz/ledger.json`,
//! which names the commits). So hours can be had in pieces, on several machines. Every run begins with the kept corpus
//! (`fuzz/corpus`) as well; `--keep` writes both anew.

mod ledger;
mod outcome;

use crate::campaign;
use crate::test::cargo;
use anyhow::{Result, bail, ensure};
use clap::Args;
use ledger::Ledger;
use outcome::{Outcome, table};
use siltstone_testbed::install;
use siltstone_testbed::record;
use siltstone_testbed::workspace;
use siltstone_testbed::{machine, program};
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Variable of the environment that tells the program which target to run.
const TARGET: &str = "SILTSTONE_FUZZ_TARGET";
/// Longest round of a target. What was done is kept after each, and the corpus is read again at the next.
const ROUND_SECONDS: u64 = 300;
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
/// Longer inputs are kept up to here: what lies beyond adds little, and every clone has the kept corpus.
const KEPT_BYTES_MAX: u32 = 8 << 10;

/// Options: targets to fuzz, and for how long.
#[derive(Args, Default)]
pub(crate) struct Options {
    /// Seconds of processor time for each target: 3600 by default, 6 with --quick.
    #[arg(long)]
    seconds: Option<u64>,
    /// Some seconds for each target, guided by the code of this workspace alone, on dependencies that tests have
    /// compiled.
    #[arg(long)]
    quick: bool,
    /// Counts the time and the results of earlier runs on this corpus, and of the kept ledger.
    #[arg(long)]
    resume: bool,
    /// Only this target (may be repeated).
    #[arg(long = "target", value_name = "TARGET")]
    targets: Vec<String>,
    /// Folder of the inputs that reach code, one for each target: a run goes on where the one before ended.
    #[arg(long, value_name = "FOLDER")]
    corpus: Option<PathBuf>,
    /// Takes this copy of the program of the fuzzer (`target/fuzz/*/debug/examples/guided`) and builds none: a long run
    /// is not disturbed by work on the sources.
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Keeps the smallest inputs that reach as much, and the ledger, in the repository (implies --resume). With
    /// `--seconds 0` nothing is fuzzed before.
    #[arg(long)]
    keep: bool,
    /// Keeps the result under bench/record.
    #[arg(long)]
    record: bool,
}

impl Options {
    /// The form that continuous integration runs.
    pub(crate) fn quick() -> Self {
        Self { quick: true, ..Self::default() }
    }

    fn seconds(&self) -> u64 {
        self.seconds.unwrap_or(if self.quick { 6 } else { 3600 })
    }
}

/// Fuzzes some targets at a time. One whose input fails ends; the others go on.
pub(crate) fn run(options: &Options) -> Result<()> {
    let begin = Instant::now();
    install::ensure(&[install::COMPILER, install::CPLUSPLUS])?;
    // It runs in a folder of its own.
    let program = std::path::absolute(options.program.clone().map_or_else(|| build(options.quick), anyhow::Ok)?)?;
    let names = names(&program, &options.targets)?;
    let commit = program::quietly(Command::new(&program).arg("--commit"))?.trim().to_owned();
    eprintln!("fuzz: {} targets of {commit}, built in {} s", names.len(), begin.elapsed().as_secs());
    let corpus = options.corpus.clone().map_or_else(|| Ok(workspace::target()?.join("fuzz-corpus")), anyhow::Ok)?;
    let mut campaign = Campaign {
        program,
        // The program runs in a folder of its own.
        corpus: std::path::absolute(corpus)?,
        commit,
        seconds: options.seconds(),
        resume: options.resume || options.keep,
        ledger: Mutex::default(),
        scratch: machine::scratch()?,
    };
    campaign.plant(&campaign.corpus, true)?;
    if campaign.resume {
        campaign.ledger = Mutex::new(campaign.earlier()?);
    }
    let outcomes = campaign.run(&names)?;
    let blind = outcomes.iter().find(|outcome| outcome.executions > 0 && outcome.edges == 0);
    if let Some(Outcome { target, .. }) = blind {
        bail!("{target}: no code said where it had been; was {} compiled by fuzz/rustc?", campaign.program.display());
    }
    let ledger = campaign.ledger.lock().expect("no worker panics");
    let rows: Vec<&Outcome> = names.iter().flat_map(|name| ledger.rows_of(name)).collect();
    println!("{}\nfuzz: {} s in all", table(&rows), begin.elapsed().as_secs());
    if options.record {
        record(&rows, options.seconds())?;
    }
    if options.keep {
        campaign.keep(&names)?;
        ledger.save(&folder().join(LEDGER))?;
    }
    say_failures(&outcomes)
}

/// Shows what failed; an error if anything did.
fn say_failures(outcomes: &[Outcome]) -> Result<()> {
    let mut failed = Vec::new();
    for (outcome, said) in outcomes.iter().filter_map(|outcome| Some((outcome, outcome.failure.as_deref()?))) {
        eprintln!("{}:\n{said}\n", outcome.target);
        failed.push(outcome.target.as_str());
    }
    ensure!(failed.is_empty(), "inputs that fail were found, see fuzz/artifacts: {}", failed.join(", "));
    Ok(())
}

/// Builds the program that holds all targets, and says where it is. `fuzz/rustc` makes code say where it has been: that
/// of all crates in a folder of their own, or, to be quick, that of this workspace alone, on dependencies that tests
/// have compiled.
fn build(is_quick: bool) -> Result<PathBuf> {
    let mut command = cargo("build");
    command.args(["--features", "siltstone-fuzz/guided", "--example", "guided"]);
    command.env("SILTSTONE_FUZZ_COMMIT", workspace::commit());
    let (compiler, target) = (folder().join("rustc"), workspace::target()?);
    let built = if is_quick {
        command.env("RUSTC_WORKSPACE_WRAPPER", compiler);
        target
    } else {
        let (triple, target) = (format!("{}-unknown-linux-gnu", std::env::consts::ARCH), target.join("fuzz"));
        command.args(["--target", &triple, "--target-dir"]).arg(&target).env("RUSTC_WRAPPER", compiler);
        target.join(triple)
    };
    program::run(&mut command)?;
    Ok(built.join("debug/examples/guided"))
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

fn folder() -> PathBuf {
    workspace::root().join("fuzz")
}

/// The folder of kept inputs, an archive for each target.
fn archives() -> PathBuf {
    folder().join("corpus")
}

/// Name of the ledger: the kept one in [`folder`], that of a corpus in its folder.
const LEDGER: &str = "ledger.json";

struct Campaign {
    /// Holds all targets.
    program: PathBuf,
    corpus: PathBuf,
    /// Commit that is fuzzed.
    commit: String,
    seconds: u64,
    /// True if what was done before counts, and what is done now is to count later.
    resume: bool,
    /// Account of what was done, now and before, if that counts.
    ledger: Mutex<Ledger>,
    /// For the temporary files of programs that are killed: some targets write one for every input.
    scratch: tempfile::TempDir,
}

impl Campaign {
    /// Writes the seeds of all targets below a folder, and the kept inputs too if they are wanted.
    fn plant(&self, folder: &Path, with_kept: bool) -> Result<()> {
        let golden = workspace::root().join("crates/engine/tests/golden/v1/repository");
        let mut command = Command::new(&self.program);
        command.arg("--plant").arg(golden).arg(folder).args(with_kept.then(archives));
        program::quietly(&mut command).map(drop)
    }

    /// Returns what earlier runs did, here and elsewhere.
    fn earlier(&self) -> Result<Ledger> {
        let mut ledger = Ledger::load(&folder().join(LEDGER))?;
        ledger.join(Ledger::load(&self.corpus.join(LEDGER))?);
        Ok(ledger)
    }

    fn run(&self, names: &[String]) -> Result<Vec<Outcome>> {
        let waiting: Vec<_> = names.iter().map(|name| self.ledger().row(name, &self.commit)).collect();
        let (waiting, ended) = (Mutex::new(waiting), Mutex::new(Vec::new()));
        let next = || {
            let mut waiting = waiting.lock().expect("no worker panics");
            let least = (0..waiting.len()).min_by_key(|at| self.time_had(&waiting[*at]))?;
            Some(waiting.swap_remove(least))
        };
        let work = || -> Result<()> {
            while let Some(mut outcome) = next() {
                if outcome.failure.is_none() && self.seconds_left(&outcome) > 0 {
                    self.round(&mut outcome)?;
                    waiting.lock().expect("no worker panics").push(outcome);
                } else {
                    eprintln!("{outcome}");
                    ended.lock().expect("no worker panics").push(outcome);
                }
            }
            Ok(())
        };
        campaign::each(0..AT_ONCE, |_| work())?;
        let mut outcomes = ended.into_inner().expect("no worker panics");
        outcomes.sort_by(|a, b| a.target.cmp(&b.target));
        Ok(outcomes)
    }

    fn ledger(&self) -> MutexGuard<'_, Ledger> {
        self.ledger.lock().expect("no worker panics")
    }

    /// Processor time that a target had, on all commits.
    fn time_had(&self, outcome: &Outcome) -> Duration {
        outcome.processor + self.ledger().time_elsewhere(&outcome.target, &self.commit)
    }

    /// Whole seconds: less is not worth another start.
    fn seconds_left(&self, outcome: &Outcome) -> u64 {
        Duration::from_secs(self.seconds).saturating_sub(self.time_had(outcome)).as_secs()
    }

    fn round(&self, outcome: &mut Outcome) -> Result<()> {
        let target = outcome.target.clone();
        let seconds = self.seconds_left(outcome).min(ROUND_SECONDS);
        let corpus = self.corpus.join(&target);
        let artifacts = folder().join("artifacts").join(&target);
        fs::create_dir_all(&artifacts)?;
        let mut command = self.fuzzer(&target);
        command.arg(&corpus);
        let regressions = folder().join("regressions").join(&target);
        if regressions.is_dir() {
            command.arg(regressions);
        }
        command.arg(format!("-artifact_prefix={}/", artifacts.display())).arg("-print_final_stats=1").args([
            format!("-max_total_time={seconds}"),
            format!("-rss_limit_mb={MEMORY_MIB}"),
            format!("-malloc_limit_mb={ALLOCATION_MIB}"),
            format!("-timeout={SECONDS_PER_INPUT}"),
            format!("-max_len={INPUT_BYTES_MAX}"),
        ]);
        // The fuzzer ends by itself, and ends inputs that take too long; this is for one that does not. It looks at the
        // clock only once its corpus is read, which takes long where other programs have the processors.
        let limit = Duration::from_secs(10 * seconds + u64::from(4 * SECONDS_PER_INPUT));
        let ended = program::ended_within(&mut command, limit)?;
        outcome.add(&ended, fs::read_dir(&corpus)?.count());
        let mut ledger = self.ledger();
        ledger.put(outcome.clone());
        if !self.resume || outcome.failure.is_some() {
            return Ok(());
        }
        // Other runs on this corpus add rows of their own meanwhile.
        let lock = fs::File::create(self.corpus.join(LEDGER).with_extension("lock"))?;
        lock.lock()?;
        ledger.join(Ledger::load(&self.corpus.join(LEDGER))?);
        ledger.save(&self.corpus.join(LEDGER))
    }

    /// The program, to be run for a target.
    fn fuzzer(&self, target: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.env(TARGET, target).current_dir(self.scratch.path()).env("TMPDIR", self.scratch.path());
        command
    }

    /// Keeps the smallest inputs that reach, beside the seeds, what the whole corpus reaches.
    fn keep(&self, names: &[String]) -> Result<()> {
        let planted = self.scratch.path().join("kept");
        self.plant(&planted, false)?;
        for target in names {
            let chosen = planted.join(target);
            let files = || fs::read_dir(&chosen)?.map(|entry| Ok(entry?.path())).collect::<Result<HashSet<_>>>();
            let seeds = files()?;
            let mut merge = self.fuzzer(target);
            merge.args(["-merge=1", &format!("-max_len={KEPT_BYTES_MAX}")]).arg(&chosen).arg(self.corpus.join(target));
            program::quietly(&mut merge)?;
            seeds.iter().try_for_each(fs::remove_file)?;
            program::quietly(Command::new(&self.program).arg("--pack").arg(&chosen).arg(archives()).arg(target))?;
            eprintln!("fuzz {target}: {} inputs are kept beside {} seeds", files()?.len(), seeds.len());
        }
        Ok(())
    }
}

fn record(rows: &[&Outcome], seconds: u64) -> Result<()> {
    let notes = [
        format!("{seconds} seconds of processor time for each target, {AT_ONCE} targets at a time"),
        format!("limits: {MEMORY_MIB} MiB, {ALLOCATION_MIB} MiB at once, {SECONDS_PER_INPUT} s for an input"),
    ];
    let name = format!("fuzz-{}", machine::today());
    record::keep("fuzz", &name, &table(rows).to_string(), &notes, &workspace::root())
}

//! A campaign of damage: a small repository is copied, one object of the copy is mutated, and a few commands of the
//! real program are run on it. What must never come of it:
//!
//! - a panic, a signal, a hang, or memory beyond a limit;
//! - a restore that ends well and is not what was backed up, or one that fails and leaves a file with its name and not
//!   its content;
//! - a backup that ends well and cannot be restored.
//!
//! It also counts what one flipped bit costs: snapshots that no longer come back whole, and files of each.

mod mutation;
mod scene;
mod trial;

use crate::campaign;
use anyhow::{Context, Result};
use clap::Args;
use mutation::Mutation;
use scene::Scene;
pub(crate) use scene::edit;
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::machine;
use siltstone_testbed::record;
use siltstone_testbed::trials;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Options: how much is damaged, and on what.
#[derive(Args)]
pub(crate) struct Options {
    /// Mutations tried.
    #[arg(long, default_value_t = 5000)]
    trials: u64,
    /// Bits flipped in containers to count what one costs, one at a time.
    #[arg(long, default_value_t = 200)]
    flips: u64,
    /// Seed that mutations and commands are drawn from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Percent of parity beside containers of data.
    #[arg(long, value_name = "PERCENT")]
    parity: Option<u32>,
    #[command(flatten)]
    campaign: campaign::Options,
}

impl Options {
    /// The form that is part of the tests.
    pub(crate) fn short() -> Self {
        Self { trials: 60, flips: 10, seed: 1, parity: None, campaign: campaign::Options::default() }
    }
}

/// Counts of the mutations of one kind.
#[derive(Clone, Copy, Default)]
struct Count {
    trials: u64,
    /// Trials in which every command ended well.
    unhurt: u64,
    commands: u64,
}

/// Runs the campaign; the first thing that must never be ends it with the seed and the trial.
pub(crate) fn run(options: &Options) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let scene = Scene::make(folder.path(), options.campaign.release, options.parity)?;
    let mut counts: BTreeMap<(String, String), Count> = BTreeMap::new();
    let mut peak_bytes = 0;
    let objects = scene.objects()?;
    let outcomes = trials::run("damage", options.trials, |trial| {
        let mut sequence = Sequence::of(&[options.seed, trial]);
        let mutation = Mutation::draw(&objects, &mut sequence);
        let told = || format!("seed {}, trial {trial}: {mutation}", options.seed);
        let outcome = trial::run(&scene, &mutation, &mut sequence).with_context(told)?;
        Ok((mutation, outcome))
    })?;
    for (mutation, outcome) in outcomes {
        let count = counts.entry((mutation.kind_of_object(), mutation.kind.to_string())).or_default();
        count.trials += 1;
        count.unhurt += u64::from(outcome.unhurt);
        count.commands += outcome.commands;
        peak_bytes = peak_bytes.max(outcome.peak_bytes);
    }
    let mut report = String::from("| object | mutation | trials | commands | trials in which all ended well |\n");
    report += "|---|---|---:|---:|---:|\n";
    for ((object, kind), Count { trials, commands, unhurt }) in &counts {
        writeln!(report, "| {object} | {kind} | {trials} | {commands} | {unhurt} |")?;
    }
    writeln!(report, "\nPanics, hangs, restores that lie: 0. Peak memory of any command: {} MiB.", peak_bytes >> 20)?;
    report += &flips(&scene, &objects, options)?;
    println!("{report}");
    if options.campaign.record { keep(&report, options) } else { Ok(()) }
}

/// The cost of one flipped bit in a container, place by place.
fn flips(scene: &Scene, objects: &[(String, u64)], options: &Options) -> Result<String> {
    if options.flips == 0 {
        return Ok(String::new());
    }
    let mut lost_snapshots = vec![0_u64; scene.versions.len() + 1];
    let mut lost_files = vec![0_usize; scene.versions.len()];
    let lost = trials::run("damage: flips", options.flips, |flip| {
        let mut sequence = Sequence::of(&[options.seed, u64::MAX, flip]);
        let mutation = Mutation::flip_in_a_container(objects, &mut sequence).context("there are containers")?;
        let (folder, repository) = trial::mutated(scene, &mutation)?;
        let lost = |version| trial::files_lost(scene, &repository, folder.path(), version);
        scene.versions.iter().map(lost).collect::<Result<Vec<usize>>>().with_context(|| mutation.to_string())
    })?;
    for lost in lost {
        lost_snapshots[lost.iter().filter(|files| **files > 0).count()] += 1;
        for (all, files) in lost_files.iter_mut().zip(lost) {
            *all += files;
        }
    }
    let mut report = format!("\n{} bits flipped in containers, one at a time.\n\n", options.flips);
    writeln!(report, "| snapshots not whole afterwards, of {} | flips |\n|---:|---:|", scene.versions.len())?;
    for (lost, flips) in lost_snapshots.iter().enumerate() {
        writeln!(report, "| {lost} | {flips} |")?;
    }
    let all: Vec<String> = lost_files.iter().map(usize::to_string).collect();
    writeln!(report, "\nFiles lost by all flips together, of each snapshot from the oldest: {}.", all.join(", "))?;
    Ok(report)
}

/// Keeps the report, under a name that says how much parity there was.
fn keep(report: &str, options: &Options) -> Result<()> {
    let parity = options.parity.map_or(String::new(), |percent| format!("-parity-{percent}"));
    let name = format!("damage-{}{parity}", machine::today());
    let notes = [format!("{} trials, {} flips, seed {}", options.trials, options.flips, options.seed)];
    record::keep("damage", &name, report, &notes, &std::env::temp_dir())
}

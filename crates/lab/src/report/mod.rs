//! Showing what was found: one [`Report`], from which tables, files and the page are made.

mod csv;
mod figure;
pub mod html;
mod json;
mod plot;
#[cfg(test)]
mod sample;
mod tables;

pub use figure::{Axis, Bars, Figure, Line, Plot, Point, Scale};

use crate::claims::{self, Judged};
use crate::experiment::{Experiment, Finding, Head};
use crate::run::{self, Recorded, RunPlan};
use crate::settings::Settings;
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// All that a run has to show.
#[derive(Clone, Debug)]
pub struct Report {
    /// Settings of the run.
    pub settings: Settings,
    /// Version of the program, and the commit it was built from where that is known: `0.1.0 (1a2b3c4)`.
    pub version: String,
    /// The day the run began, `2026-11-21`.
    pub day: String,
    /// The machine, as `machine::lines` has it: `processor: ...`.
    pub machine: Vec<String>,
    /// Inputs, in the order of measuring.
    pub inputs: Vec<InputSummary>,
    /// Experiments, in the order of measuring.
    pub experiments: Vec<Head>,
    /// Findings: grouped by experiment and then by input, each in the order above.
    pub findings: Vec<Finding>,
    /// The plots of each experiment that has some, by its name.
    pub figures: Vec<(String, Vec<Figure>)>,
    /// Advice for the user's data, sentences without Markdown, by the experiment's name.
    pub advice: Vec<(String, Vec<String>)>,
    /// Experiments that were left out, and why, a line each: those that need two versions, of data that has one.
    pub skipped: Vec<String>,
    /// True if all that was asked for was measured; if not, the run was interrupted or failed.
    pub is_whole: bool,
}

/// Sorts the findings of an experiment on each input by a measure, the greatest first; what has none comes last.
fn sort(findings: &mut [Finding], experiment: &str, measure: Option<&str>) {
    let Some(measure) = measure else { return };
    for of_input in findings.chunk_by_mut(|one, other| one.experiment == other.experiment && one.data == other.data) {
        if of_input[0].experiment == experiment {
            let value = |finding: &Finding| finding.median(measure).unwrap_or(f64::NEG_INFINITY);
            of_input.sort_by(|one, other| value(other).total_cmp(&value(one)));
        }
    }
}

/// Some data, described.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputSummary {
    /// Name, as in [`Finding::data`].
    pub name: String,
    /// Description, in a sentence.
    pub description: String,
    /// Bytes of all its versions.
    pub bytes: u64,
    /// Number of versions.
    pub versions: usize,
}

impl Report {
    /// That of the run in this folder, measured by these experiments.
    ///
    /// # Errors
    /// If there is no run, or its journal is damaged.
    pub fn read(all: &[Box<dyn Experiment>], folder: &Path) -> Result<Self> {
        Ok(Self::new(all, Recorded::read(folder)?))
    }

    fn new(all: &[Box<dyn Experiment>], recorded: Recorded) -> Self {
        let plan = RunPlan::of(all, &recorded.header.settings, &recorded.header.inputs);
        let mut findings = run::findings(&plan, &recorded);
        let (mut figures, mut advice) = (Vec::new(), Vec::new());
        let mut skipped = plan.skipped;
        for experiment in &plan.experiments {
            let is_own = |finding: &&Finding| finding.experiment == experiment.name();
            let own: Vec<Finding> = findings.iter().filter(is_own).cloned().collect();
            if own.is_empty() {
                continue;
            }
            figures.push((experiment.name().to_owned(), experiment.figures(&own)));
            advice.push((experiment.name().to_owned(), experiment.advice(&own)));
        }
        for experiment in &plan.experiments {
            sort(&mut findings, experiment.name(), experiment.sorted_by());
        }
        figures.retain(|(_, figures)| !figures.is_empty());
        advice.retain(|(_, sentences)| !sentences.is_empty());
        let steps: Vec<_> = plan.steps.iter().map(|step| recorded.step(&step.key)).collect();
        skipped.extend(steps.iter().flatten().filter_map(|step| step.skipped.clone()));
        for input in &recorded.header.inputs {
            let left_out = recorded.left_out(&input.name);
            if !left_out.is_empty() {
                skipped.push(format!("of {}, where it is measured in memory: {left_out}", input.name));
            }
        }
        let is_whole = steps.iter().all(|step| step.is_some_and(|step| step.is_done));
        let experiments = plan.experiments.into_iter().map(Experiment::head).collect();
        let run::Header { version, day, machine, settings, inputs, .. } = recorded.header;
        Self { settings, version, day, machine, inputs, experiments, findings, figures, advice, skipped, is_whole }
    }

    /// Writes everything that is made from it into this folder; returns what was written.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<Vec<PathBuf>> {
        let files =
            [("results.csv", csv::text(self)?), ("results.json", json::text(self)?), ("report.html", html::page(self))];
        let write = |(name, text): (&str, String)| {
            let path = folder.join(name);
            fs::write(&path, text).with_context(|| format!("{} cannot be written", path.display()))?;
            Ok(path)
        };
        files.into_iter().map(write).collect()
    }

    /// Returns what a terminal shows: a table per experiment and input, what failed, what was left out, and advice.
    pub fn text(&self) -> String {
        tables::text(self)
    }

    /// Names the processor, and the instruction sets that were measured where the run says so.
    pub fn processor(&self) -> String {
        let after = |name: &str| self.machine.iter().find_map(|line| line.strip_prefix(name));
        [after("processor: "), after("instruction sets: ")].into_iter().flatten().collect::<Vec<_>>().join("; ")
    }

    /// Findings without a result: methods that were wrong or could not be run.
    pub fn failures(&self) -> usize {
        self.findings.iter().filter(|finding| finding.wrong.is_some()).count()
    }

    /// Returns the findings of this experiment on this input (`""` where it needs none), in the order of its table.
    pub fn found<'r>(&'r self, experiment: &'r str, data: &'r str) -> impl Iterator<Item = &'r Finding> {
        self.findings.iter().filter(move |finding| finding.experiment == experiment && finding.data == data)
    }

    /// The papers' claims of which this run measured something.
    pub fn claims(&self) -> Vec<Judged> {
        let mut judged = claims::judge(&self.findings);
        judged.retain(|judged| !judged.by_data.is_empty());
        judged
    }

    /// The plots of this experiment.
    pub fn figures_of(&self, experiment: &str) -> &[Figure] {
        self.figures.iter().find(|(name, _)| name == experiment).map_or(&[], |(_, figures)| figures)
    }

    /// The advice of this experiment.
    pub fn advice_of(&self, experiment: &str) -> &[String] {
        self.advice.iter().find(|(name, _)| name == experiment).map_or(&[], |(_, sentences)| sentences)
    }
}

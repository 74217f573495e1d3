//! Showing what was found: one [`Report`], from which tables, files and the page are made.

mod figure;
pub mod html;
mod plot;

pub use figure::{Axis, Bars, Figure, Line, Plot, Point, Scale};

use crate::experiment::{Finding, Needs};
use crate::settings::Settings;
use serde::{Deserialize, Serialize};

/// All that a run has to show.
#[derive(Clone, Debug)]
pub struct Report {
    /// What the run was made with.
    pub settings: Settings,
    /// Version of the program, and the commit it was built from where that is known: `0.1.0 (1a2b3c4)`.
    pub version: String,
    /// The day the run began, `2026-11-21`.
    pub day: String,
    /// The machine, as `machine::lines` has it: `processor: ...`.
    pub machine: Vec<String>,
    /// What was measured on, in the order of measuring.
    pub inputs: Vec<InputSummary>,
    /// What was measured, in the order of measuring.
    pub experiments: Vec<ExperimentSummary>,
    /// What came of it: grouped by experiment and then by input, each in the order above.
    pub findings: Vec<Finding>,
    /// The plots of each experiment that has some, by its name.
    pub figures: Vec<(String, Vec<Figure>)>,
    /// What follows for the user's data, sentences without Markdown, by the experiment's name.
    pub advice: Vec<(String, Vec<String>)>,
    /// What was left out, and why, a line each: experiments that need two versions, of data that has one.
    pub skipped: Vec<String>,
    /// Whether all that was asked for was measured; if not, the run was interrupted or failed.
    pub is_whole: bool,
}

/// Some data, described.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct InputSummary {
    /// Name, as in [`Finding::data`].
    pub name: String,
    /// What it is, in a sentence.
    pub description: String,
    /// Bytes of all its versions.
    pub bytes: u64,
    /// Number of versions.
    pub versions: usize,
}

/// An experiment, described.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExperimentSummary {
    /// Name, as in [`Finding::experiment`].
    pub name: &'static str,
    /// What it asks, without a full stop.
    pub title: &'static str,
    /// Tables and figures of papers that it repeats.
    pub reproduces: &'static [&'static str],
    /// What it is measured on.
    pub needs: Needs,
    /// Columns of its table: parameters, then measures.
    pub columns: &'static [&'static str],
}

impl Report {
    /// What was found by this experiment on this input (`""` where it needs none), in the order of its table.
    pub fn found<'r>(&'r self, experiment: &'r str, data: &'r str) -> impl Iterator<Item = &'r Finding> {
        self.findings.iter().filter(move |finding| finding.experiment == experiment && finding.data == data)
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

//! Which experiment is run on which input: a pure function of the settings and of what the data is like.

use super::StepKey;
use crate::experiment::{Experiment, Needs};
use crate::report::InputSummary;
use crate::settings::Settings;

/// All that is to be done, in order.
pub struct RunPlan<'e> {
    /// The steps: input by input, so that one input at a time is in memory; then those that need no data.
    pub steps: Vec<PlannedStep<'e>>,
    /// The experiments, in the order in which the program lists them.
    pub experiments: Vec<&'e dyn Experiment>,
    /// Steps that are left out, and why.
    pub skipped: Vec<String>,
}

/// An experiment on an input.
pub struct PlannedStep<'e> {
    /// The experiment.
    pub experiment: &'e dyn Experiment,
    /// Which input, if it needs one.
    pub input: Option<usize>,
    /// Both by name.
    pub key: StepKey,
}

impl PlannedStep<'_> {
    /// Names both: `chunk-sizes on photos`.
    pub fn text(&self) -> String {
        let StepKey { experiment, data } = &self.key;
        if data.is_empty() { experiment.clone() } else { format!("{experiment} on {data}") }
    }
}

impl<'e> RunPlan<'e> {
    /// Plans what these settings ask for on this data.
    pub fn of(all: &'e [Box<dyn Experiment>], settings: &Settings, inputs: &[InputSummary]) -> Self {
        let chosen = all.iter().map(AsRef::as_ref).filter(|experiment| settings.chooses(experiment.name()));
        let experiments: Vec<&dyn Experiment> = chosen.collect();
        let step = |experiment: &'e dyn Experiment, input: Option<usize>| {
            let data = input.map_or(String::new(), |input| inputs[input].name.clone());
            let key = StepKey { experiment: experiment.name().to_owned(), data };
            PlannedStep { experiment, input, key }
        };
        let needs_data = |experiment: &&dyn Experiment| experiment.head().needs != Needs::Nothing;
        let (bound, free): (Vec<&dyn Experiment>, Vec<_>) = experiments.iter().copied().partition(needs_data);
        let mut steps: Vec<PlannedStep> = Vec::new();
        let mut skipped = Vec::new();
        for (number, input) in inputs.iter().enumerate() {
            let fits = |experiment: &&dyn Experiment| experiment.head().needs == Needs::Bytes || input.versions > 1;
            let (fitting, rest): (Vec<&dyn Experiment>, Vec<_>) = bound.iter().copied().partition(fits);
            steps.extend(fitting.into_iter().map(|experiment| step(experiment, Some(number))));
            if !rest.is_empty() {
                let names: Vec<&str> = rest.iter().map(|experiment| experiment.name()).collect();
                skipped.push(format!(
                    "{} has one version and these need two or more: {} (--versions takes each entry of a folder as one)",
                    input.name,
                    names.join(", ")
                ));
            }
        }
        if inputs.is_empty() && !bound.is_empty() {
            let names: Vec<&str> = bound.iter().map(|experiment| experiment.name()).collect();
            skipped.push(format!("there is no data, and these need some: {}", names.join(", ")));
        }
        steps.extend(free.into_iter().map(|experiment| step(experiment, None)));
        Self { steps, experiments, skipped }
    }
}

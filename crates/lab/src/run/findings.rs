//! From runs to findings: all rounds of a subject together, point by point.

use super::{Ran, Recorded, RunPlan, Step, StepKey, Verdict};
use crate::experiment::{Finding, Row};
use serde_json::Value;
use std::collections::BTreeMap;

/// Returns the findings of a journal: grouped by experiment in the order of the program's list, then by input, then by
/// subject and point. It does not depend on the order in which runs were made.
pub fn findings(plan: &RunPlan, recorded: &Recorded) -> Vec<Finding> {
    let of_experiment = |name: &'static str| plan.steps.iter().filter(move |step| step.experiment.name() == name);
    let steps = plan.experiments.iter().flat_map(|experiment| of_experiment(experiment.name()));
    steps.filter_map(|step| Some((&step.key, recorded.step(&step.key)?))).flat_map(of_step).collect()
}

fn of_step((key, step): (&StepKey, &Step)) -> Vec<Finding> {
    if let Some(reason) = &step.broken {
        return vec![wrong(key, Row::new(), format!("could not be run: {reason}"))];
    }
    let mut subjects: BTreeMap<usize, Vec<&Ran>> = BTreeMap::new();
    for ran in step.runs.values() {
        subjects.entry(ran.subject).or_default().push(ran);
    }
    subjects.into_values().flat_map(|runs| of_subject(key, &runs)).collect()
}

/// Runs of one subject, by round.
fn of_subject(key: &StepKey, runs: &[&Ran]) -> Vec<Finding> {
    for ran in runs {
        match &ran.verdict {
            Verdict::Right(_) => {}
            Verdict::Wrong(reason) => return vec![wrong(key, ran.parameters.clone(), reason.clone())],
            Verdict::Failed(reason) => {
                return vec![wrong(key, ran.parameters.clone(), format!("could not be run: {reason}"))];
            }
        }
    }
    let mut found: Vec<Finding> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    for ran in runs {
        let Verdict::Right(samples) = &ran.verdict else { continue };
        for sample in samples {
            let point = Value::Object(sample.at.clone()).to_string();
            let place = *places.entry(point).or_insert(found.len());
            if place == found.len() {
                let mut parameters = ran.parameters.clone();
                parameters.extend(sample.at.clone());
                found.push(Finding { parameters, wrong: None, ..empty(key) });
            }
            for (name, value) in &sample.values {
                let values = &mut found[place].values;
                match values.iter_mut().find(|(known, _)| known == name) {
                    Some((_, values)) => values.push(*value),
                    None => values.push((name.clone(), vec![*value])),
                }
            }
        }
    }
    found
}

fn wrong(key: &StepKey, parameters: Row, reason: String) -> Finding {
    Finding { parameters, wrong: Some(reason), ..empty(key) }
}

fn empty(key: &StepKey) -> Finding {
    let StepKey { experiment, data } = key.clone();
    Finding { experiment, data, parameters: Row::new(), values: Vec::new(), wrong: None }
}

//! An experiment that measures nothing: for tests of what turns the handle.

use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject, row};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use anyhow::{Result, bail};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// Subjects that are always right (`left`, `right`), wrong when they run for the second time (`wrong`), or that cannot
/// be run as long as they are ill (`broken`).
pub(crate) struct Fake {
    /// Its name.
    pub(crate) name: &'static str,
    /// Data it needs.
    pub(crate) needs: Needs,
    /// Its subjects.
    pub(crate) methods: Vec<&'static str>,
    /// True if `broken` cannot be run.
    pub(crate) is_ill: Arc<AtomicBool>,
    /// True if subjects cannot be made at all.
    pub(crate) has_no_subjects: AtomicBool,
    /// Every run, by method, in the order in which they were made.
    pub(crate) runs: Arc<Mutex<Vec<&'static str>>>,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            name: "fake-count",
            needs: Needs::Nothing,
            methods: vec!["left", "right"],
            is_ill: Arc::default(),
            has_no_subjects: AtomicBool::new(false),
            runs: Arc::default(),
        }
    }
}

impl Experiment for Fake {
    fn head(&self) -> Head {
        Head {
            name: self.name,
            title: "How often each of two hands is raised",
            reproduces: &["No Paper, Table 1"],
            needs: self.needs,
            methods: self.methods.clone(),
            rounds: Rounds::All,
            columns: "method version seconds count",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        if self.has_no_subjects.load(Ordering::Relaxed) {
            bail!("{} is no good", input.name());
        }
        match self.needs {
            // What is not there is no matter.
            Needs::Bytes => drop(input.data()),
            Needs::Versions if input.left_out().is_some() => bail!("the memory is taken"),
            Needs::Versions | Needs::Nothing => {}
        }
        let hand = |method: &&'static str| {
            let (is_ill, runs) = (Arc::clone(&self.is_ill), Arc::clone(&self.runs));
            Box::new(Hand { method, input, is_ill, runs }) as Box<dyn Subject>
        };
        Ok(self.methods.iter().filter(|method| settings.chooses_method(method)).map(hand).collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let values = findings.iter().map(|finding| finding.spread("seconds")).collect();
        let groups = findings.iter().map(|finding| finding.parameter("method")).collect();
        let plot = Plot::Bars { y: Axis::linear("seconds"), groups, series: vec![Bars { name: "all".into(), values }] };
        vec![Figure { title: "Hands".into(), redraws: String::new(), caption: String::new(), plot }]
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        vec![format!("{} findings say: raise both", findings.len())]
    }
}

struct Hand<'i> {
    method: &'static str,
    input: &'i Input,
    is_ill: Arc<AtomicBool>,
    runs: Arc<Mutex<Vec<&'static str>>>,
}

impl Subject for Hand<'_> {
    fn parameters(&self) -> Row {
        row([("method", self.method.into())])
    }

    /// Values depend on the method and the version alone.
    fn run(&mut self) -> Result<Outcome> {
        let mut runs = self.runs.lock().unwrap();
        let is_second = runs.contains(&self.method);
        runs.push(self.method);
        match self.method {
            "broken" if self.is_ill.load(Ordering::Relaxed) => bail!("the hand is broken"),
            "wrong" if is_second => return Ok(Outcome::Wrong("a foot".into())),
            _ => {}
        }
        let versions = 1.max(self.input.corpus().versions.len());
        let value = if self.method == "left" { 0.1 } else { 0.3 };
        let sample = |version: usize| {
            let version = u32::try_from(version).unwrap();
            Sample::of([("seconds", value * f64::from(version + 1)), ("count", 1.0)]).at("version", version)
        };
        Ok(Outcome::Right((0..versions).map(sample).collect()))
    }
}

//! Experiments: subjects that are measured on the same input, in turns, each result checked in the run that
//! times it.
//!
//! The room `run` turns the handle: it asks an experiment for its subjects, runs all of them once a round and keeps
//! every sample. The room `report` shows what came of it. Neither knows what is measured.

use crate::corpus::Corpus;
use crate::data::Data;
use crate::report::Figure;
use crate::settings::Settings;
use crate::statistics::Spread;
use anyhow::Result;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::sync::OnceLock;

/// Names and values, in the order in which they are shown. What distinguishes rows is text or whole numbers, what is
/// measured are numbers.
pub type Row = Map<String, Value>;

/// A row of these names and values.
pub(crate) fn row<const N: usize>(values: [(&str, Value); N]) -> Row {
    values.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

/// A value of a row as text.
pub fn value_text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A row in words: `method ae, expected_bytes 8192`.
pub fn row_text(row: &Row) -> String {
    let words = row.iter().map(|(name, value)| format!("{name} {}", value_text(value)));
    words.collect::<Vec<_>>().join(", ")
}

/// Something of the papers, measured.
pub trait Experiment: Sync {
    /// Its row in the table of experiments.
    fn head(&self) -> Head;

    /// Its name on the command line and in files.
    fn name(&self) -> &'static str {
        self.head().name
    }

    /// Returns the subjects to measure on this input. What all of them share (cuts, truths to compare with) is made
    /// here, outside every time.
    ///
    /// # Errors
    /// If the input cannot be read, or the settings ask for what is not there.
    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>>;

    /// Its plots, from what was found on all inputs.
    fn figures(&self, findings: &[Finding]) -> Vec<Figure>;

    /// The measure by which its tables are sorted, the greatest first; none by default, where the order of measuring
    /// tells more.
    fn sorted_by(&self) -> Option<&'static str> {
        None
    }

    /// Returns advice for the user's data, in sentences; none by default.
    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        let _ = findings;
        Vec::new()
    }
}

/// Experiment as it stands in lists and tables, before anything is measured.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Head {
    /// Name on the command line and in files: lower case, `command-what`, as `chunk-throughput`.
    pub name: &'static str,
    /// The question, in a sentence without a full stop.
    pub title: &'static str,
    /// Tables and figures of the papers that it repeats, as `AE (TC'17), Table 5`; empty for what is our own.
    pub reproduces: &'static [&'static str],
    /// Data that it is measured on.
    pub needs: Needs,
    /// Names by which its subjects are chosen on the command line, where that asks for methods; empty if there is
    /// nothing to choose.
    pub methods: Vec<&'static str>,
    /// Runs of every subject.
    pub rounds: Rounds,
    /// Columns of its table, separated by blanks: parameters, then measures with their unit, as `gb_per_s`.
    pub columns: &'static str,
}

/// Runs of every subject, by the rounds that the user asked for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounds {
    /// As many.
    All,
    /// One for every so many, rounded up: where a run is long.
    OneFor(u64),
    /// One: what is the same each time.
    One,
}

impl Head {
    /// The names of its columns.
    pub fn columns(&self) -> impl Iterator<Item = &'static str> + Clone {
        self.columns.split(' ')
    }
}

impl Rounds {
    /// Runs for so many rounds, at least 1.
    pub fn of(self, asked: u64) -> u64 {
        match self {
            Self::All => asked.max(1),
            Self::OneFor(rounds) => asked.div_ceil(rounds).max(1),
            Self::One => 1,
        }
    }
}

/// Data that an experiment is measured on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Needs {
    /// Nothing: it makes what it needs from the seed. It runs once, whatever the user gives.
    Nothing,
    /// The bytes of versions, in memory.
    Bytes,
    /// Versions as they lie on disk: two or more.
    Versions,
}

/// A method with its parameters, on one input.
pub trait Subject {
    /// Returns its parameters, by which it differs from the others: method, instruction set, expected size and so on.
    fn parameters(&self) -> Row;

    /// One run. Times are of the work alone; the check of its result is not in them.
    ///
    /// # Errors
    /// If it could not be run at all.
    fn run(&mut self) -> Result<Outcome>;
}

/// Outcome of one run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub enum Outcome {
    /// The result is what it should be.
    Right(Vec<Sample>),
    /// It is not, and why: its times count for nothing.
    Wrong(String),
}

/// Measures that one run found at one point.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Sample {
    /// Further parameters: of a run over versions, which version.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub at: Row,
    /// Measures by name; names end in their unit.
    pub values: Vec<(String, f64)>,
}

impl Sample {
    /// A sample of these values.
    pub fn of<const N: usize>(values: [(&str, f64); N]) -> Self {
        Self { at: Row::new(), values: values.map(|(name, value)| (name.to_owned(), value)).into() }
    }

    /// Returns this sample at another point.
    #[must_use]
    pub fn at(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.at.insert(key.to_owned(), value.into());
        self
    }
}

/// All that was found at one point of one subject on one input.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Finding {
    /// Name of the experiment.
    pub experiment: String,
    /// Name of the input; empty where none is needed.
    pub data: String,
    /// Those of the subject and of the point.
    pub parameters: Row,
    /// Every measure with one value per round.
    pub values: Vec<(String, Vec<f64>)>,
    /// Why there are none.
    pub wrong: Option<String>,
}

impl Finding {
    /// Median and ends of a measure.
    pub fn spread(&self, measure: &str) -> Option<Spread> {
        let (_, values) = self.values.iter().find(|(name, values)| name == measure && !values.is_empty())?;
        Some(Spread::of(values.iter().copied()))
    }

    /// The median of a measure.
    pub fn median(&self, measure: &str) -> Option<f64> {
        self.spread(measure).map(|spread| spread.median)
    }

    /// A parameter as text; empty if there is none.
    pub fn parameter(&self, name: &str) -> String {
        self.parameters.get(name).map(value_text).unwrap_or_default()
    }
}

/// Versions to measure on.
#[derive(Debug)]
pub struct Input {
    corpus: Corpus,
    bytes_max: u64,
    data: OnceLock<Data>,
}

impl Input {
    /// These versions, of which at most so many bytes are brought into memory: whole versions, or a part of the first.
    pub fn new(corpus: Corpus, bytes_max: u64) -> Self {
        Self { corpus, bytes_max, data: OnceLock::new() }
    }

    /// Its name, for tables.
    pub fn name(&self) -> &str {
        &self.corpus.name
    }

    /// The versions on disk.
    pub fn corpus(&self) -> &Corpus {
        &self.corpus
    }

    /// Returns what of the versions is not among the bytes in memory, in words; `None` if they were never
    /// brought there.
    pub fn left_out(&self) -> Option<&str> {
        self.data.get().map(|data| data.left_out.as_str())
    }

    /// The versions in memory, brought there on first use.
    ///
    /// # Errors
    /// If nothing of them can be read.
    pub fn data(&self) -> Result<&Data> {
        if let Some(data) = self.data.get() {
            return Ok(data);
        }
        let data = Data::of(&self.corpus, self.bytes_max)?;
        Ok(self.data.get_or_init(|| data))
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// Runs every subject once.
    pub(crate) fn findings(experiment: &dyn Experiment, input: &Input, settings: &Settings) -> Vec<Finding> {
        let mut findings = Vec::new();
        for mut subject in experiment.subjects(input, settings).unwrap() {
            let outcome = subject.run().unwrap();
            let (samples, wrong) = match outcome {
                Outcome::Wrong(why) => (vec![Sample::default()], Some(why)),
                Outcome::Right(samples) => (samples, None),
            };
            for sample in samples {
                let mut parameters = subject.parameters();
                parameters.extend(sample.at);
                findings.push(Finding {
                    experiment: experiment.name().into(),
                    data: input.name().into(),
                    parameters,
                    values: sample.values.into_iter().map(|(name, value)| (name, vec![value])).collect(),
                    wrong: wrong.clone(),
                });
            }
        }
        findings
    }
}

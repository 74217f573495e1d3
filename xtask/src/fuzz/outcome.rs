//! Outcome of fuzzing a target, read from what libFuzzer says.

use serde::{Deserialize, Serialize};
use siltstone_testbed::program::Ended;
use siltstone_testbed::table::Table;
use std::fmt;
use std::time::Duration;

/// Lines of what a program said that are shown when it fails.
const LINES_SHOWN: usize = 40;

/// The figures of one target, of all its rounds on one commit.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    pub(super) target: String,
    /// Commit that was fuzzed.
    pub(super) commit: String,
    /// Processor time, user and system.
    #[serde(rename = "seconds", with = "seconds")]
    pub(super) processor: Duration,
    /// Inputs that were tried.
    pub(super) executions: u64,
    /// Edges between blocks of code that any input went along.
    pub(super) edges: u64,
    /// Inputs in the corpus afterwards.
    pub(super) inputs: usize,
    pub(super) peak_mib: u64,
    /// Time of the slowest input.
    pub(super) slowest_seconds: u64,
    /// The end of what it said, if an input failed.
    #[serde(skip)]
    pub(super) failure: Option<String>,
}

impl Outcome {
    /// Adds another round, after which so many inputs are in the corpus. Figures are read from what the program wrote;
    /// those it did not come to are 0.
    pub(super) fn add(&mut self, ended: &Ended, inputs: usize) {
        let statistic = |name: &str| {
            let line = ended.said.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
        };
        self.processor += ended.cost.processor;
        self.executions += statistic("stat::number_of_executed_units");
        self.edges = self.edges.max(edges(&ended.said));
        self.inputs = inputs;
        self.peak_mib = self.peak_mib.max(statistic("stat::peak_rss_mb"));
        self.slowest_seconds = self.slowest_seconds.max(statistic("stat::slowest_unit_time_sec"));
        self.failure = (ended.code != Some(0)).then(|| end(&ended.said));
    }
}

/// A time as its seconds, as people read it.
mod seconds {
    use serde::{Deserialize, Deserializer, Serializer};
    use std::time::Duration;

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64((time.as_secs_f64() * 10.0).round() / 10.0)
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Duration, D::Error> {
        let seconds = f64::deserialize(deserializer)?;
        Duration::try_from_secs_f64(seconds).map_err(serde::de::Error::custom)
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, processor, executions, edges, inputs, .. } = self;
        let (seconds, failed) = (processor.as_secs(), if self.failure.is_some() { ", AN INPUT FAILS" } else { "" });
        write!(f, "fuzz {target}: {seconds} s, {executions} inputs tried, {edges} edges, {inputs} kept{failed}")
    }
}

/// Outcomes, a row each.
pub(super) fn table(outcomes: &[&Outcome]) -> Table {
    let columns =
        ["target", "commit", "seconds", "executions", "edges", "corpus", "peak_mib", "slowest_seconds", "failures"];
    let mut table = Table::new(columns);
    for &outcome in outcomes {
        let Outcome { target, commit, processor, executions, edges, inputs, peak_mib, slowest_seconds, failure } =
            outcome;
        let failures = usize::from(failure.is_some());
        table.row(vec![
            target.clone(),
            commit.clone(),
            processor.as_secs().to_string(),
            executions.to_string(),
            edges.to_string(),
            inputs.to_string(),
            peak_mib.to_string(),
            slowest_seconds.to_string(),
            failures.to_string(),
        ]);
    }
    table
}

/// The number after the last `cov:`.
fn edges(said: &str) -> u64 {
    let after = said.rsplit_once(" cov: ").map(|(_, after)| after);
    after.and_then(|after| after.split_whitespace().next()?.parse().ok()).unwrap_or_default()
}

fn end(said: &str) -> String {
    let lines: Vec<&str> = said.lines().collect();
    lines.get(lines.len().saturating_sub(LINES_SHOWN)..).unwrap_or_default().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::program::Cost;

    fn ended(said: &str, code: i32) -> Ended {
        let cost = Cost { processor: Duration::from_secs(10), ..Cost::default() };
        Ended { code: Some(code), overdue: false, said: said.to_owned(), cost }
    }

    #[test]
    fn figures_are_read_from_what_the_fuzzer_says_and_rounds_add_up() {
        let said = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 40Mb\n#9\tDONE   cov: 345 ft: 9 corp: 3/9b\n\
            stat::number_of_executed_units: 98765\nstat::slowest_unit_time_sec: 2\nstat::peak_rss_mb: 61\n";
        let mut outcome = Outcome { target: "slot".into(), ..Outcome::default() };
        outcome.add(&ended(said, 0), 7);
        outcome.add(&ended(said, 0), 8);
        let expected = Outcome {
            target: "slot".into(),
            commit: String::new(),
            processor: Duration::from_secs(20),
            executions: 2 * 98765,
            edges: 345,
            inputs: 8,
            peak_mib: 61,
            slowest_seconds: 2,
            failure: None,
        };
        assert_eq!(outcome, expected);
        assert!(table(&[&outcome]).to_string().contains("197530"));
    }

    #[test]
    fn a_failure_shows_the_end_of_what_was_said() {
        let said = format!("{}==9== ERROR: libFuzzer: deadly signal\nartifact written", "a line\n".repeat(100));
        let mut outcome = Outcome::default();
        outcome.add(&ended(&said, 77), 0);
        let failure = outcome.failure.expect("a failure");
        assert!(failure.ends_with("artifact written") && failure.lines().count() == LINES_SHOWN);
    }
}

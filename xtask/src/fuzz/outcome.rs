//! Outcome of fuzzing a target, read from what libFuzzer says.

use serde_json::{Value, json};
use siltstone_testbed::table::Table;
use std::fmt;
use std::time::Duration;

/// Lines of what a program said that are shown when it fails.
const LINES_SHOWN: usize = 40;

/// The figures of one target.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Outcome {
    pub(super) target: String,
    pub(super) seconds: u64,
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
    pub(super) failure: Option<String>,
}

impl Outcome {
    /// Reads the figures from what the program wrote; those it did not come to are 0.
    pub(super) fn read(target: &str, said: &str, is_success: bool, took: Duration) -> Self {
        let statistic = |name: &str| {
            let line = said.lines().rev().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            line.and_then(|number| number.trim().parse().ok()).unwrap_or_default()
        };
        Self {
            target: target.to_owned(),
            seconds: took.as_secs(),
            executions: statistic("stat::number_of_executed_units"),
            edges: edges(said),
            inputs: 0,
            peak_mib: statistic("stat::peak_rss_mb"),
            slowest_seconds: statistic("stat::slowest_unit_time_sec"),
            failure: (!is_success).then(|| end(said)),
        }
    }

    /// The figures as a flat object.
    pub(super) fn row(&self) -> Value {
        json!({
            "target": self.target,
            "seconds": self.seconds,
            "executions": self.executions,
            "edges": self.edges,
            "corpus": self.inputs,
            "peak_mib": self.peak_mib,
            "slowest_seconds": self.slowest_seconds,
            "failures": usize::from(self.failure.is_some()),
        })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { target, executions, edges, inputs, .. } = self;
        let failed = if self.failure.is_some() { ", AN INPUT FAILS" } else { "" };
        write!(f, "fuzz {target}: {executions} inputs tried, {edges} edges reached, {inputs} kept{failed}")
    }
}

/// All outcomes, a row each.
pub(super) fn table(outcomes: &[Outcome]) -> Table {
    let columns = ["target", "seconds", "executions", "edges", "corpus", "peak_mib", "slowest_seconds", "failures"];
    let mut table = Table::new(columns);
    for outcome in outcomes {
        let row = outcome.row();
        let cell = |column: &str| match &row[column] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        table.row(columns.iter().map(|column| cell(column)).collect());
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

    #[test]
    fn figures_are_read_from_what_the_fuzzer_says() {
        let said = "#2\tINITED cov: 12 ft: 13 corp: 1/1b exec/s: 0 rss: 40Mb\n#9\tDONE   cov: 345 ft: 9 corp: 3/9b\n\
            stat::number_of_executed_units: 98765\nstat::slowest_unit_time_sec: 2\nstat::peak_rss_mb: 61\n";
        let outcome = Outcome::read("slot", said, true, Duration::from_secs(10));
        let expected = Outcome {
            target: "slot".into(),
            seconds: 10,
            executions: 98765,
            edges: 345,
            peak_mib: 61,
            slowest_seconds: 2,
            ..Outcome::default()
        };
        assert_eq!(outcome, expected);
        assert!(table(&[outcome]).to_string().contains("98765"));
    }

    #[test]
    fn a_failure_shows_the_end_of_what_was_said() {
        let said = format!("{}==9== ERROR: libFuzzer: deadly signal\nartifact written", "a line\n".repeat(100));
        let failure = Outcome::read("slot", &said, false, Duration::ZERO).failure.expect("a failure");
        assert!(failure.ends_with("artifact written") && failure.lines().count() == LINES_SHOWN);
    }
}

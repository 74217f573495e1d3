//! All samples as one table: a line per finding and round, a column per parameter and measure that occurs.

use super::Report;
use crate::distinct;
use crate::experiment::Finding;
use anyhow::{Context, Result};

/// Columns that every line has before its parameters.
const FIRST: [&str; 3] = ["experiment", "data", "round"];
/// Columns that every line has after its measures.
const LAST: [&str; 4] = ["wrong", "program", "day", "machine"];

/// The file. A name that is both a parameter and a measure gets two columns.
pub(super) fn text(report: &Report) -> Result<String> {
    let parameters = report.findings.iter().flat_map(|finding| finding.parameters.keys());
    let parameters = distinct(parameters.map(String::as_str));
    let measures = report.findings.iter().flat_map(|finding| &finding.values);
    let measures = distinct(measures.map(|(name, _)| name.as_str()));
    let mut writer = csv::Writer::from_writer(Vec::new());
    writer.write_record(FIRST.into_iter().chain(parameters.clone()).chain(measures.clone()).chain(LAST))?;
    let machine = report.machine.join("; ");
    for finding in &report.findings {
        for round in 0..rounds(finding) {
            let values = |measure: &&str| {
                let values = finding.values.iter().find(|(name, _)| name == measure).map(|(_, values)| values);
                values.and_then(|values| values.get(round)).map(f64::to_string).unwrap_or_default()
            };
            let first = [finding.experiment.clone(), finding.data.clone(), (round + 1).to_string()];
            let wrong = finding.wrong.clone().unwrap_or_default();
            let last = [wrong, report.version.clone(), report.day.clone(), machine.clone()];
            let parameters = parameters.iter().map(|name| finding.parameter(name));
            writer.write_record(first.into_iter().chain(parameters).chain(measures.iter().map(values)).chain(last))?;
        }
    }
    let bytes = writer.into_inner().context("nothing can fail in memory")?;
    Ok(String::from_utf8(bytes)?)
}

/// Lines of a finding; what is wrong has one.
fn rounds(finding: &Finding) -> usize {
    finding.values.iter().map(|(_, values)| values.len()).max().unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn every_sample_has_its_line_and_cell() {
        let report = sample::report();
        let text = text(&report).unwrap();
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        let columns: Vec<String> = reader.headers().unwrap().iter().map(str::to_owned).collect();
        let expected = ["experiment", "data", "round", "method", "version", "seconds", "count"];
        assert_eq!(columns[..7], expected);
        let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
        assert_eq!(lines.len(), report.findings.iter().map(rounds).sum::<usize>());
        let at = |name: &str| columns.iter().position(|column| column == name).unwrap();
        for finding in report.findings.iter().filter(|finding| finding.wrong.is_none()) {
            for (measure, values) in &finding.values {
                for (round, value) in values.iter().enumerate() {
                    let is_it = |line: &&csv::StringRecord| {
                        let same = |name: &str| line[at(name)] == finding.parameter(name);
                        let is_round = line[at("round")] == (round + 1).to_string();
                        line[0] == finding.experiment
                            && line[1] == finding.data
                            && is_round
                            && same("method")
                            && same("version")
                    };
                    let line = lines.iter().find(is_it).unwrap();
                    assert_eq!(line[at(measure)].parse::<f64>().unwrap().to_bits(), value.to_bits());
                    assert_eq!(
                        (&line[at("program")], &line[at("machine")]),
                        ("1 (abc)", "processor: fast; memory: much")
                    );
                }
            }
        }
        assert!(lines.iter().any(|line| line[at("wrong")] == *"a foot, \"really\"" && line[at("seconds")].is_empty()));
    }
}

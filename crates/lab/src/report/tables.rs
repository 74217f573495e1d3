//! Tables for a terminal.

use super::Report;
use crate::claims::{Claim, Judged};
use crate::experiment::{Finding, Head, row_text};
use crate::statistics::Spread;
use crate::table::{self, Table};
use std::fmt::Write as _;

/// The column beside the measures where they were made several times.
const SPREAD: &str = "spread_percent";

pub(super) fn text(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(text, "silt-lab {}, {}", report.version, report.day);
    for line in &report.machine {
        let _ = writeln!(text, "{line}");
    }
    for input in &report.inputs {
        let versions = if input.versions == 1 { "one version".into() } else { format!("{} versions", input.versions) };
        let _ =
            writeln!(text, "data: {}: {}; {} in {versions}", input.name, input.description, table::bytes(input.bytes));
    }
    if !report.advice.is_empty() {
        let _ = writeln!(text, "\n## What follows\n");
    }
    for sentence in report.advice.iter().flat_map(|(_, sentences)| sentences) {
        let _ = writeln!(text, "-> {sentence}");
    }
    for experiment in &report.experiments {
        let mut inputs: Vec<&str> = report.inputs.iter().map(|input| input.name.as_str()).collect();
        inputs.push("");
        for data in inputs {
            let found: Vec<&Finding> = report.found(experiment.name, data).collect();
            if !found.is_empty() {
                section(&mut text, experiment, data, &found);
            }
        }
    }
    let claims = report.claims();
    if !claims.is_empty() {
        let _ = write!(text, "\n## What the papers say, and what was found\n\n{}", claims_table(&claims));
    }
    for line in &report.skipped {
        let _ = writeln!(text, "\nleft out: {line}");
    }
    if !report.is_whole {
        let _ = writeln!(text, "\nNot all that was asked for is measured.");
    }
    text
}

fn claims_table(claims: &[Judged]) -> Table {
    let mut table = Table::new(["paper", "where", "claim", "paper's figure", "ours", "verdict", "on each"]);
    for judged in claims {
        let Claim { paper, place, says, figure, .. } = judged.claim;
        let cells = [paper, place, says, figure].map(|cell| (*cell).to_owned());
        let ours = [judged.ours.text(), judged.verdict().text().to_owned(), judged.by_data_text()];
        table.row(cells.into_iter().chain(ours).collect());
    }
    table
}

fn section(text: &mut String, experiment: &Head, data: &str, found: &[&Finding]) {
    let on = if data.is_empty() { String::new() } else { format!(" on {data}") };
    let _ = write!(text, "\n## {}{on}\n{}", experiment.name, experiment.title);
    if !experiment.reproduces.is_empty() {
        let _ = write!(text, " ({})", experiment.reproduces.join("; "));
    }
    let _ = writeln!(text, "\n");
    let rows: Vec<&&Finding> = found.iter().filter(|finding| is_row(finding, experiment)).collect();
    if !rows.is_empty() {
        let _ = write!(text, "{}", measures(experiment, &rows));
    }
    for finding in found {
        if let Some(reason) = &finding.wrong {
            let which = if finding.parameters.is_empty() { "all of it".into() } else { row_text(&finding.parameters) };
            let _ = writeln!(text, "WRONG, so no result: {which}: {reason}");
        }
    }
}

/// Points of curves have none of the table's measures: they are for figures.
fn is_row(finding: &Finding, experiment: &Head) -> bool {
    finding.values.iter().any(|(name, _)| experiment.columns().any(|column| column == name))
}

fn measures(experiment: &Head, rows: &[&&Finding]) -> Table {
    let is_repeated = rows.iter().any(|finding| finding.values.iter().any(|(_, values)| values.len() > 1));
    // What no row has is not shown.
    let is_there = |column: &&str| {
        rows.iter().any(|finding| finding.spread(column).is_some() || !finding.parameter(column).is_empty())
    };
    let columns: Vec<&str> = experiment.columns().filter(is_there).collect();
    let mut table = Table::new(columns.iter().copied().chain(is_repeated.then_some(SPREAD)));
    for finding in rows {
        let cell = |column: &&str| match finding.spread(column) {
            Some(spread) => number(spread.median),
            None => finding.parameter(column),
        };
        let mut cells: Vec<String> = columns.iter().map(cell).collect();
        if is_repeated {
            cells.push(widest(finding, &columns).map_or_else(String::new, |percent| format!("{percent:.1}")));
        }
        table.row(cells);
    }
    table
}

/// The widest spread among the measures of a row, in percent of the median.
fn widest(finding: &Finding, columns: &[&str]) -> Option<f64> {
    let spreads = columns.iter().filter_map(|column| finding.spread(column)).map(Spread::percent);
    spreads.filter(|percent| percent.is_finite()).map(f64::abs).max_by(f64::total_cmp)
}

/// Four figures, or all of a whole number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        return format!("{value:.0}");
    }
    let places = [1000.0, 100.0, 10.0, 1.0, 0.1, 0.01].iter().position(|bound| value.abs() >= *bound).unwrap_or(6);
    format!("{value:.places$}")
}

#[cfg(test)]
mod tests {
    use super::super::sample;
    use super::*;

    #[test]
    fn numbers_keep_four_figures() {
        let shown: Vec<String> =
            [0.0, 3.0, 123_456.0, 1234.56, 123.456, 12.3456, 1.23456, 0.123_456, -0.012_345_6].map(number).into();
        assert_eq!(shown, ["0", "3", "123456", "1235", "123.5", "12.35", "1.235", "0.1235", "-0.01235"]);
    }

    #[test]
    fn tables_have_the_columns_of_the_experiment_and_no_times_of_what_is_wrong() {
        let text = text(&sample::report());
        assert!(
            text.contains("## fake-count on two\nHow often each of two hands is raised (No Paper, Table 1)"),
            "{text}"
        );
        assert!(text.contains("| method | version | seconds | count | spread_percent |"), "{text}");
        assert!(text.contains("| left   |       0 |  0.2000 |     1 |          100.0 |"), "{text}");
        assert!(text.contains("WRONG, so no result: method wrong: a foot, \"really\""), "{text}");
        assert!(!text.contains("| wrong"), "{text}");
        assert!(text.contains("-> raise both"), "{text}");
    }
}

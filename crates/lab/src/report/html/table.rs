//! Tables of medians with their spread, one per experiment and input, folded away until someone asks.

use crate::distinct;
use crate::experiment::{Finding, Head};
use crate::report::Report;
use crate::report::plot::{number, text::shown};
use maud::{Markup, html};
use serde_json::Value;

/// Rows of a table at most; the files beside the page have all.
const ROWS_MAX: usize = 2000;

/// Ends that are nearer to one another are not shown.
const SPREAD_PERCENT_MIN: f64 = 1.0;

/// Measures by the end of their name, and how their unit is written.
const UNITS: [(&str, &str); 10] = [
    ("gb_per_s", "GB/s"),
    ("mb_per_s", "MB/s"),
    ("gib_per_s", "GiB/s"),
    ("mib_per_s", "MiB/s"),
    ("percent", "%"),
    ("bytes", "bytes"),
    ("kib", "KiB"),
    ("seconds", "seconds"),
    ("milliseconds", "ms"),
    ("microseconds", "µs"),
];

/// The tables of an experiment.
pub(super) fn tables(report: &Report, experiment: &Head) -> Markup {
    let own = report.findings.iter().filter(|finding| finding.experiment == experiment.name);
    let mut names = distinct(own.map(|finding| finding.data.as_str()));
    // The page of a quick run is small: of several data the first stand in it, of several versions the last; all in the
    // files beside it.
    let is_quick = report.settings.quick;
    let left_out = if is_quick { names.split_off(names.len().min(1)) } else { Vec::new() };
    html! {
        @for name in names {
            @let all: Vec<&Finding> = report.found(experiment.name, name).collect();
            @let rows = if is_quick { of_last_version(&all) } else { all.clone() };
            @let of = if name.is_empty() { String::new() } else { format!(" on {}", shown(name)) };
            details {
                summary { "Table" (of) ": " (rows.len()) @if rows.len() == 1 { " row" } @else { " rows" } }
                (boxed(&format!("{}{of}", experiment.title), &table(&rows, experiment, &of)))
                @if rows.len() > ROWS_MAX { p { (rows.len() - ROWS_MAX) " rows more are in the files beside this page." } }
                @if rows.len() < all.len() { p.about { "In results.csv: the versions before" } }
            }
        }
        @if !left_out.is_empty() { p.about { "In results.csv: " (shown(&left_out.join(", "))) } }
    }
}

/// The rows of the last version, where rows are of versions; all others.
fn of_last_version<'f>(rows: &[&'f Finding]) -> Vec<&'f Finding> {
    let version = |row: &Finding| row.parameters.get("version").and_then(Value::as_u64);
    let last = rows.iter().filter_map(|row| version(row)).max();
    rows.iter().copied().filter(|row| version(row).is_none() || version(row) == last).collect()
}

/// Returns content in a box of its own, inside which it scrolls where it is wider than the page.
pub(super) fn boxed(label: &str, content: &Markup) -> Markup {
    html! { div.scroll role="region" tabindex="0" aria-label=(shown(label)) { (content) } }
}

/// All parameters in a line.
pub(super) fn parameters(finding: &Finding) -> Markup {
    let words: Vec<String> = finding
        .parameters
        .iter()
        .map(
            |(name, value)| {
                if value.is_string() { finding.parameter(name) } else { format!("{} {value}", spaced(name)) }
            },
        )
        .filter(|word| !word.is_empty())
        .collect();
    html! { (shown(&words.join(", "))) }
}

fn table(rows: &[&Finding], experiment: &Head, of: &str) -> Markup {
    let is_measure = |column: &&str| rows.iter().any(|row| row.median(column).is_some());
    let is_parameter = |column: &&str| rows.iter().any(|row| !row.parameter(column).is_empty());
    let measures: Vec<&str> = experiment.columns().filter(is_measure).collect();
    let parameters: Vec<&str> =
        experiment.columns().filter(|column| !measures.contains(column) && is_parameter(column)).collect();
    let rounds = rows.iter().flat_map(|row| row.values.iter().map(|(_, values)| values.len())).max().unwrap_or(0);
    let is_text: Vec<bool> = parameters
        .iter()
        .map(|column| rows.iter().any(|row| row.parameters.get(*column).is_some_and(Value::is_string)))
        .collect();
    html! {
        table class=[Some(alignment(&is_text)).filter(|class| !class.is_empty())] {
            caption {
                span {
                    (experiment.title) (of)
                    @if rounds > 1 { ": medians of " (rounds) " rounds; in small the least and the greatest, where more than 1 % apart" }
                }
            }
            thead {
                tr {
                    @for (column, is_text) in parameters.iter().zip(&is_text) { th scope="col" class=[is_text.then_some("l")] { (spaced(column)) } }
                    @for column in &measures { th scope="col" title=(column) { (heading(column)) } }
                }
            }
            tbody { @for row in rows.iter().take(ROWS_MAX) { (table_row(row, &parameters, &measures)) } }
        }
    }
}

/// Classes by which the style sheet sets columns of text to the left: `t2` the second; `r` if the first is of numbers.
fn alignment(is_text: &[bool]) -> String {
    let first = is_text.first().is_some_and(|is_text| !is_text).then(|| "r".to_owned());
    let others = is_text.iter().enumerate().skip(1).filter(|(_, is_text)| **is_text);
    let others = others.map(|(number, _)| format!("t{}", number + 1));
    first.into_iter().chain(others).collect::<Vec<_>>().join(" ")
}

fn table_row(row: &Finding, parameters: &[&str], measures: &[&str]) -> Markup {
    html! {
        tr class=[row.wrong.is_some().then_some("bad")] {
            @for (number, column) in parameters.iter().enumerate() {
                @let text = shown(&row.parameter(column));
                @if number == 0 { th { (text) } } @else { td { (text) } }
            }
            @if let Some(why) = &row.wrong {
                td.l colspan=(measures.len().max(1)) { "✗ failed its check: " (shown(why)) }
            } @else {
                @for column in measures { td { (measured(row, column)) } }
            }
        }
    }
}

fn measured(row: &Finding, column: &str) -> Markup {
    let Some(spread) = row.spread(column) else { return html! { "–" } };
    html! {
        (number::full(spread.median))
        @if spread.percent() > SPREAD_PERCENT_MIN { " " i { (number::short(spread.low)) "–" (number::short(spread.high)) } }
    }
}

/// The name of a measure with its unit: `savings, %` for `savings_percent`.
fn heading(column: &str) -> String {
    for (end, unit) in UNITS {
        match column.strip_suffix(end) {
            Some("") => return unit.to_owned(),
            Some(name) if name.ends_with('_') => return format!("{}, {unit}", spaced(name.trim_end_matches('_'))),
            _ => {}
        }
    }
    spaced(column)
}

fn spaced(name: &str) -> String {
    name.replace('_', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_say_the_unit() {
        let shown = ["gb_per_s", "average_bytes", "savings_percent", "der", "restore_mb_per_s", "seconds"].map(heading);
        assert_eq!(shown, ["GB/s", "average, bytes", "savings, %", "der", "restore, MB/s", "seconds"]);
    }
}

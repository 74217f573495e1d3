//! Rows and tables: how large the repositories are after each clone, what each phase takes, and how that stands to
//! restic. The printed columns are the keys of the JSON rows.

use super::course::{self, Measured, Sample};
use super::small::Step;
use crate::bench::report::row_with;
use serde_json::{Map, Value, json};
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};

/// Program that others are held against.
const REFERENCE: &str = "restic";
const TOTALS: &str = "tool source_bytes repository_bytes source_to_repository first_host_bytes later_host_bytes \
    later_to_own bytes_to_restic recompressed_bytes recompressed_to_restic";
const PHASES: &str = "phase tool samples seconds spread_percent seconds_to_restic mb_per_s growth_bytes cpu_seconds \
    peak_mib";
const ORDER: [&str; 9] = [
    course::FIRST,
    course::LATER,
    course::UNCHANGED,
    course::RESTORE_FIRST,
    course::RESTORE_LAST,
    course::RECOMPRESS,
    course::RESTORE_RECOMPRESSED,
    course::FORGET_LATER,
    course::FORGET_FIRST,
];

/// Rows of all tables, each with the name of its own in the column `table`.
#[derive(Default)]
pub(super) struct Report {
    pub(super) rows: Vec<Row>,
    pub(super) tables: String,
}

impl Report {
    /// Adds what was measured of the clones; `tools` are the contenders in their order.
    pub(super) fn add_clones(&mut self, measured: &Measured, tools: &[&str]) {
        let sizes = format!("clone source_bytes own_bytes {}", tools.join(" "));
        self.add("totals", "All clones in one repository", TOTALS, totals(measured, tools));
        self.add(
            "sizes",
            "Bytes of the repository after the first backup of each clone",
            &sizes,
            sizes_of(measured, tools),
        );
        self.add("phases", "Seconds and bytes of each phase", PHASES, phases(&measured.samples, tools));
    }

    /// Adds the four small backups.
    pub(super) fn add_small(&mut self, steps: &[Step], tools: &[&str]) {
        if steps.is_empty() {
            return;
        }
        let columns = format!("host paths source_bytes {}", tools.join(" "));
        let rows = steps.iter().map(|step| {
            let mut row = row_with([
                ("host", json!(step.host)),
                ("paths", json!(step.paths)),
                ("source_bytes", json!(step.source_bytes)),
            ]);
            row.extend(by_tool(tools, &step.repository_bytes));
            row
        });
        self.add("small", "Bytes of the repository after each of four small backups", &columns, rows.collect());
    }

    fn add(&mut self, table: &str, title: &str, columns: &str, rows: Vec<Row>) {
        let table_text = table_of(columns, &rows);
        self.tables.extend(["### ", title, "\n\n", &table_text.to_string(), "\n"]);
        self.rows
            .extend(rows.into_iter().map(|row| [("table".to_owned(), json!(table))].into_iter().chain(row).collect()));
    }
}

fn by_tool(tools: &[&str], bytes: &[u64]) -> Map<String, Value> {
    tools.iter().zip(bytes).map(|(tool, &bytes)| ((*tool).to_owned(), json!(bytes))).collect()
}

fn sizes_of(measured: &Measured, tools: &[&str]) -> Vec<Row> {
    let of = |size: &course::Size| {
        let mut row = row_with([
            ("clone", json!(size.clone)),
            ("source_bytes", json!(size.source_bytes)),
            ("own_bytes", json!(size.own_bytes)),
        ]);
        row.extend(by_tool(tools, &size.repository_bytes));
        row
    };
    measured.sizes.iter().map(of).collect()
}

/// A row for each tool: the repository with the first backups of all clones.
fn totals(measured: &Measured, tools: &[&str]) -> Vec<Row> {
    let Some(last) = measured.sizes.last() else { return Vec::new() };
    let source_bytes: u64 = measured.sizes.iter().map(|size| size.source_bytes).sum();
    let reference = tools.iter().position(|tool| *tool == REFERENCE).map(|at| last.repository_bytes[at]);
    let of = |(at, tool): (usize, &&str)| {
        let bytes = last.repository_bytes[at];
        let own_bytes = as_float(last.own_bytes);
        let later = growth(&measured.samples, course::LATER, at);
        let recompressed = measured.recompressed_bytes.get(at).copied().flatten();
        let to_restic = |bytes| reference.and_then(|reference| ratio(as_float(bytes), as_float(reference)));
        row_with([
            ("tool", json!(tool)),
            ("source_bytes", json!(source_bytes)),
            ("repository_bytes", json!(bytes)),
            ("source_to_repository", json!(ratio(as_float(source_bytes), as_float(bytes)))),
            ("first_host_bytes", json!(growth(&measured.samples, course::FIRST, at))),
            ("later_host_bytes", json!(later)),
            ("later_to_own", json!(later.and_then(|later| ratio(as_float(later.unsigned_abs()), own_bytes)))),
            ("bytes_to_restic", json!(to_restic(bytes))),
            ("recompressed_bytes", json!(recompressed)),
            ("recompressed_to_restic", json!(recompressed.and_then(to_restic))),
        ])
    };
    tools.iter().enumerate().map(of).collect()
}

/// A row for each phase and tool.
fn phases(samples: &[Sample], tools: &[&str]) -> Vec<Row> {
    let mut rows = Vec::new();
    let reference = tools.iter().position(|tool| *tool == REFERENCE);
    for phase in ORDER {
        let restic = reference.and_then(|at| seconds(samples, phase, at));
        for (at, tool) in tools.iter().enumerate() {
            let Some(spread) = seconds(samples, phase, at) else { continue };
            let own: Vec<&Sample> = of(samples, phase, at).collect();
            let source_bytes = own.iter().filter_map(|sample| sample.source_bytes).max();
            let peak = own.iter().map(|sample| sample.cost.peak_bytes).max().unwrap_or_default();
            let cpu = Spread::of(own.iter().map(|sample| sample.cost.processor.as_secs_f64())).median;
            rows.push(row_with([
                ("phase", json!(phase)),
                ("tool", json!(tool)),
                ("samples", json!(own.len())),
                ("seconds", json!(rounded(spread.median, 3))),
                ("spread_percent", json!(rounded(spread.percent(), 0))),
                ("seconds_to_restic", json!(restic.and_then(|restic| ratio(spread.median, restic.median)))),
                ("mb_per_s", json!(source_bytes.map(|bytes| rounded(mb_per_s(bytes, spread.median), 1)))),
                ("growth_bytes", json!(growth(samples, phase, at))),
                ("cpu_seconds", json!(rounded(cpu, 3))),
                ("peak_mib", json!(rounded(as_float(peak) / f64::from(1 << 20), 0))),
            ]));
        }
    }
    rows
}

fn of<'a>(samples: &'a [Sample], phase: &'a str, contender: usize) -> impl Iterator<Item = &'a Sample> {
    samples.iter().filter(move |sample| sample.phase == phase && sample.contender == contender)
}

/// `None` where there is no sample.
fn seconds(samples: &[Sample], phase: &str, contender: usize) -> Option<Spread> {
    let seconds: Vec<f64> = of(samples, phase, contender).map(|sample| sample.cost.wall.as_secs_f64()).collect();
    (!seconds.is_empty()).then(|| Spread::of(seconds))
}

/// The median of the bytes by which the repository grew; `None` where there is no sample.
fn growth(samples: &[Sample], phase: &str, contender: usize) -> Option<i64> {
    let mut bytes: Vec<i64> = of(samples, phase, contender).map(|sample| sample.growth_bytes).collect();
    bytes.sort_unstable();
    bytes.get(bytes.len() / 2).copied()
}

fn ratio(own: f64, other: f64) -> Option<f64> {
    (other > 0.0).then(|| rounded(own / other, 3))
}

#[cfg(test)]
mod tests {
    use super::super::course::Size;
    use super::*;
    use siltstone_testbed::program::Cost;
    use std::time::Duration;

    fn sample(phase: &'static str, contender: usize, seconds: u64, growth_bytes: i64) -> Sample {
        let cost = Cost { wall: Duration::from_secs(seconds), ..Cost::default() };
        Sample { phase, contender, cost, source_bytes: Some(1_000_000), growth_bytes }
    }

    fn measured() -> Measured {
        let size = |clone, repository_bytes| Size { clone, source_bytes: 1000, own_bytes: 10, repository_bytes };
        let sizes = vec![size(1, vec![400, 500]), size(2, vec![420, 540]), size(3, vec![440, 590])];
        let mut samples = vec![sample(course::FIRST, 0, 9, 400), sample(course::FIRST, 1, 8, 500)];
        samples.extend([3, 1, 2].map(|seconds| sample(course::LATER, 0, seconds, 20)));
        samples.extend([6, 2, 4].map(|seconds| sample(course::LATER, 1, seconds, 45)));
        samples.push(sample(course::FORGET_LATER, 0, 1, -15));
        Measured { sizes, samples, recompressed_bytes: vec![Some(295), None] }
    }

    #[test]
    fn every_tool_stands_beside_restic() {
        let mut report = Report::default();
        report.add_clones(&measured(), &["silt", "restic"]);
        let row = |table: &str, key: &str, value: &str, tool: &str| {
            let is_it = |row: &&Row| row["table"] == table && row[key] == value && row["tool"] == tool;
            report.rows.iter().find(is_it).unwrap().clone()
        };
        let total = row("totals", "tool", "silt", "silt");
        assert_eq!((&total["source_bytes"], &total["repository_bytes"]), (&json!(3000), &json!(440)));
        assert_eq!((&total["later_to_own"], &total["bytes_to_restic"]), (&json!(2.0), &json!(0.746)));
        assert_eq!((&total["recompressed_bytes"], &total["recompressed_to_restic"]), (&json!(295), &json!(0.5)));
        assert_eq!(row("totals", "tool", "restic", "restic")["recompressed_bytes"], Value::Null);
        let later = row("phases", "phase", course::LATER, "silt");
        assert_eq!(
            (&later["samples"], &later["seconds"], &later["spread_percent"]),
            (&json!(3), &json!(2.0), &json!(100.0))
        );
        assert_eq!((&later["seconds_to_restic"], &later["growth_bytes"]), (&json!(0.5), &json!(20)));
        assert_eq!(row("phases", "phase", course::LATER, "restic")["seconds_to_restic"], json!(1.0));
    }

    #[test]
    fn what_only_one_tool_did_is_shown_without_a_ratio() {
        let rows = phases(&measured().samples, &["silt", "restic"]);
        let forgets: Vec<&Row> = rows.iter().filter(|row| row["phase"] == course::FORGET_LATER).collect();
        assert_eq!(forgets.len(), 1);
        assert_eq!((&forgets[0]["seconds_to_restic"], &forgets[0]["growth_bytes"]), (&Value::Null, &json!(-15)));
    }

    #[test]
    fn each_clone_and_each_small_backup_has_the_bytes_of_each_tool() {
        let mut report = Report::default();
        report.add_clones(&measured(), &["silt", "restic"]);
        let step = Step { host: "host01", paths: "/a /b".into(), source_bytes: 7, repository_bytes: vec![5, 6] };
        report.add_small(&[step], &["silt", "restic"]);
        let of = |table: &str| report.rows.iter().filter(|row| row["table"] == table).cloned().collect::<Vec<_>>();
        assert_eq!(of("sizes").iter().map(|row| row["restic"].clone()).collect::<Vec<_>>(), [500, 540, 590]);
        assert_eq!((&of("small")[0]["silt"], &of("small")[0]["restic"]), (&json!(5), &json!(6)));
        for shown in ["| clone | source_bytes | own_bytes | silt | restic |", "| /a /b", "| first host"] {
            assert!(report.tables.contains(shown), "{}", report.tables);
        }
    }
}

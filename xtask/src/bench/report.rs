//! From samples to rows: the median over the rounds with its spread, rates, and `silt` against the best of the others. The printed
//! columns are the keys of the JSON rows.

use super::Options;
use super::machine;
use crate::program::Cost;
use crate::table::{Table, as_float, mb_per_s};
use crate::tool::Name;
use crate::workspace;
use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// One measurement of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// What it cost.
    pub(super) cost: Cost,
    /// Bytes of source it went through; `None` where a rate says nothing.
    pub(super) source_bytes: Option<u64>,
    /// Size of the repository afterwards; `None` where there is none or it did not change.
    pub(super) repository_bytes: Option<u64>,
}

/// All samples of one tool in one phase on one kind of data.
#[derive(Clone, Debug)]
struct Series {
    data: String,
    phase: &'static str,
    tool: &'static str,
    samples: Vec<Sample>,
}

/// All that was measured.
#[derive(Clone, Debug, Default)]
pub(super) struct Report {
    series: Vec<Series>,
}

/// Columns of the table of measurements.
const MEASURED: [&str; 9] =
    ["data", "phase", "tool", "seconds", "spread_percent", "mb_per_s", "cpu_seconds", "peak_mib", "repository_bytes"];
/// Columns of the table of comparisons.
const COMPARED: [&str; 6] = ["data", "phase", "speed_ratio", "speed_ratio_low", "speed_ratio_high", "repository_ratio"];

impl Report {
    /// Adds a sample.
    pub(super) fn add(&mut self, data: &str, phase: &'static str, tool: &'static str, sample: Sample) {
        let same = |series: &&mut Series| series.data == data && series.phase == phase && series.tool == tool;
        match self.series.iter_mut().find(same) {
            Some(series) => series.samples.push(sample),
            None => self.series.push(Series { data: data.to_owned(), phase, tool, samples: vec![sample] }),
        }
    }

    /// One flat object per row.
    fn rows(&self) -> Vec<Map<String, Value>> {
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by_key(|series| self.first_of_phase(series));
        order.into_iter().map(|series| self.row(series)).collect()
    }

    /// Where the first series of the same data and phase stands: so the rows of a phase stand together.
    fn first_of_phase(&self, series: &Series) -> usize {
        let same = |other: &Series| other.data == series.data && other.phase == series.phase;
        self.series.iter().position(same).unwrap_or_default()
    }

    fn row(&self, series: &Series) -> Map<String, Value> {
        let seconds = series.seconds();
        let rate = series.samples[0].source_bytes.map(|bytes| mb_per_s(bytes, seconds.median));
        let mut row = Map::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("data", json!(series.data));
        set("phase", json!(series.phase));
        set("tool", json!(series.tool));
        set("seconds", json!(rounded(seconds.median, 3)));
        set("spread_percent", json!(rounded(100.0 * (seconds.high - seconds.low) / seconds.median, 1)));
        set("mb_per_s", json!(rate.map(|rate| rounded(rate, 1))));
        set("cpu_seconds", json!(series.cpu_seconds().map(|seconds| rounded(seconds, 3))));
        set("peak_mib", json!(series.peak_mib().map(|mib| rounded(mib, 1))));
        set("repository_bytes", json!(series.repository_bytes()));
        if series.tool == Name::Silt.text() {
            let ratio = self.speed_ratio(series);
            set("speed_ratio", json!(ratio.map(|ratio| rounded(ratio.median, 2))));
            set("speed_ratio_low", json!(ratio.map(|ratio| rounded(ratio.low, 2))));
            set("speed_ratio_high", json!(ratio.map(|ratio| rounded(ratio.high, 2))));
            set("repository_ratio", json!(self.repository_ratio(series).map(|ratio| rounded(ratio, 3))));
        }
        row
    }

    fn peers(&self, series: &Series) -> impl Iterator<Item = &Series> {
        let (data, phase) = (series.data.clone(), series.phase);
        let peers = [Name::Restic.text(), Name::Borg.text()];
        self.series
            .iter()
            .filter(move |other| other.data == data && other.phase == phase && peers.contains(&other.tool))
    }

    /// How many times as fast as the faster of the peers; low and high from the slowest and fastest rounds of both.
    fn speed_ratio(&self, series: &Series) -> Option<Spread> {
        let own = series.seconds();
        let fastest = self.peers(series).map(Series::seconds).min_by(|a, b| a.median.total_cmp(&b.median))?;
        let (low, high) = (fastest.low / own.high, fastest.high / own.low);
        Some(Spread { low, median: fastest.median / own.median, high })
    }

    /// Size of the repository against the smallest of the peers': below 1 is smaller.
    fn repository_ratio(&self, series: &Series) -> Option<f64> {
        let smallest = self.peers(series).filter_map(Series::repository_bytes).min()?;
        Some(as_float(series.repository_bytes()?) / as_float(smallest))
    }

    /// Both tables.
    fn tables(&self) -> String {
        let rows = self.rows();
        let mut text = table_of(MEASURED, &rows).to_string();
        let own: Vec<_> = rows.into_iter().filter(|row| row.get("speed_ratio").is_some_and(Value::is_number)).collect();
        if !own.is_empty() {
            let _ = write!(
                text,
                "\n`silt` against the faster, and the smaller, of the others:\n\n{}",
                table_of(COMPARED, &own)
            );
        }
        text
    }

    /// Prints the tables and writes what the options ask for. `notes` tell how it was measured, a line each; `work` is where.
    pub(super) fn publish(&self, bench: &str, notes: &[String], options: &Options, work: &Path) -> Result<()> {
        let tables = self.tables();
        println!("{tables}");
        let json = serde_json::to_string_pretty(&self.rows())? + "\n";
        if let Some(file) = &options.json {
            fs::write(file, &json).with_context(|| format!("{} cannot be written", file.display()))?;
        }
        if options.record {
            let name = format!("{bench}-{}{}", machine::today(), if options.quick { "-quick" } else { "" });
            let folder = workspace::root().join("bench").join("record");
            fs::create_dir_all(&folder)?;
            fs::write(folder.join(format!("{name}.json")), &json)?;
            fs::write(folder.join(format!("{name}.md")), record(bench, &tables, notes, work))?;
            println!("recorded as bench/record/{name}.md and .json");
        }
        Ok(())
    }
}

fn record(bench: &str, tables: &str, notes: &[String], work: &Path) -> String {
    let mut lines = vec![format!("commit: {}", workspace::commit())];
    lines.extend(machine::lines(work));
    lines.extend_from_slice(notes);
    let list: Vec<String> = lines.iter().map(|line| format!("- {line}")).collect();
    format!("# cargo xtask bench {bench}, {}\n\n{}\n\n{tables}", machine::today(), list.join("\n"))
}

fn table_of<const N: usize>(columns: [&str; N], rows: &[Map<String, Value>]) -> Table {
    let mut table = Table::new(columns);
    for row in rows {
        table.row(columns.iter().map(|&column| shown(row.get(column))).collect());
    }
    table
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// The middle and the ends of several numbers.
#[derive(Clone, Copy, Debug)]
struct Spread {
    low: f64,
    median: f64,
    high: f64,
}

impl Series {
    fn seconds(&self) -> Spread {
        let mut seconds: Vec<f64> = self.samples.iter().map(|sample| sample.cost.wall.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        Spread { low: seconds[0], median: seconds[seconds.len() / 2], high: seconds[seconds.len() - 1] }
    }

    /// Median; `None` for what was not a program of its own.
    fn cpu_seconds(&self) -> Option<f64> {
        self.peak_mib()?;
        let mut seconds: Vec<f64> = self.samples.iter().map(|sample| sample.cost.processor.as_secs_f64()).collect();
        seconds.sort_by(f64::total_cmp);
        Some(seconds[seconds.len() / 2])
    }

    /// Largest; `None` for what was not a program of its own.
    fn peak_mib(&self) -> Option<f64> {
        let peak_bytes = self.samples.iter().map(|sample| sample.cost.peak_bytes).max().filter(|&bytes| bytes > 0)?;
        Some(as_float(peak_bytes) / f64::from(1 << 20))
    }

    fn repository_bytes(&self) -> Option<u64> {
        self.samples.last().and_then(|sample| sample.repository_bytes)
    }
}

fn rounded(value: f64, digits: i32) -> f64 {
    let scale = 10_f64.powi(digits);
    (value * scale).round() / scale
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn sample(seconds: f64, repository_bytes: u64) -> Sample {
        let cost =
            Cost { wall: Duration::from_secs_f64(seconds), processor: Duration::from_secs(1), peak_bytes: 1 << 20 };
        Sample { cost, source_bytes: Some(10_000_000), repository_bytes: Some(repository_bytes) }
    }

    fn report() -> Report {
        let mut report = Report::default();
        for seconds in [1.0, 2.0, 1.5] {
            report.add("d", "first", "silt", sample(seconds, 80));
            report.add("d", "first", "restic", sample(seconds * 2.0, 100));
            report.add("d", "first", "borg", sample(seconds * 3.0, 90));
        }
        report
    }

    #[test]
    fn compares_with_the_faster_and_the_smaller_peer() {
        let rows = report().rows();
        assert_eq!(rows[0]["seconds"], 1.5);
        assert_eq!(rows[0]["speed_ratio"], 2.0);
        assert_eq!(rows[0]["speed_ratio_low"], 1.0);
        assert_eq!(rows[0]["speed_ratio_high"], 4.0);
        assert_eq!(rows[0]["repository_ratio"], 0.889);
        assert_eq!(rows[0]["mb_per_s"], 6.7);
    }

    #[test]
    fn every_printed_column_is_a_key_of_the_rows() {
        let rows = report().rows();
        assert!(MEASURED.iter().chain(&COMPARED).all(|column| rows[0].contains_key(*column)));
        let flat = |value: &Value| !value.is_object() && !value.is_array();
        assert!(rows.iter().all(|row| row.values().all(flat)));
    }
}

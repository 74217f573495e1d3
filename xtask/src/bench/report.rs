//! From samples to rows: the median over the rounds with its spread, rates, and `silt` against the best of the others.
//! The printed columns are the keys of the JSON rows.

use serde_json::{Value, json};
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::program::Cost;
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};
use siltstone_testbed::tool::Name;
use std::fmt::Write as _;

/// One measurement of one round.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Cost of the runs.
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
const MEASURED: &str = "data phase tool seconds spread_percent mb_per_s cpu_seconds peak_mib \
    repository_bytes";
/// Columns of the table of comparisons.
const COMPARED: &str = "data phase speed_ratio speed_ratio_low speed_ratio_high repository_ratio";

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
    pub(super) fn rows(&self) -> Vec<Row> {
        let mut order: Vec<&Series> = self.series.iter().collect();
        order.sort_by_key(|series| self.first_of_phase(series));
        order.into_iter().map(|series| self.row(series)).collect()
    }

    /// Where the first series of the same data and phase stands: so the rows of a phase stand together.
    fn first_of_phase(&self, series: &Series) -> usize {
        let same = |other: &Series| other.data == series.data && other.phase == series.phase;
        self.series.iter().position(same).unwrap_or_default()
    }

    fn row(&self, series: &Series) -> Row {
        let seconds = series.seconds();
        let rate = series.samples[0].source_bytes.map(|bytes| mb_per_s(bytes, seconds.median));
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("data", json!(series.data));
        set("phase", json!(series.phase));
        set("tool", json!(series.tool));
        set("seconds", json!(rounded(seconds.median, 3)));
        set("spread_percent", json!(rounded(seconds.percent(), 1)));
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

    /// Returns how many times as fast as the faster of the peers; low and high from the slowest and fastest rounds of
    /// both.
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
    pub(super) fn tables(&self) -> String {
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
}

/// Returns the row of these cells.
pub(super) fn row_with<const N: usize>(cells: [(&str, Value); N]) -> Row {
    cells.into_iter().map(|(column, value)| (column.to_owned(), value)).collect()
}

/// Returns a row for each operation of each of the `tools`, the operations in the order in which they came. `names` are
/// the data, operation and tool of a sample; `row` is given the samples of one tool and those of restic.
pub(super) fn rows_by_operation<S>(
    samples: &[S],
    tools: &[&str],
    names: impl Fn(&S) -> [&str; 3],
    row: impl Fn(&[&S], &[&S]) -> Row,
) -> Vec<Row> {
    let mut rows = Vec::new();
    let mut done: Vec<[&str; 2]> = Vec::new();
    for sample in samples {
        let [data, operation, _] = names(sample);
        if done.contains(&[data, operation]) {
            continue;
        }
        done.push([data, operation]);
        let of = |tool: &str| -> Vec<&S> {
            samples.iter().filter(|other| names(other) == [data, operation, tool]).collect()
        };
        let restic = of(Name::Restic.text());
        let of_tools = tools.iter().map(|tool| of(tool)).filter(|own| !own.is_empty());
        rows.extend(of_tools.map(|own| row(&own, &restic)));
    }
    rows
}

impl Series {
    fn seconds(&self) -> Spread {
        Spread::of(self.samples.iter().map(|sample| sample.cost.wall.as_secs_f64()))
    }

    /// Median; `None` for what was not a program of its own.
    fn cpu_seconds(&self) -> Option<f64> {
        self.peak_mib()?;
        Some(Spread::of(self.samples.iter().map(|sample| sample.cost.processor.as_secs_f64())).median)
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
        assert!(
            [MEASURED, COMPARED]
                .iter()
                .flat_map(|columns| columns.split(' '))
                .all(|column| rows[0].contains_key(column))
        );
        let flat = |value: &Value| !value.is_object() && !value.is_array();
        assert!(rows.iter().all(|row| row.values().all(flat)));
    }
}

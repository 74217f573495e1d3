//! How near: the resemblance that sketches estimate, beside the true one, on pairs of chunks made for it (`corpus::modified`).
//!
//! Source: Odess, TOS, section 4.2. Its two series (lengths of modifications at one rate, rates at one length), its sampling rates,
//! its numbers of features. The error is the distance of the estimate, matching features over all, from the true resemblance of
//! windows as long as the method's; its average and standard deviation over all pairs are shown. Beside them stands what is
//! expected of features that match independently with that probability: no method of so many features can do better.

use super::Findings;
use super::own::Own;
use super::versions::in_parallel;
use crate::bench::publish::{Row, table_of};
use anyhow::Result;
use serde_json::{Value, json};
use siltstone_chunk::{Isa, Lagged, Sizes};
use siltstone_lab::corpus::modified::{Modification, Pair};
use siltstone_lab::statistics::rounded;
use siltstone_similar::sketch::{METHODS, Odess, OdessPlus, Rate, Shape, Sketcher, Windows};
use std::fmt::Write as _;

const CHUNK_BYTES: usize = 8 << 10;
const PAIRS: usize = 5000;
const PAIRS_QUICK: usize = 500;

/// `MoL` of the first series, at this `MoR`.
const LENGTHS: [usize; 7] = [10, 50, 100, 200, 400, 800, 1600];
const RATE: f64 = 0.0005;
/// `MoR` of the second series, at this `MoL`.
const RATES: [f64; 6] = [0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.004];
const LENGTH: usize = 200;
const FEATURES: [usize; 4] = [6, 12, 18, 24];

const COLUMNS: [&str; 10] = [
    "method",
    "mor",
    "mol",
    "sampling",
    "features",
    "similarity_mean",
    "error_mean",
    "error_deviation",
    "error_expected",
    "without_sketch",
];

/// A method in the form that is measured.
struct Contender {
    sketcher: Box<dyn Sketcher>,
    /// Bytes of its windows.
    window_bytes: usize,
    /// Windows to a sample; `None` if all are taken.
    one_in: Option<u32>,
}

/// All tables.
pub(super) fn measure(is_quick: bool) -> Result<Findings> {
    let mut findings = Findings::default();
    let pairs = if is_quick { PAIRS_QUICK } else { PAIRS };
    let first = LENGTHS.map(|length| Modification { rate: RATE, length });
    let second = RATES.map(|rate| Modification { rate, length: LENGTH });
    let usual = contenders(Shape::DEFAULT);
    findings.series("accuracy-mol", "lengths of modifications", &first, &usual, pairs);
    findings.series("accuracy-mor", "rates of modifications", &second, &usual, pairs);
    findings.series("accuracy-sampling", "rates of sampling", &second, &sampled(Shape::DEFAULT), pairs);
    for features in FEATURES {
        let title = format!("{features} features");
        findings.series("accuracy-features", &title, &first[3..4], &contenders(Shape::new(features, 3)?), pairs);
    }
    findings.notes.push(format!(
        "accuracy: {pairs} pairs of chunks a row, the old one {CHUNK_BYTES} random bytes; true similarity: windows in common over all \
         windows, as long as the method's; a chunk without a sketch resembles nothing; error_expected is that of independent features"
    ));
    Ok(findings)
}

/// Every method of the papers, and our own.
fn contenders(shape: Shape) -> Vec<Contender> {
    let names = ["ntransform", "ntransform-32", "finesse", "odess", "odess-plus", "odess-plus-2", "odess-plus-8"];
    let methods = METHODS.iter().filter(|method| names.contains(&method.name));
    let mut contenders: Vec<Contender> = methods
        .map(|method| Contender {
            sketcher: method.make(shape, Isa::best()),
            window_bytes: if matches!(method.name, "ntransform" | "finesse") { 48 } else { 32 },
            one_in: method.name.starts_with("odess").then_some(Rate::DEFAULT.one_in()),
        })
        .collect();
    let chunker = Lagged::new(Sizes::DEFAULT, &[0; 32], Isa::best());
    contenders.push(Contender { sketcher: Box::new(Own::new(chunker, shape)), window_bytes: 32, one_in: Some(256) });
    contenders
}

/// Odess and Odess+ at every rate.
fn sampled(shape: Shape) -> Vec<Contender> {
    let at = |rate: Rate| -> [Contender; 2] {
        let sketchers: [Box<dyn Sketcher>; 2] = [
            Box::new(Odess::new("odess", rate, shape)),
            Box::new(OdessPlus::new("odess-plus", Windows::Four, rate, shape, Isa::best())),
        ];
        sketchers.map(|sketcher| Contender { sketcher, window_bytes: 32, one_in: Some(rate.one_in()) })
    };
    Rate::ALL.into_iter().flat_map(at).collect()
}

impl Findings {
    fn series(&mut self, table: &str, title: &str, points: &[Modification], contenders: &[Contender], pairs: usize) {
        let mut rows: Vec<Row> = Vec::new();
        for point in points {
            eprintln!("{title}: rate {}, length {}", point.rate, point.length);
            let outcomes = in_parallel(pairs, |number| {
                let pair = Pair::new(CHUNK_BYTES, *point, number as u64);
                contenders.iter().map(|contender| contender.outcome(&pair)).collect::<Vec<Outcome>>()
            });
            for (index, contender) in contenders.iter().enumerate() {
                let of_contender: Vec<Outcome> = outcomes.iter().map(|outcomes| outcomes[index]).collect();
                rows.push(row(table, *point, contender, &of_contender));
            }
        }
        rows.sort_by_key(|row| contenders.iter().position(|contender| contender.is_of(row)));
        let _ = write!(self.tables, "\n### Accuracy of sketches: {title}\n\n{}", table_of(&COLUMNS, &rows));
        self.rows.extend(rows);
    }
}

/// What a method says of one pair.
#[derive(Clone, Copy)]
struct Outcome {
    similarity: f64,
    /// `None` if one of the chunks has no sketch.
    estimate: Option<f64>,
}

impl Contender {
    fn outcome(&self, pair: &Pair) -> Outcome {
        let grouped = |chunk: &[u8]| Some(self.sketcher.sketch(chunk)?.grouped(self.sketcher.grouping()));
        let matches = grouped(&pair.old).zip(grouped(&pair.new)).map(|(old, new)| old.matches(&new));
        Outcome {
            similarity: pair.resemblance(self.window_bytes),
            estimate: matches.map(|matches| float(matches) / float(self.sketcher.shape().features())),
        }
    }

    fn is_of(&self, row: &Row) -> bool {
        row["method"] == self.sketcher.name() && row["sampling"] == json!(self.one_in)
    }
}

impl Outcome {
    fn error(self) -> f64 {
        (self.similarity - self.estimate.unwrap_or_default()).abs()
    }
}

fn row(table: &str, point: Modification, contender: &Contender, outcomes: &[Outcome]) -> Row {
    let features = contender.sketcher.shape().features();
    let mean = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / float(outcomes.len());
    let error = mean(&|outcome| outcome.error());
    let deviation = mean(&|outcome| (outcome.error() - error).powi(2)).sqrt();
    let expected = mean(&|outcome| error_of_independent(features, outcome.similarity));
    let mut row = Row::new();
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("table", json!(table));
    set("method", json!(contender.sketcher.name()));
    set("mor", json!(point.rate));
    set("mol", json!(point.length));
    set("sampling", json!(contender.one_in));
    set("features", json!(features));
    set("similarity_mean", json!(rounded(mean(&|outcome| outcome.similarity), 4)));
    set("error_mean", json!(rounded(error, 4)));
    set("error_deviation", json!(rounded(deviation, 4)));
    set("error_expected", json!(rounded(expected, 4)));
    set("without_sketch", json!(outcomes.iter().filter(|outcome| outcome.estimate.is_none()).count()));
    row
}

/// The mean distance of k / n from p, where k of n trials succeed, each with probability p.
fn error_of_independent(n: usize, p: f64) -> f64 {
    let (mut ways, mut sum) = (1.0, 0.0);
    for k in 0..=n {
        let (succeeded, failed) = (i32::try_from(k).unwrap_or(0), i32::try_from(n - k).unwrap_or(0));
        sum += ways * p.powi(succeeded) * (1.0 - p).powi(failed) * (float(k) / float(n) - p).abs();
        ways *= float(n - k) / float(k + 1);
    }
    sum
}

#[allow(clippy::cast_precision_loss)] // Counts are small.
fn float(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn independent_features_err_as_coins_do() {
        assert!((error_of_independent(1, 0.25) - 2.0 * 0.25 * 0.75).abs() < 1e-12);
        assert!((error_of_independent(2, 0.5) - 0.25).abs() < 1e-12);
        assert!(error_of_independent(12, 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_papers_order_shows_on_few_pairs() {
        let mut findings = Findings::default();
        let point = [Modification { rate: RATE, length: LENGTH }];
        findings.series("accuracy-mol", "few", &point, &contenders(Shape::DEFAULT), 60);
        let error = |method: &str| {
            let row = findings.rows.iter().find(|row| row["method"] == method).unwrap();
            row["error_mean"].as_f64().unwrap()
        };
        for method in ["ntransform", "ntransform-32", "odess", "odess-plus", "samples"] {
            assert!(error(method) < 0.8 * error("finesse"), "{method}: {}, {}", error(method), error("finesse"));
        }
    }
}

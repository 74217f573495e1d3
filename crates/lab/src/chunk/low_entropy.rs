//! `chunk-low-entropy`: how much of the data is found as low-entropy strings.
//!
//! As AE, TC'17, Table 5 counts: bytes in chunks of one repeated byte value that deduplication removes, as a share of
//! all data. They are as long as the algorithm makes them: Rabin's largest chunk, AE's w + 1, AE-Opt2's LEST. The row
//! `present` says how much there is: bytes in runs of one value that are at least an eighth of the expected size long.

use super::common::{bars, by_data, expected_sizes, shown, with};
use super::cuts::Cuts;
use super::method::{Method, UNLIMITED_RABIN};
use super::setup::Setup;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject, row};
use crate::report::{Axis, Figure, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use serde_json::json;

/// Expected sizes of the table, bytes; the first two with `quick`.
const EXPECTED: [u32; 4] = [8 << 10, 2 << 10, 4 << 10, 16 << 10];
/// The methods of the table, whose values are of eight bytes, and those over single bytes.
const METHODS: [&str; 12] = [
    UNLIMITED_RABIN,
    "rabin",
    "maxp8",
    "maxp",
    "ae8-max",
    "ae8-opt1",
    "ae8-opt2-half",
    "ae8-opt2-quarter",
    "ae8-opt2-eighth",
    "ae-max",
    "ae-opt2-eighth",
    "lagged",
];
/// The row of what there is.
const PRESENT: &str = "present";
/// Share that is worth a word of advice, percent of the data.
const WORTH_PERCENT: f64 = 1.0;

/// The experiment.
pub(super) struct LowEntropy;

impl Experiment for LowEntropy {
    fn head(&self) -> Head {
        Head {
            name: "chunk-low-entropy",
            title: "How much of the data each chunker finds as strings of low entropy",
            reproduces: &["AE (TC'17), Table 5"],
            needs: Needs::Bytes,
            methods: METHODS.to_vec(),
            rounds: Rounds::One,
            columns: "method expected_bytes low_entropy_percent savings_percent average_bytes",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = &input.data()?.bytes;
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected in expected_sizes(settings, &EXPECTED, 2) {
            subjects.push(Box::new(Present { expected, data }));
            for setup in Setup::all(Method::named(&METHODS), &[expected], settings) {
                subjects.push(setup.subject(move |setup| found(setup, data)));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let of_data = |(data, found): (&str, Vec<&Finding>)| {
            let (groups, series) = bars(&found, "method", "expected_bytes", "low_entropy_percent");
            Figure {
                title: format!("Low-entropy strings found, {data}"),
                redraws: "AE, Table 5".into(),
                caption: "Bytes in repeated chunks of one value. \"present\": in runs of at least an eighth of the expected size."
                    .into(),
                plot: Plot::Bars { y: Axis::linear("of the data, %"), groups, series },
            }
        };
        by_data(findings).into_iter().map(of_data).collect()
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        by_data(findings).into_iter().filter_map(|(data, found)| sentence(data, &found)).collect()
    }
}

/// Says how much there is of runs, and who finds most of it.
fn sentence(data: &str, found: &[&Finding]) -> Option<String> {
    let percent = |finding: &&Finding| finding.median("low_entropy_percent").unwrap_or(0.0);
    let is_present = |finding: &&&Finding| finding.parameter("method") == PRESENT;
    let (present, others): (Vec<&Finding>, Vec<_>) = found.iter().partition(|finding| is_present(finding));
    let most = others.into_iter().max_by(|one, other| percent(one).total_cmp(&percent(other)))?;
    let expected = most.parameter("expected_bytes");
    let present = with(&present, "expected_bytes", &expected).first().map(percent)?;
    let (method, size) = (most.parameter("method"), shown("expected_bytes", &expected));
    (present >= WORTH_PERCENT).then(|| {
        format!(
            "{data}: {present:.1} % lies in runs of one byte value, each at least an eighth of {size}. Chunks of nothing else that repeat, and so are stored once, are at most {:.1} % of the data: with {method} at {size}.",
            percent(&most),
        )
    })
}

/// Cuts the data, and finds the runs in it.
fn found(setup: Setup, data: &[u8]) -> Result<Outcome> {
    if let Some(difference) = setup.difference(data)? {
        return Ok(Outcome::Wrong(difference));
    }
    let cuts = Cuts::of(&*setup.best()?, data);
    Ok(Outcome::Right(vec![Sample::of([
        ("low_entropy_percent", 100.0 * cuts.low_entropy_share()),
        ("savings_percent", 100.0 * cuts.savings()),
        ("average_bytes", cuts.average()),
    ])]))
}

/// Runs that there are to find.
struct Present<'d> {
    expected: u32,
    data: &'d [u8],
}

impl Subject for Present<'_> {
    fn parameters(&self) -> Row {
        row([("method", json!(PRESENT)), ("expected_bytes", json!(self.expected))])
    }

    fn run(&mut self) -> Result<Outcome> {
        let shortest = self.expected as usize / 8;
        let runs = self.data.chunk_by(|one, other| one == other).map(<[u8]>::len);
        let bytes: usize = runs.filter(|run| *run >= shortest).sum();
        let percent = 100.0 * as_float(bytes as u64) / as_float(self.data.len().max(1) as u64);
        Ok(Outcome::Right(vec![Sample::of([("low_entropy_percent", percent)])]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn opt2_finds_more_than_ae_and_that_more_than_rabin() {
        let mut sequence = Sequence::new(9);
        let mut bytes = Vec::new();
        // Runs of 1 to 512 KiB between random bytes.
        for number in 0..60_u8 {
            bytes.extend(sequence.bytes(20_000));
            bytes.resize(bytes.len() + (1024 << sequence.below(10)), number % 4);
        }
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&bytes]);
        let found = findings(&LowEntropy, &input, &quick(&[]));
        let at = |method: &str| {
            let is_it = |f: &&Finding| f.parameter("method") == method && f.parameter("expected_bytes") == "8192";
            found.iter().find(is_it).unwrap().median("low_entropy_percent").unwrap()
        };
        assert!(at(UNLIMITED_RABIN) <= at("rabin"));
        let order = ["rabin", "ae8-max", "ae8-opt2-quarter", "ae8-opt2-eighth", PRESENT];
        for pair in order.windows(2) {
            assert!(at(pair[0]) < at(pair[1]), "{pair:?}: {} {}", at(pair[0]), at(pair[1]));
        }
        assert!((at("ae8-opt1") - at("ae8-max")).abs() < 1e-9);
        assert!(LowEntropy.advice(&found)[0].contains("opt2-eighth"), "{:?}", LowEntropy.advice(&found));
    }
}

//! `chunk-savings`: what deduplication removes, by chunker and expected size; and, in words, which of them to choose.
//!
//! All versions are one stream, as tar archives one after another where they are folders. A chunk is stored once if the
//! first 128 bits of its keyed fingerprint are new. `whole-file` stores every file once. Nothing is timed but the one
//! pass in which the cuts are found.

use super::advice;
use super::common::{bars, by_data, expected_sizes, with};
use super::cuts::{Cuts, lengths};
use super::forms::gb_per_s;
use super::method::Method;
use super::setup::Setup;
use super::throughput::FIXED;
use crate::data::Data;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject, row};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use crate::statistics::Spread;
use crate::table::as_float;
use crate::thread_time;
use crate::tree;
use anyhow::Result;
use serde_json::json;
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Bytes of an index for each stored chunk: 16 of its fingerprint, 8 of where it lies and how long it is.
pub(super) const INDEX_BYTES: f64 = 24.0;
/// The method that stores every file once.
pub(super) const WHOLE_FILE: &str = "whole-file";
/// Expected sizes, bytes; the first two with `quick`.
const EXPECTED: [u32; 5] = [8 << 10, 16 << 10, 4 << 10, 32 << 10, 64 << 10];

/// The experiment.
pub(super) struct Savings;

impl Experiment for Savings {
    fn head(&self) -> Head {
        Head {
            name: "chunk-savings",
            title: "What deduplication saves with each chunker, by expected size",
            reproduces: &["VectorCDC (TOS'25), Table 2", "VectorCDC (TOS'25), Fig. 8"],
            needs: Needs::Bytes,
            methods: Method::all().map(Method::name).collect(),
            rounds: Rounds::One,
            columns: "method expected_bytes savings_percent der net_savings_percent average_bytes \
                     deviation_bytes stored_chunks gb_per_s",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = input.data()?;
        let versions = input.corpus().versions.iter().take(data.ends.len()).cloned().collect();
        let mut subjects: Vec<Box<dyn Subject + 'i>> = vec![Box::new(WholeFiles { versions, files: data.files })];
        for setup in Setup::all(Method::by_chunks(), &expected_sizes(settings, &EXPECTED, 2), settings) {
            subjects.push(setup.subject(move |setup| saving(setup, data)));
        }
        Ok(subjects)
    }

    fn sorted_by(&self) -> Option<&'static str> {
        Some("net_savings_percent")
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = vec![by_content(findings)];
        for (data, found) in by_data(findings) {
            let (groups, series) = bars(&found, "method", "expected_bytes", "savings_percent");
            figures.push(Figure {
                title: format!("Space saved by deduplication, {data}"),
                redraws: "VectorCDC, Fig. 8".into(),
                caption: "By expected size. Real averages differ between chunkers; chunk-equal compares at equal ones."
                    .into(),
                plot: Plot::Bars { y: Axis::linear("saved, %"), groups, series },
            });
        }
        figures
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        by_data(findings).into_iter().flat_map(|(data, found)| advice::sentences(data, &found)).collect()
    }
}

/// Fixed-size chunks beside the median of those cut by content, for each data.
fn by_content(findings: &[Finding]) -> Figure {
    let all = by_data(findings);
    let of = |found: &[&Finding], is_fixed: bool| {
        let sizes = with(found, "expected_bytes", "8192");
        let chosen = sizes.iter().filter(|finding| (finding.parameter("method") == "fixed") == is_fixed);
        let savings: Vec<f64> = chosen.filter_map(|finding| finding.median("savings_percent")).collect();
        (!savings.is_empty()).then(|| Spread::of(savings))
    };
    let series = [("fixed size", true), ("cut by content: median, least, most", false)];
    let series = series.map(|(name, is_fixed)| Bars {
        name: name.into(),
        values: all.iter().map(|(_, found)| of(found, is_fixed)).collect(),
    });
    Figure {
        title: "Space saved at 8 KiB: fixed-size chunks beside those cut by content".into(),
        redraws: "VectorCDC, Table 2".into(),
        caption: "The farther apart, the more bytes are shifted between versions.".into(),
        plot: Plot::Bars {
            y: Axis::linear("saved, %"),
            groups: all.iter().map(|(data, _)| (*data).to_owned()).collect(),
            series: series.into(),
        },
    }
}

/// Cuts the data, and finds what deduplication would save.
fn saving(setup: Setup, data: &Data) -> Result<Outcome> {
    if let Some(difference) = setup.difference(&data.bytes)? {
        return Ok(Outcome::Wrong(difference));
    }
    let chunker = setup.best()?;
    let (seconds, lengths) = thread_time::of(|| lengths(&*chunker, &data.bytes));
    let cuts = Cuts::of_lengths(&lengths, &data.bytes);
    let mut sample = sample(&cuts);
    // What looks at no byte has no speed.
    if setup.method.name() != FIXED {
        sample.values.push(("gb_per_s".into(), gb_per_s(data.bytes.len(), seconds)));
    }
    sample.values.push(("versions".into(), as_float(data.ends.len() as u64)));
    Ok(Outcome::Right(vec![sample]))
}

/// Returns the measures of cuts.
fn sample(cuts: &Cuts) -> Sample {
    let stored = as_float(cuts.unique_bytes) + INDEX_BYTES * as_float(cuts.unique_count);
    Sample::of([
        ("savings_percent", 100.0 * cuts.savings()),
        ("der", cuts.elimination_ratio()),
        ("net_savings_percent", 100.0 * (1.0 - stored / as_float(cuts.bytes.max(1)))),
        ("average_bytes", cuts.average()),
        ("deviation_bytes", cuts.deviation()),
        ("chunks", as_float(cuts.count)),
        ("stored_chunks", as_float(cuts.unique_count)),
        ("data_bytes", as_float(cuts.bytes)),
    ])
}

/// Every file stored once: the same files as are cut.
struct WholeFiles {
    versions: Vec<PathBuf>,
    /// Number of files taken of those that can be read, in order.
    files: usize,
}

impl Subject for WholeFiles {
    fn parameters(&self) -> Row {
        row([("method", json!(WHOLE_FILE))])
    }

    fn run(&mut self) -> Result<Outcome> {
        let (mut cuts, mut known) = (Cuts::default(), HashSet::new());
        let files = |version: &PathBuf| {
            if version.is_dir() { tree::readable_files(version).0 } else { vec![version.clone()] }
        };
        let digests = self.versions.iter().flat_map(files).filter_map(|path| digest(&path).ok());
        for (digest, bytes) in digests.take(self.files) {
            cuts.add_length(bytes, known.insert(digest));
        }
        Ok(Outcome::Right(vec![sample(&cuts)]))
    }
}

/// Digest and length of a file.
fn digest(path: &Path) -> io::Result<([u8; 32], u64)> {
    let mut hasher = blake3::Hasher::new();
    hasher.update_reader(File::open(path)?)?;
    Ok((*hasher.finalize().as_bytes(), hasher.count()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::chunk::common::values;
    use crate::deterministic::Sequence;

    #[test]
    fn a_shifted_copy_is_found_by_content_alone() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = Sequence::new(3).bytes(1 << 20);
        let shifted = [b"x", &bytes[..]].concat();
        let input = input(folder.path(), &[&bytes, &shifted]);
        let found = findings(&Savings, &input, &quick(&["fixed", "gear-nc2", "lagged"]));
        let named: Vec<&Finding> = found.iter().collect();
        assert_eq!(values(&named, "method"), [WHOLE_FILE, "fixed", "gear-nc2", "lagged"]);
        for finding in &found {
            let savings = finding.median("savings_percent").unwrap();
            let is_by_content = !["fixed", WHOLE_FILE].contains(&finding.parameter("method").as_str());
            assert!(if is_by_content { savings > 45.0 } else { savings < 1.0 }, "{finding:?}");
            let der = finding.median("der").unwrap();
            assert!((100.0 * (1.0 - 1.0 / der) - savings).abs() < 1e-6);
            assert!(finding.median("net_savings_percent").unwrap() < savings);
        }
        let advice = Savings.advice(&found).join(" ");
        assert!(advice.contains("lagged at 16 KiB"), "{advice}");
        let Plot::Bars { groups, series, .. } = &Savings.figures(&found)[0].plot else { panic!("bars") };
        assert_eq!((groups.len(), series.len()), (1, 2));
    }

    #[test]
    fn equal_files_are_stored_once() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[b"same", b"same", b"other"]);
        let found = findings(&Savings, &input, &quick(&["fixed"]));
        assert!((found[0].median("der").unwrap() - 13.0 / 9.0).abs() < 1e-9);
    }
}

//! `chunk-sizes`: how chunks are spread in size, and how many end only because they must.
//!
//! The distribution is that of chunks, not of bytes. That of the scalar form and that of the best form must be the
//! same, chunk by chunk.

use super::common::{by_data, expected_sizes, kib, of_methods, shown, timed, values, with};
use super::cuts::{Cuts, lengths};
use super::method::Method;
use super::setup::Setup;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Figure, Line, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use siltstone_chunk::Isa;

/// Expected sizes, bytes, as AE's Figure 6 has them; the first with `quick`.
const EXPECTED: [u32; 3] = [8 << 10, 4 << 10, 16 << 10];
/// Points of the distribution for each expected size.
const STEPS: u32 = 16;
/// Reach of the curve, in expected sizes.
const REACH: u32 = 8;
/// Methods drawn in AE's Figure 6, and in `VectorCDC`'s Figure 9.
const AE_FIGURE: [&str; 3] = ["rabin", "maxp", "ae8-max"];
const VECTOR_FIGURE: [&str; 4] = ["ae-max", "ae-min", "maxp", "ram"];
/// Methods measured with `quick`.
const FEW: [&str; 11] =
    ["rabin", "tttd", "fastcdc-2020-nc2", "gear-nc2", "lagged", "ae-max", "ae-min", "ae8-max", "maxp", "ram", "ram-t"];

/// The experiment.
pub(super) struct ChunkSizes;

impl Experiment for ChunkSizes {
    fn head(&self) -> Head {
        Head {
            name: "chunk-sizes",
            title: "How chunks are spread in size",
            reproduces: &["AE (TC'17), Fig. 6", "VectorCDC (TOS'25), Fig. 9"],
            needs: Needs::Bytes,
            methods: Method::all().map(Method::name).collect(),
            rounds: Rounds::One,
            columns: "method expected_bytes average_bytes deviation_bytes p10_bytes p50_bytes p90_bytes \
                     largest_bytes forced_percent",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = timed(&input.data()?.bytes, settings);
        let few = settings.quick && settings.methods.is_empty();
        let methods = if few { Method::named(&FEW) } else { Method::by_chunks().collect() };
        let setups = Setup::all(methods, &expected_sizes(settings, &EXPECTED, 1), settings);
        let subject = |setup: Setup| setup.subject(move |setup| spreading(setup, data));
        Ok(setups.into_iter().map(subject).collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            for expected in values(&found, "expected_bytes") {
                let found = with(&found, "expected_bytes", &expected);
                let size = shown("expected_bytes", &expected);
                figures.push(Figure {
                    title: format!("Chunk sizes at an expected size of {size}, {data}: cumulative distribution"),
                    redraws: "VectorCDC, Fig. 9".into(),
                    caption: "Scalar and vector forms give the same line.".into(),
                    plot: plot(&found, &VECTOR_FIGURE, "chunks at most as large, %", cumulative),
                });
                figures.push(Figure {
                    title: format!("Chunk sizes at an expected size of {size}, {data}: shares"),
                    redraws: "AE, Fig. 6".into(),
                    caption: format!("Share of chunks in each quarter of {size}."),
                    plot: plot(&found, &AE_FIGURE, "chunks, %", by_quarters),
                });
            }
        }
        figures
    }
}

/// A line for each of these methods; for all, if none of them was measured.
fn plot(found: &[&Finding], names: &[&str], label: &str, points: fn(&Finding) -> Vec<(f64, f64)>) -> Plot {
    let chosen = of_methods(found, names);
    let chosen = if chosen.is_empty() { found.to_vec() } else { chosen };
    let line =
        |finding: &&Finding| Line { name: finding.parameter("method"), is_theory: false, points: points(finding) };
    Plot::Lines { x: Axis::linear("size, KiB"), y: Axis::linear(label), series: chosen.iter().map(line).collect() }
}

/// Name of the share of chunks of at most so many steps.
fn at_most(step: u32) -> String {
    format!("at_most_{step}_of_{STEPS}_percent")
}

/// Size in KiB, share of chunks at most as large.
fn cumulative(finding: &Finding) -> Vec<(f64, f64)> {
    let Ok(expected) = finding.parameter("expected_bytes").parse::<f64>() else { return Vec::new() };
    let point = |step: u32| Some((size_kib(expected, step), finding.median(&at_most(step))?));
    (0..=REACH * STEPS).filter_map(point).collect()
}

/// Middle of a quarter of the expected size, share of chunks in it.
fn by_quarters(finding: &Finding) -> Vec<(f64, f64)> {
    let quarter = (STEPS / 4) as usize;
    let ends: Vec<(f64, f64)> = cumulative(finding).into_iter().step_by(quarter).collect();
    ends.windows(2).map(|ends| (f64::midpoint(ends[0].0, ends[1].0), ends[1].1 - ends[0].1)).collect()
}

fn size_kib(expected: f64, step: u32) -> f64 {
    expected * f64::from(step) / f64::from(STEPS) / 1024.0
}

/// Cuts the data, and finds how the chunks are spread.
fn spreading(setup: Setup, data: &[u8]) -> Result<Outcome> {
    let (chunker, expected) = (setup.best()?, setup.expected);
    let mut lengths_found = lengths(&*chunker, data);
    if lengths_found != lengths(&*setup.chunker(Isa::SCALAR)?, data) {
        let size = kib(expected.into());
        return Ok(Outcome::Wrong(format!("at {size} its best form cuts elsewhere than the scalar one")));
    }
    Ok(Outcome::Right(vec![spread(&mut lengths_found, chunker.sizes().max(), expected)]))
}

/// The distribution of these lengths, none of which exceeds `max`.
fn spread(lengths: &mut [usize], max: usize, expected: u32) -> Sample {
    lengths.sort_unstable();
    let cuts = Cuts::new_ones(lengths);
    let count = as_float(cuts.count.max(1));
    let quantile = |percent: usize| as_float(lengths.get(lengths.len() * percent / 100).copied().unwrap_or(0) as u64);
    let share = |found: usize| 100.0 * as_float(found as u64) / count;
    let forced = lengths.len() - lengths.partition_point(|length| *length < max);
    let mut sample = Sample::of([
        ("average_bytes", cuts.average()),
        ("deviation_bytes", cuts.deviation()),
        ("p10_bytes", quantile(10)),
        ("p50_bytes", quantile(50)),
        ("p90_bytes", quantile(90)),
        ("largest_bytes", as_float(lengths.last().copied().unwrap_or(0) as u64)),
        ("forced_percent", share(forced)),
    ]);
    for step in 0..=REACH * STEPS {
        let size = u64::from(expected) * u64::from(step) / u64::from(STEPS);
        let smaller = lengths.partition_point(|length| *length as u64 <= size);
        sample.values.push((at_most(step), share(smaller)));
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn distributions_reach_all_chunks_and_forced_ones_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(4).bytes(1 << 20), &vec![0; 1 << 20]]);
        let found = findings(&ChunkSizes, &input, &quick(&["rabin", "fixed", "ae-max"]));
        let of = |method: &str| found.iter().find(|finding| finding.parameter("method") == method).unwrap();
        for finding in &found {
            let points = cumulative(finding);
            assert_eq!(points.len(), (REACH * STEPS + 1) as usize);
            assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1));
            assert!(points[0].1.abs() < 1e-9);
        }
        // The zeros have no cut of Rabin but at eight times the expected size, and every chunk of AE there is w + 1
        // long.
        assert!(of("rabin").median("forced_percent").unwrap() > 5.0);
        assert!(of("ae-max").median("forced_percent").unwrap().abs() < 1e-9);
        assert!((of("fixed").median("deviation_bytes").unwrap()).abs() < 1e-6);
        let shares: f64 = by_quarters(of("rabin")).iter().map(|(_, share)| share).sum();
        assert!((shares - 100.0).abs() < 1e-6);
    }

    #[test]
    fn quantiles_are_those_of_the_lengths() {
        let mut lengths: Vec<usize> = (1..=100).rev().collect();
        let sample = spread(&mut lengths, 100, 50);
        let value = |name: &str| sample.values.iter().find(|(key, _)| key == name).unwrap().1;
        assert!((value("p10_bytes") - 11.0).abs() < 1e-9 && (value("p50_bytes") - 51.0).abs() < 1e-9);
        assert!((value("forced_percent") - 1.0).abs() < 1e-9 && (value("largest_bytes") - 100.0).abs() < 1e-9);
        assert!((value(&at_most(STEPS)) - 50.0).abs() < 1e-9);
    }
}

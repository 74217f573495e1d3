//! `chunk-phases`: what extreme byte searches and range scans each take of the hashless chunkers, as `VectorCDC`,
//! TOS'25, section 6.3, asks.
//!
//! Its two questions, on its own form of the algorithms ([`super::two_phase`]): the throughput with neither
//! accelerated, with searches only, with both; and the share of the bytes gone through that each phase handles. A third
//! is ours: the phases run apart. All ranges that were searched are searched again one after another, then all that
//! were scanned are scanned; of the sum of both times, the shares.

use super::common::{bars, by_data, expected_sizes, timed, with};
use super::cuts::Digest;
use super::forms::{self, gb_per_s, remarked};
use super::method::Method;
use super::papers::PaperForm;
use super::two_phase::{Compare, Phases, TwoPhase, Vectors};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject, row};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::{Context, Result};
use serde_json::json;
use siltstone_chunk::{Extreme, Isa, Sizes};
use std::ops::Range;
use std::rc::Rc;

/// The hashless chunkers of the paper, in its form.
const METHODS: [&str; 4] = ["vae-max", "vae-min", "vmaxp", "vram"];
/// Which phases have vectors.
const ACCELERATED: [&str; 3] = ["none", "search", "both"];

/// The experiment.
pub(super) struct PhaseShares;

impl Experiment for PhaseShares {
    fn head(&self) -> Head {
        Head {
            name: "chunk-phases",
            title: "What extreme byte searches and range scans take of the hashless chunkers",
            reproduces: &["VectorCDC (TOS'25), Fig. 12", "VectorCDC (TOS'25), Fig. 13"],
            needs: Needs::Bytes,
            methods: METHODS.to_vec(),
            rounds: Rounds::All,
            columns: "method expected_bytes accelerated remark gb_per_s average_bytes search_bytes_percent \
                     scan_bytes_percent search_time_percent bytes_per_byte",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = timed(&input.data()?.bytes, settings);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected in expected_sizes(settings, &[8 << 10], 1) {
            for method in Method::wanted(Method::named(&METHODS), settings) {
                let Method::Paper(form) = method else { continue };
                let asked = Rc::new(Asked::by(form, expected, data)?);
                for accelerated in ACCELERATED {
                    subjects.push(Box::new(Apart::new(&asked, accelerated, data)));
                }
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            let (groups, series) = bars(&found, "method", "accelerated", "gb_per_s");
            figures.push(Figure {
                title: format!("Throughput with one phase or both accelerated, {data}"),
                redraws: "VectorCDC, Fig. 12".into(),
                caption: "The algorithms as VectorCDC puts them together, with this machine's highest vectors.".into(),
                plot: Plot::Bars { y: Axis::linear("GB/s"), groups, series },
            });
            let both = with(&found, "accelerated", ACCELERATED[2]);
            figures.push(shares(
                data,
                &both,
                "bytes gone through",
                "VectorCDC, Fig. 13",
                [("search", "search_bytes_percent"), ("scan", "scan_bytes_percent")],
            ));
            figures.push(shares(
                data,
                &both,
                "time, both accelerated",
                "",
                [("search", "search_time_percent"), ("scan", "scan_time_percent")],
            ));
        }
        figures
    }
}

fn shares(data: &str, found: &[&Finding], what: &str, redraws: &str, measures: [(&str, &str); 2]) -> Figure {
    let series = measures.map(|(name, measure)| Bars::of(name, found, measure));
    Figure {
        title: format!("Shares of extreme byte search and range scan in the {what}, {data}"),
        redraws: redraws.into(),
        caption: String::new(),
        plot: Plot::Bars {
            y: Axis::linear("%"),
            groups: found.iter().map(|finding| finding.parameter("method")).collect(),
            series: series.into(),
        },
    }
}

/// An algorithm with neither, one or both of its phases accelerated.
struct Apart<'d> {
    asked: Rc<Asked>,
    accelerated: &'static str,
    vectors: Vectors<'d>,
}

impl<'d> Apart<'d> {
    fn new(asked: &Rc<Asked>, accelerated: &'static str, data: &'d [u8]) -> Self {
        let [_, search_only, both] = ACCELERATED;
        let isa = |is_accelerated| if is_accelerated { Isa::best() } else { Isa::SCALAR };
        let search = isa(accelerated == search_only || accelerated == both);
        Self { asked: asked.clone(), accelerated, vectors: Vectors { data, search, scan: isa(accelerated == both) } }
    }
}

/// All that an algorithm asks on its way through the data, and what it must cut there.
struct Asked {
    form: PaperForm,
    expected: u32,
    algorithm: TwoPhase,
    sizes: Sizes,
    /// Digest of what the scalar form of `siltstone_chunk` cuts.
    truth: Digest,
    searched: Vec<(Range<usize>, Extreme, u8)>,
    scanned: Vec<(Range<usize>, u8, Compare, Option<usize>)>,
}

impl Asked {
    fn by(form: PaperForm, expected: u32, data: &[u8]) -> Result<Self> {
        let (algorithm, sizes) = form.two_phase(expected)?.context("only hashless chunkers have phases")?;
        let twin = form.twin().and_then(Method::by_name).context("its cuts are those of another method")?;
        let vectors = Vectors { data, search: Isa::best(), scan: Isa::best() };
        let mut recorder = Recorder { vectors, searched: Vec::new(), scanned: Vec::new() };
        algorithm.cut_all(data, sizes, &mut recorder, |_| ());
        let truth = Digest::of(&*twin.chunker(expected, Isa::SCALAR)?, data);
        let Recorder { searched, scanned, .. } = recorder;
        Ok(Self { form, expected, algorithm, sizes, truth, searched, scanned })
    }
}

impl Subject for Apart<'_> {
    fn parameters(&self) -> Row {
        row([
            ("method", json!(self.asked.form.name())),
            ("expected_bytes", json!(self.asked.expected)),
            ("accelerated", json!(self.accelerated)),
        ])
    }

    fn run(&mut self) -> Result<Outcome> {
        let (asked, mut vectors) = (&*self.asked, self.vectors);
        let (seconds, digest) = forms::timed(vectors.data, |data| {
            let mut digest = Digest::default();
            asked.algorithm.cut_all(data, asked.sizes, &mut vectors, |length| digest.add(length));
            digest
        });
        if digest != asked.truth {
            return Ok(Outcome::Wrong("its phases cut elsewhere than the scalar form".into()));
        }
        let (search_seconds, searched) = forms::timed(vectors.data, |_| asked.search_again(vectors));
        let (scan_seconds, scanned) = forms::timed(vectors.data, |_| asked.scan_again(vectors));
        if (searched, scanned) != asked.results() {
            return Ok(Outcome::Wrong("its phases find something else when they run apart".into()));
        }
        let (search_bytes, scan_bytes) = asked.bytes();
        let percent = |part: f64, other: f64| 100.0 * part / (part + other).max(1e-12);
        let average = digest.average(vectors.data.len());
        let sample = Sample::of([
            ("gb_per_s", gb_per_s(vectors.data.len(), seconds)),
            ("average_bytes", average),
            ("search_bytes_percent", percent(search_bytes, scan_bytes)),
            ("scan_bytes_percent", percent(scan_bytes, search_bytes)),
            ("search_time_percent", percent(search_seconds, scan_seconds)),
            ("scan_time_percent", percent(scan_seconds, search_seconds)),
            ("bytes_per_byte", (search_bytes + scan_bytes) / as_float(vectors.data.len().max(1) as u64)),
            ("seconds", seconds),
            ("search_seconds", search_seconds),
            ("scan_seconds", scan_seconds),
        ]);
        Ok(Outcome::Right(vec![remarked(sample, "", average, asked.expected)]))
    }
}

/// Keeps what is asked and answered.
struct Recorder<'d> {
    vectors: Vectors<'d>,
    searched: Vec<(Range<usize>, Extreme, u8)>,
    scanned: Vec<(Range<usize>, u8, Compare, Option<usize>)>,
}

impl Phases for Recorder<'_> {
    fn search(&mut self, range: Range<usize>, extreme: Extreme) -> u8 {
        let found = self.vectors.search(range.clone(), extreme);
        self.searched.push((range, extreme, found));
        found
    }

    fn scan(&mut self, range: Range<usize>, target: u8, compare: Compare) -> Option<usize> {
        let found = self.vectors.scan(range.clone(), target, compare);
        self.scanned.push((range, target, compare, found));
        found
    }
}

impl Asked {
    fn search_again(&self, mut vectors: Vectors<'_>) -> Digest {
        let found = self.searched.iter().map(|(range, extreme, _)| vectors.search(range.clone(), *extreme));
        Digest::of_lengths(found.map(usize::from))
    }

    fn scan_again(&self, mut vectors: Vectors<'_>) -> Digest {
        let found = |(range, target, compare, _): &(Range<usize>, u8, Compare, Option<usize>)| {
            vectors.scan(range.clone(), *target, *compare).unwrap_or(usize::MAX)
        };
        Digest::of_lengths(self.scanned.iter().map(found))
    }

    /// Returns what both must find again.
    fn results(&self) -> (Digest, Digest) {
        let searched = self.searched.iter().map(|(_, _, found)| usize::from(*found));
        let scanned = self.scanned.iter().map(|(_, _, _, found)| found.unwrap_or(usize::MAX));
        (Digest::of_lengths(searched), Digest::of_lengths(scanned))
    }

    /// Bytes looked at by searches and by scans; a scan ends where it finds.
    fn bytes(&self) -> (f64, f64) {
        let searched: usize = self.searched.iter().map(|(range, _, _)| range.len()).sum();
        let scanned: usize =
            self.scanned.iter().map(|(range, _, _, found)| found.map_or(range.len(), |at| at + 1 - range.start)).sum();
        (as_float(searched as u64), as_float(scanned as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn phases_cut_where_the_one_pass_forms_do() {
        let mut sequence = Sequence::new(5);
        let text: Vec<u8> = sequence.bytes(80_000).iter().map(|byte| b'a' + byte % 26).collect();
        let data = [sequence.bytes(120_000), vec![0; 20_000], text, [9, 5].repeat(7000), sequence.bytes(7)].concat();
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&data]);
        for expected in [300, 1 << 10, 8 << 10] {
            let settings = Settings { expected_bytes: vec![expected], ..quick(&[]) };
            for finding in findings(&PhaseShares, &input, &settings) {
                assert_eq!(finding.wrong, None, "{:?}", finding.parameters);
                let bytes = |name| finding.median(name).unwrap();
                assert!((bytes("search_bytes_percent") + bytes("scan_bytes_percent") - 100.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn every_byte_of_ram_is_looked_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(5).bytes(400_000)]);
        let found = findings(&PhaseShares, &input, &quick(&["vram"]));
        assert_eq!(found.len(), ACCELERATED.len());
        assert!(found.iter().all(|finding| finding.median("bytes_per_byte").unwrap() <= 1.0));
        assert_eq!(PhaseShares.figures(&found).len(), 3);
    }
}

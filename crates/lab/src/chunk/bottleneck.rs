//! `chunk-fingerprint`: what fingerprinting takes beside chunking: which of them holds deduplication up.
//!
//! Chunks are cut, their lengths kept, then their bytes are fingerprinted, each in a pass of its own and timed apart,
//! one thread. As in the papers: one fast hash-based chunker with every fingerprint, and every chunker with the fastest
//! hash; besides, with ours.

use super::chunks::Chunks;
use super::common::{by_data, expected_sizes, timed, with};
use super::cuts::{Digest, lengths};
use super::fingerprints::Fingerprint;
use super::forms;
use super::method::Method;
use crate::distinct;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject, row};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use serde_json::json;
use siltstone_chunk::{Isa, Reference};
use std::rc::Rc;

/// The chunker that is shown with every fingerprint (`VectorCDC`, Figure 3: `FastCDC`).
const FASTCDC: &str = "fastcdc-2016-nc2";
/// Those that are shown with few (its Figure 11), besides the default.
const METHODS: [&str; 16] = [
    "rabin", "crc", "gear", "tttd", FASTCDC, "ss-crc", "ss-gear", "ae-max", "ae-min", "maxp-t", "ram-t", "vae-max",
    "vae-min", "vmaxp", "vram", "lagged",
];
/// The chunker and the fingerprint of AE's Table 2.
const TABLE_2: (&str, Fingerprint) = ("rabin", Fingerprint::Other(Reference::Sha1));

/// The experiment.
pub(super) struct Bottleneck;

impl Experiment for Bottleneck {
    fn head(&self) -> Head {
        Head {
            name: "chunk-fingerprint",
            title: "What fingerprinting takes beside chunking",
            reproduces: &["AE (TC'17), Table 2", "VectorCDC (TOS'25), Fig. 3", "VectorCDC (TOS'25), Fig. 11"],
            needs: Needs::Bytes,
            methods: METHODS.to_vec(),
            rounds: Rounds::All,
            columns: "method isa expected_bytes fingerprint remark average_bytes chunking_seconds_per_gb fingerprint_seconds_per_gb \
                     chunking_mb_per_s fingerprint_mb_per_s chunking_percent",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = timed(&input.data()?.bytes, settings);
        let every = Fingerprint::compared();
        let few = [Fingerprint::Other(Reference::Xxh3), Fingerprint::Batch(Isa::best())];
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected in expected_sizes(settings, &[8 << 10], 1) {
            for method in Method::wanted(Method::named(&METHODS), settings) {
                let name = method.name();
                let mut fingerprints = if name == FASTCDC { every.clone() } else { few.to_vec() };
                fingerprints.extend((name == TABLE_2.0).then_some(TABLE_2.1));
                let lengths: Rc<[usize]> = lengths(&*method.chunker(expected, Isa::SCALAR)?, data).into();
                let isas = distinct([Isa::SCALAR, method.best()]);
                for fingerprint in fingerprints {
                    let truth = fingerprint.truth().over(Chunks::of(&lengths, data));
                    for isa in &isas {
                        let (isa, lengths) = (*isa, lengths.clone());
                        subjects.push(Box::new(Stages { method, isa, expected, fingerprint, data, lengths, truth }));
                    }
                }
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let xxh3 = Reference::Xxh3.name();
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            let of_fastcdc = with(&found, "method", FASTCDC);
            let by_hash = of_fastcdc.iter().map(|finding| finding.parameter("fingerprint")).collect();
            figures.push(stacked(
                format!("Chunking by FastCDC beside fingerprinting, {data}"),
                "VectorCDC, Fig. 3",
                by_hash,
                &of_fastcdc,
            ));
            let of_xxh3 = with(&found, "fingerprint", xxh3);
            let by_form = of_xxh3.iter().map(|finding| form(finding)).collect();
            figures.push(stacked(
                format!("Chunking beside fingerprinting by {xxh3}, {data}"),
                "VectorCDC, Fig. 11",
                by_form,
                &of_xxh3,
            ));
        }
        figures
    }
}

fn form(finding: &Finding) -> String {
    format!("{}, {}", finding.parameter("method"), finding.parameter("isa"))
}

fn stacked(title: String, redraws: &str, groups: Vec<String>, found: &[&Finding]) -> Figure {
    let series = [("chunking", "chunking_seconds_per_gb"), ("fingerprinting", "fingerprint_seconds_per_gb")];
    let series = series.map(|(name, measure)| Bars::of(name, found, measure));
    Figure {
        title,
        redraws: redraws.into(),
        caption: "One thread each, one after the other; the longer one holds up a pipeline of both.".into(),
        plot: Plot::Bars { y: Axis::linear("seconds per GB"), groups, series: series.into() },
    }
}

/// A chunker in one form, then a fingerprint.
struct Stages<'d> {
    method: Method,
    isa: Isa,
    expected: u32,
    fingerprint: Fingerprint,
    data: &'d [u8],
    lengths: Rc<[usize]>,
    truth: Digest,
}

impl Subject for Stages<'_> {
    fn parameters(&self) -> Row {
        row([
            ("method", json!(self.method.name())),
            ("isa", json!(self.method.isa_name(self.isa))),
            ("expected_bytes", json!(self.expected)),
            ("fingerprint", json!(self.fingerprint.name())),
        ])
    }

    fn run(&mut self) -> Result<Outcome> {
        let chunker = self.method.chunker(self.expected, self.isa)?;
        let (chunking, cuts) = forms::timed(self.data, |data| Digest::of(&*chunker, data));
        if cuts != Digest::of_lengths(self.lengths.iter().copied()) {
            return Ok(Outcome::Wrong("it cuts elsewhere than its scalar form".into()));
        }
        let over = |data: &[u8]| self.fingerprint.over(Chunks::of(&self.lengths, data));
        let (fingerprinting, names) = forms::timed(self.data, over);
        if names != self.truth {
            return Ok(Outcome::Wrong("its fingerprints are not what they should be".into()));
        }
        let gb = as_float(self.data.len() as u64) / 1e9;
        let average = cuts.average(self.data.len());
        let sample = Sample::of([
            ("average_bytes", average),
            ("chunking_seconds_per_gb", chunking / gb),
            ("fingerprint_seconds_per_gb", fingerprinting / gb),
            ("chunking_mb_per_s", 1000.0 * gb / chunking.max(1e-9)),
            ("fingerprint_mb_per_s", 1000.0 * gb / fingerprinting.max(1e-9)),
            ("chunking_percent", 100.0 * chunking / (chunking + fingerprinting).max(1e-12)),
        ]);
        Ok(Outcome::Right(vec![forms::remarked(sample, self.method.way(self.isa), average, self.expected)]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn both_stages_are_timed_and_right() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(5).bytes(300_000)]);
        let found = findings(&Bottleneck, &input, &quick(&["rabin", FASTCDC, "ram-t"]));
        assert!(found.iter().all(|finding| finding.wrong.is_none()));
        let fastcdc = found.iter().filter(|finding| finding.parameter("method") == FASTCDC).count();
        assert_eq!(fastcdc, Fingerprint::compared().len());
        assert!(found.iter().any(|f| f.parameter("method") == "rabin" && f.parameter("fingerprint") == "sha1"));
        let figures = Bottleneck.figures(&found);
        let Plot::Bars { groups, series, .. } = &figures[1].plot else { panic!("bars") };
        assert!(groups.len() >= 4 && series.iter().all(|series| series.values.iter().all(Option::is_some)));
    }
}

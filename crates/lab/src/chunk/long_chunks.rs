//! `chunk-long`: how often no cut comes for a long way, on random bytes, beside the formulas.
//!
//! Two events, both measured: that a chunk is longer than m average chunks; and that a region of that length, begun
//! anywhere, holds no cut, which is what AE's Table 4 names. Sizes are in real averages. The formulas take values that
//! do not tie; MAXP here is over single bytes, which do, so that it cuts only where a high byte stands alone.

use super::cuts::{Cuts, lengths};
use super::method::{Method, UNLIMITED_RABIN};
use super::setup::Setup;
use super::theory;
use crate::deterministic::Sequence;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Figure, Line, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use siltstone_chunk::Isa;
use std::rc::Rc;

/// Expected size, bytes: small, so that there are many chunks.
const EXPECTED: u32 = 2 << 10;
/// Farthest length looked at, in averages.
const FAR: u32 = 8;
/// Distance of the real average on random bytes from the expected size at most, as a share of it.
const AVERAGE_OFF: f64 = 0.04;

type Formula = fn(f64) -> f64;

/// A method, what the paper says of it, and what follows from its definition here.
const THEORIES: [(&str, Option<Formula>, Option<Formula>); 6] = [
    ("ae8-max", Some(theory::ae), Some(theory::ae_true)),
    ("ae-max", None, None),
    (UNLIMITED_RABIN, Some(theory::rabin), Some(theory::rabin)),
    ("rabin", Some(theory::rabin_quarter), Some(theory::rabin_quarter_true)),
    ("maxp", Some(theory::maxp), None),
    ("ram", None, None),
];

/// The experiment.
pub(super) struct LongChunks;

impl Experiment for LongChunks {
    fn head(&self) -> Head {
        Head {
            name: "chunk-long",
            title: "How probable long chunks are on random bytes, beside the theory",
            reproduces: &["AE (TC'17), Table 4"],
            needs: Needs::Nothing,
            methods: THEORIES.map(|(name, _, _)| name).to_vec(),
            rounds: Rounds::One,
            columns: "method averages paper_probability empty_region_probability longer_chunk_probability \
                     derived_probability chunks",
        }
    }

    fn subjects<'i>(&self, _: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let wanted = if settings.quick { 64 << 20 } else { 1 << 30 };
        let bytes_max = usize::try_from(settings.memory_mib.saturating_mul(1 << 20) / 4).unwrap_or(usize::MAX);
        let data: Rc<[u8]> = Sequence::new(settings.seed).bytes(wanted.min(bytes_max)).into();
        let names = THEORIES.map(|(name, _, _)| name);
        let subject = |setup: Setup| {
            let data = data.clone();
            setup.subject(move |setup| long(setup, &data))
        };
        Ok(Setup::all(Method::named(&names), &[EXPECTED], settings).into_iter().map(subject).collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut series = Vec::new();
        for (name, _, _) in THEORIES {
            let measures = [
                ("empty_region_probability", "", false),
                ("longer_chunk_probability", ", chunks", false),
                ("paper_probability", ", the paper", true),
                ("derived_probability", ", chunks, derived", true),
            ];
            for (measure, suffix, is_theory) in measures {
                let points = points(findings, name, measure);
                if !points.is_empty() {
                    series.push(Line { name: format!("{name}{suffix}"), is_theory, points });
                }
            }
        }
        vec![Figure {
            title: "Probability of no cut for a long way, on random bytes".into(),
            redraws: "AE, Table 4".into(),
            caption: "In a region begun anywhere; with \"chunks\", in one begun where a chunk begins.".into(),
            plot: Plot::Lines {
                x: Axis::linear("length in average chunks"),
                y: Axis::logarithmic("probability"),
                series,
            },
        }]
    }
}

/// Returns what was found at each length, as far as it is above 0.
fn points(findings: &[Finding], method: &str, measure: &str) -> Vec<(f64, f64)> {
    let of_method = findings.iter().filter(|finding| finding.parameter("method") == method);
    let point = |finding: &Finding| Some((finding.parameter("averages").parse().ok()?, finding.median(measure)?));
    of_method.filter_map(point).filter(|(_, probability)| *probability > 0.0).collect()
}

/// Cuts the bytes, and counts the long chunks.
fn long(setup: Setup, data: &[u8]) -> Result<Outcome> {
    let lengths_found = lengths(&*setup.best()?, data);
    if lengths_found != lengths(&*setup.chunker(Isa::SCALAR)?, data) {
        return Ok(Outcome::Wrong("its best form cuts elsewhere than the scalar one".into()));
    }
    let cuts = Cuts::new_ones(&lengths_found);
    let off = cuts.average() / f64::from(EXPECTED) - 1.0;
    if off.abs() > AVERAGE_OFF {
        return Ok(Outcome::Wrong(format!("its average on random bytes is off by {:.1} %", 100.0 * off)));
    }
    Ok(Outcome::Right((1..=FAR).map(|m| at(setup.method, m, &lengths_found, &cuts)).collect()))
}

/// Returns what the lengths say of `m` averages.
fn at(method: Method, m: u32, lengths: &[usize], cuts: &Cuts) -> Sample {
    let limit = f64::from(m) * cuts.average();
    let beyond = lengths.iter().map(|length| as_float(*length as u64) - limit).filter(|beyond| *beyond > 0.0);
    let (mut longer, mut empty_bytes) = (0_u64, 0.0);
    for beyond in beyond {
        longer += 1;
        empty_bytes += beyond;
    }
    let mut sample = Sample::of([
        ("empty_region_probability", empty_bytes / as_float(cuts.bytes)),
        ("longer_chunk_probability", as_float(longer) / as_float(cuts.count)),
        ("chunks", as_float(cuts.count)),
    ])
    .at("averages", m);
    let theory = THEORIES.into_iter().find(|(name, _, _)| *name == method.name());
    let (_, paper, derived) = theory.unwrap_or_default();
    for (name, formula) in [("paper_probability", paper), ("derived_probability", derived)] {
        // The paper's estimates begin at 2.
        if let Some(formula) = formula.filter(|_| m > 1 || name != "paper_probability") {
            sample.values.push((name.into(), formula(f64::from(m))));
        }
    }
    sample
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};

    #[test]
    fn measured_probabilities_follow_what_is_derived() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[b""]);
        let found = findings(&LongChunks, &input, &quick(&[]));
        assert_eq!(found.len(), THEORIES.len() * FAR as usize);
        for finding in &found {
            assert_eq!(finding.wrong, None);
            let measured = finding.median("longer_chunk_probability").unwrap();
            let near = |wanted: f64| (measured - wanted).abs() < 0.15 * wanted + 0.002;
            assert!(finding.median("derived_probability").is_none_or(near), "{finding:?}");
        }
        let Plot::Lines { series, .. } = &LongChunks.figures(&found)[0].plot else { panic!("lines") };
        assert!(series.iter().any(|line| line.is_theory) && series.iter().all(|line| !line.points.is_empty()));
    }
}

//! Features that stay at their place (Finesse, Table 1): of two chunks that resemble each other, cut into equal
//! parts, how many parts are the same at the same place, how many have the same feature there; how many of those with
//! the same feature are not the same (the table's second measure); and how many of those that are not the same have it.
//!
//! Parts and features are Finesse's own: N parts of floor(L / N) bytes, the greatest Rabin fingerprint of each. Pairs
//! are what a method detects with 3 super-features of 4, the first that fits; the paper detects by N-Transform and cuts
//! into 12.

use super::choice;
use super::contender::{Contender, NAMES_QUICK};
use super::draw::{self, Drawing, Measure};
use super::found::Bases;
use super::ground::Ground;
use super::parallel::in_parallel;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Finesse, Shape, Sketcher};
use std::cell::OnceCell;
use std::rc::Rc;

/// Into how many parts; the paper has 12.
const PARTS: [usize; 3] = [12, 6, 24];
const PARTS_OF_PAPER: usize = 12;

const EQUAL_PARTS: Measure = Measure { name: "equal_subchunks_percent", label: "Same parts" };
const EQUAL_FEATURES: Measure = Measure { name: "equal_features_percent", label: "Same features" };
const NOT_DUPLICATES: Measure =
    Measure { name: "equal_features_changed_percent", label: "Of those, parts that are not the same" };
const OF_CHANGED: Measure = Measure { name: "changed_equal_features_percent", label: "Same features of changed parts" };

/// The experiment.
pub(super) struct Subchunks;

impl Experiment for Subchunks {
    fn head(&self) -> Head {
        Head {
            name: "sketch-subchunks",
            title: "How far parts of similar chunks, and their features, stay at their place",
            reproduces: &["Finesse (FAST'19), Table 1"],
            needs: Needs::Bytes,
            methods: NAMES_QUICK.to_vec(),
            rounds: Rounds::One,
            columns: "method subchunks expected_bytes pairs equal_subchunks_percent equal_features_percent \
                     equal_features_changed_percent changed_equal_features_percent",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let ground = Ground::of(input, choice::size(settings))?;
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for name in NAMES_QUICK.into_iter().filter(|name| settings.chooses_method(name)) {
            let detected = Rc::new(Detected {
                ground: Rc::clone(&ground),
                contender: Contender::named(name, Shape::DEFAULT, Isa::best())?,
                pairs: OnceCell::new(),
            });
            for parts in choice::quick_or(settings, &PARTS[..1], &PARTS) {
                let finesse = Finesse::new("parts", Shape::new(*parts, 1)?);
                subjects.push(Box::new(Comparison { detected: Rc::clone(&detected), finesse }));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let parts = PARTS_OF_PAPER.to_string();
        let found = draw::those(findings, &[("method", super::contender::REFERENCE), ("subchunks", &parts)]);
        let groups: Vec<String> = found.iter().map(|finding| finding.data.clone()).collect();
        let bars = |measure: Measure| Bars::of(measure.label, &found, measure.name);
        let series = [EQUAL_PARTS, EQUAL_FEATURES, NOT_DUPLICATES, OF_CHANGED].map(bars).into();
        let drawing = Drawing {
            title: "Parts of similar chunks that are the same, or have the same feature, at the same place".into(),
            redraws: "Finesse, Table 1",
            caption: "Pairs detected by N-Transform, each chunk in 12 equal parts.",
        };
        let plot = Plot::Bars { y: Axis::linear("Percent of parts"), groups, series };
        drawing.figure(found.is_empty(), plot).into_iter().collect()
    }
}

/// Pairs that a method detects, once for all numbers of parts.
struct Detected<'i> {
    ground: Rc<Ground<'i>>,
    contender: Contender,
    pairs: OnceCell<Vec<(usize, usize)>>,
}

struct Comparison<'i> {
    detected: Rc<Detected<'i>>,
    finesse: Finesse,
}

/// Parts counted.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
struct Parts {
    all: u64,
    equal: u64,
    equal_features: u64,
    changed_equal_features: u64,
}

impl Subject for Comparison<'_> {
    fn parameters(&self) -> Row {
        let mut row = self.detected.contender.row();
        row.insert("subchunks".into(), self.finesse.shape().features().into());
        row.insert("expected_bytes".into(), self.detected.ground.expected_bytes.into());
        row
    }

    fn run(&mut self) -> Result<Outcome> {
        let Detected { ground, contender, pairs } = &*self.detected;
        let pairs = pairs.get_or_init(|| Bases::first_fit(ground, contender).pairs());
        let (chunks, finesse) = (ground.chunks.as_slice(), &self.finesse);
        let counted = in_parallel(pairs.len(), |at| {
            let (base, target) = pairs[at];
            Parts::of(finesse, chunks[base], chunks[target])
        });
        let sum = counted.into_iter().fold(Parts::default(), Parts::and);
        let percent = |part: u64, whole: u64| 100.0 * as_float(part) / as_float(whole).max(1.0);
        Ok(Outcome::Right(vec![Sample::of([
            ("pairs", as_float(pairs.len() as u64)),
            (EQUAL_PARTS.name, percent(sum.equal, sum.all)),
            (EQUAL_FEATURES.name, percent(sum.equal_features, sum.all)),
            (NOT_DUPLICATES.name, percent(sum.changed_equal_features, sum.equal_features)),
            (OF_CHANGED.name, percent(sum.changed_equal_features, sum.all - sum.equal)),
        ])]))
    }
}

impl Parts {
    /// Those of two chunks; none if one of them is too short for so many.
    fn of(finesse: &Finesse, one: &[u8], other: &[u8]) -> Self {
        let mut counted = Self::default();
        let (Some(features), Some(other_features)) = (finesse.sketch(one), finesse.sketch(other)) else {
            return counted;
        };
        let count = finesse.shape().features();
        let parts = |chunk| <[u8]>::chunks_exact(chunk, chunk.len() / count).take(count);
        let features = features.features().iter().zip(other_features.features());
        for ((one, other), (feature, other_feature)) in parts(one).zip(parts(other)).zip(features) {
            let (is_equal, is_equal_feature) = (one == other, feature == other_feature);
            counted.all += 1;
            counted.equal += u64::from(is_equal);
            counted.equal_features += u64::from(is_equal_feature);
            counted.changed_equal_features += u64::from(is_equal_feature && !is_equal);
        }
        counted
    }

    fn and(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            equal: self.equal + other.equal,
            equal_features: self.equal_features + other.equal_features,
            changed_equal_features: self.changed_equal_features + other.changed_equal_features,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn parts_are_compared_at_their_place() {
        let finesse = Finesse::new("parts", Shape::new(12, 1).unwrap());
        let one = crate::deterministic::Sequence::new(4).bytes(12 * 600 + 5);
        let mut other = one.clone();
        other[650] ^= 1;
        let same = Parts { all: 12, equal: 12, equal_features: 12, changed_equal_features: 0 };
        assert_eq!(Parts::of(&finesse, &one, &one), same);
        let found = Parts::of(&finesse, &one, &other);
        assert_eq!((found.all, found.equal), (12, 11));
        assert_eq!(found.equal_features, 11 + found.changed_equal_features);
        let shifted = [&one[..1], &one[..]].concat();
        assert_eq!(Parts::of(&finesse, &one, &shifted[..one.len()]).equal, 0);
        assert_eq!(Parts::of(&finesse, &one, &[1; 11]), Parts::default());
    }

    #[test]
    fn features_stay_more_often_than_parts() {
        let found = findings(&Subchunks, &quick());
        assert_eq!(found.len(), NAMES_QUICK.len());
        for finding in &found {
            let measure = |measure: Measure| finding.median(measure.name).unwrap();
            assert!(measure(EQUAL_FEATURES) >= measure(EQUAL_PARTS) && measure(EQUAL_PARTS) > 50.0, "{finding:?}");
        }
    }
}

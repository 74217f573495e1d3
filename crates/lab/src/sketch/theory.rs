//! The estimated similarity of pairs that are equally similar, beside the theory (Odess, Eqs. 6 and 9, Fig. 7).
//!
//! ```text
//! n features that match with probability p each       Pr(s = k / n) = C(n, k) p^k (1 - p)^(n - k)                       (6)
//! of a sample of r c windows, of which m are shared    Pr(s = k / n) = sum over m of B(rc, m; p) B(n, k; m / (rc))      (9)
//! ```
//!
//! The paper computes both. Here they stand beside what is measured: modified pairs (`MoL` 200, `MoR` as it comes)
//! whose resemblance is p, up to one hundredth. What is told of a distribution is how far it lies from the theory where
//! it is furthest.

use super::choice;
use super::contender::Contender;
use super::draw::{self, Drawing};
use super::estimates::{CHUNK_BYTES, LENGTH, binomial, matches, mean, pair};
use super::parallel::in_parallel;
use crate::corpus::modified::Modification;
use crate::deterministic::Sequence;
use crate::distinct;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::{Axis, Figure, Line};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape};
use std::rc::Rc;

const RATES: [Rate; 3] = [Rate::OneIn32, Rate::OneIn128, Rate::OneIn512];
/// Similarities, percent.
const PERCENTS: [u32; 5] = [10, 30, 50, 70, 90];
const PERCENTS_QUICK: [u32; 2] = [30, 70];
/// A pair is as similar as wanted if it is so near.
const TOLERANCE: f64 = 0.01;
/// Pairs of each similarity.
const PAIRS: usize = 2000;
const PAIRS_QUICK: usize = 300;
/// Pairs made until there are enough, at most: as many times those wanted.
const TRIES: usize = 400;
/// Rates of modification that are tried: the least, and the logarithm of the greatest over it.
const RATE_LEAST: f64 = 0.0001;
const RATE_SPAN: f64 = 5.0;
/// Bytes of the windows that are compared: those of all contenders here.
const WINDOW_BYTES: usize = 32;

/// The experiment.
pub(super) struct Theory;

impl Experiment for Theory {
    fn head(&self) -> Head {
        Head {
            name: "sketch-theory",
            title: "The distribution of estimated similarity, measured and as the theory has it",
            reproduces: &["Odess (TOS), Fig. 7", "Odess (TOS), Eqs. 6 and 9"],
            needs: Needs::Nothing,
            methods: vec!["ntransform-32", "odess", "odess-plus"],
            rounds: Rounds::One,
            columns: "method one_in similarity_percent pairs estimate_mean largest_distance",
        }
    }

    fn subjects<'i>(&self, _: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let percents = choice::quick_or(settings, &PERCENTS_QUICK[..], &PERCENTS);
        let sets = alike_sets(percents, choice::quick_or(settings, PAIRS_QUICK, PAIRS), settings.seed);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for (percent, pairs) in percents.iter().zip(sets) {
            let pairs = Rc::new(pairs);
            for (contender, rate) in contenders(settings)? {
                subjects.push(Box::new(Estimates { contender, rate, percent: *percent, pairs: Rc::clone(&pairs) }));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let percents = distinct(findings.iter().map(|finding| finding.parameter("similarity_percent")));
        percents.into_iter().filter_map(|percent| figure(findings, &percent)).collect()
    }
}

/// N-Transform, which sees all windows; Odess and Odess+ at three rates.
fn contenders(settings: &Settings) -> Result<Vec<(Contender, Option<Rate>)>> {
    let mut all = vec![(Contender::named("ntransform-32", Shape::DEFAULT, Isa::best())?, None)];
    for rate in RATES {
        all.push((Contender::odess(rate, Shape::DEFAULT), Some(rate)));
        all.push((Contender::odess_plus(rate, Shape::DEFAULT, Isa::best()), Some(rate)));
    }
    all.retain(|(contender, _)| settings.chooses_method(contender.method()));
    Ok(all)
}

/// A pair that can be made again.
type Made = (Modification, u64, usize);

/// For each similarity so many pairs that have it; fewer where trying does not bring enough.
fn alike_sets(percents: &[u32], wanted: usize, seed: u64) -> Vec<Vec<Made>> {
    let mut sets: Vec<Vec<Made>> = vec![Vec::new(); percents.len()];
    let mut from = 0;
    while from < TRIES * wanted && sets.iter().any(|set| set.len() < wanted) {
        let tried = in_parallel(4 * wanted, |number| {
            let number = from + number;
            let rate = RATE_LEAST * (RATE_SPAN * Sequence::new(seed ^ number as u64).unit()).exp();
            let modification = Modification { rate, length: LENGTH };
            ((modification, seed, number), pair(modification, seed, number).resemblance(WINDOW_BYTES))
        });
        for (made, similarity) in tried {
            for (percent, set) in percents.iter().zip(&mut sets) {
                if set.len() < wanted && (similarity - f64::from(*percent) / 100.0).abs() <= TOLERANCE {
                    set.push(made);
                }
            }
        }
        from += 4 * wanted;
    }
    sets
}

/// Estimates of one contender for pairs that are equally similar.
struct Estimates {
    contender: Contender,
    rate: Option<Rate>,
    percent: u32,
    pairs: Rc<Vec<Made>>,
}

impl Subject for Estimates {
    fn parameters(&self) -> Row {
        let mut row = self.contender.row();
        row.insert("similarity_percent".into(), self.percent.into());
        row
    }

    fn run(&mut self) -> Result<Outcome> {
        let Self { contender, pairs, .. } = self;
        if pairs.is_empty() {
            return Ok(Outcome::Wrong(format!("no pair that is made is {} % similar", self.percent)));
        }
        let (pairs, contender) = (pairs.as_slice(), &*contender);
        let found = in_parallel(pairs.len(), |at| {
            let (modification, seed, number) = pairs[at];
            matches(contender, &pair(modification, seed, number)).unwrap_or_default()
        });
        let n = contender.shape().features();
        let shares: Vec<f64> = (0..=n)
            .map(|k| as_float(found.iter().filter(|one| **one <= k).count() as u64) / as_float(found.len() as u64))
            .collect();
        let distances =
            shares.iter().zip(cumulative(n, self.percent, self.rate)).map(|(one, other)| (one - other).abs());
        let estimates = found.iter().map(|matches| as_float(*matches as u64) / as_float(n as u64));
        let mut sample = Sample::of([
            ("pairs", as_float(found.len() as u64)),
            ("estimate_mean", mean(estimates)),
            ("largest_distance", distances.fold(0.0, f64::max)),
        ]);
        sample.values.extend(shares.into_iter().enumerate().map(|(k, share)| (share_name(k), share)));
        Ok(Outcome::Right(vec![sample]))
    }
}

fn share_name(matches: usize) -> String {
    format!("share_up_to_{matches:02}_matches")
}

/// The probability of at most k of n matches, for k = 0 ..= n: of all windows (Eq. 6), or of a sample (Eq. 9).
fn cumulative(n: usize, percent: u32, rate: Option<Rate>) -> Vec<f64> {
    let p = f64::from(percent) / 100.0;
    let each = match rate {
        None => binomial(n, p),
        Some(rate) => {
            let sample = CHUNK_BYTES / rate.one_in() as usize;
            let mut sum = vec![0.0; n + 1];
            for (shared, probability) in binomial(sample, p).into_iter().enumerate() {
                let of_proxy = binomial(n, as_float(shared as u64) / as_float(sample as u64));
                sum.iter_mut().zip(of_proxy).for_each(|(sum, one)| *sum += probability * one);
            }
            sum
        }
    };
    each.into_iter()
        .scan(0.0, |sum, one| {
            *sum += one;
            Some(*sum)
        })
        .collect()
}

/// Draws what is measured of N-Transform and Odess+, and what the theory says of both.
fn figure(findings: &[Finding], percent: &str) -> Option<Figure> {
    let found = draw::those(findings, &[("similarity_percent", percent)]);
    let of_all = |share: Vec<f64>| {
        let n = as_float(share.len() as u64 - 1);
        (0..).zip(share).map(|(k, share)| (as_float(k) / n, share)).collect()
    };
    let mut lines = Vec::new();
    for finding in found.iter().filter(|one| draw::method_name(one) != "odess") {
        let shares: Vec<f64> = (0..).map_while(|k| finding.median(&share_name(k))).collect();
        if shares.is_empty() {
            continue;
        }
        let n = shares.len() - 1;
        let rate = RATES.into_iter().find(|rate| finding.parameter("one_in") == rate.one_in().to_string());
        let theory = cumulative(n, percent.parse().ok()?, rate);
        let of_theory = rate.map_or("Eq. 6, all windows".into(), |rate| format!("Eq. 9, 1/{}", rate.one_in()));
        lines.push(Line { name: draw::sampled_name(finding), is_theory: false, points: of_all(shares) });
        lines.push(Line { name: of_theory, is_theory: true, points: of_all(theory) });
    }
    Drawing {
        title: format!("Estimated similarity of pairs that are {percent} % similar"),
        redraws: "Odess, Fig. 7",
        caption: "Share of pairs whose estimate, matching features of 12, is at most so great; chunks of 8 KiB. Dashed: theory.",
    }
    .with_lines(Axis::linear("Estimated similarity"), Axis::linear("Share of pairs"), lines)
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn samples_spread_the_estimate_and_leave_its_mean() {
        let variance = |rate| {
            let cumulative = cumulative(12, 30, rate);
            assert!((cumulative[12] - 1.0).abs() < 1e-9);
            let each: Vec<f64> =
                (0..=12).map(|k| cumulative[k] - if k == 0 { 0.0 } else { cumulative[k - 1] }).collect();
            let mean: f64 = (0..).zip(&each).map(|(k, one)| as_float(k) * one).sum();
            assert!((mean - 3.6).abs() < 1e-6, "{mean}");
            (0..).zip(&each).map(|(k, one)| (as_float(k) - mean).powi(2) * one).sum::<f64>()
        };
        assert!((variance(None) - 12.0 * 0.3 * 0.7).abs() < 1e-6);
        assert!(variance(None) < variance(Some(Rate::OneIn32)));
        assert!(variance(Some(Rate::OneIn32)) < variance(Some(Rate::OneIn512)));
    }

    #[test]
    fn what_is_measured_lies_near_the_theory() {
        let found = findings(&Theory, &quick());
        assert_eq!(found.len(), 2 * 7);
        for finding in &found {
            let (mean, distance) =
                (finding.median("estimate_mean").unwrap(), finding.median("largest_distance").unwrap());
            let similarity = draw::number(finding, "similarity_percent") / 100.0;
            assert!((mean - similarity).abs() < 0.05 && distance < 0.15, "{finding:?}");
        }
        assert_eq!(Theory.figures(&found).len(), 2);
    }
}

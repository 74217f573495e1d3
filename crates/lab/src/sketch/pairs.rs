//! Similarity of the pairs of chunks that estimates are measured on, by rate and length of their modifications
//! (Odess, Fig. 11).

use super::draw::{self, Drawing};
use super::estimates::{Pairs, mean};
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::{Axis, Figure, Line};
use crate::settings::Settings;
use crate::table::as_float;
use anyhow::Result;

/// Bytes of the windows that are compared: those of Odess.
const WINDOW_BYTES: usize = 32;
/// The distribution is told at each of so many equal steps of similarity.
const STEPS: usize = 20;

/// The experiment.
pub(super) struct Similarity;

impl Experiment for Similarity {
    fn head(&self) -> Head {
        Head {
            name: "sketch-pairs",
            title: "How similar the modified pairs of chunks are that sketches are tried on",
            reproduces: &["Odess (TOS), Fig. 11"],
            needs: Needs::Nothing,
            methods: Vec::new(),
            rounds: Rounds::One,
            columns: "series modified_per_million modified_bytes similarity_mean similarity_deviation",
        }
    }

    fn subjects<'i>(&self, _: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let subject = |pairs| -> Box<dyn Subject> { Box::new(Distribution(pairs)) };
        Ok(Pairs::of_both(settings).into_iter().map(subject).collect())
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let by_length = |finding: &Finding| format!("MoL {}", finding.parameter("modified_bytes"));
        let by_rate = |finding: &Finding| format!("MoR {}", draw::number(finding, "modified_per_million") / 1e6);
        [("mol", "lengths", &by_length as draw::Name), ("mor", "rates", &by_rate)]
            .into_iter()
            .filter_map(|(series, what, name)| {
                let lines = draw::those(findings, &[("series", series)]).into_iter().map(|finding| line(finding, name));
                Drawing {
                    title: format!("Similarity of modified pairs, by {what} of modifications"),
                    redraws: "Odess, Fig. 11",
                    caption: "Share of pairs that are at most so similar.",
                }
                .with_lines(
                    Axis::linear("Similarity"),
                    Axis::linear("Share of pairs"),
                    lines.collect(),
                )
            })
            .collect()
    }
}

/// Pairs modified alike.
struct Distribution(Pairs);

impl Subject for Distribution {
    fn parameters(&self) -> Row {
        self.0.row()
    }

    fn run(&mut self) -> Result<Outcome> {
        let found = self.0.each(|pair| pair.resemblance(WINDOW_BYTES));
        let average = mean(found.iter().copied());
        let deviation = mean(found.iter().map(|one| (one - average).powi(2))).sqrt();
        let mut sample = Sample::of([("similarity_mean", average), ("similarity_deviation", deviation)]);
        sample.values.extend((0..=STEPS).map(|step| (share_name(step), share(&found, step))));
        Ok(Outcome::Right(vec![sample]))
    }
}

fn share(found: &[f64], step: usize) -> f64 {
    let count = found.iter().filter(|one| **one <= similarity(step)).count();
    as_float(count as u64) / as_float(found.len() as u64)
}

fn similarity(step: usize) -> f64 {
    as_float(step as u64) / as_float(STEPS as u64)
}

fn share_name(step: usize) -> String {
    format!("share_up_to_{:03}_percent", 100 * step / STEPS)
}

fn line(finding: &Finding, name: draw::Name) -> Line {
    let point = |step| Some((similarity(step), finding.median(&share_name(step))?));
    Line { name: name(finding), is_theory: false, points: (0..=STEPS).filter_map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn shares_grow_to_all_and_more_modification_is_less_similarity() {
        let found = findings(&Similarity, &quick());
        for finding in &found {
            let points = line(finding, &|_| String::new()).points;
            assert_eq!(points.len(), STEPS + 1);
            assert!(points.windows(2).all(|pair| pair[0].1 <= pair[1].1) && points[STEPS].1 >= 1.0);
        }
        let rates = draw::those(&found, &[("series", "mor")]);
        let means: Vec<f64> = rates.iter().filter_map(|one| one.median("similarity_mean")).collect();
        assert!(means.len() == 3 && means.is_sorted_by(|one, other| one > other), "{means:?}");
        assert_eq!(Similarity.figures(&found).len(), 2);
    }
}

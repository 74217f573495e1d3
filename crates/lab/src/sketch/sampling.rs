//! Sampling rates of Odess and Odess+: speed, and what is found (Odess, Fig. 22).

use super::choice;
use super::contender::Contender;
use super::draw::{self, DCE, DCR, Drawing, Measure, SPEED};
use super::ground::Ground;
use super::study::Study;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::{Axis, Figure};
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape};

/// The experiment.
pub(super) struct Sampling;

impl Experiment for Sampling {
    fn head(&self) -> Head {
        Head {
            name: "sketch-sampling",
            title: "How often Odess and Odess+ should sample: speed and findings by rate",
            reproduces: &["Odess (TOS), Fig. 22"],
            needs: Needs::Bytes,
            methods: vec!["odess", "odess-plus"],
            rounds: Rounds::All,
            columns: "method isa one_in expected_bytes gb_per_s dcr ratio_to_ntransform dce scr ser",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let ground = Ground::of(input, choice::size(settings))?;
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for rate in Rate::ALL {
            let plus = |isa| Contender::odess_plus(rate, Shape::DEFAULT, isa);
            let odess = || Contender::odess(rate, Shape::DEFAULT);
            for (contender, oracle) in [(odess(), odess()), (plus(Isa::best()), plus(Isa::SCALAR))] {
                if settings.chooses_method(contender.method()) {
                    subjects.push(Box::new(Study::new(&ground, contender, &oracle, settings)));
                }
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let figure = |data: &str, measure: Measure| {
            Drawing {
                title: format!("{} by rate of sampling, {data}", measure.label),
                redraws: "Odess, Fig. 22",
                caption: "One window in so many is sampled; 12 features, 3 super-features, the first that fits.",
            }
            .lines(
                &draw::those(findings, &[("data", data)]),
                measure,
                Axis::logarithmic("Windows to a sample"),
                &|finding| draw::number(finding, "one_in"),
                &draw::method_name,
            )
        };
        let data = draw::data_names(findings);
        data.iter().flat_map(|data| [SPEED, DCR, DCE].map(|measure| figure(data, measure))).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn both_are_measured_at_every_rate() {
        let found = findings(&Sampling, &quick());
        assert_eq!(found.len(), 2 * Rate::ALL.len());
        assert_eq!(Sampling.figures(&found).len(), 3);
    }
}

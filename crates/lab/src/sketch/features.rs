//! Number of features, and their grouping: speed and findings (the papers take 12 in 3 groups: Finesse, section 5;
//! Odess, section 4.3). More features to a super-feature find fewer and likelier bases; more super-features find more.

use super::choice;
use super::contender::{Contender, NAMES, NAMES_QUICK};
use super::draw::{self, DCE, DCR, Drawing, Measure, SPEED};
use super::ground::Ground;
use super::study::Study;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::Shape;

/// Features and super-features: as many groups as the papers', then as many features.
const SHAPES: [(usize, usize); 8] = [(6, 3), (12, 3), (18, 3), (24, 3), (12, 1), (12, 2), (12, 4), (12, 6)];
const SHAPES_QUICK: [(usize, usize); 4] = [(6, 3), (12, 3), (24, 3), (12, 6)];

/// The experiment.
pub(super) struct Features;

impl Experiment for Features {
    fn head(&self) -> Head {
        Head {
            name: "sketch-features",
            title: "How many features, in how many super-features: speed and findings",
            reproduces: &["Odess (TOS), section 4.2.3, on real data"],
            needs: Needs::Bytes,
            methods: NAMES.to_vec(),
            rounds: Rounds::All,
            columns: "method features super_features expected_bytes gb_per_s dcr ratio_to_ntransform dce scr",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let ground = Ground::of(input, choice::size(settings))?;
        let shapes = choice::quick_or(settings, &SHAPES_QUICK[..], &SHAPES);
        let names = choice::quick_or(settings, &NAMES_QUICK[..], &NAMES);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for (features, super_features) in shapes {
            let shape = Shape::new(*features, *super_features)?;
            for name in names.iter().filter(|name| settings.chooses_method(name)) {
                let oracle = Contender::named(name, shape, Isa::SCALAR)?;
                let contender = Contender::named(name, shape, Isa::best())?;
                subjects.push(Box::new(Study::new(&ground, contender, &oracle, settings)));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let figure = |data: &str, measure: Measure| {
            Drawing {
                title: format!("{} by number of features, {data}", measure.label),
                redraws: "",
                caption: "Features / super-features; the first that fits. The papers take 12 / 3.",
            }
            .bars(&draw::those(findings, &[("data", data)]), measure, &shape_name, &draw::method_name)
        };
        let data = draw::data_names(findings);
        data.iter().flat_map(|data| [SPEED, DCR, DCE].map(|measure| figure(data, measure))).flatten().collect()
    }
}

fn shape_name(finding: &Finding) -> String {
    format!("{} / {}", finding.parameter("features"), finding.parameter("super_features"))
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn more_super_features_find_more() {
        let found = findings(&Features, &quick());
        assert_eq!(found.len(), SHAPES_QUICK.len() * NAMES_QUICK.len());
        for method in NAMES_QUICK {
            let scr = |super_features: &str| {
                let wanted = [("method", method), ("features", "12"), ("super_features", super_features)];
                draw::those(&found, &wanted)[0].median("scr").unwrap()
            };
            assert!(scr("6") >= scr("3"), "{method}");
        }
        assert_eq!(Features.figures(&found).len(), 3);
    }
}

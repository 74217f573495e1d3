//! Accuracy of the estimated resemblance against the true one: by method (Odess, Fig. 12), by rate of sampling (Fig.
//! 13), by number of features (Fig. 14). Three experiments that differ in what is compared.

use super::contender::{Contender, NAMES};
use super::draw::{self, DEVIATION, Drawing, ERROR, Measure};
use super::estimates::{Estimate, LENGTH, Pairs, RATE, summed_up};
use crate::corpus::modified::Modification;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Row, Sample, Subject};
use crate::report::{Axis, Figure, Line};
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape};
use std::rc::Rc;

/// Parameter that is compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Compared {
    Methods,
    Sampling,
    Features,
}

/// The experiment.
pub(super) struct Accuracy(Compared);

/// By method.
pub(super) const METHODS: Accuracy = Accuracy(Compared::Methods);
/// By rate of sampling.
pub(super) const SAMPLING: Accuracy = Accuracy(Compared::Sampling);
/// By number of features.
pub(super) const FEATURES: Accuracy = Accuracy(Compared::Features);

const NUMBERS_OF_FEATURES: [usize; 4] = [6, 12, 18, 24];
/// Expected of independent features, in legends.
const INDEPENDENT: &str = "independent features";
const EXPECTED: &str = "error_expected";

impl Experiment for Accuracy {
    fn head(&self) -> Head {
        let (name, title, reproduces, methods): (_, _, &[_], _) = match self.0 {
            Compared::Methods => (
                "sketch-accuracy",
                "How near the estimated resemblance is to the true one, by method",
                &["Odess (TOS), Fig. 12"],
                NAMES.to_vec(),
            ),
            Compared::Sampling => (
                "sketch-accuracy-sampling",
                "How near it is by rate of sampling",
                &["Odess (TOS), Fig. 13"],
                vec!["odess", "odess-plus"],
            ),
            Compared::Features => (
                "sketch-accuracy-features",
                "How near it is by number of features",
                &["Odess (TOS), Fig. 14"],
                NAMES.to_vec(),
            ),
        };
        Head {
            name,
            title,
            reproduces,
            needs: Needs::Nothing,
            methods,
            rounds: Rounds::One,
            columns: "method one_in features series modified_per_million modified_bytes similarity_mean \
                     error_mean error_deviation error_expected without_sketch",
        }
    }

    fn subjects<'i>(&self, _: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for contender in self.contenders(settings)? {
            let contender = Rc::new(contender);
            for pairs in self.pairs(settings) {
                subjects.push(Box::new(Estimating { contender: Rc::clone(&contender), pairs }));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        match self.0 {
            Compared::Methods => figures_of_series(findings, "", self.redraws()),
            Compared::Sampling => ["odess", "odess-plus"]
                .into_iter()
                .flat_map(|method| figures_of_series(findings, method, self.redraws()))
                .collect(),
            Compared::Features => figures_of_features(findings, self.redraws()),
        }
    }
}

impl Accuracy {
    fn contenders(&self, settings: &Settings) -> Result<Vec<Contender>> {
        let wanted = |name: &str| settings.chooses_method(name);
        match self.0 {
            Compared::Methods => Contender::of(&NAMES, Shape::DEFAULT, wanted),
            Compared::Sampling => {
                let odess = Rate::ALL.map(|rate| Contender::odess(rate, Shape::DEFAULT));
                let plus = Rate::ALL.map(|rate| Contender::odess_plus(rate, Shape::DEFAULT, Isa::best()));
                Ok(odess.into_iter().chain(plus).filter(|contender| wanted(contender.method())).collect())
            }
            Compared::Features => {
                let mut contenders = Vec::new();
                for features in NUMBERS_OF_FEATURES {
                    contenders.extend(Contender::of(&NAMES, Shape::new(features, 3)?, wanted)?);
                }
                Ok(contenders)
            }
        }
    }

    /// Pairs that are measured on.
    fn pairs(&self, settings: &Settings) -> Vec<Pairs> {
        if self.0 == Compared::Features {
            return vec![Pairs::of("mol", Modification { rate: RATE, length: LENGTH }, settings)];
        }
        Pairs::of_both(settings)
    }

    fn redraws(&self) -> &'static str {
        match self.0 {
            Compared::Methods => "Odess, Fig. 12",
            Compared::Sampling => "Odess, Fig. 13",
            Compared::Features => "Odess, Fig. 14",
        }
    }
}

/// One contender on pairs modified alike.
struct Estimating {
    contender: Rc<Contender>,
    pairs: Pairs,
}

impl Subject for Estimating {
    fn parameters(&self) -> Row {
        let mut row = self.contender.row();
        row.extend(self.pairs.row());
        row
    }

    fn run(&mut self) -> Result<Outcome> {
        let contender = &*self.contender;
        let estimates = self.pairs.each(|pair| Estimate::of(contender, pair));
        let measures = summed_up(contender.shape().features(), &estimates);
        Ok(Outcome::Right(vec![Sample::of(measures)]))
    }
}

/// Both errors of both series; of one method by what it samples, or of all.
fn figures_of_series(findings: &[Finding], method: &str, redraws: &'static str) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (series, parameter, x) in
        [("mol", "modified_bytes", "MoL, bytes"), ("mor", "modified_per_million", "MoR, per million bytes")]
    {
        for measure in [ERROR, DEVIATION] {
            let mut found = draw::those(findings, &[("series", series)]);
            found.retain(|finding| method.is_empty() || draw::method_name(finding) == method);
            let name = if method.is_empty() { draw::method_name } else { draw::sampled_name };
            let at = |finding: &Finding| draw::number(finding, parameter);
            let mut lines = draw::lines(&found, measure.name, &at, &name);
            lines.extend(expected_line(&found, measure, &at));
            let of_method = if method.is_empty() { String::new() } else { format!("{method}: ") };
            let drawing = Drawing {
                title: format!("{of_method}{} by {}", measure.label.to_lowercase(), x),
                redraws,
                caption: "Pairs of random chunks of 8 KiB, one of them modified at a rate (MoR) in pieces of a length (MoL); lower is better.",
            };
            figures.extend(drawing.with_lines(Axis::logarithmic(x), Axis::linear(measure.label), lines));
        }
    }
    figures
}

/// The average error of independent features, for windows of 32 bytes.
fn expected_line(found: &[&Finding], measure: Measure, at: &dyn Fn(&Finding) -> f64) -> Option<Line> {
    let method =
        ["odess-plus", "odess"].into_iter().find(|name| found.iter().any(|one| draw::method_name(one) == *name))?;
    let first = found.iter().find(|one| draw::method_name(one) == method)?;
    let of_one: Vec<&Finding> =
        found.iter().copied().filter(|one| draw::sampled_name(one) == draw::sampled_name(first)).collect();
    let line = draw::lines(&of_one, EXPECTED, at, &|_| INDEPENDENT.to_owned()).pop()?;
    (measure.name == ERROR.name).then_some(Line { is_theory: true, ..line })
}

fn figures_of_features(findings: &[Finding], redraws: &'static str) -> Vec<Figure> {
    let figure = |measure: Measure| {
        let found: Vec<&Finding> = findings.iter().collect();
        let at = |finding: &Finding| draw::number(finding, "features");
        let mut lines = draw::lines(&found, measure.name, &at, &draw::method_name);
        lines.extend(expected_line(&found, measure, &at));
        let drawing = Drawing {
            title: format!("{} by number of features", measure.label),
            redraws,
            caption: "Pairs of random chunks of 8 KiB, MoR 0.0005, MoL 200; lower is better.",
        };
        drawing.with_lines(Axis::linear("Features"), Axis::linear(measure.label), lines)
    };
    [ERROR, DEVIATION].into_iter().filter_map(figure).collect()
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    fn few() -> Settings {
        Settings { methods: vec!["finesse".into(), "odess-plus".into()], ..quick() }
    }

    #[test]
    fn errors_grow_with_modifications_and_all_is_drawn() {
        let found = findings(&METHODS, &few());
        assert_eq!(found.len(), 2 * 6);
        let error = |rate: &str| {
            let wanted = [("method", "odess-plus"), ("series", "mor"), ("modified_per_million", rate)];
            draw::those(&found, &wanted)[0].median("error_mean").unwrap()
        };
        assert!(error("200") < error("4000"));
        let figures = METHODS.figures(&found);
        assert_eq!(figures.len(), 4);
    }

    #[test]
    fn rarer_samples_err_more_and_more_features_less() {
        let settings = Settings { methods: vec!["odess-plus".into()], ..quick() };
        let sampling = findings(&SAMPLING, &settings);
        let error = |found: &[Finding], wanted: &[(&str, &str)]| {
            let found = draw::those(found, wanted);
            found.iter().map(|one| one.median("error_mean").unwrap()).sum::<f64>()
        };
        assert!(error(&sampling, &[("one_in", "32")]) < error(&sampling, &[("one_in", "512")]));
        let features = findings(&FEATURES, &settings);
        assert!(error(&features, &[("features", "24")]) < error(&features, &[("features", "6")]));
    }
}

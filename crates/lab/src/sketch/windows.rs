//! How many windows of Odess+ should roll side by side: two with hashes of 64 bits, four with 32, eight with 16 (Odess, Table 3).
//!
//! The paper's forms are all vectors of 128 bits. Ours for two and eight windows are scalar, so that their speeds stand beside the scalar
//! form of four; the vector form of four has a row of its own.

use super::choice;
use super::contender::Contender;
use super::draw::{DCE, DCR, Drawing, Measure, SCR, SPEED};
use super::ground::Ground;
use super::study::Study;
use crate::experiment::{Experiment, Finding, Input, Needs, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape, Windows};

/// The experiment.
pub(super) struct NumberOfWindows;

impl Experiment for NumberOfWindows {
    fn name(&self) -> &'static str {
        "sketch-windows"
    }

    fn title(&self) -> &'static str {
        "How many windows of Odess+ should roll side by side"
    }

    fn reproduces(&self) -> &'static [&'static str] {
        &["Odess (TOS), Table 3"]
    }

    fn needs(&self) -> Needs {
        Needs::Bytes
    }

    fn columns(&self) -> &'static [&'static str] {
        &["windows", "hash_bits", "isa", "expected_bytes", "dce", "dcr", "ratio_to_ntransform", "scr", "gb_per_s"]
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        if !choice::wants(settings, "odess-plus") {
            return Ok(subjects);
        }
        let ground = Ground::of(input, choice::size(settings))?;
        let forms = [(Windows::Two, 2, Isa::SCALAR), (Windows::Four, 4, Isa::SCALAR), (Windows::Eight, 8, Isa::SCALAR)];
        let vectors = (Isa::best() != Isa::SCALAR).then_some((Windows::Four, 4, Isa::best()));
        for (windows, count, isa) in forms.into_iter().chain(vectors) {
            let form = |isa| Contender::odess_plus_of(windows, Rate::DEFAULT, Shape::DEFAULT, isa);
            let study = Study::new(&ground, form(isa), &form(Isa::SCALAR), settings);
            subjects.push(Box::new(study.with("windows", count).with("hash_bits", 128 / count)));
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let figure = |measure: Measure| {
            Drawing {
                title: format!("{} by number of windows", measure.label),
                redraws: "Odess, Table 3",
                caption: "Odess+ at 1/128 with two, four and eight windows; 12 features, 3 super-features, the first that fits.",
                findings: findings.iter().collect(),
            }
            .bars(measure, &|finding| finding.data.clone(), &form_name)
        };
        [SPEED, DCR, DCE, SCR].into_iter().filter_map(figure).collect()
    }
}

fn form_name(finding: &Finding) -> String {
    format!("{} windows, {}", finding.parameter("windows"), finding.parameter("isa"))
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn vectors_find_what_the_scalar_form_finds() {
        let found = findings(&NumberOfWindows, &quick());
        let four = draw::those(&found, &[("windows", "4")]);
        assert_eq!(four.len(), 1 + usize::from(Isa::best() != Isa::SCALAR));
        assert!(four.iter().all(|one| one.median("dcr") == four[0].median("dcr")));
        assert_eq!(found.len(), 2 + four.len());
    }
}

//! Numbers of windows of Odess+ that roll side by side: two with hashes of 64 bits, four with 32, eight with 16 (Odess,
//! Table 3).
//!
//! The paper's forms are all vectors of 128 bits, with as many lanes as windows: half the bits of a hash are twice the
//! lanes. Ours ask first by bytes which places may be sampled, in as many lanes whatever the number of windows is, and
//! compute the hashes of these places only.
//!
//! Hashes of 16 bits find false bases by chance, the more chunks there are; on little data the difference in DCR does
//! not show.

use super::choice;
use super::contender::Contender;
use super::draw::{DCE, DCR, Drawing, Measure, SCR, SPEED};
use super::ground::Ground;
use super::study::Study;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape, Windows};

/// The experiment.
pub(super) struct NumberOfWindows;

impl Experiment for NumberOfWindows {
    fn head(&self) -> Head {
        Head {
            name: "sketch-windows",
            title: "How many windows of Odess+ should roll side by side",
            reproduces: &["Odess (TOS), Table 3"],
            needs: Needs::Bytes,
            methods: vec!["odess-plus"],
            rounds: Rounds::All,
            columns: "windows hash_bits isa expected_bytes dce dcr ratio_to_ntransform scr gb_per_s",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        if !choice::wants(settings, "odess-plus") {
            return Ok(subjects);
        }
        let ground = Ground::of(input, choice::size(settings))?;
        let mut isas = vec![Isa::SCALAR, Isa::best()];
        isas.dedup();
        for isa in isas {
            for (windows, count) in [(Windows::Two, 2), (Windows::Four, 4), (Windows::Eight, 8)] {
                let form = |isa| Contender::odess_plus_of(windows, Rate::DEFAULT, Shape::DEFAULT, isa);
                let study = Study::new(&ground, form(isa), &form(Isa::SCALAR), settings);
                subjects.push(Box::new(study.with("windows", count).with("hash_bits", 128 / count)));
            }
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
        let forms = 1 + usize::from(Isa::best() != Isa::SCALAR);
        assert_eq!(found.len(), 3 * forms);
        for windows in ["2", "4", "8"] {
            let of = draw::those(&found, &[("windows", windows)]);
            assert_eq!(of.len(), forms);
            assert!(of.iter().all(|one| one.median("dcr") == of[0].median("dcr")));
        }
    }
}

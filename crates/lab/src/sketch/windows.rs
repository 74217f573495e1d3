//! Numbers of windows of Odess+ that roll side by side: two with hashes of 64 bits, four with 32, eight with 16 (Odess,
//! Table 3).
//!
//! The paper's forms are all vectors of 128 bits, with as many lanes as windows: half the bits of a hash are twice the
//! lanes. Ours ask first by bytes which places may be sampled, in as many lanes whatever the number of windows is, and
//! compute the hashes of these places only. The paper's forms stand beside ours as `odess-plus-words`.
//!
//! Hashes of 16 bits find false bases by chance, the more chunks there are; on little data the difference in DCR does
//! not show.

use super::choice;
use super::contender::Contender;
use super::draw::{DCE, DCR, Drawing, Measure, SCR, SPEED};
use super::ground::Ground;
use super::study::Study;
use super::word_lanes;
use crate::distinct;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape, Windows};

const WINDOWS: [(Windows, u32); 3] = [(Windows::Two, 2), (Windows::Four, 4), (Windows::Eight, 8)];

/// The experiment.
pub(super) struct NumberOfWindows;

impl Experiment for NumberOfWindows {
    fn head(&self) -> Head {
        Head {
            name: "sketch-windows",
            title: "How many windows of Odess+ should roll side by side",
            reproduces: &["Odess (TOS), Table 3"],
            needs: Needs::Bytes,
            methods: vec!["odess-plus", word_lanes::NAME],
            rounds: Rounds::All,
            columns: "method windows hash_bits isa expected_bytes dce dcr ratio_to_ntransform scr gb_per_s",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        let wants = |name| settings.chooses_method(name);
        if !wants("odess-plus") && !wants(word_lanes::NAME) {
            return Ok(subjects);
        }
        let ground = Ground::of(input, choice::size(settings))?;
        let isas = distinct([Isa::SCALAR, Isa::best()]);
        let ours = isas.into_iter().flat_map(|isa| WINDOWS.map(|windows| (windows, Some(isa))));
        let of_paper = WINDOWS.map(|windows| (windows, None));
        for ((windows, count), isa) in ours.chain(of_paper) {
            let form = |isa| Contender::odess_plus_of(windows, Rate::DEFAULT, Shape::DEFAULT, isa);
            let contender = isa.map_or_else(|| Contender::word_lanes(windows, Shape::DEFAULT), |isa| Some(form(isa)));
            let Some(contender) = contender.filter(|contender| wants(contender.method())) else { continue };
            let study = Study::new(&ground, contender, &form(Isa::SCALAR), settings);
            subjects.push(Box::new(study.with("windows", count).with("hash_bits", 128 / count)));
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let all: Vec<&Finding> = findings.iter().collect();
        let figure = |measure: Measure| {
            Drawing {
                title: format!("{} by number of windows", measure.label),
                redraws: "Odess, Table 3",
                caption: "Odess+ at 1/128 with two, four and eight windows; 12 features, 3 super-features, the first that fits.",
            }
            .bars(&all, measure, &|finding| finding.data.clone(), &form_name)
        };
        [SPEED, DCR, DCE, SCR].into_iter().filter_map(figure).collect()
    }
}

fn form_name(finding: &Finding) -> String {
    let [method, windows, isa] = ["method", "windows", "isa"].map(|name| finding.parameter(name));
    format!("{method}, {windows} windows, {isa}")
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn vectors_find_what_the_scalar_form_finds() {
        let found = findings(&NumberOfWindows, &quick());
        assert!(found.iter().all(|finding| finding.wrong.is_none()));
        let has_lanes = Contender::word_lanes(Windows::Two, Shape::DEFAULT).is_some();
        let forms = 1 + usize::from(Isa::best() != Isa::SCALAR) + usize::from(has_lanes);
        assert_eq!(found.len(), 3 * forms);
        for windows in ["2", "4", "8"] {
            let of = draw::those(&found, &[("windows", windows)]);
            assert_eq!(of.len(), forms);
            assert!(of.iter().all(|one| one.median("dcr") == of[0].median("dcr")));
        }
    }
}

//! Which bits of a hash should decide what is sampled (Odess, section 3.2, Fig. 6): seven ones low, in the middle,
//! high, or scattered; and, beside them, the boundary of Odess+ (section 3.4) and what the chunker samples. Chunks of
//! which nothing is sampled have no sketch (SER); this matters where chunks are small, so small ones are measured too.

use super::choice;
use super::contender::Contender;
use super::draw::{self, DCE, DCR, Drawing, Measure, SER};
use super::ground::Ground;
use super::own;
use super::study::Study;
use crate::distinct;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::Figure;
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::{Rate, Shape};

/// Those of the paper, in its order; the last is what Odess takes.
const MASKS: [(&str, u32); 4] =
    [("low", 0x0000_00f7), ("middle", 0x0007_f000), ("high", 0x7f00_0000), ("scattered", 0x4003_0341)];

const SIZES: [u32; 2] = [8 << 10, 1 << 10];

/// The experiment.
pub(super) struct Masks;

impl Experiment for Masks {
    fn head(&self) -> Head {
        Head {
            name: "sketch-mask",
            title: "Which bits of a hash should decide what Odess samples, and which chunks are left without a sketch",
            reproduces: &["Odess (TOS), Fig. 6"],
            needs: Needs::Bytes,
            methods: vec!["odess", "odess-plus", own::NAME],
            rounds: Rounds::One,
            columns: "method one_in mask expected_bytes ser dce dcr scr",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected_bytes in choice::sizes(settings, &SIZES) {
            let ground = Ground::of(input, expected_bytes)?;
            let mut add = |name: &str, contender: Contender, oracle: &Contender| {
                if settings.chooses_method(contender.method()) {
                    subjects.push(Box::new(Study::new(&ground, contender, oracle, settings).with("mask", name)));
                }
            };
            let odess = |mask| Contender::odess_by_mask(mask, Shape::DEFAULT);
            for (name, mask) in MASKS {
                add(name, odess(mask), &odess(mask));
            }
            let plus = |isa| Contender::odess_plus(Rate::DEFAULT, Shape::DEFAULT, isa);
            add("boundary", plus(Isa::best()), &plus(Isa::SCALAR));
            let own = |isa| Contender::own(Shape::DEFAULT, isa);
            add("chunker's", own(Isa::best())?, &own(Isa::SCALAR)?);
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let figure = |size: &str, measure: Measure| {
            let found: Vec<&Finding> = findings.iter().filter(|one| draw::size_name(one) == size).collect();
            Drawing {
                title: format!("{} by what is sampled, chunks of {size}", measure.label),
                redraws: "Odess, Fig. 6",
                caption: "Odess at 1/128 by four masks (low, middle, high, scattered), Odess+ by its boundary at 1/128, the chunker's own samples at 1/256.",
            }
            .bars(&found, measure, &|finding| finding.data.clone(), &|finding| finding.parameter("mask"))
        };
        let sizes = distinct(findings.iter().map(draw::size_name));
        sizes.iter().flat_map(|size| [DCE, SER, DCR].map(|measure| figure(size, measure))).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn all_masks_sample_at_the_usual_rate() {
        assert!(MASKS.iter().all(|(_, mask)| 1 << mask.count_ones() == Rate::DEFAULT.one_in()));
        let found = findings(&Masks, &quick());
        assert_eq!(found.len(), MASKS.len() + 2);
        assert_eq!(Masks.figures(&found).len(), 3);
    }
}

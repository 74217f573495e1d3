//! Detection: what each sketch finds in real versions, what that is worth, and at which speed (Finesse, Table 3; Odess,
//! Figs. 16 to 21 and 23(c)).

use super::choice;
use super::contender::{Contender, NAMES, REFERENCE};
use super::draw::{self, DCE, DCR, Drawing, GCR, SCR, SPEED};
use super::found::Choice;
use super::ground::Ground;
use super::study::Study;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::{Axis, Figure, Plot, Point};
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::Isa;
use siltstone_similar::sketch::Shape;

const SIZES: [u32; 3] = [4 << 10, 8 << 10, 16 << 10];

/// The experiment.
pub(super) struct Detection;

impl Experiment for Detection {
    fn head(&self) -> Head {
        Head {
            name: "sketch-detection",
            title: "What sketches find in versions of real data, and what deltas against it save",
            reproduces: &["Finesse (FAST'19), Table 3", "Odess (TOS), Figs. 16-21", "Odess (TOS), Fig. 23(c)"],
            needs: Needs::Bytes,
            methods: NAMES.to_vec(),
            rounds: Rounds::All,
            columns: "method fit expected_bytes gcr dcr ratio_to_ntransform dce scr ser gb_per_s",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected_bytes in choice::sizes(settings, &SIZES) {
            let ground = Ground::of(input, expected_bytes)?;
            for name in NAMES.into_iter().filter(|name| settings.chooses_method(name)) {
                let oracle = Contender::named(name, Shape::DEFAULT, Isa::SCALAR)?;
                for choice in [Choice::First, Choice::Best] {
                    let contender = Contender::named(name, Shape::DEFAULT, Isa::best())?;
                    subjects.push(Box::new(Study::new(&ground, contender, &oracle, settings).choosing(choice)));
                }
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for data in draw::data_names(findings) {
            for measure in [DCE, DCR, SCR] {
                let drawing = Drawing {
                    title: format!("{}, {data}", measure.label),
                    redraws: "Finesse, Table 3; Odess, Figs. 16-21",
                    caption: "12 features, 3 super-features, the first that fits; by size of chunks.",
                };
                let found = draw::those(findings, &[("data", &data), ("fit", Choice::First.name())]);
                figures.extend(drawing.bars(&found, measure, &draw::size_name, &draw::method_name));
            }
            figures.extend(overall(findings, &data));
        }
        figures.extend(global(findings));
        figures
    }

    fn advice(&self, findings: &[Finding]) -> Vec<String> {
        draw::data_names(findings).iter().filter_map(|data| said_of(findings, data)).collect()
    }
}

/// Deduplication and deltas together, on all data.
fn global(findings: &[Finding]) -> Option<Figure> {
    let size = draw::usual_size(findings)?;
    let mut found = draw::those(findings, &[("fit", Choice::First.name())]);
    found.retain(|finding| draw::size_name(finding) == size);
    let drawing = Drawing {
        title: format!("Deduplication and deltas together, by data, chunks of {size}"),
        redraws: "Odess, Fig. 23(c)",
        caption: "Bytes of all versions over bytes stored; 12 features, 3 super-features, the first that fits.",
    };
    drawing.bars(&found, GCR, &|finding| finding.data.clone(), &draw::method_name)
}

/// Savings against speed: what one chooses between.
fn overall(findings: &[Finding], data: &str) -> Option<Figure> {
    let found = draw::those(findings, &[("data", data)]);
    let size = draw::usual_size(findings)?;
    let point = |finding: &&Finding| {
        let name = format!("{}, {}", draw::method_name(finding), finding.parameter("fit"));
        Some(Point {
            name,
            x: finding.median(SPEED.name)?,
            y: finding.median(DCR.name)?,
            size: finding.median(DCE.name)?,
        })
    };
    let points: Vec<Point> = found.iter().filter(|one| draw::size_name(one) == size).filter_map(point).collect();
    let plot = |points| Plot::Points { x: Axis::logarithmic(SPEED.label), y: Axis::linear(DCR.label), points };
    let drawing = Drawing {
        title: format!("Savings against speed, {data}, chunks of {size}"),
        redraws: "",
        caption: "To the right is faster, upwards saves more; the size of a point is DCE. First or best: which of several bases is taken.",
    };
    drawing.figure(points.is_empty(), plot(points))
}

/// With which sketch, fit and size of chunks least is stored of this data.
fn said_of(findings: &[Finding], data: &str) -> Option<String> {
    let found = draw::those(findings, &[("data", data)]);
    let measured = found.iter().filter_map(|one| Some((one.median(GCR.name)?, one)));
    let (gcr, best) = measured.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let ratio = best.median("ratio_to_ntransform")?;
    Some(format!(
        "{data}: least is stored with {}, the {} fit and chunks of {}: all versions take 1/{gcr:.1} of their size, uncompressed. Its DCR is {ratio:.3} of what {REFERENCE} reaches in the same chunks with the first fit.",
        draw::method_name(best),
        best.parameter("fit"),
        draw::size_name(best),
    ))
}

#[cfg(test)]
mod tests {
    use super::super::study::tests::{findings, quick};
    use super::*;

    #[test]
    fn changed_chunks_find_what_they_were() {
        let found = findings(&Detection, &quick());
        assert_eq!(found.len(), 2 * NAMES.len());
        for finding in &found {
            let measure = |name| finding.median(name).unwrap();
            // A third is stored whole, and 20 changes in some forty chunks of it.
            assert!(measure("dcr") > 1.2 && measure("dce") > 0.9, "{finding:?}");
            assert!(measure("ratio_to_ntransform") > 0.8 && measure("scr") > 0.2, "{finding:?}");
        }
        let said = Detection.advice(&found);
        assert!(said.len() == 1 && said[0].contains("least is stored"), "{said:?}");
        assert_eq!(Detection.figures(&found).len(), 5);
    }
}

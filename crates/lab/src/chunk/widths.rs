//! `chunk-widths`: what wider vectors give. Every form of every algorithm that has any, with the same cuts as its
//! scalar form.
//!
//! `VectorCDC` runs on five machines; here are the instruction sets of this one. `portable` is plain arrays, which the
//! compiler turns into what every machine of the architecture has.

use super::common::{bars, by_data, expected_sizes, timed};
use super::forms::Forms;
use super::method::Method;
use super::setup::Setup;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::{Axis, Figure, Plot};
use crate::settings::Settings;
use anyhow::Result;

/// Methods measured with `quick`: the hashless chunkers of `VectorCDC`, what SS-CDC accelerates, and the default.
const FEW: [&str; 11] =
    ["ae-max", "ae-min", "maxp-t", "ram-t", "vae-max", "vae-min", "vmaxp", "vram", "ss-crc", "ss-gear", "lagged"];

/// The experiment.
pub(super) struct Widths;

impl Experiment for Widths {
    fn head(&self) -> Head {
        Head {
            name: "chunk-widths",
            title: "What wider vectors give each chunker",
            reproduces: &["VectorCDC (TOS'25), Fig. 10c-d", "VectorCDC (TOS'25), Fig. 14"],
            needs: Needs::Bytes,
            methods: Method::timed().map(Method::name).collect(),
            rounds: Rounds::All,
            columns: "method expected_bytes isa remark gb_per_s average_bytes ratio_to_scalar",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = timed(&input.data()?.bytes, settings);
        let few = settings.quick && settings.methods.is_empty();
        let methods = if few { Method::named(&FEW) } else { Method::timed().collect() };
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        let setups = Setup::all(methods, &expected_sizes(settings, &[8 << 10], 1), settings);
        for setup in setups.into_iter().filter(|setup| setup.method.isas().len() > 1) {
            subjects.push(Box::new(Forms::new(setup, data, &setup.method.isas())?));
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            let measures = [
                ("gb_per_s", "GB/s", "Throughput by instruction set", "VectorCDC, Fig. 14"),
                ("ratio_to_scalar", "times the scalar form", "Speed-up over the scalar form", "VectorCDC, Fig. 10c-d"),
            ];
            for (measure, label, title, redraws) in measures {
                let (groups, series) = bars(&found, "method", "isa", measure);
                figures.push(Figure {
                    title: format!("{title}, {data}"),
                    redraws: redraws.into(),
                    caption: "Cuts are the same for all instruction sets.".into(),
                    plot: Plot::Bars { y: Axis::linear(label), groups, series },
                });
            }
        }
        figures
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;
    use crate::isas;

    #[test]
    fn all_instruction_sets_are_measured_and_cut_alike() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(2).bytes(200_000)]);
        let found = findings(&Widths, &input, &quick(&[]));
        assert!(found.iter().all(|finding| finding.wrong.is_none()));
        assert_eq!(found.len(), FEW.len() * isas().count());
        let Plot::Bars { groups, series, .. } = &Widths.figures(&found)[0].plot else { panic!("bars") };
        assert_eq!((groups.len(), series.len()), (FEW.len(), isas().count()));
    }
}

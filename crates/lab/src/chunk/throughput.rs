//! `chunk-throughput`: how fast every algorithm cuts, scalar and in its highest form, beside the floors and beside
//! SHA-1.
//!
//! One thread, data in memory. The claims that must show: AE and RAM, not accelerated, are more than three times as
//! fast as Rabin (AE, section 4.3); vector forms are faster than scalar ones (`VectorCDC`, section 6.2).

use super::common::{bars, by_data, expected_sizes, of_methods, timed, with};
use super::fingerprints::Fingerprint;
use super::floor::Floor;
use super::forms::{Beside, Forms};
use super::method::Method;
use super::setup::Setup;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Rounds, Subject};
use crate::report::{Axis, Bars, Figure, Plot};
use crate::settings::Settings;
use anyhow::Result;
use siltstone_chunk::{Isa, Reference};

/// Expected sizes, bytes; the first with `quick`. AE's Figure 7 has 2 to 16 KB, `VectorCDC` 8 KB.
const EXPECTED: [u32; 4] = [8 << 10, 2 << 10, 4 << 10, 16 << 10];
/// Methods that AE's Figure 7 compares; its values are of eight bytes.
const AE_FIGURE: [&str; 6] = ["rabin", "maxp8", "ae8-max", "ae8-opt1", "ae8-opt2-eighth", "sha1"];

/// The experiment.
pub(super) struct Throughput;

impl Experiment for Throughput {
    fn head(&self) -> Head {
        Head {
            name: "chunk-throughput",
            title: "How fast each chunker cuts data in memory, without and with vectors",
            reproduces: &["AE (TC'17), Fig. 7", "VectorCDC (TOS'25), Figs. 5 and 10"],
            needs: Needs::Bytes,
            methods: Method::timed().map(Method::name).collect(),
            rounds: Rounds::All,
            columns: "method expected_bytes isa remark gb_per_s average_bytes ratio_to_scalar",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = timed(&input.data()?.bytes, settings);
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for floor in Floor::ALL {
            subjects.push(Box::new(Beside::floor(floor, data)));
        }
        subjects.push(Box::new(Beside::fingerprint(Fingerprint::Other(Reference::Sha1), data)));
        for setup in Setup::all(Method::timed(), &expected_sizes(settings, &EXPECTED, 1), settings) {
            subjects.push(Box::new(Forms::new(setup, data, &[setup.method.best()])?));
        }
        Ok(subjects)
    }

    fn sorted_by(&self) -> Option<&'static str> {
        Some("gb_per_s")
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            let eight = [with(&found, "expected_bytes", "8192"), with(&found, "expected_bytes", "")].concat();
            figures.push(figure(
                format!("Chunking throughput at 8 KiB, {data}"),
                "VectorCDC, Figs. 5 and 10a-b",
                both_forms(&eight),
            ));
            let mut scalar = of_methods(&found, &AE_FIGURE);
            scalar.retain(|one| one.parameter("isa") == Isa::SCALAR.name() || one.parameter("method") == "sha1");
            figures.push(figure(
                format!("Chunking throughput without vectors, {data}"),
                "AE, Fig. 7",
                bars(&scalar, "expected_bytes", "method", "gb_per_s"),
            ));
        }
        figures
    }
}

/// The chunker that does not read what it cuts.
pub(super) const FIXED: &str = "fixed";

/// A group for each method: scalar, and what is above it.
fn both_forms(found: &[&Finding]) -> (Vec<String>, Vec<Bars>) {
    let (groups, _) = bars(found, "method", "isa", "gb_per_s");
    let of = |method: &String, is_scalar: bool| {
        let forms = with(found, "method", method);
        let form = forms.into_iter().find(|form| (form.parameter("isa") == Isa::SCALAR.name()) == is_scalar);
        form.and_then(|form| form.spread("gb_per_s"))
    };
    let series = [("scalar", true), ("vectors", false)];
    let series = series.map(|(name, is_scalar)| Bars {
        name: name.to_owned(),
        values: groups.iter().map(|method| of(method, is_scalar)).collect(),
    });
    (groups, series.into())
}

fn figure(title: String, redraws: &str, (groups, series): (Vec<String>, Vec<Bars>)) -> Figure {
    Figure {
        title,
        redraws: redraws.into(),
        caption: "Median of all rounds, with the slowest and the fastest; one thread, data in memory.".into(),
        plot: Plot::Bars { y: Axis::linear("GB/s"), groups, series },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn every_chunker_cuts_alike_in_both_forms() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(1).bytes(300_000), &vec![0; 50_000]]);
        let found = findings(&Throughput, &input, &quick(&[]));
        assert!(found.iter().all(|finding| finding.wrong.is_none() && finding.median("gb_per_s").is_some()));
        let methods = Method::timed().count();
        assert!(found.len() >= methods + 3, "{} of {methods}", found.len());
        let figures = Throughput.figures(&found);
        let Plot::Bars { groups, series, .. } = &figures[0].plot else { panic!("bars") };
        assert_eq!(groups.len(), methods + 3, "all, and three floors");
        assert!(series.iter().all(|series| series.values.len() == groups.len()));
        let Plot::Bars { groups, series, .. } = &figures[1].plot else { panic!("bars") };
        assert_eq!((groups.len(), series.len()), (1, AE_FIGURE.len()));
    }

    #[test]
    fn rows_whose_average_is_off_and_rows_that_search_otherwise_say_so() {
        let folder = tempfile::tempdir().unwrap();
        // A byte above all others, once: MAXP finds its peaks, RAM without a limit would find no cut after it.
        let text: Vec<u8> = Sequence::new(4).bytes(400_000).iter().map(|byte| b'a' + byte % 26).collect();
        let input = input(folder.path(), &[&[&[255], &text[..]].concat()]);
        let found = findings(&Throughput, &input, &quick(&["ram-t", "vram", "lagged"]));
        let of = |method: &str, isa: Isa| {
            let is_it = |f: &&Finding| f.parameter("method") == method && f.parameter("isa") == isa.name();
            found.iter().find(is_it).unwrap()
        };
        let average = |finding: &Finding| finding.median("average_bytes").unwrap();
        assert!(average(of("ram-t", Isa::SCALAR)) < 33_000.0);
        assert_eq!(average(of("vram", Isa::best())).to_bits(), average(of("ram-t", Isa::SCALAR)).to_bits());
        let is_off = |finding: &Finding| finding.parameter("remark").contains("average off by");
        for finding in found.iter().filter(|finding| finding.median("average_bytes").is_some()) {
            assert_eq!(is_off(finding), (average(finding) / 8192.0 - 1.0).abs() > 0.25, "{finding:?}");
        }
        if Isa::best() != Isa::SCALAR {
            assert!(of("ram-t", Isa::best()).parameter("remark").contains("with early exit"));
            assert!(!of("vram", Isa::best()).parameter("remark").contains("early"));
        }
    }

    #[test]
    fn methods_asked_for_are_all_there_is() {
        let folder = tempfile::tempdir().unwrap();
        let input = input(folder.path(), &[&Sequence::new(1).bytes(100_000)]);
        let found = findings(&Throughput, &input, &quick(&["ram-t", "odess"]));
        let of: Vec<&Finding> = found.iter().collect();
        assert_eq!(super::super::common::values(&of, "method"), ["memory-read", "memcpy", "sha1", "ram-t"]);
    }
}

//! `chunk-equal`: what deduplication removes where all chunkers give chunks of the same average.
//!
//! As in AE, TC'17, section 4.1: Rabin with its limits says what the average is at an expected size on this data; each
//! other method is then asked for whatever gives it the same average there. Methods with a key are the mean of three
//! keys.

use super::common::{bars, by_data, expected_sizes, of_methods};
use super::cuts::Cuts;
use super::equal::{at_average, sum};
use super::method::Method;
use super::setup::Setup;
use crate::experiment::{Experiment, Finding, Head, Input, Needs, Outcome, Rounds, Sample, Subject};
use crate::report::{Axis, Figure, Plot};
use crate::settings::Settings;
use anyhow::Result;

/// Expected sizes of Rabin, bytes; the first with `quick`.
const EXPECTED: [u32; 4] = [8 << 10, 16 << 10, 4 << 10, 2 << 10];
/// Who says what the average is.
const LEADER: &str = "rabin";
/// AE's Figure 4: extremes, with and without a largest size. The paper's values are of eight bytes.
const EXTREMES: [&str; 4] = ["ae8-max", "ae8-min", "ae8-max-t", "ae8-min-t"];
/// AE's Figure 5.
const COMPARED: [&str; 4] = [LEADER, "maxp8", "ae8-max", "ae8-opt2-eighth"];
/// All that are measured.
const METHODS: [&str; 15] = [
    LEADER,
    "maxp8",
    "maxp",
    "maxp-t",
    "ae8-max",
    "ae8-min",
    "ae8-max-t",
    "ae8-min-t",
    "ae8-opt2-eighth",
    "ae-max",
    "ram",
    "ram-t",
    "fastcdc-2020-nc2",
    "gear-nc2",
    "lagged",
];

/// The experiment.
pub(super) struct EqualSavings;

impl Experiment for EqualSavings {
    fn head(&self) -> Head {
        Head {
            name: "chunk-equal",
            title: "What deduplication saves where chunks have the same real average",
            reproduces: &["AE (TC'17), Fig. 4", "AE (TC'17), Fig. 5"],
            needs: Needs::Bytes,
            methods: METHODS.to_vec(),
            rounds: Rounds::One,
            columns: "method expected_bytes der savings_percent average_bytes off_percent deviation_bytes \
                     asked_bytes",
        }
    }

    fn subjects<'i>(&self, input: &'i Input, settings: &'i Settings) -> Result<Vec<Box<dyn Subject + 'i>>> {
        let data = &input.data()?.bytes;
        let mut subjects: Vec<Box<dyn Subject + 'i>> = Vec::new();
        for expected in expected_sizes(settings, &EXPECTED, 1) {
            let [method] = Method::named(&[LEADER])[..] else { continue };
            let wanted = Cuts::of(&*Setup { method, expected }.best()?, data).average();
            for setup in Setup::all(Method::named(&METHODS), &[expected], settings) {
                subjects.push(setup.subject(move |setup| equal(setup, wanted, data)));
            }
        }
        Ok(subjects)
    }

    fn figures(&self, findings: &[Finding]) -> Vec<Figure> {
        let mut figures = Vec::new();
        for (data, found) in by_data(findings) {
            let sets = [
                (
                    "Deduplication elimination ratio of AE with maximum, minimum and a largest size",
                    &EXTREMES,
                    "AE, Fig. 4",
                ),
                ("Deduplication elimination ratio at equal real averages", &COMPARED, "AE, Fig. 5"),
            ];
            for (title, names, redraws) in sets {
                let (groups, series) = bars(&of_methods(&found, names), "expected_bytes", "method", "der");
                figures.push(Figure {
                    title: format!("{title}, {data}"),
                    redraws: redraws.into(),
                    caption: "Groups are expected sizes of Rabin; all chunkers have its real average.".into(),
                    plot: Plot::Bars { y: Axis::linear("bytes in / bytes stored"), groups, series },
                });
            }
        }
        figures
    }
}

/// Cuts with a method at the average of the leader at this expected size.
fn equal(Setup { method, expected }: Setup, wanted: f64, data: &[u8]) -> Result<Outcome> {
    let found = at_average(method, data, wanted, expected)?;
    if let Some(difference) = (Setup { method, expected: found.expected }).difference(data)? {
        return Ok(Outcome::Wrong(difference));
    }
    let cuts = sum(&found.measured);
    Ok(Outcome::Right(vec![Sample::of([
        ("der", cuts.elimination_ratio()),
        ("savings_percent", 100.0 * cuts.savings()),
        ("average_bytes", found.average),
        ("off_percent", 100.0 * (found.average / wanted - 1.0)),
        ("deviation_bytes", cuts.deviation()),
        ("asked_bytes", f64::from(found.expected)),
    ])]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chunk::common::testing::{findings, input, quick};
    use crate::deterministic::Sequence;

    #[test]
    fn all_have_the_average_of_rabin() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = Sequence::new(6).bytes(2 << 20);
        let input = input(folder.path(), &[&bytes, &bytes[1..]]);
        let mut settings = quick(&["rabin", "ae8-max", "ae8-max-t"]);
        settings.expected_bytes = vec![2048];
        let found = findings(&EqualSavings, &input, &settings);
        assert_eq!(found.len(), 3);
        for finding in &found {
            assert!(finding.median("off_percent").unwrap().abs() < 2.0, "{finding:?}");
            assert!((1.9..2.1).contains(&finding.median("der").unwrap()), "{finding:?}");
        }
        assert_eq!(EqualSavings.figures(&found).len(), 2);
    }
}

//! A report with something of everything, for tests.

use super::{InputSummary, Report};
use crate::experiment::{Experiment, Finding, Row};
use crate::run::fake::Fake;
use crate::settings::Settings;

/// Two subjects on one input, one of two versions, the other wrong; and points of a curve that no table shows.
pub(crate) fn report() -> Report {
    let finding = |method: &str, version: Option<u32>, values: &[(&str, [f64; 3])], wrong: Option<&str>| {
        let mut parameters = Row::from_iter([("method".to_owned(), method.into())]);
        parameters.extend(version.map(|version| ("version".to_owned(), version.into())));
        Finding {
            experiment: "fake-count".into(),
            data: "two".into(),
            parameters,
            values: values.iter().map(|(name, values)| ((*name).to_owned(), values.to_vec())).collect(),
            wrong: wrong.map(str::to_owned),
        }
    };
    let fake = Fake::default();
    Report {
        settings: Settings { rounds: 3, ..Settings::default() },
        version: "1 (abc)".into(),
        day: "2026-11-22".into(),
        machine: vec!["processor: fast".into(), "memory: much".into()],
        inputs: vec![InputSummary { name: "two".into(), description: "hands".into(), bytes: 2000, versions: 2 }],
        experiments: vec![fake.head()],
        findings: vec![
            finding("left", Some(0), &[("seconds", [0.1, 0.2, 0.3]), ("count", [1.0; 3])], None),
            finding("left", Some(1), &[("seconds", [1.0 / 3.0, 0.4, 0.5]), ("count", [2.0; 3])], None),
            finding("left", None, &[("share_percent", [1.0, 2.0, 3.0])], None),
            finding("wrong", None, &[], Some("a foot, \"really\"")),
        ],
        figures: Vec::new(),
        advice: vec![("fake-count".into(), vec!["raise both".into()])],
        skipped: Vec::new(),
        is_whole: true,
    }
}

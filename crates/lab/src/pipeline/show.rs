//! Figures and sentences of both experiments.

use super::stages::Stage;
use super::subject::SILT;
use crate::distinct;
use crate::experiment::Finding;
use crate::report::{Axis, Bars, Figure, Plot};

/// Measure that the bars of a figure stand for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    /// With its unit.
    pub(super) axis: &'static str,
}

/// Texts of a figure.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) title: &'static str,
    pub(super) redraws: &'static str,
    pub(super) caption: &'static str,
}

/// A figure for each input and expected size: a measure by method, one series per system.
pub(super) fn by_system(findings: &[Finding], measure: Measure, words: Words) -> Vec<Figure> {
    let figure = |group: &Group<'_>| {
        let systems = distinct(group.findings.iter().map(|finding| finding.parameter("system")));
        let methods = distinct(group.findings.iter().map(|finding| method(finding)));
        let bars = |system: &String| {
            let found = |wanted: &String| {
                let mut of_system = group.findings.iter().filter(|finding| finding.parameter("system") == *system);
                of_system.find(|finding| method(finding) == *wanted).and_then(|finding| finding.spread(measure.name))
            };
            Bars { name: system.clone(), values: methods.iter().map(found).collect() }
        };
        let series = systems.iter().map(bars).collect();
        group.figure(words, Plot::Bars { y: Axis::linear(measure.axis), groups: methods.clone(), series })
    };
    groups(findings.iter()).iter().map(figure).collect()
}

/// A figure for each input and expected size: how busy the stages of one system are by method, one series per stage.
pub(super) fn by_stage(findings: &[Finding], system: &str, words: Words) -> Vec<Figure> {
    let figure = |group: &Group<'_>| {
        let bars = |stage: &Stage| {
            let bars = Bars::of(stage.name(), &group.findings, &stage.busy_percent());
            bars.values.iter().any(Option::is_some).then_some(bars)
        };
        let series = Stage::ALL.iter().filter_map(bars).collect();
        let methods = group.findings.iter().map(|finding| method(finding)).collect();
        let mut figure = group.figure(words, Plot::Bars { y: Axis::linear("% of the time"), groups: methods, series });
        figure.title = format!("{} ({system})", figure.title);
        figure
    };
    groups(of_system(findings, system)).iter().map(figure).collect()
}

/// For each input and expected size: how fast a system is with the fastest and the slowest method, and what holds it up
/// then.
pub(super) fn advice(findings: &[Finding], system: &str) -> Vec<String> {
    let sentence = |group: &Group<'_>| {
        let mut rates: Vec<(f64, &Finding)> =
            group.findings.iter().filter_map(|finding| Some((finding.median("mb_per_s")?, *finding))).collect();
        rates.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (slowest, fastest) = (rates.first()?, rates.last()?);
        Some(format!(
            "{}: the system \"{system}\" runs at {:.0} MB/s with {} ({}), and at {:.0} MB/s with {} ({}).",
            group.name(),
            fastest.0,
            method(fastest.1),
            hold_up(fastest.1)?,
            slowest.0,
            method(slowest.1),
            hold_up(slowest.1)?,
        ))
    };
    groups(of_system(findings, system)).iter().filter_map(sentence).collect()
}

/// The busiest stage, and what all take together.
fn hold_up(finding: &Finding) -> Option<String> {
    let shares = Stage::ALL.iter().filter_map(|stage| Some((finding.median(&stage.busy_percent())?, stage.name())));
    let (share, stage) = shares.max_by(|one, other| one.0.total_cmp(&other.0))?;
    let cores = finding.median("processor_percent")? / 100.0;
    Some(format!("busiest stage: {stage}, {share:.0} % of the time; {cores:.1} cores at work"))
}

/// Findings on one input with one expected size.
struct Group<'f> {
    data: &'f str,
    expected_bytes: String,
    findings: Vec<&'f Finding>,
}

impl Group<'_> {
    fn name(&self) -> String {
        format!("{}, chunks of {} bytes", self.data, self.expected_bytes)
    }

    fn figure(&self, words: Words, plot: Plot) -> Figure {
        let title = format!("{}: {}", words.title, self.name());
        Figure { title, redraws: words.redraws.to_owned(), caption: words.caption.to_owned(), plot }
    }
}

fn of_system<'f>(findings: &'f [Finding], system: &str) -> impl Iterator<Item = &'f Finding> {
    findings.iter().filter(move |finding| finding.parameter("system") == system)
}

fn groups<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<Group<'f>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for finding in findings {
        let expected_bytes = finding.parameter("expected_bytes");
        let is_its = |group: &&mut Group<'_>| group.data == finding.data && group.expected_bytes == expected_bytes;
        match groups.iter_mut().find(is_its) {
            Some(group) => group.findings.push(finding),
            None => groups.push(Group { data: &finding.data, expected_bytes, findings: vec![finding] }),
        }
    }
    groups
}

/// Returns the name of a row in figures.
fn method(finding: &Finding) -> String {
    let [system, method, isa] = ["system", "method", "isa"].map(|name| finding.parameter(name));
    match isa.as_str() {
        _ if system == SILT => SILT.to_owned(),
        "" | "scalar" => method,
        isa => format!("{method} {isa}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::row;

    fn finding(system: &str, method: &str, isa: &str, values: &[(&str, f64)]) -> Finding {
        let expected = ("expected_bytes", 8192.into());
        let parameters = row([("system", system.into()), ("method", method.into()), ("isa", isa.into()), expected]);
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), vec![*value])).collect();
        Finding { experiment: String::new(), data: "some".into(), parameters, values, wrong: None }
    }

    fn findings() -> Vec<Finding> {
        let busy = [
            ("mb_per_s", 900.0),
            ("processor_percent", 150.0),
            ("chunk_busy_percent", 20.0),
            ("write_busy_percent", 97.0),
        ];
        vec![
            finding(
                "dedup",
                "rabin",
                "scalar",
                &[("mb_per_s", 300.0), ("processor_percent", 120.0), ("chunk_busy_percent", 99.0)],
            ),
            finding("dedup", "ram", "avx2", &busy),
            finding("zstd", "ram", "avx2", &[("mb_per_s", 200.0)]),
            finding("zstd", "rabin", "scalar", &[]),
            finding(SILT, "lagged", "avx2", &[("mb_per_s", 250.0)]),
        ]
    }

    #[test]
    fn every_system_has_a_place_for_every_method() {
        let measure = Measure { name: "mb_per_s", axis: "MB/s" };
        let words = Words { title: "t", redraws: "r", caption: "c" };
        let figures = by_system(&findings(), measure, words);
        assert_eq!(figures.len(), 1);
        let Plot::Bars { groups, series, .. } = &figures[0].plot else { panic!("bars") };
        assert_eq!(groups, &["rabin", "ram avx2", "silt"]);
        let medians = |bars: &Bars| bars.values.iter().map(|value| value.map(|value| value.median)).collect::<Vec<_>>();
        assert_eq!(medians(&series[0]), [Some(300.0), Some(900.0), None]);
        assert_eq!(medians(&series[1]), [None, Some(200.0), None]);
        assert_eq!(medians(&series[2]), [None, None, Some(250.0)]);
        let figures = by_stage(&findings(), "dedup", words);
        let Plot::Bars { series, .. } = &figures[0].plot else { panic!("bars") };
        assert_eq!(series.iter().map(|bars| bars.name.as_str()).collect::<Vec<_>>(), ["chunk", "write"]);
    }

    #[test]
    fn advice_names_what_holds_the_system_up() {
        let advice = advice(&findings(), "dedup");
        assert_eq!(advice.len(), 1);
        for part in
            ["900 MB/s with ram avx2 (busiest stage: write, 97 %", "300 MB/s with rabin (busiest stage: chunk, 99 %"]
        {
            assert!(advice[0].contains(part), "{}", advice[0]);
        }
    }
}

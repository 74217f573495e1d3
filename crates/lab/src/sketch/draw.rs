//! Findings as plots: which finding is drawn where is said by functions, so that every experiment shows its own.

use crate::distinct;
use crate::experiment::Finding;
use crate::report::{Axis, Bars, Figure, Line, Plot};

/// The name of something in a plot.
pub(super) type Name<'f> = &'f dyn Fn(&Finding) -> String;

/// Texts of a figure.
pub(super) struct Drawing {
    pub(super) title: String,
    pub(super) redraws: &'static str,
    pub(super) caption: &'static str,
}

/// Measure that is drawn, and the label of its axis.
#[derive(Clone, Copy)]
pub(super) struct Measure {
    pub(super) name: &'static str,
    pub(super) label: &'static str,
}

pub(super) const SPEED: Measure = Measure { name: "gb_per_s", label: "Speed of sketching, GB/s" };
pub(super) const DCR: Measure = Measure { name: "dcr", label: "Delta compression ratio (DCR)" };
pub(super) const GCR: Measure = Measure { name: "gcr", label: "Global compression ratio (GCR)" };
pub(super) const DCE: Measure = Measure { name: "dce", label: "Delta compression efficiency (DCE)" };
pub(super) const SCR: Measure = Measure { name: "scr", label: "Similar chunk ratio (SCR)" };
pub(super) const SER: Measure = Measure { name: "ser", label: "Share of chunks without a sketch (SER)" };
pub(super) const ERROR: Measure = Measure { name: "error_mean", label: "Average estimating error" };
pub(super) const DEVIATION: Measure =
    Measure { name: "error_deviation", label: "Standard deviation of the estimating error" };

impl Drawing {
    /// Groups of bars; nothing if no finding has the measure.
    pub(super) fn bars(self, findings: &[&Finding], measure: Measure, group: Name, series: Name) -> Option<Figure> {
        let found: Vec<&Finding> = findings.iter().copied().filter(|one| one.median(measure.name).is_some()).collect();
        let groups = distinct(found.iter().map(|one| group(one)));
        let bar = |name: &String| {
            let of_group = |wanted: &String| {
                found.iter().find(|one| group(one) == *wanted && series(one) == *name)?.spread(measure.name)
            };
            Bars { name: name.clone(), values: groups.iter().map(of_group).collect() }
        };
        let series: Vec<Bars> = distinct(found.iter().map(|one| series(one))).iter().map(bar).collect();
        let is_empty = series.is_empty();
        self.figure(is_empty, Plot::Bars { y: Axis::linear(measure.label), groups, series })
    }

    /// A line for each name, from the medians of the measure; nothing if no finding has it.
    pub(super) fn lines(
        self,
        findings: &[&Finding],
        measure: Measure,
        x: Axis,
        at: &dyn Fn(&Finding) -> f64,
        series: Name,
    ) -> Option<Figure> {
        let series = lines(findings, measure.name, at, series);
        self.with_lines(x, Axis::linear(measure.label), series)
    }

    /// These lines; nothing if there is none.
    pub(super) fn with_lines(self, x: Axis, y: Axis, series: Vec<Line>) -> Option<Figure> {
        self.figure(series.is_empty(), Plot::Lines { x, y, series })
    }

    /// This plot, unless it is empty.
    pub(super) fn figure(self, is_empty: bool, plot: Plot) -> Option<Figure> {
        let Self { title, redraws, caption } = self;
        (!is_empty).then(|| Figure { title, redraws: redraws.into(), caption: caption.into(), plot })
    }
}

/// A line for each name, points by ascending x.
pub(super) fn lines(findings: &[&Finding], measure: &str, at: &dyn Fn(&Finding) -> f64, series: Name) -> Vec<Line> {
    let line = |name: String| {
        let of_line = findings.iter().filter(|finding| series(finding) == name);
        let mut points: Vec<(f64, f64)> =
            of_line.filter_map(|finding| Some((at(finding), finding.median(measure)?))).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Line { name, is_theory: false, points }
    };
    let names = distinct(findings.iter().map(|one| series(one)));
    names.into_iter().map(line).filter(|line| !line.points.is_empty()).collect()
}

/// Names of the data, in the order of the findings.
pub(super) fn data_names(findings: &[Finding]) -> Vec<String> {
    distinct(findings.iter().map(|finding| finding.data.clone()))
}

/// The findings for which all these parameters are as said.
pub(super) fn those<'f>(findings: &'f [Finding], wanted: &[(&str, &str)]) -> Vec<&'f Finding> {
    let is_wanted = |finding: &&Finding| {
        wanted.iter().all(|(name, value)| match *name {
            "data" => finding.data == *value,
            name => finding.parameter(name) == *value,
        })
    };
    findings.iter().filter(is_wanted).collect()
}

/// A parameter as a number; NaN if it is none.
pub(super) fn number(finding: &Finding, name: &str) -> f64 {
    finding.parameters.get(name).and_then(serde_json::Value::as_f64).unwrap_or(f64::NAN)
}

/// The expected size of chunks, as a person reads it.
pub(super) fn size_name(finding: &Finding) -> String {
    let bytes = finding.parameters.get("expected_bytes").and_then(serde_json::Value::as_u64).unwrap_or_default();
    if bytes.is_multiple_of(1024) { format!("{} KiB", bytes >> 10) } else { format!("{bytes} bytes") }
}

/// The papers' size of chunks if it was measured, else the first that was.
pub(super) fn usual_size(findings: &[Finding]) -> Option<String> {
    let usual = findings.iter().find(|finding| size_name(finding) == USUAL_SIZE).or(findings.first())?;
    Some(size_name(usual))
}

/// Size of chunks in both papers.
const USUAL_SIZE: &str = "8 KiB";

/// The method.
pub(super) fn method_name(finding: &Finding) -> String {
    finding.parameter("method")
}

/// The method with what it samples, as `odess 1/128`.
pub(super) fn sampled_name(finding: &Finding) -> String {
    match finding.parameter("one_in").as_str() {
        "" => method_name(finding),
        one_in => format!("{} 1/{one_in}", method_name(finding)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::row;

    fn finding(method: &str, one_in: u64, value: Option<f64>) -> Finding {
        let parameters = row([("method", method.into()), ("one_in", one_in.into())]);
        let values = value.map(|value| ("dcr".to_owned(), vec![value])).into_iter().collect();
        Finding { experiment: "e".into(), data: "d".into(), parameters, values, wrong: None }
    }

    fn drawing() -> Drawing {
        Drawing { title: "t".into(), redraws: "", caption: "" }
    }

    #[test]
    fn bars_stand_in_their_groups_and_what_is_missing_is_left_out() {
        let findings = [
            finding("a", 32, Some(1.0)),
            finding("a", 64, Some(2.0)),
            finding("b", 64, Some(3.0)),
            finding("c", 9, None),
        ];
        let findings: Vec<&Finding> = findings.iter().collect();
        let figure = drawing().bars(&findings, DCR, &|one| one.parameter("one_in"), &method_name).unwrap();
        let Plot::Bars { groups, series, .. } = figure.plot else { panic!() };
        assert_eq!(groups, ["32", "64"]);
        let medians = |bars: &Bars| bars.values.iter().map(|value| value.map(|value| value.median)).collect::<Vec<_>>();
        assert_eq!(series.iter().map(medians).collect::<Vec<_>>(), [[Some(1.0), Some(2.0)], [None, Some(3.0)]]);
        assert!(drawing().bars(&findings, SPEED, &method_name, &method_name).is_none());
    }

    #[test]
    fn lines_go_to_the_right() {
        let findings = [finding("a", 64, Some(2.0)), finding("a", 32, Some(1.0)), finding("b", 1, None)];
        let found: Vec<&Finding> = findings.iter().collect();
        let at = |finding: &Finding| number(finding, "one_in");
        let figure = drawing().lines(&found, DCR, Axis::linear("x"), &at, &method_name).unwrap();
        let Plot::Lines { series, .. } = figure.plot else { panic!() };
        assert_eq!(series.len(), 1);
        assert_eq!(series[0].points, [(32.0, 1.0), (64.0, 2.0)]);
        assert_eq!(those(&findings, &[("method", "a"), ("one_in", "32")]).len(), 1);
        assert_eq!(sampled_name(&findings[0]), "a 1/64");
    }
}

//! What the papers say, held against what was found: each claim is a ratio of two rows of an experiment, or the value of one, and the
//! range the paper gives for it.
//!
//! A ratio is taken wherever both rows are there on the same data, with the parameters alike that the claim names; of several rows that
//! fit (forms for different instruction sets), the greatest value counts. Over all of them stand the geometric mean and the ends.

mod ae;
mod finesse;
mod mega;
mod odess;
mod vectorcdc;

use crate::experiment::Finding;
use crate::statistics::geometric_mean;
use std::collections::BTreeMap;

/// A claim of a paper's evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The paper: `AE (TC'17)`.
    pub paper: &'static str,
    /// Where it stands there.
    pub place: &'static str,
    /// What it says, in our words.
    pub says: &'static str,
    /// The paper's figure.
    pub figure: &'static str,
    measured: Measured,
    expected: Expected,
}

/// Rows with these parameters; as `version`, `last` is the last one there is.
type Rows = &'static [(&'static str, &'static str)];

/// Names of parameters.
type Names = &'static [&'static str];

/// What is measured of a claim.
#[derive(Clone, Copy, Debug)]
enum Measured {
    /// A measure of one row by that of another.
    Ratio { experiment: &'static str, measure: &'static str, of: Rows, to: Rows, alike: Names },
    /// A measure.
    Value { experiment: &'static str, measure: &'static str, of: Rows },
}

/// What the paper found.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A factor above 1, in this range.
    Factor(f64, f64),
    /// More than 1, by whatever factor.
    More,
    /// A value in this range.
    Within(f64, f64),
}

/// How far beyond the paper's range we may be and still agree, as a factor: other machines, other data.
const TOLERANCE: f64 = 1.25;

/// What became of a claim on our data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In the paper's range, or within 25 % of it.
    Agrees,
    /// The same order, by a larger factor.
    Stronger,
    /// The same order, by a smaller factor.
    Weaker,
    /// The other order; or, of a value, outside the range.
    Differs,
    /// No rows to judge by.
    NotMeasured,
}

impl Verdict {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Stronger => "same order, more",
            Self::Weaker => "same order, less",
            Self::Differs => "differs",
            Self::NotMeasured => "not measured",
        }
    }
}

/// A claim and what was found.
#[derive(Clone, Copy, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: &'static Claim,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Least, geometric mean, greatest of what was found, and of how many.
    pub ours: Option<(f64, f64, f64, usize)>,
}

impl Judged {
    /// What was found, as it is shown: `3.4 (2.9 to 4.1, of 6)`.
    pub fn ours_text(&self) -> String {
        match self.ours {
            None => String::new(),
            Some((_, mean, _, 1)) => shown(mean),
            Some((low, mean, high, count)) => {
                format!("{} ({} to {}, of {count})", shown(mean), shown(low), shown(high))
            }
        }
    }
}

/// Three figures.
fn shown(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        size if size >= 0.1 => format!("{value:.2}"),
        _ => format!("{value:.4}"),
    }
}

/// All claims, paper by paper.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [ae::CLAIMS, vectorcdc::CLAIMS, finesse::CLAIMS, odess::CLAIMS, mega::CLAIMS].into_iter().flatten()
}

/// Every claim, judged by these findings.
pub fn judge(findings: &[Finding]) -> Vec<Judged> {
    all().map(|claim| claim.judge(findings)).collect()
}

impl Claim {
    fn judge(&'static self, findings: &[Finding]) -> Judged {
        let values = self.measured.values(findings);
        let mean = geometric_mean(&values);
        let ends = |pick: fn(f64, f64) -> f64| values.iter().copied().reduce(pick).unwrap_or(mean);
        let ours = (!values.is_empty()).then(|| (ends(f64::min), mean, ends(f64::max), values.len()));
        let verdict = ours.map_or(Verdict::NotMeasured, |_| self.expected.verdict(mean));
        Judged { claim: self, verdict, ours }
    }
}

impl Expected {
    fn verdict(self, mean: f64) -> Verdict {
        match self {
            Self::Factor(low, _) if mean <= 1.0 && (low > 1.0 || low / TOLERANCE > mean) => Verdict::Differs,
            Self::Factor(low, _) if mean < low / TOLERANCE => Verdict::Weaker,
            Self::Factor(_, high) if mean > high * TOLERANCE => Verdict::Stronger,
            Self::Within(low, high) if mean < low || mean > high => Verdict::Differs,
            Self::More if mean <= 1.0 => Verdict::Differs,
            Self::Factor(..) | Self::Within(..) | Self::More => Verdict::Agrees,
        }
    }
}

impl Measured {
    /// Positive ones only: a geometric mean has no room for others.
    fn values(self, findings: &[Finding]) -> Vec<f64> {
        let rows = |experiment: &'static str, rows: Rows| {
            let own = findings.iter().filter(move |finding| finding.experiment == experiment);
            own.clone().filter(move |finding| is_of(finding, rows, || last_version(own.clone(), &finding.data)))
        };
        let values: Vec<f64> = match self {
            Self::Value { experiment, measure, of } => {
                rows(experiment, of).filter_map(|finding| finding.median(measure)).collect()
            }
            Self::Ratio { experiment, measure, of, to, alike } => {
                let best = |which: Rows| {
                    let mut best: BTreeMap<(String, Vec<String>), f64> = BTreeMap::new();
                    for finding in rows(experiment, which) {
                        let alike = alike.iter().map(|name| finding.parameter(name)).collect();
                        let found = finding.median(measure).unwrap_or(f64::NAN);
                        let kept = best.entry((finding.data.clone(), alike)).or_insert(found);
                        *kept = kept.max(found);
                    }
                    best
                };
                let to = best(to);
                best(of).into_iter().filter_map(|(at, value)| Some(value / to.get(&at)?)).collect()
            }
        };
        values.into_iter().filter(|value| value.is_finite() && *value > 0.0).collect()
    }
}

fn is_of(finding: &Finding, rows: Rows, last: impl Fn() -> Option<u64>) -> bool {
    rows.iter().all(|(name, value)| match (*name, *value) {
        ("version", "last") => version(finding) == last(),
        _ => finding.parameter(name) == *value,
    })
}

fn version(finding: &Finding) -> Option<u64> {
    finding.parameter("version").parse().ok()
}

fn last_version<'f>(findings: impl Iterator<Item = &'f Finding>, data: &str) -> Option<u64> {
    findings.filter(|finding| finding.data == data).filter_map(version).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Row;
    use crate::statistics::rounded;

    fn finding(method: &str, size: u32, speed: f64) -> Finding {
        let mut parameters = Row::new();
        parameters.insert("method".into(), method.into());
        parameters.insert("expected_bytes".into(), size.into());
        let values = vec![("gb_per_s".to_owned(), vec![speed, speed * 1.5, speed / 1.5])];
        Finding { experiment: "e".into(), data: "d".into(), parameters, values, wrong: None }
    }

    static CLAIM: Claim = Claim {
        paper: "",
        place: "",
        says: "",
        figure: "",
        measured: Measured::Ratio {
            experiment: "e",
            measure: "gb_per_s",
            of: &[("method", "fast")],
            to: &[("method", "slow")],
            alike: &["expected_bytes"],
        },
        expected: Expected::Factor(2.0, 3.0),
    };

    #[test]
    fn ratios_are_of_rows_alike_in_all_else() {
        let findings =
            [finding("fast", 4, 4.0), finding("slow", 4, 2.0), finding("fast", 8, 8.0), finding("slow", 8, 1.0)];
        let judged = CLAIM.judge(&findings);
        let (low, mean, high, count) = judged.ours.unwrap();
        assert_eq!((rounded(low, 6), rounded(mean, 6), rounded(high, 6), count), (2.0, 4.0, 8.0, 2));
        assert_eq!(judged.verdict, Verdict::Stronger);
        assert_eq!(CLAIM.judge(&findings[..1]).verdict, Verdict::NotMeasured);
    }

    #[test]
    fn verdicts_tell_order_from_size() {
        let factor = Expected::Factor(2.0, 3.0);
        let verdicts = [0.9, 1.2, 1.7, 3.7, 3.8].map(|mean| factor.verdict(mean));
        let expected = [Verdict::Differs, Verdict::Weaker, Verdict::Agrees, Verdict::Agrees, Verdict::Stronger];
        assert_eq!(verdicts, expected);
        assert_eq!(Expected::Within(0.95, 1.05).verdict(0.9), Verdict::Differs);
        assert_eq!(Expected::More.verdict(1.01), Verdict::Agrees);
    }

    #[test]
    fn every_claim_names_an_experiment_that_there_is() {
        let names: Vec<&str> = crate::experiments().iter().map(|experiment| experiment.name()).collect();
        for claim in all() {
            let (Measured::Ratio { experiment, .. } | Measured::Value { experiment, .. }) = claim.measured;
            assert!(names.contains(&experiment), "{}, {}: {experiment}", claim.paper, claim.place);
        }
    }
}

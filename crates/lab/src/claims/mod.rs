//! Claims of the papers, held against what was found: each claim is a ratio of two rows of an experiment, or the value
//! of one, and the range the paper gives for it.
//!
//! A ratio is taken wherever both rows are there on the same data, with the parameters alike that the claim names; of
//! several rows that fit (forms for different instruction sets), the greatest value counts. Over all of them, and for
//! each data set, stand the geometric mean and the ends.

mod ae;
mod finesse;
mod mega;
mod odess;
mod page;
mod vectorcdc;

pub use page::{Page, tables, tally};

use crate::experiment::Finding;
use crate::statistics::{Spread, geometric_mean};

/// A claim of a paper's evaluation.
#[derive(Clone, Copy, Debug)]
pub struct Claim {
    /// The paper: `AE (TC'17)`.
    pub paper: &'static str,
    /// Where it stands there.
    pub place: &'static str,
    /// Claim in our words.
    pub says: &'static str,
    /// The paper's figure.
    pub figure: &'static str,
    measured: Measured,
    expected: Expected,
}

/// Rows with these parameters, as `MeGA; version last`: a word alone is a method; of versions `last` is the last
/// there is.
type Rows = &'static str;

/// Names of parameters, separated by blanks.
type Names = &'static str;

/// Measure of a claim.
#[derive(Clone, Copy, Debug)]
enum Measured {
    /// A measure of one row by that of another.
    Ratio { experiment: &'static str, measure: &'static str, of: Rows, to: Rows, alike: Names },
    /// A measure.
    Value { experiment: &'static str, measure: &'static str, of: Rows },
}

/// A measure of the rows `of` by that of the rows `to` that are `alike`.
const fn ratio(experiment: &'static str, measure: &'static str, of: Rows, to: Rows, alike: Names) -> Measured {
    Measured::Ratio { experiment, measure, of, to, alike }
}

/// A measure of the rows `of`.
const fn value(experiment: &'static str, measure: &'static str, of: Rows) -> Measured {
    Measured::Value { experiment, measure, of }
}

/// Finding of the paper.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A factor above 1, in this range.
    Factor(f64, f64),
    /// More than 1, by whatever factor.
    More,
    /// A value in this range.
    Within(f64, f64),
}

/// Factor by which we may be beyond the paper's range and still agree: other machines, other data.
const TOLERANCE: f64 = 1.25;

/// Verdict on a claim on our data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// In the paper's range, or within 25 % of it.
    Agrees,
    /// In the paper's order, by a larger factor.
    Stronger,
    /// In the paper's order, by a smaller factor.
    Weaker,
    /// The other order; or, of a value, outside the range.
    Differs,
    /// Nothing to judge by: no rows, or 0 on both sides of every ratio.
    NotJudged,
}

impl Verdict {
    /// All there are.
    pub const ALL: [Self; 5] = [Self::Agrees, Self::Stronger, Self::Weaker, Self::Differs, Self::NotJudged];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Stronger => "same order, more",
            Self::Weaker => "same order, less",
            Self::Differs => "differs",
            Self::NotJudged => "not judged",
        }
    }

    /// In a sign.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::Stronger | Self::Weaker => "≈",
            Self::Differs => "✗",
            Self::NotJudged => "–",
        }
    }
}

/// A claim and what was found.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The claim.
    pub claim: &'static Claim,
    /// On all data together.
    pub ours: Found,
    /// On each data set by its name, in the order in which they were measured; of an experiment that makes what it
    /// needs, under "".
    pub by_data: Vec<(String, Found)>,
}

impl Judged {
    /// Returns the verdict: it holds, or it does not.
    pub fn verdict(&self) -> Verdict {
        self.ours.verdict
    }

    /// Returns what was found on each data set, where there are several: `syn 1.53 ✓, disk 0.92 ✗`.
    pub fn by_data_text(&self) -> String {
        if self.by_data.len() < 2 {
            return String::new();
        }
        let one = |(data, found): &(String, Found)| {
            let middle = found.ends.map_or_else(|| "0 / 0".to_owned(), |ends| shown(ends.median));
            format!("{data} {middle} {}", found.verdict.mark())
        };
        self.by_data.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

/// Finding for a claim on some data.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Found {
    /// Least, middle and greatest; `None` if nothing can be judged.
    pub ends: Option<Spread>,
    /// So many ratios or values were judged.
    pub judged: usize,
    /// So many ratios were not, having 0 on both sides.
    pub empty: usize,
    /// The verdict on the claim here.
    pub verdict: Verdict,
}

impl Found {
    /// Sums up these ratios or values.
    ///
    /// A ratio to 0 is infinite, 0 / 0 (NaN) says nothing and is only counted. The middle is the geometric mean; where
    /// one of them is 0 or infinite, which leaves no mean, it is their lower median: no claim of more rests on the
    /// infinite half of its ratios.
    fn of(values: &[f64], expected: Expected) -> Self {
        let mut judged: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
        judged.sort_by(f64::total_cmp);
        let has_mean = judged.iter().all(|value| *value > 0.0 && value.is_finite());
        let lower_median = |sorted: &[f64]| sorted[(sorted.len() - 1) / 2];
        let middle: fn(&[f64]) -> f64 = if has_mean { geometric_mean } else { lower_median };
        let ends = judged.first().zip(judged.last());
        let ends = ends.map(|(&low, &high)| Spread { low, median: middle(&judged), high });
        let verdict = ends.map_or(Verdict::NotJudged, |ends| expected.verdict(ends.median));
        Self { ends, judged: judged.len(), empty: values.len() - judged.len(), verdict }
    }

    /// As it is shown: `3.4 (2.9 to ∞, of 6)`.
    pub fn text(&self) -> String {
        let Self { judged, empty, .. } = self;
        let without = if *empty > 0 { format!("{empty} without either") } else { String::new() };
        match self.ends {
            None => without,
            Some(ends) if *judged == 1 && *empty == 0 => shown(ends.median),
            Some(ends) if *judged == 1 => format!("{} ({without})", shown(ends.median)),
            Some(Spread { low, median, high }) => {
                let without = if *empty > 0 { format!("; {without}") } else { without };
                format!("{} ({} to {}, of {judged}{without})", shown(median), shown(low), shown(high))
            }
        }
    }
}

/// Three figures.
fn shown(value: f64) -> String {
    match value.abs() {
        size if size.is_infinite() => "∞".to_owned(),
        0.0 => "0".to_owned(),
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
        let found = self.measured.values(findings);
        let values: Vec<f64> = found.iter().map(|(_, value)| *value).collect();
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in &found {
            if !names.contains(name) {
                names.push(name);
            }
        }
        let on = |name: &str| {
            let own: Vec<f64> = found.iter().filter(|(data, _)| *data == name).map(|(_, value)| *value).collect();
            (name.to_owned(), Found::of(&own, self.expected))
        };
        Judged { claim: self, ours: Found::of(&values, self.expected), by_data: names.into_iter().map(on).collect() }
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
    /// Every ratio or value there is, with its data; NaN for 0 / 0.
    fn values(self, findings: &[Finding]) -> Vec<(&str, f64)> {
        let rows = |experiment: &'static str, rows: Rows| {
            let own = findings.iter().filter(move |finding| finding.experiment == experiment);
            own.clone().filter(move |finding| is_of(finding, rows, || last_version(own.clone(), &finding.data)))
        };
        match self {
            Self::Value { experiment, measure, of } => {
                let value = |finding: &'_ Finding| finding.median(measure).filter(|value| value.is_finite());
                rows(experiment, of).filter_map(|finding| Some((finding.data.as_str(), value(finding)?))).collect()
            }
            Self::Ratio { experiment, measure, of, to, alike } => {
                let best = |which: Rows| {
                    // In the order of the findings, which is that of the data.
                    let mut best: Vec<((&str, Vec<String>), f64)> = Vec::new();
                    for finding in rows(experiment, which) {
                        let at = (
                            finding.data.as_str(),
                            alike.split_whitespace().map(|name| finding.parameter(name)).collect(),
                        );
                        let Some(found) = finding.median(measure).filter(|found| found.is_finite()) else { continue };
                        match best.iter_mut().find(|(other, _)| *other == at) {
                            Some((_, kept)) => *kept = kept.max(found),
                            None => best.push((at, found)),
                        }
                    }
                    best
                };
                let to = best(to);
                let beside =
                    |at: &(&str, Vec<String>)| to.iter().find(|(other, _)| other == at).map(|(_, value)| *value);
                best(of).into_iter().filter_map(|(at, value)| Some((at.0, value / beside(&at)?))).collect()
            }
        }
    }
}

/// Names and values of `rows`.
fn parameters(rows: Rows) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = rows.split("; ").filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(' ').unwrap_or(("method", part)))
}

fn is_of(finding: &Finding, rows: Rows, last: impl Fn() -> Option<u64>) -> bool {
    parameters(rows).all(|parameter| match parameter {
        ("version", "last") => version(finding) == last(),
        (name, value) => finding.parameter(name) == value,
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
    use crate::experiment::{Head, Row};
    use crate::statistics::rounded;

    fn finding(method: &str, size: u32, speed: f64) -> Finding {
        let mut parameters = Row::new();
        parameters.insert("method".into(), method.into());
        parameters.insert("expected_bytes".into(), size.into());
        let values = vec![("gb_per_s".to_owned(), vec![speed, speed * 1.5, speed / 1.5])];
        Finding { experiment: "e".into(), data: "d".into(), parameters, values, wrong: None }
    }

    fn on(data: &str, finding: Finding) -> Finding {
        Finding { data: data.into(), ..finding }
    }

    static CLAIM: Claim = Claim {
        paper: "",
        place: "",
        says: "",
        figure: "",
        measured: ratio("e", "gb_per_s", "fast", "slow", "expected_bytes"),
        expected: Expected::Factor(2.0, 3.0),
    };

    #[test]
    fn ratios_are_of_rows_alike_in_all_else() {
        let findings =
            [finding("fast", 4, 4.0), finding("slow", 4, 2.0), finding("fast", 8, 8.0), finding("slow", 8, 1.0)];
        let judged = CLAIM.judge(&findings);
        let Spread { low, median, high } = judged.ours.ends.unwrap();
        assert_eq!((rounded(low, 6), rounded(median, 6), rounded(high, 6)), (2.0, 4.0, 8.0));
        assert_eq!((judged.ours.judged, judged.verdict()), (2, Verdict::Stronger));
        assert_eq!(CLAIM.judge(&findings[..1]).verdict(), Verdict::NotJudged);
    }

    #[test]
    fn what_one_side_has_none_of_counts_and_what_neither_has_does_not() {
        let found = |values: &[f64]| {
            let found = Found::of(values, Expected::Factor(2.0, 3.0));
            (found.text(), found.verdict)
        };
        let infinite = f64::INFINITY;
        assert_eq!(found(&[2.5, infinite]), ("2.50 (2.50 to ∞, of 2)".into(), Verdict::Agrees));
        assert_eq!(found(&[2.5, 0.0]), ("0 (0 to 2.50, of 2)".into(), Verdict::Differs));
        assert_eq!(found(&[2.5, 2.5, 0.0]), ("2.50 (0 to 2.50, of 3)".into(), Verdict::Agrees));
        assert_eq!(found(&[infinite, 2.5, infinite]), ("∞ (2.50 to ∞, of 3)".into(), Verdict::Stronger));
        assert_eq!(found(&[infinite]), ("∞".into(), Verdict::Stronger));
        assert_eq!(found(&[2.5, f64::NAN]), ("2.50 (1 without either)".into(), Verdict::Agrees));
        assert_eq!(
            found(&[2.5, 2.5, f64::NAN]),
            ("2.50 (2.50 to 2.50, of 2; 1 without either)".into(), Verdict::Agrees)
        );
        assert_eq!(found(&[f64::NAN]), ("1 without either".into(), Verdict::NotJudged));
        assert_eq!(found(&[]), (String::new(), Verdict::NotJudged));
        assert_eq!(Found::of(&[0.0], Expected::Within(0.5, 1.0)).verdict, Verdict::Differs);
    }

    #[test]
    fn data_on_which_the_order_differs_are_named() {
        let findings = [
            on("syn", finding("fast", 4, 5.0)),
            on("syn", finding("slow", 4, 2.0)),
            on("disk", finding("fast", 4, 1.0)),
            on("disk", finding("slow", 4, 2.0)),
            on("bare", finding("fast", 4, 1.0)),
            on("bare", finding("slow", 4, 0.0)),
            on("none", finding("fast", 4, 0.0)),
            on("none", finding("slow", 4, 0.0)),
        ];
        let judged = CLAIM.judge(&findings);
        assert_eq!(judged.by_data_text(), "syn 2.50 ✓, disk 0.50 ✗, bare ∞ ≈, none 0 / 0 –");
        assert_eq!(judged.ours.text(), "2.50 (0.50 to ∞, of 3; 1 without either)");
        assert_eq!(CLAIM.judge(&findings[..2]).by_data_text(), "");
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
    fn every_claim_names_columns_of_an_experiment_that_there_is() {
        let heads: Vec<_> = crate::experiments().iter().map(|experiment| experiment.head()).collect();
        for claim in all() {
            let (experiment, measure, rows, alike) = match claim.measured {
                Measured::Ratio { experiment, measure, of, to, alike } => (experiment, measure, vec![of, to], alike),
                Measured::Value { experiment, measure, of } => (experiment, measure, vec![of], ""),
            };
            let head = heads.iter().find(|head| head.name == experiment);
            let columns: Vec<&str> = head.into_iter().flat_map(Head::columns).collect();
            let names = rows.into_iter().flat_map(parameters).map(|(name, _)| name);
            for name in names.chain(alike.split_whitespace()).chain([measure]) {
                assert!(columns.contains(&name), "{}, {}: {name} of {experiment}", claim.paper, claim.place);
            }
        }
    }
}

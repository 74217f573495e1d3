//! Claims of the papers, held against what was found: each claim is a ratio of two rows of an experiment, or the value
//! of one, and the range the paper gives for it.
//!
//! A claim names the rows it compares, instruction set and parameters included, and nothing is chosen among them
//! (module `measured`). A ratio is taken wherever both rows are there on the same data, with the parameters alike that
//! the claim names. Over all of them, and for each data set, stand the geometric mean and the ends.
//!
//! Every round of a run is judged for itself, too. A verdict to which not all rounds come is none: the claim is not
//! decided. A time that was taken once decides nothing.

mod ae;
mod finesse;
mod measured;
mod mega;
mod odess;
mod page;
mod vectorcdc;

pub use page::{Page, side_by_side, tables, tally};

use crate::distinct;
use crate::experiment::Finding;
use crate::statistics::{Spread, geometric_mean};
use measured::{Measured, Point, at_round, by_size, ratio, value};

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

/// Finding of the paper.
#[derive(Clone, Copy, Debug)]
enum Expected {
    /// A factor above 1, in this range.
    Factor(f64, f64),
    /// More than 1, by whatever factor.
    More,
    /// 1 or more: equal or higher.
    NotLess,
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
    /// Nothing holds: the rounds do not all come to one verdict, or a time was taken only once.
    NotDecided,
    /// Nothing to judge by: no rows, or 0 on both sides of every ratio.
    NotJudged,
}

impl Verdict {
    /// All there are.
    pub const ALL: [Self; 6] =
        [Self::Agrees, Self::Stronger, Self::Weaker, Self::Differs, Self::NotDecided, Self::NotJudged];

    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Self::Agrees => "agrees",
            Self::Stronger => "same order, more",
            Self::Weaker => "same order, less",
            Self::Differs => "differs",
            Self::NotDecided => "not decided",
            Self::NotJudged => "not judged",
        }
    }

    /// In a sign.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Agrees => "✓",
            Self::Stronger | Self::Weaker => "≈",
            Self::Differs => "✗",
            Self::NotDecided => "?",
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
    /// The least and the greatest that a round alone comes to; `None` if there are not several.
    pub rounds: Option<(f64, f64)>,
    /// So many ratios or values were judged.
    pub judged: usize,
    /// So many ratios were not, having 0 on both sides.
    pub empty: usize,
    /// The verdict on the claim here.
    pub verdict: Verdict,
}

impl Found {
    /// Sums up these ratios or values.
    fn of(points: &[&Point<'_>], claim: &Claim) -> Self {
        let middles: Vec<f64> = points.iter().map(|point| point.middle).collect();
        let sum = ends(&middles);
        let count = points.iter().map(|point| point.rounds.len()).max().unwrap_or(0);
        let of_round =
            |round| -> Vec<f64> { points.iter().filter_map(|point| at_round(&point.rounds, round)).collect() };
        let rounds: Vec<f64> = (0..count).filter_map(|round| Some(ends(&of_round(round))?.median)).collect();
        let verdict = sum.map_or(Verdict::NotJudged, |ends| claim.verdict(ends.median, &rounds));
        let judged = middles.iter().filter(|value| !value.is_nan()).count();
        let spread = rounds.iter().copied().fold(None, |ends: Option<(f64, f64)>, round| {
            Some(ends.map_or((round, round), |(low, high)| (low.min(round), high.max(round))))
        });
        let rounds = spread.filter(|(low, high)| rounds.len() > 1 && low < high);
        Self { ends: sum, rounds, judged, empty: middles.len() - judged, verdict }
    }

    /// As it is shown: `3.4 (2.9 to ∞, of 6); rounds 3.3 to 3.5`.
    pub fn text(&self) -> String {
        let Self { judged, empty, .. } = self;
        let without = if *empty > 0 { format!("{empty} without either") } else { String::new() };
        let text = match self.ends {
            None => without,
            Some(ends) if *judged == 1 && *empty == 0 => shown(ends.median),
            Some(ends) if *judged == 1 => format!("{} ({without})", shown(ends.median)),
            Some(Spread { low, median, high }) => {
                let without = if *empty > 0 { format!("; {without}") } else { without };
                format!("{} ({} to {}, of {judged}{without})", shown(median), shown(low), shown(high))
            }
        };
        match self.rounds.map(|(low, high)| (shown(low), shown(high))) {
            Some((low, high)) if low != high => format!("{text}; rounds {low} to {high}"),
            _ => text,
        }
    }
}

/// Least, middle and greatest of these ratios.
///
/// A ratio to 0 is infinite, 0 / 0 (NaN) says nothing and is left out. The middle is the geometric mean; where one of
/// them is 0 or infinite, which leaves no mean, it is their lower median: no claim of more rests on the infinite half
/// of its ratios.
fn ends(values: &[f64]) -> Option<Spread> {
    let mut judged: Vec<f64> = values.iter().copied().filter(|value| !value.is_nan()).collect();
    judged.sort_by(f64::total_cmp);
    let has_mean = judged.iter().all(|value| *value > 0.0 && value.is_finite());
    let (low, high) = (*judged.first()?, *judged.last()?);
    let median = if has_mean { geometric_mean(&judged) } else { judged[(judged.len() - 1) / 2] };
    Some(Spread { low, median, high })
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
    /// Names the sides that are compared, as `ram-t; isa widest` over `ss-gear; isa widest`.
    pub fn compared(&self) -> String {
        self.measured.text()
    }

    fn judge(&'static self, findings: &[Finding]) -> Judged {
        // Where the claim does not tell rows apart that it should, nothing is judged.
        let points = self.measured.points(findings).unwrap_or_default();
        let names = distinct(points.iter().map(|point| point.data));
        let on = |name: &str| {
            let own: Vec<&Point<'_>> = points.iter().filter(|point| point.data == name).collect();
            (name.to_owned(), Found::of(&own, self))
        };
        let ours = Found::of(&points.iter().collect::<Vec<_>>(), self);
        Judged { claim: self, ours, by_data: names.into_iter().map(on).collect() }
    }

    /// The verdict by the medians, if every round alone comes to it as well.
    fn verdict(&self, middle: f64, rounds: &[f64]) -> Verdict {
        let verdict = self.expected.verdict(middle);
        let is_decided = rounds.iter().all(|round| self.expected.verdict(*round) == verdict);
        let has_spread = rounds.len() > 1 || !self.measured.is_timed();
        if is_decided && has_spread { verdict } else { Verdict::NotDecided }
    }
}

impl Expected {
    fn verdict(self, middle: f64) -> Verdict {
        match self {
            Self::Factor(..) | Self::More if middle <= 1.0 => Verdict::Differs,
            Self::Factor(low, _) if middle < low / TOLERANCE => Verdict::Weaker,
            Self::Factor(_, high) if middle > high * TOLERANCE => Verdict::Stronger,
            Self::Within(low, high) if middle < low || middle > high => Verdict::Differs,
            Self::NotLess if middle < 1.0 => Verdict::Differs,
            Self::Factor(..) | Self::Within(..) | Self::More | Self::NotLess => Verdict::Agrees,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::measured::{Side, parameters};
    use super::*;
    use crate::experiment::{Head, row};
    use crate::statistics::rounded;

    fn finding(method: &str, size: u32, speed: f64) -> Finding {
        let parameters = row([("method", method.into()), ("expected_bytes", size.into())]);
        let values = vec![("gb_per_s".to_owned(), vec![speed, speed * 1.5, speed / 1.5])];
        Finding { experiment: "e".into(), data: "d".into(), parameters, values, wrong: None }
    }

    fn on(data: &str, finding: Finding) -> Finding {
        Finding { data: data.into(), ..finding }
    }

    static CLAIM: Claim = BASE;

    const BASE: Claim = Claim {
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
            let point = |value: &f64| Point { data: "d", middle: *value, rounds: vec![*value; 2] };
            let points: Vec<Point> = values.iter().map(point).collect();
            let found = Found::of(&points.iter().collect::<Vec<_>>(), &CLAIM);
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
        let verdicts = [0.9, 1.0, 1.2, 1.7, 3.7, 3.8].map(|mean| factor.verdict(mean));
        let expected =
            [Verdict::Differs, Verdict::Differs, Verdict::Weaker, Verdict::Agrees, Verdict::Agrees, Verdict::Stronger];
        assert_eq!(verdicts, expected);
        assert_eq!(Expected::Within(0.95, 1.05).verdict(0.9), Verdict::Differs);
        assert_eq!((Expected::More.verdict(1.01), Expected::More.verdict(1.0)), (Verdict::Agrees, Verdict::Differs));
    }

    #[test]
    fn equal_or_higher_means_it() {
        let verdicts = [0.99, 1.0, 1.01, 9.0].map(|mean| Expected::NotLess.verdict(mean));
        assert_eq!(verdicts, [Verdict::Differs, Verdict::Agrees, Verdict::Agrees, Verdict::Agrees]);
    }

    /// A finding with these speeds, round by round.
    fn rounds(method: &str, speeds: &[f64]) -> Finding {
        Finding { values: vec![("gb_per_s".to_owned(), speeds.to_vec())], ..finding(method, 4, 0.0) }
    }

    #[test]
    fn a_verdict_to_which_not_all_rounds_come_is_not_decided() {
        let slow = rounds("slow", &[1.0, 1.0, 1.0]);
        let verdict = |speeds: &[f64]| {
            let judged = CLAIM.judge(&[rounds("fast", speeds), slow.clone()]);
            (judged.verdict(), judged.ours.text())
        };
        assert_eq!(verdict(&[2.1, 2.5, 2.9]), (Verdict::Agrees, "2.50; rounds 2.10 to 2.90".into()));
        assert_eq!(verdict(&[0.9, 1.1, 1.3]), (Verdict::NotDecided, "1.10; rounds 0.90 to 1.30".into()));
        assert_eq!(verdict(&[1.1, 1.2, 1.3]).0, Verdict::Weaker);
        assert_eq!(verdict(&[0.7, 0.8, 0.9]).0, Verdict::Differs);
        assert_eq!(verdict(&[3.5, 3.9, 4.1]).0, Verdict::NotDecided);
    }

    #[test]
    fn rounds_are_compared_with_the_same_round_of_the_other_side() {
        // The machine became three times slower: the factor is 2.5 in each round.
        let found = [rounds("fast", &[7.5, 5.0, 2.5]), rounds("slow", &[3.0, 2.0, 1.0])];
        assert_eq!(CLAIM.judge(&found).verdict(), Verdict::Agrees);
        assert_eq!(CLAIM.judge(&found).ours.text(), "2.50");
    }

    #[test]
    fn a_time_taken_once_decides_nothing_and_a_count_does() {
        static COUNT: Claim = Claim { measured: ratio("e", "containers", "fast", "slow", ""), ..BASE };
        let once = [rounds("fast", &[2.5]), rounds("slow", &[1.0])];
        assert_eq!(CLAIM.judge(&once).verdict(), Verdict::NotDecided);
        let counted = once
            .map(|finding| Finding { values: vec![("containers".to_owned(), finding.values[0].1.clone())], ..finding });
        assert_eq!(COUNT.judge(&counted).verdict(), Verdict::Agrees);
    }

    #[test]
    fn rows_that_a_claim_does_not_tell_apart_leave_it_without_a_verdict() {
        static PINNED: Claim =
            Claim { measured: ratio("e", "gb_per_s", "fast; isa widest", "slow", "expected_bytes"), ..BASE };
        let form = |isa: &str, speed| {
            let mut finding = finding("fast", 4, speed);
            finding.parameters.insert("isa".into(), isa.into());
            finding
        };
        let found = [form("scalar", 2.5), form("avx2", 5.0), finding("slow", 4, 1.0)];
        let judged = CLAIM.judge(&found);
        assert_eq!((judged.verdict(), judged.ours.ends), (Verdict::NotJudged, None));
        let judged = PINNED.judge(&found);
        assert_eq!(rounded(judged.ours.ends.unwrap().median, 6).to_bits(), 5.0_f64.to_bits());
        // Without vectors there is nothing to compare.
        assert_eq!(PINNED.judge(&[form("scalar", 2.5), finding("slow", 4, 1.0)]).verdict(), Verdict::NotJudged);
    }

    #[test]
    fn the_best_of_several_is_taken_where_the_paper_names_them() {
        static BEST: Claim = Claim {
            measured: Measured::Ratio {
                experiment: "e",
                measure: "gb_per_s",
                of: Side::Greatest(&["fast", "faster"]),
                to: Side::Least(&["slow", "slower"]),
                alike: "expected_bytes",
            },
            ..BASE
        };
        let found =
            [finding("fast", 4, 2.0), finding("faster", 4, 3.0), finding("slow", 4, 2.0), finding("slower", 4, 1.5)];
        assert_eq!(rounded(BEST.judge(&found).ours.ends.unwrap().median, 6).to_bits(), 2.0_f64.to_bits());
        assert_eq!(BEST.compared(), "the most of `fast` or `faster` / the least of `slow` or `slower`");
    }

    #[test]
    fn every_claim_names_columns_of_an_experiment_that_there_is() {
        let heads: Vec<_> = crate::experiments().iter().map(|experiment| experiment.head()).collect();
        for claim in all() {
            let (experiment, measure, rows, alike) = match &claim.measured {
                Measured::Ratio { experiment, measure, of, to, alike } => {
                    (experiment, measure, [of.rows(), to.rows()].concat(), *alike)
                }
                Measured::Value { experiment, measure, of } => (experiment, measure, vec![*of], ""),
            };
            let head = heads.iter().find(|head| head.name == *experiment);
            let columns: Vec<&str> = head.into_iter().flat_map(Head::columns).collect();
            let names = rows.iter().copied().flat_map(parameters).map(|(name, _)| name);
            for name in names.chain(alike.split_whitespace()).chain([*measure]) {
                assert!(columns.contains(&name), "{}, {}: {name} of {experiment}", claim.paper, claim.place);
            }
            // Speeds depend on the instruction set: both sides name theirs.
            let has_isa = |rows: &'static str| parameters(rows).any(|(name, _)| name == "isa");
            let needs_isa = columns.contains(&"isa") && claim.measured.is_timed();
            assert!(!needs_isa || rows.iter().all(|rows| has_isa(rows)), "{}, {}", claim.paper, claim.says);
            assert!(!matches!(claim.expected, Expected::Factor(low, _) if low <= 1.0), "{}", claim.says);
        }
    }
}

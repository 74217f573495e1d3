//! The numbers of a claim: which rows it compares, and what each round found.
//!
//! Each side of a ratio is one row: its method, its instruction set, its parameters. Where a paper itself compares the
//! best or the slowest of several algorithms, the side names them all. Of what is named no further choice is made: rows
//! that are not told apart by a claim leave it without a verdict.

use crate::experiment::Finding;

/// Rows with these parameters, as `MeGA; version last`: a word alone is a method. Of versions `last` is the last there
/// is. Of instruction sets `widest` is the machine's widest vectors, `128-bit` those of 128 bits.
pub(super) type Rows = &'static str;

/// Names of parameters, separated by blanks.
pub(super) type Names = &'static str;

/// Measure of a claim.
#[derive(Clone, Copy, Debug)]
pub(super) enum Measured {
    /// A measure of one side by that of the other, where the parameters `alike` are equal.
    Ratio { experiment: &'static str, measure: &'static str, of: Side, to: Side, alike: Names },
    /// A measure of a row.
    Value { experiment: &'static str, measure: &'static str, of: Rows },
}

/// One side of a ratio.
#[derive(Clone, Copy, Debug)]
pub(super) enum Side {
    /// One row.
    Row(Rows),
    /// The greatest of these rows: the paper compares the best of several algorithms.
    Greatest(&'static [Rows]),
    /// The least of these rows.
    Least(&'static [Rows]),
}

/// A measure of the row `of` by that of the row `to`, where the parameters `alike` are equal.
pub(super) const fn ratio(
    experiment: &'static str,
    measure: &'static str,
    of: Rows,
    to: Rows,
    alike: Names,
) -> Measured {
    Measured::Ratio { experiment, measure, of: Side::Row(of), to: Side::Row(to), alike }
}

/// A measure of the row `of` by that of the row `to`, at each expected size of chunks.
pub(super) const fn by_size(experiment: &'static str, measure: &'static str, of: Rows, to: Rows) -> Measured {
    ratio(experiment, measure, of, to, "expected_bytes")
}

/// A measure of the row `of`.
pub(super) const fn value(experiment: &'static str, measure: &'static str, of: Rows) -> Measured {
    Measured::Value { experiment, measure, of }
}

/// A ratio or a value at one point: one data set, one set of parameters.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct Point<'f> {
    /// Name of the data.
    pub(super) data: &'f str,
    /// From the medians; NaN for 0 / 0.
    pub(super) middle: f64,
    /// Round by round.
    pub(super) rounds: Vec<f64>,
}

/// Several rows fit one side of a claim at one point.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct NotPinned;

impl Side {
    pub(super) fn rows(&self) -> &[Rows] {
        match self {
            Self::Row(rows) => std::slice::from_ref(rows),
            Self::Greatest(rows) | Self::Least(rows) => rows,
        }
    }

    fn choice(self) -> fn(f64, f64) -> f64 {
        match self {
            Self::Row(_) | Self::Greatest(_) => f64::max,
            Self::Least(_) => f64::min,
        }
    }

    fn text(self) -> String {
        let rows = self.rows().join("` or `");
        match self {
            Self::Row(_) => format!("`{rows}`"),
            Self::Greatest(_) => format!("the most of `{rows}`"),
            Self::Least(_) => format!("the least of `{rows}`"),
        }
    }
}

impl Measured {
    /// Names the sides that are compared, in words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Ratio { of, to, .. } => format!("{} / {}", of.text(), to.text()),
            Self::Value { of, .. } => format!("`{of}`"),
        }
    }

    /// Tells whether it is of times, which differ from round to round. Those of a device that is a model follow from
    /// counts.
    pub(super) fn is_timed(&self) -> bool {
        let (Self::Ratio { measure, .. } | Self::Value { measure, .. }) = self;
        if measure.contains("_disk_") {
            return false;
        }
        ["_per_s", "seconds", "chunking_percent"].iter().any(|end| measure.ends_with(end))
    }

    /// Every ratio or value there is, in the order of the findings, which is that of the data.
    ///
    /// # Errors
    /// If several rows fit one side at one point.
    pub(super) fn points(self, findings: &[Finding]) -> Result<Vec<Point<'_>>, NotPinned> {
        match self {
            Self::Value { experiment, measure, of } => {
                let rows = Column { findings, experiment, measure }.side(Side::Row(of), |_| Vec::new())?;
                Ok(rows.into_iter().map(|row| row.point).collect())
            }
            Self::Ratio { experiment, measure, of, to, alike } => {
                let column = Column { findings, experiment, measure };
                let at = |finding: &Finding| alike.split_whitespace().map(|name| finding.parameter(name)).collect();
                let (of, to) = (column.side(of, at)?, column.side(to, at)?);
                let beside = |row: &Row<'_>| to.iter().find(|other| other.is_at(row)).map(|other| other.point.clone());
                Ok(of.into_iter().filter_map(|row| Some(over(&row.point, &beside(&row)?))).collect())
            }
        }
    }
}

/// One point by another, round by round: a round of one is timed right after the same round of the other. What was
/// found once counts for all rounds.
fn over<'f>(of: &Point<'f>, to: &Point<'f>) -> Point<'f> {
    let rounds = of.rounds.len().max(to.rounds.len());
    let by_round = |round| Some(at_round(&of.rounds, round)? / at_round(&to.rounds, round)?);
    let rounds = (0..rounds).filter_map(by_round).collect();
    Point { data: of.data, middle: of.middle / to.middle, rounds }
}

/// Value of a round; one that was found once was found in all.
pub(super) fn at_round(rounds: &[f64], round: usize) -> Option<f64> {
    if let [only] = rounds { Some(*only) } else { rounds.get(round).copied() }
}

/// A measure of an experiment.
#[derive(Clone, Copy)]
struct Column<'f> {
    findings: &'f [Finding],
    experiment: &'static str,
    measure: &'static str,
}

/// Values of one side of a ratio at one point.
struct Row<'f> {
    at: Vec<String>,
    point: Point<'f>,
}

impl Row<'_> {
    fn is_at(&self, other: &Row<'_>) -> bool {
        self.point.data == other.point.data && self.at == other.at
    }
}

impl<'f> Column<'f> {
    fn own(self) -> impl Iterator<Item = &'f Finding> + Clone {
        self.findings.iter().filter(move |finding| finding.experiment == self.experiment)
    }

    /// The rows of a side; `at` says which parameters must be equal on both sides.
    fn side(self, side: Side, at: impl Fn(&Finding) -> Vec<String>) -> Result<Vec<Row<'f>>, NotPinned> {
        let mut chosen: Vec<Row<'f>> = Vec::new();
        for rows in side.rows() {
            for row in self.rows(rows, &at)? {
                match chosen.iter_mut().find(|other| other.is_at(&row)) {
                    Some(other) => other.point = further(&other.point, &row.point, side.choice()),
                    None => chosen.push(row),
                }
            }
        }
        Ok(chosen)
    }

    /// The one row at each point.
    fn rows(self, rows: Rows, at: impl Fn(&Finding) -> Vec<String>) -> Result<Vec<Row<'f>>, NotPinned> {
        let mut found: Vec<Row<'f>> = Vec::new();
        for finding in self.own().filter(|finding| self.is_of(finding, rows)) {
            let Some((_, rounds)) = finding.values.iter().find(|(name, _)| name == self.measure) else { continue };
            let Some(middle) = finding.median(self.measure).filter(|middle| middle.is_finite()) else { continue };
            let point = Point { data: finding.data.as_str(), middle, rounds: rounds.clone() };
            let row = Row { at: at(finding), point };
            if found.iter().any(|other| other.is_at(&row)) {
                return Err(NotPinned);
            }
            found.push(row);
        }
        Ok(found)
    }

    fn is_of(self, finding: &Finding, rows: Rows) -> bool {
        parameters(rows).all(|parameter| match parameter {
            ("version", "last") => version(finding) == self.last_version(&finding.data),
            ("isa", "widest") => width(finding) > VECTORS_FROM && Some(width(finding)) == self.widest(&finding.data),
            ("isa", "128-bit") => ["ssse3", "sse4.2", "neon"].contains(&finding.parameter("isa").as_str()),
            (name, value) => finding.parameter(name) == value,
        })
    }

    fn last_version(self, data: &str) -> Option<u64> {
        self.own().filter(|finding| finding.data == data).filter_map(version).max()
    }

    fn widest(self, data: &str) -> Option<usize> {
        self.own().filter(|finding| finding.data == data).map(width).max()
    }
}

/// Takes one of two, round by round, as `choice` says.
fn further<'f>(one: &Point<'f>, other: &Point<'f>, choice: fn(f64, f64) -> f64) -> Point<'f> {
    let rounds = one.rounds.iter().zip(&other.rounds).map(|(one, other)| choice(*one, *other)).collect();
    Point { data: one.data, middle: choice(one.middle, other.middle), rounds }
}

/// Names and values of `rows`.
pub(super) fn parameters(rows: Rows) -> impl Iterator<Item = (&'static str, &'static str)> {
    let parts = rows.split("; ").filter(|part| !part.is_empty());
    parts.map(|part| part.split_once(' ').unwrap_or(("method", part)))
}

fn version(finding: &Finding) -> Option<u64> {
    finding.parameter("version").parse().ok()
}

/// Instruction sets by the width of their vectors, as findings name them.
const WIDTHS: [&str; 10] =
    ["scalar", "portable", "sse2", "ssse3", "sse4.2", "neon", "avx2", "avx2-gfni", "avx512", "avx512-gfni"];
/// Those after this one have vectors of their own.
const VECTORS_FROM: usize = 1;

/// The place of its instruction set among [`WIDTHS`]; that of none, for another word.
fn width(finding: &Finding) -> usize {
    let isa = finding.parameter("isa");
    WIDTHS.iter().position(|name| *name == isa).unwrap_or(0)
}

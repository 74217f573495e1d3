//! Which chunk is encoded against which, and when: fit, filter, depth of chains and number of snapshots looked back,
//! each against the papers' configuration. What a chunk costs each way is measured once; a policy only chooses.

use super::Findings;
use super::costs::Costs;
use anyhow::Result;
use serde_json::{Value, json};
use siltstone_lab::sketch::parallel::in_parallel;
use siltstone_lab::sketch::versions::{Known, Order, Versions};
use siltstone_similar::benefit::Benefit;
use siltstone_similar::index::{Fit, Index};
use siltstone_similar::sketch::{Grouping, Shape, Sketch};
use siltstone_testbed::bench::publish::{Row, rows_of, shown, table_of};
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::{Spread, geometric_mean, rounded};
use siltstone_testbed::table::{Table, as_float};
use std::fmt::Write as _;

/// Average sizes of chunks, bytes.
const AVERAGES: [u32; 2] = [8 << 10, 16 << 10];

/// Rules by which bases are chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Policy {
    pub(super) fit: Fit,
    /// A delta is kept below this; none keeps all.
    pub(super) line: Option<Benefit>,
    /// True if a base is left alone that its features do not let expect to pay.
    pub(super) foresees: bool,
    /// The longest chain of deltas; none bounds it not.
    pub(super) depth: Option<u32>,
    /// Snapshots whose chunks may be bases.
    pub(super) snapshots: u32,
}

impl Policy {
    /// Three super-features, the first that fits, bases whole, nothing filtered, all versions (Finesse, section 5;
    /// Odess, section 4.3).
    pub(super) const PAPERS: Self = Self {
        fit: Fit::First(Grouping::Consecutive),
        line: None,
        foresees: false,
        depth: Some(1),
        snapshots: u32::MAX,
    };

    /// Finds the most; what it finds tells what to expect of how many features in common.
    const ALL_PAIRS: Self = Self { fit: Fit::Best, line: None, foresees: false, depth: None, snapshots: 1 };

    /// Every combination that the table shows.
    fn all() -> Vec<Self> {
        let lines = [None, Some(1000), Some(700), Some(500), Some(350), Some(200)];
        let lines = lines.map(|line| line.map(Benefit::below_per_mille));
        let mut all = Vec::new();
        for fit in [Fit::First(Grouping::Consecutive), Fit::Best] {
            for depth in [Some(1), Some(2), Some(4), None] {
                for line in lines {
                    for snapshots in [1, 2, 4, u32::MAX] {
                        all.push(Self { fit, line, foresees: false, depth, snapshots });
                    }
                }
            }
        }
        let foreseeing: Vec<Self> = all
            .iter()
            .filter(|policy| policy.fit == Fit::Best && policy.line.is_some() && policy.snapshots == 1)
            .map(|policy| Self { foresees: true, ..*policy })
            .collect();
        all.extend(foreseeing);
        all
    }
}

/// Bytes and counts that a policy comes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Outcome {
    /// All that is stored.
    pub(super) bytes: u64,
    /// Chunks stored as deltas.
    pub(super) deltas: u64,
    /// Bases read for it, accepted or not.
    pub(super) bases_read: u64,
    /// The longest chain.
    pub(super) deepest: u32,
}

/// A base that was found for a new chunk, and read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Found {
    /// Features in common, or super-features.
    matches: usize,
    /// Cost of the delta as a share of the chunk's cost whole.
    share: f64,
}

/// Base and depth of each stored chunk.
struct Stored {
    base: Vec<Option<usize>>,
    depth: Vec<u32>,
}

/// Stores all versions by this policy.
pub(super) fn follow(
    versions: &Versions,
    costs: &Costs,
    sketches: &[Option<Sketch>],
    policy: Policy,
) -> Result<(Outcome, Vec<Found>)> {
    let count = versions.chunks.len();
    let keys = match policy.fit {
        Fit::First(_) => Shape::DEFAULT.super_features(),
        Fit::Best => Shape::DEFAULT.features(),
    };
    let mut index = Index::new(policy.fit, count, keys, policy.snapshots);
    let mut stored = Stored { base: vec![None; count], depth: vec![0; count] };
    let (mut outcome, mut found) = (Outcome::default(), Vec::new());
    for (recipe, new) in versions.recipes.iter().zip(&versions.new) {
        index.next_snapshot();
        for number in recipe.iter().filter(|number| !new.contains(number)) {
            stored.keep(*number, &mut index);
        }
        for number in new.clone() {
            let base = choose(number, costs, sketches, policy, &index, &mut found)?;
            outcome.bytes += match base {
                Some((base, cost)) => {
                    stored.base[number] = Some(base);
                    stored.depth[number] = stored.depth[base] + 1;
                    outcome.deltas += 1;
                    outcome.deepest = outcome.deepest.max(stored.depth[number]);
                    stored.keep(base, &mut index);
                    cost
                }
                None => costs.plain(number),
            };
            let may_be_base = policy.depth.is_none_or(|depth| stored.depth[number] < depth);
            if let (Some(sketch), true) = (&sketches[number], may_be_base) {
                index.insert(number as u64, sketch);
            }
        }
    }
    outcome.bases_read = found.len() as u64;
    Ok((outcome, found))
}

/// The base of a new chunk and what the delta costs, if one pays.
fn choose(
    number: usize,
    costs: &Costs,
    sketches: &[Option<Sketch>],
    policy: Policy,
    index: &Index,
    found: &mut Vec<Found>,
) -> Result<Option<(usize, u64)>> {
    let Some(candidate) = sketches[number].as_ref().and_then(|sketch| index.find(sketch)) else { return Ok(None) };
    let expects = |line: Benefit| line.expects(candidate.matches, Shape::DEFAULT.features());
    if policy.foresees && !policy.line.is_none_or(expects) {
        return Ok(None);
    }
    let base = usize::try_from(candidate.number)?;
    let cost = costs.delta(base, number)?;
    let share = as_float(cost) / as_float(costs.plain(number).max(1));
    found.push(Found { matches: candidate.matches, share });
    let accepted = policy.line.is_none_or(|line| line.accepts(cost, costs.plain(number)));
    Ok(accepted.then_some((base, cost)))
}

impl Stored {
    /// A chunk is needed with all it hangs on.
    fn keep(&self, number: usize, index: &mut Index) {
        let mut needed = Some(number);
        while let Some(number) = needed {
            index.keep(number as u64);
            needed = self.base[number];
        }
    }
}

/// All policies on all data.
pub(super) fn measure(sources: impl Iterator<Item = Result<Data>>) -> Result<Findings> {
    let mut findings = Findings::default();
    let policies = Policy::all();
    for data in sources {
        let data = data?;
        for average in AVERAGES {
            eprintln!("{}: {} policies at {} KiB", data.name, policies.len(), average >> 10);
            let versions = Versions::of(&data, average, Order::OldestFirst, Known::VersionBefore)?;
            let (costs, sketches) = (Costs::of(&versions)?, versions.sketches());
            let outcomes = in_parallel(policies.len(), |at| follow(&versions, &costs, &sketches, policies[at]));
            let outcomes: Vec<(Outcome, Vec<Found>)> = outcomes.into_iter().collect::<Result<_>>()?;
            let papers = policies.iter().position(|policy| *policy == Policy::PAPERS).map(|at| outcomes[at].0.bytes);
            for (policy, (outcome, found)) in policies.iter().zip(&outcomes) {
                findings.rows.push(row(&data.name, average, &versions, &costs, *policy, *outcome, papers.unwrap_or(1)));
                if *policy == Policy::ALL_PAIRS {
                    findings.rows.extend(expectations(&data.name, average, found));
                }
            }
        }
        findings.notes.push(format!("policy, {}: {}", data.name, data.description));
    }
    findings.tables = tables(&findings.rows);
    Ok(findings)
}

fn row(
    data: &str,
    average: u32,
    versions: &Versions,
    costs: &Costs,
    policy: Policy,
    outcome: Outcome,
    papers: u64,
) -> Row {
    let mut row = Row::new();
    let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
    set("table", json!("policy"));
    set("data", json!(data));
    set("chunk_bytes", json!(average));
    set("fit", json!(if policy.fit == Fit::Best { "best" } else { "first" }));
    set("filter", json!(policy.line.map_or("none".to_owned(), |line| format!("{:.2}", line.share()))));
    set("foresees", json!(policy.foresees));
    set("depth", json!(policy.depth.map_or("unbounded".to_owned(), |depth| depth.to_string())));
    let snapshots = if policy.snapshots == u32::MAX { "all".to_owned() } else { policy.snapshots.to_string() };
    set("snapshots", json!(snapshots));
    set("unique_bytes", json!(versions.unique_bytes()));
    set("plain_bytes", json!(costs.plain_total()));
    set("bytes", json!(outcome.bytes));
    set("ratio_to_papers", json!(rounded(as_float(outcome.bytes) / as_float(papers), 4)));
    set("deltas", json!(outcome.deltas));
    set("bases_read", json!(outcome.bases_read));
    set("deepest", json!(outcome.deepest));
    row
}

/// Returns the cost of deltas by the number of features in common.
fn expectations(data: &str, average: u32, found: &[Found]) -> Vec<Row> {
    let of = |matches: usize| {
        let shares: Vec<f64> = found.iter().filter(|found| found.matches == matches).map(|found| found.share).collect();
        let count = shares.len();
        let mean = shares.iter().sum::<f64>() / as_float(count as u64);
        (count > 0).then(|| {
            let median = Spread::of(shares).median;
            let mut row = Row::new();
            let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
            set("table", json!("expectation"));
            set("data", json!(data));
            set("chunk_bytes", json!(average));
            set("matches", json!(matches));
            set("pairs", json!(count));
            set("cost_median", json!(rounded(median, 3)));
            set("cost_mean", json!(rounded(mean, 3)));
            row
        })
    };
    (1..=Shape::DEFAULT.features()).filter_map(of).collect()
}

/// Columns that name a policy.
const POLICY: [&str; 5] = ["fit", "filter", "foresees", "depth", "snapshots"];

fn tables(rows: &[Row]) -> String {
    let (policies, expected) = (rows_of(rows, "policy"), rows_of(rows, "expectation"));
    let is_papers =
        |row: &&Row| row["ratio_to_papers"] == json!(1.0) && row["filter"] == "none" && row["snapshots"] == "all";
    let papers: Vec<Row> = policies.iter().filter(is_papers).cloned().collect();
    let columns = "data chunk_bytes fit depth unique_bytes plain_bytes bytes deltas";
    let mut text = String::new();
    let _ = write!(text, "\n### Policy: stored bytes against the papers' configuration\n\n{}", ranking(&policies));
    let _ = write!(text, "\n### Policy: the papers' configuration\n\n{}", table_of(columns, &papers));
    let columns = "data chunk_bytes matches pairs cost_median cost_mean";
    let _ = write!(text, "\n### Policy: what a delta costs by features in common\n\n{}", table_of(columns, &expected));
    text
}

/// Every policy on all data, the smallest mean first.
fn ranking(rows: &[Row]) -> Table {
    let field = |row: &Row| (row["data"].clone(), row["chunk_bytes"].clone());
    let mut fields: Vec<(Value, Value)> = rows.iter().map(field).collect();
    fields.dedup();
    let of = |row: &Row| POLICY.map(|column| row[column].clone());
    let mut lines: Vec<(f64, Vec<String>)> = Vec::new();
    for policy in rows.iter().filter(|row| fields.first() == Some(&field(row))).map(of) {
        let same = |row: &&Row| of(row) == policy;
        let ratios: Vec<f64> = rows.iter().filter(same).filter_map(|row| row["ratio_to_papers"].as_f64()).collect();
        let (mean, worst) = (geometric_mean(&ratios), ratios.iter().copied().fold(0.0, f64::max));
        let named = policy.iter().map(|value| shown(Some(value)));
        let numbers = [mean, worst].into_iter().chain(ratios).map(|ratio| format!("{ratio:.3}"));
        lines.push((mean, named.chain(numbers).collect()));
    }
    lines.sort_by(|one, other| one.0.total_cmp(&other.0));
    let heading = |(data, average): &(Value, Value)| format!("{}, {}", shown(Some(data)), shown(Some(average)));
    let columns = POLICY.iter().map(|&column| column.to_owned()).chain(["mean".into(), "worst".into()]);
    let mut table = Table::new(columns.chain(fields.iter().map(heading)));
    for (_, line) in lines {
        table.row(line);
    }
    table
}

//! Bytes that whole histories come to: deduplicated and compressed; the papers' way; the best delta per chunk; region
//! deltas. Each with chains forward in time of bounded depth and unbounded, and backward with the newest version whole;
//! beside zstd's own chain of versions and zstd's best over everything. Payloads only: no metadata.

use super::Findings;
use super::chain::{self, Chain, Laid};
use super::costs::{Costs, LEVEL};
use super::peers::Peers;
use super::policy::{self, Policy};
use anyhow::Result;
use serde_json::{Value, json};
use siltstone_lab::sketch::parallel::in_parallel;
use siltstone_lab::sketch::versions::{Known, Order, Versions};
use siltstone_similar::benefit::Benefit;
use siltstone_similar::index::Fit;
use siltstone_similar::region::Level;
use siltstone_similar::sketch::Sketch;
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::data::Data;
use siltstone_testbed::statistics::rounded;
use siltstone_testbed::table::{Table, as_float};
use std::fmt::Write as _;
use std::path::Path;

/// Average sizes of chunks, bytes.
const AVERAGES: [u32; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];
/// Sizes of regions, bytes.
const REGIONS: [usize; 5] = [64 << 10, 128 << 10, 256 << 10, 512 << 10, 1 << 20];
/// Where only one of them varies, the other is this.
const AVERAGE: u32 = 16 << 10;
const REGION: usize = 256 << 10;

/// Which way deltas point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    /// New against old, chains at most so long.
    Forward(Option<u32>),
    /// Old against new, the newest whole.
    Reverse,
}

impl Direction {
    const ALL: [Self; 7] = [
        Self::Forward(Some(1)),
        Self::Forward(Some(2)),
        Self::Forward(Some(4)),
        Self::Forward(Some(8)),
        Self::Forward(Some(16)),
        Self::Forward(None),
        Self::Reverse,
    ];

    fn depth(self) -> Option<u32> {
        match self {
            Self::Forward(depth) => depth,
            Self::Reverse => None,
        }
    }

    fn name(self) -> String {
        match self {
            Self::Forward(Some(depth)) => format!("depth {depth}"),
            Self::Forward(None) => "unbounded".into(),
            Self::Reverse => "reverse".into(),
        }
    }
}

/// Way in which new chunks are stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    Plain,
    Papers,
    PerChunk,
    /// Regions of this many bytes.
    Regions(usize, Level),
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Self::Plain => "dedup + zstd",
            Self::Papers => "papers (3 SF, FirstFit)",
            Self::PerChunk => "per chunk (BestFit, filter)",
            Self::Regions(_, Level::Fast) => "regions, own search",
            Self::Regions(..) => "regions, zstd 3",
        }
    }
}

/// One order of the versions at one average, with all that is measured only once.
struct Ordered<'v, 'd> {
    versions: &'v Versions<'d>,
    costs: Costs<'v, 'd>,
    sketches: Vec<Option<Sketch>>,
}

impl<'v, 'd> Ordered<'v, 'd> {
    fn of(versions: &'v Versions<'d>) -> Result<Self> {
        Ok(Self { versions, costs: Costs::of(versions)?, sketches: versions.sketches() })
    }

    fn store(&self, way: Way, direction: Direction) -> Result<Laid> {
        let depth = direction.depth();
        let follow = |policy| {
            let (outcome, _) = policy::follow(self.versions, &self.costs, &self.sketches, policy)?;
            Ok(Laid { bytes: outcome.bytes, deepest: outcome.deepest, ..Laid::default() })
        };
        match way {
            Way::Plain => Ok(Laid { bytes: self.costs.plain_total(), ..Laid::default() }),
            Way::Papers => follow(Policy { depth, ..Policy::PAPERS }),
            Way::PerChunk => {
                let line = Some(Benefit::DEFAULT);
                follow(Policy { fit: Fit::Best, line, foresees: false, depth, snapshots: 1 })
            }
            Way::Regions(region_bytes, level) => {
                chain::lay(self.versions, &self.costs, &self.sketches, Chain { depth, region_bytes, level })
            }
        }
    }
}

/// Returns the layouts to store at one average.
fn plans(average: u32, is_quick: bool) -> Vec<(Way, Direction)> {
    let sizes = if average == AVERAGE && !is_quick { REGIONS.to_vec() } else { vec![REGION] };
    let regions = sizes.into_iter().map(|bytes| Way::Regions(bytes, Level::Fast));
    let by_zstd = (average == AVERAGE).then_some(Way::Regions(REGION, Level::Zstd(LEVEL)));
    let ways = [Way::Papers, Way::PerChunk].into_iter().chain(by_zstd).chain(regions);
    let every = ways.flat_map(|way| Direction::ALL.map(|direction| (way, direction)));
    [(Way::Plain, Direction::Forward(None))].into_iter().chain(every).collect()
}

/// All ways on all data.
pub(super) fn measure(sources: impl Iterator<Item = Result<Data>>, is_quick: bool, work: &Path) -> Result<Findings> {
    let mut findings = Findings::default();
    let averages = if is_quick { vec![AVERAGE] } else { AVERAGES.to_vec() };
    for data in sources {
        let data = data?;
        let mut peers = Peers::begin(&data, is_quick, work)?;
        let mut rows = Vec::new();
        for average in &averages {
            eprintln!("{}: layouts at {} KiB", data.name, average >> 10);
            rows.extend(at_average(&data, *average, is_quick, peers.chain_bytes)?);
        }
        peers.finish()?;
        let _ = write!(findings.tables, "\n### Layouts, {}\n\n{}\n{}", data.name, peers.line(), table(&rows));
        findings.rows.extend(peers.rows(&data.name));
        findings.rows.extend(rows);
        findings.notes.push(format!("layouts, {}: {}", data.name, data.description));
    }
    findings.notes.push(
        "layouts: payloads without metadata, zstd level 3 where nothing else is said, MB and times the chain of zstd; papers: bases from all versions, \
         others: from the last; reverse: the versions fed newest first, chains unbounded; every region decoded and compared"
            .into(),
    );
    Ok(findings)
}

fn at_average(data: &Data, average: u32, is_quick: bool, chain_bytes: u64) -> Result<Vec<Row>> {
    let (oldest_first, newest_first) = (
        Versions::of(data, average, Order::OldestFirst, Known::VersionBefore)?,
        Versions::of(data, average, Order::NewestFirst, Known::VersionBefore)?,
    );
    let (forward, reverse) = (Ordered::of(&oldest_first)?, Ordered::of(&newest_first)?);
    let plans = plans(average, is_quick);
    let laid = in_parallel(plans.len(), |at| {
        let (way, direction) = plans[at];
        let ordered = if direction == Direction::Reverse { &reverse } else { &forward };
        Ok((ordered.versions.unique_bytes(), ordered.store(way, direction)?))
    });
    let row = |((way, direction), laid): (&(Way, Direction), Result<(u64, Laid)>)| {
        let (unique_bytes, laid) = laid?;
        let mut row = Row::new();
        let mut set = |key: &str, value: Value| row.insert(key.to_owned(), value);
        set("table", json!("layouts"));
        set("data", json!(data.name));
        set("way", json!(way.name()));
        set("chunk_bytes", json!(average));
        set("region_bytes", if let Way::Regions(bytes, _) = way { json!(bytes) } else { Value::Null });
        set("direction", json!(if *way == Way::Plain { "none".into() } else { direction.name() }));
        set("logical_bytes", json!(data.bytes.len()));
        set("unique_bytes", json!(unique_bytes));
        set("bytes", json!(laid.bytes));
        set("ratio_to_chain", json!(rounded(as_float(laid.bytes) / as_float(chain_bytes), 3)));
        set("deepest", json!(laid.deepest));
        set("base_bytes", json!(laid.base_bytes));
        Ok(row)
    };
    plans.iter().zip(laid).map(row).collect()
}

/// A line for each way at each size, a column for each direction: MB, and times zstd's chain.
fn table(rows: &[Row]) -> Table {
    let text = |row: &Row, column: &str| row[column].as_str().unwrap_or_default().to_owned();
    let number = |row: &Row, column: &str| row[column].as_u64().unwrap_or(0);
    let directions = Direction::ALL.map(Direction::name);
    let columns = ["way", "chunk KiB", "region KiB", "unique MB"].map(str::to_owned);
    let mut table = Table::new(columns.into_iter().chain(directions.iter().cloned()));
    let same = |one: &Row, other: &Row| {
        ["way", "chunk_bytes", "region_bytes"].iter().all(|column| one[*column] == other[*column])
    };
    for line in rows.chunk_by(same) {
        let first = &line[0];
        let mb = |bytes: u64| format!("{:.1}", as_float(bytes) / 1e6);
        let mut cells = vec![text(first, "way"), (number(first, "chunk_bytes") >> 10).to_string()];
        cells.push(first["region_bytes"].as_u64().map_or(String::new(), |bytes| (bytes >> 10).to_string()));
        cells.push(mb(number(first, "unique_bytes")));
        cells.extend(directions.iter().map(|direction| {
            let row = line.iter().find(|row| text(row, "direction") == *direction || text(row, "direction") == "none");
            row.map_or(String::new(), |row| format!("{} ({})", mb(number(row, "bytes")), row["ratio_to_chain"]))
        }));
        table.row(cells);
    }
    table
}

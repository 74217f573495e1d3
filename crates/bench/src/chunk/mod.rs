//! Every chunker, measured twice:
//!
//! 1. *Speed*: each form of each algorithm at the same expected size, in GB/s and as a share of what only reading the
//!    memory gives, beside the crates `fastcdc` and `gearhash` and beside hashes of chunks ([`speed`]).
//! 2. *Savings*: what deduplication removes from real data, all algorithms at equal real averages ([`savings`],
//!    [`ranking`]).
//!
//! | file | holds |
//! |---|---|
//! | `speed.rs`, `savings.rs`, `ranking.rs` | the two tables; what is measured is in `siltstone_lab::chunk` |

mod ranking;
mod savings;
mod speed;

use anyhow::{Result, bail};
use ranking::Ranking;
use siltstone_lab::chunk::method::Method;
use siltstone_testbed::bench::options::ChunkOptions;
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::data::Source;
use siltstone_testbed::workspace;
use std::fs;
use std::path::Path;

/// Runs the benchmark and prints its tables.
pub(crate) fn run(options: &ChunkOptions) -> Result<()> {
    let methods = Method::chosen(&options.only)?;
    // All data is made or fetched before anything is measured.
    let for_speed = if options.savings { Vec::new() } else { options.memory.sources(Source::for_speed)? };
    let for_savings = if options.speed { Vec::new() } else { options.memory.sources(Source::for_savings)? };
    let mut results = Results::default();
    if !options.savings {
        results.speeds(&for_speed, &methods, options.memory.rounds())?;
    }
    if !options.speed {
        results.savings(&for_savings, &methods)?;
    }
    let variant = match (options.speed, options.savings) {
        (true, _) => "chunk-speed",
        (_, true) => "chunk-savings",
        _ => "chunk",
    };
    let notes = results.notes(options);
    options.memory.output.publish(variant, &results.tables, &results.rows, &notes, &workspace::target()?)?;
    if !results.wrong.is_empty() {
        bail!("these rows found something else than they should: {}", results.wrong.join("; "));
    }
    Ok(())
}

/// All that is printed and kept.
#[derive(Default)]
struct Results {
    tables: String,
    rows: Vec<Row>,
    /// Descriptions of the data, a line each.
    data: Vec<String>,
    /// Rows whose results were not what they should be.
    wrong: Vec<String>,
}

impl Results {
    fn speeds(&mut self, sources: &[Source], methods: &[Method], rounds: u64) -> Result<()> {
        let mut rows = Vec::new();
        for source in sources {
            let data = source.load()?;
            let (measured, wrong) = speed::measure(&data, methods, rounds)?;
            rows.extend(measured);
            self.wrong.extend(wrong);
            self.data.push(format!("speed, {}: {}", data.name, data.description));
        }
        self.tables += &speed::tables(&rows);
        self.rows.extend(rows);
        Ok(())
    }

    fn savings(&mut self, sources: &[Source], methods: &[Method]) -> Result<()> {
        let mut ranking = Ranking::default();
        for source in sources {
            let data = source.load()?;
            ranking.add(&data.name, &savings::measure(&data, methods)?);
            self.data.push(format!("savings, {}: {}", data.name, data.description));
        }
        self.tables += &ranking.tables();
        self.rows.extend(ranking.rows());
        Ok(())
    }

    fn notes(&self, options: &ChunkOptions) -> Vec<String> {
        let mut notes = Vec::new();
        if !options.savings {
            notes.push(format!(
                "one thread; rounds: {}, all rows once in each; shown is the median, spread is (slowest - fastest) / median",
                options.memory.rounds()
            ));
            notes.push(format!("pages: 4 KiB asked for; transparent huge pages of the system: {}", huge_pages()));
        }
        notes.extend_from_slice(&self.data);
        notes
    }
}

/// The word in brackets is what the system does.
fn huge_pages() -> String {
    let text = fs::read_to_string(Path::new("/sys/kernel/mm/transparent_hugepage/enabled"));
    text.map_or("unknown".into(), |text| text.trim().to_owned())
}

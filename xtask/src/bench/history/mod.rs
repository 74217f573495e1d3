//! Whole histories, `cargo xtask bench history`: every version of a corpus becomes a snapshot, in every configuration
//! of `silt` and by the peers, in one run. What it takes to make them, to bring back the first, the middle and the
//! last, to forget every second; and what lies on disk. Beside it stand `zstd -3 --patch-from` over the versions and
//! `cp -r`. With `--at-rest` it is also what `silt maintain --recompress` makes of it, by its defaults and with
//! `--compression max`, beside the chain at level 19.
//!
//! | file | what |
//! |---|---|
//! | `configuration.rs` | what is compared: one line each |
//! | `versions.rs` | the place that is backed up |
//! | `job.rs` | one round on one history |
//! | `outcome.rs` | from rounds to rows |
//! | `table.rs` | from rows to tables |

pub(super) mod configuration;
mod job;
mod outcome;
mod table;
pub(super) mod versions;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};
use configuration::{Configuration, Prepared};
use outcome::{Outcome, Restores, head, row_of};
use serde_json::json;
use siltstone_testbed::bench::HistoryOptions;
use siltstone_testbed::bench::patch_chain::PatchChain;
use siltstone_testbed::bench::publish::Row;
use siltstone_testbed::corpus::{Corpus, History};
use siltstone_testbed::statistics::{Spread, rounded};
use siltstone_testbed::table::{as_float, mb_per_s};
use siltstone_testbed::tree;
use siltstone_testbed::workspace;
use std::path::Path;

/// Options: what is measured, and on what.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    histories: HistoryOptions,
    /// Only these configurations; all by default, with --quick five. An unknown name lists them.
    #[arg(long, value_delimiter = ',', value_name = "NAMES")]
    configs: Vec<String>,
    /// Rounds in which everything is measured.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Times each snapshot is restored in each of these, the tools taking turns: 3 by default, 1 with --quick.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    restore_rounds: Option<u64>,
    /// Also encode copies of each repository of `silt` once more, by default and with --compression max, and make the
    /// chain at level 19.
    #[arg(long)]
    at_rest: bool,
    /// Only make the data.
    #[arg(long)]
    prepare: bool,
}

impl Options {
    /// Returns the configurations named, or else all.
    fn configurations(&self) -> Result<Vec<Configuration>> {
        if self.configs.is_empty() { configuration::installed() } else { configuration::named(&self.configs) }
    }

    fn effort(&self) -> Effort {
        let restore_rounds = self.restore_rounds.unwrap_or(if self.histories.output.quick { 1 } else { 3 });
        Effort { rounds: self.rounds, restore_rounds, at_rest: self.at_rest }
    }
}

/// How often, and how much, is measured.
#[derive(Clone, Copy)]
struct Effort {
    /// Rounds of everything.
    rounds: u64,
    /// Rounds of restores in each of these.
    restore_rounds: u64,
    /// Whether repositories are measured at rest too.
    at_rest: bool,
}

/// Runs the benchmark and prints its tables.
pub(super) fn run(options: &Options) -> Result<()> {
    let chosen = options.configurations()?;
    let corpora = options.histories.corpora(History::value_variants())?;
    if options.prepare {
        for corpus in &corpora {
            println!("{}: {}", corpus.name, corpus.description);
        }
        return Ok(());
    }
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let mut prepared = configuration::prepare(&chosen, work.path())?;
    if options.histories.output.quick && options.configs.is_empty() {
        prepared.retain(|prepared| configuration::FEW.contains(&prepared.configuration.name));
    }
    let (mut results, effort) = (Results::default(), options.effort());
    for corpus in &corpora {
        results.add(corpus, &prepared, effort, work.path())?;
    }
    let mut notes = configuration::versions(&prepared);
    let Effort { rounds, restore_rounds, .. } = effort;
    notes.push(format!("rounds: {rounds}, of restores in each: {restore_rounds}; shown is the median"));
    let output = &options.histories.output;
    output.publish(&record_name(&corpora), &results.tables, &results.rows, &notes, work.path())?;
    if !results.failures.is_empty() {
        bail!("{} configurations failed:\n{}", results.failures.len(), results.failures.join("\n"));
    }
    Ok(())
}

/// The name of the record: with the histories in it, unless it has all.
fn record_name(corpora: &[Corpus]) -> String {
    let names = || corpora.iter().map(|corpus| corpus.name.as_str()).collect::<Vec<_>>().join("-");
    if corpora.len() == History::value_variants().len() { "history".to_owned() } else { format!("history-{}", names()) }
}

/// Results of all histories.
#[derive(Default)]
struct Results {
    tables: String,
    rows: Vec<Row>,
    failures: Vec<String>,
}

impl Results {
    fn add(&mut self, corpus: &Corpus, prepared: &[Prepared], effort: Effort, work: &Path) -> Result<()> {
        let mut outcomes: Vec<Result<Vec<Outcome>>> = prepared.iter().map(|_| Ok(Vec::new())).collect();
        let mut copies = Vec::new();
        for number in 0..effort.rounds {
            let found = job::run(corpus, prepared, number, effort, work)?;
            copies.push(found.copies);
            for (all, outcome) in outcomes.iter_mut().zip(found.outcomes) {
                match (all.as_mut(), outcome) {
                    (Ok(all), Ok(outcome)) => all.push(outcome),
                    (Ok(_), Err(error)) => *all = Err(error),
                    (Err(_), _) => {}
                }
            }
        }
        let mut rows = Vec::new();
        let mut versions = Vec::new();
        for (prepared, outcomes) in prepared.iter().zip(&outcomes) {
            let name = prepared.configuration.name;
            match outcomes {
                Ok(outcomes) => {
                    rows.push(row_of(&corpus.name, name, outcomes));
                    versions.extend(outcomes[outcomes.len() - 1].version_rows(&corpus.name, name));
                }
                Err(error) => {
                    rows.push(head("history", &corpus.name, &format!("{name} (failed)")));
                    self.failures.push(format!("{}: {name}: {error:#}", corpus.name));
                }
            }
        }
        rows.push(chain_row(corpus, 3, table::CHAIN, work)?);
        if effort.at_rest {
            rows.push(chain_row(corpus, 19, table::CHAIN_AT_REST, work)?);
        }
        rows.push(copy_row(corpus, &copies));
        table::compare(&mut rows);
        self.tables += &table::tables(&corpus.name, &corpus.description, &rows);
        self.rows.extend(rows.into_iter().chain(versions));
        Ok(())
    }
}

fn chain_row(corpus: &Corpus, level: u8, name: &str, work: &Path) -> Result<Row> {
    let mut chain = PatchChain::begin(level, work)?;
    let (mut source_bytes, mut encoded_bytes) = (0, 0);
    for (number, version) in (1..).zip(&corpus.versions) {
        eprintln!("{}: {name}, version {number} of {}", corpus.name, corpus.versions.len());
        source_bytes += tree::bytes(version)?;
        encoded_bytes += chain.add(version)?;
    }
    let mut row = head("history", &corpus.name, name);
    row.insert("source_bytes".into(), json!(source_bytes));
    row.insert("repository_bytes".into(), json!(chain.bytes));
    row.insert("ratio".into(), json!(rounded(as_float(source_bytes) / as_float(chain.bytes.max(1)), 2)));
    row.insert("backup_seconds".into(), json!(rounded(chain.seconds, 3)));
    row.insert("backup_mb_per_s".into(), json!(rounded(mb_per_s(encoded_bytes, chain.seconds), 1)));
    Ok(row)
}

fn copy_row(corpus: &Corpus, copies: &[Restores]) -> Row {
    let rate = Spread::of(copies.iter().filter_map(Restores::mb_per_s)).median;
    let mut row = head("history", &corpus.name, table::COPY);
    row.insert("restore_last_mb_per_s".into(), json!(rounded(rate, 1)));
    row
}

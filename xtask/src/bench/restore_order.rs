//! Reads of a restore, `cargo xtask bench restore-order`: restoring in always-forward-reference order needs every
//! container at most once. After a whole history the first, the middle and the last snapshot are restored and compared;
//! a container read twice, or read without need, is an error.

use super::history::configuration::{self, Prepared};
use super::history::versions::{RESTORED, Taken, Versions};
use super::report::row_with;
use anyhow::{Context, Result, bail};
use clap::Args;
use serde_json::json;
use siltstone_testbed::bench::HistoryOptions;
use siltstone_testbed::bench::publish::{Row, table_of};
use siltstone_testbed::bench::rounds::{Pile, restored_and_compared};
use siltstone_testbed::corpus::{Corpus, History};
use siltstone_testbed::json::number_of;
use siltstone_testbed::statistics::rounded;
use siltstone_testbed::table::mb_per_s;
use siltstone_testbed::tool::{Name, Reading, Repository};
use siltstone_testbed::workspace;
use std::path::Path;

/// Options: what is restored.
#[derive(Args)]
pub(crate) struct Options {
    #[command(flatten)]
    histories: HistoryOptions,
    /// Only these configurations of `silt`, named as in `bench history`.
    #[arg(long, value_delimiter = ',', value_name = "NAMES", default_value = "reverse,forward:4")]
    configs: Vec<String>,
}

/// Keys of the summary that `silt restore --json` gives.
const KEYS: [&str; 4] = ["containers_needed", "containers_read", "bytes_read", "bytes_prewritten"];
const COLUMNS: &str = "data config snapshot source_bytes containers_needed containers_read bytes_read \
    bytes_prewritten mb_per_s";

/// Runs it and prints its table.
pub(super) fn run(options: &Options) -> Result<()> {
    let chosen = configuration::named(&options.configs)?;
    if let Some(other) = chosen.iter().find(|configuration| configuration.program != Name::Silt) {
        bail!("{} does not say what it reads", other.name);
    }
    let corpora = options.histories.corpora(&[History::Openssl, History::Tars])?;
    let work = tempfile::tempdir_in(workspace::target()?)?;
    let prepared = configuration::prepare(&chosen, work.path())?;
    let mut rows = Vec::new();
    for corpus in &corpora {
        for prepared in &prepared {
            rows.extend(one_history(corpus, prepared, work.path())?);
        }
    }
    let mut notes = configuration::versions(&prepared);
    notes.extend(corpora.iter().map(|corpus| format!("{}: {}", corpus.name, corpus.description)));
    let table = table_of(COLUMNS, &rows).to_string();
    options.histories.output.publish("restore-order", &table, &rows, &notes, work.path())?;
    let wrong: Vec<String> = rows.iter().filter(|row| !is_in_order(row)).map(said).collect();
    if !wrong.is_empty() {
        bail!("containers read are not those needed: {}", wrong.join("; "));
    }
    Ok(())
}

fn one_history(corpus: &Corpus, prepared: &Prepared, work: &Path) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir_in(work)?;
    let name = prepared.configuration.name;
    let repository = prepared.tool.init(&folder.path().join(name))?;
    let mut versions = Versions::new(corpus, folder.path());
    let source = versions.source();
    while let Some(taken) = versions.advance()? {
        eprintln!("{}, {name}: backup of {}", corpus.name, taken.label);
        repository.backup(&source, &taken.label, Reading::Changed)?;
    }
    let mut pile = Pile::below(folder.path())?;
    let snapshots = RESTORED.into_iter().zip(versions.restored()?);
    snapshots
        .map(|(snapshot, taken)| {
            let mut row =
                row_with([("data", json!(corpus.name)), ("config", json!(name)), ("snapshot", json!(snapshot))]);
            row.extend(restored(&repository, &source, taken, &mut pile).with_context(|| said(&row))?);
            Ok(row)
        })
        .collect()
}

/// Restores this one and returns what the program said.
fn restored(repository: &Repository, source: &Path, taken: &Taken, pile: &mut Pile) -> Result<Row> {
    let (cost, said) = restored_and_compared(repository, source, &taken.label, &taken.listing, pile)?;
    let mut row = Row::new();
    row.insert("source_bytes".into(), json!(taken.bytes));
    for key in KEYS {
        let number = number_of(&said, key).with_context(|| format!("`silt restore --json` names no {key}"))?;
        row.insert(key.into(), json!(number));
    }
    row.insert("mb_per_s".into(), json!(rounded(mb_per_s(taken.bytes, cost.wall.as_secs_f64()), 1)));
    Ok(row)
}

fn is_in_order(row: &Row) -> bool {
    row["containers_needed"] == row["containers_read"]
}

fn said(row: &Row) -> String {
    ["data", "config", "snapshot"].map(|key| row[key].as_str().unwrap_or_default()).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reading_a_container_twice_is_seen() {
        let row = |read: u64| row_with([("containers_needed", json!(7)), ("containers_read", json!(read))]);
        assert!(is_in_order(&row(7)) && !is_in_order(&row(8)) && !is_in_order(&row(6)));
    }
}

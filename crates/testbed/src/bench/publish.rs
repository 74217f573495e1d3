//! Publishing of the results of every benchmark: printed, written as JSON, kept as a record with what explains it.

use crate::machine;
use crate::record;
use crate::table::Table;
use anyhow::{Context, Result};
use clap::Args;
use serde_json::{Map, Value};
use std::fs;
use std::path::{Path, PathBuf};

/// A row of results: flat, keyed by the names of columns.
pub type Row = Map<String, Value>;

/// Options that every benchmark takes.
#[derive(Args, Debug)]
pub struct Output {
    /// Little data and few rounds: a minute or two.
    #[arg(long)]
    pub quick: bool,
    /// Also writes the rows as JSON: an array of flat objects, keyed by the printed columns.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Keeps the tables under bench/record, with machine, versions and commit; a run of a part under a name of its own.
    #[arg(long, value_name = "NAME", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    record: Option<String>,
}

impl Output {
    /// Prints the tables and writes what the options ask for. `notes` tell how it was measured, a line each; `work` is
    /// where.
    pub fn publish(&self, bench: &str, tables: &str, rows: &[Row], notes: &[String], work: &Path) -> Result<()> {
        println!("{tables}");
        if let Some(file) = &self.json {
            fs::write(file, serde_json::to_string_pretty(rows)? + "\n")
                .with_context(|| format!("{} cannot be written", file.display()))?;
        }
        if let Some(part) = &self.record {
            let part = if part.is_empty() { String::new() } else { format!("-{part}") };
            let name = format!("{bench}{part}-{}{}", machine::today(), if self.quick { "-quick" } else { "" });
            record::keep(&format!("bench {bench}"), &name, tables, notes, work)?;
        }
        Ok(())
    }
}

/// Returns the table of these columns of the rows; `columns` are separated by blanks.
pub fn table_of(columns: &str, rows: &[Row]) -> Table {
    let mut table = Table::new(columns.split(' '));
    for row in rows {
        table.row(columns.split(' ').map(|column| shown(row.get(column))).collect());
    }
    table
}

/// Returns the rows that belong to one table, by the name in their column `table`.
pub fn rows_of(rows: &[Row], table: &str) -> Vec<Row> {
    rows.iter().filter(|row| row["table"] == table).cloned().collect()
}

/// A value as it stands in a table; nothing for none.
pub fn shown(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

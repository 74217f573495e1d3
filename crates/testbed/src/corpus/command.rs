//! `silt-lab corpus KIND --out DIR`.

use super::recipe::Recipe;
use super::record::{RECORD, Record};
use crate::install::Missing;
use crate::table::{self, Table};
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// Options of the command that makes a corpus.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The folder to make, with one file or folder per version; what it holds and how to make it again stands in its
    /// corpus.toml
    #[arg(long, value_name = "DIR", global = true)]
    pub out: Option<PathBuf>,
    /// Install programs that take part and are missing, with apt-get
    #[arg(long, global = true)]
    pub install: bool,
    /// Kind of the corpus, and its parameters.
    #[command(subcommand)]
    pub recipe: Recipe,
}

/// Makes a corpus and returns what there is to say of it: a table of its versions.
///
/// # Errors
/// If no folder is named or it is there already, or the corpus cannot be made; nothing is left then.
pub fn run(options: &Options) -> Result<String> {
    let out = options.out.as_ref().context("name the folder to make: --out DIR")?;
    ensure!(!out.exists(), "{} is there already: name a folder to be made, or remove it", out.display());
    let begin = Instant::now();
    let missing = if options.install { Missing::Install } else { Missing::Refuse };
    options.recipe.make(out, missing)?;
    let record = Record::read(out)?.context("a corpus has a record")?;
    let total: u64 = record.versions.iter().map(|version| version.bytes).sum();
    let mut said = table_of(&record).to_string();
    let seconds = begin.elapsed().as_secs_f64();
    write!(said, "\n{}, {} in {seconds:.1} s\n", record.description, table::bytes(total))?;
    writeln!(said, "{}", out.join(RECORD).display())?;
    Ok(said)
}

/// Table of the versions, with the changes between them where the maker knows them.
fn table_of(record: &Record) -> Table {
    let knows = record.versions.iter().any(|version| version.changes.is_some());
    let columns = ["version", "files", "bytes", "created", "deleted", "modified", "changed bytes"];
    let shown = if knows { columns.len() } else { 3 };
    let mut table = Table::new(columns.into_iter().take(shown));
    for version in &record.versions {
        let changes = version.changes.as_ref();
        let counts = changes.map_or([const { String::new() }; 4], |changes| {
            [changes.created, changes.deleted, changes.modified, changes.changed_bytes].map(|count| count.to_string())
        });
        let first = [version.name.clone(), version.files.to_string(), version.bytes.to_string()];
        table.row(first.into_iter().chain(counts).take(shown).collect());
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn said(line: &str) -> Result<String> {
        run(&<Line as clap::Parser>::try_parse_from(line.split_whitespace())?.options)
    }

    #[test]
    fn makes_what_is_asked_for_and_never_over_what_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let line = format!("lab syn --versions 2 --size 20kB --out {}/new", folder.path().display());
        let first = said(&line).unwrap();
        assert!(first.contains(" 001 |"), "{first}");
        assert!(said(&line).unwrap_err().to_string().contains("is there already"));
        assert!(said("lab syn").unwrap_err().to_string().contains("--out"));
        assert!(said("lab syn --size 20XB --out x").is_err());
    }
}

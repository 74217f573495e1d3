//! A growing database: an `SQLite` file of an event log that gains rows at its end, changes mostly young rows, a few
//! old ones, and loses some. Rows hold words of a skewed vocabulary, numbers that count up, and random tokens, so that
//! about a third of it is left after compression. Made from fixed seeds: the same versions on every machine with the
//! same `SQLite`.

use super::content::word;
use super::draw::skewed;
use super::stop::go_on;
use super::{Amount, Corpora, Corpus, once};
use crate::deterministic::Sequence;
use crate::install::{self, Missing};
use crate::program;
use crate::tree;
use anyhow::Result;
use serde::Serialize;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Rows of the first version, and versions.
struct Shape {
    name: &'static str,
    rows: u64,
    versions: u64,
    /// Changes every row: 0 in what benchmarks use.
    salt: u64,
}

/// About 40 MB.
const LITTLE: Shape = Shape { name: "database-little", rows: 100_000, versions: 3, salt: 0 };
/// Four versions of 340 MB, which together fit into memory.
const MIDDLE: Shape = Shape { name: "database-middle", rows: 850_000, versions: 4, salt: 0 };
/// The first version is beyond 1 GB.
const FULL: Shape = Shape { name: "database", rows: 2_900_000, versions: 8, salt: 0 };

/// Bytes that a row takes.
const ROW_BYTES: u64 = 400;

/// Parameters of a database's dumps.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Sqlite {
    /// Seed: the same gives the same bytes with the same version of sqlite3
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 12)]
    pub versions: u64,
    /// Bytes of the first version, about (as 40MB)
    #[arg(long, default_value = "80MB", value_parser = super::parse_bytes)]
    pub size: u64,
}

impl Sqlite {
    /// All versions into `folder`.
    pub(super) fn make(&self, folder: &Path, missing: Missing) -> Result<()> {
        let salt = Sequence::of(&[self.seed]).next();
        let rows = (self.size / ROW_BYTES).max(1000);
        make(folder, &Shape { name: "", rows, versions: self.versions, salt }, missing)
    }
}

/// The versions, generated if they are not there yet.
pub(super) fn corpus(corpora: &Corpora, amount: Amount) -> Result<Corpus> {
    let shape = match amount {
        Amount::Little => LITTLE,
        Amount::Memory => MIDDLE,
        Amount::Full => FULL,
    };
    let kept = corpora.folder.join(shape.name);
    once(&kept, |partial| make(partial, &shape, corpora.missing))?;
    let description =
        format!("{} versions of a growing SQLite database of {} rows at first, generated", shape.versions, shape.rows);
    Ok(Corpus { name: "database".into(), description, versions: tree::entries(&kept)? })
}

fn make(folder: &Path, shape: &Shape, missing: Missing) -> Result<()> {
    missing.obtain(&[install::SQLITE])?;
    (0..shape.versions).try_for_each(|version| make_version(folder, shape, version))
}

fn make_version(folder: &Path, shape: &Shape, version: u64) -> Result<()> {
    go_on()?;
    eprintln!("generating version {} of {} of the database", version + 1, shape.versions);
    let here = folder.join(format!("{version:03}"));
    if version == 0 {
        fs::create_dir(&here)?;
    } else {
        tree::copy(&folder.join(format!("{:03}", version - 1)), &here)?;
    }
    let database = here.join("events.sqlite");
    let growth = shape.rows * 3 / 100;
    if version == 0 {
        import(&database, 0..shape.rows, shape.salt)
    } else {
        let first = shape.rows + (version - 1) * growth;
        edit(&database, first, version)?;
        import(&database, first..first + growth, shape.salt)
    }
}

const SCHEMA: &str = "create table if not exists events (id integer primary key, time integer, account integer, kind text, \
                      path text, message text, token text, state integer);";

fn import(database: &Path, mut rows: std::ops::Range<u64>, salt: u64) -> Result<()> {
    program::fed(sqlite(database).arg(SCHEMA).arg(".import --csv /dev/stdin events"), |out| {
        rows.try_for_each(|id| write_row(out, id, salt))
    })
}

/// Changes a twentieth of the youngest tenth of the rows and one in 2 000 of all, and deletes a stretch of old ones.
fn edit(database: &Path, rows: u64, version: u64) -> Result<()> {
    let young = rows - rows / 10;
    let old = rows * version / 100;
    let statements = format!(
        "begin; \
         update events set state = state + 1, message = message || ' again' where id >= {young} and id % 20 = {version}; \
         update events set state = state + 1 where id % 2003 = {version}; \
         delete from events where id between {old} and {}; \
         commit;",
        old + rows / 500
    );
    program::quietly(sqlite(database).arg(statements)).map(drop)
}

/// `sqlite3` on this file, without the journal that a generator has no use for.
fn sqlite(database: &Path) -> Command {
    let mut command = Command::new("sqlite3");
    command
        .arg("-batch")
        .arg(database)
        .arg("pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -64000;");
    command
}

fn write_row(out: &mut impl Write, id: u64, salt: u64) -> Result<()> {
    let mut sequence = Sequence::new(id ^ salt);
    let kinds = ["login", "read", "write", "delete", "share", "error"];
    let time = 1_700_000_000 + id * 3 + sequence.below(3);
    let account = skewed(&mut sequence, 50_000);
    let kind = kinds[skewed(&mut sequence, kinds.len())];
    write!(out, "{id},{time},{account},{kind},/")?;
    for _ in 0..3 {
        write!(out, "{}/", word(&mut sequence))?;
    }
    write!(out, ",")?;
    for _ in 0..24 + sequence.below(24) {
        write!(out, "{} ", word(&mut sequence))?;
    }
    writeln!(out, ",{:016x}{:016x},{}", sequence.next(), sequence.next(), sequence.below(4))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_same_each_time_and_have_eight_fields() {
        let row = |id| {
            let mut out = Vec::new();
            write_row(&mut out, id, 0).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(row(5), row(5));
        assert_ne!(row(5), row(6));
        assert_eq!(row(5).matches(',').count(), 7);
    }
}

//! Data to back up or to cut. Each corpus is a list of versions, a version being a file or a folder.
//!
//! ```text
//! what the lab makes itself: the same bytes from the same seed, on every machine
//!   syn        a tree of files that are created, deleted, modified      (draw, content, edits)
//!   disk       a virtual machine's disk, rewritten in place
//!   streams    random bytes, bytes of low entropy, both mixed
//!   modified   pairs of chunks with known resemblance; pairs: the same as files
//! what takes a program
//!   store      dumps of a Redis server            dump       a growing SQLite database
//!   postgres   a server's data folder             system     Debian's root file system;  image: of the disk it lies on
//! what is fetched
//!   releases   of OpenSSL, as cargo holds it      tars       archives from npm           wheels     compiled programs from pip
//!   registry   of any package of these three
//! recipe, record, command     any of these into a folder of the user's, with a file that says how
//! stop                        what a signal calls
//! named                       some of these in sizes for a run; what is made stays in the build folder for the next
//! ```

pub mod command;
pub(crate) mod content;
pub mod disk;
mod draw;
pub mod dump;
mod edits;
mod image;
pub mod modified;
mod named;
pub mod pairs;
pub mod postgres;
pub mod recipe;
pub mod record;
mod registry;
mod releases;
mod stop;
pub mod store;
pub mod streams;
pub mod syn;
mod system;
mod tars;
mod wheels;

pub use named::{DEFAULTS, KINDS, Named};
pub use stop::stop;

use crate::install::Missing;
use crate::tree;
use anyhow::{Context, Result, bail, ensure};
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// Amount of data.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Amount {
    /// Enough to see that all works: a few versions, some tens of MB each.
    Little,
    /// All versions of a corpus fit into memory together: at most 1.6 GB.
    Memory,
    /// At least twenty releases, and a database beyond 1 GB.
    Full,
}

/// Versions of something, oldest first.
#[derive(Clone, Debug)]
pub struct Corpus {
    /// Short name, for tables.
    pub name: String,
    /// Description and origin, in a sentence.
    pub description: String,
    /// One file or folder per version.
    pub versions: Vec<PathBuf>,
}

impl Corpus {
    /// The newest versions that together make at least `bytes_wanted` (or all there are), newest first.
    pub fn newest(&self, bytes_wanted: u64) -> Result<Vec<&Path>> {
        let mut chosen = Vec::new();
        let mut total = 0;
        for version in self.versions.iter().rev() {
            if total >= bytes_wanted {
                break;
            }
            total += tree::bytes(version)?;
            chosen.push(version.as_path());
        }
        Ok(chosen)
    }
}

/// Where corpora are kept once they are made.
#[derive(Clone, Debug)]
pub struct Corpora {
    folder: PathBuf,
    missing: Missing,
}

impl Corpora {
    /// Those kept in this folder, which is made when it is needed. Where one takes a program that is not there, that is
    /// an error.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder, missing: Missing::Refuse }
    }

    /// Returns corpora whose making installs the programs that are not there.
    #[must_use]
    pub fn installing(self) -> Self {
        Self { missing: Missing::Install, ..self }
    }

    /// The corpora that benchmarks and tests use when the user names none; made on first use.
    pub fn standard(&self, amount: Amount) -> Result<Vec<Corpus>> {
        Ok(vec![releases::corpus(self, amount)?, dump::corpus(self, amount)?])
    }

    /// The releases of a source tree alone.
    pub fn releases(&self, amount: Amount) -> Result<Corpus> {
        releases::corpus(self, amount)
    }

    /// Data of different kinds, to compare chunkers on; made on first use.
    pub fn for_savings(&self, amount: Amount) -> Result<Vec<Corpus>> {
        let makers = [releases::corpus, dump::corpus, store::corpus, wheels::corpus];
        makers.into_iter().map(|make| make(self, amount)).collect()
    }

    /// Data of different kinds, to look for resemblance in; made on first use.
    pub fn for_resemblance(&self, amount: Amount) -> Result<Vec<Corpus>> {
        let mut corpora = self.for_savings(amount)?;
        corpora.push(system::corpus(self, amount)?);
        Ok(corpora)
    }

    /// One history; made on first use.
    pub fn history(&self, kind: History, amount: Amount) -> Result<Corpus> {
        let make = match kind {
            History::Openssl => releases::history,
            History::Tars => tars::history,
            History::Redis => store::history,
            History::System => image::history,
            History::Postgres => named::postgres_history,
        };
        make(self, amount)
    }
}

/// Histories of different kinds of data: at least twenty versions of each and more than 1 GB, or three
/// small ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum History {
    /// A source tree: folders.
    Openssl,
    /// One archive per release.
    Tars,
    /// Dumps of a database.
    Redis,
    /// The image of a machine's disk.
    System,
    /// The data folder of a database server, with its write-ahead log.
    Postgres,
}

/// The user's own versions: the entries of a folder in the order of their names; or, where `silt-lab corpus` made it,
/// those it made.
pub fn given(folder: &Path) -> Result<Corpus> {
    let folder = fs::canonicalize(folder)?;
    if let Some(record) = record::Record::read(&folder)? {
        return record.corpus(&folder);
    }
    let versions = tree::entries(&folder)?;
    let place = folder.display();
    ensure!(!versions.is_empty(), "{place} holds no versions: put one file or folder per version into it");
    let name = folder.file_name().map_or("data".into(), |name| name.to_string_lossy().into_owned());
    Ok(Corpus { name, description: format!("{} versions given by the user", versions.len()), versions })
}

/// A number of bytes: `4096`, `40MB` (powers of ten: kB, MB, GB) or `64MiB` (powers of two: KiB, MiB, GiB).
///
/// # Errors
/// If it is none, or beyond 2^63.
pub fn parse_bytes(text: &str) -> Result<u64> {
    let digits = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let unit = match text[digits.len()..].trim() {
        "" | "B" => 1,
        "kB" => 1000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        unit => bail!("'{unit}' is no unit of bytes: kB, MB, GB, KiB, MiB or GiB"),
    };
    let bytes = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(unit));
    let bytes = bytes.filter(|bytes| i64::try_from(*bytes).is_ok());
    bytes.with_context(|| format!("'{text}' is no number of bytes: write it as 4096, 40MB or 64MiB"))
}

/// Makes `folder` by `fill`ing a temporary one beside it, unless it is there already: what is there is always whole.
fn once(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let _making = stop::Making::begin()?;
    let beside = folder.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(beside).with_context(|| format!("{} cannot be made", beside.display()))?;
    let partial = tempfile::Builder::new().prefix(".partial").tempdir_in(beside)?;
    fill(partial.path())?;
    fs::rename(partial.keep(), folder)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_understood_with_their_units() {
        for (text, bytes) in [("0", 0), ("4096", 4096), ("40MB", 40_000_000), ("2 kB", 2000), ("64MiB", 64 << 20)] {
            assert_eq!(parse_bytes(text).unwrap(), bytes);
        }
        for text in ["", "MB", "1.5MB", "-1", "40mb", "99999999999GiB"] {
            assert!(parse_bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn what_fails_halfway_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let failed = once(&folder.path().join("new"), |partial| {
            fs::write(partial.join("half"), "")?;
            bail!("no")
        });
        assert!(failed.is_err() && folder.path().read_dir().unwrap().next().is_none());
    }
}

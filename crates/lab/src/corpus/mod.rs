//! Data to back up or to cut: successive releases of a real source tree ([`mod@releases`]), a growing database ([`dump`]), dumps of a
//! changing key-value store ([`store`]), releases of compiled programs ([`wheels`]), a machine's root file system ([`system`]) or the image
//! of one ([`mod@image`]), archives of releases ([`tars`]), or the user's own versions. Each is a list of versions, a version being a file
//! or a folder. What is downloaded or generated stays in the build folder for the next run.

mod dump;
mod image;
pub mod modified;
mod releases;
mod store;
mod system;
mod tars;
mod wheels;

use crate::tree;
use anyhow::{Result, bail};
use clap::ValueEnum;
use std::fs;
use std::path::{Path, PathBuf};

/// How much data.
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
    /// What it is and where it comes from, in a sentence.
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
}

impl Corpora {
    /// Those kept in this folder, which is made when it is needed.
    pub fn at(folder: PathBuf) -> Self {
        Self { folder }
    }

    fn folder(&self) -> Result<&Path> {
        fs::create_dir_all(&self.folder)?;
        Ok(&self.folder)
    }

    /// The corpora that benchmarks and tests use when the user names none; made on first use.
    pub fn standard(&self, amount: Amount) -> Result<Vec<Corpus>> {
        Ok(vec![releases::corpus(self.folder()?, amount)?, dump::corpus(self.folder()?, amount)?])
    }

    /// The releases of a source tree alone.
    pub fn releases(&self, amount: Amount) -> Result<Corpus> {
        releases::corpus(self.folder()?, amount)
    }

    /// Data of different kinds, to compare chunkers on; made on first use.
    pub fn for_savings(&self, amount: Amount) -> Result<Vec<Corpus>> {
        let folder = self.folder()?;
        let makers = [releases::corpus, dump::corpus, store::corpus, wheels::corpus];
        makers.into_iter().map(|make| make(folder, amount)).collect()
    }

    /// Data of different kinds, to look for resemblance in; made on first use.
    pub fn for_resemblance(&self, amount: Amount) -> Result<Vec<Corpus>> {
        let mut corpora = self.for_savings(amount)?;
        corpora.push(system::corpus(self.folder()?, amount)?);
        Ok(corpora)
    }

    /// One history; made on first use.
    pub fn history(&self, kind: History, amount: Amount) -> Result<Corpus> {
        let make = match kind {
            History::Openssl => releases::history,
            History::Tars => tars::history,
            History::Redis => store::history,
            History::System => image::history,
        };
        make(self.folder()?, amount)
    }
}

/// What happens to different kinds of data over time: at least twenty versions of each and more than 1 GB, or three small ones.
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
}

/// The user's own versions: the entries of a folder in the order of their names.
pub fn given(folder: &Path) -> Result<Corpus> {
    let folder = fs::canonicalize(folder)?;
    let versions = tree::entries(&folder)?;
    if versions.is_empty() {
        bail!("{} holds no versions: put one file or folder per version into it", folder.display());
    }
    let name = folder.file_name().map_or("data".into(), |name| name.to_string_lossy().into_owned());
    Ok(Corpus { name, description: format!("{} versions given by the user", versions.len()), versions })
}

/// Makes `folder` by `fill`ing a temporary one beside it, unless it is there already: what is there is always whole.
fn once(folder: &Path, fill: impl FnOnce(&Path) -> Result<()>) -> Result<()> {
    if folder.exists() {
        return Ok(());
    }
    let beside = folder.parent().unwrap_or(Path::new("."));
    let partial = tempfile::Builder::new().prefix(".partial").tempdir_in(beside)?;
    fill(partial.path())?;
    fs::rename(partial.keep(), folder)?;
    Ok(())
}

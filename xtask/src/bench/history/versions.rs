//! One place that becomes each version of a corpus in turn, as a user's folder or file does.

use anyhow::{Context, Result};
use siltstone_testbed::corpus::Corpus;
use siltstone_testbed::tree::{self, Listing};
use std::path::{Path, PathBuf};

/// The place, and what stood there at each snapshot.
pub(in crate::bench) struct Versions<'c> {
    corpus: &'c Corpus,
    folder: PathBuf,
    taken: Vec<Taken>,
}

/// A version that was in place.
pub(in crate::bench) struct Taken {
    /// Names the snapshot.
    pub(in crate::bench) label: String,
    /// Content that a restore has to bring back.
    pub(in crate::bench) listing: Listing,
    /// Bytes of all files.
    pub(in crate::bench) bytes: u64,
}

/// Which snapshots are restored to be timed.
pub(in crate::bench) const RESTORED: [&str; 3] = ["first", "middle", "last"];

impl<'c> Versions<'c> {
    /// None in place yet; the place is below `work`.
    pub(in crate::bench) fn new(corpus: &'c Corpus, work: &Path) -> Self {
        Self { corpus, folder: work.join("source"), taken: Vec::new() }
    }

    /// Returns what is backed up: always the same folder, or the same file in it.
    pub(in crate::bench) fn source(&self) -> PathBuf {
        let is_file = self.corpus.versions.iter().all(|version| version.is_file());
        if is_file { self.folder.join(tree::ONLY_FILE) } else { self.folder.clone() }
    }

    /// Puts the next version in place, touching only what differs, and reads it once; `None` after the last.
    pub(in crate::bench) fn advance(&mut self) -> Result<Option<&Taken>> {
        let number = self.taken.len();
        let Some(version) = self.corpus.versions.get(number) else { return Ok(None) };
        tree::make_equal(&self.folder, version)?;
        let listing = Listing::of(&self.source())?;
        let bytes = listing.bytes();
        self.taken.push(Taken { label: format!("v{number:03}"), listing, bytes });
        Ok(self.taken.last())
    }

    /// All that were in place so far.
    pub(in crate::bench) fn taken(&self) -> &[Taken] {
        &self.taken
    }

    /// The newest.
    pub(in crate::bench) fn newest(&self) -> Result<&Taken> {
        self.taken.last().context("there is at least one version")
    }

    /// Those of [`RESTORED`], in its order.
    pub(in crate::bench) fn restored(&self) -> Result<[&Taken; 3]> {
        let first = self.taken.first().context("there is at least one version")?;
        Ok([first, &self.taken[(self.taken.len() - 1) / 2], self.newest()?])
    }

    /// Labels of all snapshots.
    pub(in crate::bench) fn labels(&self) -> Vec<String> {
        self.taken.iter().map(|taken| taken.label.clone()).collect()
    }
}

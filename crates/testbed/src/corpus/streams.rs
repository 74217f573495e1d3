//! One file per version, without any structure of files: random bytes, bytes of low entropy, or both kinds mixed
//! (content.rs). A version is the one before with edits (edits.rs) in eight places.

use super::content::Content;
use super::draw::share;
use super::edits::{self, Edit};
use super::record::{Changes, Version, version_name};
use super::stop::go_on;
use crate::deterministic::Sequence;
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

/// Parts of a file, each with edits of its own.
const PARTS: u64 = 8;

/// Parameters of a stream of one kind of bytes.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Stream {
    /// Seed: the same gives the same bytes
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Versions
    #[arg(long, default_value_t = 1)]
    pub versions: u64,
    /// Bytes of the first version (as 40MB, 64MiB)
    #[arg(long, default_value = "64MiB", value_parser = super::parse_bytes)]
    pub size: u64,
    /// Bytes that change between versions, percent
    #[arg(long, default_value_t = 1.0)]
    pub changed_percent: f64,
}

/// Parameters of a stream of records with runs among them.
#[derive(Clone, PartialEq, Debug, Serialize, clap::Args)]
pub struct Mixed {
    /// The file and its versions.
    #[command(flatten)]
    #[serde(flatten)]
    pub stream: Stream,
    /// Bytes that lie in runs of one byte, percent, from 1 to 100
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    pub runs_percent: u64,
}

impl Stream {
    pub(super) fn check(&self) -> Result<()> {
        ensure!((0.0..=100.0).contains(&self.changed_percent), "shares are from 0 to 100 percent");
        Ok(())
    }

    /// All versions into `folder`; `sequence` gives the first.
    pub(super) fn make(&self, folder: &Path, content: Content, sequence: &Sequence) -> Result<Vec<Version>> {
        let mut versions: Vec<Version> = Vec::new();
        for number in 0..self.versions {
            go_on()?;
            let name = format!("{}.bin", version_name(number, self.versions));
            let path = folder.join(&name);
            let failed = || format!("{} cannot be written", path.display());
            let changes = match versions.last() {
                None => {
                    let mut out = BufWriter::new(File::create(&path).with_context(failed)?);
                    content
                        .write(sequence.clone(), self.size, &mut out)
                        .and_then(|()| out.flush())
                        .with_context(failed)?;
                    None
                }
                Some(before) => {
                    let mut sequence = Sequence::of(&[self.seed, number]);
                    let edits = self.edits(before.bytes, &mut sequence);
                    edits::apply(&folder.join(&before.name), &path, &edits, content, &mut sequence)?;
                    let changed_bytes = edits.iter().map(Edit::changed).sum();
                    Some(Changes { modified: 1, changed_bytes, ..Changes::default() })
                }
            };
            let bytes = fs::metadata(&path).with_context(failed)?.len();
            versions.push(Version { name, bytes, files: 1, changes });
        }
        Ok(versions)
    }

    fn edits(&self, file_bytes: u64, sequence: &mut Sequence) -> Vec<Edit> {
        let part_bytes = file_bytes / PARTS;
        let mut all = Vec::new();
        for part in 0..PARTS {
            let changed = share(sequence, part_bytes, self.changed_percent);
            let edits = edits::plan(sequence, part_bytes, changed);
            all.extend(edits.into_iter().map(|edit| Edit { at: edit.at + part * part_bytes, ..edit }));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::syn::digest;
    use crate::data;

    fn made(content: Content, seed: u64) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let stream = Stream { seed, versions: 3, size: 200_001, changed_percent: 1.0 };
        let versions = stream.make(folder.path(), content, &Sequence::new(seed)).unwrap();
        assert_eq!(versions.len(), 3);
        folder
    }

    #[test]
    fn a_seed_gives_the_same_bytes_everywhere_and_for_ever() {
        let contents = [Content::Packed, Content::LowEntropy, Content::Mixed { runs_percent: 10 }];
        let digests = contents.map(|content| digest(made(content, 1).path()));
        assert_eq!(digests, ["6e58766fe4e042c3", "d90a57223e574124", "ea1108bb50d39836"]);
        assert_ne!(digest(made(Content::LowEntropy, 2).path()), digests[1]);
    }

    #[test]
    fn the_first_version_is_what_benchmarks_hold_in_memory() {
        let random = made(Content::Packed, 1);
        assert!(fs::read(random.path().join("000.bin")).unwrap() == data::random(1, 200_001));
        assert!(data::random(1, 200_001) == Sequence::new(1).bytes(200_001));
        let low_entropy = made(Content::LowEntropy, 2);
        assert!(fs::read(low_entropy.path().join("000.bin")).unwrap() == data::low_entropy(1, 200_001));
    }

    #[test]
    fn a_hundredth_changes() {
        let folder = tempfile::tempdir().unwrap();
        let stream = Stream { seed: 1, versions: 11, size: 1_000_000, changed_percent: 1.0 };
        let versions = stream.make(folder.path(), Content::Packed, &Sequence::new(1)).unwrap();
        let changed: u64 =
            versions.iter().filter_map(|version| version.changes.as_ref()).map(|c| c.changed_bytes).sum();
        assert!((80_000..=101_000).contains(&changed), "{changed}");
    }
}

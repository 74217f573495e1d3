//! A source that keeps its size while a few percent of it change from version to version, always the same way.

use anyhow::{Context, Result};
use clap::ValueEnum;
use siltstone_testbed::corpus::{Amount, History};
use siltstone_testbed::deterministic::Sequence;
use siltstone_testbed::tree;
use siltstone_testbed::workspace;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Which source.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Kind {
    /// Many small files: a release of OpenSSL.
    Tree,
    /// One large file: the image of a machine's disk.
    File,
}

/// A file from here on is edited by blocks, a smaller one as a whole.
const LARGE_FILE_BYTES: u64 = 1 << 20;
/// Bytes edited at once in a large file.
const BLOCK_BYTES: u64 = 64 << 10;
/// One file in so many is edited, one block in so many.
const EDITED_ONE_IN: usize = 33;
/// One file in so many becomes another one.
const REPLACED_ONE_IN: usize = 200;
/// A file becomes one of so many that are next to it in size and no smaller, cut off where it ended.
const NEIGHBOURS: usize = 20;
/// Inserted into a small file; as much is taken out elsewhere.
const LINE_BYTES: usize = 32;

/// A source under change.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) description: String,
    original: PathBuf,
    /// Files that others become, by size.
    others: Vec<(u64, PathBuf)>,
}

impl Subject {
    /// The usual one of this kind.
    pub(super) fn usual(kind: Kind, quick: bool) -> Result<Self> {
        let amount = if quick { Amount::Little } else { Amount::Full };
        let (name, kind) = match kind {
            Kind::Tree => ("tree", History::Openssl),
            Kind::File => ("file", History::System),
        };
        let corpus = workspace::corpora()?.history(kind, amount)?;
        Self::new(name, &corpus.versions[corpus.versions.len() - 1], &corpus.versions[0])
    }

    /// The user's own.
    pub(super) fn given(path: &Path) -> Result<Self> {
        let path = fs::canonicalize(path)?;
        Self::new("data", &path, &path)
    }

    /// `original`, a file or a folder, whose files become those of `other`, which may be the same.
    fn new(name: &str, original: &Path, other: &Path) -> Result<Self> {
        let files = if other.is_dir() { tree::files(other)? } else { Vec::new() };
        let mut others = Vec::new();
        for path in files {
            others.push((fs::metadata(&path)?.len(), path));
        }
        others.sort();
        let mb = tree::bytes(original)? / 1_000_000;
        let what = if original.is_dir() {
            format!(
                "a tree of {} files, {mb} MB; in each version one file in {EDITED_ONE_IN} edited, one in {REPLACED_ONE_IN} replaced",
                tree::files(original)?.len()
            )
        } else {
            format!("a file, {mb} MB; in each version one block of 64 KiB in {EDITED_ONE_IN} edited")
        };
        Ok(Self { name: name.to_owned(), description: what, original: original.to_path_buf(), others })
    }

    /// Makes the first version in the folder `place`; gives what is to be backed up.
    pub(super) fn make(&self, place: &Path) -> Result<PathBuf> {
        tree::make_equal(place, &self.original)?;
        Ok(if self.original.is_dir() { place.to_path_buf() } else { place.join(tree::ONLY_FILE) })
    }

    /// Makes version `number` (from 1) of the one before.
    pub(super) fn age(&self, place: &Path, number: u64) -> Result<()> {
        let mut sequence = Sequence::new(number);
        let mut small = Vec::new();
        for path in tree::files(place)? {
            if fs::metadata(&path)?.len() >= LARGE_FILE_BYTES {
                edit_blocks(&path, &mut sequence).with_context(|| format!("{} cannot be edited", path.display()))?;
            } else {
                small.push(path);
            }
        }
        let count = |one_in: usize| small.len().div_ceil(one_in);
        for _ in 0..count(EDITED_ONE_IN) {
            edit(&small[sequence.index(small.len())], &mut sequence)?;
        }
        for _ in 0..if self.others.is_empty() { 0 } else { count(REPLACED_ONE_IN) } {
            let path = &small[sequence.index(small.len())];
            let bytes = fs::metadata(path)?.len();
            let mut content = fs::read(self.neighbour(bytes, &mut sequence))?;
            content.truncate(usize::try_from(bytes)?);
            fs::write(path, content).with_context(|| format!("{} cannot be replaced", path.display()))?;
        }
        Ok(())
    }

    /// One of those next to this size, no smaller; the largest if there is none.
    fn neighbour(&self, bytes: u64, sequence: &mut Sequence) -> &Path {
        let begin = self.others.partition_point(|(size, _)| *size < bytes).min(self.others.len() - 1);
        let count = NEIGHBOURS.min(self.others.len() - begin);
        &self.others[begin + sequence.index(count)].1
    }
}

/// A line comes in somewhere, and as much goes elsewhere.
fn edit(path: &Path, sequence: &mut Sequence) -> Result<()> {
    let mut content = fs::read(path).with_context(|| format!("{} cannot be read", path.display()))?;
    if content.len() < 2 * LINE_BYTES {
        return Ok(());
    }
    let gone = sequence.index(content.len() - LINE_BYTES);
    content.drain(gone..gone + LINE_BYTES);
    let line = format!("\n{:0width$x}\n", sequence.next(), width = LINE_BYTES - 2);
    let place = sequence.index(content.len());
    content.splice(place..place, line.into_bytes());
    fs::write(path, content).with_context(|| format!("{} cannot be written", path.display()))
}

/// In some blocks a few bytes are overwritten, in every fourth of these one byte in 32: of that block nothing can be
/// found again. Blocks of zeros stay, for a file with holes would grow.
fn edit_blocks(path: &Path, sequence: &mut Sequence) -> Result<()> {
    let file = File::options().read(true).write(true).open(path)?;
    let blocks = file.metadata()?.len() / BLOCK_BYTES;
    let mut block = vec![0; 64 << 10];
    for number in 0..blocks.div_ceil(EDITED_ONE_IN as u64) {
        let offset = sequence.below(blocks) * BLOCK_BYTES;
        file.read_exact_at(&mut block, offset)?;
        if block.iter().all(|byte| *byte == 0) {
            continue;
        }
        if number % 4 == 3 {
            let change = u8::try_from(1 + sequence.below(255)).expect("below 256");
            block.iter_mut().step_by(32).for_each(|byte| *byte ^= change);
        } else {
            let at = sequence.index(block.len() - LINE_BYTES);
            let bytes = sequence.bytes(LINE_BYTES);
            block[at..at + LINE_BYTES].copy_from_slice(&bytes);
        }
        file.write_all_at(&block, offset)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::tree::Listing;

    fn subject_of(folder: &Path) -> Subject {
        let original = folder.join("original");
        fs::create_dir(&original).unwrap();
        for number in 0..100_u64 {
            let bytes = Sequence::new(number).bytes(1000 + 10 * usize::try_from(number).unwrap());
            fs::write(original.join(format!("{number:03}")), bytes).unwrap();
        }
        Subject::new("t", &original, &original).unwrap()
    }

    #[test]
    fn every_version_differs_a_little_and_keeps_its_size() {
        let folder = tempfile::tempdir().unwrap();
        let subject = subject_of(folder.path());
        let place = folder.path().join("place");
        subject.make(&place).unwrap();
        let files = |place: &Path| -> Vec<Vec<u8>> {
            tree::files(place).unwrap().iter().map(|path| fs::read(path).unwrap()).collect()
        };
        let original = files(&place);
        let mut before = original.clone();
        for number in 1..=30 {
            subject.age(&place, number).unwrap();
            let after = files(&place);
            let changed = before.iter().zip(&after).filter(|(one, other)| one != other).count();
            assert!((1..=5).contains(&changed), "{changed} of 100 files in version {number}");
            before = after;
        }
        let bytes = |files: &[Vec<u8>]| files.iter().map(Vec::len).sum::<usize>();
        let (old, new) = (bytes(&original), bytes(&before));
        // A file as large as the largest may become a smaller one.
        assert!(old.abs_diff(new) < old / 200, "{old} bytes became {new}");
    }

    #[test]
    fn a_large_file_changes_by_blocks_and_its_zeros_stay() {
        let folder = tempfile::tempdir().unwrap();
        let original = folder.path().join("original");
        let mut bytes = Sequence::new(1).bytes(8 << 20);
        bytes[4 << 20..].fill(0);
        fs::write(&original, &bytes).unwrap();
        let subject = Subject::new("t", &original, &original).unwrap();
        let source = subject.make(&folder.path().join("place")).unwrap();
        for number in 1..20 {
            subject.age(source.parent().unwrap(), number).unwrap();
        }
        let aged = fs::read(&source).unwrap();
        assert!(aged.len() == bytes.len() && aged[4 << 20..] == bytes[4 << 20..]);
        let blocks = bytes.chunks(64 << 10).zip(aged.chunks(64 << 10));
        assert!((10..60).contains(&blocks.filter(|(one, other)| one != other).count()));
    }

    #[test]
    fn ageing_is_the_same_each_time() {
        let folder = tempfile::tempdir().unwrap();
        let subject = subject_of(folder.path());
        let places = ["one", "other"].map(|name| folder.path().join(name));
        for place in &places {
            subject.make(place).unwrap();
            (1..4).for_each(|number| subject.age(place, number).unwrap());
        }
        let read =
            |place: &Path| tree::files(place).unwrap().iter().map(|path| fs::read(path).unwrap()).collect::<Vec<_>>();
        assert!(read(&places[0]) == read(&places[1]));
        assert_eq!(Listing::of(&places[0]).unwrap().bytes(), Listing::of(&places[1]).unwrap().bytes());
    }
}

//! A source in memory, and what of it is new: what comes to each stage, for measuring what the stage's work alone
//! takes.

use anyhow::{Context, Result};
use siltstone_chunk::{Chunker, DEFAULT_NAME, Fingerprinter, Sizes, SliceChunks, by_name};
use siltstone_store::region::DATA_REGION_BYTES_TARGET;
use siltstone_testbed::tree;
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Cuts and fingerprints depend on the repository's key; any will do, for what is new comes to much the same with each.
pub(super) const KEY: &[u8; 32] = b"cargo xtask bench stages........";

/// As the readers of `siltstone-engine` hand on.
const PIECE_BYTES: usize = 1 << 20;

/// All files of a source, with their bytes.
pub(super) struct Content {
    pub(super) files: BTreeMap<PathBuf, Vec<u8>>,
}

/// Chunks in the order of the stream, by file.
pub(super) type ByFile<'c> = BTreeMap<&'c Path, Vec<&'c [u8]>>;

/// Consecutive new chunks: what is compressed together.
pub(super) type Region<'c> = Vec<&'c [u8]>;

/// New chunks with what may be their bases.
pub(super) struct Pair<'c> {
    pub(super) bases: Vec<&'c [u8]>,
    pub(super) region: Region<'c>,
}

/// The chunker of new repositories, with [`KEY`].
pub(super) fn chunker() -> Result<Box<dyn Chunker>> {
    by_name(DEFAULT_NAME, Sizes::DEFAULT, KEY).context("the default chunker is there")
}

impl Content {
    /// Reads the files below `source`, an existing folder.
    pub(super) fn of(source: &Path) -> Result<Self> {
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
            Ok((path, bytes))
        };
        Ok(Self { files: tree::files(source)?.into_iter().map(read).collect::<Result<_>>()? })
    }

    /// Returns the bytes of all files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.values().map(|bytes| bytes.len() as u64).sum()
    }

    /// The chunks of each file.
    pub(super) fn chunks(&self) -> Result<ByFile<'_>> {
        let chunker = chunker()?;
        let cut = |bytes| SliceChunks::new(&chunker, bytes).collect();
        Ok(self.files.iter().map(|(path, bytes)| (path.as_path(), cut(bytes))).collect())
    }

    /// The chunks of each file that `other` has not; of several equal ones the first.
    pub(super) fn chunks_beyond(&self, other: Option<&Self>) -> Result<ByFile<'_>> {
        let fingerprinter = Fingerprinter::best(KEY);
        let fingerprints = |chunks: &[&[u8]]| {
            let mut fingerprints = Vec::with_capacity(chunks.len());
            fingerprinter.fingerprints(chunks, &mut fingerprints);
            fingerprints
        };
        let mut known = HashSet::new();
        if let Some(other) = other {
            other.chunks()?.values().for_each(|chunks| known.extend(fingerprints(chunks)));
        }
        let mut beyond = BTreeMap::new();
        for (path, chunks) in self.chunks()? {
            let fingerprints = fingerprints(&chunks).into_iter();
            let new = chunks.into_iter().zip(fingerprints).filter(|(_, fingerprint)| known.insert(*fingerprint));
            let new: Vec<&[u8]> = new.map(|(chunk, _)| chunk).collect();
            if !new.is_empty() {
                beyond.insert(path, new);
            }
        }
        Ok(beyond)
    }
}

/// Chunks in regions as a backup makes them, across files.
pub(super) fn regions<'c>(chunks: &ByFile<'c>) -> Vec<Region<'c>> {
    grouped(chunks.values().flatten().copied(), DATA_REGION_BYTES_TARGET)
}

/// Chunks in pieces as a backup fingerprints them, across files.
pub(super) fn pieces<'c>(chunks: &ByFile<'c>) -> Vec<Vec<&'c [u8]>> {
    grouped(chunks.values().flatten().copied(), PIECE_BYTES)
}

/// Each run of consecutive chunks that together have at most so many bytes, or of one.
fn grouped<'c>(chunks: impl Iterator<Item = &'c [u8]>, bytes_max: usize) -> Vec<Region<'c>> {
    let mut groups: Vec<Region<'c>> = Vec::new();
    let mut bytes = 0;
    for chunk in chunks {
        match groups.last_mut() {
            Some(group) if bytes + chunk.len() <= bytes_max => {
                group.push(chunk);
                bytes += chunk.len();
            }
            _ => {
                groups.push(vec![chunk]);
                bytes = chunk.len();
            }
        }
    }
    groups
}

/// Pairs what dies in each file, in regions as a migration makes them, with as large a share of what is new in the same
/// file, from the same place: near enough to what sketches find, as bases.
pub(super) fn pairs<'c>(dying: &ByFile<'c>, new: &ByFile<'c>, region_bytes: usize) -> Vec<Pair<'c>> {
    let mut pairs = Vec::new();
    for (path, chunks) in dying {
        let Some(bases) = new.get(path) else { continue };
        let regions = grouped(chunks.iter().copied(), region_bytes);
        let count = regions.len();
        for (number, region) in regions.into_iter().enumerate() {
            let (begin, end) = (bases.len() * number / count, (bases.len() * (number + 1)).div_ceil(count));
            pairs.push(Pair { bases: bases[begin..end].to_vec(), region });
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_testbed::deterministic::Sequence;

    fn content(files: &[(&str, Vec<u8>)]) -> Content {
        Content { files: files.iter().map(|(path, bytes)| (PathBuf::from(path), bytes.clone())).collect() }
    }

    #[test]
    fn what_is_new_is_what_the_other_has_not_and_once() {
        let mut sequence = Sequence::new(5);
        let (old, added) = (sequence.bytes(600_000), sequence.bytes(300_000));
        let before = content(&[("a", old.clone())]);
        let after = content(&[("a", [old.clone(), added.clone()].concat()), ("b", added)]);
        let new = after.chunks_beyond(Some(&before)).unwrap();
        let bytes = |path: &str| new.get(Path::new(path)).map_or(0, |chunks| chunks.concat().len());
        // The chunk across the border is new too; in the second copy only what the border hid.
        assert!((300_000..300_000 + (64 << 10)).contains(&bytes("a")), "{}", bytes("a"));
        assert!(bytes("b") < 2 * (64 << 10), "{}", bytes("b"));
        assert_eq!(before.chunks_beyond(None).unwrap()[Path::new("a")].concat(), old);
        assert!(before.chunks_beyond(Some(&before)).unwrap().is_empty());
    }

    #[test]
    fn groups_hold_all_and_no_more_than_they_may() {
        let chunks: [&[u8]; 5] = [&[1; 4], &[2; 4], &[3; 30], &[4; 4], &[5; 6]];
        let groups = grouped(chunks.into_iter(), 10);
        assert_eq!(groups, [vec![chunks[0], chunks[1]], vec![chunks[2]], vec![chunks[3], chunks[4]]]);
    }

    #[test]
    fn every_region_has_its_share_of_the_bases() {
        let chunks: [&[u8]; 4] = [&[1; 4], &[2; 4], &[3; 4], &[4; 4]];
        let one = |path: &'static str, chunks: &[&'static [u8]]| BTreeMap::from([(Path::new(path), chunks.to_vec())]);
        let chunks = chunks.map(|chunk| -> &'static [u8] { Box::leak(chunk.to_vec().into_boxed_slice()) });
        let made = pairs(&one("a", &chunks[..2]), &one("a", &chunks[1..]), 4);
        let bases: Vec<usize> = made.iter().map(|pair| pair.bases.len()).collect();
        assert_eq!(bases, [2, 2]);
        assert!(pairs(&one("a", &chunks), &one("b", &chunks), 4).is_empty());
    }
}

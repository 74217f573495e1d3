//! Versions of something as a backup sees them: cut by the default chunker, each chunk that is not known yet numbered
//! as new. That is what is sketched and encoded.

use super::own::Own;
use super::parallel::in_parallel;
use crate::data::Data;
use anyhow::Result;
use siltstone_chunk::{ALGORITHMS, DEFAULT_NAME, Fingerprinter, Isa, Lagged, Sizes, SliceChunks};
use siltstone_similar::sketch::{Shape, Sketch, Sketcher};
use std::collections::HashMap;
use std::ops::Range;

/// Decides where chunks end; any would do.
pub(super) const KEY: [u8; 32] = [5; 32];

/// Sizes of chunks of so many bytes on average, as the default chunker takes them.
///
/// # Errors
/// If it cannot cut so small or so large.
pub(super) fn sizes(average: u32) -> Result<Sizes> {
    let default = ALGORITHMS.iter().find(|algorithm| algorithm.name == DEFAULT_NAME).expect("it is there");
    Ok(default.usual_sizes(average)?)
}

/// Which version comes first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Order {
    /// The oldest, as backups come.
    OldestFirst,
    /// The newest: what deltas against the next version see.
    NewestFirst,
}

/// Which chunks are no longer new.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    /// Those that the version before holds.
    VersionBefore,
    /// Those that any version before held.
    AllBefore,
}

/// The versions, cut and deduplicated.
pub struct Versions<'d> {
    bytes: &'d [u8],
    /// Where each chunk lies that was ever new; a chunk's number is its place here.
    pub chunks: Vec<Range<usize>>,
    /// Numbers of each version's chunks.
    pub recipes: Vec<Vec<usize>>,
    /// Numbers that are new in each version.
    pub new: Vec<Range<usize>>,
    chunker: Lagged,
}

impl<'d> Versions<'d> {
    /// Cuts every version into chunks of `average` bytes and leaves out what is known, or came before in the same
    /// version.
    ///
    /// # Errors
    /// If the chunker cannot cut so small or so large.
    pub fn of(data: &'d Data, average: u32, order: Order, remembered: Known) -> Result<Self> {
        let chunker = Lagged::new(sizes(average)?, &KEY, Isa::best());
        let mut ranges = data.ranges();
        if order == Order::NewestFirst {
            ranges.reverse();
        }
        let mut versions =
            Self { bytes: &data.bytes, chunks: Vec::new(), recipes: Vec::new(), new: Vec::new(), chunker };
        let mut known = HashMap::new();
        for range in ranges {
            let held = versions.add(range, &known);
            if remembered == Known::VersionBefore {
                known.clear();
            }
            known.extend(held);
        }
        Ok(versions)
    }

    /// One more version; what it holds, by fingerprint.
    fn add(&mut self, range: Range<usize>, before: &HashMap<[u8; 32], usize>) -> HashMap<[u8; 32], usize> {
        let chunks: Vec<&[u8]> = SliceChunks::new(&self.chunker, &self.bytes[range.clone()]).collect();
        let mut fingerprints = Vec::new();
        Fingerprinter::best(&KEY).fingerprints(&chunks, &mut fingerprints);
        let (mut held, mut recipe, first) = (HashMap::new(), Vec::with_capacity(chunks.len()), self.chunks.len());
        let mut begin = range.start;
        for (chunk, fingerprint) in chunks.iter().zip(fingerprints) {
            let at = begin..begin + chunk.len();
            begin = at.end;
            let number = *held.entry(fingerprint).or_insert_with(|| {
                before.get(&fingerprint).copied().unwrap_or_else(|| {
                    self.chunks.push(at);
                    self.chunks.len() - 1
                })
            });
            recipe.push(number);
        }
        self.recipes.push(recipe);
        self.new.push(first..self.chunks.len());
        held
    }

    /// The bytes of a chunk.
    pub fn bytes(&self, number: usize) -> &'d [u8] {
        &self.bytes[self.chunks[number].clone()]
    }

    /// New chunks of one version after another in runs of about so many bytes.
    pub fn regions(&self, region_bytes: usize) -> Vec<Range<usize>> {
        let mut regions = Vec::new();
        for new in &self.new {
            let mut begin = new.start;
            let mut bytes = 0;
            for number in new.clone() {
                bytes += self.bytes(number).len();
                if bytes >= region_bytes || number + 1 == new.end {
                    regions.push(begin..number + 1);
                    (begin, bytes) = (number + 1, 0);
                }
            }
        }
        regions
    }

    /// Bytes of all versions.
    pub fn given_bytes(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Bytes of all that was new.
    pub fn unique_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.len() as u64).sum()
    }

    /// Siltstone's own sketch of every chunk.
    pub fn sketches(&self) -> Vec<Option<Sketch>> {
        let own = Own::new(self.chunker.clone(), Shape::DEFAULT, Isa::best());
        in_parallel(self.chunks.len(), |number| own.sketch(self.bytes(number)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deterministic::Sequence;

    /// The numbers that are new in each of three versions, of which the last is the first again.
    fn new(order: Order, known: Known) -> Vec<usize> {
        let [one, other] = [1, 2].map(|seed| Sequence::new(seed).bytes(100_000));
        let bytes = [one.as_slice(), &other, &one].concat();
        let data = Data { ends: vec![100_000, 200_000, 300_000], ..Data::single("d", String::new(), bytes) };
        let versions = Versions::of(&data, 4096, order, known).unwrap();
        assert_eq!(versions.recipes.len(), 3);
        for (recipe, version) in versions.recipes.iter().zip([&one, &other, &one]) {
            assert_eq!(recipe.iter().map(|number| versions.bytes(*number)).collect::<Vec<_>>().concat(), *version);
        }
        versions.new.iter().map(ExactSizeIterator::len).collect()
    }

    #[test]
    fn what_comes_back_is_new_unless_all_is_remembered() {
        let short = new(Order::OldestFirst, Known::VersionBefore);
        assert!(short[0] > 10 && short[2] == short[0], "{short:?}");
        let long = new(Order::NewestFirst, Known::AllBefore);
        assert_eq!((long[0], long[2]), (short[0], 0));
    }
}

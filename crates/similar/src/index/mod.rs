//! An index from sketches to the stored chunks that are likest.
//!
//! Two ways to choose, [`Fit`]. By *super-features*, the first that any stored chunk shares decides (`FirstFit`:
//! Finesse, section 5; Odess, section 4.3). By single *features*, the chunk that shares the most wins (`BestFit`),
//! which also finds chunks that are less alike and tells how alike they are.
//!
//! ```text
//! entries    ring of (chunk number, snapshot that needed it last), oldest first; its place in it is an entry's serial
//! postings   buckets of one cache line: ten times (16 bits of a key's hash, serial), the newest over the oldest
//! key        a super-feature, or a feature with its place in the sketch; and the chunk's number, to find it again
//! ```
//!
//! Reasons:
//! 1. **Bounded.** Both tables have their final size from the start. What does not fit pushes out the oldest: the chunk
//!    is then stored as if nothing resembled it, and nothing else happens.
//! 2. **A lookup is a cache line per key.** The likest chunk shares most keys, so losing one of its postings does not
//!    lose it.
//! 3. **An answer is a guess.** Hashes are compared, not keys: a wrong candidate makes a bad delta, which the benefit
//!    filter throws away.
//! 4. **A window of snapshots.** Only chunks needed by the last `snapshots` snapshots are found, because only of those
//!    is it known without asking the store that they are still there, and searching all versions stores only 1 % less
//!    (`bench/record/similar-policy-*`).
//!
//! Cost: [`Index::memory_bytes`]: 155 bytes per chunk with 12 features, 59 with 3 super-features; 13 or 4 cache lines
//! to add or to find a chunk.

mod entries;
mod postings;

use crate::sketch::{Grouping, Sketch};
use alloc::vec::Vec;
use entries::Entries;
use postings::Postings;

/// The rule by which a base is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fit {
    /// The first super-feature that a stored chunk has too, the newest of those that do.
    First(Grouping),
    /// The chunk that has the most features in common, the newest of those that have as many.
    Best,
}

/// A stored chunk that resembles a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// The chunk's number.
    pub number: u64,
    /// Number of keys that it shares with the new one: features with [`Fit::Best`], super-features with [`Fit::First`].
    pub matches: usize,
}

/// Finds stored chunks by their sketches.
#[derive(Clone, Debug)]
pub struct Index {
    fit: Fit,
    snapshots: u32,
    entries: Entries,
    postings: Postings,
}

impl Index {
    /// An empty index of at most `chunks` chunks with `keys` keys each (features, or super-features), which finds those
    /// that the current snapshot or one of the last `snapshots` before it needs.
    pub fn new(fit: Fit, chunks: usize, keys: usize, snapshots: u32) -> Self {
        Self { fit, snapshots, entries: Entries::new(chunks), postings: Postings::new(chunks * (keys + 1)) }
    }

    /// Begins the next snapshot: what was needed more than `snapshots` ago and never since is no longer found.
    pub fn next_snapshot(&mut self) {
        self.entries.next_snapshot();
    }

    /// Adds a chunk that the current snapshot needs.
    pub fn insert(&mut self, number: u64, sketch: &Sketch) {
        let serial = self.entries.push(number);
        self.postings.push(number_key(number), serial);
        for key in self.keys(sketch) {
            self.postings.push(key, serial);
        }
    }

    /// Notes that the current snapshot needs a chunk again; nothing if the chunk is not here.
    pub fn keep(&mut self, number: u64) {
        for serial in self.postings.of(number_key(number)) {
            self.entries.keep(serial, number);
        }
    }

    /// The chunk to encode against.
    pub fn find(&self, sketch: &Sketch) -> Option<Candidate> {
        self.find_some(sketch, 1).first().copied()
    }

    /// The chunks to encode against, at most `most`, likest first.
    pub fn find_some(&self, sketch: &Sketch, most: usize) -> Vec<Candidate> {
        let mut votes: Vec<Vote> = Vec::new();
        for key in self.keys(sketch) {
            for serial in self.postings.of(key) {
                match votes.iter_mut().find(|vote| vote.serial == serial) {
                    Some(vote) => vote.matches += 1,
                    None => votes.push(Vote { serial, matches: 1 }),
                }
            }
            if !votes.is_empty() && matches!(self.fit, Fit::First(_)) {
                votes.retain(|vote| self.live(vote).is_some());
                if !votes.is_empty() {
                    break;
                }
            }
        }
        votes.sort_unstable_by_key(|vote| core::cmp::Reverse((vote.matches, self.entries.age_order(vote.serial))));
        votes.iter().filter_map(|vote| self.live(vote)).take(most).collect()
    }

    /// Bytes of memory it takes, now and always.
    pub fn memory_bytes(&self) -> usize {
        self.entries.memory_bytes() + self.postings.memory_bytes()
    }

    fn live(&self, vote: &Vote) -> Option<Candidate> {
        let entry = self.entries.get(vote.serial)?;
        let is_live = self.entries.snapshot() - entry.snapshot <= self.snapshots;
        is_live.then_some(Candidate { number: entry.number, matches: vote.matches })
    }

    fn keys(&self, sketch: &Sketch) -> Vec<u64> {
        match self.fit {
            Fit::First(grouping) => sketch.super_features(grouping).iter().copied().collect(),
            Fit::Best => {
                (0u64..).zip(sketch.features()).map(|(place, feature)| place << 32 | u64::from(*feature)).collect()
            }
        }
    }
}

/// The key of a chunk's number, apart from those of features.
fn number_key(number: u64) -> u64 {
    !number
}

struct Vote {
    serial: u32,
    matches: usize,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Shape;

    /// A sketch whose features are these, and then zeros.
    fn sketch(features: &[u32]) -> Sketch {
        let mut all = [0; 12];
        all[..features.len()].copy_from_slice(features);
        Sketch::from_features(&all, Shape::DEFAULT)
    }

    fn unlike(number: u32) -> Sketch {
        let features: Vec<u32> = (0..12).map(|place| number * 100 + place + 1000).collect();
        sketch(&features)
    }

    fn best(chunks: usize, snapshots: u32) -> Index {
        Index::new(Fit::Best, chunks, 12, snapshots)
    }

    #[test]
    fn the_chunk_with_the_most_features_in_common_wins_and_the_newest_of_equals() {
        let mut index = best(100, 1);
        index.insert(1, &sketch(&[1, 2, 3, 4, 5, 6, 7, 8, 9]));
        index.insert(2, &sketch(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
        index.insert(3, &sketch(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]));
        let found = index.find_some(&sketch(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]), 9);
        assert_eq!(found.iter().map(|found| found.number).collect::<Vec<_>>(), [3, 2, 1]);
        assert_eq!(found.iter().map(|found| found.matches).collect::<Vec<_>>(), [11, 11, 10]);
        assert_eq!(index.find(&unlike(1)), None);
    }

    #[test]
    fn the_first_super_feature_in_common_decides() {
        let mut index = Index::new(Fit::First(Grouping::Consecutive), 100, 3, 1);
        index.insert(1, &sketch(&[1, 2, 3, 4]));
        index.insert(2, &sketch(&[9, 9, 9, 9, 5, 6, 7, 8]));
        let both = sketch(&[1, 2, 3, 4, 5, 6, 7, 8, 1, 1, 1, 1]);
        assert_eq!(index.find(&both), Some(Candidate { number: 1, matches: 1 }));
        assert_eq!(index.find(&sketch(&[1, 2, 3, 9, 9, 1, 1, 1, 1, 1, 1, 1])), None);
    }

    #[test]
    fn only_chunks_that_recent_snapshots_need_are_found() {
        let mut index = best(100, 1);
        index.insert(1, &unlike(1));
        index.insert(2, &unlike(2));
        index.next_snapshot();
        assert_eq!(index.find(&unlike(1)).map(|found| found.number), Some(1));
        index.keep(2);
        index.keep(77);
        index.next_snapshot();
        assert_eq!(index.find(&unlike(1)), None);
        assert_eq!(index.find(&unlike(2)).map(|found| found.number), Some(2));
    }

    #[test]
    fn what_does_not_fit_pushes_out_the_oldest_and_memory_stays() {
        let mut index = best(64, 1);
        let memory = index.memory_bytes();
        for number in 0..10_000 {
            index.insert(u64::from(number), &unlike(number));
            assert_eq!(index.find(&unlike(number)).map(|found| found.number), Some(u64::from(number)));
        }
        assert_eq!(index.find(&unlike(9_935)), None);
        let found = (9_936..10_000).filter(|number| index.find(&unlike(*number)).is_some()).count();
        assert!(found > 60, "{found} of 64");
        assert_eq!(index.memory_bytes(), memory);
    }

    #[test]
    fn an_index_of_no_chunks_finds_nothing() {
        let mut index = best(0, 1);
        index.insert(1, &unlike(1));
        assert_eq!(index.find(&unlike(1)), None);
    }
}

//! The bottom-k sketch of a series: a sample of its chunks by which others see how much of it they have.
//!
//! Of all chunks of data that the series owns and that its snapshots need, it holds those whose fingerprints are least.
//! A fingerprint is a keyed hash, so these are a random sample, and the same chunk is in the samples of all series that
//! are of like size (Broder, "On the resemblance and containment of documents", 1997).

#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::cast_possible_truncation)]

use crate::ids::{ChunkNumber, Fingerprint};
use roaring::RoaringTreemap;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The most chunks of a sketch. Whoever has met n of a lender's N chunks has met n k / N of its sketch.
pub const BOTTOM_K: usize = 256;

/// The chunks with the least fingerprints, at most [`BOTTOM_K`].
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BottomK(BTreeMap<u64, ChunkNumber>);

impl BottomK {
    /// Adds a chunk, if its fingerprint is small enough.
    pub fn offer(&mut self, fingerprint: &Fingerprint, number: ChunkNumber) {
        let value = Self::value(fingerprint);
        if self.0.len() >= BOTTOM_K {
            match self.0.last_key_value() {
                Some((last, _)) if value < *last => {}
                _ => return,
            }
        }
        self.0.entry(value).or_insert(number);
        while self.0.len() > BOTTOM_K {
            self.0.pop_last();
        }
    }

    /// Drops chunks that are not among these. Those that come later take their places, however large their
    /// fingerprints are.
    pub fn keep(&mut self, numbers: &RoaringTreemap) {
        self.0.retain(|_, number| numbers.contains(number.0));
    }

    /// Adds those of another sketch.
    pub fn merge(&mut self, other: &Self) {
        for (value, number) in &other.0 {
            self.0.entry(*value).or_insert(*number);
        }
        while self.0.len() > BOTTOM_K {
            self.0.pop_last();
        }
    }

    /// The number by which a fingerprint is held against others: its first bytes.
    pub fn value(fingerprint: &Fingerprint) -> u64 {
        let (first, _) = fingerprint.0.split_first_chunk::<8>().unwrap_or((&[0; 8], &[]));
        u64::from_be_bytes(*first)
    }

    /// The values of its chunks' fingerprints.
    pub fn values(&self) -> impl Iterator<Item = u64> + '_ {
        self.0.keys().copied()
    }

    /// Returns how many chunks of the series each of the sketch stands for, about.
    pub fn weight(&self) -> u64 {
        match self.0.last_key_value() {
            Some((last, _)) if self.0.len() >= BOTTOM_K => (u64::MAX / (*last).max(1)).max(1),
            _ => 1,
        }
    }

    /// Returns how many chunks are in both.
    pub fn in_common(&self, other: &Self) -> usize {
        self.0.keys().filter(|value| other.0.contains_key(value)).count()
    }

    /// Returns how many chunks it is a sample of, about.
    pub fn chunks(&self) -> u64 {
        self.weight().saturating_mul(self.0.len() as u64)
    }

    /// Returns the number of chunks in it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Tells whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Tells whether it can be one: not too large, of chunks of data.
    pub(crate) fn is_sound(&self) -> bool {
        self.0.len() <= BOTTOM_K && self.0.values().all(|number| !number.is_metadata())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fingerprint(value: u64) -> Fingerprint {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&value.to_be_bytes());
        Fingerprint(bytes)
    }

    #[test]
    fn the_least_stay_and_what_is_dropped_makes_room() {
        let mut sketch = BottomK::default();
        for value in (0..1000u64).rev() {
            sketch.offer(&fingerprint(value), ChunkNumber(value));
        }
        assert_eq!(sketch.len(), BOTTOM_K);
        assert!(sketch.values().eq(0..BOTTOM_K as u64));
        sketch.keep(&(0..100).collect());
        sketch.offer(&fingerprint(900), ChunkNumber(900));
        assert!(sketch.values().eq((0..100).chain([900])));
    }

    #[test]
    fn a_hostile_one_is_seen() {
        let large = BottomK((0..=BOTTOM_K as u64).map(|value| (value, ChunkNumber(value))).collect());
        assert!(!large.is_sound());
        assert!(!BottomK([(1, ChunkNumber::METADATA_FIRST)].into()).is_sound());
        assert!(BottomK::default().is_sound());
    }
}

//! Cuts of some data by a chunker: how many chunks, how large, how much of them is new.

use super::chunks::Chunks;
use crate::table::as_float;
use siltstone_chunk::{Chunker, Fingerprinter};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};

/// Chunks whose fingerprints are made together.
const BATCH: usize = 128;
/// Key of the fingerprints: any will do.
const KEY: &[u8; 32] = &[7; 32];

/// The chunks of some data, summed up. Sums are exact, so equal cuts give equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cuts {
    /// Bytes of all data.
    pub bytes: u64,
    /// Number of chunks.
    pub count: u64,
    /// Sum of the squares of their lengths.
    pub squares: u128,
    /// Number of chunks that did not occur before.
    pub unique_count: u64,
    /// Bytes in chunks that did not occur before.
    pub unique_bytes: u64,
    /// Bytes in chunks of one repeated byte value that did occur before: the low-entropy strings that AE, TC'17, Table
    /// 5 counts as detected.
    pub low_entropy_bytes: u64,
    /// Digest of their lengths, in order.
    pub digest: Digest,
}

impl Cuts {
    /// Returns the cuts of `data` by `chunker`, taken as one stream.
    pub fn of(chunker: &dyn Chunker, data: &[u8]) -> Self {
        Self::of_lengths(&lengths(chunker, data), data)
    }

    /// Returns the cuts into chunks of these lengths. Chunks count as equal if the first 128 bits of their keyed
    /// fingerprints are.
    pub fn of_lengths(lengths: &[usize], data: &[u8]) -> Self {
        let fingerprinter = Fingerprinter::best(KEY);
        let (mut cuts, mut known) = (Self::default(), Known::default());
        let mut names = Vec::with_capacity(BATCH);
        let mut chunks = Chunks::of(lengths, data);
        loop {
            let batch: Vec<&[u8]> = chunks.by_ref().take(BATCH).collect();
            if batch.is_empty() {
                return cuts;
            }
            names.clear();
            fingerprinter.fingerprints(&batch, &mut names);
            for (chunk, name) in batch.iter().zip(&names) {
                let name = name.first_chunk().map_or(0, |first| u128::from_le_bytes(*first));
                cuts.add(chunk, known.insert(name));
            }
        }
    }

    /// The sum: averages and shares become those over both.
    #[must_use]
    pub fn and(self, other: &Self) -> Self {
        let mut digest = self.digest;
        digest.add_number(other.digest.folded);
        Self {
            bytes: self.bytes + other.bytes,
            count: self.count + other.count,
            squares: self.squares + other.squares,
            unique_count: self.unique_count + other.unique_count,
            unique_bytes: self.unique_bytes + other.unique_bytes,
            low_entropy_bytes: self.low_entropy_bytes + other.low_entropy_bytes,
            digest,
        }
    }

    /// Chunks of these lengths, all taken as new.
    pub fn new_ones(lengths: &[usize]) -> Self {
        let mut cuts = Self::default();
        for length in lengths {
            cuts.add_length(*length as u64, true);
        }
        cuts
    }

    /// Adds a chunk of which no more is known than its length in bytes and whether it is new.
    pub fn add_length(&mut self, length: u64, new: bool) {
        self.bytes += length;
        self.count += 1;
        self.squares += u128::from(length).pow(2);
        self.digest.add_number(length);
        if new {
            self.unique_count += 1;
            self.unique_bytes += length;
        }
    }

    fn add(&mut self, chunk: &[u8], new: bool) {
        let length = chunk.len() as u64;
        self.add_length(length, new);
        if !new && is_one_value(chunk) {
            self.low_entropy_bytes += length;
        }
    }

    /// Mean length of a chunk, bytes.
    pub fn average(&self) -> f64 {
        as_float(self.bytes) / as_float(self.count.max(1))
    }

    /// Standard deviation of the length of a chunk, bytes.
    #[allow(clippy::cast_precision_loss)]
    pub fn deviation(&self) -> f64 {
        let mean_square = self.squares as f64 / as_float(self.count.max(1));
        (mean_square - self.average().powi(2)).max(0.0).sqrt()
    }

    /// The share of the data that deduplication removes.
    pub fn savings(&self) -> f64 {
        1.0 - as_float(self.unique_bytes) / as_float(self.bytes.max(1))
    }

    /// Bytes of all data for one byte that is stored: the deduplication elimination ratio of AE, TC'17, section 4.2.
    pub fn elimination_ratio(&self) -> f64 {
        as_float(self.bytes) / as_float(self.unique_bytes.max(1))
    }

    /// The share of the data found as repeated low-entropy strings.
    pub fn low_entropy_share(&self) -> f64 {
        as_float(self.low_entropy_bytes) / as_float(self.bytes.max(1))
    }
}

/// The lengths of the chunks that `chunker` cuts `data` into.
///
/// # Panics
/// If they do not make up the data.
pub fn lengths(chunker: &dyn Chunker, data: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    chunker.cut_all(data, &mut |length| lengths.push(length));
    let sum: usize = lengths.iter().sum();
    assert_eq!(sum, data.len(), "{} does not cut all bytes", chunker.name());
    lengths
}

fn is_one_value(chunk: &[u8]) -> bool {
    chunk.len() < 2 || chunk[1..] == chunk[..chunk.len() - 1]
}

/// Lengths in order, folded into a number: what two forms must agree in; and how many there were. Cheap enough to be
/// part of what is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    folded: u64,
    count: u64,
}

impl Digest {
    /// Returns the digest of the chunks that `chunker` cuts `data` into.
    pub fn of(chunker: &dyn Chunker, data: &[u8]) -> Self {
        let mut digest = Self::default();
        chunker.cut_all(data, &mut |length| digest.add(length));
        digest
    }

    /// Returns the digest of lengths in order.
    pub fn of_lengths(lengths: impl IntoIterator<Item = usize>) -> Self {
        let mut digest = Self::default();
        for length in lengths {
            digest.add(length);
        }
        digest
    }

    /// Returns the digest of one number.
    pub fn of_number(number: u64) -> Self {
        Self { folded: number, count: 1 }
    }

    /// One more length.
    pub fn add(&mut self, length: usize) {
        self.add_number(length as u64);
    }

    /// The mean of the lengths, which are those of all chunks of so many bytes.
    pub fn average(self, bytes: usize) -> f64 {
        as_float(bytes as u64) / as_float(self.count.max(1))
    }

    fn add_number(&mut self, number: u64) {
        // Odd and dense, so that nothing is lost.
        self.folded = (self.folded ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
        self.count += 1;
    }
}

/// Fingerprints seen: 16 bytes for each unique chunk, and at most as much again of free room.
type Known = HashSet<u128, BuildHasherDefault<Unhashed>>;

/// Fingerprints are evenly spread already.
#[derive(Default)]
struct Unhashed(u64);

impl Hasher for Unhashed {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum << 8 | u64::from(*byte));
    }

    #[allow(clippy::cast_possible_truncation)]
    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use siltstone_chunk::Sizes;

    /// Chunks of so many bytes.
    struct Every(usize);

    impl Chunker for Every {
        fn name(&self) -> &'static str {
            "every"
        }
        fn sizes(&self) -> Sizes {
            Sizes::DEFAULT
        }
        fn cut(&self, data: &[u8]) -> usize {
            data.len().min(self.0)
        }
    }

    #[test]
    fn counts_what_is_new_and_what_is_monotonous() {
        let data = [[1; 4], [2; 4], [1; 4], [1, 2, 3, 4], [1, 2, 3, 4]].concat();
        let cuts = Cuts::of(&Every(4), &data);
        assert_eq!((cuts.bytes, cuts.count, cuts.unique_bytes, cuts.low_entropy_bytes), (20, 5, 12, 4));
        assert!((cuts.savings() - 0.4).abs() < 1e-12 && (cuts.low_entropy_share() - 0.2).abs() < 1e-12);
        assert!(cuts.deviation() < 1e-9);
    }

    #[test]
    fn average_and_deviation_are_those_of_the_lengths() {
        let cuts = Cuts::of(&Every(6), &[0; 8]);
        assert!((cuts.average() - 4.0).abs() < 1e-12 && (cuts.deviation() - 2.0).abs() < 1e-12);
        let none = Cuts::of(&Every(6), &[]);
        assert!(none.average().abs() < 1e-12 && none.deviation().abs() < 1e-12);
    }

    #[test]
    fn sums_have_the_averages_of_all() {
        let both = Cuts::of(&Every(4), &[0; 8]).and(&Cuts::of(&Every(8), &[0; 8]));
        assert_eq!((both.bytes, both.count, both.unique_bytes), (16, 3, 12));
        assert!((both.savings() - 0.25).abs() < 1e-12);
    }

    #[test]
    fn digests_tell_order_and_lengths_apart() {
        let digest = |lengths: &[usize]| Digest::of_lengths(lengths.iter().copied());
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[3]), digest(&[1, 2]));
        assert_eq!(Digest::of(&Every(6), &[0; 8]), digest(&[6, 2]));
    }
}

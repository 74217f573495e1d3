//! What a chunker made of some data: how many chunks, how large, how much of them is new.

use siltstone_chunk::Chunker;
use siltstone_lab::table::as_float;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hasher};
use xxhash_rust::xxh3::xxh3_128;

/// The chunks of some data, summed up. Sums are exact, so equal cuts give equal values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Cuts {
    /// Of all data.
    pub(super) bytes: u64,
    /// How many there are.
    pub(super) count: u64,
    /// Sum of the squares of their lengths.
    pub(super) squares: u128,
    /// Bytes in chunks that did not occur before.
    pub(super) unique_bytes: u64,
    /// Bytes in chunks of one repeated byte value that did occur before: the low-entropy strings that AE, TC'17, Table 5 counts
    /// as detected.
    pub(super) low_entropy_bytes: u64,
    /// Of their lengths, in order.
    pub(super) digest: Digest,
}

impl Cuts {
    /// What `chunker` makes of `data`, taken as one stream.
    pub(super) fn of(chunker: &dyn Chunker, data: &[u8]) -> Self {
        let mut cuts = Self::default();
        let mut known = Known::default();
        let mut rest = data;
        chunker.cut_all(data, &mut |length| {
            let (chunk, after) = rest.split_at(length);
            cuts.add(chunk, known.insert(xxh3_128(chunk)));
            rest = after;
        });
        assert!(rest.is_empty(), "{} left {} bytes over", chunker.name(), rest.len());
        cuts
    }

    /// The sum: averages and shares become those over both.
    pub(super) fn and(self, other: &Self) -> Self {
        let mut digest = self.digest;
        digest.add_number(other.digest.0);
        Self {
            bytes: self.bytes + other.bytes,
            count: self.count + other.count,
            squares: self.squares + other.squares,
            unique_bytes: self.unique_bytes + other.unique_bytes,
            low_entropy_bytes: self.low_entropy_bytes + other.low_entropy_bytes,
            digest,
        }
    }

    fn add(&mut self, chunk: &[u8], new: bool) {
        let length = chunk.len() as u64;
        self.bytes += length;
        self.count += 1;
        self.squares += u128::from(length).pow(2);
        self.digest.add(chunk.len());
        if new {
            self.unique_bytes += length;
        } else if is_one_value(chunk) {
            self.low_entropy_bytes += length;
        }
    }

    /// Mean length of a chunk, bytes.
    pub(super) fn average(&self) -> f64 {
        as_float(self.bytes) / as_float(self.count.max(1))
    }

    /// Standard deviation of the length of a chunk, bytes.
    #[allow(clippy::cast_precision_loss)]
    pub(super) fn deviation(&self) -> f64 {
        let mean_square = self.squares as f64 / as_float(self.count.max(1));
        (mean_square - self.average().powi(2)).max(0.0).sqrt()
    }

    /// The share of the data that deduplication removes.
    pub(super) fn savings(&self) -> f64 {
        1.0 - as_float(self.unique_bytes) / as_float(self.bytes.max(1))
    }

    /// The share of the data found as repeated low-entropy strings.
    pub(super) fn low_entropy_share(&self) -> f64 {
        as_float(self.low_entropy_bytes) / as_float(self.bytes.max(1))
    }
}

fn is_one_value(chunk: &[u8]) -> bool {
    chunk.len() < 2 || chunk[1..] == chunk[..chunk.len() - 1]
}

/// Lengths in order, folded into a number: what two forms must agree in. Cheap enough to be part of what is timed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest(u64);

impl Digest {
    /// Of the chunks that `chunker` cuts `data` into.
    pub(super) fn of(chunker: &dyn Chunker, data: &[u8]) -> Self {
        let mut digest = Self::default();
        chunker.cut_all(data, &mut |length| digest.add(length));
        digest
    }

    /// Of one number.
    pub(super) fn of_number(number: u64) -> Self {
        Self(number)
    }

    fn add(&mut self, length: usize) {
        self.add_number(length as u64);
    }

    fn add_number(&mut self, number: u64) {
        // Odd and dense, so that nothing is lost.
        self.0 = (self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
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
        let digest = |lengths: &[usize]| {
            let mut digest = Digest::default();
            for length in lengths {
                digest.add(*length);
            }
            digest
        };
        assert_ne!(digest(&[1, 2]), digest(&[2, 1]));
        assert_ne!(digest(&[3]), digest(&[1, 2]));
        assert_eq!(Digest::of(&Every(6), &[0; 8]), digest(&[6, 2]));
    }
}

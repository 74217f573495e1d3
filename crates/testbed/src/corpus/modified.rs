//! Pairs of chunks whose resemblance is known: random bytes, and what modifications leave of them. Odess, TOS, section
//! 4.2.
//!
//! ```text
//! at each byte of the old chunk, with probability MoR, one of these three, equally likely:
//!   insert     MoL random bytes before it
//!   delete     MoL bytes from it on
//!   replace    the same MoL bytes by random ones
//! what is left of the old chunk is a list of runs
//! windows     of W bytes; one ends with each byte of a chunk, zeros standing before its begin
//! shared      the windows that lie in one run; with the zeros, if the run begins both chunks
//! resemblance shared / (windows of the old + windows of the new - shared)
//! ```
//!
//! The paper has a similarity "recorded by the benchmark" and does not say of what. This one is the resemblance
//! Broder's theorem is about: bytes are random, so no other windows are equal, and two sets of hashes of windows agree
//! in their least element with exactly this probability.

use crate::deterministic::Sequence;

/// Modification of a chunk.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Modification {
    /// `MoR`: the probability at each byte.
    pub rate: f64,
    /// `MoL`: bytes inserted, deleted, replaced.
    pub length: usize,
}

/// A chunk, what became of it, and what both have in common.
#[derive(Clone, PartialEq, Debug)]
pub struct Pair {
    /// The chunk: random bytes.
    pub old: Vec<u8>,
    /// Content of the chunk after the modifications.
    pub new: Vec<u8>,
    runs: Vec<Run>,
}

/// Bytes that are in both.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    bytes: usize,
    /// True if both chunks begin with it.
    is_first: bool,
}

impl Pair {
    /// The pair of this number: a chunk of so many bytes, modified like this.
    pub fn new(chunk_bytes: usize, modification: Modification, number: u64) -> Self {
        // Neighbouring seeds must not give sequences that are each other's, shifted.
        let mut sequence = Sequence::new(Sequence::new(number).next());
        let old = sequence.bytes(chunk_bytes);
        let mut pair = Self { old, new: Vec::new(), runs: Vec::new() };
        let (mut at, mut begin) = (0, 0);
        while at < chunk_bytes {
            if sequence.unit() >= modification.rate {
                at += 1;
                continue;
            }
            pair.keep(begin, at);
            let (inserted, deleted) = [(1, 0), (0, 1), (1, 1)][sequence.index(3)];
            pair.new.extend(sequence.bytes(inserted * modification.length));
            begin = (at + deleted * modification.length).min(chunk_bytes);
            // The byte at which something was inserted is not asked again.
            at = begin.max(at + 1);
        }
        pair.keep(begin, chunk_bytes);
        pair
    }

    fn keep(&mut self, begin: usize, end: usize) {
        if begin < end {
            self.runs.push(Run { bytes: end - begin, is_first: begin == 0 && self.new.is_empty() });
            self.new.extend_from_slice(&self.old[begin..end]);
        }
    }

    /// The resemblance of the definition, from 0 to 1.
    pub fn resemblance(&self, window_bytes: usize) -> f64 {
        let shared = |run: &Run| if run.is_first { run.bytes } else { run.bytes.saturating_sub(window_bytes - 1) };
        let shared: usize = self.runs.iter().map(shared).sum();
        ratio(shared, self.old.len() + self.new.len() - shared)
    }
}

#[allow(clippy::cast_precision_loss)] // Chunks are small.
fn ratio(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    /// The windows of the definition, looked at one by one.
    fn windows(chunk: &[u8], window_bytes: usize) -> HashSet<Vec<u8>> {
        let all = [vec![0; window_bytes - 1].as_slice(), chunk].concat();
        all.windows(window_bytes).map(<[u8]>::to_vec).collect()
    }

    #[test]
    fn the_resemblance_is_that_of_the_sets_of_windows() {
        for (number, (rate, length)) in
            (0..).zip([(0.0, 10), (0.001, 200), (0.002, 5), (0.01, 30), (0.01, 1), (0.0005, 800), (1.0, 3)])
        {
            let pair = Pair::new(4000, Modification { rate, length }, number);
            for window_bytes in [32, 48] {
                let (old, new) = (windows(&pair.old, window_bytes), windows(&pair.new, window_bytes));
                let want = ratio(old.intersection(&new).count(), old.union(&new).count());
                // A replaced byte may be what it was, and neighbours of a cut alike.
                assert!((pair.resemblance(window_bytes) - want).abs() < 0.002, "{rate} {length} {want}");
            }
        }
    }

    #[test]
    fn modifications_come_as_often_as_they_should() {
        let modification = Modification { rate: 0.001, length: 7 };
        let runs: usize = (0..300).map(|number| Pair::new(8192, modification, number).runs.len() - 1).sum();
        assert!((2200..2700).contains(&runs), "{runs}");
    }
}

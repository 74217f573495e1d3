//! Super-features: hashes of groups of features, for which an index asks.
//!
//! Sources: Kulkarni et al., USENIX ATC'04, for the idea; Finesse, FAST'19, section 4.2 and Figure 3, for ranks. The
//! definition, which is format:
//!
//! ```text
//! grouped        consecutive: the features as they are
//!                by rank: with S super-features of n features, n contiguous sets of S features, each sorted, greatest first;
//!                then the first of each set, the second of each set, ...
//! super-feature  s(n) of the k-th n grouped features f_1 .. f_n, k = 0 ..< S:
//!                s(0) = k,  s(i) = fold((s(i-1) xor f_i) + P, P),  P = 0x9E3779B97F4A7C15
//! fold(a, b)     the low half xor the high half of the 128-bit product a b
//! ```
//!
//! The number k in it keeps apart what lies in one index: a super-feature matches in its own place only.
//!
//! Cost: a product per feature; by rank, sorting S numbers n times.

use super::{FEATURES_MAX, Sketch};
use core::ops::Deref;

/// The rule by which features make super-features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grouping {
    /// Neighbours: the first super-feature is of the first features.
    Consecutive,
    /// Contiguous sets, as many as a super-feature has features: the greatest of each, then the second of each, ...
    /// (Finesse, section 4.2).
    ByRank,
}

impl Sketch {
    /// The features in the order in which they are grouped and compared: super-feature k is of the k-th of equal runs
    /// of them.
    #[must_use]
    pub fn grouped(&self, grouping: Grouping) -> Self {
        if grouping == Grouping::Consecutive {
            return *self;
        }
        let groups = self.shape.super_features();
        let mut sets = *self;
        let features = &mut sets.features[..self.shape.features()];
        features.chunks_exact_mut(groups).for_each(|set| set.sort_unstable_by(|one, other| other.cmp(one)));
        let count = self.shape.features() / groups;
        Self::new(self.shape, |i| sets.features[i % count * groups + i / count])
    }

    /// Hashes of groups of features.
    pub fn super_features(&self, grouping: Grouping) -> SuperFeatures {
        let grouped = self.grouped(grouping);
        let groups = grouped.features().chunks_exact(self.shape.features() / self.shape.super_features());
        let mut hashes = [0; FEATURES_MAX];
        for ((hash, first), group) in hashes.iter_mut().zip(0..).zip(groups) {
            *hash = group.iter().fold(first, |sum: u64, feature| {
                let mixed = u128::from((sum ^ u64::from(*feature)).wrapping_add(GOLDEN)) * u128::from(GOLDEN);
                low_half(mixed) ^ low_half(mixed >> 64)
            });
        }
        SuperFeatures { hashes, count: self.shape.super_features() }
    }
}

/// `P` of the definition: the golden ratio's fraction.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

#[allow(clippy::cast_possible_truncation)]
fn low_half(number: u128) -> u64 {
    number as u64
}

/// The super-features of one sketch, at most [`FEATURES_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuperFeatures {
    /// Hashes of the super-features; those beyond the count are 0.
    hashes: [u64; FEATURES_MAX],
    count: usize,
}

impl Deref for SuperFeatures {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        &self.hashes[..self.count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::Shape;

    #[test]
    fn ranks_are_those_of_the_papers_example() {
        // Odess, section 2.4: f1 f2 f3 sort to f2 f1 f3, f4 f5 f6 to f6 f4 f5; groups are (f2, f6), (f1, f4), (f3, f5).
        let sketch = Sketch::new(Shape::new(6, 3).unwrap(), |i| [20, 30, 10, 50, 40, 60][i]);
        assert_eq!(sketch.grouped(Grouping::ByRank).features(), [30, 60, 20, 50, 10, 40]);
        assert_eq!(sketch.grouped(Grouping::Consecutive), sketch);
    }

    #[test]
    fn a_super_feature_is_of_all_its_features_in_its_place() {
        let sketch = |changed: usize| Sketch::new(Shape::DEFAULT, |i| if i == changed { 8 } else { 7 });
        let (same, all) = (sketch(99), sketch(99).super_features(Grouping::Consecutive));
        assert_eq!(all.len(), 3);
        assert!(all[0] != all[1] && all[1] != all[2], "equal features in different places");
        for changed in 0..12 {
            assert_eq!(same.matches(&sketch(changed)), 11);
            let others = sketch(changed).super_features(Grouping::Consecutive);
            let equal = (0..3).filter(|k| all[*k] == others[*k]).count();
            assert_eq!(equal, 2, "{changed}");
            assert_ne!(all[changed / 4], others[changed / 4]);
        }
    }

    #[test]
    fn features_that_change_places_within_a_set_are_grouped_as_before() {
        let sketch = |order: [u32; 12]| Sketch::new(Shape::DEFAULT, |i| order[i]).super_features(Grouping::ByRank);
        assert_eq!(sketch([5, 9, 1, 8, 3, 2, 7, 6, 4, 11, 10, 0]), sketch([9, 1, 5, 2, 3, 8, 4, 6, 7, 0, 10, 11]));
    }
}

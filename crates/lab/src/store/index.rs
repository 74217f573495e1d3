//! Index in which a backup finds chunks again: chunks by their fingerprints, and by their super-features. Either of all
//! that is stored, or of the current and the last version alone (MeGA, ATC 2022, section 4.1).

use super::recipe::Number;
use siltstone_store::Fingerprint;
use std::collections::HashMap;

/// Reach of sharing, in versions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Reach {
    /// With everything stored.
    Everything,
    /// With the version before, and within the version.
    Adjacent,
}

/// The super-features of a chunk: three of twelve features (MeGA, ATC 2022, section 5.1).
pub(super) type Likeness = [u64; 3];

/// Chunks by their super-features. The first super-feature that any has decides, the newest of those that have it.
#[derive(Debug, Default)]
pub(super) struct Sketches([HashMap<u64, Number>; 3]);

impl Sketches {
    /// A chunk that shares a super-feature.
    pub(super) fn find(&self, likeness: &Likeness) -> Option<Number> {
        self.0.iter().zip(likeness).find_map(|(table, hash)| table.get(hash).copied())
    }

    /// Adds a chunk.
    pub(super) fn insert(&mut self, number: Number, likeness: &Likeness) {
        for (table, hash) in self.0.iter_mut().zip(likeness) {
            table.insert(*hash, number);
        }
    }

    fn retain(&mut self, is_kept: impl Fn(Number) -> bool) {
        self.0.iter_mut().for_each(|table| table.retain(|_, number| is_kept(*number)));
    }
}

#[derive(Debug, Default)]
struct Tables {
    fingerprints: HashMap<Fingerprint, Number>,
    sketches: Sketches,
}

/// Both kinds of tables.
#[derive(Debug)]
pub(super) struct Index {
    reach: Reach,
    current: Tables,
    last: Tables,
}

impl Index {
    /// An empty one.
    pub(super) fn new(reach: Reach) -> Self {
        Self { reach, current: Tables::default(), last: Tables::default() }
    }

    /// The chunk of this content.
    pub(super) fn find(&self, fingerprint: &Fingerprint) -> Option<Number> {
        let tables = [&self.current, &self.last];
        tables.into_iter().find_map(|tables| tables.fingerprints.get(fingerprint).copied())
    }

    /// A whole chunk like this one.
    pub(super) fn find_like(&self, likeness: &Likeness) -> Option<Number> {
        [&self.current, &self.last].into_iter().find_map(|tables| tables.sketches.find(likeness))
    }

    /// The current version has this chunk. Only of whole chunks is it said what they are like: they alone are bases.
    pub(super) fn insert(&mut self, number: Number, fingerprint: Fingerprint, likeness: Option<&Likeness>) {
        self.current.fingerprints.insert(fingerprint, number);
        if let Some(likeness) = likeness {
            self.current.sketches.insert(number, likeness);
        }
    }

    /// Tells whether chunks must be inserted again by every version that has them.
    pub(super) fn forgets(&self) -> bool {
        self.reach == Reach::Adjacent
    }

    /// The current version becomes the last one.
    pub(super) fn next_version(&mut self) {
        if self.reach == Reach::Adjacent {
            self.last = std::mem::take(&mut self.current);
        }
    }

    /// Leaves out what is no longer stored.
    pub(super) fn retain(&mut self, is_kept: impl Fn(Number) -> bool) {
        for tables in [&mut self.current, &mut self.last] {
            tables.fingerprints.retain(|_, number| is_kept(*number));
            tables.sketches.retain(&is_kept);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_reach_ends_with_the_last_version() {
        for reach in [Reach::Everything, Reach::Adjacent] {
            let mut index = Index::new(reach);
            let fingerprint = Fingerprint([1; 16]);
            index.insert(5, fingerprint, Some(&[1, 2, 3]));
            index.next_version();
            assert_eq!((index.find(&fingerprint), index.find_like(&[9, 2, 9])), (Some(5), Some(5)));
            index.next_version();
            let found = (reach == Reach::Everything).then_some(5);
            assert_eq!((index.find(&fingerprint), index.find_like(&[9, 2, 9])), (found, found));
            index.retain(|number| number != 5);
            assert_eq!((index.find(&fingerprint), index.find_like(&[9, 2, 9])), (None, None));
        }
    }

    #[test]
    fn the_first_super_feature_in_common_decides() {
        let mut sketches = Sketches::default();
        sketches.insert(1, &[1, 2, 3]);
        sketches.insert(2, &[7, 2, 3]);
        assert_eq!(sketches.find(&[1, 2, 3]), Some(1));
        assert_eq!(sketches.find(&[9, 2, 3]), Some(2));
        assert_eq!(sketches.find(&[2, 3, 1]), None, "each has its place");
    }
}

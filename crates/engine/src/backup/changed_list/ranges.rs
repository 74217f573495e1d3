//! Ranges of one file, as a list gives them: in any order, as often as it likes.
//!
//! Those that come in order are joined as they come. What does not is put in order whenever the room is full, and the
//! room grows only if more than half of it is still needed then: so it follows what is left after joining, and sorting
//! costs O(n log n) in all.

use std::ops::Range;

/// Ranges of a file, none longer than a file may be.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ranges: Vec<Range<u64>>,
    is_unsettled: bool,
}

impl Ranges {
    /// Adds one; it may be empty.
    pub(super) fn add(&mut self, range: Range<u64>) {
        match self.ranges.last_mut() {
            Some(last) if (last.start..=last.end).contains(&range.start) => last.end = last.end.max(range.end),
            _ => {
                if self.ranges.len() == self.ranges.capacity() {
                    self.make_room();
                }
                self.is_unsettled |= self.ranges.last().is_some_and(|last| range.start <= last.end);
                self.ranges.push(range);
            }
        }
    }

    /// Number of ranges; until [`Ranges::settle`], some may be parts of others.
    pub(super) fn held(&self) -> u64 {
        self.ranges.len() as u64
    }

    /// Puts them in order, those that touch as one; gives by how many they became fewer.
    pub(super) fn settle(&mut self) -> u64 {
        let before = self.held();
        if std::mem::take(&mut self.is_unsettled) {
            self.ranges.sort_unstable_by_key(|range| (range.start, range.end));
            self.ranges.dedup_by(|later, earlier| {
                let touches = later.start <= earlier.end;
                if touches {
                    earlier.end = earlier.end.max(later.end);
                }
                touches
            });
        }
        before - self.held()
    }

    /// Ascending and apart, once settled.
    pub(super) fn as_slice(&self) -> &[Range<u64>] {
        &self.ranges
    }

    fn make_room(&mut self) {
        self.settle();
        if self.ranges.len() > self.ranges.capacity() / 2 || self.ranges.capacity() == 0 {
            self.ranges.reserve_exact(self.ranges.len().max(4));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_cover_what_was_added_and_are_ascending_and_apart(
            added in proptest::collection::vec((0u64..400, 0u64..20), 0..200)
        ) {
            let mut ranges = Ranges::default();
            let mut covered = [false; 420];
            for (start, bytes) in added {
                ranges.add(start..start + bytes);
                for at in start..start + bytes {
                    covered[usize::try_from(at).expect("small")] = true;
                }
            }
            ranges.settle();
            let found = ranges.as_slice();
            prop_assert!(found.windows(2).all(|pair| pair[0].end < pair[1].start), "{found:?}");
            for at in 0..420u64 {
                let holds = found.iter().any(|range| range.contains(&at));
                prop_assert_eq!(holds, covered[usize::try_from(at).expect("small")], "{}", at);
            }
        }
    }

    #[test]
    fn what_repeats_takes_no_room() {
        let mut ranges = Ranges::default();
        for round in 0..1000u64 {
            for start in [50, 10, 30] {
                ranges.add(start + round % 5..start + 10);
            }
            assert!(ranges.ranges.capacity() <= 16, "{} in round {round}", ranges.ranges.capacity());
        }
        ranges.settle();
        assert_eq!(ranges.as_slice(), [10..20, 30..40, 50..60].map(|range: Range<u64>| range));
    }

    #[test]
    fn descending_ranges_are_put_in_order() {
        let mut ranges = Ranges::default();
        for at in (0..100_000u64).rev() {
            ranges.add(2 * at..2 * at + 1);
        }
        assert_eq!((ranges.settle(), ranges.held()), (0, 100_000));
        assert!(ranges.as_slice().is_sorted_by_key(|range| range.start));
    }
}

//! Candidates by place: where a changed file's older version is known, what lies between two chunks that stayed is the
//! natural base of what lies between them now. No index, no sketch, and the bases lie in a row on disk.
//!
//! ```text
//! old   a b c d e f g h          b .. f stayed known at both ends, so the gap x y z of the new lies over c d e of the old
//! new   a b x y z f g h
//! ```
//!
//! A gap is bounded by the nearest known chunk on each side; if the two lie in the wrong order in the old version, or
//! further apart than four times the gap and 64 KiB, the gap is taken to begin after the left one, or else to end
//! before the right one. Within a gap each new chunk lies over the old bytes at the same share of the way.
//!
//! Cost: one pass over the chunks.

use alloc::vec::Vec;
use core::ops::Range;

/// An old gap may be so many times as long as the new one, and [`SLACK_BYTES`] more; beyond that the ends are
/// unrelated.
const SLACK: u64 = 4;
const SLACK_BYTES: u64 = 64 << 10;

/// A chunk of the version that is being stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Length, bytes.
    pub bytes: u64,
    /// Place of the same chunk among the chunks of the older version, from 0; `None` if that has no such chunk.
    pub old: Option<usize>,
}

/// Returns for each chunk of a version the range of places in the older one that it lies over; empty for chunks that
/// the older version has, and where nothing is known. `ends[i]` is where old chunk i ends in the older version's bytes.
pub fn aligned(new: &[Place], ends: &[u64]) -> Vec<Range<usize>> {
    let mut over = alloc::vec![0..0; new.len()];
    let mut at = 0;
    while at < new.len() {
        let length = new[at..].iter().take_while(|place| place.old.is_none()).count();
        if length > 0 {
            let (left, right) = (at.checked_sub(1), at + length);
            let left = left.and_then(|left| new[left].old).map(|old| old + 1);
            let right = new.get(right).and_then(|place| place.old);
            lay_over(&new[at..at + length], &mut over[at..at + length], left, right, ends);
        }
        at += length.max(1);
    }
    over
}

/// Lays the chunks of one gap over the old places from `left` to `right`, as far as those are known.
fn lay_over(gap: &[Place], over: &mut [Range<usize>], left: Option<usize>, right: Option<usize>, ends: &[u64]) {
    let begin = |place: usize| place.checked_sub(1).and_then(|before| ends.get(before)).copied().unwrap_or(0);
    let length = gap.iter().fold(0u64, |sum, place| sum.saturating_add(place.bytes));
    let most = length.saturating_mul(SLACK).saturating_add(SLACK_BYTES);
    let (from, to) = match (left.map(begin), right.map(begin)) {
        (Some(left), Some(right)) if left <= right && right - left <= most => (left, right),
        (Some(left), _) => (left, left.saturating_add(length)),
        (None, Some(right)) => (right.saturating_sub(length), right),
        (None, None) => return,
    };
    if from == to {
        return;
    }
    let mut done = 0;
    for (place, over) in gap.iter().zip(over) {
        let share = |done: u64| {
            let share = u128::from(done) * u128::from(to - from) / u128::from(length.max(1));
            from.saturating_add(u64::try_from(share).unwrap_or(u64::MAX))
        };
        let (first, last) = (share(done), share(done.saturating_add(place.bytes)));
        done = done.saturating_add(place.bytes);
        let places = ends.partition_point(|end| *end <= first)..ends.partition_point(|end| *end < last) + 1;
        *over = places.start.min(ends.len())..places.end.min(ends.len());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    /// Chunks of 10 bytes; `None` for new ones.
    fn over(old: usize, new: &[Option<usize>]) -> Vec<Range<usize>> {
        let ends: Vec<u64> = (1..=old as u64).map(|end| end * 10).collect();
        let new: Vec<Place> = new.iter().map(|old| Place { bytes: 10, old: *old }).collect();
        aligned(&new, &ends)
    }

    #[test]
    fn a_gap_lies_over_what_lay_between_its_neighbours() {
        let found = over(8, &[Some(0), Some(1), None, None, None, Some(5), Some(6)]);
        assert_eq!(found, vec![0..0, 0..0, 2..3, 3..4, 4..5, 0..0, 0..0]);
    }

    #[test]
    fn a_gap_of_another_length_is_stretched() {
        assert_eq!(over(6, &[Some(0), None, None, Some(5)]), vec![0..0, 1..3, 3..5, 0..0]);
        assert_eq!(over(3, &[Some(0), None, None, Some(2)]), vec![0..0, 1..2, 1..2, 0..0]);
        assert_eq!(over(2, &[Some(0), None, Some(1)]), vec![0..0, 0..0, 0..0], "an insertion lies over nothing");
    }

    #[test]
    fn one_neighbour_is_enough_and_none_is_not() {
        assert_eq!(over(8, &[None, None, Some(5)]), vec![3..4, 4..5, 0..0]);
        assert_eq!(over(8, &[Some(5), None, None, None]), vec![0..0, 6..7, 7..8, 8..8]);
        assert_eq!(over(8, &[None, None]), vec![0..0, 0..0]);
        assert_eq!(over(0, &[]), vec![]);
    }

    #[test]
    fn neighbours_in_the_wrong_order_leave_the_left_one() {
        assert_eq!(over(9, &[Some(5), None, Some(1)]), vec![0..0, 6..7, 0..0]);
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_given_places_are_of_the_old_version_and_only_new_chunks_have_some(
            new in proptest::collection::vec((0..100_000u64, proptest::option::of(0..60usize)), 0..60),
            old in proptest::collection::vec(0..100_000u64, 0..50),
        ) {
            let ends: Vec<u64> = old.iter().scan(0, |end, bytes| { *end += bytes; Some(*end) }).collect();
            let new: Vec<Place> = new.into_iter().map(|(bytes, old)| Place { bytes, old }).collect();
            let over = aligned(&new, &ends);
            proptest::prop_assert_eq!(over.len(), new.len());
            for (place, over) in new.iter().zip(over) {
                proptest::prop_assert!(over.start <= over.end && over.end <= ends.len());
                proptest::prop_assert!(place.old.is_none() || over.is_empty());
            }
        }
    }
}

//! The order in which several series lose snapshots: whoever borrows before those it borrows of, so that a lender sees
//! the loans that have been given back in the same run. Pure.

use siltstone_store::SeriesId;
use siltstone_store::manifest::Manifest;
use std::collections::BTreeSet;

/// The series that this one borrows of.
pub(super) fn lenders_of(manifest: &Manifest) -> BTreeSet<SeriesId> {
    manifest.lenders.iter().map(|lender| lender.series).collect()
}

/// Puts series into order, in turns, by their ids and those of their lenders: in one turn no series borrows of another, and of
/// those after it none borrows of one in it. Where some borrow in a circle, the first of these has a turn of its own.
pub(super) fn in_order<T>(mut left: Vec<T>, ties: impl Fn(&T) -> (SeriesId, &BTreeSet<SeriesId>)) -> Vec<Vec<T>> {
    let mut turns = Vec::new();
    while !left.is_empty() {
        let lenders: BTreeSet<SeriesId> = left.iter().flat_map(|item| ties(item).1).copied().collect();
        let (mut turn, mut rest): (Vec<T>, Vec<T>) =
            left.into_iter().partition(|item| !lenders.contains(&ties(item).0));
        if turn.is_empty() {
            rest.sort_by_key(|item| ties(item).0);
            turn.push(rest.remove(0));
        }
        turns.push(turn);
        left = rest;
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Turns of these series, each with those it borrows of.
    fn turns(series: &[(u8, &[u8])]) -> Vec<Vec<u8>> {
        let id = |of: u8| SeriesId([of; 16]);
        let items =
            series.iter().map(|(of, lenders)| (*of, id(*of), lenders.iter().map(|of| id(*of)).collect())).collect();
        let turns = in_order(items, |(_, series, lenders): &(u8, SeriesId, BTreeSet<SeriesId>)| (*series, lenders));
        turns.into_iter().map(|turn| turn.into_iter().map(|(of, ..)| of).collect()).collect()
    }

    #[test]
    fn borrowers_come_before_their_lenders() {
        assert_eq!(turns(&[]), Vec::<Vec<u8>>::new());
        assert_eq!(turns(&[(1, &[]), (2, &[]), (3, &[9])]), [[1, 2, 3]]);
        assert_eq!(turns(&[(1, &[]), (2, &[1]), (3, &[1, 2]), (4, &[])]), [vec![3, 4], vec![2], vec![1]]);
    }

    #[test]
    fn a_circle_is_opened_at_its_first() {
        assert_eq!(turns(&[(1, &[2]), (2, &[1]), (3, &[1])]), [vec![3], vec![1], vec![2]]);
        assert_eq!(turns(&[(1, &[3]), (2, &[1]), (3, &[2])]), [vec![1], vec![3], vec![2]]);
    }
}

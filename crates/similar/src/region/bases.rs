//! Choosing the chunks that a region is encoded against.
//!
//! Every member brings its candidates, best first. What is taken: of all members the first candidates, then the second
//! ones, ...; within a rank those with the most weight first, where a candidate of several members has the sum of its
//! weights; one that does not fit into the bound any more is passed over. In which order: by number, which is mostly
//! how they follow one another in the base's version, so that a copy that goes on into the next base goes on in the
//! next member, at the same distance.
//!
//! Measured on the data of `mod.rs` in regions of 256 KiB, candidates from the version before, bytes at
//! [`Level::Fast`](super::Level::Fast) (November 2026):
//! 1. **Two candidates** for each member, room for one and a half times the text: with one 7 / 66 / 17 / 27 % more;
//!    chunks have other borders now, and what follows a border lies in the next base. A third: same / same / 5 % less /
//!    same. Less room: a member's only base may be missing, and that costs most.
//! 2. **The order** matters little: in the members' order 1 / 0 / 1 / 0 % more, the best candidates last 0 / 0 / 1 / 0
//!    %, all of it reversed 2 / 1 / 4 / 2 %.
//!
//! Cost: sorting the candidates.

use alloc::vec::Vec;

/// A chunk that resembles a member, or lies where its older version lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<N> {
    /// Number of the chunk: whatever names a stored one.
    pub number: N,
    /// Length of the chunk, bytes.
    pub bytes: usize,
    /// Gain expected of the chunk, in any unit that is the same for all offers: features in common, bytes in common.
    pub weight: u32,
}

/// Chooses the bases for members with these candidates, at most `bytes_max` bytes of them, ascending: the order for
/// [`RegionEncoder::encode`](super::RegionEncoder::encode). None twice; without candidates none.
///
/// # Complexity
/// O(n log n) of n candidates.
pub fn choose_bases<N: Copy + Ord>(members: &[&[Offer<N>]], bytes_max: usize) -> Vec<N> {
    let mut offers = ranked(members);
    let mut room = bytes_max;
    offers.retain(|offer| {
        let fits = offer.bytes <= room;
        if fits {
            room -= offer.bytes;
        }
        fits
    });
    let mut bases: Vec<N> = offers.into_iter().map(|offer| offer.number).collect();
    bases.sort_unstable();
    bases
}

/// An offer with its best rank, where it was made first, and what all members that make it expect of it there.
struct Ranked<N> {
    number: N,
    bytes: usize,
    rank: usize,
    member: usize,
    weight: u64,
}

/// Each offered chunk once, the most promising first.
fn ranked<N: Copy + Ord>(members: &[&[Offer<N>]]) -> Vec<Ranked<N>> {
    let mut all: Vec<Ranked<N>> = Vec::new();
    for (member, offers) in members.iter().enumerate() {
        all.extend(offers.iter().enumerate().map(|(rank, offer)| {
            let Offer { number, bytes, weight } = *offer;
            Ranked { number, bytes, rank, member, weight: weight.into() }
        }));
    }
    all.sort_unstable_by_key(|offer| (offer.number, offer.rank, offer.member));
    all.dedup_by(|again, first| {
        let same = again.number == first.number;
        if same && again.rank == first.rank {
            first.weight += again.weight;
        }
        same
    });
    all.sort_unstable_by_key(|offer| (offer.rank, core::cmp::Reverse(offer.weight), offer.member, offer.number));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;

    fn offer(number: u64, bytes: usize, weight: u32) -> Offer<u64> {
        Offer { number, bytes, weight }
    }

    #[test]
    fn every_base_comes_once_and_in_order() {
        let (one, two) = ([offer(7, 10, 5), offer(3, 10, 4)], [offer(3, 10, 9), offer(8, 10, 1)]);
        assert_eq!(choose_bases(&[&one, &two], 100), [3, 7, 8]);
        assert_eq!(choose_bases::<u64>(&[&[], &[]], 100), []);
        assert_eq!(choose_bases::<u64>(&[], 100), []);
    }

    #[test]
    fn first_candidates_go_before_second_ones() {
        let (one, two) = ([offer(1, 10, 1), offer(2, 10, 9)], [offer(3, 10, 1)]);
        assert_eq!(choose_bases(&[&one, &two], 20), [1, 3]);
        assert_eq!(choose_bases(&[&one, &two], 30), [1, 2, 3]);
    }

    #[test]
    fn a_base_of_many_members_outweighs_one_of_one() {
        let (one, two, three) = ([offer(1, 10, 12)], [offer(2, 10, 7)], [offer(2, 10, 7)]);
        assert_eq!(choose_bases(&[&one, &two, &three], 10), [2]);
        assert_eq!(choose_bases(&[&one, &two], 10), [1]);
    }

    #[test]
    fn what_does_not_fit_makes_room_for_what_does() {
        let offers = [[offer(1, 50, 9)], [offer(2, 60, 8)], [offer(3, 40, 7)]];
        let members: Vec<&[Offer<u64>]> = offers.iter().map(<[_; 1]>::as_slice).collect();
        assert_eq!(choose_bases(&members, 100), [1, 3]);
        assert_eq!(choose_bases(&members, 0), vec![]);
    }
}

//! Which chunks a region is encoded against.
//!
//! Every member brings its candidates, best first. What is taken: of all members the first candidates, then the second ones, ..., within
//! a rank those with the most weight first, a candidate of several members having the sum of its weights there; one that no longer fits into the
//! bound is passed over. How it is ordered: as the members that brought them, so that a copy which goes on into the next base
//! goes on in the next member, at the same distance; see the measurements in `mod.rs`.
//!
//! Cost: sorting the candidates.

use alloc::vec::Vec;

/// A chunk that resembles a member, or lies where its older version lay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer<N> {
    /// Its number: whatever names a stored chunk.
    pub number: N,
    /// Its length, bytes.
    pub bytes: usize,
    /// How much is expected of it, in any unit that is the same for all offers: features in common, bytes in common.
    pub weight: u32,
}

/// The bases for members with these candidates, at most `bytes_max` bytes of them, in the order for
/// [`RegionEncoder::encode`](super::RegionEncoder::encode). None twice; without candidates none.
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
    offers.sort_unstable_by_key(|offer| (offer.member, offer.rank, offer.number));
    offers.into_iter().map(|offer| offer.number).collect()
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

//! A map from keys to serials: a table of buckets, each a cache line, in which the newest posting takes the place of
//! the oldest.

use alloc::vec;
use alloc::vec::Vec;

/// Postings in a bucket: what 64 bytes hold.
const PLACES: usize = 10;
/// Places of a bucket that are taken when all that was promised is there: with keys spread at random few buckets
/// overflow then.
const PLACES_TAKEN: usize = 6;

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    serials: [u32; PLACES],
    tags: [u16; PLACES],
    /// Number of places that hold a posting.
    taken: u8,
    /// Place of the next posting.
    next: u8,
}

#[derive(Clone, Debug)]
pub(super) struct Postings {
    buckets: Vec<Bucket>,
}

impl Postings {
    /// Creates a table with room for `count` postings.
    pub(super) fn new(count: usize) -> Self {
        Self { buckets: vec![Bucket::default(); count.div_ceil(PLACES_TAKEN).max(1)] }
    }

    pub(super) fn push(&mut self, key: u64, serial: u32) {
        let (bucket, tag) = self.place(key);
        let bucket = &mut self.buckets[bucket];
        let place = usize::from(bucket.next);
        (bucket.serials[place], bucket.tags[place]) = (serial, tag);
        bucket.taken = bucket.taken.max(bucket.next + 1);
        bucket.next = if place + 1 == PLACES { 0 } else { bucket.next + 1 };
    }

    /// The serials of the postings that seem to have this key.
    pub(super) fn of(&self, key: u64) -> impl Iterator<Item = u32> + '_ {
        let (bucket, tag) = self.place(key);
        let bucket = &self.buckets[bucket];
        let taken = usize::from(bucket.taken);
        bucket
            .serials
            .iter()
            .zip(&bucket.tags)
            .take(taken)
            .filter(move |(_, other)| **other == tag)
            .map(|(serial, _)| *serial)
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.buckets.len() * size_of::<Bucket>()
    }

    /// Bucket and tag of a key, from different bits of its hash.
    #[allow(clippy::cast_possible_truncation)]
    fn place(&self, key: u64) -> (usize, u16) {
        let hash = mixed(key);
        let bucket = ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize;
        (bucket, hash as u16)
    }
}

/// Spreads keys that differ in few bits over all 64 (the finaliser of `SplitMix64`; Steele, Lea and Flood, OOPSLA
/// 2014).
fn mixed(key: u64) -> u64 {
    let key = (key ^ key >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let key = (key ^ key >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    key ^ key >> 31
}

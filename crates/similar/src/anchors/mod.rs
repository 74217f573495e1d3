//! Anchors: hashes of stretches of bytes at places that content chooses, so that equal stretches have equal anchors
//! wherever they stand.
//!
//! A sketch tells how much of two chunks is alike. It finds nothing where the parts of a chunk went to several others,
//! for none of these is like the whole. Anchors find each of them, and how much of the chunk is in each.
//!
//! Source: Manber, Finding Similar Files in a Large File System (USENIX 1994), section 2: 50 bytes at one place in 256
//! there. Here an anchor is the hash of the [`ANCHOR_BYTES`] that end at a place that a sketcher samples
//! ([`OdessPlus::sketch_with_anchors`](crate::sketch::OdessPlus::sketch_with_anchors)), at one place in 128 unless it
//! has another rate.
//!
//! Measured with 20 data folders of `PostgreSQL` and 25 tar archives, old chunks encoded against new ones: bytes of all
//! that is stored, against two candidates of sketches alone (AMD EPYC, November 2026; sizes of one and the same vary by
//! one in a hundred):
//! 1. **Candidates**: five by anchors, then two by sketches, take 12 % less (folders) and 7 % less (archives); three by
//!    anchors 11 and 7 %. Without sketches archives take 1 % more than with them.
//! 2. **Rate**: with three candidates anchors of one place in 256 take 10 and 7 % less, of one in 512 6 and 7 %. With
//!    one candidate of those it is 3 and 3 %, with two 6 and 7 %, with eight 5 and 7 %.
//!
//! Cost: sketching with anchors runs at half the speed of sketching (3.0 and 5.8 GB/s, AMD EPYC, AVX2, one core).
//! Adding them to an index runs at 4.9 GB/s (an archive of sources) and 4.3 (one of 600 MB of `PostgreSQL`), looking
//! them up, five candidates each, at 1.8 and 5.8; by the slots alone it was 7.6 and 5.0, and 6.7 and 10.6 (Intel,
//! AVX-512, one core, medians of three in turns, 2026-11).

mod index;

pub use index::{AnchorIndex, Cover};

/// Bytes that an anchor is of.
pub const ANCHOR_BYTES: usize = 64;

/// The anchor of the bytes that end with the one at `place`; `None` if there are too few.
pub(crate) fn anchor_at(data: &[u8], place: usize) -> Option<u32> {
    let begin = (place + 1).checked_sub(ANCHOR_BYTES)?;
    let words = data.get(begin..=place)?.chunks_exact(8).filter_map(<[u8]>::first_chunk);
    let mix = |hash: u64, word: &[u8; 8]| {
        let mixed = (hash ^ u64::from_le_bytes(*word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        mixed ^ (mixed >> 32)
    };
    #[allow(clippy::cast_possible_truncation)] // The low half has taken in the high one.
    Some(words.fold(0, mix) as u32)
}

//! Fingerprints of many chunks at once are those of the crate `blake3`, chunk by chunk, on every instruction set.

use crate::common::{cases, random_bytes};
use proptest::prelude::*;
use siltstone_chunk::{Fingerprinter, Isa};

/// Other lengths the forms of one instruction set may have trouble with are all below this.
const LENGTH_MAX: usize = 2200;

fn check(key: &[u8; 32], chunks: &[&[u8]]) {
    let want: Vec<[u8; 32]> = chunks.iter().map(|chunk| *blake3::keyed_hash(key, chunk).as_bytes()).collect();
    for isa in Isa::available() {
        let mut found = vec![[7; 32]];
        Fingerprinter::new(key, isa).fingerprints(chunks, &mut found);
        assert!(found[0] == [7; 32] && found.len() == 1 + want.len(), "{isa}: what was there stays");
        let wrong = found[1..].iter().zip(&want).position(|(found, want)| found != want);
        assert_eq!(wrong.map(|i| (i, chunks[i].len())), None, "{isa}: of {} chunks, number and length", chunks.len());
    }
}

/// Slices of these lengths, at places of all alignments.
fn slices(data: &[u8], lengths: impl Iterator<Item = usize>) -> Vec<&[u8]> {
    lengths.enumerate().map(|(i, length)| &data[i * 37 % 101..][..length]).collect()
}

#[test]
fn every_length_up_to_two_leaves_and_more() {
    let data = random_bytes("lengths", LENGTH_MAX + 101);
    check(&[3; 32], &slices(&data, 0..=LENGTH_MAX));
    check(&[3; 32], &slices(&data, (0..=LENGTH_MAX).rev()));
}

#[test]
fn equal_lengths_fill_the_lanes_or_leave_one_idle() {
    let data = random_bytes("equal", 40_000);
    for length in [0, 1, 63, 64, 65, 1023, 1024, 1025, 2048, 4095, 8192, 8193] {
        for count in [15, 16, 17, 31, 32, 33] {
            check(&[1; 32], &slices(&data, std::iter::repeat_n(length, count)));
        }
    }
}

#[test]
fn lengths_around_whole_leaves() {
    let data = random_bytes("leaves", (40 << 10) + 200);
    let around = |leaves: usize| [leaves * 1024 - 1, leaves * 1024, leaves * 1024 + 1];
    check(&[9; 32], &slices(&data, (1..=40).flat_map(around)));
}

#[test]
fn chunks_larger_than_a_batch_between_small_ones() {
    let data = random_bytes("large", (5 << 20) + 200);
    let lengths = [10, 5 << 20, 3000, 0, (2 << 20) + 1, 2 << 20, 100, (1 << 20) + 7, 1 << 20, 8192, 8192];
    check(&[5; 32], &slices(&data, lengths.into_iter()));
    check(&[5; 32], &slices(&data, std::iter::repeat_n(lengths, 3).flatten()));
}

#[test]
fn no_chunk_has_no_fingerprint() {
    check(&[0; 32], &[]);
}

#[test]
fn the_best_is_right_too() {
    let data = random_bytes("best", 50_000);
    let chunks: Vec<&[u8]> = data.chunks(7000).collect();
    let mut found = Vec::new();
    Fingerprinter::best(&[2; 32]).fingerprints(&chunks, &mut found);
    assert!(found.iter().zip(&chunks).all(|(found, chunk)| *found == *blake3::keyed_hash(&[2; 32], chunk).as_bytes()));
}

fn any_count() -> impl Strategy<Value = usize> {
    prop_oneof![Just(0), Just(1), Just(15), Just(16), Just(17), Just(100), 2..60usize]
}

proptest! {
    #![proptest_config(cases(100))]

    #[test]
    fn any_list_of_any_lengths(
        key: [u8; 32],
        lengths in any_count().prop_flat_map(|count| prop::collection::vec(0..20_000usize, count)),
        few in any_count().prop_flat_map(|count| prop::collection::vec(0..200usize, count)),
    ) {
        let data = random_bytes("any", 20_101);
        check(&key, &slices(&data, lengths.into_iter().chain(few)));
    }
}

#[cfg(feature = "references")]
mod references {
    use siltstone_chunk::Reference;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().fold(String::new(), |hex, byte| hex + &format!("{byte:02x}"))
    }

    /// FIPS 180-4's examples; BLAKE3's and XXH3's own for no bytes.
    #[test]
    fn references_give_their_published_values() {
        for (name, data, want) in [
            ("sha1", "abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha256", "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("xxh3-128", "", "99aa06d3014798d86001c324468d497f"),
            ("blake3", "", "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        ] {
            let found = Reference::by_name(name).expect("a known name").hash(data.as_bytes());
            assert_eq!(hex(&found), format!("{want:0<64}"), "{name}");
        }
        assert_eq!(Reference::by_name("md5"), None);
    }
}

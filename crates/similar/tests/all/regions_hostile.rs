//! Payloads that are damaged, or made to mislead, give an error or a text of the length that was asked for: never more.

use crate::common::pairs::{cases, random_bytes};
use crate::common::regions::{Region, any_region, encoder};
use proptest::prelude::*;
use siltstone_similar::region::{Codec, Level, REGION_BYTES_MAX, RegionDecoder, RegionError};

/// A region of text, and its payload.
fn known() -> (Region, Vec<u8>) {
    let base: Vec<u8> = (0..20_000).flat_map(|line| format!("line {line} of a file\n").into_bytes()).collect();
    let text = [&base[..100_000], b"something new", &base[100_000..200_000]].concat();
    let region = Region { bases: vec![base], members: vec![text] };
    let (codec, payload) = region.encoded(&mut encoder(Level::Fast));
    assert_eq!(codec, Codec::Zstd);
    (region, payload)
}

fn is_bad(result: &Result<Vec<u8>, RegionError>) -> bool {
    matches!(result, Err(RegionError::BadFrame { .. } | RegionError::WrongLength { .. }))
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_changed_payload_gives_an_error_or_as_many_bytes(
        region in any_region(),
        changes in prop::collection::vec((any::<u16>(), any::<u8>()), 1..4),
        cut in any::<u16>(),
    ) {
        let (codec, mut payload) = region.encoded(&mut encoder(Level::Fast));
        let text_bytes = region.text().len();
        for (at, value) in changes {
            let at = usize::from(at) % payload.len().max(1);
            if let Some(byte) = payload.get_mut(at) {
                *byte = value;
            }
        }
        for payload in [&payload[..], &payload[..usize::from(cut) % (payload.len() + 1)]] {
            if let Ok(text) = region.decoded(codec, payload, text_bytes) {
                prop_assert_eq!(text.len(), text_bytes);
            }
        }
    }

    #[test]
    fn no_payload_makes_the_decoder_panic(payload in prop::collection::vec(any::<u8>(), 0..300), text_bytes in 0usize..3000) {
        let region = Region { bases: vec![vec![5; 100]], members: Vec::new() };
        for codec in [Codec::Raw, Codec::Zstd] {
            if let Ok(text) = region.decoded(codec, &payload, text_bytes) {
                prop_assert_eq!(text.len(), text_bytes);
            }
        }
    }
}

#[test]
fn every_cut_payload_is_refused() {
    let (region, payload) = known();
    for length in 0..payload.len() {
        let result = region.decoded(Codec::Zstd, &payload[..length], region.text().len());
        assert!(is_bad(&result), "{length}");
    }
    assert!(is_bad(&region.decoded(Codec::Zstd, &[&payload[..], &[0; 9]].concat(), region.text().len())));
}

#[test]
fn a_text_of_another_length_is_refused() {
    let (region, payload) = known();
    let text_bytes = region.text().len();
    for asked in [0, 1, text_bytes - 1, text_bytes + 1, 2 * text_bytes, 50 << 20] {
        assert!(is_bad(&region.decoded(Codec::Zstd, &payload, asked)), "{asked}");
        assert!(is_bad(&region.decoded(Codec::Raw, &payload, asked)), "{asked}");
    }
}

#[test]
fn bases_that_are_missing_or_others_do_not_give_the_text() {
    let (region, payload) = known();
    let text = region.text();
    let base = &region.bases[0];
    for bases in [vec![], vec![base[..base.len() / 2].to_vec()], vec![random_bytes("other", base.len())]] {
        let other = Region { bases, members: Vec::new() };
        assert_ne!(other.decoded(Codec::Zstd, &payload, text.len()), Ok(text.clone()));
    }
    let none = Region { bases: Vec::new(), members: Vec::new() };
    assert!(is_bad(&none.decoded(Codec::Zstd, &payload, text.len())));
}

/// Frame header, then one block of 128 KiB of a byte, which repeats as often as the last block is not reached.
fn bomb(window: u8, blocks: usize) -> Vec<u8> {
    let mut frame = vec![0, window];
    for block in 0..blocks {
        let header = u32::try_from(((128 << 10) << 3) | (1 << 1) | usize::from(block + 1 == blocks)).expect("24 bits");
        frame.extend_from_slice(&header.to_le_bytes()[..3]);
        frame.push(7);
    }
    frame
}

#[test]
fn a_bomb_stops_at_the_length_that_was_asked_for() {
    let window_of_128_kib = 7 << 3;
    let region = Region { bases: Vec::new(), members: Vec::new() };
    assert_eq!(region.decoded(Codec::Zstd, &bomb(window_of_128_kib, 8), 1 << 20), Ok(vec![7; 1 << 20]));
    for blocks in [9, 8000] {
        assert!(is_bad(&region.decoded(Codec::Zstd, &bomb(window_of_128_kib, blocks), 1 << 20)));
    }
}

#[test]
fn a_window_beyond_bases_and_text_is_refused() {
    let window = |log: u8| (log - 10) << 3;
    let region = Region { bases: vec![vec![7; 1 << 20]], members: Vec::new() };
    for (log, fits) in [(20, true), (21, true), (22, false), (31, false), (41, false)] {
        let result = region.decoded(Codec::Zstd, &bomb(window(log), 8), 1 << 20);
        assert_eq!(result.is_ok(), fits, "{log}: {result:?}");
    }
}

#[test]
fn what_is_too_long_is_refused_before_memory_is_asked_for() {
    let mut decoder = RegionDecoder::new();
    for text_bytes in [REGION_BYTES_MAX + 1, usize::MAX] {
        let result = decoder.decode(Codec::Zstd, &[&[1; 100]], &[0; 20], text_bytes);
        assert!(matches!(result, Err(RegionError::TooLong { .. })), "{result:?}");
    }
    assert!(decoder.decode(Codec::Zstd, &[&[1; 100]], &[0; 20], REGION_BYTES_MAX - 99).is_err());
}

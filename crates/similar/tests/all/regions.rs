//! Regions come back as they were, and their payloads are the same on every instruction set.

use crate::common::pairs::{cases, random_bytes};
use crate::common::regions::{Region, any_region, encoder};
use proptest::prelude::*;
use siltstone_similar::Isa;
use siltstone_similar::region::{Codec, Level, RegionDecoder, RegionEncoder};

/// Bytes that look random, with a byte changed every so many, which differ from call to call.
fn changed(data: &[u8], every: usize) -> Vec<u8> {
    let mut changed = data.to_vec();
    for (count, byte) in changed.iter_mut().step_by(every).enumerate() {
        *byte ^= u8::try_from(count % 251 + 1).expect("below 256");
    }
    changed
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_region_comes_back(region in any_region()) {
        for level in [Level::Fast, Level::Zstd(1), Level::Zstd(3), Level::Zstd(7)] {
            let (codec, payload) = region.encoded(&mut encoder(level));
            let text = region.text();
            prop_assert_eq!(region.decoded(codec, &payload, text.len()), Ok(text), "{:?}", level);
        }
    }

    #[test]
    fn every_instruction_set_writes_the_same_payload(region in any_region()) {
        let with = |isa| region.encoded(&mut RegionEncoder::with_isa(Level::Fast, isa).expect("a level"));
        let scalar = with(Isa::SCALAR);
        for isa in Isa::available() {
            prop_assert_eq!(&with(isa), &scalar, "{}", isa);
        }
    }

    #[test]
    fn what_was_encoded_before_does_not_matter(regions in prop::collection::vec(any_region(), 1..6)) {
        for level in [Level::Fast, Level::Zstd(1), Level::Zstd(3), Level::Zstd(6), Level::Zstd(13)] {
            let (mut used, mut decoder) = (encoder(level), RegionDecoder::new());
            for region in &regions {
                let (codec, payload) = region.encoded(&mut used);
                prop_assert_eq!(&(codec, payload.clone()), &region.encoded(&mut encoder(level)), "{:?}", level);
                let text = region.text();
                prop_assert_eq!(decoder.decode(codec, &region.bases(), &payload, text.len()), Ok(text.as_slice()));
            }
        }
    }
}

/// Blocks end inside copies, inside what differs, and where the text ends.
#[test]
fn regions_of_several_blocks_come_back() {
    let base = random_bytes("base", 900_000);
    for every in [1, 3, 7, 20, 100, 5000] {
        for text_bytes in [1, 7, 8, 9, 4095, 131_071, 131_072, 131_073, 262_144, 700_000] {
            let members =
                changed(&base[50_000..50_000 + text_bytes], every).chunks(40_000).map(<[u8]>::to_vec).collect();
            let region = Region { bases: base.chunks(123_456).map(<[u8]>::to_vec).collect(), members };
            for level in [Level::Fast, Level::Zstd(1), Level::Zstd(3)] {
                let (codec, payload) = region.encoded(&mut encoder(level));
                assert_eq!(
                    region.decoded(codec, &payload, text_bytes),
                    Ok(region.text()),
                    "{every} {text_bytes} {level:?}"
                );
            }
        }
    }
}

#[test]
fn every_level_finds_all_of_a_long_prefix() {
    let base = random_bytes("base", 1 << 20);
    let region = Region { bases: vec![base.clone()], members: vec![changed(&base, 1000)] };
    for level in (1..=19).map(Level::Zstd).chain([Level::Fast]) {
        let (codec, payload) = region.encoded(&mut encoder(level));
        assert!(codec == Codec::Zstd && payload.len() < 12_000, "{level:?}: {}", payload.len());
    }
}

#[test]
fn a_frame_is_one_that_any_zstd_decoder_reads() {
    let base = random_bytes("base", 300_000);
    let region = Region { bases: vec![base.clone()], members: vec![changed(&base, 500)] };
    for level in [Level::Fast, Level::Zstd(3)] {
        let (_, payload) = region.encoded(&mut encoder(level));
        let framed = [&zstd_safe::MAGICNUMBER.to_le_bytes()[..], &payload].concat();
        let (mut text, mut decoder) = (vec![0; 300_000], zstd_safe::DCtx::create());
        decoder.ref_prefix(&base).expect("a prefix");
        assert_eq!(decoder.decompress(&mut text[..], &framed), Ok(300_000));
        assert_eq!(text, region.text(), "{level:?}");
    }
}

#[test]
fn noise_is_stored_raw_unless_its_base_is_known() {
    let noise = random_bytes("noise", 100_000);
    for level in [Level::Fast, Level::Zstd(1), Level::Zstd(6), Level::Zstd(19)] {
        let alone = Region { bases: vec![random_bytes("other", 100_000)], members: vec![noise.clone()] };
        assert_eq!(alone.encoded(&mut encoder(level)), (Codec::Raw, noise.clone()), "{level:?}");
        let known = Region { bases: vec![noise.clone()], members: vec![noise.clone()] };
        let (codec, payload) = known.encoded(&mut encoder(level));
        assert!(codec == Codec::Zstd && payload.len() < 50, "{level:?}: {}", payload.len());
    }
}

#[test]
fn an_empty_region_is_empty() {
    for members in [vec![], vec![vec![]]] {
        let region = Region { bases: vec![vec![7; 1000]], members };
        for level in [Level::Fast, Level::Zstd(3)] {
            assert_eq!(region.encoded(&mut encoder(level)), (Codec::Raw, Vec::new()));
            assert_eq!(region.decoded(Codec::Raw, &[], 0), Ok(Vec::new()));
        }
    }
}

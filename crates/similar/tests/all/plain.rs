//! Plain regions are frames that any zstd decoder reads, and the ones that zstd itself would write.

use crate::common::pairs::{any_data, cases, random_bytes};
use proptest::prelude::*;
use siltstone_similar::region::{
    Codec, Level, REGION_BYTES_MAX, RegionDecoder, RegionEncoder, RegionError, ZSTD_LEVEL_DEFAULT, plain,
};
use zstd_safe::{CCtx, CParameter};

fn encoded(encoder: &mut RegionEncoder, text: &[u8]) -> (Codec, Vec<u8>) {
    let mut payload = vec![1, 2, 3];
    let codec = encoder.encode_plain(&[text], &mut payload).expect("memory");
    encoder.check_plain(codec, &payload, &[text]).expect("a sound payload");
    (codec, payload)
}

fn decoded(codec: Codec, payload: &[u8], text_bytes: usize) -> Result<Vec<u8>, RegionError> {
    let mut text = vec![9; 5];
    RegionDecoder::new().decode_plain(codec, payload, text_bytes, &mut text).map(|()| text)
}

fn lines(count: u32) -> Vec<u8> {
    (0..count).flat_map(|line| format!("line {line} of a file\n").into_bytes()).collect()
}

/// The frame that zstd makes with these parameters.
fn by_zstd(parameters: &[CParameter], text: &[u8]) -> Vec<u8> {
    let (mut context, mut frame) = (CCtx::create(), Vec::with_capacity(zstd_safe::compress_bound(text.len())));
    for parameter in parameters {
        context.set_parameter(*parameter).expect("a known parameter");
    }
    context.compress2(&mut frame, text).expect("a frame");
    frame
}

#[test]
fn a_payload_is_the_frame_that_zstd_writes_at_that_level() {
    let text = lines(20_000);
    for level in [-7, 1, 3, 9, 19] {
        let frame = by_zstd(&[CParameter::CompressionLevel(level)], &text);
        assert_eq!(encoded(&mut RegionEncoder::fast(level), &text), (Codec::Zstd, frame.clone()), "{level}");
        assert_eq!(plain::compress(&text, level), Ok(frame), "{level}");
    }
    assert_eq!(plain::compress(&text, ZSTD_LEVEL_DEFAULT), Ok(by_zstd(&[CParameter::CompressionLevel(2)], &text)));
}

/// Words of one length in no order: they compress to about a half.
fn words(count: usize) -> Vec<u8> {
    let numbers = random_bytes("words", 2 * count);
    let number = |pair: &[u8]| u32::from(u16::from_le_bytes([pair[0], pair[1]]) % 4096);
    let word = |pair| format!("{:06x} ", number(pair).wrapping_mul(2_654_435_761) >> 8);
    numbers.chunks_exact(2).flat_map(|pair| word(pair).into_bytes()).collect()
}

#[test]
fn at_the_default_level_is_searched_thoroughly_what_is_short_or_compresses_well() {
    let window = CParameter::WindowLog(21);
    let quick = [CParameter::CompressionLevel(2), window, CParameter::HashLog(16), CParameter::MinMatch(6)];
    let thorough = [CParameter::CompressionLevel(3), window];
    let (short, long) = (words(10_000), words(20_000));
    let mut encoder = RegionEncoder::new(Level::Fast).expect("a level");
    for (parameters, others, text) in [
        (&quick[..], &thorough[..], &long),
        (&thorough, &quick, &lines(20_000)),
        (&thorough, &quick, &short),
        (&quick, &thorough, &long),
    ] {
        let frame = by_zstd(parameters, text);
        assert_ne!(frame, by_zstd(others, text), "a text that tells them apart");
        assert_eq!(encoded(&mut encoder, text), (Codec::Zstd, frame.clone()));
        assert_eq!(encoded(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), text), (Codec::Zstd, frame));
    }
}

#[test]
fn noise_and_nothing_are_stored_raw() {
    let noise = random_bytes("noise", 10_000);
    for text in [noise, Vec::new()] {
        let (codec, payload) = encoded(&mut RegionEncoder::fast(3), &text);
        assert_eq!((codec, &payload), (Codec::Raw, &text));
        assert_eq!(decoded(codec, &payload, text.len()), Ok(text));
    }
}

#[test]
fn a_wrong_length_is_refused_before_anything_is_allocated() {
    let text = lines(1000);
    let (_, payload) = encoded(&mut RegionEncoder::fast(3), &text);
    for wrong in [0, text.len() - 1, text.len() + 1, REGION_BYTES_MAX] {
        let mut out = Vec::new();
        for codec in [Codec::Zstd, Codec::Raw] {
            let result = RegionDecoder::new().decode_plain(codec, &payload, wrong, &mut out);
            assert!(matches!(result, Err(RegionError::WrongLength { .. })), "{wrong}: {result:?}");
            assert_eq!(out.capacity(), 0);
        }
    }
    let result = decoded(Codec::Zstd, &payload, REGION_BYTES_MAX + 1);
    assert!(matches!(result, Err(RegionError::TooLong { .. })), "{result:?}");
}

#[test]
fn members_are_encoded_and_checked_as_the_text_that_they_are() {
    let (text, mut encoder) = (lines(3000), RegionEncoder::fast(3));
    let (codec, whole) = encoded(&mut encoder, &text);
    let (head, tail) = text.split_at(text.len() / 3);
    let mut payload = Vec::new();
    assert_eq!(encoder.encode_plain(&[head, &[], tail], &mut payload).expect("memory"), codec);
    assert_eq!(payload, whole);
    for (codec, payload) in [(codec, &payload), (Codec::Raw, &text)] {
        assert_eq!(encoder.check_plain(codec, payload, &[head, tail]), Ok(()));
        for others in [&[tail, head][..], &[head], &[head, tail, b"x"], &[head, &tail[1..]], &[]] {
            assert_eq!(encoder.check_plain(codec, payload, others), Err(RegionError::CheckFailed));
        }
    }
}

#[test]
fn a_payload_of_another_text_fails_its_check() {
    let (text, mut encoder) = (lines(1000), RegionEncoder::fast(3));
    let other = [&text[..], b"x"].concat();
    let (codec, mut payload) = encoded(&mut encoder, &text);
    assert_eq!(encoder.check_plain(codec, &payload, &[&other]), Err(RegionError::CheckFailed));
    assert_eq!(encoder.check_plain(Codec::Raw, &text, &[&other]), Err(RegionError::CheckFailed));
    payload.truncate(payload.len() / 2);
    assert_eq!(encoder.check_plain(codec, &payload, &[&text]), Err(RegionError::CheckFailed));

    let (bases, mut delta) = ([&text[..]], Vec::new());
    let codec = encoder.encode(&bases, &[&other], &mut delta);
    assert_eq!(encoder.check(codec, &bases, &delta, &[&text, b"x"]), Ok(()));
    assert_eq!(encoder.check(codec, &bases, &delta, &[&text]), Err(RegionError::CheckFailed));
}

#[test]
fn a_long_text_before_does_not_matter_and_is_looked_back_over() {
    let mut noise = vec![0; 5 << 20];
    blake3::Hasher::new().finalize_xof().fill(&mut noise);
    let (long, short) = ([&noise[..], &noise].concat(), lines(2000));
    for level in [ZSTD_LEVEL_DEFAULT, 12] {
        let mut encoder = RegionEncoder::fast(level);
        let (_, payload) = encoded(&mut encoder, &long);
        let is_found = payload.len() < noise.len() * 11 / 10;
        assert_eq!(is_found, level != ZSTD_LEVEL_DEFAULT, "level {level}: {} bytes", payload.len());
        let again = encoded(&mut encoder, &short);
        assert_eq!(again, encoded(&mut RegionEncoder::fast(level), &short), "level {level}");
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn any_text_comes_back_whatever_was_encoded_before(texts in prop::collection::vec(any_data(5000), 1..5)) {
        let (mut encoder, mut decoder, mut out) = (RegionEncoder::fast(2), RegionDecoder::new(), Vec::new());
        for text in &texts {
            let (codec, payload) = encoded(&mut encoder, text);
            prop_assert_eq!(&(codec, payload.clone()), &encoded(&mut RegionEncoder::fast(2), text));
            prop_assert_eq!(decoder.decode_plain(codec, &payload, text.len(), &mut out), Ok(()));
            prop_assert_eq!(&out, text);
        }
    }

    #[test]
    fn no_frame_makes_the_decoder_panic_or_overrun(
        head in prop::sample::select(vec![vec![], vec![0x28, 0xb5, 0x2f, 0xfd]]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
        text_bytes in 0usize..2000,
    ) {
        if let Ok(text) = decoded(Codec::Zstd, &[head, rest].concat(), text_bytes) {
            prop_assert_eq!(text.len(), text_bytes);
        }
    }
}

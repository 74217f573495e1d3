//! Every method against its definition, read word for word: every hash is computed anew from its window. Every form
//! against the scalar one, on every kind of data, at every length and alignment.
#![allow(clippy::cast_possible_truncation, clippy::many_single_char_names)]

use crate::common::{any_data, cases, forms, random_bytes};
use proptest::prelude::*;
use siltstone_similar::Isa;
use siltstone_similar::sketch::{
    Grouping, METHODS, Method, OdessPlus, Rate, SampleSketch, Shape, Sketch, SketchError, Sketcher, Windows, by_name,
};

const POLYNOMIAL: u128 = 1 << 64 | 0x243F_6A88_85A3_0907;

/// The remainder of the window as a polynomial, bit by bit; its low half.
fn rabin(window: &[u8]) -> u32 {
    window.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1)).fold(0, |remainder: u128, bit| {
        let longer = remainder << 1 | u128::from(bit);
        if longer >> 64 == 1 { longer ^ POLYNOMIAL } else { longer }
    }) as u32
}

fn gear(window: &[u8]) -> u32 {
    let mut table = vec![0; 1024];
    blake3::Hasher::new().update(b"siltstone gear table").finalize_xof().fill(&mut table);
    let entry = |byte: u8| u32::from_le_bytes(table[4 * usize::from(byte)..][..4].try_into().unwrap());
    window.iter().rev().enumerate().fold(0, |sum: u32, (k, byte)| sum.wrapping_add(entry(*byte) << k))
}

/// Follows the last line of the definition; the window's 32 bytes are whole.
fn swpr(windows: usize, window: &[u8]) -> u128 {
    let bits = 128 / windows;
    let subwindow = |j: usize| {
        let end = 32 - windows * j;
        let number = window[end - windows..end].iter().fold(0, |number, byte| number << 8 | u128::from(*byte));
        if windows == 8 { (0..4).map(|part| number >> (16 * part) & 0xFFFF).sum() } else { number }
    };
    (0..bits / 4).map(|j| subwindow(j) << (4 * j)).sum::<u128>() % (1 << bits)
}

/// The functions: factor and summand.
fn functions(count: usize) -> Vec<(u32, u32)> {
    let mut output = vec![0; 8 * count];
    blake3::Hasher::new().update(b"siltstone transforms").finalize_xof().fill(&mut output);
    let number = |bytes: &[u8]| u32::from_le_bytes(bytes.try_into().unwrap());
    output.chunks(8).map(|pair| (number(&pair[..4]) | 1, number(&pair[4..]))).collect()
}

/// The extremes of all functions over these hashes.
fn extremes(hashes: &[u32], features: usize, greatest: bool) -> Option<Vec<u32>> {
    let of = |(m, a): (u32, u32)| {
        let values =
            hashes.iter().map(move |hash| ((u64::from(m) * u64::from(*hash) + u64::from(a)) % (1 << 32)) as u32);
        if greatest { values.max() } else { values.min() }
    };
    functions(features).into_iter().map(of).collect()
}

/// Returns the `bytes` bytes that end with byte j of a chunk, zeros before its begin.
fn window(chunk: &[u8], j: usize, bytes: usize) -> Vec<u8> {
    [vec![0; bytes].as_slice(), &chunk[..=j]].concat()[j + 1..].to_vec()
}

/// Sketches by the definition of the method of that name.
fn definition(name: &str, rate: u32, features: usize, chunk: &[u8]) -> Option<Vec<u32>> {
    let all = |bytes: usize| (0..chunk.len()).map(move |j| window(chunk, j, bytes));
    let odess_plus = |windows: usize| {
        let boundary = (1 << (128 / windows)) - 1 - (1 << (128 / windows)) / u128::from(rate);
        let places = 16 * (chunk.len().saturating_sub(1) / 16);
        let hashes = all(32).take(places).map(|window| swpr(windows, &window));
        let sample: Vec<u32> = hashes.filter(|hash| *hash >= boundary).map(|hash| hash as u32).collect();
        extremes(&sample, features, false)
    };
    match name {
        "ntransform" => extremes(&all(48).map(|w| rabin(&w)).collect::<Vec<_>>(), features, true),
        "ntransform-32" => extremes(&all(32).map(|w| rabin(&w)).collect::<Vec<_>>(), features, false),
        "finesse" => {
            let part = chunk.len() / features;
            (0..features).map(|k| (k * part..(k + 1) * part).map(|j| rabin(&window(chunk, j, 48))).max()).collect()
        }
        "odess-plus" => odess_plus(4),
        "odess-plus-2" => odess_plus(2),
        "odess-plus-8" => odess_plus(8),
        _ => {
            let mask =
                [(32, 0x4003_0300), (64, 0x4003_0340), (128, 0x4003_0341), (256, 0x4203_0341), (512, 0x4203_2341)]
                    .into_iter()
                    .find_map(|(one_in, mask)| (one_in == rate).then_some(mask));
            let hashes = (0..chunk.len()).map(|j| gear(&chunk[(j + 1).saturating_sub(32)..=j]));
            extremes(&hashes.filter(|hash| hash & mask.unwrap() == 0).collect::<Vec<_>>(), features, false)
        }
    }
}

fn rate_of(name: &str) -> u32 {
    name.strip_prefix("odess-").and_then(|rate| rate.parse().ok()).unwrap_or(128)
}

fn assert_is_defined_so(method: &Method, shape: Shape, chunk: &[u8]) {
    let want = definition(method.name, rate_of(method.name), shape.features(), chunk);
    for isa in forms(method) {
        let found = method.make(shape, isa).sketch(chunk);
        assert_eq!(found.map(|sketch| sketch.features().to_vec()), want, "{} {isa}, {}", method.name, chunk.len());
    }
}

#[test]
fn methods_are_defined_so_on_simple_data() {
    let shape = Shape::new(7, 1).unwrap();
    let mut chunks: Vec<Vec<u8>> = (0..70).map(|len| random_bytes("short", len)).collect();
    chunks.extend([random_bytes("long", 3000), vec![0; 700], vec![255; 700], b"abc".repeat(300)]);
    for method in METHODS {
        for chunk in &chunks {
            assert_is_defined_so(method, shape, chunk);
        }
    }
}

/// Every kind of Odess+.
fn rates_and_windows() -> impl Iterator<Item = (Rate, Windows)> {
    let windows = [Windows::Two, Windows::Four, Windows::Eight];
    Rate::ALL.into_iter().flat_map(move |rate| windows.map(|windows| (rate, windows)))
}

#[test]
fn forms_agree_at_every_length_and_alignment() {
    let data = random_bytes("forms", 1000);
    for (rate, windows) in rates_and_windows() {
        let make = |isa| OdessPlus::new("odess-plus", windows, rate, Shape::DEFAULT, isa);
        let scalar = make(Isa::SCALAR);
        for start in [0, 1, 2, 3, 15, 16, 17, 31, 63, 64, 65] {
            for len in (0..=400).chain([511, 512, 513, 700]) {
                let chunk = &data[start..start + len];
                let want = scalar.sketch(chunk);
                for isa in Isa::available() {
                    let found = make(isa).sketch(chunk);
                    assert_eq!(found, want, "{isa}, {rate:?}, {windows:?}, {len} from {start}");
                }
            }
        }
    }
}

/// The sketch and the anchors of a chunk.
fn with_anchors(sketcher: &OdessPlus, chunk: &[u8]) -> (Option<Sketch>, Vec<u32>) {
    let mut anchors = Vec::new();
    (sketcher.sketch_with_anchors(chunk, &mut anchors), anchors)
}

#[test]
fn equal_bytes_have_equal_anchors_wherever_they_stand() {
    for (rate, windows) in rates_and_windows() {
        let sketcher = OdessPlus::new("odess-plus", windows, rate, Shape::DEFAULT, Isa::best());
        let (moved, other) = (random_bytes("moved", 64 << 10), random_bytes("other", 10_007));
        let (_, anchors) = with_anchors(&sketcher, &moved);
        let (least, most) = (moved.len() * 6 / 10, moved.len() * 14 / 10);
        // Hashes of 16 bits are not as even.
        let least = if windows == Windows::Eight { least / 3 } else { least };
        let per_anchor = rate.one_in() as usize;
        assert!((least..most).contains(&(anchors.len() * per_anchor)), "{rate:?}, {windows:?}: {}", anchors.len());
        let (_, found) = with_anchors(&sketcher, &[&other[..], &moved, &other].concat());
        let found: std::collections::HashSet<u32> = found.into_iter().collect();
        assert!(anchors.iter().all(|anchor| found.contains(anchor)), "{rate:?}, {windows:?}");
        let (_, of_other) = with_anchors(&sketcher, &random_bytes("third", 64 << 10));
        assert!(of_other.iter().all(|anchor| !found.contains(anchor)), "{rate:?}, {windows:?}");
    }
}

#[test]
fn the_first_bytes_have_no_anchor() {
    let sketcher = OdessPlus::new("odess-plus", Windows::Four, Rate::OneIn32, Shape::DEFAULT, Isa::best());
    for len in 0..=80 {
        assert_eq!(with_anchors(&sketcher, &random_bytes("short", len)).1, [], "{len} bytes");
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn methods_are_defined_so(features in 1..=32usize, chunk in any_data(600)) {
        for method in METHODS {
            assert_is_defined_so(method, Shape::new(features, 1).unwrap(), &chunk);
        }
    }

    #[test]
    fn forms_agree(features in 1..=32usize, data in any_data(9000), start in 0..70usize) {
        let chunk = data.get(start..).unwrap_or_default();
        let shape = Shape::new(features, features).unwrap();
        for (rate, windows) in rates_and_windows() {
            let make = |isa| OdessPlus::new("odess-plus", windows, rate, shape, isa);
            let want = with_anchors(&make(Isa::SCALAR), chunk);
            for isa in Isa::available() {
                prop_assert_eq!(&with_anchors(&make(isa), chunk), &want, "{}, {:?}, {:?}", isa, rate, windows);
                prop_assert_eq!(make(isa).sketch(chunk), want.0, "{}, {:?}, {:?}", isa, rate, windows);
            }
        }
    }

    #[test]
    fn samples_are_seen_by_every_form_in_any_order(hashes: Vec<u64>, features in 1..=32usize) {
        let low: Vec<u32> = hashes.iter().map(|hash| *hash as u32).collect();
        let want = extremes(&low, features, false);
        for isa in Isa::available() {
            let mut sketch = SampleSketch::with_isa(Shape::new(features, 1).unwrap(), isa);
            let mut found = |hashes: &mut dyn Iterator<Item = &u64>| {
                hashes.for_each(|hash| sketch.add(*hash));
                sketch.finish().map(|sketch| sketch.features().to_vec())
            };
            prop_assert_eq!(&found(&mut hashes.iter()), &want, "{}", isa);
            prop_assert_eq!(&found(&mut hashes.iter().rev().chain(&hashes)), &want, "{}, again", isa);
            prop_assert_eq!(found(&mut [].iter()), None);
        }
    }

    #[test]
    fn a_longer_sketch_begins_with_the_shorter(features in 1..32usize, chunk in any_data(3000)) {
        for method in METHODS.iter().filter(|method| method.name != "finesse") {
            let features_of = |count| {
                let sketch = method.make(Shape::new(count, 1).unwrap(), Isa::best()).sketch(&chunk);
                sketch.map(|sketch| sketch.features()[..features].to_vec())
            };
            prop_assert_eq!(features_of(features), features_of(32), "{}", method.name);
        }
    }
}

/// Names the methods that have a sketch of this chunk.
fn sketched(chunk: &[u8]) -> Vec<&'static str> {
    let has = |method: &&Method| method.make(Shape::DEFAULT, Isa::best()).sketch(chunk).is_some();
    METHODS.iter().filter(has).map(|method| method.name).collect()
}

#[test]
fn short_chunks_have_the_sketches_that_are_documented() {
    assert!(sketched(&[]).is_empty(), "nothing has no sketch");
    assert_eq!(sketched(&[7]), ["ntransform", "ntransform-32"], "any byte ends a window; no part of twelve has one");
    let random = random_bytes("short", 33);
    for len in [12, 31, 32, 33] {
        assert_eq!(sketched(&random[..len])[..3], ["ntransform", "ntransform-32", "finesse"], "{len}");
    }
    let every = OdessPlus::new("odess-plus", Windows::Four, Rate::OneIn32, Shape::DEFAULT, Isa::best());
    assert!((0..1000).all(|seed| every.sketch(&random_bytes(&seed.to_string(), 16)).is_none()), "no places");
    assert!((0..1000).any(|seed| every.sketch(&random_bytes(&seed.to_string(), 17)).is_some()), "sixteen places");
}

#[test]
fn equal_bytes_have_one_sketch_whatever_their_number_or_none() {
    for byte in 0..=255 {
        for method in METHODS {
            let sketcher = method.make(Shape::DEFAULT, Isa::best());
            let of = |len: usize| sketcher.sketch(&vec![byte; len]);
            assert_eq!(of(4000), of(9000), "{}: {byte}", method.name);
        }
    }
    let zeros = sketched(&[0; 4000]);
    assert!(
        zeros.iter().all(|name| !name.starts_with("odess-plus")),
        "a window of zeros has the least hash: {zeros:?}"
    );
}

#[test]
fn equal_chunks_have_equal_sketches_and_near_ones_like_ones() {
    let chunk = random_bytes("near", 16 << 10);
    let near = [&chunk[..9000], b"seven b", &chunk[9000..]].concat();
    let other = random_bytes("other", 16 << 10);
    for method in METHODS {
        let sketcher = by_name(method.name, Shape::DEFAULT).unwrap();
        let of = |chunk: &[u8]| sketcher.sketch(chunk).unwrap().grouped(sketcher.grouping());
        assert_eq!(of(&chunk), of(&chunk.clone()));
        // An insertion moves the borders of Finesse's parts; hashes of 16 bits meet by chance.
        let least = if method.name == "finesse" { 6 } else { 11 };
        assert!(of(&chunk).matches(&of(&near)) >= least, "{}", method.name);
        if method.name != "odess-plus-8" {
            assert!(of(&chunk).matches(&of(&other)) <= 1, "{}", method.name);
        }
    }
}

#[test]
fn super_features_stand_for_their_features() {
    let sketch = |features: [u32; 12]| Sketch::from_features(&features, Shape::DEFAULT);
    let one = sketch([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]).super_features(Grouping::Consecutive);
    let other = sketch([1, 2, 3, 4, 5, 6, 0, 8, 9, 10, 11, 12]).super_features(Grouping::Consecutive);
    assert_eq!((one[0], one[2]), (other[0], other[2]));
    assert_ne!(one[1], other[1]);
}

#[test]
fn shapes_that_make_no_groups_are_refused() {
    for (features, super_features) in [(0, 1), (12, 0), (12, 5), (33, 3), (1000, 1)] {
        assert_eq!(Shape::new(features, super_features), Err(SketchError::BadShape { features, super_features }));
    }
}

//! `GearNc2` against its definition, read word for word: every hash is summed anew from its 64 bytes, in floating point
//! where the product computes in integers.

use crate::common::{cases, lengths, random_bytes, sizes};
use proptest::prelude::*;
use siltstone_chunk::{Chunker, GearNc2, Sizes};

struct Oracle {
    sizes: Sizes,
    table: Vec<u64>,
}

impl Oracle {
    fn new(sizes: Sizes, key: &[u8; 32]) -> Self {
        let mut output = vec![0; 256 * 8];
        blake3::Hasher::new_keyed(key).update(b"siltstone gear-nc2 table").finalize_xof().fill(&mut output);
        let table = output.chunks(8).map(|word| u64::from_le_bytes(word.try_into().unwrap())).collect();
        Self { sizes, table }
    }

    fn hash(&self, window: &[u8]) -> u64 {
        assert_eq!(window.len(), 64);
        (0..64).fold(0u64, |sum, k| sum.wrapping_add(self.table[usize::from(window[63 - k])] << k))
    }

    fn cut(&self, data: &[u8]) -> usize {
        let (min, expected, max) = (self.sizes.min(), self.sizes.expected(), self.sizes.max());
        let normal = normal_as_written(min, expected);
        for length in min..=max {
            if length > data.len() {
                return data.len();
            }
            let threshold = if length < normal { 1u128 << 62 } else { 1u128 << 66 } / expected as u128;
            if u128::from(self.hash(&data[length - 64..length])) < threshold {
                return length;
            }
        }
        max.min(data.len())
    }
}

#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn normal_as_written(min: usize, expected: usize) -> usize {
    let (m, e) = (min as f64, expected as f64);
    let z = (3.0 * e - 4.0 * m) / (27.0 * e + 4.0 * m);
    (m + 8.0 * e * z * (1.0 + z * z / 3.0) + 1e-9).floor() as usize
}

fn oracle_lengths(oracle: &Oracle, mut data: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while !data.is_empty() {
        let length = oracle.cut(data);
        lengths.push(length);
        data = &data[length..];
    }
    lengths
}

#[test]
fn equals_the_oracle_at_every_length_around_the_limits() {
    let (sizes, key) = (sizes(64, 96, 192), [3; 32]);
    let (chunker, oracle) = (GearNc2::new(sizes, &key), Oracle::new(sizes, &key));
    let data = random_bytes("limits", 1024);
    for start in 0..256 {
        for len in (0..80).chain(180..=260) {
            let slice = &data[start..start + len];
            assert_eq!(chunker.cut(slice), oracle.cut(slice), "start {start}, length {len}");
        }
    }
}

#[test]
fn real_average_is_the_expected_size() {
    let data = random_bytes("average", 48 << 20);
    for (min, expected, max) in [
        (8 << 10, 16 << 10, 64 << 10),
        (4 << 10, 16 << 10, 64 << 10),
        (64, 1 << 10, 16 << 10),
        (2 << 10, 5000, 20_000),
        (3000, 4000, 8000),
        (4 << 10, 8 << 10, 32 << 10),
    ] {
        let count = lengths(&GearNc2::new(sizes(min, expected, max), &[1; 32]), &data).len();
        let average = data.len() / count;
        let off = average.abs_diff(expected as usize) * 1000 / expected as usize;
        assert!(off < 30, "expected {expected}, found {average} with min {min}, max {max}");
    }
}

#[test]
fn constant_bytes_are_cut_into_equal_chunks() {
    let chunker = GearNc2::new(Sizes::DEFAULT, &[9; 32]);
    for byte in 0..=255 {
        let found = lengths(&chunker, &vec![byte; 256 << 10]);
        let (last, whole) = found.split_last().expect("not empty");
        assert!(whole.iter().all(|length| *length == found[0]) && *last <= found[0]);
    }
}

#[test]
fn cuts_find_themselves_again_after_an_insertion() {
    let chunker = GearNc2::new(Sizes::DEFAULT, &[5; 32]);
    let data = random_bytes("insertion", 4 << 20);
    let ends = |lengths: Vec<usize>| {
        lengths
            .into_iter()
            .scan(0, |end, length| {
                *end += length;
                Some(*end)
            })
            .collect::<Vec<_>>()
    };
    let before = ends(lengths(&chunker, &data));
    let edited = [&data[..1 << 20], b"seven b", &data[1 << 20..]].concat();
    let after = ends(lengths(&chunker, &edited));
    let kept = before.iter().filter(|end| after.contains(end) || after.contains(&(**end + 7))).count();
    assert!(before.len() - kept <= 6, "{kept} of {} cuts kept", before.len());
}

#[test]
fn another_key_cuts_elsewhere() {
    let data = random_bytes("keys", 1 << 20);
    let cut = |key| lengths(&GearNc2::new(Sizes::DEFAULT, &[key; 32]), &data);
    assert_ne!(cut(1), cut(2));
}

/// Small sizes that keep the rules, reaching their borders.
fn any_sizes() -> impl Strategy<Value = Sizes> {
    (64u32..400)
        .prop_flat_map(|min| (Just(min), (min * 4).div_ceil(3)..min * 6))
        .prop_flat_map(|(min, expected)| (expected * 2..expected * 6).prop_map(move |max| sizes(min, expected, max)))
}

/// Random, constant, periodic and few-valued bytes, mixed.
fn any_data() -> impl Strategy<Value = Vec<u8>> {
    let part = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..3000),
        (any::<u8>(), 0..5000usize).prop_map(|(byte, len)| vec![byte; len]),
        (prop::collection::vec(any::<u8>(), 1..90), 1..60usize).prop_map(|(period, times)| period.repeat(times)),
        prop::collection::vec(0u8..2, 0..3000),
    ];
    prop::collection::vec(part, 0..4).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(cases(200))]

    #[test]
    fn equals_the_oracle(sizes in any_sizes(), key: [u8; 32], data in any_data()) {
        let (chunker, oracle) = (GearNc2::new(sizes, &key), Oracle::new(sizes, &key));
        prop_assert_eq!(lengths(&chunker, &data), oracle_lengths(&oracle, &data));
    }

    #[test]
    fn all_but_the_last_chunk_keep_the_limits(sizes in any_sizes(), key: [u8; 32], data in any_data()) {
        let found = lengths(&GearNc2::new(sizes, &key), &data);
        prop_assert_eq!(found.iter().sum::<usize>(), data.len());
        if let Some((last, whole)) = found.split_last() {
            prop_assert!(whole.iter().all(|length| (sizes.min()..=sizes.max()).contains(length)));
            prop_assert!((1..=sizes.max()).contains(last));
        }
    }

    #[test]
    fn a_cut_depends_on_nothing_beyond_the_chunk(sizes in any_sizes(), data in any_data(), other in any_data()) {
        let chunker = GearNc2::new(sizes, &[7; 32]);
        let cut = chunker.cut(&data);
        if cut < data.len() {
            prop_assert_eq!(chunker.cut(&[&data[..cut], &other, &vec![0; sizes.max()]].concat()), cut);
        }
    }
}

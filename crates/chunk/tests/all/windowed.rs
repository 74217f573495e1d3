//! `lagged`, `swpr` and `aes16` against their definitions, read word for word: every hash is computed anew from its
//! window.
// What the definitions say in real numbers is computed in them.
#![allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap
)]
#![allow(clippy::many_single_char_names)]

use crate::common::{EMULATED, algorithm, any_data, any_sizes, cases, lengths, random_bytes};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use proptest::prelude::*;
use siltstone_chunk::{Chunker, Isa, Lagged, Sample, Sizes};

/// The hash of the definition, as a fraction of 2^64, for the bytes before a cut; `None` if they are no candidate.
type Hash = Box<dyn Fn(&[u8]) -> Option<u64>>;

/// Makes the oracle of one algorithm.
type Make = fn(Sizes, &[u8; 32]) -> Oracle;

struct Oracle {
    window: usize,
    filter_bits: u32,
    hash: Hash,
}

fn expand(key: &[u8; 32], context: &str, len: usize) -> Vec<u8> {
    let mut output = vec![0; len];
    blake3::Hasher::new_keyed(key).update(context.as_bytes()).finalize_xof().fill(&mut output);
    output
}

fn lagged(sizes: Sizes, key: &[u8; 32]) -> Oracle {
    let apply = |columns: &[u8], byte: u8| {
        columns.iter().enumerate().filter(|(j, _)| byte >> j & 1 == 1).fold(0, |sum, (_, column)| sum ^ column)
    };
    let output = expand(key, "siltstone lagged", 1 << 14);
    let mut groups = output.chunks(8).map(<[u8]>::to_vec);
    let matrices: Vec<Vec<u8>> = (0..6)
        .map(|_| groups.by_ref().find(|columns| (1..=255).all(|byte| apply(columns, byte) != 0)).unwrap())
        .collect();
    let target = groups.by_ref().map(|group| group[0]).find(|byte| *byte != 0).unwrap();
    let mut keys: Vec<u64> = groups.take(5).map(|group| u64::from_le_bytes(group.try_into().unwrap())).collect();
    keys[4] |= 1;
    let filter_bits = ((sizes.expected() / 4) as f64).log2().floor().min(8.0) as u32;
    let filter = ((1u32 << filter_bits) - 1) as u8;
    let fold = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        (product & u128::from(u64::MAX)) as u64 ^ (product >> 64) as u64
    };
    let hash = move |window: &[u8]| {
        let h4 = |end: usize| (0..4).fold(0, |sum, k| sum ^ apply(&matrices[k], window[end - 1 - k]));
        let h8 = |end: usize| h4(end) ^ apply(&matrices[4], h4(end - 4));
        let h = h8(32) ^ apply(&matrices[5], h8(24));
        let w: Vec<u64> =
            (0..4).map(|i| u64::from_le_bytes(window[8 * i..8 * i + 8].try_into().unwrap()) ^ keys[i]).collect();
        ((h ^ target) & filter == 0).then(|| fold(fold(w[0], w[1]) ^ fold(w[2], w[3]), keys[4]))
    };
    Oracle { window: 32, filter_bits, hash: Box::new(hash) }
}

fn swpr(_: Sizes, key: &[u8; 32]) -> Oracle {
    let odd = u32::from_le_bytes(expand(key, "siltstone swpr", 4).try_into().unwrap()) | 1;
    let hash = move |window: &[u8]| {
        let word = |j: usize| u32::from_be_bytes(window[32 - 4 * j..36 - 4 * j].try_into().unwrap());
        let sum = (0..8).fold(0u32, |sum, j| sum.wrapping_add(word(j) << (4 * j)));
        Some(u64::from(sum.wrapping_mul(odd)) << 32)
    };
    Oracle { window: 36, filter_bits: 0, hash: Box::new(hash) }
}

fn aes16(_: Sizes, key: &[u8; 32]) -> Oracle {
    let key: [u8; 16] = expand(key, "siltstone aes16", 16).try_into().unwrap();
    let cipher = Aes128::new(&key.into());
    let hash = move |window: &[u8]| {
        let block: [u8; 16] = window.try_into().unwrap();
        let mut block = block.into();
        cipher.encrypt_block(&mut block);
        Some(u64::from_le_bytes(block[..8].try_into().unwrap()))
    };
    Oracle { window: 16, filter_bits: 0, hash: Box::new(hash) }
}

impl Oracle {
    fn lengths(&self, sizes: Sizes, swpr: bool, mut data: &[u8]) -> Vec<usize> {
        let mut lengths = Vec::new();
        while !data.is_empty() {
            let length = self.cut(sizes, swpr, data);
            lengths.push(length);
            data = &data[length..];
        }
        lengths
    }

    fn cut(&self, sizes: Sizes, swpr: bool, data: &[u8]) -> usize {
        let min = sizes.min().max(self.window);
        let [strict, loose] = [62, 66].map(|shift: u32| {
            let threshold = (1u128 << (shift + self.filter_bits)) / sizes.expected() as u128;
            let threshold = u64::try_from(threshold).unwrap_or(u64::MAX);
            if swpr { threshold >> 32 << 32 } else { threshold }
        });
        let normal = self.normal(sizes, min, strict as f64, loose as f64);
        let end = data.len().min(sizes.max());
        (min..=end)
            .find(|length| {
                let threshold = if *length < normal { strict } else { loose };
                (self.hash)(&data[length - self.window..*length]).is_some_and(|hash| hash < threshold)
            })
            .unwrap_or(end)
    }

    /// The least length at which the mean of the definition reaches the expected size, with the library's exponential.
    fn normal(&self, sizes: Sizes, min: usize, strict: f64, loose: f64) -> usize {
        let scale = 2f64.powi(64 + self.filter_bits as i32);
        let until = |p: f64, n: f64| (1.0 - (-p * n).exp()) / p;
        let max = sizes.max().min(1 << 30);
        let mean = |normal: usize| {
            let (before, after) = ((normal - min) as f64, (max - normal) as f64);
            let [strict, loose] = [strict / scale, loose / scale];
            min as f64 + until(strict, before) + (-strict * before).exp() * until(loose, after)
        };
        let lengths: Vec<usize> = (min..=max.min(min + 8 * sizes.expected())).collect();
        min + lengths.partition_point(|length| mean(*length) < sizes.expected() as f64)
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn windowed_hashes_equal_their_definitions(sizes in any_sizes(), key: [u8; 32], data in any_data(3000)) {
        for (name, oracle) in [("lagged", lagged as Make), ("swpr", swpr), ("aes16", aes16)] {
            let found = lengths(&algorithm(name).make(sizes, &key, Isa::SCALAR), &data);
            prop_assert_eq!(found, oracle(sizes, &key).lengths(sizes, name == "swpr", &data), "{}", name);
        }
    }

    #[test]
    fn samples_are_the_candidates_of_the_whole_chunk(sizes in any_sizes(), key: [u8; 32], data in any_data(3000)) {
        let oracle = lagged(sizes, &key);
        for isa in Isa::available() {
            let chunker = Lagged::new(sizes, &key, isa);
            let mut samples = Vec::new();
            let cut = chunker.cut_sampling(&data, |sample| samples.push(sample));
            prop_assert_eq!(cut, chunker.cut(&data));
            let candidates = |chunk: &[u8]| -> Vec<Sample> {
                let hash = |end: usize| (oracle.hash)(&chunk[end - 32..end]).map(|hash| Sample { end, hash });
                (32..=chunk.len()).filter_map(hash).collect()
            };
            prop_assert_eq!(&samples, &candidates(&data[..cut]), "{}", isa);
            // However large a chunk is.
            for chunk in [&data[..cut], &data] {
                samples.clear();
                chunker.samples(chunk, |sample| samples.push(sample));
                prop_assert_eq!(&samples, &candidates(chunk), "{}, of {}", isa, chunk.len());
            }
        }
    }
}

#[test]
fn cuts_find_themselves_again_after_an_insertion() {
    let data = random_bytes("insertion", 4 << 20);
    let edited = [&data[..1 << 20], b"seven b", &data[1 << 20..]].concat();
    for name in ["lagged", "swpr", "aes16"] {
        let chunker = algorithm(name).make(Sizes::DEFAULT, &[5; 32], Isa::best());
        let ends = |data: &[u8]| {
            let mut end = 0;
            let add = |length| {
                end += length;
                end
            };
            lengths(&chunker, data).into_iter().map(add).collect::<Vec<usize>>()
        };
        let (before, after) = (ends(&data), ends(&edited));
        let kept = before.iter().filter(|end| after.contains(end) || after.contains(&(**end + 7))).count();
        assert!(before.len() - kept <= 6, "{name}: {kept} of {} cuts kept", before.len());
    }
}

#[test]
fn another_key_cuts_elsewhere() {
    let data = random_bytes("keys", 1 << 20);
    for algorithm in siltstone_chunk::ALGORITHMS {
        let cut = |key| lengths(&algorithm.make(Sizes::DEFAULT, &[key; 32], Isa::best()), &data);
        assert_eq!(cut(1) != cut(2), algorithm.keyed, "{}", algorithm.name);
    }
}

#[test]
fn constant_bytes_are_cut_into_equal_chunks() {
    for name in ["lagged", "swpr", "aes16"] {
        for byte in (0..=255).step_by(if EMULATED { 15 } else { 1 }) {
            let chunker = algorithm(name).make(Sizes::DEFAULT, &[9; 32], Isa::best());
            let found = lengths(&chunker, &vec![byte; 256 << 10]);
            let (last, whole) = found.split_last().expect("not empty");
            assert!(whole.iter().all(|length| *length == found[0]) && *last <= found[0], "{name} {byte}");
        }
    }
}

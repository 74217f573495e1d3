//! Tests of what parity heals and what it does not, and of every way in which its bytes can be wrong.

#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use super::*;
use crate::container::{CONTAINER_BYTES_MAX, ContainerBuilder, SealedContainer};
use crate::header::HEADER_BYTES;
use crate::ids::ChunkNumber;
use crate::region::{ChunkEntry, EncodedRegion, RegionEncoder, ZSTD_LEVEL_DEFAULT};
use crate::storage::{Damage, SimulatedDisk, Storage};
use crate::testing::{keys, noise};
use proptest::prelude::*;
use reed_solomon_simd::engine::DefaultEngine;
use reed_solomon_simd::rate::{HighRateEncoder, RateEncoder};
use std::collections::BTreeSet;

const SERIES: SeriesId = SeriesId([7; 16]);
const ID: ContainerId = ContainerId { lease: 3, serial: 5 };
const NAME: ObjectName = ObjectName::Parity(SERIES, ID);

fn protected(container: &[u8], percent: u8) -> Vec<u8> {
    protect(&keys(), SERIES, ID, container, percent).unwrap().unwrap()
}

/// Flips a bit in each of these shards.
fn flipped(container: &[u8], layout: Layout, shards: impl IntoIterator<Item = usize>) -> Vec<u8> {
    let mut damaged = container.to_vec();
    for shard in shards {
        let at = (shard * layout.shard() + shard % layout.shard()).min(damaged.len() - 1);
        damaged[at] ^= 1 << (shard % 8);
    }
    damaged
}

fn some_shards(among: usize, count: usize, seed: u64) -> BTreeSet<usize> {
    let mut chosen = BTreeSet::new();
    let mut step = seed;
    while chosen.len() < count.min(among) {
        step = step.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        chosen.insert(usize::try_from(step >> 33).unwrap() % among);
    }
    chosen
}

#[test]
fn a_full_container_is_cut_into_pages_and_a_small_one_has_a_page_of_parity() {
    let full = Layout::plan(16 << 20, 5).unwrap();
    assert_eq!((full.shard_bytes, full.shards(), full.parity_shards), (4096, 4096, 205));
    let small = Layout::plan(16 << 10, 2).unwrap();
    assert_eq!((small.shard_bytes, small.shards(), small.parity_shards), (256, 64, 16));
    let least = Layout::plan(144, 1).unwrap();
    assert_eq!((least.shards(), least.parity()), (3, 3), "as much again is all that can be lost");
    assert_eq!(Layout::plan(1 << 20, 0), None);
    let largest = Layout::plan(CONTAINER_BYTES_MAX, 100).unwrap();
    assert_eq!((largest.shards(), largest.parity()), (32768, 32768));
    assert!(HighRateEncoder::<DefaultEngine>::validate(32768, 32768, 4096).is_ok(), "the code reaches as far");
    assert_eq!(Layout::plan(CONTAINER_BYTES_MAX + 1, 100), None);
}

/// The code is part of the format: another one, or another version of it, would not heal what this one protected.
#[test]
fn the_code_is_the_one_of_the_format() {
    let object = protected(&noise(1, 10_000), 10);
    let digest = blake3::hash(&object[HEADER_BYTES..]).to_hex();
    assert_eq!(&digest[..16], "ce777a9de6730fc3");
}

#[test]
fn parity_that_is_whole_is_told_from_parity_that_is_not() {
    let container = noise(2, 5000);
    let object = protected(&container, 10);
    check(&keys(), SERIES, ID, &container, &object).unwrap();
    for at in (0..object.len()).step_by(7).chain([object.len() - 1]) {
        let mut flipped = object.clone();
        flipped[at] ^= 4;
        assert!(check(&keys(), SERIES, ID, &container, &flipped).is_err(), "byte {at}");
    }
    assert!(check(&keys(), SERIES, ID, &container[1..], &object).is_err());
    assert!(check(&keys(), SERIES, ID, &container, &object[..object.len() - 1]).is_err());
}

#[test]
fn a_flip_anywhere_in_parity_beside_one_in_the_container_is_healed() {
    let container = noise(3, 9000);
    let object = protected(&container, 10);
    for at in 0..object.len() {
        let (mut damaged, mut parity) = (container.clone(), object.clone());
        damaged[at * 31 % 9000] ^= 1;
        parity[at] ^= 1 << (at % 8);
        assert_eq!(code::mend(&NAME, &damaged, &parity).unwrap(), container, "byte {at} of the parity");
    }
}

#[test]
fn what_is_cut_short_missing_or_too_long_is_healed_as_far_as_parity_goes() {
    let container = noise(4, 300_000);
    let layout = Layout::plan(300_000, 10).unwrap();
    let object = protected(&container, 10);
    let healed = layout.parity() * layout.shard();
    assert_eq!(code::mend(&NAME, &container[..300_000 - healed / 2], &object).unwrap(), container);
    assert!(code::mend(&NAME, &container[..300_000 - healed - 1], &object).is_err());
    assert_eq!(code::mend(&NAME, &[&container[..], b"more"].concat(), &object).unwrap(), container);
    let small = noise(5, 4000);
    assert_eq!(code::mend(&NAME, &[], &protected(&small, 10)).unwrap(), small, "a small one is there twice");
    let cut = &object[..object.len() - layout.shard()];
    assert_eq!(
        code::mend(&NAME, &flipped(&container, layout, [1, 2]), cut).unwrap(),
        container,
        "of cut parity the rest"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn as_many_lost_shards_as_there_are_of_parity_are_healed_and_not_one_more(
        bytes in 1usize..400_000, shift in 0u32..10, percent in 1u8..=100, seed: u64,
    ) {
        let container = noise(seed, (bytes >> shift).max(1));
        let layout = Layout::plan(container.len() as u64, percent).unwrap();
        let object = protected(&container, percent);
        prop_assert_eq!(object.len() as u64, layout.object_bytes());
        let shards = some_shards(layout.shards(), layout.parity(), seed);
        prop_assert_eq!(&code::mend(&NAME, &flipped(&container, layout, shards), &object).unwrap(), &container);
        if layout.parity() < layout.shards() {
            let shards = some_shards(layout.shards(), layout.parity() + 1, seed);
            prop_assert!(code::mend(&NAME, &flipped(&container, layout, shards), &object).is_err());
        }
    }

    #[test]
    fn lost_shards_of_both_are_healed_while_enough_are_left(seed: u64, bytes in 100usize..300_000) {
        let container = noise(seed, bytes);
        let layout = Layout::plan(bytes as u64, 20).unwrap();
        let mut object = protected(&container, 20);
        let lost_parity = layout.parity() / 2;
        for shard in some_shards(layout.parity(), lost_parity, seed) {
            object[layout.parity_at(shard).start] ^= 1;
        }
        let damaged = flipped(&container, layout, some_shards(layout.shards(), layout.parity() - lost_parity, !seed));
        prop_assert_eq!(code::mend(&NAME, &damaged, &object).unwrap(), container);
    }

    #[test]
    fn hostile_layouts_are_refused_or_bounded(container: u64, shard: u32, parity: u32, small: bool, front: bool) {
        let layout = Layout {
            container_bytes: if small { container % 100_000 } else { container },
            shard_bytes: if small { shard % 5000 } else { shard },
            parity_shards: if small { parity % 100 } else { parity },
        };
        let mut object = vec![0; 20_000];
        let at = if front { HEADER_BYTES } else { 20_000 - 32 };
        object[at..at + 32].copy_from_slice(&layout.encode());
        if let Ok(found) = Layout::find(&NAME, &object) {
            prop_assert!(found.object_bytes() <= 3 * CONTAINER_BYTES_MAX, "{:?}", found);
            prop_assert!(code::mend(&NAME, &noise(1, 5000), &object).is_err());
        }
    }

    #[test]
    fn any_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(code::mend(&NAME, b"container", &bytes).is_err());
    }
}

/// A container of a few regions, as a writer stores it.
fn sealed(seed: u64) -> SealedContainer {
    let mut builder = ContainerBuilder::new(&keys(), SERIES, ID, ContainerKind::Data).unwrap();
    for region in 0..8 {
        let (number, plain) = (ChunkNumber(region), noise(seed + region, 9000));
        let fingerprint = keys().fingerprint_of(number, &plain);
        let chunk = ChunkEntry { number, fingerprint, length: 9000 };
        builder
            .push(&EncodedRegion::encode(&mut RegionEncoder::fast(ZSTD_LEVEL_DEFAULT), vec![chunk], &plain).unwrap())
            .unwrap();
    }
    builder.finish().unwrap()
}

fn stored(container: &SealedContainer) -> SimulatedDisk {
    let disk = SimulatedDisk::new();
    disk.put(&container.record.object_name(SERIES), &container.bytes).unwrap();
    disk.put(&NAME, &protected(&container.bytes, 5)).unwrap();
    disk.barrier().unwrap();
    disk
}

#[test]
fn a_damaged_container_is_healed_and_verified() {
    let container = sealed(1);
    let name = container.record.object_name(SERIES);
    for damage in
        [Damage::Flip { offset: 70, mask: 8 }, Damage::Truncate { bytes: container.record.object_bytes - 4000 }]
    {
        let disk = stored(&container);
        disk.damage(&name, damage);
        assert_eq!(heal(&disk, &keys(), SERIES, &container.record).unwrap(), container.bytes);
    }
}

/// Two copies of a repository that went on separately have containers of one name: the parity of one must not pass for
/// the other's.
#[test]
fn what_parity_restores_counts_only_if_it_is_the_recorded_container() {
    let (recorded, other) = (sealed(1), sealed(2));
    assert_eq!(recorded.record.object_bytes, other.record.object_bytes);
    let error = heal(&stored(&other), &keys(), SERIES, &recorded.record).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("parity/"), "{error}");
    let mut longer = recorded.record.clone();
    longer.object_bytes += 1 << 20;
    assert!(heal(&stored(&recorded), &keys(), SERIES, &longer).is_err());
}

#[test]
fn a_healer_names_what_it_healed_and_tries_the_hopeless_once() {
    let container = sealed(1);
    let disk = stored(&container);
    disk.damage(&container.record.object_name(SERIES), Damage::Flip { offset: 9000, mask: 1 });
    let healer = Healer::default();
    assert_eq!(healer.heal(&disk, &keys(), SERIES, &container.record).unwrap()[..], container.bytes[..]);
    assert_eq!(healer.healed(), [container.record.object_name(SERIES)]);
    disk.damage(&NAME, Damage::Delete);
    assert!(healer.heal(&disk, &keys(), SERIES, &container.record).is_some(), "it is kept");
    let hopeless = Healer::default();
    assert!(hopeless.heal(&disk, &keys(), SERIES, &container.record).is_none());
    disk.put(&NAME, &protected(&container.bytes, 5)).unwrap();
    disk.barrier().unwrap();
    assert!(hopeless.heal(&disk, &keys(), SERIES, &container.record).is_none() && hopeless.healed().is_empty());
}

#[test]
fn the_object_is_the_same_however_many_threads_make_it_and_holds_the_librarys_shards() {
    for bytes in [1, 5000, 70_000, 300_000, 1_500_000] {
        let container = noise(9, bytes);
        let layout = Layout::plan(container.len() as u64, 3).unwrap();
        let alone = super::code::encode(layout, &container, 1).unwrap();
        for threads in [2, 5] {
            assert!(super::code::encode(layout, &container, threads).unwrap() == alone, "{bytes} by {threads}");
        }
        let mut filled = container;
        filled.resize(layout.shards() * layout.shard(), 0);
        let (shards, engine) = (layout.shards(), DefaultEngine::new());
        let mut encoder = HighRateEncoder::new(shards, layout.parity(), layout.shard(), engine, None).unwrap();
        filled.chunks(layout.shard()).for_each(|shard| encoder.add_original_shard(shard).unwrap());
        for (at, expected) in encoder.encode().unwrap().recovery_iter().enumerate() {
            let place = layout.parity_at(at);
            let place = place.start - HEADER_BYTES..place.end - HEADER_BYTES;
            assert!(alone.get(place) == Some(expected), "{bytes}, parity shard {at}");
        }
    }
}

//! Moving containers made by hand: how often their regions are decoded, and what becomes of what is damaged.

use super::*;
use crate::chunks::testing::{Bench, noise};
use crate::delta::{Likeness, NewChunks, NewChunksRoom};
use crate::held::HeldBytes;
use crate::pack::DrySink;
use siltstone_store::container::ContainerKind;
use std::sync::atomic::Ordering;

/// The end of a chain of this many regions of four chunks; each region hangs on two chunks of each of the two behind
/// it, so that there are more ways down than atoms. `damage`: this region's fingerprints are not those of its chunks.
fn web(regions: u64, per_container: usize, damage: Option<u64>) -> Bench {
    let content = |number: u64| [noise(number % 4, 900), noise(number, 40)].concat();
    let mut bench = Bench::new((0..4 * regions).map(|number| (number, content(number))));
    let mut made = Vec::new();
    for region in 0..regions {
        let first = 4 * region;
        let behind = [first + 4, first + 7, first + 8, first + 10];
        let bases: Vec<u64> = behind.into_iter().filter(|base| *base < 4 * regions).collect();
        let mut region_made = bench.region(&[first, first + 1, first + 2, first + 3], &bases);
        if damage == Some(region) {
            region_made.chunks.iter_mut().for_each(|chunk| chunk.fingerprint.0[0] ^= 1);
        }
        made.push(region_made);
    }
    for regions in made.chunks(per_container) {
        bench.container(regions);
    }
    bench
}

fn class_of(rows: u32) -> Class {
    Class { kind: ContainerKind::Data, is_open: true, rows }
}

/// Takes what `class` keeps of all containers; gives what came of it, and how many regions were decoded.
fn take(
    bench: &Bench,
    is_exact: bool,
    class: impl Fn(ChunkNumber) -> Option<Class>,
) -> (Result<Repacked, Stopped>, u64) {
    let chunks = Arc::new(ChunkSource::new(&bench.repository, &bench.manifest));
    let (sink, resources) = (DrySink::new(9), Resources::default());
    let options = RepackOptions { effort: Effort::Usual(1), is_exact };
    std::thread::scope(|scope| {
        let mut repacker =
            Repacker::start(scope, &chunks, &bench.manifest, &sink, options, &resources).expect("threads");
        let tally = repacker.gatherer.tally.clone();
        let taken = (0..bench.manifest.containers.len()).try_for_each(|at| repacker.move_container(at, 0.0, &class));
        let repacked = taken.and_then(|()| repacker.finish());
        (repacked, tally.regions_decoded.load(Ordering::Relaxed))
    })
}

fn held(repacked: &Repacked) -> Vec<u64> {
    repacked.packed.containers.iter().flat_map(siltstone_store::container::ContainerRecord::numbers).collect()
}

#[test]
fn a_chain_is_taken_apart_with_every_region_decoded_once() {
    let regions = 60;
    let bench = web(regions, 7, None);
    for is_exact in [true, false] {
        // One of four is kept: neither layout copies that.
        let (repacked, decoded) = take(&bench, is_exact, |number| (number.0 % 4 == 1).then_some(class_of(0)));
        let mut held = held(&repacked.expect("all is sound"));
        held.sort_unstable();
        assert_eq!(held, (0..regions).map(|region| 4 * region + 1).collect::<Vec<_>>());
        assert_eq!(decoded, regions);
    }
    // Of the upper part alone nothing below is decoded twice either.
    let (repacked, decoded) = take(&bench, true, |number| (number.0 < 20 && number.0 % 4 != 1).then_some(class_of(0)));
    assert_eq!(held(&repacked.expect("all is sound")).len(), 15);
    assert_eq!(decoded, regions);
}

#[test]
fn deltas_are_split_by_class_where_layout_is_exact_and_else_copied_unless_most_of_them_goes() {
    let bench = web(30, 30, None);
    let by_half = |number: ChunkNumber| (number.0 % 4 < 2).then_some(class_of(u32::from(number.0.is_multiple_of(4))));
    let (repacked, decoded) = take(&bench, true, by_half);
    assert_eq!((repacked.expect("all is sound").packed.containers.len(), decoded), (2, 30));
    // The last region is no delta.
    let (repacked, decoded) = take(&bench, false, by_half);
    assert_eq!((held(&repacked.expect("all is sound")).len(), decoded), (60, 1));
}

#[test]
fn what_comes_of_it_does_not_depend_on_the_order_in_which_it_is_decoded() {
    let bench = web(40, 9, None);
    let runs = (0..4).map(|_| {
        let (repacked, _) =
            take(&bench, true, |number| (number.0 % 4 < 3).then(|| class_of(u32::from(number.0.is_multiple_of(3)))));
        let containers = repacked.expect("all is sound").packed.containers;
        containers.into_iter().map(|record| (record.chunks, record.object_bytes)).collect::<Vec<_>>()
    });
    let runs: Vec<_> = runs.collect();
    assert!(runs.windows(2).all(|two| two[0] == two[1]));
}

/// Pushes a chunk that may become a delta against these.
fn push_against(repacker: &mut Repacker<'_>, bench: &Bench, number: u64, bases: &[u64]) {
    let bytes = bench.contents[&number].clone();
    let (number, length) = (ChunkNumber(number), u32::try_from(bytes.len()).expect("short"));
    let fingerprint = bench.repository.keys().fingerprint_of(number, &bytes);
    let offer = |base: &u64| Offer { number: ChunkNumber(*base), bytes: bytes.len(), weight: 3 };
    let how = Move::Against(bases.iter().map(offer).collect());
    let chunk = ChunkEntry { number, fingerprint, length };
    repacker.push(class_of(0), chunk, bytes.into(), how, Standing::default()).expect("pushed");
}

#[test]
fn a_base_whose_text_is_at_hand_is_not_read() {
    let bench = web(30, 10, Some(10));
    let chunks = Arc::new(ChunkSource::new(&bench.repository, &bench.manifest));
    let (sink, resources) = (DrySink::new(9), Resources::default());
    let options = RepackOptions { effort: Effort::Usual(1), is_exact: false };
    let mut new = NewChunks::within(NewChunksRoom { similar_bytes: 1 << 20, text_bytes: 1 << 20 });
    for number in [41, 101] {
        let text = bench.contents[&number].clone();
        new.insert(ChunkNumber(number), &Likeness::of(&text), HeldBytes::Plain(text.into()));
    }
    let decoded = |bases: &[u64]| {
        std::thread::scope(|scope| {
            let repacker = Repacker::start(scope, &chunks, &bench.manifest, &sink, options, &resources);
            let mut repacker = repacker.expect("threads").with_texts(&new.texts);
            let tally = repacker.gatherer.tally.clone();
            push_against(&mut repacker, &bench, 5, bases);
            let links = repacker.finish().expect("encoded").links;
            (links[0].bases.clone(), tally.regions_decoded.load(Ordering::Relaxed))
        })
    };
    assert_eq!(decoded(&[41, 101]), (vec![ChunkNumber(41), ChunkNumber(101)], 0), "damage beside them is not met");
    assert_eq!(decoded(&[41, 117]), (vec![ChunkNumber(41), ChunkNumber(117)], 1), "the other one's region");
}

#[test]
fn what_hangs_on_damage_is_blamed_for_it_and_damage_is_named() {
    // Containers of ten regions; the second one's first is damaged.
    let bench = web(30, 10, Some(10));
    let keep = |number: ChunkNumber| (number.0 % 4 == 1).then_some(class_of(0));
    let stopped =
        take(&bench, true, |number| keep(number).filter(|_| number.0 < 40)).0.expect_err("its base is damaged");
    assert!(stopped.error.is_damage());
    assert_eq!(stopped.container, Some(0));
    let damaged = bench.manifest.containers[1].object_name(bench.manifest.series).to_string();
    assert!(stopped.error.to_string().contains(&damaged), "{}", stopped.error);
    // What does not hang on it can be taken.
    let (repacked, decoded) = take(&bench, true, |number| keep(number).filter(|_| number.0 >= 44));
    assert_eq!((held(&repacked.expect("sound")).len(), decoded), (19, 19));
}

#[test]
fn a_damaged_base_that_is_a_choice_is_left_out() {
    let bench = web(30, 10, Some(10));
    let chunks = Arc::new(ChunkSource::new(&bench.repository, &bench.manifest));
    let (sink, resources) = (DrySink::new(9), Resources::default());
    let options = RepackOptions { effort: Effort::Usual(1), is_exact: false };
    let repacked = std::thread::scope(|scope| {
        let mut repacker =
            Repacker::start(scope, &chunks, &bench.manifest, &sink, options, &resources).expect("threads");
        for (number, bases) in [(0, [41, 43]), (5, [42, 7]), (49, [101, 777_777])] {
            push_against(&mut repacker, &bench, number, &bases);
            repacker.flush_all().expect("encoded later");
        }
        repacker.finish().expect("what is damaged is passed over")
    });
    assert_eq!(held(&repacked), [0, 5, 49]);
    let bases: Vec<_> = repacked.links.iter().flat_map(|link| link.bases.clone()).collect();
    assert_eq!(bases, [ChunkNumber(101)]);
}

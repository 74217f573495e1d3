//! Reading chunks whose regions are deltas of others.

use super::testing::{Bench, noise};
use super::*;
use crate::bases::CHAIN_REGIONS_MAX;
use roaring::RoaringTreemap;
use siltstone_store::region::EncodedRegion;

fn read(source: &ChunkSource<'_>, number: u64) -> Result<Vec<u8>, StoreError> {
    source.with_chunk(ChunkNumber(number), <[u8]>::to_vec)
}

/// Chunks 0 to 9 of noise, alike in pairs.
fn pairs() -> Bench {
    Bench::new((0..10).map(|number| (number, [noise(number / 2, 2000), noise(number, 100)].concat())))
}

#[test]
fn a_chain_of_three_hundred_is_read_with_each_region_once_and_little_memory() {
    let bench = Bench::chain(300, 20, false);
    let source = ChunkSource::with_limits(&bench.repository, &bench.manifest, 2, 0);
    bench.disk.reset();
    assert_eq!(read(&source, 0).expect("chunk 0"), bench.contents[&0]);
    let calls = bench.disk.reset().total();
    // With room for two indexes they are opened on the way down and up again.
    assert!((300 + 15..=300 + 2 * 15).contains(&calls.range_reads), "{}", calls.range_reads);
    assert_eq!(read(&source, 299).expect("chunk 299"), bench.contents[&299]);
    assert_eq!(bench.disk.reset().total().range_reads, 2, "its index, which had to make room, and its region");
}

#[test]
fn what_was_decoded_on_the_way_is_not_decoded_again() {
    let bench = Bench::chain(50, 50, false);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    assert_eq!(read(&source, 0).expect("chunk 0"), bench.contents[&0]);
    bench.disk.reset();
    for number in 0..50 {
        assert_eq!(read(&source, number).expect("a chunk"), bench.contents[&number]);
    }
    assert_eq!(bench.disk.reset().total().range_reads, 0);
}

#[test]
fn a_chain_may_be_as_long_as_the_limit_and_no_longer() {
    let length = u64::from(CHAIN_REGIONS_MAX) + 1;
    let bench = Bench::chain(length, length, false);
    let source = ChunkSource::with_limits(&bench.repository, &bench.manifest, 1, 0);
    assert_eq!(read(&source, 1).expect("chunk 1"), bench.contents[&1]);
    let error = read(&source, 0).expect_err("too long");
    assert!(matches!(error, StoreError::Limit { .. }), "{error}");
}

#[test]
fn bases_in_several_regions_and_shared_ones_are_found() {
    let mut bench = pairs();
    let plain = bench.region(&[1, 3], &[]);
    let also_plain = bench.region(&[5, 9], &[]);
    let middle = bench.region(&[2, 7], &[3, 9]);
    let top = bench.region(&[0, 4, 6], &[1, 2, 5, 7]);
    bench.container(&[top, plain]);
    bench.container(&[also_plain, middle]);
    let source = ChunkSource::with_limits(&bench.repository, &bench.manifest, 2, 0);
    for number in [0, 4, 6, 2, 7, 1, 9] {
        assert_eq!(read(&source, number).expect("a chunk"), bench.contents[&number]);
    }
    let closure = |numbers: &[u64]| {
        let closure = source.closure(&numbers.iter().copied().collect()).expect("a closure");
        closure.iter().collect::<Vec<_>>()
    };
    assert_eq!(closure(&[1]), [1]);
    assert_eq!(closure(&[2]), [2, 3, 9]);
    assert_eq!(closure(&[6]), [1, 2, 3, 5, 6, 7, 9]);
    assert!(matches!(source.closure(&RoaringTreemap::from_iter([8])), Err(StoreError::MissingChunk { .. })));
}

#[test]
fn a_closure_reads_indexes_only_and_those_of_plain_containers_never() {
    let bench = Bench::chain(100, 10, false);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    bench.disk.reset();
    assert_eq!(source.closure(&RoaringTreemap::from_iter([5])).expect("a closure").len(), 95);
    assert_eq!(bench.disk.reset().total().range_reads, 10);
    let mut plain = pairs();
    let region = plain.region(&[0, 1], &[]);
    plain.container(&[region]);
    let source = ChunkSource::new(&plain.repository, &plain.manifest);
    plain.disk.reset();
    assert_eq!(source.closure(&RoaringTreemap::from_iter([1])).expect("a closure").len(), 1);
    assert_eq!(plain.disk.reset().total().range_reads, 0);
}

#[test]
fn regions_that_are_each_other_s_bases_are_an_error_that_names_one() {
    let mut bench = pairs();
    let one = bench.region(&[0], &[3]);
    let two = bench.region(&[2], &[1]);
    // Each says that it hangs on the other.
    let one = EncodedRegion { bases: vec![ChunkNumber(2)], ..one };
    let two = EncodedRegion { bases: vec![ChunkNumber(0)], ..two };
    let above = bench.region(&[4], &[2]);
    bench.container(&[one, above]);
    bench.container(&[two]);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    for number in [0, 2, 4] {
        let error = read(&source, number).expect_err("a cycle").to_string();
        let names = (0..2).map(|at| source.object_name(at).to_string()).filter(|name| error.contains(name)).count();
        assert!(error.contains("lead back") && error.contains("region 0") && names == 1, "{error}");
    }
    assert!(source.closure(&RoaringTreemap::from_iter([4])).is_ok(), "a closure ends in spite of it");
}

#[test]
fn a_base_that_is_not_what_was_fingerprinted_costs_itself_and_what_is_made_of_it() {
    let mut bench = pairs();
    let delta = bench.region(&[0], &[1]);
    let beside = bench.region(&[2], &[3]);
    let genuine = bench.region(&[1, 3], &[]);
    bench.contents.get_mut(&1).expect("a chunk").iter_mut().for_each(|byte| *byte ^= 1);
    let base = EncodedRegion { chunks: genuine.chunks, ..bench.region(&[1, 3], &[]) };
    let needs = bench.container(&[delta, beside]);
    let container = bench.container(&[base]);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    for (number, container) in [(0, needs), (1, container)] {
        let error = read(&source, number).expect_err("a wrong base").to_string();
        let name = source.object_name(container).to_string();
        assert!(error.contains(&name) && error.contains(&format!("region 0, chunk {number}")), "{error}");
    }
    assert_eq!(read(&source, 2).expect("chunk 2"), bench.contents[&2]);
}

#[test]
fn a_base_whose_fingerprint_alone_is_wrong_costs_nothing_that_is_made_of_it() {
    let mut bench = pairs();
    let delta = bench.region(&[0], &[1]);
    let mut base = bench.region(&[1], &[]);
    base.chunks[0].fingerprint.0[5] ^= 1;
    bench.container(&[delta]);
    bench.container(&[base]);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    assert_eq!(read(&source, 0).expect("chunk 0"), bench.contents[&0]);
    assert!(read(&source, 1).is_err());
}

#[test]
fn a_missing_base_is_damage_of_the_region_that_needs_it() {
    let mut bench = pairs();
    let delta = bench.region(&[0], &[1]);
    let container = bench.container(&[delta]);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    let error = read(&source, 0).expect_err("no base");
    let name = source.object_name(container).to_string();
    assert!(error.is_damage() && error.to_string().contains(&name) && error.to_string().contains("chunk 1"), "{error}");
}

#[test]
fn superseded_copies_are_not_read() {
    let mut bench = pairs();
    let old = bench.region(&[0, 4], &[1]);
    let new = bench.region(&[0], &[]);
    let container = bench.container(&[old]);
    bench.container(&[new]);
    // The first container answers for nothing any more; the base of its region is nowhere.
    bench.manifest.containers[container].chunks.clear();
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    assert_eq!(read(&source, 0).expect("chunk 0"), bench.contents[&0]);
    assert!(matches!(read(&source, 4), Err(StoreError::MissingChunk { .. })));
}

#[test]
fn several_threads_read_from_one_source() {
    let bench = Bench::chain(60, 7, true);
    let source = ChunkSource::with_limits(&bench.repository, &bench.manifest, 3, 10_000);
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (source, bench) = (&source, &bench);
            scope.spawn(move || {
                for step in 0..30 {
                    let number = (thread * 17 + step * 7) % 60;
                    assert_eq!(read(source, number).expect("a chunk"), bench.contents[&number]);
                }
            });
        }
    });
}

#[test]
fn what_hangs_on_what_is_lost_is_lost_with_it() {
    let mut bench = pairs();
    let plain = bench.region(&[1, 3], &[]);
    let also_plain = bench.region(&[5, 9], &[]);
    let middle = bench.region(&[2, 7], &[3, 9]);
    let top = bench.region(&[0, 4, 6], &[1, 2]);
    let other = bench.region(&[8], &[5]);
    bench.container(&[top, plain, other]);
    bench.container(&[middle, also_plain]);
    let source = ChunkSource::new(&bench.repository, &bench.manifest);
    let lost_with = |numbers: &[u64]| {
        let mut lost = numbers.iter().copied().collect();
        source.add_dependents(&mut lost).expect("indexes");
        lost.iter().collect::<Vec<_>>()
    };
    assert_eq!(lost_with(&[9]), [0, 2, 4, 6, 7, 9]);
    assert_eq!(lost_with(&[5]), [5, 8]);
    assert_eq!(lost_with(&[6]), [6]);
    assert_eq!(lost_with(&[]), []);
    let bases = |numbers: &[u64]| {
        let bases = source.bases(&numbers.iter().copied().collect()).expect("indexes");
        bases.iter().collect::<Vec<_>>()
    };
    assert_eq!(bases(&[4, 6]), [1, 2], "not theirs in turn");
    assert_eq!(bases(&[1, 7]), [3, 9]);
    assert_eq!(bases(&[1]), []);
}

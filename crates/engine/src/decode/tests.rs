//! Decoding containers made by hand: in any order, within any budget, whole or damaged.

use super::*;
use crate::chunks::testing::{Bench, add_snapshot, noise};
use proptest::prelude::*;
use siltstone_store::ChunkNumber;
use std::collections::{BTreeMap, BTreeSet};

/// Keeps what it is told.
#[derive(Default)]
struct Heard {
    decoded: Mutex<BTreeMap<usize, Vec<u8>>>,
    /// Regions that failed, each with the region of the plan at fault and the message.
    failed: Mutex<BTreeMap<usize, (usize, String)>>,
    visits: Mutex<Vec<usize>>,
    spill_failures: AtomicU64,
}

impl DecodeVisitor for Heard {
    fn decoded(&self, region: PlannedRegion, _: &[ChunkEntry], plain: &[u8]) {
        let before = self.decoded.lock().expect("sound").insert(region.node, plain.to_vec());
        assert!(before.is_none(), "{region:?} twice");
    }

    fn failed(&self, region: PlannedRegion, origin: PlannedRegion, error: &Arc<StoreError>) {
        let before = self.failed.lock().expect("sound").insert(region.node, (origin.node, error.to_string()));
        assert!(before.is_none(), "{region:?} twice");
    }

    fn visited(&self, container: usize, _: u64) {
        self.visits.lock().expect("sound").push(container);
    }

    fn spill_failed(&self, _: &StoreError) {
        self.spill_failures.fetch_add(1, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Results of one decoding.
struct Outcome {
    decoded: BTreeMap<usize, Vec<u8>>,
    failed: BTreeMap<usize, (usize, String)>,
    visits: Vec<usize>,
    tally: Arc<Tally>,
    spill_failures: u64,
}

fn settings(waiting_bytes_max: u64) -> DecodeSettings {
    let spill_folder = std::env::temp_dir();
    DecodeSettings { gap_bytes: 500, read_bytes_max: 1 << 20, waiting_bytes_max, verifies_bases: true, spill_folder }
}

/// Decodes these regions on so many workers; on this thread with none.
fn decode(bench: &Bench, wanted: &[Address], settings: DecodeSettings, workers: usize) -> Outcome {
    let chunks = Arc::new(ChunkSource::new(&bench.repository, &bench.manifest));
    let plan = Plan::new(&chunks, wanted, &Order::new(&bench.manifest));
    let tally = Arc::<Tally>::default();
    let decoding = Arc::new(Decoding::new(chunks, plan, settings, tally.clone(), Heard::default()));
    if workers == 0 {
        decoding.run();
    } else {
        std::thread::scope(|scope| {
            let pool: Pool<'_, Worker> =
                Pool::start(scope, "test", workers, 2, || Ok(Worker::default())).expect("threads");
            decoding.wait(decoding.start(&pool, workers)).expect("done");
        });
    }
    let heard = decoding.visitor();
    let take = |visits: &Mutex<Vec<usize>>| visits.lock().expect("sound").clone();
    let (decoded, failed) = (heard.decoded.lock().expect("sound").clone(), heard.failed.lock().expect("sound").clone());
    let spill_failures = heard.spill_failures.load(Ordering::Relaxed);
    Outcome { decoded, failed, visits: take(&heard.visits), tally, spill_failures }
}

fn address(container: usize, region: usize) -> Address {
    Address { container, region }
}

#[test]
fn a_chain_is_decoded_forwards_and_backwards_with_each_container_visited_once() {
    // Where no snapshot decides, what was written last is read first: deltas first if the plain region was written
    // first.
    for deltas_first in [false, true] {
        let bench = Bench::chain(300, 25, deltas_first);
        let wanted = [if deltas_first { address(11, 24) } else { address(0, 0) }];
        for (budget, workers) in [(0, 1), (2000, 2), (u64::MAX, 3), (u64::MAX, 0)] {
            let outcome = decode(&bench, &wanted, settings(budget), workers);
            assert_eq!(outcome.decoded[&0], bench.contents[&0]);
            assert_eq!((outcome.decoded.len(), outcome.failed.len()), (300, 0));
            assert_eq!(outcome.visits.iter().collect::<BTreeSet<_>>().len(), 12);
            assert_eq!(outcome.tally.containers_read.load(Ordering::Relaxed), 12);
            let prewritten = outcome.tally.bytes_prewritten.load(Ordering::Relaxed);
            assert_eq!(prewritten > 0, budget < u64::MAX, "{prewritten} with a budget of {budget}");
            // A base that comes first waits for one region only; what waits the other way are deltas of 50 bytes or so.
            assert!(prewritten < if deltas_first { 300 * 100 } else { 300 * 3100 }, "{prewritten}");
        }
    }
}

#[test]
fn bases_that_become_much_smaller_are_compressed_and_the_others_written() {
    let prewritten = |content: &dyn Fn(u64) -> Vec<u8>, budget| {
        let mut bench = Bench::new((0..=20).map(|number| (number, content(number))));
        let mut regions: Vec<_> = (0..20).map(|number| bench.region(&[number], &[])).collect();
        regions.push(bench.region(&[20], &(0..20).collect::<Vec<_>>()));
        bench.container(&regions);
        let outcome = decode(&bench, &[address(0, 20)], settings(budget), 1);
        assert_eq!(outcome.decoded[&0], bench.contents[&20]);
        outcome.tally.bytes_prewritten.load(Ordering::Relaxed)
    };
    // 60 KB wait, or 3 once they are compressed.
    let repeated = |number| noise(number, 100).repeat(30);
    assert_eq!(prewritten(&repeated, 20_000), 0);
    let written = prewritten(&repeated, 500);
    assert!((1..5000).contains(&written), "{written} bytes, compressed");
    assert!(prewritten(&|number| noise(number, 3000), 20_000) > 30_000);
}

#[test]
fn what_is_left_of_a_text_that_is_mostly_used_is_copied_and_the_rest_of_its_memory_given_up() {
    // Chunks 0 to 9 lie in the first text, and so on; the last text has one chunk.
    let mut bench = Bench::new((0..60).map(|number| (number, noise(number, 1000))));
    let mut regions = vec![bench.region(&[50], &[])];
    regions.extend((0..5).map(|text| bench.region(&(10 * text..10 * text + 10).collect::<Vec<_>>(), &[])));
    // Nine chunks of each are needed as soon as it comes, the tenth once all have come.
    regions.extend((0..5).map(|text| bench.region(&[51 + text], &(10 * text..10 * text + 9).collect::<Vec<_>>())));
    regions.push(bench.region(&[56], &[9, 19, 29, 39, 49, 50]));
    bench.container(&regions);
    for (budget, is_prewritten) in [(20_000, false), (4000, true)] {
        let outcome = decode(&bench, &[address(0, 11), address(0, 6), address(0, 10)], settings(budget), 0);
        assert_eq!(
            [0, 1, 2].map(|at| outcome.decoded[&at].as_slice()),
            [56, 51, 55].map(|at| &bench.contents[&at][..])
        );
        let prewritten = outcome.tally.bytes_prewritten.load(Ordering::Relaxed);
        assert_eq!(prewritten > 0, is_prewritten, "{prewritten} bytes, with a budget of {budget}");
    }
}

#[test]
fn what_is_needed_last_is_written_first() {
    let lengths = [(0, 3000), (1, 3000), (2, 5000), (3, 4000), (4, 100), (5, 100)];
    let mut bench = Bench::new(lengths.map(|(number, length)| (number, noise(number, length))));
    let mut regions: Vec<_> = (0..4).map(|number| bench.region(&[number], &[])).collect();
    // They come from the last to the first: 3 waits for 0, and 2 for 1.
    regions.extend([bench.region(&[4], &[0, 3]), bench.region(&[5], &[1, 2])]);
    bench.container(&regions);
    let outcome = decode(&bench, &[address(0, 4), address(0, 5)], settings(9600), 0);
    assert_eq!([0, 1].map(|at| outcome.decoded[&at].as_slice()), [4, 5].map(|at| &bench.contents[&at][..]));
    let prewritten = outcome.tally.bytes_prewritten.load(Ordering::Relaxed);
    assert!((4000..4100).contains(&prewritten), "{prewritten}");
}

#[test]
fn without_room_for_the_temporary_file_memory_is_used_and_all_is_decoded() {
    let bench = Bench::chain(40, 5, true);
    let settings = DecodeSettings { spill_folder: "/nowhere/at/all".into(), ..settings(0) };
    let outcome = decode(&bench, &[address(7, 4)], settings, 2);
    assert_eq!((outcome.decoded.len(), outcome.spill_failures), (40, 1));
    assert_eq!(outcome.decoded[&0], bench.contents[&0]);
}

#[test]
fn neighbours_come_by_one_read_and_distant_regions_by_their_own() {
    let mut bench = Bench::new((0..10).map(|number| (number, noise(number, 300))));
    let regions: Vec<_> = (0..10).map(|number| bench.region(&[number], &[])).collect();
    bench.container(&regions);
    let wanted = [0, 1, 2, 4, 9].map(|region| address(0, region));
    for (gap_bytes, read_bytes_max, reads) in [(0, 1 << 20, 3), (400, 1 << 20, 2), (5000, 1 << 20, 1), (5000, 700, 4)] {
        bench.disk.reset();
        let outcome = decode(&bench, &wanted, DecodeSettings { gap_bytes, read_bytes_max, ..settings(0) }, 1);
        assert_eq!(outcome.decoded.len(), 5);
        // One for the index.
        assert_eq!(bench.disk.reset().total().range_reads, 1 + reads, "gaps of {gap_bytes}, reads of {read_bytes_max}");
    }
}

#[test]
fn order_goes_by_columns_then_rows_backwards() {
    let mut bench = Bench::new((0..6).map(|number| (number, noise(number, 50))));
    for number in 0..6 {
        let region = bench.region(&[number], &[]);
        bench.container(&[region]);
    }
    for numbers in [vec![0, 1, 2], vec![1, 2, 3, 4], vec![2, 4]] {
        add_snapshot(&mut bench.manifest, numbers);
    }
    let manifest = &bench.manifest;
    let order = Order::new(manifest);
    let mut containers: Vec<usize> = (0..6).collect();
    containers.sort_by_key(|at| order.rank(&manifest.containers[*at]));
    // Columns 0, 1, 1, 2, 2; rows 0, 1, 0, 1, 0; the last is needed by none.
    assert_eq!(containers, [0, 3, 1, 4, 2, 5]);
}

/// Regions of some chunks each, with bases among those of earlier ones, spread over containers.
#[derive(Clone, Debug)]
struct Shape {
    /// Shape of each region: number of chunks, the earlier chunks that are its bases, and the container it lies in.
    regions: Vec<(u64, Vec<prop::sample::Index>, usize)>,
    /// True if later regions of a container lie first.
    backwards: bool,
    budget: u64,
    workers: usize,
}

fn shapes() -> impl Strategy<Value = Shape> {
    let region = (1u64..4, prop::collection::vec(any::<prop::sample::Index>(), 0..4), 0usize..5);
    (prop::collection::vec(region, 1..25), any::<bool>(), 0u64..6, 0usize..4)
        .prop_map(|(regions, backwards, budget, workers)| Shape { regions, backwards, budget: budget * 2000, workers })
}

/// A shape built: where each region lies, and which regions each needs directly.
struct Built {
    bench: Bench,
    wanted: Vec<Address>,
    needs: Vec<BTreeSet<usize>>,
    plain: Vec<Vec<u8>>,
}

/// `change` may alter regions before they are stored.
fn build(shape: &Shape, change: impl Fn(usize, &mut siltstone_store::region::EncodedRegion)) -> Built {
    let mut owner: Vec<usize> = Vec::new();
    let mut specs = Vec::new();
    for (at, (count, bases, _)) in shape.regions.iter().enumerate() {
        let bases: BTreeSet<u64> = if owner.is_empty() {
            BTreeSet::new()
        } else {
            bases.iter().map(|base| base.index(owner.len()) as u64).collect()
        };
        let first = owner.len() as u64;
        owner.extend(std::iter::repeat_n(at, usize::try_from(*count).expect("small")));
        specs.push(((first..first + count).collect::<Vec<u64>>(), bases.into_iter().collect::<Vec<u64>>()));
    }
    // Every other one becomes smaller when it is compressed.
    let content = |number: u64| match number % 2 {
        0 => [noise(number % 3, 700), noise(number, 30)].concat(),
        _ => [noise(number % 3, 70).repeat(10), noise(number, 30)].concat(),
    };
    let mut bench = Bench::new((0..owner.len() as u64).map(|number| (number, content(number))));
    let mut wanted = vec![address(0, 0); specs.len()];
    for container in 0..5 {
        let mut here: Vec<usize> = (0..specs.len()).filter(|at| shape.regions[*at].2 == container).collect();
        if shape.backwards {
            here.reverse();
        }
        let mut regions = Vec::new();
        for (region, at) in here.into_iter().enumerate() {
            wanted[at] = address(container, region);
            let mut encoded = bench.region(&specs[at].0, &specs[at].1);
            change(at, &mut encoded);
            regions.push(encoded);
        }
        bench.container(&regions);
    }
    let needs =
        specs.iter().map(|(_, bases)| bases.iter().map(|base| owner[usize::try_from(*base).expect("small")]).collect());
    let plain = specs.iter().map(|(chunks, _)| chunks.iter().flat_map(|number| content(*number)).collect());
    Built { needs: needs.collect(), plain: plain.collect(), bench, wanted }
}

/// A region and whatever needs it.
fn downstream(needs: &[BTreeSet<usize>], of: usize) -> BTreeSet<usize> {
    let mut all = BTreeSet::from([of]);
    while let Some(more) = (0..needs.len()).find(|at| !all.contains(at) && !needs[*at].is_disjoint(&all)) {
        all.insert(more);
    }
    all
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn whatever_the_order_and_the_budget_all_is_decoded(shape in shapes()) {
        let Built { bench, wanted, plain, .. } = build(&shape, |_, _| {});
        let outcome = decode(&bench, &wanted, settings(shape.budget), shape.workers);
        prop_assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        prop_assert_eq!(outcome.decoded.into_values().collect::<Vec<_>>(), plain);
        let visited: BTreeSet<_> = outcome.visits.iter().collect();
        prop_assert_eq!(visited.len(), outcome.visits.len());
    }

    #[test]
    fn a_damaged_region_costs_exactly_what_needs_it(shape in shapes(), hit in any::<prop::sample::Index>(), fault in 0..3) {
        let hit = hit.index(shape.regions.len());
        let Built { bench, wanted, needs, plain } = build(&shape, |at, region| {
            if at == hit {
                match fault {
                    // It decodes, to something else than was fingerprinted.
                    0 => region.chunks.iter_mut().for_each(|chunk| chunk.fingerprint.0[0] ^= 1),
                    1 => region.payload.truncate(region.payload.len() / 2),
                    _ => region.bases.push(ChunkNumber(1 << 40)),
                }
            }
        });
        let outcome = decode(&bench, &wanted, settings(shape.budget), shape.workers);
        let mut lost = downstream(&needs, hit);
        if fault == 0 {
            lost.remove(&hit);
        }
        prop_assert_eq!(outcome.failed.keys().copied().collect::<BTreeSet<_>>(), lost);
        prop_assert!(outcome.failed.values().all(|(origin, _)| *origin == hit), "{:?}", outcome.failed);
        prop_assert_eq!(outcome.decoded.len() + outcome.failed.len(), plain.len());
        prop_assert!(outcome.decoded.iter().all(|(at, bytes)| plain[*at] == *bytes));
    }

    #[test]
    fn a_wrong_fingerprint_of_unverified_bases_costs_nothing(shape in shapes(), hit in any::<prop::sample::Index>()) {
        let hit = hit.index(shape.regions.len());
        let Built { bench, wanted, plain, .. } = build(&shape, |at, region| {
            if at == hit {
                region.chunks.iter_mut().for_each(|chunk| chunk.fingerprint.0[0] ^= 1);
            }
        });
        let settings = DecodeSettings { verifies_bases: false, ..settings(shape.budget) };
        let outcome = decode(&bench, &wanted, settings, shape.workers);
        prop_assert!(outcome.failed.is_empty(), "{:?}", outcome.failed);
        prop_assert_eq!(outcome.decoded.into_values().collect::<Vec<_>>(), plain);
    }

    #[test]
    fn a_cycle_costs_itself_and_what_needs_it(shape in shapes(), hit in any::<prop::sample::Index>()) {
        let hit = hit.index(shape.regions.len());
        // Every chunk of the regions behind it that hang on it.
        let Built { needs, .. } = build(&shape, |_, _| {});
        let behind = downstream(&needs, hit);
        let first = |at: usize| shape.regions[..at].iter().map(|(count, ..)| *count).sum::<u64>();
        let back = *behind.last().expect("itself");
        prop_assume!(back != hit);
        let Built { bench, wanted, plain, .. } = build(&shape, |at, region| {
            if at == hit {
                region.bases = vec![ChunkNumber(first(back))];
            }
        });
        let outcome = decode(&bench, &wanted, settings(shape.budget), shape.workers);
        prop_assert_eq!(outcome.failed.keys().copied().collect::<BTreeSet<_>>(), behind);
        prop_assert!(outcome.failed.values().all(|(_, error)| error.contains("lead back")), "{:?}", outcome.failed);
        prop_assert!(outcome.decoded.iter().all(|(at, bytes)| plain[*at] == *bytes));
    }
}

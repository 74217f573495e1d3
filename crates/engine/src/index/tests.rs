//! The index against a hash map, under budgets so small that everything spills; and caches that must not be believed.

use super::*;
use proptest::prelude::*;
use siltstone_store::{SeriesId, SnapshotId};
use std::collections::BTreeMap;
use tempfile::TempDir;

const KEY: [u8; 32] = [7; 32];
const IDENTITY: CacheIdentity =
    CacheIdentity { kind: CacheKind::Last, series: SeriesId([1; 16]), snapshot: SnapshotId([3; 32]) };

/// Uniform, as real fingerprints are.
fn fingerprint(seed: u64) -> Fingerprint {
    Fingerprint(*blake3::hash(&seed.to_le_bytes()).as_bytes().first_chunk().unwrap())
}

/// All in one bucket of the fences.
fn crowded(seed: u64) -> Fingerprint {
    let mut crowded = fingerprint(seed);
    crowded.0[..4].fill(0x55);
    crowded
}

fn number(n: u64) -> ChunkNumber {
    ChunkNumber(n)
}

fn index(budget_bytes: u64, dir: &TempDir) -> FingerprintIndex {
    FingerprintIndex::open(CachedRun::empty(), budget_bytes, dir.path())
}

fn write(dir: &TempDir, chunks: impl IntoIterator<Item = (Fingerprint, ChunkNumber)>) -> PathBuf {
    let path = dir.path().join("cache");
    let mut index = index(1 << 20, dir);
    for (fingerprint, number) in chunks {
        index.insert(fingerprint, number).unwrap();
    }
    index.into_runs().save(|_| true, &path, &IDENTITY, &KEY).unwrap();
    path
}

fn reopen(path: &Path, budget_bytes: u64) -> CachedRun {
    CachedRun::open(path, &IDENTITY, &KEY, budget_bytes).unwrap()
}

#[derive(Clone, Debug)]
struct Round {
    budget_bytes: u64,
    inserted: Vec<u64>,
    kept_of_ten: u64,
}

fn any_round() -> impl Strategy<Value = Round> {
    (prop_oneof![0u64..4000, 4000..200_000u64], prop::collection::vec(0u64..3000, 0..2500), 0u64..=10)
        .prop_map(|(budget_bytes, inserted, kept_of_ten)| Round { budget_bytes, inserted, kept_of_ten })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Backup after backup: look each chunk up, insert it if it is new, keep a part for the next cache.
    #[test]
    fn equals_a_map_over_many_backups(rounds in prop::collection::vec(any_round(), 1..5), crowd: bool) {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("cache");
        let name = if crowd { crowded } else { fingerprint };
        let (mut model, mut next, mut previous) = (BTreeMap::new(), 0, CachedRun::empty());
        for round in rounds {
            let mut index = FingerprintIndex::open(previous, round.budget_bytes, dir.path());
            for seed in round.inserted {
                let known = index.get(&name(seed)).unwrap();
                prop_assert_eq!(known, model.get(&name(seed)).copied());
                if known.is_none() {
                    index.insert(name(seed), number(next)).unwrap();
                    model.insert(name(seed), number(next));
                    next += 1;
                }
            }
            prop_assert!(index.spilled.len() <= SPILLED_RUNS_MAX);
            let (chunks, keep) = (model.len(), |number: ChunkNumber| number.0 % 10 < round.kept_of_ten);
            model.retain(|_, number| keep(*number));
            let statistics = index.into_runs().save(keep, &path, &IDENTITY, &KEY).unwrap();
            prop_assert_eq!(statistics.chunks_kept, model.len() as u64);
            prop_assert_eq!(statistics.chunks_dropped, (chunks - model.len()) as u64);
            previous = reopen(&path, round.budget_bytes);
            prop_assert_eq!(previous.len(), model.len() as u64);
        }
    }
}

#[test]
fn the_newest_number_of_a_fingerprint_counts() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, (0..500).map(|seed| (fingerprint(seed), number(seed))));
    let mut index = FingerprintIndex::open(reopen(&path, 0), 0, dir.path());
    for pass in 1..=3 {
        for seed in 0..200 {
            index.insert(fingerprint(seed), number(pass * 1000 + seed)).unwrap();
        }
    }
    assert_eq!(index.get(&fingerprint(3)).unwrap(), Some(number(3003)));
    assert_eq!(index.get(&fingerprint(300)).unwrap(), Some(number(300)));
    let statistics = index.into_runs().save(|_| true, &path, &IDENTITY, &KEY).unwrap();
    assert_eq!(statistics.chunks_kept, 500);
    let index = FingerprintIndex::open(reopen(&path, 1 << 20), 1 << 20, dir.path());
    assert_eq!(index.get(&fingerprint(3)).unwrap(), Some(number(3003)));
}

#[test]
fn an_older_number_that_is_kept_comes_back_when_the_newer_is_not() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, [(fingerprint(1), number(10))]);
    let mut index = FingerprintIndex::open(reopen(&path, 1 << 20), 1 << 20, dir.path());
    index.insert(fingerprint(1), number(20)).unwrap();
    index.into_runs().save(|number| number.0 == 10, &path, &IDENTITY, &KEY).unwrap();
    let index = FingerprintIndex::open(reopen(&path, 1 << 20), 1 << 20, dir.path());
    assert_eq!(index.get(&fingerprint(1)).unwrap(), Some(number(10)));
}

#[test]
fn previous_run_in_a_file_answers_as_one_in_memory() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, (0..20_000).map(|seed| (fingerprint(seed), number(seed))));
    for budget_bytes in [0, 5000, 100_000, 10 << 20] {
        let index = FingerprintIndex::open(reopen(&path, budget_bytes), budget_bytes, dir.path());
        assert!(index.previous.memory_bytes() <= budget_bytes.max(24), "budget {budget_bytes}");
        for seed in (0..40_000).step_by(7) {
            let wanted = (seed < 20_000).then_some(number(seed));
            assert_eq!(index.get(&fingerprint(seed)).unwrap(), wanted, "budget {budget_bytes}, chunk {seed}");
        }
    }
}

#[test]
fn spilling_rewrites_each_record_only_a_few_times() {
    let dir = TempDir::new().unwrap();
    let mut index = index(0, &dir);
    let (mut last_runs, mut rewritten, mut inserted) = (0, 0, 0);
    while inserted < 65 * 300 {
        index.insert(fingerprint(inserted), number(inserted)).unwrap();
        inserted += 1;
        if index.new.is_empty() {
            if index.spilled.len() <= last_runs {
                rewritten += index.spilled.last().unwrap().len();
            }
            last_runs = index.spilled.len();
        }
    }
    assert!(rewritten <= inserted * 5, "{rewritten} records rewritten for {inserted} spilled");
}

#[test]
fn a_changed_byte_or_another_length_is_refused() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, (0..20).map(|seed| (fingerprint(seed), number(seed))));
    let genuine = std::fs::read(&path).unwrap();
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        CachedRun::open(&path, &IDENTITY, &KEY, 1 << 20).is_err()
    };
    for at in 0..genuine.len() {
        let mut flipped = genuine.clone();
        flipped[at] ^= 0x10;
        assert!(refused(&flipped), "byte {at} changed");
        assert!(refused(&genuine[..at]), "cut to {at} bytes");
        assert!(refused(&genuine[at + 1..]), "first {at} bytes gone");
    }
    assert!(refused(&[genuine.as_slice(), &[0]].concat()));
    assert!(refused(&[genuine.as_slice(), &[0; RECORD_BYTES]].concat()));
    assert!(refused(&[&genuine[..72], &genuine[96..]].concat()), "a record gone");
    assert!(!refused(&genuine));
}

#[test]
fn each_refusal_says_why() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, [(fingerprint(1), number(1))]);
    let open = |path: &Path, identity: &CacheIdentity, key: &[u8; 32]| {
        CachedRun::open(path, identity, key, 1 << 20).unwrap_err()
    };
    let absent = open(&dir.path().join("absent"), &IDENTITY, &KEY);
    assert!(matches!(absent, CacheRefused::Unreadable(source) if source.kind() == io::ErrorKind::NotFound));
    assert!(matches!(open(dir.path(), &IDENTITY, &KEY), CacheRefused::Unreadable(_) | CacheRefused::Damaged));
    assert!(matches!(open(&path, &IDENTITY, &[8; 32]), CacheRefused::Damaged));
    for other in [
        CacheIdentity { series: SeriesId([2; 16]), ..IDENTITY },
        CacheIdentity { snapshot: SnapshotId([4; 32]), ..IDENTITY },
    ] {
        assert!(matches!(open(&path, &other, &KEY), CacheRefused::OtherSnapshot));
    }
    let older = CacheIdentity { kind: CacheKind::Older, ..IDENTITY };
    assert!(matches!(open(&path, &older, &KEY), CacheRefused::Unknown));
    std::fs::write(&path, [0; 104]).unwrap();
    assert!(matches!(open(&path, &IDENTITY, &KEY), CacheRefused::Unknown));
}

#[test]
fn a_failed_spill_names_the_folder_and_loses_nothing() {
    let dir = TempDir::new().unwrap();
    let gone = dir.path().join("gone");
    let mut index = FingerprintIndex::open(CachedRun::empty(), 0, &gone);
    let errors: Vec<_> = (0..70).filter_map(|seed| index.insert(fingerprint(seed), number(seed)).err()).collect();
    assert_eq!(errors.len(), 70 - NEW_ENTRIES_LEAST);
    assert!(errors[0].to_string().contains("gone"), "{}", errors[0]);
    assert_eq!(errors[0].kind(), io::ErrorKind::NotFound);
    assert!((0..70).all(|seed| index.get(&fingerprint(seed)).unwrap() == Some(number(seed))));
}

#[test]
fn a_cache_that_cannot_be_written_leaves_the_old_one() {
    let dir = TempDir::new().unwrap();
    let path = write(&dir, [(fingerprint(1), number(1))]);
    let blocked = path.join("below a file");
    assert!(index(1 << 20, &dir).into_runs().save(|_| true, &blocked, &IDENTITY, &KEY).is_err());
    assert_eq!(reopen(&path, 1 << 20).len(), 1);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1, "no temporary file is left");
}

#[test]
fn the_cache_is_made_with_its_folder_and_may_be_empty() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("made/on demand");
    index(0, &dir).into_runs().save(|_| true, &path, &IDENTITY, &KEY).unwrap();
    assert!(reopen(&path, 0).is_empty());
}

#[test]
fn the_new_table_keeps_to_its_budget() {
    for bytes in [10_000, 1 << 20, 50 << 20] {
        let entries = new_entries_within(bytes);
        let mut table = NewTable::default();
        table.extend((0..entries as u64).map(|seed| (fingerprint(seed), number(seed))));
        let buckets = table.capacity() as u64 / 7 * 8;
        assert!(buckets * (RECORD_BYTES as u64 + 1) + entries as u64 * RECORD_BYTES as u64 <= bytes);
    }
}

#[test]
fn what_falls_out_of_one_cache_goes_on_to_the_next() {
    let dir = TempDir::new().unwrap();
    let (path, older_path) = (dir.path().join("cache"), dir.path().join("older"));
    let older_identity = CacheIdentity { kind: CacheKind::Older, ..IDENTITY };
    for (previous, older) in [(CachedRun::empty(), CachedRun::empty()), {
        let previous = write(&dir, [(fingerprint(1), number(1)), (fingerprint(2), number(2))]);
        let mut index = index(0, &dir);
        index.insert(fingerprint(2), number(0)).unwrap();
        index.insert(fingerprint(9), number(9)).unwrap();
        index.into_runs().save(|_| true, &older_path, &older_identity, &KEY).unwrap();
        let older = CachedRun::open(&older_path, &older_identity, &KEY, 0).unwrap();
        (reopen(&previous, 0), older)
    }] {
        let had = previous.len() + older.len();
        let mut index = FingerprintIndex::open(previous, 1 << 20, dir.path());
        let older = FingerprintIndex::open(older, 1 << 20, dir.path());
        index.insert(fingerprint(3), number(3)).unwrap();
        let known = index.into_runs();
        assert_eq!(known.save(|number| number.0 == 3, &path, &IDENTITY, &KEY).unwrap().chunks_kept, 1);
        let all = known.followed_by(older.into_runs());
        let kept = all.save(|number| number.0 != 3, &older_path, &older_identity, &KEY).unwrap();
        let older = CachedRun::open(&older_path, &older_identity, &KEY, 1 << 20).unwrap();
        assert_eq!((older.len(), kept.chunks_dropped), if had == 0 { (0, 1) } else { (3, 2) });
        let older = FingerprintIndex::open(older, 1 << 20, dir.path());
        let wanted = if had == 0 { None } else { Some(number(2)) };
        assert_eq!(older.get(&fingerprint(2)).unwrap(), wanted, "the newest of two numbers");
    }
}

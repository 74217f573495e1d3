//! Tiny histories through every method: what is restored, what is read, what is kept.

use super::choose::Rule;
use super::index::Reach;
use super::method::{Kept, LEVEL_MEDIAN, Method, THRESHOLDS};
use super::scale::{SILTSTONE_SYNCS, Scale};
use super::stored::{Store, Way, necessary};
use super::versions::{Digest, Versions};
use crate::corpus::Corpus;
use crate::deterministic::Sequence;
use crate::experiment::{Input, Outcome};
use crate::settings::Settings;
use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;

/// Expected size of chunks.
pub(super) const EXPECTED_BYTES: u32 = 4096;

/// Small parts, so that a version has many.
pub(super) fn scale() -> Scale {
    Scale {
        expected_bytes: EXPECTED_BYTES,
        container_bytes: 32 << 10,
        region_bytes: 24 << 10,
        segment_bytes: 160 << 10,
        cache_bytes: 100 << 10,
        ..Scale::of(0, &Settings { threads: 2, ..Settings::default() })
    }
}

/// Versions that share much: bytes change here and there, parts are put in, taken out and come back.
fn versions(count: usize) -> Vec<Arc<[u8]>> {
    let mut sequence = Sequence::new(11);
    let mut current = sequence.bytes(400_000);
    let away = sequence.bytes(60_000);
    let mut all: Vec<Arc<[u8]>> = Vec::new();
    for number in 0..count {
        for _ in 0..12 {
            let at = sequence.index(current.len() - 100);
            let edit = sequence.bytes(1 + at % 60);
            current[at..at + edit.len()].copy_from_slice(&edit);
        }
        let at = sequence.index(current.len());
        let more = sequence.bytes(5_000);
        current.splice(at..at, more);
        let at = sequence.index(current.len() - 4_000);
        current.drain(at..at + 4_000);
        let mut version = current.clone();
        if number % 3 != 1 {
            version.extend_from_slice(&away);
        }
        version.extend_from_slice(&current[..30_000]);
        all.push(version.into());
    }
    all
}

fn assert_restores(kept: &Kept, versions: &[Arc<[u8]>], from: usize, folder: &Path, what: &str) {
    let restored = folder.join("restored");
    for (at, bytes) in versions.iter().enumerate().skip(from - 1) {
        kept.restore(at + 1, &restored).unwrap();
        assert!(fs::read(&restored).unwrap() == **bytes, "{what}: version {}", at + 1);
        fs::remove_file(&restored).unwrap();
    }
}

#[test]
fn every_method_restores_every_version_while_others_come_and_go() {
    let versions = versions(5);
    for method in Method::all() {
        match method {
            Method::Greedy => forget_and_restore(method, Some(0.0), &versions),
            Method::Fgd(LEVEL_MEDIAN) | Method::Cld(_) => forget_and_restore(method, Some(0.5), &versions),
            Method::Mfd | Method::Mega(0) | Method::Silt(..) => forget_and_restore(method, None, &versions),
            // The same with other numbers.
            Method::Fgd(_) | Method::Mega(_) => {}
        }
    }
}

fn forget_and_restore(method: Method, threshold: Option<f64>, versions: &[Arc<[u8]>]) {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = method.create(&folder.path().join("store"), scale()).unwrap();
    let what = format!("{method:?}, {threshold:?}");
    for (at, bytes) in versions.iter().enumerate() {
        kept.back_up(at + 1, bytes).unwrap();
        kept.settle(at + 1).unwrap();
        if at + 1 == 4 {
            assert_restores(&kept, &versions[..4], 1, folder.path(), &what);
            for oldest in [1, 2] {
                let held = kept.held().unwrap().bytes;
                kept.forget(oldest, threshold).unwrap();
                assert!(kept.held().unwrap().bytes <= held, "{what}");
            }
            assert_restores(&kept, &versions[..4], 3, folder.path(), &what);
        }
    }
    assert_restores(&kept, versions, 3, folder.path(), &what);
    assert!(kept.restore(1, &folder.path().join("restored")).is_err(), "{what}: it is forgotten");
}

/// The store of a method after all versions.
fn filled(method: Method, versions: &[Arc<[u8]>], folder: &Path) -> Kept {
    let mut kept = method.create(folder, scale()).unwrap();
    for (at, bytes) in versions.iter().enumerate() {
        kept.back_up(at + 1, bytes).unwrap();
        kept.settle(at + 1).unwrap();
    }
    kept
}

#[test]
fn deltas_store_less_and_greedy_stores_the_least() {
    let versions = versions(6);
    let bytes = |method| {
        let folder = tempfile::tempdir().unwrap();
        let held = filled(method, &versions, folder.path()).held().unwrap();
        assert!(held.metadata_bytes < held.bytes);
        held.bytes
    };
    let (greedy, cld, mfd) = (bytes(Method::Greedy), bytes(Method::Cld(LEVEL_MEDIAN)), bytes(Method::Mfd));
    let (fgd, mega) = (bytes(Method::Fgd(LEVEL_MEDIAN)), bytes(Method::Mega(THRESHOLDS[0])));
    assert!(greedy <= fgd && greedy <= mega, "{greedy} {fgd} {mega}");
    assert!(mega < mfd && fgd < cld, "{mega} {mfd} {fgd} {cld}");
}

#[test]
fn by_lifecycles_a_restore_reads_what_it_needs_and_reads_it_once() {
    let versions = versions(6);
    for method in [Method::Mfd, Method::Mega(0)] {
        let folder = tempfile::tempdir().unwrap();
        let Kept::Lifecycle(kept) = filled(method, &versions, &folder.path().join("store")) else { unreachable!() };
        for version in 1..=versions.len() {
            let restored = folder.path().join("restored");
            let reads = kept.restore(version, &restored).unwrap().reads;
            fs::remove_file(&restored).unwrap();
            assert_eq!(reads.involved, reads.containers);
            assert_eq!((reads.bytes, reads.involved_bytes), (reads.needed_bytes, reads.needed_bytes));
            let needed = necessary(&kept.store.recipe(version).unwrap().0);
            let holds: HashSet<_> = needed.iter().map(|number| kept.store.container_of(*number).unwrap()).collect();
            assert_eq!(reads.containers, holds.len() as u64);
            let held = holds.iter().flat_map(|container| kept.store.containers[container].members.clone());
            assert_eq!(held.collect::<HashSet<_>>(), needed, "{method:?}: no chunk is read in vain");
        }
    }
}

#[test]
fn threads_read_ahead_what_one_alone_reads_and_bring_back_the_same() {
    let versions = versions(4);
    for method in [Method::Greedy, Method::Mega(0)] {
        let [one, several] = [1, 4].map(|threads| {
            let folder = tempfile::tempdir().unwrap();
            let mut kept = method.create(&folder.path().join("store"), Scale { threads, ..scale() }).unwrap();
            let mut reads = Vec::new();
            for (at, bytes) in versions.iter().enumerate() {
                let bases = kept.back_up(at + 1, bytes).unwrap().bases;
                let settled = kept.settle(at + 1).unwrap();
                reads.push((bases.involved, bases.containers, settled.containers - settled.untouched, 0));
            }
            for (at, bytes) in versions.iter().enumerate() {
                let restored = folder.path().join("restored");
                let read = kept.restore(at + 1, &restored).unwrap().reads;
                assert!(fs::read(&restored).unwrap() == **bytes, "{method:?}, {threads} threads: version {}", at + 1);
                fs::remove_file(&restored).unwrap();
                reads.push((read.involved, read.containers, 0, read.bytes));
            }
            reads
        });
        assert_eq!(one, several, "{method:?}");
    }
}

#[test]
fn a_container_that_is_not_split_is_only_rewritten_to_be_filled() {
    let versions = versions(6);
    let folder = tempfile::tempdir().unwrap();
    let Kept::Lifecycle(mut kept) = Method::Mega(0).create(folder.path(), scale()).unwrap() else { unreachable!() };
    let (mut filled, mut untouched) = (0, 0);
    for (version, bytes) in (1..).zip(&versions) {
        kept.back_up(version, bytes, None).unwrap();
        let before = kept.store.containers.clone();
        untouched += kept.settle(version).unwrap().untouched;
        let needed = necessary(&kept.store.recipe(version).unwrap().0);
        for gone in before.values().filter(|one| !kept.store.containers.contains_key(&one.container)) {
            let going = gone.members.iter().filter(|number| needed.contains(number)).count();
            if going == 0 || going == gone.members.len() {
                let now = kept.store.container_of(gone.members[0]).unwrap();
                let now = &kept.store.containers[&now].members;
                assert!(now.len() > gone.members.len() && gone.members.iter().all(|number| now.contains(number)));
                filled += 1;
            }
        }
    }
    assert!(filled > 0 && untouched > 0, "{filled} {untouched}");
}

#[test]
fn deltas_that_memory_has_no_room_for_are_prewritten() {
    let versions = versions(4);
    let folder = tempfile::tempdir().unwrap();
    let Kept::Lifecycle(kept) = filled(Method::Mega(0), &versions, &folder.path().join("store")) else {
        unreachable!()
    };
    for cache_bytes in [0, 2000, usize::MAX] {
        let mut prewritten = 0;
        for (at, bytes) in versions.iter().enumerate() {
            let restored = folder.path().join("restored");
            prewritten += kept.restore_within(at + 1, &restored, cache_bytes).unwrap().prewritten_bytes;
            assert!(fs::read(&restored).unwrap() == **bytes, "{cache_bytes}: version {}", at + 1);
            fs::remove_file(&restored).unwrap();
        }
        assert_eq!(prewritten > 0, cache_bytes < usize::MAX, "{cache_bytes}");
    }
}

#[test]
fn with_siltstones_sizes_all_sync_as_often_as_its_engine() {
    let versions = versions(3);
    let syncs = SILTSTONE_SYNCS;
    let scale = Scale::of_siltstone(&Settings { threads: 2, ..Settings::default() });
    for method in Method::alike() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = method.create(&folder.path().join("store"), scale).unwrap();
        for (at, bytes) in versions.iter().enumerate() {
            let before = kept.syncs();
            kept.back_up(at + 1, bytes).unwrap();
            let between = kept.syncs();
            kept.settle(at + 1).unwrap();
            let (backup, settle) = (between - before, kept.syncs() - between);
            // The first backup of the engine makes its series as well, and leaves nothing to be settled.
            if at > 0 {
                assert_eq!(backup, syncs.backup, "{method:?}: version {}", at + 1);
                let has_work = matches!(method, Method::Mfd | Method::Mega(_) | Method::Silt("reverse", _));
                assert!(!has_work || settle == syncs.settle, "{method:?}: {settle}");
            }
        }
        assert_restores(&kept, &versions, 1, folder.path(), "with Siltstone's sizes");
    }
}

#[test]
fn versions_between_others_go_and_the_others_stay() {
    let versions = versions(6);
    for (method, threshold) in [(Method::Fgd(LEVEL_MEDIAN), Some(0.25)), (Method::Mfd, None), (Method::Mega(0), None)] {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = method.create(&folder.path().join("store"), scale()).unwrap();
        let mut left = Vec::new();
        for (at, bytes) in versions.iter().enumerate() {
            kept.back_up(at + 1, bytes).unwrap();
            kept.settle(at + 1).unwrap();
            left.push(at + 1);
            if let Some(gone) = [0, 0, 2, 3, 0, 4].get(at).filter(|gone| **gone > 0) {
                let held = kept.held().unwrap().bytes;
                kept.forget(*gone, threshold).unwrap();
                assert!(kept.held().unwrap().bytes < held, "{method:?}: what only {gone} needed is gone");
                left.retain(|version| version != gone);
            }
            for version in &left {
                assert_restores(&kept, &versions[..*version], *version, folder.path(), &format!("{method:?}"));
            }
        }
        assert_eq!(left, [1, 5, 6]);
    }
}

#[test]
fn greedy_reads_containers_again_where_the_cache_is_small() {
    let versions = versions(6);
    let folder = tempfile::tempdir().unwrap();
    let way = Way { reach: Reach::Everything, rule: Rule::Everything, has_deltas: true };
    let mut store = Store::create(&folder.path().join("store"), way, scale()).unwrap();
    let mut deltas = 0;
    for (at, bytes) in versions.iter().enumerate() {
        deltas += store.back_up(at + 1, bytes, None).unwrap().deltas;
    }
    assert!(deltas > 20, "{deltas}");
    let read = |store: &Store, name: &str| store.restore_in_order(6, &folder.path().join(name)).unwrap().reads;
    let little = read(&store, "little");
    store.scale.cache_bytes = usize::MAX;
    let much = read(&store, "much");
    assert_eq!(little.involved, much.involved);
    assert_eq!(much.containers, much.involved);
    assert!(little.containers > little.involved, "{little:?}");
    assert!(little.bytes > little.involved_bytes && much.bytes == much.involved_bytes, "{little:?} {much:?}");
    assert_eq!((little.involved_bytes, little.needed_bytes), (much.involved_bytes, much.needed_bytes));
    // Of a container that the first version filled the sixth needs only a part.
    assert!(much.needed_bytes > 0 && much.needed_bytes < much.involved_bytes, "{much:?}");
}

#[test]
fn a_rule_refuses_more_the_stricter_it_is() {
    let versions = versions(6);
    let counts = |rule, reach| {
        let folder = tempfile::tempdir().unwrap();
        let mut store = Store::create(folder.path(), Way { reach, rule, has_deltas: true }, scale()).unwrap();
        let done: Vec<_> = (1..).zip(&versions).map(|(at, bytes)| store.back_up(at, bytes, None).unwrap()).collect();
        (done.iter().map(|done| done.deltas).sum::<u64>(), store.chunks.len())
    };
    let capped = [0, 1, 4, 1000].map(|level| counts(Rule::Capping(level), Reach::Everything));
    assert!(capped.is_sorted_by_key(|(_, chunks)| std::cmp::Reverse(*chunks)), "{capped:?}");
    assert_eq!(capped[3], counts(Rule::Everything, Reach::Everything));
    let selected = [0, 1, 2, 1000].map(|least| counts(Rule::Threshold(least), Reach::Adjacent));
    assert!(selected.is_sorted_by(|one, other| one.0 >= other.0), "{selected:?}");
    assert_eq!(selected[0], selected[1], "a container that no base is in is not read");
    assert!(selected[3].0 < selected[0].0, "{selected:?}");
}

#[test]
fn experiments_run_on_versions_that_are_folders_or_files() {
    let folder = tempfile::tempdir().unwrap();
    let versions = versions(3);
    for (name, bytes) in ["0", "1"].iter().zip(&versions) {
        fs::create_dir(folder.path().join(name)).unwrap();
        fs::write(folder.path().join(name).join("file"), bytes).unwrap();
    }
    fs::write(folder.path().join("2"), &versions[2]).unwrap();
    let corpus = Corpus {
        name: "tiny".into(),
        description: String::new(),
        versions: ["0", "1", "2"].map(|name| folder.path().join(name)).into(),
    };
    let settings = Settings {
        quick: true,
        methods: ["mega", "FGD", "Greedy", "silt-reverse"].map(str::to_owned).into(),
        ..Settings::default()
    };
    let loaded = Versions::of(&corpus, &settings).unwrap();
    assert!((loaded.count(), loaded.load(1).unwrap().len() > versions[0].len()) == (3, true));
    assert_eq!(Digest::of(&loaded.load(3).unwrap()), Digest::of(&versions[2]));
    let short_of_memory = Settings { memory_mib: 64, ..settings.clone() };
    assert!(Versions::of(&corpus, &short_of_memory).unwrap_err().to_string().contains("--memory"));
    let input = Input::new(corpus, 1 << 30);
    for experiment in super::experiments() {
        let mut subjects = experiment.subjects(&input, &settings).unwrap();
        assert!(!subjects.is_empty());
        for subject in &mut subjects {
            let parameters = subject.parameters();
            let Outcome::Right(samples) = subject.run().unwrap() else { panic!("{parameters:?} is wrong") };
            let wanted = match experiment.name() {
                "store-device" => 1,
                "store-bases" => 9,
                _ => versions.len(),
            };
            assert_eq!(samples.len(), wanted, "{}", experiment.name());
            for (name, value) in samples.iter().flat_map(|sample| &sample.values) {
                assert!(experiment.head().columns().any(|column| column == name) && value.is_finite(), "{name}");
            }
        }
    }
}

use super::*;
use crate::corpus::Corpus;
use crate::deterministic::Sequence;
use crate::settings::Settings;
use crate::store::method::{Kept, LEVEL_MEDIAN, Method, THRESHOLDS};
use crate::store::stored::BackedUp;
use crate::store::tests::{EXPECTED_BYTES, scale};
use crate::store::versions::Versions;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

fn methods() -> Vec<Method> {
    let mut methods = vec![Method::Greedy, Method::Fgd(LEVEL_MEDIAN), Method::Cld(LEVEL_MEDIAN), Method::Mfd];
    methods.extend(THRESHOLDS.map(Method::Mega));
    methods
}

/// A version and how it differs from the one before.
struct Version {
    bytes: Arc<[u8]>,
    changes: Changes,
}

type Files = BTreeMap<&'static str, Vec<u8>>;

/// Folders in which files are edited, put in, taken out and moved, as versions; at last nothing changes, then all.
fn folders() -> Vec<Version> {
    let mut sequence = Sequence::new(21);
    let names = ["a/1", "a/2", "b/1", "b/2", "b/3", "c/1", "c/2", "c/3", "d/1", "d/2"];
    let mut files: Files = names.map(|name| (name, sequence.bytes(60_000 + 7 * name.len()))).into();
    let mut all = vec![files.clone()];
    let edits: [&mut dyn FnMut(&mut Files); 6] = [
        &mut |files| files.get_mut("b/2").unwrap()[20_000..20_010].fill(1),
        &mut |files| {
            files.get_mut("b/3").unwrap().splice(30_000..30_000, *b"put in");
            files.get_mut("c/2").unwrap().drain(100..9_000);
        },
        &mut |files| drop((files.insert("a/3", vec![5; 1000]), files.insert("e", vec![6; 700]), files.remove("c/1"))),
        &mut |files| {
            let moved = files.remove("a/1").unwrap();
            files.insert("d/3", moved);
        },
        &mut |_| {},
        &mut |files| files.values_mut().for_each(|file| *file = sequence.bytes(50_000)),
    ];
    for edit in edits {
        edit(&mut files);
        all.push(files.clone());
    }
    let folder = tempfile::tempdir().unwrap();
    let paths = (0..all.len()).map(|at| folder.path().join(at.to_string())).collect();
    let corpus = Corpus { name: "folders".into(), description: String::new(), versions: paths };
    for (root, files) in corpus.versions.iter().zip(&all) {
        for (name, file) in files {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
    }
    let versions = Versions::of(&corpus, &Settings::default()).unwrap();
    let loaded = (1..=all.len()).map(|version| versions.load(version).unwrap());
    let listed = loaded.enumerate().map(|(at, bytes)| (versions.inventory(at + 1, &bytes).unwrap(), bytes));
    told(listed.collect())
}

/// Files of blocks: some are written to, some more come at the end, some go there.
fn images() -> Vec<Version> {
    let mut sequence = Sequence::new(22);
    let mut image = sequence.bytes(700_000);
    let mut all = vec![image.clone()];
    for _ in 0..2 {
        let at = sequence.index(600_000);
        image[at..at + 2000].fill(3);
        image.truncate(640_000);
        all.push(image.clone());
        image.extend(sequence.bytes(100_000));
        image[..300].fill(4);
        all.push(image.clone());
    }
    told(all.into_iter().map(|image| (Inventory::of_blocks(&image), image.into())).collect())
}

fn told(versions: Vec<(Inventory, Arc<[u8]>)>) -> Vec<Version> {
    let mut before = Inventory::default();
    let tell = |(inventory, bytes): (Inventory, Arc<[u8]>)| {
        let changes = Changes::between(&before, &inventory);
        before = inventory;
        Version { bytes, changes }
    };
    versions.into_iter().map(tell).collect()
}

/// Versions of stretches of the one before, in any order, some of them twice, and new ones between.
fn mixed(seed: u64) -> Vec<Version> {
    let mut sequence = Sequence::new(seed);
    let mut before: Vec<u8> = Vec::new();
    let mut all = Vec::new();
    for _ in 0..5 {
        let (mut bytes, mut stretches) = (Vec::new(), Vec::new());
        while bytes.len() < 300_000 {
            let begin = bytes.len();
            let length_max = [100, 5_000, 90_000][sequence.index(3)];
            let from = (!before.is_empty() && sequence.index(4) > 0).then(|| sequence.index(before.len()));
            match from {
                // As often as not to the end, where the last chunk is cut by no content.
                Some(from) => {
                    let length = (1 + sequence.index(length_max)).min(before.len() - from);
                    bytes.extend_from_slice(&before[from..from + length]);
                }
                None if sequence.index(3) == 0 => bytes.resize(begin + 1 + sequence.index(length_max), 0),
                None => bytes.extend(sequence.bytes(1 + sequence.clone().index(length_max))),
            }
            stretches.push(Stretch { bytes: bytes.len() - begin, from });
        }
        before.clone_from(&bytes);
        all.push(Version { bytes: bytes.into(), changes: stretches.into_iter().collect() });
    }
    all
}

/// The stores after full and after incremental backups, and what the latter did.
fn both(method: Method, versions: &[Version], folder: &Path) -> ([Kept; 2], Vec<BackedUp>) {
    let mut kept = ["full", "virtual"].map(|name| method.create(&folder.join(name), scale()).unwrap());
    let [full, virtual_full] = &mut kept;
    let mut done = Vec::new();
    for (version, Version { bytes, changes }) in (1..).zip(versions) {
        assert_eq!(full.back_up(version, bytes).unwrap().read_bytes, bytes.len() as u64);
        full.settle(version).unwrap();
        done.push(virtual_full.back_up_changes(version, bytes, Some(changes)).unwrap());
        virtual_full.settle(version).unwrap();
    }
    (kept, done)
}

#[test]
fn a_virtual_full_backup_is_the_full_backup() {
    for (what, versions) in [("folders", folders()), ("images", images()), ("mixed", mixed(1)), ("mixed", mixed(2))] {
        for method in methods() {
            let folder = tempfile::tempdir().unwrap();
            let ([full, virtual_full], _) = both(method, &versions, folder.path());
            for (version, Version { bytes, .. }) in (1..).zip(&versions) {
                let what = format!("{what}, {method:?}: version {version}");
                let restored = folder.path().join("restored");
                virtual_full.restore(version, &restored).unwrap();
                assert!(fs::read(&restored).unwrap() == **bytes, "{what}");
                fs::remove_file(&restored).unwrap();
                let [one, other] = [&full, &virtual_full].map(|kept| kept.store().unwrap().recipe(version).unwrap().0);
                let lengths = |items: &[Item]| items.iter().map(|item| item.bytes).collect::<Vec<_>>();
                assert_eq!(lengths(&one), lengths(&other), "{what}: cuts");
                // Capping has chunks written again: which of a content a record names depends on where it stood.
                let has_one_number = !matches!(method, Method::Fgd(_) | Method::Cld(_));
                assert!(!has_one_number || one == other, "{what}: records");
            }
            let [one, other] = [&full, &virtual_full].map(|kept| kept.held().unwrap().bytes);
            assert!(one.abs_diff(other) * 50 <= one, "{what}, {method:?}: {one} and {other} bytes stored");
        }
    }
}

#[test]
fn what_is_read_is_what_changed_and_a_few_chunks_around_each_change() {
    for versions in [folders(), images()] {
        let folder = tempfile::tempdir().unwrap();
        for method in [Method::Mfd, Method::Greedy] {
            let (_, done) = both(method, &versions, &folder.path().join(method.name()));
            for (Version { bytes, changes }, done) in versions.iter().zip(&done).skip(1) {
                let (changed, seams) = (changes.changed_bytes() as u64, changes.0.len() as u64);
                let read = done.read_bytes;
                assert!(read >= changed, "{read} {changed}");
                assert!(read <= changed + seams * 4 * u64::from(EXPECTED_BYTES), "{read} {changed} {seams}");
                assert_eq!(changed == 0, read == 0);
                assert_eq!(changed == bytes.len() as u64, read == bytes.len() as u64);
            }
        }
    }
}

#[test]
fn a_file_that_lies_elsewhere_is_kept_and_one_of_another_name_is_new() {
    let versions = folders();
    let entry = |file_bytes: usize| 512 + file_bytes.next_multiple_of(512);
    let changed: Vec<_> = versions.iter().map(|version| version.changes.changed_bytes()).collect();
    let whole: Vec<_> = versions.iter().map(|version| version.bytes.len()).collect();
    let file = 60_000 + 7 * "b/1".len();
    assert_eq!((changed[0], changed[1]), (whole[0], entry(file)));
    // Where the sum of the entries changed, the archive's end may have another length, and then is new.
    let end_bytes = 1024..1024 + 10_240;
    let new_entries = [entry(file + 6) + entry(file - 8_900), entry(1000) + entry(700), entry(file)];
    for (changed, entries) in changed[2..5].iter().zip(new_entries) {
        assert!(*changed == entries || end_bytes.contains(&(changed - entries)), "{changed} {entries}");
    }
    assert_eq!((changed[5], changed[6]), (0, whole[6]));
    assert_eq!(versions[5].changes.0, [Stretch { bytes: whole[5], from: Some(0) }]);
}

#[test]
fn changes_of_another_version_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = Method::Mfd.create(folder.path(), scale()).unwrap();
    let changes: Changes = [Stretch { bytes: 1000, from: None }].into_iter().collect();
    assert!(kept.back_up_changes(1, &Arc::from([0; 999]), Some(&changes)).is_err());
    kept.back_up_changes(1, &Arc::from([0; 1000]), Some(&changes)).unwrap();
    let too_early: Changes = [Stretch { bytes: 1000, from: Some(0) }].into_iter().collect();
    assert!(kept.back_up_changes(3, &Arc::from([0; 1000]), Some(&too_early)).is_err(), "version 2 is not stored");
}

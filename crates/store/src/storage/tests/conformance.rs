//! The contract of [`Storage`], held against every implementation.

use super::*;
use crate::storage::{Cached, Disk, Listing, NameKind, ObjectMeta, Original, Recorder, StorageError};
use crate::{KeyId, RenewalId};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

fn every_storage(test: fn(&dyn Storage)) {
    let folder = tempfile::tempdir().unwrap();
    test(&Disk::create(folder.path().join("repository")).unwrap());
    test(&SimulatedDisk::new());
    test(&Arc::new(Recorder::new(SimulatedDisk::new())));
    let cache = tempfile::tempdir().unwrap();
    test(&Cached::open(Arc::new(SimulatedDisk::new()), cache.path(), 1 << 20).unwrap());
}

#[test]
fn put_objects_read_back_after_a_barrier() {
    every_storage(|storage| {
        let contents: Vec<Vec<u8>> = (0..20u8).map(|i| vec![i; usize::from(i) * 1000]).collect();
        for (i, content) in (0..).zip(&contents) {
            storage.put(&container(i), content).unwrap();
        }
        storage.barrier().unwrap();
        for (i, content) in (0..).zip(&contents) {
            assert_eq!(storage.read(&container(i), u64::MAX).unwrap(), *content);
        }
    });
}

#[test]
fn ranges_are_exact_or_refused() {
    every_storage(|storage| {
        storage.create(&key(1), b"0123456789").unwrap();
        assert_eq!(storage.read_range(&key(1), 0, 10).unwrap(), b"0123456789");
        assert_eq!(storage.read_range(&key(1), 3, 4).unwrap(), b"3456");
        assert_eq!(storage.read_range(&key(1), 10, 0).unwrap(), b"");
        for (offset, length) in [(0, 11), (10, 1), (11, 0), (u64::MAX, 1), (5, usize::MAX)] {
            match storage.read_range(&key(1), offset, length) {
                Err(StorageError::TooShort { name, found: 10, .. }) => assert_eq!(name, key(1)),
                other => panic!("{offset} {length}: {other:?}"),
            }
        }
    });
}

#[test]
fn an_object_beyond_the_limit_is_refused_by_name_and_one_at_it_is_read() {
    every_storage(|storage| {
        storage.create(&key(1), b"0123456789").unwrap();
        assert_eq!(storage.read(&key(1), 10).unwrap(), b"0123456789");
        match storage.read(&key(1), 9) {
            Err(StorageError::TooLarge { name, bytes: 10, limit: 9 }) => assert_eq!(name, key(1)),
            other => panic!("{other:?}"),
        }
    });
}

#[test]
fn copies_lie_beside_their_originals_and_are_listed_apart() {
    every_storage(|storage| {
        let originals = [
            (Original::Config(3), Listing::Configs, Listing::ConfigCopies),
            (Original::Key(KeyId([1; 16])), Listing::Keys, Listing::KeyCopies),
            (Original::Manifest(SERIES, 9), Listing::Manifests(SERIES), Listing::ManifestCopies(SERIES)),
            (Original::Manifest(SERIES, 9), Listing::AllManifests, Listing::AllManifestCopies),
        ];
        for (original, ..) in &originals[..3] {
            storage.create(&original.name(), b"original").unwrap();
            storage.create(&original.copy(), b"copy").unwrap();
        }
        let listed = |what| storage.list(what).unwrap().into_iter().map(|object| object.name).collect::<Vec<_>>();
        for (original, of_originals, of_copies) in originals {
            assert_eq!((listed(of_originals), listed(of_copies)), (vec![original.name()], vec![original.copy()]));
        }
        assert_eq!(listed(Listing::ManifestCopies(OTHER_SERIES)), []);
        assert_eq!(listed(Listing::All).len(), 6);
    });
}

#[test]
fn what_is_missing_is_named() {
    every_storage(|storage| {
        for result in [storage.read(&manifest(7), u64::MAX), storage.read_range(&manifest(7), 0, 1)] {
            let error = result.unwrap_err();
            assert!(error.is_not_found());
            assert!(error.to_string().contains(&manifest(7).to_string()), "{error}");
        }
    });
}

#[test]
fn a_taken_name_is_refused_and_nothing_changes() {
    every_storage(|storage| {
        storage.create(&manifest(1), b"first").unwrap();
        assert!(storage.create(&manifest(1), b"second").unwrap_err().is_already_exists());
        assert!(storage.put(&manifest(1), b"third").unwrap_err().is_already_exists());
        storage.create(&manifest(2), b"writing goes on").unwrap();
        storage.barrier().unwrap();
        assert_eq!(storage.read(&manifest(1), u64::MAX).unwrap(), b"first");
    });
}

#[test]
fn of_many_creators_one_wins() {
    every_storage(|storage| {
        for sequence in 0..20 {
            let created = |content: u8| storage.create(&manifest(sequence), &[content; 100]).is_ok();
            let won: Vec<u8> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4u8).map(|i| scope.spawn(move || created(i).then_some(i))).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(won.len(), 1);
            assert_eq!(storage.read(&manifest(sequence), u64::MAX).unwrap(), [won[0]; 100]);
        }
    });
}

#[test]
fn deleting_is_final_and_may_be_repeated() {
    every_storage(|storage| {
        storage.create(&key(1), b"x").unwrap();
        storage.delete(&key(1)).unwrap();
        storage.delete(&key(1)).unwrap();
        storage.delete(&container(9)).unwrap();
        assert!(!exists(storage, &key(1)));
        storage.barrier().unwrap();
        assert!(!exists(storage, &key(1)));
    });
}

#[test]
fn a_pending_put_can_be_deleted() {
    every_storage(|storage| {
        for i in 0..50 {
            storage.put(&container(i), &vec![1; 10_000]).unwrap();
            storage.delete(&container(i)).unwrap();
        }
        storage.barrier().unwrap();
        assert_eq!(storage.list(Listing::All).unwrap(), []);
    });
}

#[test]
fn a_deleted_name_can_be_written_again() {
    every_storage(|storage| {
        storage.create(&ObjectName::Reserve, &[0; 100]).unwrap();
        storage.delete(&ObjectName::Reserve).unwrap();
        storage.create(&ObjectName::Reserve, &[1; 50]).unwrap();
        storage.delete(&ObjectName::Reserve).unwrap();
        storage.put(&ObjectName::Reserve, &[2; 25]).unwrap();
        storage.barrier().unwrap();
        assert_eq!(storage.read(&ObjectName::Reserve, u64::MAX).unwrap(), [2; 25]);
    });
}

#[test]
fn listings_hold_what_was_asked_in_order() {
    every_storage(|storage| {
        assert_eq!(storage.list(Listing::All).unwrap(), []);
        let names = [ObjectName::Config(1), key(1), key(2), manifest(9), manifest(16), container(0), container(17)];
        for name in names.iter().rev() {
            storage.put(name, name.to_string().as_bytes()).unwrap();
        }
        storage.create(&foreign_container(3), b"").unwrap();
        storage.barrier().unwrap();
        let listed = |what| storage.list(what).unwrap().into_iter().map(|object| object.name).collect::<Vec<_>>();
        let mut all = names.to_vec();
        all.push(foreign_container(3));
        all.sort();
        assert_eq!(listed(Listing::All), all);
        assert_eq!(listed(Listing::Keys), names[1..3]);
        assert_eq!(listed(Listing::AllManifests), names[3..5]);
        assert_eq!(listed(Listing::Manifests(SERIES)), names[3..5]);
        assert_eq!(listed(Listing::Manifests(OTHER_SERIES)), []);
        assert_eq!(listed(Listing::Containers(SERIES)), names[5..7]);
        assert_eq!(listed(Listing::Containers(OTHER_SERIES)), [foreign_container(3)]);
        for object in storage.list(Listing::All).unwrap().iter().filter(|object| object.name != foreign_container(3)) {
            assert_eq!(object.bytes, object.name.to_string().len() as u64);
        }
    });
}

#[test]
fn a_renewal_takes_the_place_of_the_one_before_and_never_of_another() {
    every_storage(|storage| {
        let names = [0, 1, 2].map(|count| ObjectName::Renewal(SERIES, RenewalId { lease: 3, count }));
        let listed = || storage.list(Listing::Renewals(SERIES)).unwrap();
        storage.renew(&names[0], None).unwrap();
        assert_eq!(listed(), [ObjectMeta { name: names[0], bytes: 0 }]);
        storage.renew(&names[1], Some(&names[0])).unwrap();
        assert!(storage.renew(&names[1], None).unwrap_err().is_already_exists());
        assert_eq!(listed(), [ObjectMeta { name: names[1], bytes: 0 }]);
        storage.renew(&names[2], Some(&names[0])).unwrap();
        storage.barrier().unwrap();
        assert_eq!(listed().iter().map(|meta| meta.name).collect::<Vec<_>>(), names[1..]);
        assert_eq!(storage.list(Listing::All).unwrap(), listed());
        assert_eq!(storage.list(Listing::Renewals(OTHER_SERIES)).unwrap(), []);
        assert_eq!(storage.read(&names[2], names[2].bytes_max()).unwrap(), b"");
        storage.delete(&names[2]).unwrap();
        assert_eq!(listed().len(), 1);
    });
}

#[test]
fn nothing_is_unfinished_after_a_barrier() {
    every_storage(|storage| {
        storage.put(&container(1), b"x").unwrap();
        storage.barrier().unwrap();
        storage.create(&manifest(1), b"x").unwrap();
        assert_eq!(storage.remove_unfinished(SERIES, u64::MAX).unwrap(), 0);
        assert!(exists(storage, &container(1)));
    });
}

#[test]
fn many_threads_may_put_and_wait_at_once() {
    every_storage(|storage| {
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for i in 0..10 {
                        storage.put(&container(thread * 100 + i), &[7; 5000]).unwrap();
                        if i % 3 == 0 {
                            storage.barrier().unwrap();
                            assert_eq!(storage.read(&container(thread * 100 + i), u64::MAX).unwrap(), [7; 5000]);
                        }
                    }
                });
            }
        });
        storage.barrier().unwrap();
        assert_eq!(storage.list(Listing::All).unwrap().len(), 40);
    });
}

#[test]
fn a_recorder_counts_calls_and_bytes() {
    let storage = Recorder::new(SimulatedDisk::new());
    storage.put(&container(1), &[0; 100]).unwrap();
    storage.put(&container(2), &[0; 50]).unwrap();
    storage.barrier().unwrap();
    storage.create(&manifest(1), &[0; 7]).unwrap();
    storage.create(&manifest(1), &[0; 7]).unwrap_err();
    storage.read_range(&container(1), 10, 20).unwrap();
    storage.read(&container(2), u64::MAX).unwrap();
    storage.read(&container(3), u64::MAX).unwrap_err();
    storage.delete(&container(2)).unwrap();
    storage.list(Listing::All).unwrap();

    let calls = storage.reset();
    let containers = calls.of_kind(NameKind::Container);
    assert_eq!((containers.puts, containers.bytes_written, containers.deletes), (2, 150, 1));
    assert_eq!((containers.reads, containers.range_reads, containers.bytes_read), (2, 1, 70));
    assert_eq!((calls.of(&manifest(1)).creates, calls.of(&manifest(1)).bytes_written), (2, 7));
    assert_eq!((calls.barriers, calls.lists, calls.total().bytes_written), (1, 1, 157));
    assert_eq!(storage.calls(), crate::storage::StorageCalls::default());
}

#[derive(Clone, Debug)]
enum Step {
    Put(u32, u16),
    Create(u32, u16),
    Delete(u32),
    Barrier,
}

fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..8u32, 0..5000u16).prop_map(|(name, bytes)| Step::Put(name, bytes)),
        2 => (0..8u32, 0..5000u16).prop_map(|(name, bytes)| Step::Create(name, bytes)),
        2 => (0..8u32).prop_map(Step::Delete),
        1 => Just(Step::Barrier),
    ]
}

/// Does the steps on a storage and on a plain map; a name counts as taken from its put on.
fn follows_the_model(storage: &dyn Storage, steps: &[Step]) {
    let mut model = BTreeMap::new();
    for (content, step) in (0..=u8::MAX).cycle().zip(steps) {
        match *step {
            Step::Put(name, bytes) | Step::Create(name, bytes) => {
                let (name, bytes) = (container(name), vec![content; usize::from(bytes)]);
                let is_put = matches!(step, Step::Put(..));
                let written = if is_put { storage.put(&name, &bytes) } else { storage.create(&name, &bytes) };
                assert_eq!(written.is_ok(), !model.contains_key(&name), "{written:?}");
                model.entry(name).or_insert(bytes);
            }
            Step::Delete(name) => {
                storage.delete(&container(name)).unwrap();
                model.remove(&container(name));
            }
            Step::Barrier => storage.barrier().unwrap(),
        }
    }
    storage.barrier().unwrap();
    let listed = storage.list(Listing::All).unwrap().into_iter().map(|object| object.name);
    let found: BTreeMap<_, _> = listed.map(|name| (name, storage.read(&name, u64::MAX).unwrap())).collect();
    assert_eq!(found, model);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn any_steps_end_as_on_a_plain_map(steps in prop::collection::vec(any_step(), 0..30)) {
        let folder = tempfile::tempdir().unwrap();
        follows_the_model(&Disk::open(folder.path()).unwrap(), &steps);
        follows_the_model(&SimulatedDisk::new(), &steps);
    }
}

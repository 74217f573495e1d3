//! The contract of [`Storage`] as functions, one for each promise, which every place must pass. A function takes a
//! storage that is empty and used by nobody else, and panics where the promise is broken.
//!
//! [`contracts!`](crate::contracts) makes a test of each: a new place needs one line, and cannot leave one out.
//!
//! ```
//! use siltstone_store::storage::conformance;
//! conformance::sizes_are_lengths(&siltstone_store::storage::SimulatedDisk::new());
//! ```

#![allow(clippy::missing_panics_doc, reason = "each panics where its promise is broken")]
#![allow(clippy::cast_possible_truncation, reason = "numbers are small")]

use super::{Listing, ObjectMeta, ObjectName, Original, ReadRequest, Replaced, Storage, StorageError};
use crate::container::ContainerKind;
use crate::ids::{ContainerId, KeyId, LoanId, PartId, RenewalId, SeriesId};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A series.
pub const SERIES: SeriesId = SeriesId([0xa5; 16]);
/// Another series.
pub const OTHER_SERIES: SeriesId = SeriesId([0x5a; 16]);

/// A contract: a function that panics where a storage breaks a promise.
pub type Contract = fn(&dyn Storage);

/// Returns all contracts with their names.
pub fn all() -> Vec<(&'static str, Contract)> {
    crate::contracts!()
}

/// Makes a test of each contract. `$every_storage` is a function that calls the [`Contract`] it is given once for each
/// storage to be tested, with a new one each time. Without an argument: all contracts with their names.
#[macro_export]
macro_rules! contracts {
    () => {
        $crate::contracts! { @names pairs }
    };
    ($every_storage:path) => {
        $crate::contracts! { @names tests $every_storage }
    };
    (@names $($what:tt)*) => {
        $crate::contracts! { @make $($what)* =>
            put_objects_read_back_after_a_barrier
            ranges_are_exact_or_refused
            an_object_beyond_the_limit_is_refused_by_name_and_one_at_it_is_read
            copies_lie_beside_their_originals_and_are_listed_apart
            what_is_missing_is_named
            a_taken_name_is_refused_and_nothing_changes
            of_many_creators_one_wins
            deleting_is_final_and_may_be_repeated
            a_pending_put_can_be_deleted
            a_deleted_name_can_be_written_again
            listings_hold_what_was_asked_in_order
            objects_of_every_kind_are_listed_together_and_by_their_kind
            a_renewal_takes_the_place_of_the_one_before_and_never_of_another
            nothing_is_unfinished_after_a_barrier
            many_threads_may_put_and_wait_at_once
            many_reads_answer_each_request_once
            many_reads_end_where_the_asker_breaks
            sizes_are_lengths
            a_listing_after_a_name_is_the_rest_of_the_listing
            many_deletions_remove_each_and_nothing_else
            a_storage_describes_itself
            random_steps_end_as_on_a_plain_map
        }
    };
    (@make pairs => $($contract:ident)*) => {
        vec![$((stringify!($contract), $contract as Contract)),*]
    };
    (@make tests $every_storage:path => $($contract:ident)*) => {
        $(
            #[test]
            fn $contract() {
                $every_storage($crate::storage::conformance::$contract);
            }
        )*
    };
}

/// The name of a key slot.
pub fn key(id: u8) -> ObjectName {
    ObjectName::Key(KeyId([id; 16]))
}

/// The name of a manifest of [`SERIES`].
pub fn manifest(sequence: u64) -> ObjectName {
    ObjectName::Manifest(SERIES, sequence)
}

/// The name of a container of data of [`SERIES`].
pub fn container(serial: u32) -> ObjectName {
    ObjectName::Container(ContainerKind::Data, SERIES, ContainerId { lease: 1, serial })
}

/// The name of a container of metadata of [`SERIES`].
pub fn metadata_container(serial: u32) -> ObjectName {
    ObjectName::Container(ContainerKind::Metadata, SERIES, ContainerId { lease: 1, serial })
}

/// The name of a container of data of [`OTHER_SERIES`].
pub fn foreign_container(serial: u32) -> ObjectName {
    ObjectName::Container(ContainerKind::Data, OTHER_SERIES, ContainerId { lease: 1, serial })
}

/// Tells whether an object can be read.
///
/// # Panics
/// If it can neither be read nor is absent.
pub fn exists(storage: &dyn Storage, name: &ObjectName) -> bool {
    match storage.read(name, u64::MAX) {
        Ok(_) => true,
        Err(error) if error.is_not_found() => false,
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Objects that were put are read back whole after a barrier.
pub fn put_objects_read_back_after_a_barrier(storage: &dyn Storage) {
    let contents: Vec<Vec<u8>> = (0..20u8).map(|i| vec![i; usize::from(i) * 1000]).collect();
    for (i, content) in (0..).zip(&contents) {
        storage.put(&container(i), content).unwrap();
    }
    storage.barrier().unwrap();
    for (i, content) in (0..).zip(&contents) {
        assert_eq!(storage.read(&container(i), u64::MAX).unwrap(), *content);
    }
}

/// A range is exact, or refused with the length that was found.
pub fn ranges_are_exact_or_refused(storage: &dyn Storage) {
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
}

/// The limit of a read refuses an object that is longer, by its name, and no other.
pub fn an_object_beyond_the_limit_is_refused_by_name_and_one_at_it_is_read(storage: &dyn Storage) {
    storage.create(&key(1), b"0123456789").unwrap();
    assert_eq!(storage.read(&key(1), 10).unwrap(), b"0123456789");
    match storage.read(&key(1), 9) {
        Err(StorageError::TooLarge { name, bytes: 10, limit: 9 }) => assert_eq!(name, key(1)),
        other => panic!("{other:?}"),
    }
}

/// Copies lie beside their originals and are listed apart from them.
pub fn copies_lie_beside_their_originals_and_are_listed_apart(storage: &dyn Storage) {
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
}

/// A missing object is named.
pub fn what_is_missing_is_named(storage: &dyn Storage) {
    let size = storage.size_of(&manifest(7)).map(|_| Vec::new());
    for result in [storage.read(&manifest(7), u64::MAX), storage.read_range(&manifest(7), 0, 1), size] {
        let error = result.unwrap_err();
        assert!(error.is_not_found());
        assert!(error.to_string().contains(&manifest(7).to_string()), "{error}");
    }
}

/// A taken name is refused, by `put` no later than by the next barrier, and its object stays as it is.
pub fn a_taken_name_is_refused_and_nothing_changes(storage: &dyn Storage) {
    storage.create(&manifest(1), b"first").unwrap();
    assert!(storage.create(&manifest(1), b"second").unwrap_err().is_already_exists());
    storage.create(&manifest(2), b"writing goes on").unwrap();
    storage.barrier().unwrap();
    assert_eq!(storage.read(&manifest(1), u64::MAX).unwrap(), b"first");
    let put = storage.put(&manifest(1), b"third").and_then(|()| storage.barrier());
    assert!(put.unwrap_err().is_already_exists());
    assert_eq!(storage.read(&manifest(1), u64::MAX).unwrap(), b"first");
}

/// One of many creators of a name succeeds, and its bytes are read.
pub fn of_many_creators_one_wins(storage: &dyn Storage) {
    for sequence in 0..20 {
        let created = |content: u8| storage.create(&manifest(sequence), &[content; 100]).is_ok();
        let won: Vec<u8> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4u8).map(|i| scope.spawn(move || created(i).then_some(i))).collect();
            threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(won.len(), 1);
        assert_eq!(storage.read(&manifest(sequence), u64::MAX).unwrap(), [won[0]; 100]);
    }
}

/// Deletion is seen at once and may be repeated.
pub fn deleting_is_final_and_may_be_repeated(storage: &dyn Storage) {
    storage.create(&key(1), b"x").unwrap();
    storage.delete(&key(1)).unwrap();
    storage.delete(&key(1)).unwrap();
    storage.delete(&container(9)).unwrap();
    assert!(!exists(storage, &key(1)));
    storage.barrier().unwrap();
    assert!(!exists(storage, &key(1)));
}

/// An object can be deleted before the barrier that would make it durable.
pub fn a_pending_put_can_be_deleted(storage: &dyn Storage) {
    for i in 0..50 {
        storage.put(&container(i), &vec![1; 10_000]).unwrap();
        storage.delete(&container(i)).unwrap();
    }
    storage.barrier().unwrap();
    assert_eq!(storage.list(Listing::All).unwrap(), []);
}

/// A deleted name can be written again.
pub fn a_deleted_name_can_be_written_again(storage: &dyn Storage) {
    storage.create(&ObjectName::Reserve, &[0; 100]).unwrap();
    storage.delete(&ObjectName::Reserve).unwrap();
    storage.create(&ObjectName::Reserve, &[1; 50]).unwrap();
    storage.delete(&ObjectName::Reserve).unwrap();
    storage.put(&ObjectName::Reserve, &[2; 25]).unwrap();
    storage.barrier().unwrap();
    assert_eq!(storage.read(&ObjectName::Reserve, u64::MAX).unwrap(), [2; 25]);
}

/// Listings hold what was asked for, in the order of names, with sizes.
pub fn listings_hold_what_was_asked_in_order(storage: &dyn Storage) {
    assert_eq!(storage.list(Listing::All).unwrap(), []);
    let repository = [ObjectName::Config(1), key(1), key(2)];
    let series = [manifest(9), manifest(16), container(0), container(17), metadata_container(0), metadata_container(2)];
    let names = [&repository[..], &series].concat();
    for name in names.iter().rev() {
        storage.put(name, name.to_string().as_bytes()).unwrap();
    }
    storage.create(&foreign_container(3), b"").unwrap();
    storage.barrier().unwrap();
    let listed = |what| storage.list(what).unwrap().into_iter().map(|object| object.name).collect::<Vec<_>>();
    let mut all = names.clone();
    all.push(foreign_container(3));
    all.sort();
    assert_eq!(listed(Listing::All), all);
    assert_eq!(listed(Listing::Keys), names[1..3]);
    assert_eq!(listed(Listing::AllManifests), names[3..5]);
    assert_eq!(listed(Listing::Manifests(SERIES)), names[3..5]);
    assert_eq!(listed(Listing::Manifests(OTHER_SERIES)), []);
    assert_eq!(Listing::containers_of(SERIES).map(listed), [names[5..7].to_vec(), names[7..9].to_vec()]);
    assert_eq!(Listing::containers_of(OTHER_SERIES).map(listed), [vec![foreign_container(3)], vec![]]);
    let both: Vec<_> = storage.list_containers(SERIES).unwrap().iter().map(|object| object.name).collect();
    assert_eq!(both, names[5..9]);
    for object in storage.list(Listing::All).unwrap().iter().filter(|object| object.name != foreign_container(3)) {
        assert_eq!(object.bytes, object.name.to_string().len() as u64);
    }
}

/// The names of objects of each kind, in order. Each kind says which comes next, so that a new one is not forgotten.
fn one_of_each_kind() -> Vec<ObjectName> {
    let id = ContainerId { lease: 1, serial: 2 };
    let mut names = Vec::new();
    let mut next = Some(ObjectName::Config(1));
    while let Some(name) = next {
        names.push(name);
        next = match name {
            ObjectName::Config(_) => Some(ObjectName::Reserve),
            ObjectName::Reserve => Some(key(1)),
            ObjectName::Key(_) => Some(manifest(9)),
            ObjectName::Manifest(..) => Some(container(0)),
            ObjectName::Container(ContainerKind::Data, ..) => Some(metadata_container(1)),
            ObjectName::Container(ContainerKind::Metadata, ..) => Some(ObjectName::Aside(Replaced::Config(1), 3)),
            ObjectName::Aside(..) => Some(ObjectName::Parity(SERIES, id)),
            ObjectName::Parity(..) => Some(ObjectName::ManifestPart(SERIES, PartId { lease: 1, serial: 4 })),
            ObjectName::ManifestPart(_, part) => Some(Original::ManifestPart(SERIES, part).copy()),
            ObjectName::Copy(Original::ManifestPart(..)) => Some(Original::Manifest(SERIES, 9).copy()),
            ObjectName::Copy(Original::Manifest(..)) => Some(Original::Key(KeyId([1; 16])).copy()),
            ObjectName::Copy(Original::Key(_)) => Some(Original::Config(1).copy()),
            ObjectName::Copy(Original::Config(_)) => {
                Some(ObjectName::Loan(SERIES, LoanId { borrower: OTHER_SERIES, lease: 1, serial: 5 }))
            }
            ObjectName::Loan(..) => Some(ObjectName::Directory(7)),
            ObjectName::Directory(_) => Some(ObjectName::Renewal(SERIES, RenewalId { lease: 1, count: 6 })),
            ObjectName::Renewal(..) => None,
        };
    }
    names.sort_unstable();
    names
}

/// A listing of everything holds objects of every kind, and each listing of a kind all that are of it.
pub fn objects_of_every_kind_are_listed_together_and_by_their_kind(storage: &dyn Storage) {
    let names = one_of_each_kind();
    for name in &names {
        match name {
            ObjectName::Renewal(..) => storage.renew(name, None).unwrap(),
            name => storage.create(name, b"x").unwrap(),
        }
    }
    storage.barrier().unwrap();
    let listed = |what| storage.list(what).unwrap().into_iter().map(|object| object.name).collect::<Vec<_>>();
    assert_eq!(listed(Listing::All), names);
    let kept_twice = [Listing::Configs, Listing::ConfigCopies, Listing::Keys, Listing::KeyCopies];
    let others = [Listing::Aside, Listing::Directories, Listing::AllManifests, Listing::AllManifestCopies];
    let of_series = [SERIES, OTHER_SERIES].into_iter().flat_map(|series| {
        Listing::kept_by(series).into_iter().chain([Listing::Renewals(series), Listing::Loans(series)])
    });
    for what in kept_twice.into_iter().chain(others).chain(of_series) {
        let held: Vec<ObjectName> = names.iter().copied().filter(|name| what.holds(name)).collect();
        assert_eq!(listed(what), held, "{what:?}");
    }
}

/// A renewal takes the place of the one before and never of another.
pub fn a_renewal_takes_the_place_of_the_one_before_and_never_of_another(storage: &dyn Storage) {
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
}

/// Nothing is unfinished after a barrier.
pub fn nothing_is_unfinished_after_a_barrier(storage: &dyn Storage) {
    storage.put(&container(1), b"x").unwrap();
    storage.barrier().unwrap();
    storage.create(&manifest(1), b"x").unwrap();
    assert_eq!(storage.remove_unfinished(SERIES, u64::MAX).unwrap(), 0);
    assert!(exists(storage, &container(1)));
}

/// Many threads may put and wait at the same time.
pub fn many_threads_may_put_and_wait_at_once(storage: &dyn Storage) {
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
}

/// Many reads give each request one answer, the same as it would get alone; failures are answers like others.
pub fn many_reads_answer_each_request_once(storage: &dyn Storage) {
    for i in 0..30 {
        storage.put(&container(i), &vec![i as u8; 1000 + i as usize]).unwrap();
    }
    storage.barrier().unwrap();
    let whole = (0..40).map(|i| ReadRequest::whole(container(i), 1020));
    let ranges = (0..40).map(|i| ReadRequest::range(container(i), u64::from(i), 1000));
    let requests: Vec<ReadRequest> = whole.chain(ranges).collect();
    let mut answers = BTreeMap::new();
    storage.read_many(&requests, &mut |place, answer| {
        assert!(answers.insert(place, answer).is_none(), "request {place} is answered twice");
        ControlFlow::Continue(())
    });
    assert_eq!(answers.len(), requests.len());
    for (request, answer) in requests.iter().zip(answers.values()) {
        let (alone, shown) = (storage.read_part(request), format!("{request:?}: {answer:?}"));
        match (answer, alone) {
            (Ok(answer), Ok(alone)) => assert_eq!(*answer, alone, "{shown}"),
            (Err(answer), Err(alone)) => assert_eq!(answer.to_string(), alone.to_string(), "{shown}"),
            (_, alone) => panic!("{shown}, alone {alone:?}"),
        }
    }
    storage.read_many(&[], &mut |_, _| panic!("nothing was asked for"));
}

/// Many reads end where the asker breaks.
pub fn many_reads_end_where_the_asker_breaks(storage: &dyn Storage) {
    storage.create(&key(1), b"x").unwrap();
    let mut answers = 0;
    storage.read_many(&[ReadRequest::whole(key(1), 1); 100], &mut |_, _| {
        answers += 1;
        if answers == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    assert_eq!(answers, 3);
    assert_eq!(storage.read(&key(1), 1).unwrap(), b"x");
}

/// The size of an object is its length.
pub fn sizes_are_lengths(storage: &dyn Storage) {
    for (id, bytes) in [(1, 0), (2, 1), (3, 60_000)] {
        storage.create(&key(id), &vec![id; bytes]).unwrap();
        assert_eq!(storage.size_of(&key(id)).unwrap(), bytes as u64);
    }
}

/// A listing after a name holds what comes after it, and nothing before.
pub fn a_listing_after_a_name_is_the_rest_of_the_listing(storage: &dyn Storage) {
    for i in 0..12 {
        storage.put(&container(i * 16), b"x").unwrap();
        storage.put(&foreign_container(i), b"x").unwrap();
        storage.create(&manifest(u64::from(i)), b"x").unwrap();
    }
    storage.barrier().unwrap();
    for what in [
        Listing::Containers(ContainerKind::Data, SERIES),
        Listing::Manifests(SERIES),
        Listing::AllManifests,
        Listing::All,
    ] {
        for after in [container(0), container(31), container(32), container(176), manifest(0), manifest(11)] {
            let mut rest = storage.list(what).unwrap();
            rest.retain(|object| object.name > after);
            assert_eq!(storage.list_after(what, &after).unwrap(), rest, "{what:?} after {after}");
        }
    }
}

/// Many deletions remove each object, and those that are gone already are no failure.
pub fn many_deletions_remove_each_and_nothing_else(storage: &dyn Storage) {
    (0..30).for_each(|i| storage.put(&container(i), b"x").unwrap());
    storage.barrier().unwrap();
    let odd: Vec<ObjectName> = (0..40).filter(|i| i % 2 == 1).map(container).collect();
    storage.delete_many(&odd).unwrap();
    storage.delete_many(&odd).unwrap();
    storage.delete_many(&[]).unwrap();
    let left: Vec<ObjectName> = storage.list(Listing::All).unwrap().iter().map(|object| object.name).collect();
    assert_eq!(left, (0..30).filter(|i| i % 2 == 0).map(container).collect::<Vec<_>>());
}

/// A storage says that at least one request is useful, and has a place to show.
pub fn a_storage_describes_itself(storage: &dyn Storage) {
    assert!(storage.capabilities().requests_in_flight >= 1);
    assert!(!storage.location().is_empty());
}

/// Random steps end as they do on a plain map.
pub fn random_steps_end_as_on_a_plain_map(storage: &dyn Storage) {
    for seed in 1..=24 {
        follow_a_plain_map(storage, seed);
        let names: Vec<ObjectName> = storage.list(Listing::All).unwrap().iter().map(|object| object.name).collect();
        storage.delete_many(&names).unwrap();
        storage.barrier().unwrap();
    }
}

/// Does 30 steps on a storage and on a plain map. A name counts as taken from its put on, and is not put again.
fn follow_a_plain_map(storage: &dyn Storage, seed: u64) {
    let (mut dice, mut model) = (seed, BTreeMap::new());
    for content in 1..=30 {
        let (name, bytes) = (container(draw(&mut dice, 8) as u32), vec![content; draw(&mut dice, 5000)]);
        match draw(&mut dice, 8) {
            0..3 if !model.contains_key(&name) => {
                storage.put(&name, &bytes).unwrap();
                model.insert(name, bytes);
            }
            0..5 => {
                let created = storage.create(&name, &bytes);
                assert_eq!(created.is_ok(), !model.contains_key(&name), "seed {seed}: {created:?}");
                model.entry(name).or_insert(bytes);
            }
            5..7 => {
                storage.delete(&name).unwrap();
                model.remove(&name);
            }
            _ => storage.barrier().unwrap(),
        }
    }
    storage.barrier().unwrap();
    let listed = storage.list(Listing::All).unwrap().into_iter().map(|object| object.name);
    let found: BTreeMap<_, _> = listed.map(|name| (name, storage.read(&name, u64::MAX).unwrap())).collect();
    assert_eq!(found, model, "seed {seed}");
}

/// A number below `limit`, which is not 0, by a `SplitMix64` generator (Steele, Lea, Flood, OOPSLA'14).
fn draw(state: &mut u64, limit: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((mixed ^ (mixed >> 31)) % limit as u64) as usize
}

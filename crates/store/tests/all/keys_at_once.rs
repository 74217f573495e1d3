//! Two who change the keys of a repository, or make it, at the same moment: whatever the order of their steps, somebody
//! can open it afterwards, and nobody is told that something happened which did not.

use crate::common::{holder, label, try_init};
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter};
use siltstone_store::storage::{
    Action, Call, Guarded, Listing, ObjectName, Original, Outcome, SimulatedDisk, Storage, StorageError,
};
use siltstone_store::{KeyId, SeriesId, StoreError, Time};
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

/// A disk each call of which is a step towards the action.
fn before_each_call(disk: &SimulatedDisk, action: &Arc<Action>) -> Arc<dyn Storage> {
    let action = Arc::clone(action);
    Arc::new(Guarded::new(disk.clone(), move |_| {
        action.step();
        Outcome::Made
    }))
}

fn open(disk: &SimulatedDisk, password: &[u8]) -> Result<Repository, StoreError> {
    Repository::open(Arc::new(disk.clone()), password)
}

/// A repository with the passwords `one` and `two`, and the ids of their slots.
fn two_keys() -> (SimulatedDisk, KeyId, KeyId) {
    let disk = SimulatedDisk::new();
    let repository = try_init(Arc::new(disk.clone()), b"one").expect("a repository");
    let one = repository.key_slots().expect("slots").0[0].id;
    let two = repository.add_key(b"two", &label(), Argon2Cost::TEST).expect("a key");
    (disk, one, two)
}

/// Runs `first` with `second` happening right before its `nth` call, for every `nth`; `holds` judges each outcome.
fn at_every_call<A, B>(
    prepare: impl Fn() -> (SimulatedDisk, KeyId, KeyId),
    first: impl Fn(Arc<dyn Storage>, KeyId, KeyId) -> Result<A, StoreError>,
    second: impl Fn(SimulatedDisk, KeyId, KeyId) -> Result<B, StoreError> + Clone + Send + 'static,
    holds: impl Fn(&SimulatedDisk, Result<A, StoreError>, Result<B, StoreError>, u64),
) where
    B: Send + 'static,
{
    for nth in 0.. {
        let (disk, one, two) = prepare();
        let outcome = Arc::new(Mutex::new(None));
        let (told, act, other) = (Arc::clone(&outcome), second.clone(), disk.another_process());
        let action = Action::at(nth, move || *told.lock().expect("sound") = Some(act(other, one, two)));
        let result = first(before_each_call(&disk, &action), one, two);
        if !action.is_done() {
            assert!(nth > 8, "{nth} calls only");
            return;
        }
        let second = outcome.lock().expect("sound").take().expect("it was done");
        holds(&disk.another_process(), result, second, nth);
    }
}

/// Whatever the holder of `one` does to be left alone, at any of its calls the other removes its key: exactly one of
/// them succeeds, and keeps its password.
fn exactly_one_is_left<A: fmt::Debug>(first: impl Fn(Arc<dyn Storage>, KeyId, KeyId) -> Result<A, StoreError>) {
    at_every_call(
        two_keys,
        first,
        |disk, one, _| open(&disk, b"two")?.remove_key(one),
        |disk, first, second, nth| {
            assert!(first.is_ok() != second.is_ok(), "at call {nth}: {first:?}, {second:?}");
            let opens = [b"one", b"two"].map(|password| open(disk, password).is_ok());
            assert_eq!(opens, [first.is_ok(), second.is_ok()], "at call {nth}");
        },
    );
}

#[test]
fn two_who_remove_each_other_s_key_leave_exactly_one() {
    exactly_one_is_left(|storage, _, two| Repository::open(storage, b"one")?.remove_key(two));
}

#[test]
fn a_password_changed_while_its_key_is_removed_opens_nothing_and_the_remover_stays() {
    at_every_call(
        two_keys,
        |storage, _, _| Repository::open(storage, b"one")?.change_password(b"new", &label(), Argon2Cost::TEST),
        |disk, one, _| open(&disk, b"two")?.remove_key(one),
        |disk, first, second, nth| {
            second.expect("nothing stands in its way");
            assert!(open(disk, b"two").is_ok() && open(disk, b"one").is_err(), "at call {nth}");
            assert_eq!(open(disk, b"new").is_ok(), first.is_ok(), "at call {nth}: {first:?}");
            if let Err(error) = first {
                assert!(!error.is_damage(), "at call {nth}: {error}");
            }
        },
    );
}

#[test]
fn a_master_key_changed_while_its_key_is_removed_leaves_exactly_one_of_the_two() {
    exactly_one_is_left(|storage, _, _| Repository::open(storage, b"one")?.rotate(b"one", &label(), Argon2Cost::TEST));
}

#[test]
fn keys_added_and_series_registered_at_once_are_all_kept() {
    at_every_call(
        two_keys,
        |storage, _, _| Repository::open(storage, b"one")?.add_key(b"three", &label(), Argon2Cost::TEST),
        |disk, _, _| {
            let repository = open(&disk, b"two")?;
            repository.register_series(SeriesId([1; 16]), "home")?;
            repository.add_key(b"four", &label(), Argon2Cost::TEST)
        },
        |disk, first, second, nth| {
            first.and(second).unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            for password in [&b"one"[..], b"two", b"three", b"four"] {
                let repository = open(disk, password).unwrap_or_else(|error| panic!("at call {nth}: {error}"));
                assert_eq!(repository.config().series.len(), 1);
                assert_eq!(repository.record_faults().expect("read").len(), 0);
            }
        },
    );
}

/// The first goes by the record that it read when it was opened, which the second replaces before or after each call.
#[test]
fn series_registered_at_once_are_all_listed() {
    at_every_call(
        two_keys,
        |storage, _, _| Repository::open(storage, b"one")?.register_series(SeriesId([1; 16]), "home"),
        |disk, _, _| open(&disk, b"two")?.register_series(SeriesId([2; 16]), "work"),
        |disk, first, second, nth| {
            first.and(second).unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            let repository = open(disk, b"one").unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            assert_eq!(repository.config().series.len(), 2, "at call {nth}");
            assert_eq!(repository.record_faults().expect("read").len(), 0);
        },
    );
}

/// Registers series one after the other, so many that of what was the newest record nothing is left.
fn go_on(disk: &SimulatedDisk) -> Result<(), StoreError> {
    let repository = open(disk, b"two")?;
    (2..7).try_for_each(|number| repository.register_series(SeriesId([number; 16]), "work"))
}

/// Nothing tells then whether the first's record counted: it looks whether its series is listed, and lists it.
#[test]
fn a_series_is_listed_though_others_go_on_far_beyond_its_record() {
    at_every_call(
        two_keys,
        |storage, _, _| Repository::open(storage, b"one")?.register_series(SeriesId([1; 16]), "home"),
        |disk, _, _| go_on(&disk),
        |disk, first, second, nth| {
            first.and(second).unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            let repository = open(disk, b"one").unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            assert_eq!(repository.config().series.len(), 6, "at call {nth}");
            assert_eq!(repository.record_faults().expect("read").len(), 0);
        },
    );
}

#[test]
fn a_password_changed_while_others_go_on_far_is_the_new_or_the_old_one() {
    at_every_call(
        two_keys,
        |storage, _, _| Repository::open(storage, b"one")?.change_password(b"new", &label(), Argon2Cost::TEST),
        |disk, _, _| go_on(&disk),
        |disk, first, second, nth| {
            second.unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            let opens = [b"one", b"new"].map(|password| open(disk, password).is_ok());
            match first {
                Ok(_) => assert_eq!(opens, [false, true], "at call {nth}"),
                Err(StoreError::OutcomeUnknown { .. }) => assert!(opens[0] != opens[1], "at call {nth}: {opens:?}"),
                Err(error) => panic!("at call {nth}: {error}"),
            }
        },
    );
}

#[test]
fn of_two_inits_at_once_one_makes_the_repository_and_the_other_is_told() {
    at_every_call(
        || (SimulatedDisk::new(), KeyId([0; 16]), KeyId([0; 16])),
        |storage, _, _| try_init(storage, b"one").map(drop),
        |disk, _, _| {
            let repository = try_init(Arc::new(disk), b"two")?;
            // It goes on at once, so that its first record is gone before the other looks.
            (0..3u8).try_for_each(|number| repository.register_series(SeriesId([number; 16]), "home"))
        },
        |disk, first, second, nth| {
            assert!(first.is_ok() != second.is_ok(), "at call {nth}: {first:?}, {second:?}");
            let (winner, loser, error) = match first {
                Ok(()) => (b"one", b"two", second.expect_err("it lost")),
                Err(error) => (b"two", b"one", error),
            };
            assert!(matches!(error, StoreError::AlreadyARepository { .. }), "at call {nth}: {error}");
            open(disk, winner).unwrap_or_else(|error| panic!("at call {nth}: {error}"));
            assert!(matches!(open(disk, loser), Err(StoreError::WrongPassword { slots: 1, .. })), "at call {nth}");
        },
    );
}

#[test]
fn a_slot_put_back_after_its_removal_opens_nothing() {
    let (disk, one, two) = two_keys();
    let [original, copy] = [Original::Key(two).name(), Original::Key(two).copy()];
    let kept = disk.read(&original, original.bytes_max()).expect("the slot");
    assert_eq!(disk.read(&copy, copy.bytes_max()).expect("its copy"), kept);
    open(&disk, b"one").expect("it opens").remove_key(two).expect("removed");
    assert!(matches!(open(&disk, b"two"), Err(StoreError::WrongPassword { .. })));
    disk.create(&original, &kept).expect("put back");
    let error = open(&disk, b"two").expect_err("refused");
    assert!(matches!(error, StoreError::KeyInvalid { .. }) && error.to_string().contains("removed"), "{error}");
    let repository = open(&disk, b"one").expect("it opens");
    assert_eq!(repository.key_slots().expect("slots").0.iter().map(|slot| slot.id).collect::<Vec<_>>(), [one]);
    assert_eq!(repository.key_slots_unlisted().expect("slots"), [two]);
    repository.remove_key(two).expect("cleared away");
    assert_eq!(disk.list(Listing::Keys).expect("a list").len(), 1);
}

#[test]
fn the_record_and_the_slots_are_read_from_their_copies_where_the_originals_are_damaged() {
    let (disk, one, _) = two_keys();
    let newest =
        disk.list(Listing::Configs).expect("a list").into_iter().map(|meta| meta.name).max().expect("a record");
    for original in [newest.original().expect("kept twice"), Original::Key(one)] {
        let bytes = disk.read(&original.name(), u64::MAX).expect("read");
        let mut flipped = bytes.clone();
        flipped[100] ^= 1;
        for damaged in [None, Some(bytes[..50].to_vec()), Some(flipped), Some(vec![0; 1 << 24])] {
            let hurt = |disk: &SimulatedDisk, name: &ObjectName| {
                disk.delete(name).and_then(|()| disk.barrier()).expect("deleted");
                if let Some(bytes) = &damaged {
                    disk.create(name, bytes).expect("made");
                }
            };
            let disk = disk.crash(SimulatedDisk::ALL_REACHED);
            hurt(&disk, &original.name());
            let repository =
                open(&disk, b"one").unwrap_or_else(|error| panic!("{} {damaged:?}: {error}", original.name()));
            let faults = [repository.record_faults().expect("read"), repository.key_slots().expect("read").1];
            let faults = faults.iter().flatten().map(ToString::to_string).collect::<Vec<_>>().join("; ");
            assert!(faults.contains(&original.name().to_string()), "{faults}");
            if damaged.is_none() {
                // Without either copy the record before would be the newest: only who saw it can tell.
                continue;
            }
            hurt(&disk, &original.copy());
            let error = open(&disk, b"one").map(drop).expect_err("nothing is left to open it").to_string();
            if original != Original::Key(one) {
                assert!(error.contains("silt repair") && error.contains(&original.name().to_string()), "{error}");
            }
        }
    }
}

fn silence() -> StorageError {
    StorageError::Io { operation: "ask", name: "the place".into(), source: io::ErrorKind::TimedOut.into() }
}

/// A disk that is lost for good once a record is written, before its copy.
fn lost_after_the_record(disk: &SimulatedDisk) -> Arc<dyn Storage> {
    let is_lost = AtomicBool::new(false);
    Arc::new(Guarded::new(disk.clone(), move |call| {
        if matches!(call, Call::Create(ObjectName::Copy(Original::Config(_)))) {
            is_lost.store(true, Ordering::SeqCst);
        }
        if is_lost.load(Ordering::SeqCst) { Outcome::Refused(silence()) } else { Outcome::Made }
    }))
}

/// Works with the key `one` of such a disk. Returns the disk as others find it, and what was told.
fn lost_meanwhile<T>(work: impl FnOnce(&mut Repository, KeyId) -> Result<T, StoreError>) -> (SimulatedDisk, KeyId, T) {
    let (disk, _, two) = two_keys();
    let mut repository = Repository::open(lost_after_the_record(&disk), b"one").expect("it opens");
    let told = work(&mut repository, two).expect("the record stands");
    (disk, two, told)
}

/// Nothing is left to be done then but to delete files that open nothing any more.
#[test]
fn a_change_that_stands_is_told_though_the_place_is_lost_right_after_it() {
    let opens = |disk: &SimulatedDisk| [b"one", b"two", b"new"].map(|password| open(disk, password).is_ok());

    let (disk, _, _) = lost_meanwhile(|repository, _| repository.add_key(b"new", &label(), Argon2Cost::TEST));
    assert_eq!(opens(&disk), [true, true, true]);

    let (disk, _, id) = lost_meanwhile(|repository, _| repository.change_password(b"new", &label(), Argon2Cost::TEST));
    assert_eq!(opens(&disk), [false, true, true]);
    assert_eq!(open(&disk, b"new").expect("it opens").key_in_use(), id);

    let (disk, two, rotation) = lost_meanwhile(|repository, _| {
        let rotation = repository.rotate(b"new", &label(), Argon2Cost::TEST)?;
        assert_eq!(repository.keys().epoch(), rotation.epoch);
        Ok(rotation)
    });
    assert_eq!(opens(&disk), [false, false, true]);
    assert_eq!(rotation.invalidated.iter().collect::<Vec<_>>(), [&two]);
    assert!(rotation.left.is_some_and(|left| left.contains("the place")), "what is left is told");

    let (disk, two, ()) = lost_meanwhile(|repository, two| repository.remove_key(two));
    assert_eq!(opens(&disk), [true, false, false]);
    assert_eq!(open(&disk, b"one").expect("it opens").key_slots_unlisted().expect("slots"), [two]);
}

/// To clear it away is all that is asked for then.
#[test]
fn that_a_slot_that_does_not_count_cannot_be_cleared_away_is_an_error() {
    let (disk, two, ()) = lost_meanwhile(|repository, two| repository.remove_key(two));
    let keeps_all = Guarded::new(disk.clone(), |call| match call {
        Call::Delete(_) => Outcome::Refused(silence()),
        _ => Outcome::Made,
    });
    let repository = Repository::open(Arc::new(keeps_all), b"one").expect("it opens");
    repository.remove_key(two).expect_err("its file is there");
    open(&disk, b"one").expect("it opens").remove_key(two).expect("cleared away");
}

/// The file of a write-only key is all that it takes to add with it.
#[test]
fn that_the_file_of_a_write_only_key_cannot_be_deleted_is_an_error() {
    let (disk, ..) = two_keys();
    let repository = open(&disk, b"one").expect("it opens");
    let series = SeriesWriter::acquire(&repository, &LeaseRequest::new("home", holder(1), "backup")).expect("a lease");
    series.abandon(Time::default()).expect("an end");
    let id = repository.add_write_only_key("home", b"client", &label(), Argon2Cost::TEST).expect("a key");
    let keeps_all = Guarded::new(disk.clone(), |call| match call {
        Call::Delete(_) => Outcome::Refused(silence()),
        _ => Outcome::Made,
    });
    let keeper = Repository::open(Arc::new(keeps_all), b"one").expect("it opens");
    keeper.remove_key(id).expect_err("its file is there");
    assert!(open(&disk, b"client").is_ok(), "and opens the repository for adding");
    open(&disk, b"one").expect("it opens").remove_key(id).expect("cleared away");
    assert!(open(&disk, b"client").is_err());
}

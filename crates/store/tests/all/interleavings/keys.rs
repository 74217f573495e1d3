//! Making a repository, adding, changing and removing its keys: two at once.

use super::{ALIVE, KILLED, assert_under, found};
use crate::common::{PASSWORD, label, open, try_init};
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::storage::SimulatedDisk;
use siltstone_store::storage::scheduled::{Schedule, explore};
use siltstone_store::{KeyId, StoreError};
use std::sync::Arc;

const PASSWORDS: [&[u8]; 2] = [PASSWORD, b"another password"];

/// Tells whether one of these passwords opens the repository.
fn opens(disk: &SimulatedDisk, passwords: &[&[u8]]) -> bool {
    passwords.iter().any(|password| Repository::open(Arc::new(disk.clone()), password).is_ok())
}

fn init_twice(schedule: &mut Schedule) {
    let disk = SimulatedDisk::new();
    let [one, other] = schedule.handles(&disk);
    let (mut first, mut second) = (None, None);
    schedule.run([
        Box::new(|| first = Some(try_init(one, PASSWORDS[0]).map(drop))),
        Box::new(|| second = Some(try_init(other, PASSWORDS[1]).map(drop))),
    ]);
    let results = [first.expect("an end"), second.expect("an end")];
    let story = format!("two inits ended in {results:?}");
    let killed = |error: &StoreError| error.to_string().contains("cannot");
    let known = |error: &StoreError| matches!(error, StoreError::AlreadyARepository { .. }) || killed(error);
    assert_under(schedule, results.iter().filter_map(|result| result.as_ref().err()).all(known), &story);
    assert_under(schedule, results.iter().filter(|result| result.is_ok()).count() <= 1, &story);
    let someone_lived = !results.iter().any(|result| result.as_ref().is_err_and(killed));
    assert_under(schedule, !someone_lived || results.iter().any(Result::is_ok), &story);
    for disk in found(&disk) {
        for (result, password) in results.iter().zip(PASSWORDS) {
            assert_under(schedule, result.is_err() || opens(&disk, &[password]), &story);
        }
        let again = try_init(Arc::new(disk.another_process()), b"a third");
        let is_whole = again.is_ok() || opens(&disk, &PASSWORDS);
        assert_under(schedule, is_whole, &format!("{story}, a third in {again:?}"));
    }
}

#[test]
fn two_inits_make_one_repository() {
    let schedules = explore(ALIVE, init_twice) + explore(KILLED, init_twice);
    assert!(schedules > 100, "{schedules}");
}

type Work = fn(&mut Repository, KeyId) -> Result<(), StoreError>;

/// A repository with two keys, opened by each of two actors with one of them; `act` does something to the other's,
/// whose id it gets.
fn with_two_keys(schedule: &mut Schedule, acts: [Work; 2], passwords: &[&[u8]]) {
    let disk = SimulatedDisk::new();
    let repository = try_init(Arc::new(disk.clone()), PASSWORDS[0]).expect("a repository");
    let added = repository.add_key(PASSWORDS[1], &label(), Argon2Cost::TEST).expect("a key");
    let (slots, _) = repository.key_slots().expect("slots");
    let first = slots.iter().find(|slot| slot.current).expect("its own").id;
    let [one, other] = schedule.handles(&disk);
    let mut one = open(one);
    let mut other = Repository::open(other, PASSWORDS[1]).expect("the repository opens");
    schedule.run([Box::new(|| drop(acts[0](&mut one, added))), Box::new(|| drop(acts[1](&mut other, first)))]);
    for disk in found(&disk) {
        assert_under(schedule, opens(&disk, passwords), "no password opens the repository any more");
    }
}

fn remove(repository: &mut Repository, other: KeyId) -> Result<(), StoreError> {
    repository.remove_key(other)
}

fn change(repository: &mut Repository, _: KeyId) -> Result<(), StoreError> {
    repository.change_password(b"a new password", &label(), Argon2Cost::TEST).map(drop)
}

#[test]
fn two_that_remove_each_other_s_key_leave_one() {
    let trial = |schedule: &mut Schedule| with_two_keys(schedule, [remove, remove], &PASSWORDS);
    let schedules = explore(ALIVE, trial) + explore(KILLED, trial);
    assert!(schedules > 5, "{schedules}");
}

#[test]
fn a_password_changed_while_its_key_is_removed_leaves_a_key() {
    let passwords: [&[u8]; 3] = [PASSWORDS[0], PASSWORDS[1], b"a new password"];
    let trial = |schedule: &mut Schedule| with_two_keys(schedule, [change, remove], &passwords);
    let schedules = explore(ALIVE, trial) + explore(KILLED, trial);
    assert!(schedules > 5, "{schedules}");
}

#[test]
fn two_passwords_changed_at_once_leave_both_new_ones() {
    let trial = |schedule: &mut Schedule| with_two_keys(schedule, [change, change], &[b"a new password"]);
    let schedules = explore(ALIVE, trial);
    assert!(schedules > 5, "{schedules}");
}

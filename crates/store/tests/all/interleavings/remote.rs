//! One program at a place at a distance, with trouble at each of its requests: what it says of its work is true,
//! nothing is lost, and a request that comes late changes nothing that counts.

use super::series::{SERIES, acquire, container, forget, has_predecessor, read_all, with_snapshot};
use crate::common::{PASSWORD, init, label, try_init};
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::series::newest_manifest;
use siltstone_store::storage::{Listing, ObjectName, SimulatedRemote, Trouble};
use siltstone_store::{KeyId, SnapshotId, StoreError, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

fn open(remote: &SimulatedRemote, password: &[u8]) -> Result<Repository, StoreError> {
    Repository::open(Arc::new(remote.clone()), password)
}

/// A backup in small: the lease, a container, one commit.
fn back_up(remote: &SimulatedRemote, pid: u8, take_over: bool) -> Result<(), StoreError> {
    let repository = open(remote, PASSWORD)?;
    let mut writer = acquire(&repository, pid.into(), take_over)?;
    let result = container(&repository, &writer).and_then(|container| {
        writer.put(&container)?;
        let next = with_snapshot(writer.manifest(), SnapshotId([pid; 32]), container.record);
        writer.commit(next, false, Time::default())
    });
    if result.is_err() {
        // As a program does that ends with an error.
        let _ = writer.abandon(Time::default());
    }
    result
}

fn forget_one(remote: &SimulatedRemote, pid: u8) -> Result<(), StoreError> {
    forget(&open(remote, PASSWORD)?, SnapshotId([pid; 32]))
}

fn snapshots(remote: &SimulatedRemote) -> Result<BTreeSet<u8>, StoreError> {
    let repository = open(remote, PASSWORD)?;
    assert!(has_predecessor(&repository), "the predecessor is gone");
    Ok(read_all(&repository)?.iter().map(|id| id.0[0]).collect())
}

/// A place with the snapshots of these processes.
fn holding(pids: &[u8]) -> SimulatedRemote {
    let remote = SimulatedRemote::new();
    init(Arc::new(remote.clone()));
    for pid in pids {
        back_up(&remote, *pid, false).expect("a backup");
    }
    remote
}

/// Every trouble that one request can meet.
fn troubles(nth: u64) -> [Trouble; 10] {
    [
        Trouble::AnswerLost { nth },
        Trouble::Late { nth, by: 0 },
        Trouble::Late { nth, by: 2 },
        Trouble::Late { nth, by: u64::MAX >> 1 },
        Trouble::Conflict { nth },
        Trouble::Unknown { nth, is_done: false },
        Trouble::Unknown { nth, is_done: true },
        Trouble::Busy { nth, count: 1 },
        Trouble::Busy { nth, count: u64::MAX >> 1 },
        Trouble::ShortBody { nth },
    ]
}

/// Runs `work` with each trouble at each of its requests, each time at a copy of `before`, and has each end examined.
fn at_every_request<T>(
    before: &SimulatedRemote,
    work: impl Fn(&SimulatedRemote) -> T,
    examine: impl Fn(&SimulatedRemote, &T, &str),
) -> u64 {
    let unhindered = before.copy();
    work(&unhindered);
    let requests = unhindered.requests();
    for (nth, request) in (0..).zip(&requests) {
        for trouble in troubles(nth) {
            let remote = before.copy();
            remote.set_trouble(trouble);
            let result = work(&remote);
            remote.set_trouble(Trouble::None);
            examine(&remote, &result, &format!("{trouble:?} at \"{request}\""));
        }
    }
    requests.len() as u64
}

/// Holds what lies there against what the program said, whether what is under way lands now or after two more backups.
fn examine(remote: &SimulatedRemote, result: &Result<(), StoreError>, is_done: fn(&BTreeSet<u8>) -> bool, story: &str) {
    let told = format!("{result:?} after {story}");
    for lands_late in [false, true] {
        let remote = if lands_late { remote.clone() } else { remote.copy_with_what_is_under_way() };
        if !lands_late {
            remote.land();
        }
        let read = snapshots(&remote).unwrap_or_else(|error| panic!("{error}; {told}"));
        assert!(read.contains(&7), "a snapshot is lost: {read:?}; {told}");
        match result {
            Ok(()) => assert!(is_done(&read), "{read:?}; {told}"),
            Err(StoreError::Fenced { .. } | StoreError::LeaseHeld { .. }) => {
                assert!(!is_done(&read), "it was done all the same: {read:?}; {told}");
            }
            Err(_) => {}
        }
        for pid in [3, 4] {
            back_up(&remote, pid, true).unwrap_or_else(|error| panic!("the next backup: {error}; {told}"));
        }
        remote.land();
        let later = snapshots(&remote).unwrap_or_else(|error| panic!("later: {error}; {told}"));
        let expected: BTreeSet<u8> = read.iter().copied().chain([3, 4]).collect();
        assert_eq!(later, expected, "{told}");
        back_up(&remote, 5, true).unwrap_or_else(|error| panic!("the backup after: {error}; {told}"));
    }
}

#[test]
fn a_backup_with_trouble_at_any_request_says_what_is_true() {
    let work = |remote: &SimulatedRemote| back_up(remote, 1, false);
    let requests = at_every_request(&holding(&[7]), work, |remote, result, story| {
        examine(remote, result, |read| read.contains(&1), story);
    });
    assert!(requests > 10, "{requests}");
}

#[test]
fn a_first_backup_with_trouble_at_any_request_says_what_is_true() {
    let remote = holding(&[]);
    at_every_request(
        &remote,
        |remote| back_up(remote, 1, false),
        |remote, result, story| {
            remote.land();
            let repository = open(remote, PASSWORD).expect("it opens");
            let read = read_all(&repository).unwrap_or_else(|error| panic!("{error} after {story}"));
            match result {
                Ok(()) => assert!(read.contains(&SnapshotId([1; 32])), "{story}"),
                Err(StoreError::Fenced { .. }) => assert!(read.is_empty(), "{story}"),
                Err(_) => {}
            }
            back_up(remote, 2, true).unwrap_or_else(|error| panic!("{error} after {story}"));
        },
    );
}

#[test]
fn forgetting_with_trouble_at_any_request_says_what_is_true() {
    let work = |remote: &SimulatedRemote| forget_one(remote, 8);
    at_every_request(&holding(&[7, 8]), work, |remote, result, story| {
        examine(remote, result, |read| !read.contains(&8), story);
    });
}

/// The story: the answer to a create was lost, a layer below asked again and met its own object; the program said that
/// another writer had taken over and that nothing had been committed, and it had been.
#[test]
fn a_lost_answer_to_a_commit_is_not_told_as_another_writer() {
    let before = holding(&[7]);
    let unhindered = before.copy();
    back_up(&unhindered, 1, false).expect("a backup");
    let commits: Vec<_> = (0..).zip(unhindered.requests()).filter(|(_, r)| r.starts_with("create series/")).collect();
    assert_eq!(commits.len(), 2, "the lease, and the snapshot");
    for (nth, request) in commits {
        for trouble in [Trouble::AnswerLost { nth }, Trouble::Conflict { nth }, Trouble::Busy { nth, count: 1 }] {
            let remote = before.copy();
            remote.set_trouble(trouble);
            back_up(&remote, 1, false).unwrap_or_else(|error| panic!("{error} after {trouble:?} at {request}"));
            assert!(snapshots(&remote).expect("read").contains(&1));
        }
        let remote = before.copy();
        remote.set_trouble(Trouble::Busy { nth, count: 40 });
        let error = back_up(&remote, 1, false).expect_err("no answer").to_string();
        assert!(error.contains("not known") && error.contains("series/") && error.contains("again"), "{error}");
    }
}

/// The story: a writer slept between creating a manifest and looking whether it was the newest. Another one had taken
/// over by then. The first took its manifest back, which was the predecessor of the newest; its name was free, and a
/// request that came late took it: no writer touched the series any more.
#[test]
fn a_manifest_that_others_built_on_stays_and_its_name_stays_taken() {
    let remote = holding(&[7]);
    let nth = {
        let probe = remote.copy();
        back_up(&probe, 1, false).expect("a backup");
        probe.requests().iter().position(|request| request.starts_with("create series/")).expect("the lease") as u64
    };
    // The lease of the first comes late, after its program is gone; the second gets the number.
    remote.set_trouble(Trouble::Late { nth, by: u64::MAX >> 1 });
    let first = {
        let one = open(&remote, PASSWORD).expect("it opens");
        acquire(&one, 1, false).map(drop)
    };
    remote.set_trouble(Trouble::None);
    drop(first);
    for pid in [2, 3, 4] {
        back_up(&remote, pid, true).expect("a backup");
        remote.copy_with_what_is_under_way().land();
        let repository = open(&remote, PASSWORD).expect("it opens");
        let series = repository.keys().series_id(SERIES);
        let newest = newest_manifest(&repository, series).expect("read").expect("a manifest").manifest.sequence;
        let names = repository.storage().list(Listing::Manifests(series)).expect("a list");
        assert!(names.iter().any(|meta| meta.name == ObjectName::Manifest(series, newest - 1)), "{names:?}");
    }
    assert_eq!(remote.land(), 1);
    assert_eq!(snapshots(&remote).expect("read"), BTreeSet::from([7, 2, 3, 4]));
    back_up(&remote, 5, false).expect("the next backup");
}

#[test]
fn lists_that_lag_behind_cost_no_snapshot() {
    for changes in 1..8 {
        let remote = holding(&[7]);
        let mut told = BTreeSet::from([7]);
        remote.set_trouble(Trouble::StaleLists { changes });
        for pid in 1..5 {
            if back_up(&remote, pid, true).is_ok() {
                told.insert(pid);
            }
        }
        remote.set_trouble(Trouble::None);
        let read = snapshots(&remote).unwrap_or_else(|error| panic!("{error} after lists that miss {changes}"));
        assert!(read.is_superset(&told), "{read:?} of {told:?} after lists that miss {changes}");
        back_up(&remote, 9, true).unwrap_or_else(|error| panic!("{error} after lists that miss {changes}"));
    }
}

#[test]
fn a_place_that_ignores_conditions_gets_no_repository() {
    let remote = SimulatedRemote::new();
    remote.set_trouble(Trouble::ConditionIgnored);
    let error = try_init(Arc::new(remote), PASSWORD).expect_err("refused").to_string();
    assert!(error.contains("conditional writes") && error.contains("another place"), "{error}");
}

type Work = fn(&SimulatedRemote, KeyId) -> Result<(), StoreError>;

const OTHER: &[u8] = b"another password";
const NEW: &[u8] = b"a new password";

/// Whatever happens to one who changes keys, somebody can open the repository, and what was said is true.
fn change_keys(work: Work, opens_after: &[(&[u8], bool)]) {
    let remote = SimulatedRemote::new();
    let repository = init(Arc::new(remote.clone()));
    let other = repository.add_key(OTHER, &label(), Argon2Cost::TEST).expect("a key");
    at_every_request(
        &remote,
        |remote| work(remote, other),
        |remote, result, story| {
            for lands in [false, true] {
                if lands {
                    remote.land();
                }
                let opens = |password: &[u8]| open(remote, password).is_ok();
                let any = [PASSWORD, OTHER, NEW].into_iter().any(opens);
                assert!(any, "nothing opens the repository; {result:?} after {story}");
                if result.is_ok() {
                    for (password, is_open) in opens_after {
                        assert_eq!(opens(password), *is_open, "{}; {result:?} after {story}", password.escape_ascii());
                    }
                }
            }
        },
    );
}

#[test]
fn a_password_changed_with_trouble_at_any_request_leaves_a_key() {
    let work: Work = |remote, _| open(remote, PASSWORD)?.change_password(NEW, &label(), Argon2Cost::TEST).map(drop);
    change_keys(work, &[(NEW, true), (OTHER, true), (PASSWORD, false)]);
}

#[test]
fn a_key_added_with_trouble_at_any_request_leaves_all() {
    let work: Work = |remote, _| open(remote, PASSWORD)?.add_key(NEW, &label(), Argon2Cost::TEST).map(drop);
    change_keys(work, &[(NEW, true), (OTHER, true), (PASSWORD, true)]);
}

#[test]
fn a_key_removed_with_trouble_at_any_request_leaves_the_other() {
    let work: Work = |remote, other| open(remote, PASSWORD)?.remove_key(other);
    change_keys(work, &[(OTHER, false), (PASSWORD, true)]);
}

#[test]
fn a_master_key_changed_with_trouble_at_any_request_leaves_a_key() {
    let work: Work = |remote, _| open(remote, PASSWORD)?.rotate(NEW, &label(), Argon2Cost::TEST).map(drop);
    change_keys(work, &[(NEW, true), (OTHER, false), (PASSWORD, false)]);
}

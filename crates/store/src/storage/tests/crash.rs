//! Tests of what the simulated disk keeps, loses and tears: the crash tests of the layers above are worth as much as
//! these.

use super::*;
use crate::storage::{Damage, Failure, Fault, Listing, StorageError};
use std::collections::BTreeSet;

#[test]
fn what_a_barrier_or_create_promised_survives_every_crash() {
    let disk = SimulatedDisk::new();
    disk.put(&container(1), b"under a barrier").unwrap();
    disk.put(&container(2), b"to be deleted").unwrap();
    disk.delete(&container(2)).unwrap();
    disk.barrier().unwrap();
    disk.create(&manifest(1), b"created").unwrap();
    for found in crashes(&disk) {
        assert_eq!(found.read(&container(1), u64::MAX).unwrap(), b"under a barrier");
        assert_eq!(found.read(&manifest(1), u64::MAX).unwrap(), b"created");
        assert_eq!(found.names(), [manifest(1), container(1)]);
    }
}

#[test]
fn a_pending_put_meets_every_fate() {
    let disk = SimulatedDisk::new();
    disk.put(&container(1), b"abcdefgh").unwrap();
    assert!(!exists(&disk, &container(1)), "nobody may rely on seeing a put before its barrier");
    let mut fates = BTreeSet::new();
    for found in crashes(&disk) {
        fates.insert(match found.read(&container(1), u64::MAX) {
            Ok(bytes) if bytes == b"abcdefgh" => "whole",
            Ok(bytes) if bytes.len() == 8 => "zeros",
            Ok(bytes) => {
                assert!(b"abcdefgh".starts_with(&bytes));
                "short"
            }
            Err(_) if found.remove_unfinished(SERIES, 1).unwrap() == 1 => "unfinished",
            Err(_) => "absent",
        });
    }
    assert_eq!(fates, BTreeSet::from(["absent", "short", "unfinished", "whole", "zeros"]));
}

#[test]
fn pending_changes_reach_the_disk_in_any_order() {
    let disk = SimulatedDisk::new();
    disk.create(&manifest(1), b"old").unwrap();
    disk.put(&container(1), b"1").unwrap();
    disk.delete(&manifest(1)).unwrap();
    disk.put(&container(2), b"2").unwrap();
    let seen: BTreeSet<Vec<bool>> = crashes(&disk)
        .map(|found| [manifest(1), container(1), container(2)].iter().map(|name| exists(&found, name)).collect())
        .collect();
    assert_eq!(seen.len(), 8, "{seen:?}");
}

#[test]
fn ends_are_the_same_if_the_next_process_finds_the_same() {
    let disk = SimulatedDisk::new();
    disk.put(&container(1), b"durable").unwrap();
    disk.barrier().unwrap();
    let all = |disk: &SimulatedDisk| {
        let crashed = [SimulatedDisk::NOTHING_REACHED, SimulatedDisk::ALL_REACHED].map(|seed| disk.crash(seed));
        let [nothing, all] = crashed;
        [disk.another_process(), nothing, all]
    };
    let [next, nothing, everything] = all(&disk);
    assert!(nothing.is_found_as(&everything) && nothing.is_found_as(&next) && next.is_found_as(&nothing));

    disk.put(&container(2), b"under way").unwrap();
    let [next, nothing, everything] = all(&disk);
    assert!(!nothing.is_found_as(&everything) && !nothing.is_found_as(&next) && !everything.is_found_as(&next));

    let other = nothing.crash(SimulatedDisk::ALL_REACHED);
    other.damage(&container(1), Damage::Flip { offset: 0, mask: 1 });
    assert!(!nothing.is_found_as(&other), "another content");
    assert!(!nothing.is_found_as(&nothing.crash(1).with_capacity(100)), "less room");
}

#[test]
fn two_seeds_are_the_extremes() {
    let disk = SimulatedDisk::new();
    disk.create(&manifest(1), b"old").unwrap();
    disk.put(&container(1), b"new").unwrap();
    disk.delete(&manifest(1)).unwrap();
    assert_eq!(disk.crash(SimulatedDisk::NOTHING_REACHED).names(), [manifest(1)]);
    let all = disk.crash(SimulatedDisk::ALL_REACHED);
    assert_eq!((all.names(), all.read(&container(1), u64::MAX).unwrap()), (vec![container(1)], b"new".to_vec()));
}

#[test]
fn the_same_seed_finds_the_same_disk() {
    let disk = SimulatedDisk::new();
    (0..20).for_each(|i| disk.put(&container(i), &[1; 100]).unwrap());
    let contents =
        |found: SimulatedDisk| found.names().iter().map(|name| found.read(name, u64::MAX).unwrap()).collect::<Vec<_>>();
    for seed in 0..50 {
        assert_eq!(contents(disk.crash(seed)), contents(disk.crash(seed)));
    }
}

#[test]
fn a_create_cut_off_is_whole_or_absent() {
    let disk = SimulatedDisk::new().with_fault(Fault::Torn { nth: 1 });
    disk.put(&container(1), b"x").unwrap();
    disk.create(&manifest(1), b"commit").unwrap_err();
    let seen: BTreeSet<bool> = crashes(&disk)
        .map(|found| match found.read(&manifest(1), u64::MAX) {
            Ok(bytes) => bytes == b"commit",
            Err(error) => !error.is_not_found(),
        })
        .collect();
    assert_eq!(seen.len(), 2);
    assert!(
        crashes(&disk)
            .all(|found| found.read(&manifest(1), u64::MAX).is_ok_and(|b| b == b"commit")
                || !exists(&found, &manifest(1)))
    );
}

#[test]
fn a_torn_put_is_never_whole() {
    let disk = SimulatedDisk::new().with_fault(Fault::Torn { nth: 0 });
    disk.put(&container(1), b"abcdefgh").unwrap_err();
    assert!(crashes(&disk).all(|found| found.read(&container(1), u64::MAX).map_or(true, |bytes| bytes != b"abcdefgh")));
}

#[test]
fn a_barrier_cut_off_promises_nothing() {
    let disk = SimulatedDisk::new().with_fault(Fault::Torn { nth: 1 });
    disk.put(&container(1), b"x").unwrap();
    disk.barrier().unwrap_err();
    assert!(!exists(&disk.crash(SimulatedDisk::NOTHING_REACHED), &container(1)));
}

#[test]
fn without_power_every_call_fails() {
    let disk = SimulatedDisk::new().with_fault(Fault::PowerLossAfter { writes: 2 });
    disk.put(&container(1), b"x").unwrap();
    disk.barrier().unwrap();
    disk.create(&manifest(1), b"x").unwrap_err();
    assert_eq!(disk.writes(), 2);
    disk.read(&container(1), u64::MAX).unwrap_err();
    disk.read_range(&container(1), 0, 1).unwrap_err();
    disk.list(Listing::All).unwrap_err();
    disk.delete(&container(1)).unwrap_err();
    assert!(crashes(&disk).all(|found| found.names() == [container(1)]));
}

#[test]
fn a_full_disk_stays_usable_and_deleting_makes_room() {
    let disk = SimulatedDisk::new().with_capacity(100);
    disk.put(&container(1), &[1; 60]).unwrap();
    assert!(disk.put(&container(2), &[2; 60]).unwrap_err().is_full());
    assert!(disk.create(&manifest(1), &[2; 41]).unwrap_err().is_full());
    disk.barrier().unwrap();
    disk.create(&manifest(1), &[2; 40]).unwrap();
    disk.delete(&container(1)).unwrap();
    disk.create(&manifest(2), &[2; 60]).unwrap();
    assert_eq!(disk.used_bytes(), 100);
    assert!(disk.crash(SimulatedDisk::ALL_REACHED).create(&manifest(3), b"x").unwrap_err().is_full());
}

#[test]
fn an_input_output_error_stops_writing_but_not_reading() {
    for failure in [Failure::Io, Failure::IoTooLate] {
        let disk = SimulatedDisk::new();
        disk.create(&manifest(1), b"x").unwrap();
        disk.set_fault(Fault::FailWrite { nth: 1, failure });
        disk.put(&container(1), b"x").unwrap();
        assert!(matches!(disk.barrier(), Err(StorageError::Io { .. })));
        assert!(matches!(disk.barrier(), Err(StorageError::Poisoned)));
        assert!(matches!(disk.create(&manifest(2), b"x"), Err(StorageError::Poisoned)));
        assert!(exists(&disk, &manifest(1)));
        assert!(!exists(&disk.crash(SimulatedDisk::NOTHING_REACHED), &container(1)));
    }
}

#[test]
fn a_create_that_failed_too_late_may_be_there_all_the_same() {
    let disk = SimulatedDisk::new().with_fault(Fault::FailWrite { nth: 0, failure: Failure::IoTooLate });
    disk.create(&manifest(1), b"x").unwrap_err();
    assert!(exists(&disk, &manifest(1)));
    assert!(exists(&disk.crash(SimulatedDisk::ALL_REACHED), &manifest(1)));
    assert!(!exists(&disk.crash(SimulatedDisk::NOTHING_REACHED), &manifest(1)));
}

#[test]
fn a_barrier_holds_for_the_process_that_asked() {
    let disk = SimulatedDisk::new();
    let other = disk.another_process();
    disk.put(&container(1), b"x").unwrap();
    other.barrier().unwrap();
    assert!(!exists(&disk.crash(SimulatedDisk::NOTHING_REACHED), &container(1)));
    disk.barrier().unwrap();
    assert!(exists(&other, &container(1)));
}

#[test]
fn a_writer_whose_unfinished_puts_were_removed_fails() {
    let old = SimulatedDisk::new();
    let new = old.another_process();
    old.put(&container(1), b"x").unwrap();
    assert_eq!(new.remove_unfinished(OTHER_SERIES, 1).unwrap(), 0);
    assert_eq!(new.remove_unfinished(SERIES, 0).unwrap(), 0, "of a later lease");
    assert_eq!(new.remove_unfinished(SERIES, 1).unwrap(), 1);
    let error = old.barrier().unwrap_err();
    assert!(error.to_string().contains(&container(1).to_string()), "{error}");
    assert!(matches!(old.put(&container(2), b"x"), Err(StorageError::Swept { .. })));
    new.create(&manifest(2), b"x").unwrap();
}

#[test]
fn damage_does_what_it_says() {
    let disk = SimulatedDisk::new();
    disk.create(&key(1), b"abcd").unwrap();
    disk.create(&key(2), b"efgh").unwrap();
    assert!(disk.damage(&key(1), Damage::Flip { offset: 1, mask: 1 }));
    assert_eq!(disk.read(&key(1), u64::MAX).unwrap(), b"accd");
    assert!(disk.damage(&key(1), Damage::Truncate { bytes: 2 }));
    assert!(!disk.damage(&key(1), Damage::Truncate { bytes: 2 }));
    assert!(!disk.damage(&key(1), Damage::Flip { offset: 2, mask: 1 }));
    assert!(disk.swap(&key(1), &key(2)));
    assert_eq!(
        (disk.read(&key(1), u64::MAX).unwrap(), disk.read(&key(2), u64::MAX).unwrap()),
        (b"efgh".to_vec(), b"ac".to_vec())
    );
    assert!(disk.damage(&key(1), Damage::Replace(b"new".to_vec())));
    assert!(disk.damage(&key(1), Damage::Delete));
    assert!(!disk.damage(&key(1), Damage::Delete));
    assert!(!disk.swap(&key(1), &key(2)));
    assert_eq!((disk.names(), disk.writes()), (vec![key(2)], 2));
}

//! Renewals: who holds a lease shows that it is alive, and nothing that goes wrong with that is its harm.

use crate::common::{self, holder, init};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter, Watch};
use siltstone_store::storage::{Disk, Listing, NameKind, ObjectName, Recorder, SimulatedDisk};
use siltstone_store::{RenewalId, StoreError, Time};
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(10);

fn open(disk: &SimulatedDisk) -> Repository {
    common::open(Arc::new(disk.another_process()))
}

fn request() -> LeaseRequest<'static> {
    LeaseRequest::new("series", holder(1), "backup")
}

fn acquire(repository: &Repository, every: Duration) -> SeriesWriter<'_> {
    let request = LeaseRequest { renewed_every: Some(every), take_over: true, ..request() };
    SeriesWriter::acquire(repository, &request).expect("the lease")
}

fn renewals(repository: &Repository) -> Vec<ObjectName> {
    let series = repository.keys().series_id("series");
    let listed = repository.storage().list(Listing::Renewals(series)).expect("a list");
    listed.into_iter().map(|meta| meta.name).collect()
}

fn watch(repository: &Repository) -> Watch {
    let manifest = repository.manifest(repository.keys().series_id("series")).expect("a manifest").expect("a manifest");
    Watch::begin(repository, &manifest).expect("a list").expect("a lease that is renewed")
}

/// Waits for what must come.
fn until(what: &str, holds: impl Fn() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what} never came");
        sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_lease_is_renewed_over_its_commits_until_it_is_given_back() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let mut writer = acquire(&repository, PERIOD);
    let other = open(&disk);
    for _ in 0..3 {
        let watch = watch(&other);
        until("a renewal", || watch.has_changed(&other).expect("a look"));
        let next = writer.manifest().clone();
        writer.commit(next, true, Time::default()).expect("a commit");
        assert!(renewals(&other).len() <= 2, "the one before goes");
    }
    let next = writer.manifest().clone();
    writer.commit(next, false, Time::default()).expect("a commit");
    for _ in 0..5 {
        assert_eq!(renewals(&other), []);
        sleep(PERIOD);
    }
}

#[test]
fn a_short_run_makes_no_renewal() {
    let recorder = Arc::new(Recorder::new(SimulatedDisk::new()));
    let repository = init(recorder.clone());
    acquire(&repository, Duration::from_hours(1)).abandon(Time::default()).expect("an end");
    assert_eq!(recorder.calls().of_kind(NameKind::Renewal).creates, 0);
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let mut writer = acquire(&repository, Duration::from_hours(1));
    let other = open(&disk);
    let watch = watch(&other);
    assert!(!watch.has_changed(&other).expect("a look"));
    let next = writer.manifest().clone();
    writer.commit(next, true, Time::default()).expect("a commit");
    assert!(watch.has_changed(&other).expect("a look"));
}

#[test]
fn a_fenced_writer_s_renewals_are_no_sign_of_life_of_its_successor() {
    let disk = SimulatedDisk::new();
    let (repository, successor, other) = (init(Arc::new(disk.clone())), open(&disk), open(&disk));
    let fenced = acquire(&repository, PERIOD);
    until("a renewal", || !renewals(&other).is_empty());
    let writer = acquire(&successor, Duration::from_hours(1));
    let (watch, before) = (watch(&other), renewals(&other));
    until("a renewal by the fenced one", || renewals(&other).iter().any(|name| !before.contains(name)));
    assert!(!watch.has_changed(&other).expect("a look"));
    drop((fenced, writer));
}

#[test]
fn whoever_takes_over_removes_the_renewals_of_earlier_leases() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let writer = acquire(&repository, PERIOD);
    let other = open(&disk);
    until("a renewal", || !renewals(&other).is_empty());
    drop(writer);
    // Its thread may be at its last one.
    sleep(10 * PERIOD);
    assert!(!renewals(&other).is_empty(), "nobody gave the lease back");
    let later = ObjectName::Renewal(other.keys().series_id("series"), RenewalId { lease: 99, count: 0 });
    other.storage().renew(&later, None).expect("made");
    acquire(&other, Duration::from_hours(1));
    assert_eq!(renewals(&other), [later], "what is of a later lease is a successor's");
}

#[test]
fn a_renewal_that_cannot_be_made_costs_the_writer_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let repository = init(Arc::new(Disk::open(folder.path()).expect("a disk")));
    std::fs::write(folder.path().join("renewals"), "no folder").expect("written");
    let mut writer = acquire(&repository, Duration::from_millis(1));
    for _ in 0..20 {
        sleep(Duration::from_millis(2));
        let next = writer.manifest().clone();
        writer.commit(next, true, Time::default()).expect("a commit");
    }
    writer.abandon(Time::default()).expect("an end");
}

#[test]
fn a_name_that_is_taken_does_not_end_renewing() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk.clone()));
    let name = |count| ObjectName::Renewal(repository.keys().series_id("series"), RenewalId { lease: 1, count });
    repository.storage().renew(&name(0), None).expect("made");
    let _writer = acquire(&repository, PERIOD);
    until("the next renewal", || renewals(&repository).iter().any(|found| *found > name(0)));
}

#[test]
fn a_lease_that_was_watched_is_taken_over_only_while_its_manifest_is_the_newest() {
    let disk = SimulatedDisk::new();
    let (repository, other) = (init(Arc::new(disk.clone())), open(&disk));
    let mut writer = acquire(&repository, Duration::from_hours(1));
    let outlasted = Some(watch(&other).sequence());
    let next = writer.manifest().clone();
    writer.commit(next, true, Time::default()).expect("a commit");
    match SeriesWriter::acquire(&other, &LeaseRequest { outlasted, ..request() }) {
        Err(StoreError::LeaseHeld { .. }) => {}
        taken => panic!("it went on: {taken:?}"),
    }
    let outlasted = Some(watch(&other).sequence());
    SeriesWriter::acquire(&other, &LeaseRequest { outlasted, ..request() }).expect("the lease");
    let next = writer.manifest().clone();
    let error = writer.commit(next, false, Time::default()).expect_err("it is fenced");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
}

#[test]
fn a_lease_that_is_not_renewed_is_not_watched() {
    let repository = init(Arc::new(SimulatedDisk::new()));
    let writer = SeriesWriter::acquire(&repository, &request()).expect("the lease");
    assert_eq!(Watch::begin(&repository, writer.manifest()).expect("nothing to look at"), None);
}

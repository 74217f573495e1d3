//! Two writers beginning at the same moment: one gets the lease, the other is told who holds it.

use crate::common::{holder, init, open};
use siltstone_store::region::{ChunkEntry, EncodedRegion, RegionEncoder};
use siltstone_store::repository::Repository;
use siltstone_store::series::{LeaseRequest, SeriesWriter};
use siltstone_store::storage::{Action, Call, Disk, Guarded, Listing, Outcome, SimulatedDisk};
use siltstone_store::{StoreError, Time, container};
use std::sync::{Arc, Barrier};

fn acquire(repository: &Repository, pid: u32) -> Result<SeriesWriter<'_>, StoreError> {
    SeriesWriter::acquire(repository, &LeaseRequest::new("series", holder(pid), "backup"))
}

/// Puts a container of one chunk, durably.
fn put_container(repository: &Repository, writer: &SeriesWriter<'_>) {
    begin_putting(repository, writer);
    repository.storage().barrier().expect("a barrier");
}

/// Puts a container of one chunk; it lies there once a barrier is passed.
fn begin_putting(repository: &Repository, writer: &SeriesWriter<'_>) {
    let (bytes, number) = (b"a chunk", writer.manifest().next_data);
    let chunk = ChunkEntry { number, fingerprint: repository.keys().fingerprint(bytes), length: 7 };
    let region = EncodedRegion::encode(&mut RegionEncoder::fast(1), vec![chunk], bytes).expect("a region");
    let kind = container::ContainerKind::Data;
    let id = writer.new_container_id();
    let mut builder =
        container::ContainerBuilder::new(repository.keys(), writer.series(), id, kind).expect("a builder");
    builder.push(&region).expect("room");
    writer.put(&builder.finish().expect("a container")).expect("a put");
}

/// The story: the containers were listed after the manifest was read. A writer that began in between had written some
/// by then, under a lease beyond that manifest; the second writer took that for the sign of a lost manifest, and told
/// the user to bring back a copy.
#[test]
fn a_writer_that_began_meanwhile_is_not_taken_for_a_lost_manifest() {
    let disk = SimulatedDisk::new();
    let first = init(Arc::new(disk.clone()));
    let begin = move || put_container(&first, &acquire(&first, 1).expect("the lease is free"));
    let action = Action::at(0, begin);
    let guarded = Guarded::new(disk, move |call| {
        if matches!(call, Call::List(Listing::Containers(..))) {
            action.step();
        }
        Outcome::Made
    });
    let second = open(Arc::new(guarded));
    match acquire(&second, 2) {
        Err(StoreError::LeaseHeld { holder, .. }) => assert!(holder.contains("process 1"), "{holder}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_is_staged_is_of_the_next_commit_and_goes_with_an_abandoned_writer() {
    let disk = SimulatedDisk::new();
    let repository = init(Arc::new(disk));
    let stage = |writer: &mut SeriesWriter<'_>| {
        let mut next = writer.manifest().clone();
        next.next_data.0 += 1;
        writer.stage(next.clone());
        assert_eq!(writer.manifest(), &next);
        next
    };
    let stored = |repository: &Repository, series| repository.manifest(series).expect("it reads").expect("one");

    let mut writer = acquire(&repository, 1).expect("the lease is free");
    let (series, before) = (writer.series(), writer.manifest().next_data);
    stage(&mut writer);
    assert_eq!(stored(&repository, series).next_data, before, "nothing is committed yet");
    writer.abandon(Time::default()).expect("an end");
    assert_eq!(stored(&repository, series).next_data, before);

    let mut writer = acquire(&repository, 1).expect("the lease is free");
    let next = stage(&mut writer);
    writer.commit(next.clone(), false, Time::default()).expect("a commit");
    assert_eq!(stored(&repository, series).next_data, next.next_data);
    assert_eq!(writer.manifest(), &writer.stored().manifest, "nothing is staged any more");
}

/// The story: the winner swept the loser's manifest away before it had its name, and the loser failed with a message
/// about a missing file. On a real disk, where that takes several processes and luck.
#[test]
fn writers_that_begin_at_once_on_a_real_disk_are_told_who_was_faster() {
    let folder = tempfile::tempdir().expect("a folder");
    let disk = || Arc::new(Disk::open(folder.path()).expect("a disk"));
    init(disk());
    let start = Barrier::new(3);
    let race = &|pid| {
        let repository = open(disk());
        let mut errors = Vec::new();
        for _ in 0..60 {
            start.wait();
            errors.extend(acquire(&repository, pid).and_then(|writer| writer.abandon(Time::default())).err());
        }
        errors.retain(|error| !matches!(error, StoreError::LeaseHeld { .. } | StoreError::Fenced { .. }));
        errors
    };
    let errors = std::thread::scope(|scope| {
        let threads = [1, 2, 3].map(|pid| scope.spawn(move || race(pid)));
        threads.map(|thread| thread.join().expect("an end"))
    });
    assert!(errors.iter().all(Vec::is_empty), "{errors:?}");
}

/// The story: maintenance made containers, found that they do not pay, and swept them away. What was still on its way
/// to the disk came after that, and stayed until the next writer.
#[test]
fn what_is_put_and_not_named_is_swept_though_it_is_still_on_its_way() {
    let folder = tempfile::tempdir().expect("a folder");
    let repository = init(Arc::new(Disk::open(folder.path()).expect("a disk")));
    let mut writer = acquire(&repository, 1).expect("the lease is free");
    for _ in 0..40 {
        begin_putting(&repository, &writer);
    }
    writer.sweep().expect("a sweep");
    repository.storage().barrier().expect("a barrier");
    assert_eq!(repository.storage().list_containers(writer.series()).expect("a list"), []);
    assert_eq!(writer.orphans_removed, 40);
}

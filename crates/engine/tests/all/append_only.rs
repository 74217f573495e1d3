//! Clients that may add and never delete: their backups are whole, and leave the rest to a writer that may delete.

use crate::common::log::Log;
use crate::common::writer::{acquire, container, dead_holder, distant_holder};
use crate::common::{self, Sandbox, noise, resources};
use siltstone_engine::backup::{self, CheckpointRule, Source};
use siltstone_engine::check::{self, CheckOptions, ReadData};
use siltstone_engine::maintain;
use siltstone_engine::repair::{self, RepairOptions};
use siltstone_engine::{EngineError, Notice};
use siltstone_store::StoreError;
use siltstone_store::storage::{
    Call, Capabilities, Damage, Guarded, Latency, Listing, ObjectName, Outcome, Recorder, SimulatedDisk, Storage,
};
use std::sync::Arc;
use std::time::Duration;

/// A disk as a client sees it that may only add objects of series. What it may not do must not even be tried.
pub(crate) fn add_only(disk: SimulatedDisk) -> Guarded<SimulatedDisk> {
    let distant = Capabilities::default().with_reserve(false).with_native_create(true);
    let capabilities = distant.with_latency(Latency::Network).with_deletes(false).with_amends(false);
    let judge = |call: Call<'_>| {
        match call {
            Call::Put(name) | Call::Create(name) => {
                assert!(name.series().is_some(), "{name} is written without the right to");
            }
            Call::Delete(name) => {
                assert!(matches!(name, ObjectName::Renewal(..)), "{name} is deleted without the right to");
            }
            _ => {}
        }
        Outcome::Made
    };
    Guarded::new(disk, judge).with_capabilities(capabilities)
}

/// A client that may only add, and whoever may do all, at the same disk and source.
fn client_and_keeper() -> (SimulatedDisk, Sandbox, Sandbox) {
    let disk = SimulatedDisk::new();
    let keeper = Sandbox::on(Arc::new(disk.clone()));
    (disk.clone(), keeper.at(add_only(disk)), keeper)
}

fn names(disk: &SimulatedDisk, what: Listing) -> Vec<ObjectName> {
    disk.list(what).expect("a list").into_iter().map(|meta| meta.name).collect()
}

/// A file that most of changes with each version.
fn write(sandbox: &Sandbox, version: u64) {
    sandbox.write("file", &[noise(1, 100_000), noise(10 + version, 200_000)].concat());
}

#[test]
fn backups_are_whole_and_the_rest_is_done_by_who_may_delete() {
    let (disk, client, keeper) = client_and_keeper();
    let mut snapshots = Vec::new();
    for version in 0..4 {
        write(&client, version);
        snapshots.push((client.backup(), common::tree::read(&client.source())));
    }
    assert_eq!(client.check(ReadData::All).findings, []);
    let manifests = |disk: &SimulatedDisk| names(disk, Listing::AllManifests).len();
    assert!(manifests(&disk) > 4, "no manifest was removed");

    let done = maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources()).expect("maintained");
    assert_eq!(done.settled, 3);
    assert_eq!(manifests(&disk), 2);
    assert_eq!(keeper.repository().config().series.len(), 1, "the series is on the record's list by now");
    for (id, tree) in &snapshots {
        assert!(client.restored(*id) == *tree, "snapshot {} differs", id.short());
    }
    assert_eq!(client.check(ReadData::All).findings, []);
}

/// The record does not list the series of such a client: that is no reason to look closely at it each time.
#[test]
fn later_backups_list_no_containers() {
    let (disk, client, _) = client_and_keeper();
    let recorder = Arc::new(Recorder::new(add_only(disk)));
    write(&client, 0);
    client.backup();
    write(&client, 1);
    client.at(recorder.clone()).backup();
    let lists = recorder.calls().lists;
    assert!(lists <= 7, "{lists} listings: looking closely takes six more, of containers, parity and renewals");
}

/// Containers that healing replaced stay for whoever may delete them, and the client says so.
#[test]
fn a_client_that_heals_tells_what_it_may_not_delete() {
    let (disk, client, keeper) = client_and_keeper();
    client.write("file", &noise(1, 30_000));
    let id = client.backup();
    common::faults::forget_parity(&disk);
    let hit = names(&disk, Listing::All).into_iter().find(|name| name.to_string().starts_with("data/"));
    let hit = hit.expect("a container of data");
    assert!(disk.damage(&hit, Damage::Flip { offset: 2000, mask: 8 }));
    let options = CheckOptions::reading(ReadData::All).with_record(Some("user".into()));
    check::check(&keeper.repository(), &options, &resources()).expect("a check");

    let log = Log::default();
    let options = client.options().with_force(true).with_sample_bytes(Some(0));
    let source = Source::Paths(vec![client.source()]);
    backup::backup(&client.repository(), source, &options, &client.heard_by(&log)).expect("a backup");
    let left = Notice::ContainersLeft { containers: 1, reason: None };
    assert!(log.notices().contains(&left), "{:?}", log.notices());
    assert!(names(&disk, Listing::All).contains(&hit));
    assert!(client.restored(id) == common::tree::read(&client.source()), "it is whole again");

    maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources()).expect("maintained");
    assert!(!names(&disk, Listing::All).contains(&hit));
    assert_eq!(client.check(ReadData::All).findings, []);
}

#[test]
fn checkpoints_leave_nothing_that_stands_in_the_way() {
    let (_disk, client, keeper) = client_and_keeper();
    write(&client, 0);
    client.backup();
    write(&client, 1);
    let rule = CheckpointRule::DEFAULT.with_every(Duration::ZERO).with_bytes(0).with_bytes_least(1);
    let options = client.options().with_force(true).with_checkpoint(Some(rule));
    client.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
    assert_eq!(client.snapshots().len(), 2);
    maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources()).expect("maintained");
    assert_eq!(keeper.check(ReadData::All).findings, []);
}

#[test]
fn what_a_dead_writer_left_stays_until_somebody_may_delete_it() {
    for client_goes_on in [true, false] {
        let (disk, client, keeper) = client_and_keeper();
        write(&client, 0);
        client.backup();
        let repository = client.repository();
        let orphan = {
            let writer = acquire(&repository, dead_holder(), false).expect("the lease");
            let sealed = container(&repository, &writer);
            writer.put(&sealed).expect("put");
            repository.storage().barrier().expect("durable");
            sealed.record.object_name(writer.series())
        };
        if client_goes_on {
            write(&client, 1);
            client.backup();
        }
        assert!(names(&disk, Listing::All).contains(&orphan));
        maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources()).expect("maintained");
        assert!(!names(&disk, Listing::All).contains(&orphan));
        assert_eq!(client.check(ReadData::All).findings, []);
    }
}

/// The story: "nothing is left to do", said maintenance, while the check counted what such clients had left: only a
/// series with something to settle was looked at.
#[test]
fn what_clients_left_goes_where_nothing_is_to_be_settled() {
    let (_disk, client, keeper) = client_and_keeper();
    write(&client, 0);
    client.backup();
    let maintained = || maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources());
    maintained().expect("maintained");
    // A few of its manifests would be nothing to be removed.
    let ids = [0; 12].map(|_| client.backup());
    let left = client.check(ReadData::None);
    assert!(left.orphans > 0, "{left:?}");
    let forecast = || maintain::forecast(&keeper.repository(), None, &keeper.migrate_options(), &resources());
    let expected = forecast().expect("a forecast").maintenance;
    assert_eq!(client.check(ReadData::None).orphans, left.orphans, "a dry run deletes nothing");
    let done = maintained().expect("maintained");
    assert_eq!((done.orphans_deleted, done.orphan_bytes_deleted), (left.orphans, left.orphan_bytes));
    assert_eq!(done, expected);
    let checked = client.check(ReadData::All);
    assert_eq!((checked.findings, checked.orphans), (Vec::new(), 0));
    assert_eq!(maintained().expect("maintained"), maintain::MaintainSummary::default(), "nothing is left to do");
    assert!(client.restored(ids[11]) == common::tree::read(&client.source()));
}

#[test]
fn what_a_writer_at_work_has_put_is_nothing_that_was_left() {
    let (disk, client, keeper) = client_and_keeper();
    write(&client, 0);
    client.backup();
    let maintained = || maintain::maintain(&keeper.repository(), &keeper.migrate_options(), &resources());
    maintained().expect("maintained");
    let repository = client.repository();
    let writer = acquire(&repository, distant_holder(), false).expect("the lease");
    let sealed = container(&repository, &writer);
    writer.put(&sealed).expect("put");
    repository.storage().barrier().expect("durable");
    assert_eq!(maintained().expect("nothing is to be done"), maintain::MaintainSummary::default());
    assert!(names(&disk, Listing::All).contains(&sealed.record.object_name(writer.series())));
}

#[test]
fn what_takes_deletions_is_refused_before_anything_changes() {
    let (disk, client, _keeper) = client_and_keeper();
    write(&client, 0);
    let first = client.backup();
    write(&client, 1);
    client.backup();
    let before = disk.list(Listing::All).expect("a list");
    let repository = client.repository();
    let refused = |result: Result<(), EngineError>| {
        assert!(matches!(result, Err(EngineError::Store(StoreError::NoRight { .. }))), "{result:?}");
        assert_eq!(disk.list(Listing::All).expect("a list"), before);
    };
    refused(client.try_forget(&[first], &client.forget_options(false)).map(drop));
    refused(client.try_forget(&[first], &client.marking(1, 60)).map(drop));
    refused(maintain::maintain(&repository, &client.migrate_options(), &resources()).map(drop));
    let options = RepairOptions::default();
    let plan = repair::plan(&repository, &options, &resources()).expect("a plan");
    refused(repair::execute(&repository, plan, &options, &resources()).map(drop));
    assert_eq!(client.forget(&[first], true).snapshots_removed, 1, "a dry run writes nothing");
}

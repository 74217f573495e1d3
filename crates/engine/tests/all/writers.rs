//! Who may write: the lease and its fencing, histories that were rolled back, clocks that were set back, storage that
//! cannot be written.

use crate::common::faults::copy;
use crate::common::guarded::read_only;
use crate::common::log::Log;
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, resources, writer};
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::snapshots::{self, SnapshotFilter};
use siltstone_engine::{EngineError, Notice, maintain};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, Listing, ObjectName, SimulatedDisk, Storage};
use siltstone_store::{SnapshotId, StoreError, Time};
use std::sync::Arc;

fn another(disk: &SimulatedDisk) -> Repository {
    Repository::open(Arc::new(disk.another_process()), PASSWORD).expect("the repository opens")
}

fn taking_over(scene: &Scene) -> BackupOptions {
    scene.sandbox.options().with_force(true).with_take_over(true)
}

/// Makes a snapshot one of a clock that stood elsewhere.
fn set_clock_of(scene: &Scene, id: SnapshotId, moment: Time) {
    let repository = scene.sandbox.repository();
    let mut writer = writer::acquire(&repository, writer::distant_holder(), false).expect("the lease");
    let mut next = writer.manifest().clone();
    let snapshot = next.snapshot_mut(&id).expect("the snapshot");
    (snapshot.time, snapshot.made) = (moment, moment);
    writer.commit(next, false, moment).expect("a commit");
}

#[test]
fn a_lease_of_a_holder_that_may_live_is_respected() {
    let scene = Scene::with_two_snapshots();
    let holding = another(&scene.disk);
    let _held = writer::acquire(&holding, writer::distant_holder(), false).expect("the lease");
    let options = taking_over(&scene).with_take_over(false);
    let backup = scene.sandbox.try_backup(&options).map(drop);
    let forget = scene.sandbox.try_forget(&scene.ids[..1], &scene.sandbox.forget_options(false)).map(drop);
    for result in [backup, forget] {
        let error = result.expect_err("the series is being written");
        assert!(matches!(error, EngineError::Store(StoreError::LeaseHeld { .. })), "{error:?}");
        let text = error.to_string();
        assert!(text.contains("\"test\"") && text.contains("process 17 of user on elsewhere"), "{text}");
    }
    assert_eq!(scene.assert_sound(&scene.disk, "two refusals").len(), 2);
    let other = options.with_series(Some("other".into()));
    scene.sandbox.try_backup(&other).expect("another series is not concerned");
}

#[test]
fn maintenance_that_meets_another_writer_says_so() {
    let scene = Scene::unsettled();
    let holding = another(&scene.disk);
    let _held = writer::acquire(&holding, writer::distant_holder(), false).expect("the lease");
    let (repository, options) = (scene.sandbox.repository(), scene.sandbox.migrate_options());
    let error = maintain::maintain(&repository, &options, &resources()).expect_err("the series is being written");
    assert!(matches!(error, EngineError::Store(StoreError::LeaseHeld { .. })), "{error:?}");
}

#[test]
fn a_writer_that_was_overtaken_commits_nothing_and_removes_nothing() {
    let scene = Scene::with_two_snapshots();
    let slow_repository = another(&scene.disk);
    let mut slow = writer::acquire(&slow_repository, writer::distant_holder(), false).expect("the lease");
    let new = scene.sandbox.at(scene.disk.another_process()).try_backup(&taking_over(&scene));
    let new = new.expect("a backup that takes over").snapshot.expect("a snapshot");

    // It has not noticed yet, and tidies up: what the other wrote is not its to judge.
    slow.sweep().expect("a sweep");
    assert!(scene.assert_sound(&scene.disk, "the sweep of the overtaken").contains(&new));
    let next = slow.manifest().clone();
    let error = slow.commit(next, false, Time::default()).expect_err("its lease is gone");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
    slow.abandon(Time::default()).expect_err("there is nothing to give back");
    assert!(scene.assert_sound(&scene.disk, "the end of the overtaken").contains(&new));

    scene.sandbox.at(scene.disk.another_process()).try_backup(&taking_over(&scene)).expect("the next backup");
    assert_eq!(scene.sandbox.check(ReadData::All).orphans, 0);
}

/// The one who took over has committed twice, so the number that the slow writer's commit needs is free again. Its
/// manifest there would pass for a broken history, and the series could not be read any more.
#[test]
fn a_commit_under_a_number_set_free_by_the_overtaker_is_fenced_and_leaves_no_trace() {
    let scene = Scene::with_two_snapshots();
    let slow_repository = another(&scene.disk);
    let mut slow = writer::acquire(&slow_repository, writer::distant_holder(), false).expect("the lease");
    let number = slow.manifest().sequence + 1;
    scene.sandbox.at(scene.disk.another_process()).try_backup(&taking_over(&scene)).expect("a backup that takes over");
    let name = ObjectName::Manifest(slow.series(), number);
    assert!(!scene.disk.names().contains(&name), "the number is free");
    let next = slow.manifest().clone();
    let error = slow.commit(next, false, Time::default()).expect_err("its lease is gone");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
    assert!(error.to_string().contains("took over the series \"test\""), "{error}");
    assert!(!scene.disk.names().contains(&name));
    assert_eq!(scene.assert_sound(&scene.disk, "the fenced commit").len(), 3);
}

/// Taking over removes what the other has not finished writing; it learns so at its next write.
#[test]
fn an_overtaken_writer_with_unfinished_containers_cannot_commit_them() {
    let scene = Scene::with_two_snapshots();
    let slow_repository = another(&scene.disk);
    let mut slow = writer::acquire(&slow_repository, writer::distant_holder(), false).expect("the lease");
    slow.put(&writer::container(&slow_repository, &slow)).expect("a container");
    scene.sandbox.at(scene.disk.another_process()).try_backup(&taking_over(&scene)).expect("a backup that takes over");
    let next = slow.manifest().clone();
    slow.commit(next, false, Time::default()).expect_err("its container and its lease are gone");
    assert_eq!(scene.assert_sound(&scene.disk, "the end of the overtaken").len(), 3);
}

#[test]
fn two_writers_that_race_for_the_lease_do_not_both_get_it() {
    let scene = Scene::with_two_snapshots();
    let [one, other] = [another(&scene.disk), another(&scene.disk)];
    let first = writer::acquire(&one, writer::distant_holder(), false).expect("the lease");
    let second = writer::acquire(&other, writer::distant_holder(), true).expect("the lease");
    assert!(first.manifest().sequence < second.manifest().sequence);
    let error = first.abandon(Time::default()).expect_err("the second holds it");
    assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
    second.abandon(Time::default()).expect("it gives its lease back");
    assert_eq!(scene.assert_sound(&scene.disk, "both have ended").len(), 2);
}

#[test]
fn a_rolled_back_manifest_is_found_and_nothing_is_swept_away_for_it() {
    // What is settled is moved, and then an old manifest no longer says where it is.
    let mut scene = Scene { migrate: false, ..Scene::new() };
    scene.sandbox.write("file", &common::noise(1, 50_000));
    scene.backup();
    let old = copy(&scene.disk);
    scene.sandbox.write("file", &common::noise(2, 50_000));
    scene.backup();
    let newest = manifest_names(&scene.disk);
    let back = manifest_names(&old);
    let good = copy(&scene.disk);

    let disk = copy(&scene.disk);
    for name in &newest {
        disk.damage(name, Damage::Delete);
    }
    for name in &back {
        disk.damage(name, Damage::Replace(old.read(name, u64::MAX).expect("the old manifest")));
    }
    let names = disk.names();
    let sandbox = scene.sandbox.at(disk.clone());
    assert_eq!(sandbox.restored(scene.ids[0]), scene.trees[&scene.ids[0]], "what is listed is there");

    let findings = sandbox.check(ReadData::None).findings;
    assert!(findings.iter().any(|finding| finding.what.contains("manifests are missing")), "{findings:?}");
    let backup = sandbox.try_backup(&taking_over(&scene)).map(drop);
    let forget = sandbox.try_forget(&scene.ids[..1], &scene.sandbox.forget_options(false)).map(drop);
    for result in [backup, forget] {
        let error = result.expect_err("history is missing");
        assert!(matches!(error, EngineError::Store(StoreError::LostManifest { .. })), "{error:?}");
        assert!(error.to_string().contains("data/"), "{error}");
    }
    assert_eq!(disk.names(), names, "nothing was touched");

    for name in &back {
        disk.damage(name, Damage::Delete);
    }
    for name in &newest {
        disk.damage(name, Damage::Replace(good.read(name, u64::MAX).expect("the new manifest")));
    }
    assert_eq!(scene.assert_sound(&disk, "the newest manifest was brought back").len(), 2);
}

fn manifest_names(disk: &SimulatedDisk) -> Vec<ObjectName> {
    let listed = [Listing::AllManifests, Listing::AllManifestCopies].map(|what| disk.list(what).expect("a list"));
    listed.into_iter().flatten().map(|meta| meta.name).collect()
}

#[test]
fn a_clock_set_back_is_told_and_the_last_backup_stays_the_latest() {
    let mut scene = Scene::new();
    scene.sandbox.write("file", b"of the future");
    let first = scene.sandbox.try_backup(&taking_over(&scene)).expect("a backup").snapshot.expect("a snapshot");
    scene.trees.insert(first, scene.source());
    set_clock_of(&scene, first, Time { seconds: 9_000_000_000, nanoseconds: 0 });

    scene.sandbox.write("file", b"of the present");
    let log = Log::default();
    let source = Source::Paths(vec![scene.sandbox.source()]);
    let second =
        backup::backup(&scene.sandbox.repository(), source, &taking_over(&scene), &scene.sandbox.heard_by(&log))
            .expect("a backup");
    assert!(
        matches!(log.notices().as_slice(), [Notice::ClockBehind { seconds }] if *seconds > 0),
        "{:?}",
        log.notices()
    );

    let latest = snapshots::resolve(&scene.sandbox.repository(), "latest", &SnapshotFilter::default());
    assert_eq!(Some(latest.expect("a snapshot").0.snapshot.id), second.snapshot);
    assert_eq!(scene.assert_sound(&scene.disk, "the clock was set back").len(), 2);
    scene.sandbox.forget(&[first], false);
    assert_eq!(scene.assert_sound(&scene.disk, "the future was forgotten").len(), 1);
}

#[test]
fn a_read_only_repository_can_be_read_and_says_so_when_written() {
    let scene = Scene::with_two_snapshots();
    let before = scene.disk.names();
    let sandbox = scene.sandbox.at(read_only(scene.disk.clone()));
    for id in &scene.ids {
        assert_eq!(sandbox.restored(*id), scene.trees[id]);
    }
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    sandbox.forget(&scene.ids[..1], true);
    let dry = taking_over(&scene).with_dry_run(true);
    sandbox.try_backup(&dry).expect("a dry run writes nothing");

    let options = sandbox.forget_options(false).with_take_over(true);
    let results =
        [sandbox.try_backup(&taking_over(&scene)).map(drop), sandbox.try_forget(&scene.ids[..1], &options).map(drop)];
    for result in results {
        let text = result.expect_err("nothing can be written").to_string();
        assert!(text.contains("series/") && text.contains("read-only"), "{text}");
    }
    assert_eq!(scene.disk.names(), before);
}

/// The list of series cannot be changed where nothing can be written; the loss is accepted all the same.
#[test]
fn a_lost_series_is_accepted_where_nothing_can_be_written() {
    let scene = Scene::with_two_snapshots();
    for name in manifest_names(&scene.disk) {
        scene.disk.damage(&name, siltstone_store::storage::Damage::Delete);
    }
    let read_only = scene.sandbox.at(read_only(scene.disk.clone()));
    let accepted = || siltstone_engine::seen::accept_lost_series(&read_only.repository()).expect("accepted");
    assert_eq!(accepted(), [("test".to_owned(), false)]);
    let writable = siltstone_engine::seen::accept_lost_series(&scene.sandbox.repository()).expect("accepted");
    assert_eq!(writable, [("test".to_owned(), true)]);
    assert_eq!(accepted(), []);
}

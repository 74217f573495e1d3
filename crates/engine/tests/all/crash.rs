//! Whatever write fails, and whenever the power goes, what was committed stays: every write of every command that
//! writes is hit in every way on the simulated disk, and each disk found afterwards must restore every committed
//! snapshot identically, check clean to the last byte, and take the next backup, which removes what the interrupted run
//! left.
//!
//! Every write is hit, none sampled: the sources are small, so that a run makes some ten writes. Sampled are the fates
//! of writes that were pending when the power went: the two extremes and a random draw per loss of power (with `cargo
//! xtask test --full` two), one extreme and a draw where a write failed before; the store's own tests draw more. Ends of
//! one run that are the same disk are looked at once.

use super::shortcuts::chain_of_edits;
use crate::common::faults::{Found, at_every_write, copy, writes_of};
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, resources, writer};
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, ChangedList, CheckpointRule, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_engine::forget::ForgetOptions;
use siltstone_engine::fs::Problem;
use siltstone_engine::maintain::{self, MaintainOptions, MaintainSummary, Recompression};
use siltstone_engine::{EngineError, Observer, snapshots};
use siltstone_store::keys::Argon2Cost;
use siltstone_store::repository::Repository;
use siltstone_store::storage::SimulatedDisk;
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Options of a run whose predecessor may not have ended peacefully; it was this very process, so it does not count as
/// dead.
fn backup_options(scene: &Scene) -> BackupOptions {
    scene.sandbox.options().with_force(true).with_take_over(true)
}

/// A checkpoint wherever there can be one.
fn every_piece() -> CheckpointRule {
    CheckpointRule::DEFAULT.with_every(Duration::ZERO).with_bytes(0).with_bytes_least(1)
}

fn forget_options(scene: &Scene) -> ForgetOptions {
    scene.sandbox.forget_options(false).with_take_over(true).with_rewrite_threshold(0.0)
}

fn try_backup(scene: &Scene, disk: &SimulatedDisk) -> Result<SnapshotId, EngineError> {
    let summary = scene.sandbox.at(disk.clone()).try_backup(&backup_options(scene))?;
    Ok(summary.snapshot.expect("a backup that ends well makes a snapshot"))
}

fn try_forget(scene: &Scene, disk: &SimulatedDisk, ids: &[SnapshotId]) -> Result<(), EngineError> {
    scene.sandbox.at(disk.clone()).try_forget(ids, &forget_options(scene)).map(|_| ())
}

/// The next backup works, and leaves no orphans.
fn assert_recovers(scene: &Scene, disk: &SimulatedDisk, story: &str) {
    let id = try_backup(scene, disk).unwrap_or_else(|error| panic!("the next backup: {error} after {story}"));
    assert!(scene.assert_sound(disk, story).contains(&id), "after {story}");
    assert_eq!(scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0, "after {story}");
}

fn examine_backup(scene: &Scene, found: &Found<'_, Result<SnapshotId, EngineError>>) {
    examine_snapshots(scene, found);
    if found.recover {
        assert_recovers(scene, &found.disk, &found.story);
    }
}

/// Nothing that was committed before is gone, and what the run says of its own snapshot is true.
fn examine_snapshots(scene: &Scene, found: &Found<'_, Result<SnapshotId, EngineError>>) {
    let ids = scene.assert_sound(&found.disk, &found.story);
    let new: Vec<_> = ids.iter().filter(|id| !scene.trees.contains_key(id)).collect();
    assert_eq!(ids.len() - new.len(), scene.trees.len(), "a committed snapshot is gone after {}", found.story);
    assert!(new.len() <= 1, "{}", found.story);
    if let Ok(id) = found.result {
        assert_eq!(new, [id], "a backup that ended well is there after {}", found.story);
    }
}

fn examine_forget(scene: &Scene, found: &Found<'_, Result<(), EngineError>>, gone: &[SnapshotId]) {
    let ids = scene.assert_sound(&found.disk, &found.story);
    let all: BTreeSet<_> = scene.ids.iter().copied().collect();
    let rest: BTreeSet<_> = scene.ids.iter().copied().filter(|id| !gone.contains(id)).collect();
    assert!(ids == rest || (ids == all && found.result.is_err()), "{}", found.story);
    if found.recover {
        try_forget(scene, &found.disk, gone).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        assert_eq!(scene.assert_sound(&found.disk, &found.story), rest);
        found.disk.set_capacity(None);
        assert_recovers(scene, &found.disk, &found.story);
    }
}

#[test]
fn a_backup_hit_at_any_write_costs_no_committed_snapshot() {
    for scene in [Scene::with_two_snapshots(), Scene::in_parts(true)] {
        at_every_write(&scene.disk, |disk| try_backup(&scene, disk), |found| examine_backup(&scene, found));
    }
}

#[test]
fn a_backup_with_checkpoints_hit_at_any_write_costs_no_committed_snapshot() {
    for deltas in [Deltas::default(), Deltas::Forward { depth: 4 }] {
        let scene = Scene::with_two_snapshots();
        let options = backup_options(&scene).with_deltas(deltas).with_checkpoint(Some(every_piece()));
        let try_backup = |disk: &SimulatedDisk| {
            let summary = scene.sandbox.at(disk.clone()).try_backup(&options)?;
            Ok(summary.snapshot.expect("a backup that ends well makes a snapshot"))
        };
        let without = writes_of(&scene.disk, |disk| self::try_backup(&scene, disk));
        assert!(writes_of(&scene.disk, try_backup) >= without + 3, "containers and a commit more");
        at_every_write(&scene.disk, try_backup, |found| examine_backup(&scene, found));
    }
}

#[test]
fn a_backup_against_old_chunks_hit_at_any_write_costs_no_committed_snapshot() {
    let scene = Scene::with_two_snapshots();
    let options = backup_options(&scene).with_deltas(Deltas::Forward { depth: 4 });
    let try_backup = |disk: &SimulatedDisk| {
        let summary = scene.sandbox.at(disk.clone()).try_backup(&options)?;
        assert!(summary.deltas.kept > 0);
        Ok(summary.snapshot.expect("a backup that ends well makes a snapshot"))
    };
    at_every_write(&scene.disk, try_backup, |found| examine_backup(&scene, found));
}

/// A backup of what is listed; entries are paths in the source, with what follows them.
fn try_listed(scene: &Scene, disk: &SimulatedDisk, entries: &[&str]) -> Result<BackupSummary, EngineError> {
    let options = scene.sandbox.options().with_take_over(true);
    let mut list = ChangedList::new(scene.sandbox.resources().memory_bytes);
    for entry in entries {
        list.add_lines("the list", scene.sandbox.source().join(entry).as_os_str().as_bytes())?;
    }
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
    let source = Source::Changes { paths: vec![scene.sandbox.source()], list: Arc::new(list) };
    backup::backup(&repository, source, &options, &scene.sandbox.resources())
}

#[test]
fn a_backup_of_a_list_hit_at_any_write_costs_no_snapshot_and_can_be_repeated() {
    let scene = Scene::with_two_snapshots();
    for entries in [&["edited", "changed", "added"][..], &["edited\t20000\t4", "changed\t0\t60000", "added"]] {
        let run = |disk: &SimulatedDisk| {
            let summary = try_listed(&scene, disk, entries)?;
            Ok(summary.snapshot.expect("a backup that ends well makes a snapshot"))
        };
        let changed = try_listed(&scene, &copy(&scene.disk), entries).expect("a backup").statistics;
        assert_eq!((changed.files_changed, changed.files_new), (2, 1), "{changed:?}");
        assert!(writes_of(&scene.disk, run) >= 7, "lease, two containers, barrier, commit, tidying");
        at_every_write(&scene.disk, run, |found| {
            examine_snapshots(&scene, found);
            if !found.recover {
                return;
            }
            let (disk, story) = (&found.disk, &found.story);
            let again = run(disk).unwrap_or_else(|error| panic!("the list again: {error} after {story}"));
            assert!(scene.assert_sound(disk, story).contains(&again), "after {story}");
            let orphans = scene.sandbox.at(disk.clone()).check(ReadData::None).orphans;
            assert_eq!(orphans, 0, "after {story}");
            let read = scene.sandbox.at(disk.clone()).try_backup(&backup_options(&scene)).expect("a full backup");
            assert_eq!(read.statistics.chunks_new, 0, "the list told all after {story}");
        });
    }
}

/// A scene of three snapshots, the second of which lacks what the first and the source have.
fn there_and_away() -> Scene {
    let mut scene = Scene::new();
    scene.sandbox.write("kept", &common::noise(1, 60_000));
    scene.sandbox.write("mounted/one", &common::noise(2, 60_000));
    scene.sandbox.write("mounted/two", &common::noise(3, 60_000));
    scene.backup();
    scene.sandbox.remove("mounted");
    scene.backup();
    scene.sandbox.write("added", &common::noise(4, 20_000));
    scene.sandbox.write("mounted/one", &common::noise(2, 60_000));
    scene
}

#[test]
fn a_backup_that_takes_chunks_back_hit_at_any_write_costs_no_committed_snapshot() {
    let scene = there_and_away();
    let try_backup = |disk: &SimulatedDisk, migrate_threshold: f64| {
        let options = backup_options(&scene).with_migrate_threshold(migrate_threshold);
        let summary = scene.sandbox.at(disk.clone()).try_backup(&options)?;
        assert!(summary.reused.chunks > 0);
        Ok((summary.snapshot.expect("a backup that ends well makes a snapshot"), summary.migration))
    };
    for threshold in [0.0, 0.25, 1.0] {
        let (_, migrated) = try_backup(&copy(&scene.disk), threshold).expect("a backup");
        // Half of a container came back. Whether a chunk of noise resembles another hangs on the key.
        assert_eq!(migrated.bytes_written > 20_000, threshold < 1.0, "{migrated:?}");
        let run = |disk: &SimulatedDisk| try_backup(disk, threshold).map(|(id, _)| id);
        at_every_write(&scene.disk, run, |found| examine_backup(&scene, found));
    }
}

/// Rest of a hull when the snapshots at both ends of it are forgotten.
#[test]
fn drawing_hulls_in_hit_at_any_write_costs_no_snapshot() {
    let mut scene = there_and_away();
    scene.backup();
    let gone = [scene.ids.remove(0), scene.ids.remove(1)];
    scene.sandbox.forget(&gone, false);
    scene.trees.retain(|id, _| !gone.contains(id));
    let options = scene.sandbox.migrate_options().with_take_over(true);
    let done = try_maintain(&copy(&scene.disk), &options).expect("maintenance");
    assert!(done.bytes_deleted > 60_000, "{done:?}");
    maintenance_hit_at_any_write_costs_no_snapshot(&scene, &options, |disk, story| {
        // The 60 kB that nothing needs are gone; manifests that a stop left behind wait for the next writer.
        assert!(disk.used_bytes() + 50_000 < scene.disk.used_bytes(), "{story}");
    });
}

fn try_maintain(disk: &SimulatedDisk, options: &MaintainOptions) -> Result<MaintainSummary, EngineError> {
    let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
    maintain::maintain(&repository, options, &resources())
}

/// Whatever write is hit, all snapshots stay, and the next run does the rest, which `is_done` looks for.
fn maintenance_hit_at_any_write_costs_no_snapshot(
    scene: &Scene,
    options: &MaintainOptions,
    is_done: impl Fn(&SimulatedDisk, &str),
) {
    let run = |disk: &SimulatedDisk| try_maintain(disk, options);
    at_every_write(&scene.disk, run, |found| {
        let (disk, story) = (&found.disk, &found.story);
        let ids = scene.assert_sound(disk, story);
        assert_eq!(ids, scene.ids.iter().copied().collect(), "{story}");
        if found.recover {
            run(disk).unwrap_or_else(|error| panic!("{error} after {story}"));
            assert_eq!(scene.assert_sound(disk, story), ids);
            is_done(disk, story);
            assert_recovers(scene, disk, story);
        }
    });
}

#[test]
fn a_first_backup_hit_at_any_write_leaves_a_repository_that_takes_the_next() {
    let scene = Scene::new();
    scene.sandbox.write("file", &common::noise(1, 40_000));
    at_every_write(&scene.disk, |disk| try_backup(&scene, disk), |found| examine_backup(&scene, found));
}

#[test]
fn forgetting_with_containers_rewritten_hit_at_any_write_costs_no_other_snapshot() {
    for scene in [Scene::unsettled(), Scene::in_parts(false)] {
        let gone = [scene.ids[0]];
        let sound = copy(&scene.disk);
        let summary = scene.sandbox.at(sound).try_forget(&gone, &forget_options(&scene)).expect("forgetting");
        assert!(summary.containers_rewritten > 0 && summary.containers_deleted > 0, "{summary:?}");
        at_every_write(
            &scene.disk,
            |disk| try_forget(&scene, disk, &gone),
            |found| examine_forget(&scene, found, &gone),
        );
    }
}

#[test]
fn forgetting_on_a_disk_full_to_the_last_byte_hit_at_any_write_costs_no_other_snapshot() {
    for scene in [Scene::with_two_snapshots(), Scene::in_parts(true)] {
        let gone = [scene.ids[0]];
        let full = copy(&scene.disk);
        full.set_capacity(Some(full.used_bytes()));
        at_every_write(&full, |disk| try_forget(&scene, disk, &gone), |found| examine_forget(&scene, found, &gone));
    }
}

/// Takes `kept` out of both snapshots; it is in one container with what stays.
fn try_rewrite(scene: &Scene, disk: &SimulatedDisk) -> Result<(), EngineError> {
    scene.sandbox.at(disk.clone()).try_rewrite("kept", &forget_options(scene)).map(|_| ())
}

/// Every snapshot has all that it had, or all but `kept`, and that in one step. Tells which.
fn is_rewritten(scene: &Scene, disk: &SimulatedDisk, story: &str) -> bool {
    let found = scene.sandbox.at(disk.clone());
    let mut rewritten = Vec::new();
    for (old, view) in scene.ids.iter().zip(found.snapshots()) {
        let id = view.snapshot.id;
        assert_eq!(id.0[..16], old.0[..16], "{story}");
        let mut expected = scene.trees[old].clone();
        if id != *old {
            expected.retain(|name, _| !name.starts_with(b"kept"));
        }
        assert!(found.restored(id) == expected, "snapshot {} differs after {story}", id.short());
        rewritten.push(id != *old);
    }
    assert_eq!(found.check(ReadData::All).findings, [], "after {story}");
    assert!(rewritten == [true, true] || rewritten == [false, false], "{rewritten:?} after {story}");
    rewritten[0]
}

#[test]
fn rewriting_hit_at_any_write_leaves_all_snapshots_as_they_were_or_all_without_the_path() {
    for scene in [Scene::with_two_snapshots(), Scene::in_parts(false)] {
        let sound = copy(&scene.disk);
        let summary = scene.sandbox.at(sound.clone()).try_rewrite("kept", &forget_options(&scene)).expect("a rewrite");
        assert!(summary.containers_rewritten > 0, "{summary:?}");
        assert!(is_rewritten(&scene, &sound, "no fault"));
        let full = copy(&scene.disk);
        full.set_capacity(Some(full.used_bytes()));
        for before in [&scene.disk, &full] {
            at_every_write(
                before,
                |disk| try_rewrite(&scene, disk),
                |found| {
                    let is_done = is_rewritten(&scene, &found.disk, &found.story);
                    assert!(is_done || found.result.is_err(), "{}", found.story);
                    if found.recover {
                        found.disk.set_capacity(None);
                        try_rewrite(&scene, &found.disk)
                            .unwrap_or_else(|error| panic!("{error} after {}", found.story));
                        assert!(is_rewritten(&scene, &found.disk, &found.story));
                        try_backup(&scene, &found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
                        let checked = scene.sandbox.at(found.disk.clone()).check(ReadData::All);
                        assert_eq!((checked.findings, checked.orphans), (Vec::new(), 0), "after {}", found.story);
                    }
                },
            );
        }
    }
}

/// Marks the older snapshot as deleted for a day, or ends its mark on the next.
fn try_marking(scene: &Scene, disk: &SimulatedDisk, at: i64, ids: &[SnapshotId]) -> Result<(), EngineError> {
    let options = scene.sandbox.marking(at, 24 * 60 * 60).with_take_over(true).with_rewrite_threshold(0.0);
    scene.sandbox.at(disk.clone()).try_forget(ids, &options).map(|_| ())
}

/// The live and the deleted snapshots; the latter are as sound as the former, which is seen once they are brought back.
fn live_and_deleted<T>(scene: &Scene, found: &Found<'_, T>) -> [BTreeSet<SnapshotId>; 2] {
    let live = scene.assert_sound(&found.disk, &found.story);
    let disk = copy(&found.disk);
    disk.set_capacity(None);
    let sandbox = scene.sandbox.at(disk.clone());
    let deleted: Vec<_> = sandbox.deleted().iter().map(|view| view.snapshot.id).collect();
    sandbox.try_undelete(&deleted).unwrap_or_else(|error| panic!("undeleting: {error} after {}", found.story));
    let all = scene.assert_sound(&disk, &found.story);
    assert_eq!(all.len(), live.len() + deleted.len(), "{}", found.story);
    [live, deleted.into_iter().collect()]
}

#[test]
fn marking_and_undeleting_hit_at_any_write_cost_no_snapshot() {
    let scene = Scene::with_two_snapshots();
    let [gone, kept] = [[scene.ids[0]], [scene.ids[1]]].map(BTreeSet::from);
    let all = &gone | &kept;
    let none = BTreeSet::new();
    let full = copy(&scene.disk);
    full.set_capacity(Some(full.used_bytes()));
    for before in [&scene.disk, &full] {
        let mark = |disk: &SimulatedDisk| try_marking(&scene, disk, 0, &scene.ids[..1]);
        at_every_write(before, mark, |found| {
            let states = live_and_deleted(&scene, found);
            let is_marked = states == [kept.clone(), gone.clone()];
            assert!(is_marked || (states == [all.clone(), none.clone()] && found.result.is_err()), "{}", found.story);
            if found.recover {
                mark(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
                assert_eq!(live_and_deleted(&scene, found), [kept.clone(), gone.clone()], "{}", found.story);
            }
        });
    }
    try_marking(&scene, &scene.disk, 0, &scene.ids[..1]).expect("marking");
    let undelete = |disk: &SimulatedDisk| scene.sandbox.at(disk.clone()).try_undelete(&scene.ids[..1]);
    let full = copy(&scene.disk);
    full.set_capacity(Some(full.used_bytes()));
    for before in [&scene.disk, &full] {
        at_every_write(before, undelete, |found| {
            let states = live_and_deleted(&scene, found);
            let is_back = states == [all.clone(), none.clone()];
            assert!(is_back || (states == [kept.clone(), gone.clone()] && found.result.is_err()), "{}", found.story);
            if found.recover {
                undelete(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
                assert_eq!(scene.assert_sound(&found.disk, &found.story), all);
                found.disk.set_capacity(None);
                assert_recovers(&scene, &found.disk, &found.story);
            }
        });
    }
}

/// Work that is run to be hit.
type Run<'r> = dyn Fn(&SimulatedDisk) -> Result<(), EngineError> + 'r;

/// Counts problems.
#[derive(Default)]
struct Problems(AtomicU64);

impl Observer for Problems {
    fn problem(&self, _: &Problem) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

#[test]
fn ending_a_mark_hit_at_any_write_costs_no_other_snapshot() {
    let scene = Scene::unsettled();
    try_marking(&scene, &scene.disk, 0, &scene.ids[..1]).expect("marking");
    let (end, options) = (24 * 60 * 60, scene.sandbox.migrate_options());
    let forget = |disk: &SimulatedDisk| try_marking(&scene, disk, end, &[]);
    let maintain = |disk: &SimulatedDisk| {
        let repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
        let problems = Arc::new(Problems::default());
        maintain::maintain(
            &repository,
            &options.clone().with_take_over(true),
            &resources().with_observer(problems.clone()),
        )?;
        // A series that fails is told, and does not keep the others from being maintained.
        if problems.0.load(Ordering::Relaxed) == 0 { Ok(()) } else { Err(EngineError::Interrupted) }
    };
    let runs: [&Run<'_>; 2] = [&forget, &maintain];
    let [gone, kept] = [[scene.ids[0]], [scene.ids[1]]].map(BTreeSet::from);
    for run in runs {
        let (before, sound) = (scene.disk.used_bytes(), copy(&scene.disk));
        run(&sound).expect("ending");
        assert!(sound.used_bytes() + 50_000 < before, "{} of {before}", sound.used_bytes());
        at_every_write(&scene.disk, run, |found| {
            let [live, deleted] = live_and_deleted(&scene, found);
            assert_eq!(live, kept, "{}", found.story);
            assert!(deleted.is_empty() || (deleted == gone && found.result.is_err()), "{}", found.story);
            if found.recover {
                run(&found.disk).unwrap_or_else(|error| panic!("{error} after {}", found.story));
                assert_eq!(live_and_deleted(&scene, found), [kept.clone(), BTreeSet::new()], "{}", found.story);
                assert_recovers(&scene, &found.disk, &found.story);
            }
        });
    }
}

#[test]
fn settling_in_pieces_hit_at_any_write_costs_no_snapshot() {
    for scene in [Scene::unsettled(), Scene::in_parts(false)] {
        for threshold in [0.0, 1.0] {
            let options =
                scene.sandbox.migrate_options().with_threshold(threshold).with_piece_bytes(1).with_take_over(true);
            let done = try_maintain(&copy(&scene.disk), &options).expect("settling");
            assert!(done.deltas_kept > 0 && done.settled == 1, "{done:?}");
            assert!(threshold > 0.0 || done.containers_deleted > 0, "{done:?}");
            maintenance_hit_at_any_write_costs_no_snapshot(&scene, &options, |disk, story| {
                let left = scene.sandbox.at(disk.clone()).repository().manifests().expect("manifests");
                assert!(left.iter().all(|manifest| manifest.unsettled.is_empty()), "after {story}");
            });
        }
    }
}

#[test]
fn recompressing_hit_at_any_write_costs_no_snapshot() {
    let mut scene = Scene::in_parts(true);
    // Something that a higher level makes smaller.
    scene.sandbox.write("text", &common::text(7, 400_000));
    scene.backup();
    let options = scene.sandbox.migrate_options().with_take_over(true);
    let options = options.with_recompression(Some(Recompression::all_at(9)));
    let done = try_maintain(&copy(&scene.disk), &options).expect("recompression");
    assert!(done.recompressed > 1 && done.bytes_written < done.bytes_deleted, "{done:?}");
    maintenance_hit_at_any_write_costs_no_snapshot(&scene, &options, |disk, story| {
        let left = scene.sandbox.at(disk.clone()).repository().manifests().expect("manifests");
        assert!(left.iter().flat_map(|manifest| &manifest.containers).all(|record| record.level == 9), "{story}");
    });
}

#[test]
fn eliminating_ghosts_hit_at_any_write_costs_no_snapshot() {
    let mut scene = Scene::new();
    let mut edited = common::noise(5, 60_000);
    for version in 0..5 {
        edited[30_000..33_000].copy_from_slice(&common::noise(10 + version, 3000));
        scene.sandbox.write("edited", &edited);
        scene.backup();
    }
    let gone: Vec<_> = scene.ids.drain(1..4).collect();
    scene.sandbox.forget(&gone, false);
    scene.trees.retain(|id, _| !gone.contains(id));
    let options = scene.sandbox.migrate_options().with_threshold(0.0).with_take_over(true);
    let done = try_maintain(&copy(&scene.disk), &options).expect("maintenance");
    assert!(done.ghosts_eliminated > 0, "{done:?}");
    maintenance_hit_at_any_write_costs_no_snapshot(&scene, &options, |_, _| {});
}

#[test]
fn making_shortcuts_hit_at_any_write_costs_no_snapshot() {
    let scene = chain_of_edits(5);
    let options = scene.sandbox.migrate_options().with_take_over(true);
    let options = options.with_recompression(Some(Recompression::when_idle()));
    let done = try_maintain(&copy(&scene.disk), &options).expect("maintenance");
    assert!(done.shortcuts_made == 2 && done.containers_deleted > 0, "{done:?}");
    maintenance_hit_at_any_write_costs_no_snapshot(&scene, &options, |disk, story| {
        let left = scene.sandbox.at(disk.clone()).repository().manifests().expect("manifests");
        assert!(left.iter().all(|manifest| manifest.shortcuts.values().flatten().count() == 2), "{story}");
    });
}

#[test]
fn a_backup_that_takes_a_dead_writers_lease_over_hit_at_any_write_costs_no_committed_snapshot() {
    for scene in [Scene::with_two_snapshots(), Scene::in_parts(true)] {
        leave_lease_and_orphans(&scene.sandbox.repository());
        let found = scene.sandbox.check(ReadData::All);
        assert!(found.findings.is_empty() && found.orphans > 0, "{found:?}");
        at_every_write(&scene.disk, |disk| try_backup(&scene, disk), |found| examine_backup(&scene, found));
    }
}

/// A writer takes the lease, writes a container, and is gone.
fn leave_lease_and_orphans(repository: &Repository) {
    let writer = writer::acquire(repository, writer::dead_holder(), false).expect("the lease");
    writer.put(&writer::container(repository, &writer)).expect("a container");
    repository.storage().barrier().expect("a barrier");
}

#[test]
fn a_dead_writers_lease_is_taken_over_without_being_told_to() {
    let scene = Scene::with_two_snapshots();
    leave_lease_and_orphans(&scene.sandbox.repository());
    let options = backup_options(&scene).with_take_over(false);
    let summary = scene.sandbox.try_backup(&options).expect("the holder is known to be dead");
    assert!(scene.assert_sound(&scene.disk, "taking over").contains(&summary.snapshot.expect("a snapshot")));
    assert_eq!(scene.sandbox.check(ReadData::All).orphans, 0);
}

#[test]
fn an_init_hit_at_any_write_leaves_a_repository_or_a_place_for_one() {
    let scene = Scene::new();
    let init = |disk: &SimulatedDisk| common::init(Arc::new(disk.clone())).map(|_| ());
    at_every_write(&SimulatedDisk::new(), init, |found| {
        let story = &found.story;
        match Repository::open(Arc::new(found.disk.clone()), PASSWORD) {
            Ok(_) => {}
            Err(StoreError::NotARepository { .. }) if found.result.is_err() => {
                init(&found.disk).unwrap_or_else(|error| panic!("{error} at the second attempt after {story}"));
                let repository = Repository::open(Arc::new(found.disk.clone()), PASSWORD).expect("it opens");
                assert_eq!(repository.config().key_slots.len(), 1, "no slot of the first attempt counts after {story}");
            }
            Err(error) => panic!("{error} after {story}"),
        }
        assert_recovers(&scene, &found.disk, story);
    });
}

#[test]
fn a_password_change_hit_at_any_write_never_locks_the_repository() {
    let scene = Scene::with_two_snapshots();
    let change = |disk: &SimulatedDisk| -> Result<(), EngineError> {
        let mut repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
        repository.change_password(b"another", &common::label(), Argon2Cost::TEST)?;
        Ok(())
    };
    at_every_write(&scene.disk, change, |found| {
        let [old, new] =
            [PASSWORD, b"another"].map(|password| Repository::open(Arc::new(found.disk.clone()), password).is_ok());
        assert!(old || new, "no password opens after {}", found.story);
        assert!(found.result.is_err() || (new && !old), "after {}", found.story);
        let password = if new { b"another" } else { PASSWORD };
        let repository = Repository::open(Arc::new(found.disk.clone()), password).expect("it opens");
        let listed = snapshots::list(&repository, &snapshots::SnapshotFilter::default()).expect("a list");
        assert_eq!(listed.len(), 2, "after {}", found.story);
    });
}

#[test]
fn a_change_of_the_master_key_hit_at_any_write_never_locks_the_repository() {
    let scene = Scene::with_two_snapshots();
    let rotate = |disk: &SimulatedDisk| -> Result<(), EngineError> {
        let mut repository = Repository::open(Arc::new(disk.clone()), PASSWORD)?;
        repository.rotate(PASSWORD, &common::label(), Argon2Cost::TEST)?;
        Ok(())
    };
    at_every_write(&scene.disk, rotate, |found| {
        let repository = Repository::open(Arc::new(found.disk.clone()), PASSWORD);
        let repository = repository.unwrap_or_else(|error| panic!("{error} after {}", found.story));
        let epoch = repository.keys().epoch().0;
        assert!(epoch == 2 || (epoch == 1 && found.result.is_err()), "epoch {epoch} after {}", found.story);
        assert_eq!(scene.assert_sound(&found.disk, &found.story).len(), 2, "after {}", found.story);
    });
}

#[test]
fn a_disk_full_at_any_point_of_a_backup_costs_nothing_and_forgetting_still_works() {
    for scene in [Scene::with_two_snapshots(), Scene::in_parts(true)] {
        let used = scene.disk.used_bytes();
        let sound = copy(&scene.disk);
        try_backup(&scene, &sound).expect("room enough");
        let grown = sound.used_bytes() - used;
        let mut fulls = 0;
        for room in (0..=grown + 8192).step_by(usize::try_from(grown / 16).expect("a small number").max(1)) {
            let story = format!("a backup with {room} bytes of room");
            let disk = copy(&scene.disk).with_capacity(used + room);
            let result = try_backup(&scene, &disk);
            if let Err(error) = &result {
                fulls += 1;
                assert!(matches!(error, EngineError::Store(error) if error.is_full()), "{error:?} after {story}");
            }
            // Whatever room the failed backup gave back, something else has taken by now.
            disk.set_capacity(Some(disk.used_bytes()));
            let ids = scene.assert_sound(&disk, &story);
            assert_eq!(ids.len(), 2 + usize::from(result.is_ok()), "after {story}");
            let before = disk.used_bytes();
            try_forget(&scene, &disk, &scene.ids[..1])
                .unwrap_or_else(|error| panic!("forgetting: {error} after {story}"));
            assert!(
                disk.used_bytes() + 50_000 < before,
                "{} of {before} bytes are left after {story}",
                disk.used_bytes()
            );
            assert_eq!(scene.assert_sound(&disk, &story).len(), ids.len() - 1);
            disk.set_capacity(None);
            assert_recovers(&scene, &disk, &story);
        }
        assert!(fulls >= 8, "{fulls} of the backups met a full disk");
    }
}

#[test]
fn every_run_makes_writes_to_be_hit() {
    let scene = Scene::with_two_snapshots();
    assert!(
        writes_of(&scene.disk, |disk| try_backup(&scene, disk)) >= 7,
        "lease, two containers, barrier, commit, tidying"
    );
    assert!(writes_of(&scene.disk, |disk| try_forget(&scene, disk, &scene.ids[..1])) >= 9);
}

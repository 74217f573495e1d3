//! Repair: whatever manifest or container is lost, what the rest can give comes back, what is lost is named, and a
//! repair that is cut off anywhere can be done again.

use crate::common::faults::{at_every_write, copy, forget_parity};
use crate::common::guarded::denying_manifests;
use crate::common::repair::{open, repair_options, series_of, try_repair};
use crate::common::ruin::{containers_of, manifest_of, ruins_of};
use crate::common::scene::Scene;
use crate::common::{self, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::check::{Help, ReadData};
use siltstone_engine::repair::{self, Basis, RepairOptions, RepairPlan, RepairSummary};
use siltstone_store::container::ContainerKind;
use siltstone_store::storage::{Damage, Listing, ObjectName, SimulatedDisk, Storage};
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeMap;

/// Where a manifest lies a second time.
fn copy_of(manifest: &ObjectName) -> ObjectName {
    manifest.original().expect("a manifest").copy()
}

fn planned(disk: &SimulatedDisk, options: &RepairOptions) -> RepairPlan {
    repair::plan(&open(disk), options, &resources()).expect("a plan")
}

/// Every manifest of the series, copies included, meets this.
fn damage_manifests(disk: &SimulatedDisk, damage: &Damage) {
    for name in disk.names() {
        if name.to_string().contains("series/") {
            disk.damage(&name, damage.clone());
        }
    }
}

/// The repaired repository is sound, holds these snapshots as they were described, and can be backed up to.
fn assert_back(scene: &Scene, disk: &SimulatedDisk, ids: &[SnapshotId], story: &str) {
    let found = scene.assert_sound(disk, story);
    assert!(ids.len() == found.len() && ids.iter().all(|id| found.contains(id)), "{story}: {found:?}");
    let sandbox = scene.sandbox.at(disk.clone());
    let views = sandbox.snapshots();
    assert!(views.iter().all(|view| view.series_name == "test" && view.snapshot.host == "host"), "{story}");
    let backup = sandbox.options().with_take_over(true).with_force(true);
    let new = sandbox.try_backup(&backup).expect("a backup").snapshot.expect("a snapshot");
    let found = scene.assert_sound(disk, &format!("{story}, and a backup"));
    assert!(found.len() == ids.len() + 1 && found.contains(&new), "{story}");
    assert_eq!(scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0, "{story}");
}

#[test]
fn a_sound_repository_has_nothing_to_repair() {
    let scene = Scene::with_two_snapshots();
    let names = scene.disk.names();
    assert!(planned(&scene.disk, &repair_options()).series.is_empty());
    assert_eq!(try_repair(&scene.disk, &repair_options()).expect("a repair"), RepairSummary::default());
    assert_eq!(scene.disk.names(), names);
}

#[test]
fn a_series_without_a_readable_manifest_comes_back_from_its_containers() {
    for scene in [Scene::with_two_snapshots(), Scene::unsettled()] {
        let flip = Damage::Flip { offset: 100, mask: 4 };
        for damage in [Damage::Delete, Damage::Truncate { bytes: 100 }, flip, Damage::Unreadable] {
            let disk = copy(&scene.disk);
            damage_manifests(&disk, &damage);
            let story = format!("{damage:?}");
            let plan = planned(&disk, &repair_options());
            assert_eq!(plan.series.len(), 1, "{story}");
            assert_eq!((plan.series[0].basis, plan.series[0].name.as_deref()), (Basis::Containers, Some("test")));
            let names = disk.names();
            assert_eq!(plan.series[0].found.len(), 2, "{story}");
            assert_eq!(disk.names(), names, "a plan changes nothing");
            let summary = try_repair(&disk, &repair_options()).expect("a repair");
            assert_eq!((summary.series_repaired, summary.snapshots_found), (1, 2), "{story}");
            assert!(planned(&disk, &repair_options()).series.is_empty(), "nothing is left to do: {story}");
            assert_back(&scene, &disk, &scene.ids, &story);
        }
    }
}

/// Nobody else can know of the loss: the predecessor looks like a run that ended before its commit.
#[test]
fn a_newest_commit_that_was_seen_and_is_lost_in_both_places_comes_back_from_its_containers() {
    let scene = Scene::unsettled();
    let (disk, series) = (copy(&scene.disk), series_of(&scene.disk));
    let newest = manifest_of(&disk, series);
    let seen = open(&disk).manifest(series).expect("a manifest").expect("a manifest").sequence;
    disk.damage(&newest, Damage::Delete);
    disk.damage(&copy_of(&newest), Damage::Delete);
    assert!(planned(&disk, &repair_options()).series.is_empty(), "who did not see it misses nothing");
    let knowing = || repair_options().with_seen(BTreeMap::from([(series, seen)]));
    let plan = planned(&disk, &knowing());
    let found: Vec<_> = plan.series[0].found.iter().map(|snapshot| snapshot.id).collect();
    assert_eq!((found, plan.series[0].basis), (vec![scene.ids[1]], Basis::Older(seen - 1)));
    try_repair(&disk, &knowing()).expect("a repair");
    let now = open(&disk).manifest(series).expect("a manifest").expect("a manifest").sequence;
    assert!(now > seen, "its number is not used for another commit");
    assert!(planned(&disk, &knowing()).series.is_empty(), "nothing is left to do");
    assert_back(&scene, &disk, &scene.ids, "the loss of the newest commit");
}

#[test]
fn an_older_copy_of_the_repository_is_not_for_repair() {
    let mut scene = Scene::new();
    scene.sandbox.write("file", &noise(1, 10_000));
    scene.backup();
    let (old, series) = (copy(&scene.disk), series_of(&scene.disk));
    scene.sandbox.write("file", &noise(2, 10_000));
    scene.backup();
    let seen = open(&scene.disk).manifest(series).expect("a manifest").expect("a manifest").sequence;
    let knowing = repair_options().with_seen(BTreeMap::from([(series, seen)]));
    assert!(planned(&old, &knowing).series.is_empty());
}

#[test]
fn tags_times_and_descriptions_come_back() {
    let scene = Scene::new();
    scene.sandbox.write("file", &noise(1, 10_000));
    let described =
        scene.sandbox.options().with_tags(vec!["weekly".into()]).with_description(Some("before the move".into()));
    scene.sandbox.try_backup(&described).expect("a backup");
    let before = scene.sandbox.snapshots().remove(0).snapshot;
    damage_manifests(&scene.disk, &Damage::Delete);
    try_repair(&scene.disk, &repair_options()).expect("a repair");
    let after = scene.sandbox.snapshots().remove(0).snapshot;
    assert_eq!(
        (after.id, after.time, after.tags, after.description),
        (before.id, before.time, before.tags, before.description)
    );
    assert_eq!(after.paths, before.paths);
    assert_eq!(after.statistics.files, before.statistics.files);
}

/// The manifest of the first snapshot is still there; the containers of the second have taken the place of some that it
/// names.
#[test]
fn an_older_manifest_is_built_on_and_newer_snapshots_are_found() {
    let mut scene = Scene::new();
    let mut content = noise(1, 200_000);
    scene.sandbox.write("file", &content);
    scene.backup();
    let old = copy(&scene.disk);
    let name = manifest_of(&old, series_of(&old));
    content[1000..1004].copy_from_slice(b"edit");
    scene.sandbox.write("file", &content);
    scene.backup();
    let newest = manifest_of(&scene.disk, series_of(&scene.disk));
    scene.disk.damage(&name, Damage::Replace(old.read(&name, u64::MAX).expect("the older manifest")));
    for between in scene.disk.names().into_iter().filter(|name| matches!(name, ObjectName::Manifest(..))) {
        if between != name && between != newest && between.series() == newest.series() {
            for place in [between, copy_of(&between)] {
                scene.disk.damage(&place, Damage::Delete);
            }
        }
    }
    scene.disk.damage(&copy_of(&name), Damage::Delete);
    for ruin in ruins_of(&scene.disk, newest, &[]) {
        let disk = ruin.done_to(&scene.disk);
        assert!(disk.damage(&copy_of(&newest), Damage::Flip { offset: 100, mask: 1 }));
        let plan = planned(&disk, &repair_options());
        assert_eq!(plan.series.len(), 1, "{}", ruin.story());
        assert!(matches!(plan.series[0].basis, Basis::Older(_)), "{:?}", plan.series[0].basis);
        assert_eq!(plan.series[0].found.len(), 1, "{}", ruin.story());
        try_repair(&disk, &repair_options()).expect("a repair");
        assert_back(&scene, &disk, &scene.ids, &ruin.story());
    }
}

#[test]
fn other_series_are_not_touched() {
    let scene = Scene::with_two_snapshots();
    let other = scene.sandbox.options().with_series(Some("other".into()));
    scene.sandbox.try_backup(&other).expect("a backup");
    let series = series_of(&scene.disk);
    let damaged = manifest_of(&scene.disk, series);
    let bytes = |disk: &SimulatedDisk| {
        let others = disk.names().into_iter().filter(|name| name.series().is_some_and(|of| of != series));
        others.map(|name| (name, disk.read(&name, u64::MAX).expect("readable"))).collect::<Vec<_>>()
    };
    let before = bytes(&scene.disk);
    let old = scene.disk.read(&damaged, u64::MAX).expect("the manifest");
    for place in [damaged, copy_of(&damaged)] {
        assert!(scene.disk.damage(&place, Damage::Flip { offset: 100, mask: 1 }));
    }
    try_repair(&scene.disk, &repair_options()).expect("a repair");
    assert_eq!(bytes(&scene.disk), before);
    let aside = scene.disk.list(Listing::Aside).expect("a list");
    assert!(!aside.is_empty());
    for meta in aside {
        let mut kept = scene.disk.read(&meta.name, u64::MAX).expect("what was replaced");
        kept[100] ^= 1;
        assert_eq!(kept, old, "what was damaged is kept as it was");
    }
}

#[test]
fn a_repair_hit_at_any_write_can_be_done_again() {
    let scene = Scene::with_two_snapshots();
    let damaged = copy(&scene.disk);
    damage_manifests(&damaged, &Damage::Flip { offset: 100, mask: 4 });
    let run = |disk: &SimulatedDisk| try_repair(disk, &repair_options());
    at_every_write(&damaged, run, |found| {
        try_repair(&found.disk, &repair_options()).unwrap_or_else(|error| panic!("{error} after {}", found.story));
        let ids = scene.assert_sound(&found.disk, &found.story);
        assert!(scene.ids.iter().all(|id| ids.contains(id)), "{}", found.story);
        if found.recover {
            assert_back(&scene, &found.disk, &scene.ids, &found.story);
        }
    });
}

#[test]
fn a_lost_container_is_noted_and_who_needs_it_is_named() {
    let scene = Scene::unsettled();
    let disk = copy(&scene.disk);
    let record = containers_of(&open(&disk), series_of(&disk), ContainerKind::Data)[1].clone();
    disk.damage(&record.object_name(series_of(&disk)), Damage::Delete);
    let plan = planned(&disk, &repair_options());
    let series = &plan.series[0];
    let damaged: Vec<_> = series.damaged.iter().map(|damaged| damaged.snapshot.id).collect();
    assert_eq!(damaged, [scene.ids[1]], "only the second snapshot needs it");
    let files: Vec<_> = series.damaged[0].files.iter().map(|path| String::from_utf8_lossy(path).into_owned()).collect();
    assert!(files.iter().any(|file| file.ends_with("/changed")) && !files.iter().any(|file| file.ends_with("large")));
    let summary = try_repair(&disk, &repair_options()).expect("a repair");
    assert_eq!((summary.series_repaired, summary.snapshots_damaged), (1, 1));
    let manifest = open(&disk).manifest(series_of(&disk)).expect("readable").expect("a manifest");
    assert!(!manifest.damaged.is_empty());
    assert!(!planned(&disk, &repair_options()).has_steps(), "it is noted once");

    let dropping = repair_options().with_drop_damaged(true);
    assert_eq!(try_repair(&disk, &dropping).expect("a repair").snapshots_dropped, 1);
    let kept: Vec<_> = scene.sandbox.at(disk.clone()).snapshots().iter().map(|view| view.snapshot.id).collect();
    assert_eq!(kept, [scene.ids[0]]);
    assert!(scene.sandbox.at(disk.clone()).restored(scene.ids[0]) == scene.trees[&scene.ids[0]]);
}

#[test]
fn without_manifests_and_a_container_the_rest_comes_back_and_the_loss_is_named() {
    let scene = Scene::unsettled();
    for damage in [Damage::Delete, Damage::Truncate { bytes: 1000 }, Damage::Unreadable] {
        let disk = copy(&scene.disk);
        let record = containers_of(&open(&disk), series_of(&disk), ContainerKind::Data)[1].clone();
        let name = record.object_name(series_of(&disk));
        disk.damage(&name, damage.clone());
        damage_manifests(&disk, &Damage::Delete);
        let plan = planned(&disk, &repair_options());
        let damaged: Vec<_> = plan.series[0].damaged.iter().map(|damaged| damaged.snapshot.id).collect();
        assert_eq!(damaged, [scene.ids[1]]);
        try_repair(&disk, &repair_options()).expect("a repair");
        let sandbox = scene.sandbox.at(disk.clone());
        assert!(sandbox.restored(scene.ids[0]) == scene.trees[&scene.ids[0]], "{damage:?}");
        assert!(!sandbox.check(ReadData::None).findings.is_empty(), "the loss is not forgotten");
        let is_kept = disk.list(Listing::Aside).expect("a list").len() == 1;
        assert_eq!(is_kept, damage != Damage::Delete, "what cannot be opened is kept aside");
        let backup = sandbox.options().with_take_over(true).with_force(true);
        let new = sandbox.try_backup_within(&backup, &resources()).expect("a backup").snapshot.expect("a snapshot");
        assert!(sandbox.restored(new) == scene.source());
    }
}

#[test]
fn a_writer_at_work_is_not_disturbed() {
    let mut scene = Scene::new();
    scene.sandbox.write("file", &noise(1, 10_000));
    scene.backup();
    let repository = open(&scene.disk);
    common::writer::acquire(&repository, common::writer::distant_holder(), true).expect("the lease");
    let record = containers_of(&open(&scene.disk), series_of(&scene.disk), ContainerKind::Data)[0].clone();
    scene.disk.damage(&record.object_name(series_of(&scene.disk)), Damage::Delete);
    let careful = repair_options().with_take_over(false);
    let error = try_repair(&scene.disk, &careful).expect_err("the holder lives");
    assert!(matches!(error, EngineError::Store(StoreError::LeaseHeld { .. })), "{error}");
}

#[test]
fn names_that_say_nothing_are_told_as_beyond_repair() {
    let scene = Scene::with_two_snapshots();
    forget_parity(&scene.disk);
    damage_manifests(&scene.disk, &Damage::Delete);
    for name in scene.disk.names() {
        if matches!(name, ObjectName::Container(..)) {
            scene.disk.damage(&name, Damage::Truncate { bytes: 70 });
        }
    }
    let plan = planned(&scene.disk, &repair_options());
    assert!(plan.series[0].is_beyond_repair && plan.has_losses() && !plan.has_steps());
}

/// Records of rewritten snapshots are newer than their place in the series says.
#[test]
fn rewritten_snapshots_keep_their_places() {
    let mut scene = Scene::new();
    scene.sandbox.write("kept", &noise(1, 10_000));
    scene.sandbox.write("gone", &noise(2, 10_000));
    scene.backup();
    scene.sandbox.remove("gone");
    scene.backup();
    scene.backup();
    let done = scene.sandbox.try_rewrite("gone", &scene.sandbox.forget_options(false)).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 1);
    scene.sandbox.write("kept", &noise(3, 10_000));
    scene.backup();
    let series = series_of(&scene.disk);
    let ids = |disk: &SimulatedDisk| {
        let manifest = open(disk).manifest(series).expect("readable").expect("a manifest");
        manifest.snapshots().iter().map(|snapshot| snapshot.id).collect::<Vec<_>>()
    };
    let before = ids(&scene.disk);
    let newest = manifest_of(&scene.disk, series);
    scene.disk.damage(&newest, Damage::Truncate { bytes: 100 });
    scene.disk.damage(&copy_of(&newest), Damage::Truncate { bytes: 100 });
    try_repair(&scene.disk, &repair_options()).expect("a repair");
    assert_eq!(ids(&scene.disk), before);
    assert_eq!(scene.sandbox.check(ReadData::All).findings, []);
}

/// A part of the place is away for a while: the advice is to look after it. Whoever repairs all the same, by what is
/// there, loses nothing when the rest is back.
#[test]
fn a_place_that_denies_what_it_lists_is_to_be_looked_after_and_repairing_it_loses_nothing() {
    let scene = Scene::with_two_snapshots();
    let away = scene.sandbox.at(denying_manifests(scene.disk.clone()));
    let findings = away.check(ReadData::None).findings;
    assert!(!findings.is_empty() && findings.iter().all(|found| found.help == Help::LookAfterPlace), "{findings:?}");

    let plan = repair::plan(&away.repository(), &repair_options(), &resources()).expect("a plan");
    assert!(plan.series[0].faults[0].contains("look after it"), "{:?}", plan.series[0].faults);
    let (_, errors) = repair::execute(&away.repository(), plan, &repair_options(), &resources()).expect("a repair");
    assert!(errors.is_empty(), "{errors:?}");
    assert_back(&scene, &scene.disk, &scene.ids, "the rest is back");
}

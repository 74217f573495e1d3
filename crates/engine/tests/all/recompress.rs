//! Recompression: the same snapshots in fewer bytes, nothing done twice, what does not gain left alone.

use crate::common::log::Log;
use crate::common::ruin::containers_of;
use crate::common::scene::Scene;
use crate::common::{PASSWORD, Sandbox, heard_by, noise, resources, text};
use siltstone_engine::Notice;
use siltstone_engine::check::ReadData;
use siltstone_engine::maintain::{self, MaintainOptions, MaintainSummary, Recompression};
use siltstone_store::container::{ContainerKind, ContainerRecord};
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, NameKind, Recorder, SimulatedRemote};
use std::sync::Arc;

/// Memory in which an idle run recompresses, bytes.
const ENOUGH: u64 = 512 << 20;

/// Versions of a text and of noise: what was edited is a delta, what was written anew is whole and old.
fn history() -> Scene {
    let mut scene = Scene::new();
    scene.sandbox.write("noise", &noise(1, 30_000));
    let mut edited = text(2, 300_000);
    for version in 0..4u8 {
        let at = 70_000 * usize::from(version);
        edited[at..at + 4000].copy_from_slice(&text(10 + u64::from(version), 4000));
        scene.sandbox.write("edited", &edited);
        scene.sandbox.write("anew", &text(20 + u64::from(version), 200_000));
        scene.backup();
    }
    scene
}

fn options(scene: &Scene, recompression: Recompression) -> MaintainOptions {
    scene.sandbox.migrate_options().with_recompression(Some(recompression))
}

fn recompress(scene: &Scene, recompression: Recompression) -> MaintainSummary {
    let options = options(scene, recompression);
    maintain::maintain(&scene.sandbox.repository(), &options, &resources()).expect("recompression")
}

fn bytes(containers: &[ContainerRecord]) -> u64 {
    containers.iter().map(|record| record.object_bytes).sum()
}

#[test]
fn all_is_the_same_in_fewer_bytes_and_done_once_for_each_level() {
    let scene = history();
    let before = scene.sandbox.manifest();
    let done = recompress(&scene, Recompression::all_at(12));
    assert_eq!(done.recompressed, before.containers.len() as u64);
    let after = scene.sandbox.manifest();
    assert!(bytes(&after.containers) < bytes(&before.containers) * 31 / 32, "{done:?}");
    assert_eq!(bytes(&before.containers) - bytes(&after.containers), done.bytes_deleted - done.bytes_written);
    assert!(after.containers.iter().all(|record| record.level == 12));
    assert!(after.containers.iter().any(|record| record.has_deltas), "what was a delta is one");
    scene.assert_sound(&scene.disk, "recompression");

    for level in [12, 3] {
        assert_eq!(recompress(&scene, Recompression::all_at(level)), MaintainSummary::default(), "level {level}");
    }
    assert!(recompress(&scene, Recompression::all_at(19)).recompressed > 0);
    assert!(scene.sandbox.manifest().containers.iter().all(|record| record.level == 19));
    scene.assert_sound(&scene.disk, "the highest level");
}

#[test]
fn backups_and_removals_go_on_from_it() {
    let mut scene = history();
    recompress(&scene, Recompression::all_at(12));
    scene.sandbox.write("edited", &text(2, 300_000));
    scene.backup();
    scene.assert_sound(&scene.disk, "a backup");
    let is_due = |record: &&ContainerRecord| record.level == 0;
    let due = scene.sandbox.manifest().containers.iter().filter(is_due).count();
    assert!(due > 0 && due < scene.sandbox.manifest().containers.len());
    let done = recompress(&scene, Recompression::all_at(12));
    assert_eq!(done.recompressed, due as u64, "what is new and nothing else");

    let gone: Vec<_> = scene.ids.drain(1..3).collect();
    scene.sandbox.forget(&gone, false);
    scene.trees.retain(|id, _| !gone.contains(id));
    recompress(&scene, Recompression::all_at(19));
    let ids = scene.assert_sound(&scene.disk, "a removal");
    assert_eq!(ids, scene.ids.iter().copied().collect());
    assert_eq!(scene.sandbox.check(ReadData::All).orphans, 0);
}

#[test]
fn a_budget_takes_what_only_old_snapshots_need_first_and_the_rest_follows() {
    let scene = history();
    let last = |manifest: &Manifest| manifest.necessary(manifest.snapshots().len() - 1);
    let is_open = |manifest: &Manifest, record: &ContainerRecord| !record.numbers().is_disjoint(&last(manifest));
    let before = scene.sandbox.manifest();
    let (open, old): (Vec<_>, Vec<_>) = before.containers.iter().cloned().partition(|record| is_open(&before, record));
    assert!(!open.is_empty() && !old.is_empty());

    let done = recompress(&scene, Recompression::all_at(12).with_bytes_max(bytes(&old)));
    assert_eq!(done.recompressed, old.len() as u64);
    let after = scene.sandbox.manifest();
    assert!(open.iter().all(|record| after.containers.contains(record)), "they stay as they are");
    assert!(old.iter().all(|record| !after.containers.contains(record)));

    let rest = recompress(&scene, Recompression::all_at(12).with_bytes_max(bytes(&open)));
    assert_eq!(rest.recompressed, open.len() as u64);
    assert_eq!(recompress(&scene, Recompression::all_at(12).with_bytes_max(1)), MaintainSummary::default());
    scene.assert_sound(&scene.disk, "both");
}

#[test]
fn a_run_with_nothing_else_to_do_takes_what_only_old_snapshots_need() {
    let mut scene = history();
    let last = |manifest: &Manifest| manifest.necessary(manifest.snapshots().len() - 1);
    let before = scene.sandbox.manifest();
    let needed = last(&before);
    let (open, old): (Vec<_>, Vec<_>) =
        before.containers.iter().cloned().partition(|record| !record.numbers().is_disjoint(&needed));
    let run = |scene: &Scene, memory_bytes: u64| {
        let (options, resources) = (options(scene, Recompression::when_idle()), resources());
        let resources = resources.with_memory_bytes(memory_bytes);
        maintain::maintain(&scene.sandbox.repository(), &options, &resources).expect("maintenance")
    };
    assert_eq!(run(&scene, 200 << 20), MaintainSummary::default(), "there is no memory for it");

    assert_eq!(run(&scene, ENOUGH).recompressed, old.len() as u64);
    let after = scene.sandbox.manifest();
    assert!(open.iter().all(|record| after.containers.contains(record)), "they stay as they are");
    assert!(old.iter().all(|record| !after.containers.contains(record)));
    assert_eq!(run(&scene, ENOUGH), MaintainSummary::default());

    scene.migrate = false;
    scene.sandbox.write("anew", &text(30, 200_000));
    scene.backup();
    let busy = run(&scene, ENOUGH);
    assert!(busy.settled > 0 && busy.recompressed == 0, "{busy:?}");
    assert!(run(&scene, ENOUGH).recompressed > 0, "what the last one left");
    scene.assert_sound(&scene.disk, "idle runs");
}

#[test]
fn a_run_with_nothing_else_to_do_takes_nothing_at_a_distance() {
    let sandbox = Sandbox::on(Arc::new(SimulatedRemote::new()));
    for seed in 0..2 {
        sandbox.write("anew", &text(seed, 200_000));
        sandbox.backup();
    }
    let (repository, resources) = (sandbox.repository(), resources().with_memory_bytes(ENOUGH));
    let maintain = |recompression: Recompression| {
        let options = sandbox.migrate_options().with_recompression(Some(recompression));
        maintain::maintain(&repository, &options, &resources).expect("maintenance")
    };
    maintain(Recompression::when_idle());
    assert_eq!(maintain(Recompression::when_idle()), MaintainSummary::default());
    // The manifests that these commits left are few.
    assert_eq!(sandbox.check(ReadData::None).orphans, 0);
    assert!(maintain(Recompression::all_at(12)).recompressed > 0, "there is something to take");
}

#[test]
fn a_budget_smaller_than_a_container_takes_one_each_time() {
    let scene = history();
    let all = scene.sandbox.manifest().containers.len();
    for _ in 0..all {
        assert_eq!(recompress(&scene, Recompression::all_at(3).with_bytes_max(1)).recompressed, 1);
    }
    assert_eq!(recompress(&scene, Recompression::all_at(3).with_bytes_max(1)), MaintainSummary::default());
    assert_eq!(recompress(&scene, Recompression::all_at(4).with_bytes_max(0)), MaintainSummary::default());
    scene.assert_sound(&scene.disk, "all of them");
}

#[test]
fn what_gains_nothing_is_not_even_written_and_is_not_tried_again() {
    let mut scene = Scene::new();
    scene.sandbox.write("noise", &noise(1, 900_000));
    scene.backup();
    let before = scene.sandbox.manifest();
    let recorder = Arc::new(Recorder::new(scene.disk.clone()));
    let repository = Repository::open(recorder.clone(), PASSWORD).expect("it opens");
    maintain::maintain(&repository, &options(&scene, Recompression::all_at(12)), &resources()).expect("recompression");
    let written = recorder.calls().of_kind(NameKind::Container).bytes_written;
    assert!(written < 10_000, "the catalog at most: {written}");
    let after = scene.sandbox.manifest();
    let of_data = |manifest: &Manifest| {
        let of_data = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data);
        of_data.map(|record| record.id).collect::<Vec<_>>()
    };
    assert_eq!(of_data(&after), of_data(&before));
    assert!(after.containers.iter().all(|record| record.level == 12));
    assert_eq!(recompress(&scene, Recompression::all_at(12)), MaintainSummary::default());
    assert_eq!(scene.sandbox.check(ReadData::All).orphans, 0, "what was made for nothing is gone");
    scene.assert_sound(&scene.disk, "noise");
}

#[test]
fn the_bytes_do_not_depend_on_threads_and_memory() {
    let scene = history();
    let sizes = [1, 4].map(|threads| {
        let disk = crate::common::faults::copy(&scene.disk);
        let resources =
            resources().with_workers(threads).with_fetches(threads).with_memory_bytes((threads as u64) << 29);
        let options = options(&scene, Recompression::all_at(6));
        maintain::maintain(&scene.sandbox.at(disk.clone()).repository(), &options, &resources).expect("recompression");
        bytes(&scene.sandbox.at(disk).repository().manifests().expect("manifests")[0].containers)
    });
    assert_eq!(sizes[0], sizes[1]);
}

#[test]
fn a_container_that_cannot_be_read_is_told_and_stays() {
    let scene = history();
    let repository = scene.sandbox.repository();
    let series = repository.keys().series_id("test");
    let damaged = containers_of(&repository, series, ContainerKind::Data)[0].clone();
    let name = damaged.object_name(series);
    crate::common::faults::forget_parity(&scene.disk);
    assert!(scene.disk.damage(&name, Damage::Flip { offset: 100, mask: 4 }));
    let log = Log::default();
    let options = options(&scene, Recompression::all_at(12));
    let done = maintain::maintain(&scene.sandbox.repository(), &options, &heard_by(&log)).expect("the rest");
    assert!(done.passed_over > 0 && done.recompressed > 0, "{done:?}");
    let told = |notice: &Notice| matches!(notice, Notice::PassedOver { object, .. } if *object == name.to_string());
    assert!(log.notices().iter().any(told));
    let kept = scene.sandbox.manifest().containers.iter().find(|record| record.id == damaged.id).cloned();
    assert_eq!(kept.map(|record| record.level), Some(0), "it is tried again once it was mended");
    assert!(scene.disk.damage(&name, Damage::Flip { offset: 100, mask: 4 }));
    scene.assert_sound(&scene.disk, "mending");
}

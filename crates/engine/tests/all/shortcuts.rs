//! Shortcuts: where it costs little, every second snapshot is one that no other hangs on.

use crate::common::faults::copy;
use crate::common::log::Log;
use crate::common::repair::{repair_options, series_of, try_repair};
use crate::common::ruin::containers_of;
use crate::common::scene::Scene;
use crate::common::{PASSWORD, heard_by, noise, resources};
use roaring::RoaringTreemap;
use siltstone_engine::Notice;
use siltstone_engine::check::ReadData;
use siltstone_engine::maintain::{self, MaintainOptions, MaintainSummary, Recompression};
use siltstone_store::container::ContainerKind;
use siltstone_store::manifest::Manifest;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Damage, ObjectName};
use std::collections::BTreeMap;
use std::sync::Arc;

const FILES: u64 = 25;
/// Less than the shortest chunk: each file is one chunk, wherever the key of the repository would cut.
const FILE_BYTES: usize = 8000;

/// Versions of files in which the same places change each time, so that two steps take no more than one.
pub(super) fn chain_of_edits(versions: usize) -> Scene {
    let mut scene = Scene::new();
    (0..versions).for_each(|version| next(&mut scene, version));
    scene
}

fn next(scene: &mut Scene, version: usize) {
    for file in 0..FILES {
        let mut bytes = noise(file, FILE_BYTES);
        bytes[4000..4004].copy_from_slice(&noise(1000 + version as u64, 4));
        scene.sandbox.write(&format!("edited/{file}"), &bytes);
    }
    scene.backup();
}

fn options(scene: &Scene) -> MaintainOptions {
    scene.sandbox.migrate_options().with_recompression(Some(Recompression::when_idle()))
}

fn maintain(scene: &Scene) -> MaintainSummary {
    maintain::maintain(&scene.sandbox.repository(), &options(scene), &resources()).expect("maintenance")
}

/// Positions of snapshots with chunks that the next one has no more and that another needs as bases.
fn hung_on(manifest: &Manifest) -> Vec<usize> {
    let count = manifest.snapshots().len();
    let data = |numbers: RoaringTreemap| numbers.into_iter().filter(|number| number >> 63 == 0).collect();
    let own: Vec<RoaringTreemap> = (0..count).map(|at| data(manifest.direct(at))).collect();
    let is_base = |at: usize| {
        let last = own.get(at + 1).map_or_else(|| own[at].clone(), |next| &own[at] - next);
        let hung_on = |other: usize| (data(manifest.necessary(other)) - &own[other]) & &last;
        (0..count).any(|other| !hung_on(other).is_empty())
    };
    (0..count).filter(|at| is_base(*at)).collect()
}

/// Positions of the snapshots past which there is a shortcut.
fn passed(manifest: &Manifest) -> Vec<usize> {
    let taken = |at: &usize| manifest.shortcuts.get(&manifest.snapshots()[*at].id).is_some_and(Option::is_some);
    (0..manifest.snapshots().len()).filter(taken).collect()
}

#[test]
fn every_second_snapshot_is_passed_over_once_for_all() {
    let mut scene = chain_of_edits(7);
    let before = scene.sandbox.manifest();
    assert_eq!((hung_on(&before), passed(&before)), ((1..7).collect(), vec![]));
    let bytes = scene.sandbox.bytes();
    let done = maintain(&scene);
    assert_eq!((done.shortcuts_made, done.recompressed), (3, 0), "{done:?}");
    let manifest = scene.sandbox.manifest();
    assert_eq!((hung_on(&manifest), passed(&manifest)), (vec![2, 4, 6], vec![1, 3, 5]));
    assert!(scene.sandbox.bytes() < bytes + bytes / 20, "{} after {bytes}", scene.sandbox.bytes());
    scene.assert_sound(&scene.disk, "shortcuts");
    assert_eq!(maintain(&scene), MaintainSummary::default());

    next(&mut scene, 7);
    assert_eq!(maintain(&scene), MaintainSummary::default(), "the snapshot before it was passed over");
    next(&mut scene, 8);
    assert_eq!(maintain(&scene).shortcuts_made, 1);
    let manifest = scene.sandbox.manifest();
    assert_eq!((hung_on(&manifest), passed(&manifest)), (vec![2, 4, 6, 8], vec![1, 3, 5, 7]));
    scene.assert_sound(&scene.disk, "shortcuts");
}

#[test]
fn what_was_passed_over_leaves_no_ghosts() {
    let mut scene = chain_of_edits(5);
    assert_eq!(maintain(&scene).shortcuts_made, 2);
    let gone = scene.ids.remove(1);
    scene.trees.remove(&gone);
    scene.sandbox.forget(&[gone], false);
    let manifest = scene.sandbox.manifest();
    assert_eq!(manifest.ghosts().len(), 0);
    assert_eq!(passed(&manifest), [2]);
    scene.assert_sound(&scene.disk, "forgetting");
}

#[test]
fn where_other_places_change_each_time_there_are_no_shortcuts() {
    let mut scene = Scene::new();
    let mut files: Vec<Vec<u8>> = (0..FILES).map(|file| noise(file, FILE_BYTES)).collect();
    for version in 0..5usize {
        for (file, bytes) in files.iter_mut().enumerate() {
            // So much that two steps take clearly more than one.
            bytes[1500 * version..][..150].copy_from_slice(&noise((1000 * (version + 1) + file) as u64, 150));
            scene.sandbox.write(&format!("edited/{file}"), bytes);
        }
        scene.backup();
    }
    assert_eq!(maintain(&scene), MaintainSummary::default());
    let manifest = scene.sandbox.manifest();
    let weighed: Vec<_> = scene.ids[1..4].iter().map(|id| manifest.shortcuts.get(id).copied()).collect();
    assert_eq!(weighed, [Some(None); 3]);
    scene.assert_sound(&scene.disk, "weighing");
    assert_eq!(maintain(&scene), MaintainSummary::default());
    assert_eq!(scene.sandbox.manifest().sequence, manifest.sequence, "nothing is weighed twice");
}

#[test]
fn an_exact_layout_and_one_who_asks_for_none_have_no_shortcuts() {
    let scene = chain_of_edits(3);
    let none = options(&scene).with_recompression(None);
    for options in [options(&scene).with_threshold(0.0), none] {
        let done = maintain::maintain(&scene.sandbox.repository(), &options, &resources()).expect("maintenance");
        assert_eq!(done.shortcuts_made, 0, "{done:?}");
    }
}

#[test]
fn what_cannot_be_read_is_told_once_and_nothing_is_lost() {
    let scene = chain_of_edits(5);
    let repository = scene.sandbox.repository();
    let series = repository.keys().series_id("test");
    let mut met = 0;
    for record in containers_of(&repository, series, ContainerKind::Data) {
        let (disk, name) = (copy(&scene.disk), record.object_name(series));
        let flip = Damage::Flip { offset: 200, mask: 4 };
        disk.damage(&name, flip.clone());
        let maintain = |log: &Log| {
            let repository = Repository::open(Arc::new(disk.clone()), PASSWORD).expect("a repository");
            maintain::maintain(&repository, &options(&scene), &heard_by(log)).expect("the rest is done")
        };
        let (first, second) = (Log::default(), Log::default());
        maintain(&first);
        assert_eq!(first.problems(), [""; 0]);
        let is_told = |log: &Log| log.notices().iter().any(|notice| matches!(notice, Notice::PassedOver { .. }));
        met += u32::from(is_told(&first));
        maintain(&second);
        assert!(!is_told(&second), "{:?}", second.notices());
        disk.damage(&name, flip);
        scene.assert_sound(&disk, &format!("damage of {name}"));
        assert_eq!(scene.sandbox.at(disk.clone()).check(ReadData::None).orphans, 0);
    }
    assert!(met > 1, "{met}");
}

#[test]
fn a_repair_knows_what_was_passed_over() {
    let mut scene = chain_of_edits(5);
    assert_eq!(maintain(&scene).shortcuts_made, 2);
    next(&mut scene, 5);
    let (series, seen) = (series_of(&scene.disk), scene.sandbox.manifest().sequence);
    let newest = ObjectName::Manifest(series, seen);
    for name in [newest, newest.original().expect("a manifest").copy()] {
        assert!(scene.disk.damage(&name, Damage::Truncate { bytes: 100 }), "{name}");
    }
    let options = repair_options().with_seen(BTreeMap::from([(series, seen)]));
    try_repair(&scene.disk, &options).expect("a repair");
    assert!(scene.sandbox.manifest().sequence > seen);
    assert_eq!(passed(&scene.sandbox.manifest()), [1, 3]);
    scene.assert_sound(&scene.disk, "repair");
}

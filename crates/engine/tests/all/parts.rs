//! Manifests whose lists are cut into parts: they are written, read, checked, healed and forgotten as others are.
//! `crash.rs` has them hit at every write.

use crate::common::scene::Scene;
use crate::common::{self, Sandbox, noise, resources};
use siltstone_engine::check::ReadData;
use siltstone_engine::forget::{ForgetOptions, SnapshotSelection};
use siltstone_engine::repair::{self, RepairOptions};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_engine::{Session, check, stats};
use siltstone_store::keys::Argon2Cost;
use siltstone_store::manifest::{Manifest, PartTable};
use siltstone_store::series::newest_manifest;
use siltstone_store::storage::{Damage, Listing, ObjectName, SimulatedDisk, Storage};
use siltstone_store::{Epoch, PartId, SeriesId, SnapshotId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

fn series(scene: &Scene) -> SeriesId {
    scene.sandbox.repository().keys().series_id("test")
}

fn parts(disk: &SimulatedDisk, series: SeriesId) -> Vec<ObjectName> {
    let listed = disk.list(Listing::ManifestParts(series)).expect("a list");
    listed.into_iter().map(|meta| meta.name).collect()
}

fn copy_of(name: &ObjectName) -> ObjectName {
    name.original().expect("it is kept twice").copy()
}

fn findings(scene: &Scene, disk: &SimulatedDisk) -> Vec<check::Finding> {
    scene.sandbox.at(disk.clone()).check(ReadData::None).findings
}

#[test]
fn a_small_repository_has_no_parts() {
    let scene = Scene::with_two_snapshots();
    assert_eq!(scene.parts(), 0);
}

#[test]
fn parts_are_kept_twice_and_no_more_of_them_than_two_manifests_need() {
    let mut scene = Scene::in_parts(true);
    let twice = |scene: &Scene| {
        let names = parts(&scene.disk, series(scene));
        assert!(names.len() > 3, "{names:?}");
        for name in &names {
            let both = [*name, copy_of(name)].map(|place| scene.disk.read(&place, u64::MAX).expect("a part"));
            assert_eq!(both[0], both[1]);
        }
        names
    };
    twice(&scene);
    scene.backup();
    let names = twice(&scene);
    assert_eq!(scene.assert_sound(&scene.disk, "three backups").len(), 3);
    assert_eq!(scene.sandbox.check(ReadData::None).orphans, 0, "{names:?}");
}

#[test]
fn a_part_damaged_in_one_place_is_read_from_the_other_and_mended() {
    let scene = Scene::in_parts(true);
    let all: BTreeSet<SnapshotId> = scene.ids.iter().copied().collect();
    for name in parts(&scene.disk, series(&scene)) {
        for place in [name, copy_of(&name)] {
            for damage in [Damage::Delete, Damage::Truncate { bytes: 70 }, Damage::Flip { offset: 80, mask: 1 }] {
                let story = format!("{damage:?} of {place}");
                let disk = common::faults::copy(&scene.disk);
                assert!(disk.damage(&place, damage), "{story}");
                let found = findings(&scene, &disk);
                assert!(
                    found.iter().any(|finding| finding.what.contains(&place.to_string())),
                    "{found:?} after {story}"
                );
                let damaged = scene.sandbox.at(disk.clone());
                let ids: BTreeSet<_> = damaged.snapshots().iter().map(|view| view.snapshot.id).collect();
                assert_eq!(ids, all, "after {story}");
                let repository = damaged.repository();
                let options = RepairOptions::default();
                let plan = repair::plan(&repository, &options, &resources()).expect("a plan");
                let (done, errors) = repair::execute(&repository, plan, &options, &resources()).expect("a repair");
                assert!(errors.is_empty() && done.objects_mended == 1, "{errors:?} {done:?} after {story}");
                assert_eq!(scene.assert_sound(&disk, &story), all);
            }
        }
    }
}

/// A backup does not rely on the copy for longer than it must: what it read from there it writes anew.
#[test]
fn a_part_read_from_its_copy_is_written_anew_by_the_next_backup() {
    let scene = Scene::in_parts(true);
    for name in parts(&scene.disk, series(&scene)) {
        let disk = common::faults::copy(&scene.disk);
        disk.damage(&name, Damage::Flip { offset: 80, mask: 1 });
        for _ in 0..2 {
            scene.sandbox.at(disk.clone()).backup();
        }
        assert_eq!(findings(&scene, &disk), [], "after a flip in {name}");
    }
}

#[test]
fn a_part_lost_in_both_places_is_told_and_the_series_is_rebuilt() {
    let scene = Scene::in_parts(true);
    let all: BTreeSet<SnapshotId> = scene.ids.iter().copied().collect();
    let manifest = scene.sandbox.repository().manifest(series(&scene)).expect("it reads").expect("a manifest");
    assert_eq!(manifest.snapshots().len(), 2);
    let flip = Damage::Flip { offset: 80, mask: 1 };
    let names = parts(&scene.disk, series(&scene));
    for (name, damage) in names.iter().flat_map(|name| [(*name, Damage::Delete), (*name, flip.clone())]) {
        let disk = common::faults::copy(&scene.disk);
        for place in [name, copy_of(&name)] {
            disk.damage(&place, damage.clone());
        }
        let found = findings(&scene, &disk);
        assert!(found.iter().any(|finding| finding.what.contains(&name.to_string())), "{found:?}");
        let repository = scene.sandbox.at(disk.clone()).repository();
        let options = RepairOptions::default();
        let plan = repair::plan(&repository, &options, &resources()).expect("a plan");
        let (_, errors) = repair::execute(&repository, plan, &options, &resources()).expect("a repair");
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(scene.assert_sound(&disk, &format!("the loss of {name}")), all);
        scene.sandbox.at(disk.clone()).backup();
        assert_eq!(findings(&scene, &disk), []);
    }
}

/// Snapshots stand in the manifest itself: they are listed although a part is lost.
#[test]
fn snapshots_are_listed_although_a_part_is_lost() {
    let scene = Scene::in_parts(true);
    let disk = common::faults::copy(&scene.disk);
    for name in parts(&disk, series(&scene)) {
        for place in [name, copy_of(&name)] {
            assert!(disk.damage(&place, Damage::Delete));
        }
    }
    let damaged = scene.sandbox.at(disk);
    assert_eq!(damaged.snapshots().len(), scene.ids.len());
    assert!(damaged.repository().manifest(series(&scene)).is_err());
}

/// The bytes of those of these parts that a table names, each once: several records may name one.
fn bytes_of(table: &PartTable, ids: &BTreeSet<PartId>) -> u64 {
    let named = table.records().filter(|record| ids.contains(&record.id));
    let named: BTreeMap<PartId, u64> = named.map(|record| (record.id, record.object_bytes())).collect();
    named.values().sum()
}

/// A commit names parts again that have not changed, so they stay under the master key that they were sealed under.
#[test]
fn parts_under_an_older_master_key_are_counted() {
    let scene = Scene::in_parts(true);
    let stored = |sandbox: &Sandbox| {
        let found = newest_manifest(&sandbox.repository(), series(&scene)).expect("it reads");
        found.expect("a manifest")
    };
    let containers = |manifest: &Manifest| -> u64 {
        let older = manifest.containers.iter().filter(|record| record.epoch == Epoch::FIRST);
        older.map(|record| record.object_bytes).sum()
    };
    let older = |sandbox: &Sandbox| {
        let (stats, damage) = stats::stats(&sandbox.repository(), &|_| true).expect("figures");
        assert!(damage.is_empty());
        assert_eq!(stats.older_key_bytes, sandbox.repository().older_epoch_bytes().expect("bytes"));
        stats.older_key_bytes
    };
    assert_eq!(older(&scene.sandbox), 0);
    scene.sandbox.repository().rotate(common::PASSWORD, &common::label(), Argon2Cost::TEST).expect("a new master key");
    let before = stored(&scene.sandbox);
    let ids = before.parts.table.ids();
    let parts_bytes = 2 * bytes_of(&before.parts.table, &ids);
    assert!(parts_bytes > 0);
    assert_eq!(older(&scene.sandbox), containers(&before.manifest) + parts_bytes);

    scene.sandbox.write("one more", &noise(77, 20_000));
    scene.sandbox.backup();
    let now = stored(&scene.sandbox);
    let kept = bytes_of(&now.parts.table, &ids);
    assert!(kept > 0 && 2 * kept < parts_bytes, "{kept} bytes of parts are named again, of {parts_bytes} with copies");
    assert_eq!(older(&scene.sandbox), containers(&now.manifest) + 2 * kept);
}

#[test]
fn a_forecast_is_true_to_the_byte() {
    let sandbox = Sandbox::on(Arc::new(SimulatedDisk::new()));
    sandbox.cut_into_parts();
    let back_up = |seed: u64| {
        sandbox.write("file", &noise(seed, 100_000));
        sandbox.write(&format!("other{seed}"), &noise(10 + seed, 50_000));
        sandbox.backup()
    };
    let ids: Vec<SnapshotId> = (0..6).map(back_up).collect();
    let session = Session::new(sandbox.repository(), resources());
    for (forgotten, threshold) in [(1, 0.2), (3, 0.0), (0, 0.2)] {
        let is_forgotten = |view: &SnapshotView| view.snapshot.id == ids[forgotten];
        let keys: Vec<_> =
            sandbox.snapshots().iter().filter(|view| is_forgotten(view)).map(SnapshotView::key).collect();
        let options = ForgetOptions::default().with_rewrite_threshold(threshold);
        let plan = session.plan_forget(SnapshotSelection::Given(keys), &options).expect("a plan");
        let forecast = session.forecast(&plan).expect("a forecast");
        assert_eq!(session.execute(&plan).expect("forgetting"), forecast);
        let listed = session.repository().storage().list(Listing::All).expect("a list");
        assert_eq!(listed.iter().map(|meta| meta.bytes).sum::<u64>(), forecast.bytes_after);
        assert!(listed.iter().any(|meta| matches!(meta.name, ObjectName::ManifestPart(..))));
    }
}

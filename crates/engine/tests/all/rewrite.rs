//! Paths taken out of history: they are gone from every snapshot, all else is as it was, and the bytes that come back
//! are those that were stated.

use crate::common::scene::Scene;
use crate::common::tree::{Tree, differences};
use crate::common::{Sandbox, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::check::ReadData;
use siltstone_engine::forget::{ForgetOptions, ForgetSummary};
use siltstone_engine::label::{LabelOptions, label};
use siltstone_engine::maintain::maintain;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::container::{ContainerKind, ContainerReader};
use siltstone_store::manifest::Snapshot;
use siltstone_store::storage::{Damage, ObjectName};
use siltstone_store::{SnapshotId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Five snapshots of files of which some are to go: `private` is in all but the first, `private/key` changes.
fn history() -> Scene {
    history_in(Scene::new())
}

fn history_in(mut scene: Scene) -> Scene {
    let mut edited = noise(5, 60_000);
    scene.sandbox.write("kept/large", &noise(1, 60_000));
    scene.sandbox.symlink("kept/link", "large");
    for version in 0..5 {
        edited[30_000..33_000].copy_from_slice(&noise(10 + version, 3000));
        scene.sandbox.write("edited", &edited);
        if version > 0 {
            scene.sandbox.write("private/key", &noise(20 + version, 40_000));
            scene.sandbox.write("private/deep/image", &noise(30, 50_000));
        }
        scene.backup();
    }
    scene
}

/// Returns a tree without what lies at or below a name.
fn without(tree: &Tree, name: &str) -> Tree {
    let below = format!("{name}/");
    let stays = |found: &[u8]| found != name.as_bytes() && !found.starts_with(below.as_bytes());
    tree.iter().filter(|(found, _)| stays(found)).map(|(found, node)| (found.clone(), node.clone())).collect()
}

fn options(sandbox: &Sandbox, threshold: f64) -> ForgetOptions {
    sandbox.forget_options(false).with_allow_remove_all(false).with_rewrite_threshold(threshold)
}

/// Runs it dry and in earnest, and holds what they say against each other and against what lies there.
fn rewritten_as_stated(sandbox: &Sandbox, pattern: &str, options: &ForgetOptions) -> ForgetSummary {
    let dry = options.clone().with_dry_run(true);
    let [stated, done] = [&dry, options].map(|options| sandbox.try_rewrite(pattern, options).expect("a rewrite"));
    assert_eq!(stated, done);
    assert_eq!(sandbox.bytes(), done.bytes_after);
    done
}

fn all(sandbox: &Sandbox) -> Vec<SnapshotView> {
    let mut views = sandbox.snapshots();
    views.extend(sandbox.deleted());
    views
}

/// Fields of a snapshot that a rewrite must leave alone.
fn said(snapshot: &Snapshot) -> impl PartialEq + std::fmt::Debug {
    let Snapshot { time, made, host, user, paths, tags, description, partial, deleted, .. } = snapshot.clone();
    ((time, made, host, user, paths), (tags, description, partial, deleted), snapshot.id.0[..16].to_vec())
}

/// The trees that the snapshots of a scene must have after a rewrite, by their identities now.
fn rename(scene: &mut Scene, before: &[SnapshotView], name: &str) {
    let now: BTreeMap<Vec<u8>, SnapshotId> =
        all(&scene.sandbox).iter().map(|view| (view.snapshot.id.0[..16].to_vec(), view.snapshot.id)).collect();
    let id_now = |id: &SnapshotId| now[&id.0[..16]];
    let trees = before.iter().map(|view| view.snapshot.id);
    scene.trees = trees.map(|id| (id_now(&id), without(&scene.trees[&id], name))).collect();
    scene.ids = scene.ids.iter().map(id_now).collect();
}

#[test]
fn a_path_is_gone_from_every_snapshot_and_all_else_is_as_it_was() {
    for threshold in [0.0, 0.2, 1.0] {
        let mut scene = history();
        let keys = [scene.sandbox.view(scene.ids[2]).key()];
        let words = LabelOptions::default().with_set_tags(Some(vec!["a".into()])).with_description(Some("old".into()));
        label(&scene.sandbox.repository(), &keys, &words, &scene.sandbox.resources()).expect("a label");
        let before = scene.sandbox.snapshots();
        let plan = scene.sandbox.plan_rewrite("private", &options(&scene.sandbox, threshold)).expect("a plan");
        let affected: Vec<_> = plan.affected.iter().map(|affected| affected.snapshot.snapshot.id).collect();
        assert_eq!(affected, scene.ids[1..]);
        let excluded = plan.affected[0].excluded;
        assert_eq!((excluded.files, excluded.directories, excluded.logical_bytes), (2, 2, 90_000));
        let done = rewritten_as_stated(&scene.sandbox, "private", &options(&scene.sandbox, threshold));
        assert_eq!((done.snapshots_rewritten, done.snapshots_removed, done.snapshots_failed), (4, 0, 0));
        let after = scene.sandbox.snapshots();
        assert_eq!(before.len(), after.len());
        for (before, after) in before.iter().zip(&after) {
            assert_eq!(said(&before.snapshot), said(&after.snapshot));
            assert_eq!(before.position, after.position);
        }
        assert_eq!(before[0].snapshot, after[0].snapshot, "what has nothing of it stays as it is");
        let [old, new] = [&before[4], &after[4]].map(|view| view.snapshot.statistics);
        assert_eq!((old.files - new.files, old.directories - new.directories), (2, 2));
        assert_eq!(old.logical_bytes - new.logical_bytes, 90_000);
        rename(&mut scene, &before, "private");
        assert_eq!(scene.assert_sound(&scene.disk.clone(), "a rewrite").len(), 5);
        assert!(scene.sandbox.manifest().faults().is_empty());
        if threshold < 1.0 {
            assert!(done.bytes_returned() > 150_000, "{done:?}");
        }
        let again = scene.sandbox.plan_rewrite("private", &options(&scene.sandbox, threshold)).expect("a plan");
        assert!(again.affected.is_empty());
        // The next backup goes on from there, and maintenance too.
        scene.sandbox.remove("private");
        scene.backup();
        maintain(&scene.sandbox.repository(), &scene.sandbox.migrate_options(), &resources()).expect("maintenance");
        assert_eq!(scene.assert_sound(&scene.disk.clone(), "what follows a rewrite").len(), 6);
    }
}

#[test]
fn with_threshold_0_nothing_of_it_is_left_in_any_container() {
    let scene = history();
    let before = scene.sandbox.manifest().live();
    scene.sandbox.try_rewrite("private", &options(&scene.sandbox, 0.0)).expect("a rewrite");
    let after = scene.sandbox.manifest();
    let gone = before - after.live();
    assert!(!gone.is_empty());
    let repository = scene.sandbox.repository();
    for record in &after.containers {
        let reader = ContainerReader::open(repository.storage(), repository.keys(), after.series, record);
        let reader = reader.expect("an index");
        let held = reader.index().places().iter().filter(|place| gone.contains(place.chunk.number.0));
        assert_eq!(held.count(), 0, "{}", record.id);
    }
}

#[test]
fn no_content_is_read_for_it() {
    let scene = Scene::unsettled();
    let has_data = |name: &&ObjectName| matches!(name, ObjectName::Container(ContainerKind::Data, ..));
    for name in scene.disk.names().iter().filter(has_data) {
        assert!(scene.disk.damage(name, Damage::Truncate { bytes: 0 }));
    }
    let done = scene.sandbox.try_rewrite("kept", &options(&scene.sandbox, 1.0)).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 2);
}

/// Old versions are deltas against newer ones. What they hang on stays, though it is content of nothing any more.
#[test]
fn what_hangs_on_excluded_content_comes_back_whole() {
    let mut scene = Scene::new();
    scene.sandbox.write("kept", &noise(1, 10_000));
    let mut edited = noise(5, 120_000);
    for version in 0..4 {
        edited[30_000..33_000].copy_from_slice(&noise(10 + version, 3000));
        if version == 3 {
            scene.sandbox.remove("first");
        }
        scene.sandbox.write(if version == 3 { "second" } else { "first" }, &edited);
        scene.backup();
    }
    assert!(scene.sandbox.manifest().containers.iter().any(|record| record.has_deltas));
    let before = scene.sandbox.snapshots();
    rewritten_as_stated(&scene.sandbox, "second", &options(&scene.sandbox, 0.2));
    assert!(!scene.sandbox.manifest().ghosts().is_empty(), "old versions hang on what was content");
    rename(&mut scene, &before, "second");
    assert_eq!(scene.assert_sound(&scene.disk.clone(), "a rewrite").len(), 4);
    maintain(&scene.sandbox.repository(), &scene.sandbox.migrate_options(), &resources()).expect("maintenance");
    assert_eq!(scene.assert_sound(&scene.disk.clone(), "maintenance").len(), 4);
}

#[test]
fn deleted_snapshots_lose_it_too_and_come_back_without_it() {
    let mut scene = history();
    let marked = [scene.ids[2]];
    scene.sandbox.mark(&marked, 1_000_000, 10_000_000_000);
    let before = all(&scene.sandbox);
    let done = rewritten_as_stated(&scene.sandbox, "private", &options(&scene.sandbox, 0.2));
    assert_eq!((done.snapshots_rewritten, done.held.snapshots), (4, 1));
    let deleted = scene.sandbox.deleted();
    assert_eq!(deleted[0].snapshot.deleted.expect("a mark").at, Time { seconds: 1_000_000, nanoseconds: 0 });
    rename(&mut scene, &before, "private");
    scene.sandbox.try_undelete(&[deleted[0].snapshot.id]).expect("undeleting");
    assert_eq!(scene.assert_sound(&scene.disk.clone(), "undeleting").len(), 5);
}

#[test]
fn a_pattern_that_takes_all_files_is_refused() {
    let scene = history();
    let names = scene.disk.names();
    let refused = scene.sandbox.plan_rewrite("*", &options(&scene.sandbox, 0.2));
    assert!(matches!(refused, Err(EngineError::ExcludesAll { .. })), "{refused:?}");
    assert_eq!(scene.disk.names(), names);
    let allowed = options(&scene.sandbox, 0.2).with_allow_remove_all(true);
    let done = scene.sandbox.try_rewrite("*", &allowed).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 5);
    assert_eq!(scene.sandbox.check(ReadData::All).findings, []);
}

/// A folder that is excluded goes with all it holds, whatever a later pattern takes back.
#[test]
fn what_lies_below_an_excluded_folder_goes_with_it() {
    let mut scene = history();
    let before = scene.sandbox.snapshots();
    let done = scene.sandbox.try_rewrite("private/", &options(&scene.sandbox, 0.2)).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 4);
    rename(&mut scene, &before, "private");
    assert_eq!(scene.assert_sound(&scene.disk.clone(), "a rewrite").len(), 5);
}

#[test]
fn a_snapshot_whose_catalog_is_damaged_stays_and_the_others_lose_it() {
    // Nothing is settled, so no node of an older snapshot is a delta against what is lost.
    let scene = history_in(Scene { migrate: false, ..Scene::new() });
    let manifest = scene.sandbox.manifest();
    // Nodes that only the last snapshot has.
    let own = manifest.direct(4) - manifest.direct(3);
    let metadata = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Metadata);
    let hit: Vec<_> = metadata.filter(|record| !record.numbers().is_disjoint(&own)).collect();
    let last = hit.last().expect("a container");
    let name = last.object_name(manifest.series);
    assert!(scene.disk.damage(&name, Damage::Delete));
    scene.disk.damage(&ObjectName::Parity(manifest.series, last.id), Damage::Delete);
    let plan = scene.sandbox.plan_rewrite("private", &options(&scene.sandbox, 1.0)).expect("a plan");
    let damaged: BTreeSet<_> = plan.damaged.iter().map(|(view, _)| view.snapshot.id).collect();
    assert_eq!(damaged, BTreeSet::from([scene.ids[4]]));
    assert!(plan.damaged[0].1.to_string().contains(&name.to_string()), "{}", plan.damaged[0].1);
    let done = plan.execute(&scene.sandbox.repository(), &resources()).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 3);
    let ids: Vec<_> = scene.sandbox.snapshots().iter().map(|view| view.snapshot.id).collect();
    assert!(ids.contains(&scene.ids[4]) && ids.contains(&scene.ids[0]));
    let before: Vec<_> = [1, 2, 3].map(|at| scene.ids[at]).to_vec();
    for id in ids.iter().filter(|id| before.iter().any(|old| old.0[..16] == id.0[..16])) {
        let old = before.iter().find(|old| old.0[..16] == id.0[..16]).expect("its old identity");
        let found = scene.sandbox.restored(*id);
        assert_eq!(differences(&found, &without(&scene.trees[old], "private")), Vec::<String>::new());
    }
}

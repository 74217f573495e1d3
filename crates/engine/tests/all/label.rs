//! Tags and descriptions that are changed stay changed, and nothing else does.

use crate::common::scene::Scene;
use siltstone_engine::EngineError;
use siltstone_engine::check::ReadData;
use siltstone_engine::label::{LabelOptions, label};
use siltstone_store::SnapshotId;

fn changed(scene: &Scene, ids: &[SnapshotId], options: &LabelOptions) -> Result<u64, EngineError> {
    let keys: Vec<_> = ids.iter().map(|id| scene.sandbox.view(*id).key()).collect();
    label(&scene.sandbox.repository(), &keys, options, &scene.sandbox.resources())
}

fn tags(scene: &Scene, id: SnapshotId) -> Vec<String> {
    scene.sandbox.view(id).snapshot.tags
}

#[test]
fn tags_are_set_added_and_removed() {
    let scene = Scene::with_two_snapshots();
    let [first, second] = [scene.ids[0], scene.ids[1]];
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
    let set = LabelOptions::default().with_set_tags(Some(words(&["a", "b"])));
    assert_eq!(changed(&scene, &[first, second], &set).expect("changed"), 2);
    assert_eq!(changed(&scene, &[first, second], &set).expect("as it was"), 0);
    let edit = LabelOptions::default().with_add_tags(words(&["c", "a"])).with_remove_tags(words(&["b"]));
    assert_eq!(changed(&scene, &[second], &edit).expect("changed"), 1);
    assert_eq!((tags(&scene, first), tags(&scene, second)), (words(&["a", "b"]), words(&["a", "c"])));
    let none = LabelOptions::default().with_set_tags(Some(Vec::new()));
    assert_eq!(changed(&scene, &[first, second], &none).expect("changed"), 2);
    assert!(tags(&scene, first).is_empty() && tags(&scene, second).is_empty());
}

#[test]
fn what_is_said_stays_said_and_the_snapshots_are_as_they_were() {
    let mut scene = Scene::with_two_snapshots();
    let first = scene.ids[0];
    let describe = LabelOptions::default().with_description(Some("before the move".into()));
    assert_eq!(changed(&scene, &[first], &describe).expect("changed"), 1);
    scene.sandbox.write("new", b"new");
    scene.backup();
    assert_eq!(scene.sandbox.view(first).snapshot.description.as_deref(), Some("before the move"));
    let disk = scene.disk.clone();
    assert_eq!(scene.assert_sound(&disk, "described").len(), 3);
    let forget = LabelOptions::default().with_description(Some(String::new()));
    assert_eq!(changed(&scene, &[first], &forget).expect("changed"), 1);
    assert_eq!(scene.sandbox.view(first).snapshot.description, None);
    assert_eq!(scene.sandbox.check(ReadData::All).findings, []);
}

#[test]
fn if_one_is_gone_none_is_changed() {
    let scene = Scene::with_two_snapshots();
    let [first, second] = [scene.ids[0], scene.ids[1]];
    let keys = [first, second].map(|id| scene.sandbox.view(id).key());
    scene.sandbox.forget(&[second], false);
    let set = LabelOptions::default().with_set_tags(Some(vec!["a".into()]));
    let refused = label(&scene.sandbox.repository(), &keys, &set, &scene.sandbox.resources());
    assert!(matches!(refused, Err(EngineError::NoSnapshot { .. })), "{refused:?}");
    assert!(tags(&scene, first).is_empty());
}

//! A place at a distance whose answers are lost or late, or that is busy, at each request of a backup with settling, of
//! maintenance and of forgetting: no snapshot is lost, and what the run says of itself is true.

use crate::common::faults::copy;
use crate::common::scene::Scene;
use crate::common::{PASSWORD, resources};
use siltstone_engine::{EngineError, maintain};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{SimulatedRemote, Trouble};
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

fn troubles(nth: u64) -> [Trouble; 4] {
    [
        Trouble::AnswerLost { nth },
        Trouble::Late { nth, by: 3 },
        Trouble::Late { nth, by: u64::MAX >> 1 },
        Trouble::Busy { nth, count: 2 },
    ]
}

/// Tells whether the error says that nothing was done because another writer was faster.
fn says_overtaken(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(StoreError::Fenced { .. } | StoreError::LeaseHeld { .. }))
}

/// Runs `deed` with trouble at each of its requests, and shows what is found after all that was late has come.
fn at_every_request<T: Debug>(
    scene: &Scene,
    deed: impl Fn(&SimulatedRemote) -> T,
    examine: impl Fn(&SimulatedRemote, &BTreeSet<SnapshotId>, &T, &str),
) {
    let before = SimulatedRemote::holding(&copy(&scene.disk));
    let unhindered = before.copy();
    deed(&unhindered);
    let requests = unhindered.requests();
    assert!(requests.len() > 10, "{requests:?}");
    for (nth, request) in (0..).zip(&requests) {
        for trouble in troubles(nth) {
            let remote = before.copy();
            remote.set_trouble(trouble);
            let result = deed(&remote);
            remote.set_trouble(Trouble::None);
            remote.land();
            let story = format!("{trouble:?} at \"{request}\"; the run said {result:?}");
            let found = scene.assert_sound(&remote.to_disk(), &story);
            examine(&remote, &found, &result, &story);
        }
    }
}

fn try_backup(scene: &Scene, remote: &SimulatedRemote) -> Result<Option<SnapshotId>, EngineError> {
    let options = scene.sandbox.options().with_force(true).with_take_over(true).with_sample_bytes(Some(0));
    scene.sandbox.at(remote.clone()).try_backup(&options).map(|summary| summary.snapshot)
}

fn assert_goes_on(scene: &Scene, remote: &SimulatedRemote, story: &str) {
    let id = try_backup(scene, remote).unwrap_or_else(|error| panic!("the next backup: {error} after {story}"));
    let found = scene.assert_sound(&remote.to_disk(), story);
    assert!(id.is_some_and(|id| found.contains(&id)), "after {story}");
}

#[test]
fn a_backup_with_trouble_at_any_request_costs_no_snapshot() {
    let scene = Scene::with_two_snapshots();
    at_every_request(
        &scene,
        |remote| try_backup(&scene, remote),
        |remote, found, result, story| {
            let new: Vec<_> = found.iter().filter(|id| !scene.trees.contains_key(id)).collect();
            assert_eq!(found.len() - new.len(), scene.trees.len(), "a snapshot is gone after {story}");
            match result {
                Ok(id) => assert_eq!(new, id.iter().collect::<Vec<_>>(), "{story}"),
                Err(error) => assert!(new.is_empty() || !says_overtaken(error), "{story}"),
            }
            assert_goes_on(&scene, remote, story);
        },
    );
}

#[test]
fn forgetting_with_trouble_at_any_request_costs_no_other_snapshot() {
    let scene = Scene::unsettled();
    let options = scene.sandbox.forget_options(false).with_take_over(true).with_rewrite_threshold(0.0);
    let (gone, rest) = (scene.ids[0], BTreeSet::from([scene.ids[1]]));
    at_every_request(
        &scene,
        |remote| scene.sandbox.at(remote.clone()).try_forget(&[gone], &options).map(drop),
        |remote, found, result, story| {
            let is_done = *found == rest;
            assert!(is_done || *found == scene.ids.iter().copied().collect(), "{story}");
            assert!(is_done || result.is_err(), "{story}");
            assert_goes_on(&scene, remote, story);
        },
    );
}

#[test]
fn maintenance_with_trouble_at_any_request_costs_no_snapshot() {
    let scene = Scene::unsettled();
    let options = scene.sandbox.migrate_options().with_take_over(true);
    at_every_request(
        &scene,
        |remote| {
            let repository = Repository::open(Arc::new(remote.clone()), PASSWORD)?;
            maintain::maintain(&repository, &options, &resources()).map(drop)
        },
        |remote, found, _, story| {
            assert_eq!(*found, scene.ids.iter().copied().collect(), "{story}");
            assert_goes_on(&scene, remote, story);
        },
    );
}

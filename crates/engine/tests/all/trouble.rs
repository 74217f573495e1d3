//! A place at a distance whose answers are lost, late or cut short, or that is busy, at each request of a backup with
//! settling, of maintenance and of forgetting, and of the same at both ends of a loan: no snapshot is lost, and what
//! the run says of itself is true.

use crate::common::faults::{self, copy};
use crate::common::scene::Scene;
use crate::common::{PASSWORD, Sandbox, noise, resources};
use siltstone_engine::backup::Borrow;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_engine::{EngineError, maintain};
use siltstone_store::repository::Repository;
use siltstone_store::storage::{ObjectName, SimulatedRemote};
use siltstone_store::{SnapshotId, StoreError};
use std::collections::BTreeSet;
use std::fmt::Debug;
use std::sync::Arc;

/// Tells whether the error says that nothing was done because another writer was faster.
fn says_overtaken(error: &EngineError) -> bool {
    matches!(error, EngineError::Store(StoreError::Fenced { .. } | StoreError::LeaseHeld { .. }))
}

/// Runs `deed` with trouble at each of its requests, and shows what is found then; all of it is sound.
fn at_every_request<T: Debug>(
    scene: &Scene,
    deed: impl Fn(&SimulatedRemote) -> T,
    examine: impl Fn(&SimulatedRemote, &BTreeSet<SnapshotId>, &T, &str),
) {
    faults::at_every_request(&SimulatedRemote::holding(&copy(&scene.disk)), deed, |remote, result, story| {
        let found = scene.assert_sound(&remote.to_disk(), story);
        examine(remote, &found, result, story);
    });
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

/// A series that lends, one that borrows of it, and a snapshot of each.
struct Lent {
    scene: Scene,
    lender: SnapshotId,
    /// The borrower's tree, which is the lender's before there is one.
    borrower: SnapshotId,
}

const LENDER: &str = "test";
const BORROWER: &str = "borrower";

impl Lent {
    fn before_the_loan() -> Self {
        let mut scene = Scene::new();
        (0..6).for_each(|file| scene.sandbox.write(&format!("shared/{file}"), &noise(file, 12_000)));
        let lender = scene.backup();
        scene.sandbox.write("own", &noise(1000, 9000));
        Self { scene, lender, borrower: lender }
    }

    fn new() -> Self {
        let mut lent = Self::before_the_loan();
        lent.borrower = borrow(&lent.scene.sandbox).expect("a backup");
        lent.scene.trees.insert(lent.borrower, lent.scene.source());
        lent
    }

    fn maintain(&self, remote: &SimulatedRemote, owns: bool) -> Result<(), EngineError> {
        let options = self.scene.sandbox.migrate_options().with_take_over(true).with_owns(owns);
        let repository = Repository::open(Arc::new(remote.clone()), PASSWORD)?;
        maintain::maintain(&repository, &options, &resources()).map(drop)
    }

    fn forget(&self, remote: &SimulatedRemote, ids: &[SnapshotId]) -> Result<(), EngineError> {
        let options = self.scene.sandbox.forget_options(false).with_take_over(true).with_rewrite_threshold(0.0);
        self.scene.sandbox.at(remote.clone()).try_forget(ids, &options).map(drop)
    }

    /// The borrower is backed up again; the lender forgets all and is maintained: what the borrower has stays whole.
    /// Then the borrower forgets all, and nothing is left.
    fn assert_outlives_the_lender(&self, remote: &SimulatedRemote, story: &str) {
        let failed = |error: EngineError| panic!("{error} after {story}");
        let sandbox = self.scene.sandbox.at(remote.clone());
        let again = borrow(&sandbox).unwrap_or_else(|error| panic!("the next backup: {error} after {story}"));
        let (lent, others): (Vec<_>, Vec<_>) =
            sandbox.snapshots().into_iter().partition(|view| view.series_name == LENDER);
        let ids = |views: &[SnapshotView]| views.iter().map(|view| view.snapshot.id).collect::<Vec<_>>();
        self.forget(remote, &ids(&lent)).unwrap_or_else(failed);
        self.maintain(remote, false).unwrap_or_else(failed);
        let there = self.scene.assert_sound(&remote.to_disk(), story);
        assert!(there.contains(&again), "after {story}");
        assert_eq!(there, ids(&others).into_iter().collect(), "after {story}");
        self.forget(remote, &ids(&others)).unwrap_or_else(failed);
        // The first round gives loans back, the second what was kept for them.
        (0..2).for_each(|_| self.maintain(remote, false).unwrap_or_else(failed));
        let is_left = |name: &ObjectName| matches!(name, ObjectName::Container(..) | ObjectName::Loan(..));
        let left: Vec<ObjectName> = remote.to_disk().names().into_iter().filter(is_left).collect();
        assert!(left.is_empty(), "{left:?} are left after {story}");
    }
}

fn borrow(sandbox: &Sandbox) -> Result<SnapshotId, EngineError> {
    let options = sandbox.options().with_series(Some(BORROWER.to_owned()));
    let options = options.with_borrow(Borrow::From(LENDER.to_owned())).with_force(true).with_take_over(true);
    sandbox.try_backup(&options.with_sample_bytes(Some(0))).map(|summary| summary.snapshot.expect("a snapshot"))
}

#[test]
fn borrowing_with_trouble_at_any_request_costs_no_snapshot() {
    let lent = Lent::before_the_loan();
    at_every_request(
        &lent.scene,
        |remote| borrow(&lent.scene.sandbox.at(remote.clone())),
        |remote, found, result, story| {
            assert!(found.contains(&lent.lender), "{story}");
            assert!(result.as_ref().is_ok_and(|id| found.contains(id)) || result.is_err(), "{story}");
            lent.assert_outlives_the_lender(remote, story);
        },
    );
}

#[test]
fn a_lender_that_forgets_with_trouble_at_any_request_costs_the_borrower_nothing() {
    let lent = Lent::new();
    at_every_request(
        &lent.scene,
        |remote| lent.forget(remote, &[lent.lender]),
        |remote, found, result, story| {
            assert!(found.contains(&lent.borrower), "{story}");
            assert!(result.is_err() || !found.contains(&lent.lender), "{story}");
            lent.assert_outlives_the_lender(remote, story);
        },
    );
}

#[test]
fn a_borrower_that_forgets_with_trouble_at_any_request_costs_the_lender_nothing() {
    let lent = Lent::new();
    at_every_request(
        &lent.scene,
        |remote| lent.forget(remote, &[lent.borrower]),
        |remote, found, result, story| {
            assert!(found.contains(&lent.lender), "{story}");
            assert!(result.is_err() || !found.contains(&lent.borrower), "{story}");
            lent.assert_outlives_the_lender(remote, story);
        },
    );
}

#[test]
fn handing_over_with_trouble_at_any_request_costs_no_snapshot() {
    let lent = Lent::new();
    at_every_request(
        &lent.scene,
        |remote| lent.maintain(remote, true),
        |remote, found, _, story| {
            assert_eq!(*found, [lent.lender, lent.borrower].into(), "{story}");
            lent.assert_outlives_the_lender(remote, story);
        },
    );
}

//! Leases of holders that cannot be seen from here: the living are left alone, the dead are taken over without a hand,
//! and whoever was taken for dead wrongly loses its run and nothing else.

use crate::common::guarded::refusing_after;
use crate::common::scene::Scene;
use crate::common::{self, PASSWORD, resources, writer};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::unlock::{Life, UnlockOptions, unlock};
use siltstone_engine::{EngineError, Notice, Observer, Resources};
use siltstone_store::repository::{OpenOptions, Repository};
use siltstone_store::series::{LeaseTerms, SeriesWriter};
use siltstone_store::storage::{Listing, NameKind, SimulatedDisk, Storage};
use siltstone_store::{SnapshotId, StoreError, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(20);
/// Far longer than a thread is ever late.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_millis(200);

fn opened(storage: impl Storage + 'static, patience: Duration) -> Repository {
    let terms = LeaseTerms::default().with_patience(patience).with_renewed_every(Some(PERIOD));
    let options = OpenOptions::default().with_lease_terms(terms);
    Repository::open_with(Arc::new(storage), PASSWORD, &options).expect("the repository opens")
}

/// A writer that took the lease and renewed it so often; then it fell silent. It keeps its side of the disk.
fn fell_silent(repository: &Repository, renewals: usize) -> SeriesWriter<'_> {
    let writer = writer::acquire_renewed(repository, PERIOD);
    if renewals > 0 {
        let began = Instant::now();
        while repository.storage().list(Listing::Renewals(writer.series())).expect("a list").is_empty() {
            assert!(began.elapsed() < LONG, "it never renewed");
            std::thread::sleep(PERIOD);
        }
    }
    writer
}

fn silent_disk(disk: &SimulatedDisk, renewals: u32) -> Repository {
    opened(refusing_after(renewals, NameKind::Renewal, disk.another_process()), SHORT)
}

/// Backs the source up without being told to take over, and returns the snapshot with what was noticed.
fn back_up(scene: &Scene, patience: Duration) -> (Result<SnapshotId, EngineError>, Vec<Notice>) {
    let (repository, log) = (opened(scene.disk.another_process(), patience), common::log::Log::default());
    let options = scene.sandbox.options().with_force(true);
    let summary = backup::backup(
        &repository,
        Source::Paths(vec![scene.sandbox.source()]),
        &options,
        &scene.sandbox.heard_by(&log),
    );
    (summary.map(|summary| summary.snapshot.expect("a snapshot")), log.notices())
}

fn unlock_options() -> UnlockOptions {
    UnlockOptions::default().with_series(None).with_take_over(false).with_user("user".into())
}

#[test]
fn a_holder_that_renews_is_never_taken_over() {
    let scene = Scene::with_two_snapshots();
    let holding = opened(scene.disk.another_process(), LONG);
    let mut holder = writer::acquire_renewed(&holding, PERIOD);
    for _ in 0..5 {
        let (result, notices) = back_up(&scene, LONG);
        let error = result.expect_err("the holder lives");
        assert!(matches!(error, EngineError::Store(StoreError::LeaseHeld { .. })), "{error:?}");
        assert!(matches!(notices[..], [Notice::LeaseWatched { at_most: LONG, .. }]), "{notices:?}");
    }
    let next = holder.manifest().clone();
    holder.commit(next, false, Time::default()).expect("it was left alone");
    assert!(back_up(&scene, LONG).1.is_empty(), "nobody holds the lease");
}

#[test]
fn a_holder_that_fell_silent_is_taken_over_and_cannot_commit_any_more() {
    for renewals in [0, 1] {
        let scene = Scene::with_two_snapshots();
        let holding = silent_disk(&scene.disk, renewals);
        let mut holder = fell_silent(&holding, renewals as usize);
        let began = Instant::now();
        let (result, notices) = back_up(&scene, SHORT);
        let new = result.expect("the holder is taken for dead");
        assert!(began.elapsed() >= SHORT);
        let is_told = notices.iter().any(|notice| matches!(notice, Notice::LeaseTakenOver { .. }));
        assert!(is_told, "{notices:?}");
        assert_eq!(scene.disk.list(Listing::Renewals(holder.series())).expect("a list"), [], "they are swept");

        let next = holder.manifest().clone();
        let error = holder.commit(next, false, Time::default()).expect_err("it is fenced");
        assert!(matches!(error, StoreError::Fenced { .. }), "{error:?}");
        assert!(scene.assert_sound(&scene.disk, "a wrong judgement").contains(&new));
    }
}

#[test]
fn a_watcher_that_is_too_impatient_waits_for_several_renewals_all_the_same() {
    let scene = Scene::with_two_snapshots();
    let holding = opened(scene.disk.another_process(), LONG);
    let _holder = writer::acquire_renewed(&holding, Duration::from_millis(300));
    let (result, notices) = back_up(&scene, Duration::ZERO);
    assert!(matches!(result, Err(EngineError::Store(StoreError::LeaseHeld { .. }))), "{result:?}");
    let four_periods = Duration::from_millis(1200);
    assert!(matches!(notices[..], [Notice::LeaseWatched { at_most, .. }] if at_most == four_periods), "{notices:?}");
}

#[test]
fn a_lease_that_is_not_renewed_is_refused_at_once() {
    let scene = Scene::with_two_snapshots();
    let holding = opened(scene.disk.another_process(), LONG);
    let _holder = writer::acquire(&holding, writer::distant_holder(), false).expect("the lease");
    let (result, notices) = back_up(&scene, SHORT);
    assert!(matches!(result, Err(EngineError::Store(StoreError::LeaseHeld { .. }))), "{result:?}");
    assert!(notices.is_empty(), "{notices:?}");
}

/// Asks to stop as soon as a lease is watched.
#[derive(Default)]
struct Impatient(AtomicBool);

impl Observer for Impatient {
    fn notice(&self, notice: &Notice) {
        self.0.fetch_or(matches!(notice, Notice::LeaseWatched { .. }), Ordering::SeqCst);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

fn impatient() -> Resources {
    resources().with_observer(Arc::new(Impatient::default()))
}

#[test]
fn watching_ends_when_the_user_asks_and_leaves_the_lease_to_its_holder() {
    let scene = Scene::with_two_snapshots();
    let holding = silent_disk(&scene.disk, 0);
    let mut holder = fell_silent(&holding, 0);
    let repository = opened(scene.disk.another_process(), LONG);
    let began = Instant::now();
    let source = Source::Paths(vec![scene.sandbox.source()]);
    let error = backup::backup(&repository, source, &scene.sandbox.options(), &impatient());
    assert!(matches!(error, Err(EngineError::Interrupted)), "{error:?}");
    let error = unlock(&repository, &unlock_options(), &impatient());
    assert!(matches!(error, Err(EngineError::Interrupted)), "{error:?}");
    assert!(began.elapsed() < LONG / 2);
    let next = holder.manifest().clone();
    holder.commit(next, false, Time::default()).expect("it was left alone");
}

#[test]
fn unlock_ends_the_lease_of_the_silent_and_tells_what_is_known_of_the_others() {
    let scene = Scene::with_two_snapshots();
    let repository = opened(scene.disk.another_process(), Duration::from_secs(2));
    let life = |holding: Repository, hold: fn(&Repository) -> SeriesWriter<'_>| {
        let holder = hold(&holding);
        let summary = unlock(&repository, &unlock_options(), &resources()).expect("looked at");
        let mut known: Vec<Life> = summary.held.iter().map(|held| held.life).collect();
        let _ = holder.abandon(Time::default());
        (summary.ended, known.pop())
    };
    let process = || opened(scene.disk.another_process(), SHORT);
    assert_eq!(life(process(), |repository| writer::acquire_renewed(repository, PERIOD)), (0, Some(Life::Renews)));
    assert_eq!(life(process(), unrenewed), (0, Some(Life::Unknown)));
    assert_eq!(life(silent_disk(&scene.disk, 0), |repository| fell_silent(repository, 0)), (1, None));
}

fn unrenewed(repository: &Repository) -> SeriesWriter<'_> {
    writer::acquire(repository, writer::distant_holder(), false).expect("the lease")
}

//! Snapshots marked as deleted: gone for everybody who asks, there for who brings them back, and their space stated to
//! the byte.

use crate::common::scene::Scene;
use crate::common::{Sandbox, noise, resources};
use siltstone_engine::EngineError;
use siltstone_engine::backup::SHRINK_SHARE_DEFAULT;
use siltstone_engine::check::ReadData;
use siltstone_engine::forget::{ForgetOptions, ForgetSummary, Marking, held_by};
use siltstone_engine::maintain::maintain;
use siltstone_engine::snapshots::{SnapshotFilter, resolve};
use siltstone_engine::stats::stats;
use siltstone_store::storage::{NameKind, Recorder, SimulatedRemote};
use siltstone_store::{SnapshotId, Time};
use std::sync::Arc;

/// When snapshots are marked, and for how long they are kept.
const AT: i64 = 1_000_000;
const WEEK: u64 = 7 * 24 * 60 * 60;
const OVER: i64 = AT + WEEK.cast_signed();

/// Five snapshots of a file that is edited, one that is replaced, and one that stays.
fn history() -> Scene {
    with_history(Scene::new())
}

fn with_history(mut scene: Scene) -> Scene {
    let mut edited = noise(5, 60_000);
    scene.sandbox.write("kept", &noise(1, 60_000));
    for version in 0..5 {
        edited[30_000..33_000].copy_from_slice(&noise(10 + version, 3000));
        scene.sandbox.write("edited", &edited);
        scene.sandbox.write("replaced", &noise(20 + version, 30_000));
        scene.backup();
    }
    scene
}

/// The options of a dry run, and of the run.
fn both(options: &ForgetOptions) -> [ForgetOptions; 2] {
    [true, false].map(|dry_run| options.clone().with_dry_run(dry_run))
}

/// Runs it dry and in earnest, and holds what they say against each other and against what lies there.
fn forgotten_as_stated(sandbox: &Sandbox, ids: &[SnapshotId], options: &ForgetOptions) -> ForgetSummary {
    let [stated, done] = both(options).map(|options| sandbox.try_forget(ids, &options).expect("forgetting"));
    assert_eq!(stated, done);
    assert_eq!(sandbox.bytes(), done.bytes_after);
    done
}

fn ids_of(views: &[siltstone_engine::snapshots::SnapshotView]) -> Vec<SnapshotId> {
    views.iter().map(|view| view.snapshot.id).collect()
}

#[test]
fn a_snapshot_brought_back_is_as_it_was_whatever_happened_meanwhile() {
    let mut scene = history();
    let marked = [scene.ids[1], scene.ids[4]];
    assert_eq!(scene.sandbox.mark(&marked, AT, WEEK).snapshots_marked, 2);
    assert_eq!(ids_of(&scene.sandbox.snapshots()), [scene.ids[0], scene.ids[2], scene.ids[3]]);
    assert_eq!(ids_of(&scene.sandbox.deleted()), marked);
    for version in 0..2 {
        scene.sandbox.write("replaced", &noise(30 + version, 30_000));
        scene.backup();
    }
    let gone = [scene.ids[2], scene.ids[5]];
    let options = scene.sandbox.marking(AT, 0).with_rewrite_threshold(0.0);
    assert_eq!(scene.sandbox.try_forget(&gone, &options).expect("forgetting").snapshots_removed, 2);
    let options = scene.sandbox.migrate_options().with_threshold(0.0);
    let scene_is_sound = |scene: &Scene| scene.assert_sound(&scene.disk, "what happened meanwhile").len();
    assert_eq!(scene_is_sound(&scene), 3);
    assert_eq!(scene.sandbox.try_undelete(&marked).expect("undeleting"), 2);
    maintain(&scene.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!(scene_is_sound(&scene), 5);
    assert_eq!(scene.sandbox.deleted().len(), 0);
    let manifest = scene.sandbox.manifest();
    assert!(manifest.faults().is_empty() && manifest.lease.is_none());
}

#[test]
fn nobody_who_asks_for_snapshots_finds_a_deleted_one() {
    let scene = history();
    let (newest, before) = (scene.ids[4], scene.ids[3]);
    scene.sandbox.mark(&[newest], AT, WEEK);
    let repository = scene.sandbox.repository();
    let find = |wanted: &str, deleted| {
        let filter = SnapshotFilter::default().with_deleted(deleted);
        resolve(&repository, wanted, &filter).map(|(view, _)| view.snapshot.id)
    };
    assert_eq!(find("latest", false).expect("found"), before);
    assert_eq!(find("latest", true).expect("found"), newest);
    let error = find(&newest.short(), false).expect_err("it is deleted");
    let way_out = format!("silt undelete {}", newest.short());
    assert!(matches!(error, EngineError::SnapshotDeleted { .. }) && error.to_string().contains(&way_out), "{error}");
    assert!(matches!(find(&before.short(), true), Err(EngineError::NotDeleted { .. })));
    assert!(matches!(find("00ff00ff00ff", true), Err(EngineError::NoSnapshot { .. })));
    let (figures, _) = stats(&repository, &|_| true).expect("figures");
    assert_eq!((figures.snapshots, figures.by_snapshot.len()), (4, 4));
    let again = scene.sandbox.mark(&[newest], AT + 1, WEEK);
    assert_eq!(again.snapshots_marked, 0, "it is gone for forget too");
    assert_eq!(scene.sandbox.deleted()[0].snapshot.deleted.expect("a mark").at.seconds, AT);
}

#[test]
fn what_a_mark_holds_comes_back_to_the_byte_when_it_ends() {
    for threshold in [0.0, 0.2, 1.0] {
        let scene = history();
        let options = |at, seconds| scene.sandbox.marking(at, seconds).with_rewrite_threshold(threshold);
        // What containers hold that is dead already would come back as well.
        scene.sandbox.try_forget(&[scene.ids[0]], &options(AT, 0)).expect("forgetting");
        let marked = [scene.ids[1], scene.ids[3]];
        let done = forgotten_as_stated(&scene.sandbox, &marked, &options(AT, WEEK));
        assert_eq!((done.snapshots_removed, done.snapshots_marked, done.snapshots_ended), (0, 2, 0));
        assert_eq!((done.held.snapshots, done.held.last_until.map(|until| until.seconds)), (2, Some(OVER)));
        let held = done.held.bytes.expect("known");
        assert!(held > 20_000, "{held}");
        assert!(done.bytes_returned().abs() < 1000, "marks take little room: {done:?}");
        let repository = scene.sandbox.repository();
        let keys: Vec<_> = scene.sandbox.deleted().iter().map(|view| (view.series, view.snapshot.id)).collect();
        assert_eq!(held_by(&repository, &keys, &options(AT, 0), &resources()).expect("known"), held);
        let ended = forgotten_as_stated(&scene.sandbox, &[], &options(OVER, WEEK));
        assert_eq!((ended.snapshots_ended, ended.held.snapshots), (2, 0));
        assert_eq!(ended.bytes_returned(), held, "threshold {threshold}");
        assert_eq!(scene.assert_sound(&scene.disk, "ending marks").len(), 2);
    }
}

/// Marks made on two days each end by themselves; the day on which the first ends, new ones are made. Cuts are drawn
/// by each repository's key, and so is whether a container is worth rewriting: a few histories meet one that is.
#[test]
fn runs_that_end_some_marks_and_make_others_state_both_to_the_byte() {
    let rewritten: u64 = (0..8).map(|_| rewritten_while_marks_end_and_others_are_made()).sum();
    assert!(rewritten > 0, "what is stated of the rest is of containers made just now");
}

fn rewritten_while_marks_end_and_others_are_made() -> u64 {
    let scene = history();
    let day = |at, seconds| scene.sandbox.marking(at, seconds).with_rewrite_threshold(0.0);
    let first = forgotten_as_stated(&scene.sandbox, &[scene.ids[1]], &day(AT, WEEK));
    let second = forgotten_as_stated(&scene.sandbox, &[scene.ids[3]], &day(AT + 100, WEEK));
    assert_eq!((second.held.first_until, second.held.snapshots), (first.held.first_until, 2));
    let third = forgotten_as_stated(&scene.sandbox, &[scene.ids[2]], &day(OVER, WEEK));
    assert_eq!((third.snapshots_marked, third.snapshots_ended, third.held.snapshots), (1, 1, 2));
    let last = forgotten_as_stated(&scene.sandbox, &[], &day(OVER + WEEK.cast_signed(), 0));
    assert_eq!((last.snapshots_ended, Some(last.bytes_returned())), (2, third.held.bytes));
    assert_eq!(scene.assert_sound(&scene.disk, "ending marks").len(), 2);
    third.containers_rewritten
}

#[test]
fn a_clock_before_the_mark_ends_nothing_and_one_before_its_end_neither() {
    let scene = history();
    scene.sandbox.mark(&scene.ids[..1], AT, WEEK);
    for at in [i64::MIN, AT - 1, AT, OVER - 1] {
        let done = forgotten_as_stated(&scene.sandbox, &[], &scene.sandbox.marking(at, 0));
        assert_eq!((done.snapshots_ended, done.held.snapshots), (0, 1), "at {at}");
    }
    assert_eq!(forgotten_as_stated(&scene.sandbox, &[], &scene.sandbox.marking(OVER, 0)).snapshots_ended, 1);
}

#[test]
fn marks_can_be_ended_before_their_time() {
    let scene = history();
    let stated = scene.sandbox.mark(&scene.ids[..2], AT, WEEK);
    let marking = Marking::default().with_ends_given(true).with_now(Time { seconds: AT, nanoseconds: 0 });
    let options = scene.sandbox.forget_options(false).with_marking(marking);
    let ended = forgotten_as_stated(&scene.sandbox, &scene.ids[..2], &options);
    assert_eq!((ended.snapshots_ended, ended.snapshots_removed), (2, 0));
    assert_eq!(Some(ended.bytes_returned()), stated.held.bytes);
}

#[test]
fn forgetting_at_once_leaves_marks_alone_and_says_what_they_hold() {
    let scene = history();
    scene.sandbox.mark(&scene.ids[..1], AT, WEEK);
    let done = forgotten_as_stated(&scene.sandbox, &scene.ids[1..2], &scene.sandbox.marking(AT, 0));
    assert_eq!((done.snapshots_removed, done.snapshots_ended, done.held.snapshots), (1, 0, 1));
    assert!(done.held.bytes.is_some_and(|bytes| bytes > 20_000), "{done:?}");
    assert_eq!(scene.sandbox.try_undelete(&scene.ids[..1]).expect("undeleting"), 1);
    assert_eq!(scene.assert_sound(&scene.disk, "undeleting").len(), 4);
}

/// The story: while a mark lasted, each run at a distance read and encoded anew all that shares containers with the
/// deleted snapshot, only to state what that holds.
#[test]
fn a_run_at_a_distance_that_has_nothing_to_do_reads_no_container() {
    let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
    let sandbox = Sandbox::on(recorder.clone());
    sandbox.write("kept", &noise(1, 60_000));
    let ids: Vec<SnapshotId> = (0..3)
        .map(|version| {
            sandbox.write("replaced", &noise(20 + version, 30_000));
            let options = sandbox.options().with_force(true).with_migrate(false);
            sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot")
        })
        .collect();
    let options = sandbox.marking(AT, WEEK).with_rewrite_threshold(0.0);
    let [looking, doing] = both(&options);
    let forgotten = |ids: &[SnapshotId], options: &ForgetOptions| {
        recorder.reset();
        let summary = sandbox.try_forget(ids, options).expect("forgetting");
        let containers = recorder.reset().of_kind(NameKind::Container);
        (summary, containers.reads + containers.range_reads)
    };
    let (marked, read) = forgotten(&ids[..1], &doing);
    assert_eq!(marked.snapshots_marked, 1);
    assert!(marked.held.bytes.is_some_and(|bytes| bytes > 20_000) && read > 0, "{marked:?}");
    let (summary, read) = forgotten(&[], &doing);
    assert_eq!(read, 0, "nothing is to be done");
    assert_eq!((summary.held.snapshots, summary.held.bytes), (1, None));
    assert_eq!(summary.held.last_until.map(|until| until.seconds), Some(OVER));
    let (summary, _) = forgotten(&[], &looking);
    assert!(summary.held.bytes.is_some_and(|bytes| bytes > 20_000), "who asks is told: {summary:?}");
}

#[test]
fn a_window_of_no_time_removes_at_once() {
    let scene = history();
    let done = forgotten_as_stated(&scene.sandbox, &scene.ids[..2], &scene.sandbox.marking(AT, 0));
    assert_eq!((done.snapshots_removed, done.snapshots_marked, done.held.snapshots), (2, 0, 0));
    assert!(done.bytes_returned() > 40_000);
}

#[test]
fn maintenance_ends_marks_that_are_over_and_no_others() {
    let scene = history();
    let stated = scene.sandbox.mark(&scene.ids[..2], AT, WEEK);
    scene.sandbox.mark(&scene.ids[2..3], AT, u64::MAX);
    let before = scene.sandbox.bytes();
    let options = scene.sandbox.migrate_options();
    let done = maintain(&scene.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!((done.ended, scene.sandbox.deleted().len()), (2, 1));
    let returned = before - scene.sandbox.bytes();
    assert!(returned > 20_000 && stated.held.bytes.is_some_and(|held| held > 0), "{returned}");
    assert_eq!(scene.assert_sound(&scene.disk, "maintenance").len(), 2);
    let again = maintain(&scene.sandbox.repository(), &options, &resources()).expect("maintenance");
    assert_eq!(again.ended, 0);
}

#[test]
fn a_backup_builds_on_a_deleted_snapshot_and_is_the_latest() {
    // A snapshot has the folders above its source too, and that of temporary files changes all the time.
    let mut scene = with_history(Scene::below(env!("CARGO_TARGET_TMPDIR").as_ref()));
    let newest = scene.ids[4];
    scene.sandbox.mark(&[newest], AT, WEEK);
    let options = scene.sandbox.options().with_skip_if_unchanged(true);
    let made = scene.sandbox.try_backup(&options).expect("a backup");
    assert_eq!(made.statistics.chunks_new, 0, "what is stored of it is used");
    let made = made.snapshot.expect("no live snapshot has this content");
    scene.trees.insert(made, scene.source());
    // Now and then another test makes a folder above the source, too.
    let again = || scene.sandbox.try_backup(&options).expect("a backup").snapshot;
    assert!((0..10).any(|_| again().is_none()), "one has it now");
    scene.sandbox.try_forget(&[], &scene.sandbox.marking(OVER, 0)).expect("ending");
    assert!(scene.assert_sound(&scene.disk, "what it built on is gone").contains(&made));
}

#[test]
fn a_source_is_not_held_against_a_deleted_snapshot() {
    let sandbox = Sandbox::new();
    sandbox.write("small", &noise(1, 1000));
    sandbox.backup();
    (0..10).for_each(|number| sandbox.write(&format!("mistaken/{number}"), &noise(number, 1000)));
    let mistaken = sandbox.backup();
    sandbox.remove("mistaken");
    let guarded = sandbox.options().with_shrink_share(Some(SHRINK_SHARE_DEFAULT));
    assert!(matches!(sandbox.try_backup(&guarded), Err(EngineError::SourceShrunk { .. })));
    sandbox.mark(&[mistaken], AT, WEEK);
    sandbox.try_backup(&guarded).expect("it is as large as the last that counts");
}

#[test]
fn the_last_live_snapshots_are_marked_only_when_that_is_allowed() {
    let scene = history();
    let guarded = |options: ForgetOptions| options.with_allow_remove_all(false);
    scene.sandbox.try_forget(&scene.ids[..3], &guarded(scene.sandbox.marking(AT, WEEK))).expect("two are left");
    for options in [scene.sandbox.marking(AT, WEEK), scene.sandbox.marking(AT, 0)] {
        for options in both(&guarded(options)) {
            let error = scene.sandbox.try_forget(&scene.ids[3..], &options).expect_err("those marked are not left");
            assert!(matches!(error, EngineError::RemovesAll { .. }), "{error}");
        }
    }
    assert_eq!(scene.sandbox.mark(&scene.ids[3..], AT, WEEK).snapshots_marked, 2);
    let ended = scene.sandbox.try_forget(&[], &guarded(scene.sandbox.marking(OVER, 0))).expect("that was allowed");
    assert_eq!(ended.snapshots_ended, 5);
    assert_eq!(scene.sandbox.check(ReadData::All).findings, []);
}

#[test]
fn what_is_gone_for_good_is_told_and_nothing_else_is_brought_back() {
    let scene = history();
    scene.sandbox.mark(&scene.ids[..2], AT, WEEK);
    let repository = scene.sandbox.repository();
    let series = scene.sandbox.snapshots()[0].series;
    let keys = [(series, scene.ids[0]), (series, SnapshotId([7; 32]))];
    let options = siltstone_engine::undelete::UndeleteOptions::default().with_take_over(false).with_user("user".into());
    let sequence = || scene.sandbox.repository().manifests().expect("manifests")[0].sequence;
    let before = sequence();
    let error =
        siltstone_engine::undelete::undelete(&repository, &keys, &options, &resources()).expect_err("one is gone");
    assert!(matches!(&error, EngineError::DeletedForGood { series, .. } if series == "test"), "{error}");
    assert_eq!((scene.sandbox.deleted().len(), sequence()), (2, before));
    assert_eq!(scene.sandbox.try_undelete(&scene.ids[..3]).expect("one of them is live"), 2);
}

//! Resources: who asks to stop is heard wherever a command is, and nothing of a result hangs on how much there was.

use crate::common::faults::copy;
use crate::common::repair::open;
use crate::common::scene::Scene;
use crate::common::{Sandbox, noise, resources};
use siltstone_engine::check::ReadData;
use siltstone_engine::copy::CopyOptions;
use siltstone_engine::forget::{SnapshotSelection, forget};
use siltstone_engine::maintain::{Recompression, maintain};
use siltstone_engine::restore::RestoreOptions;
use siltstone_engine::snapshots::SnapshotView;
use siltstone_engine::{Command, EngineError, Observer, Resources, Session};
use siltstone_store::container::CONTAINER_BYTES_DEFAULT;
use siltstone_store::storage::{Listing, ObjectName, SimulatedDisk, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Asks to stop from the n-th time on that it is asked.
struct Impatient {
    asked: AtomicU64,
    patience: u64,
}

impl Observer for Impatient {
    fn is_cancelled(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) >= self.patience
    }
}

fn impatient(patience: u64) -> (Arc<Impatient>, Resources) {
    let observer = Arc::new(Impatient { asked: AtomicU64::new(0), patience });
    (observer.clone(), resources().with_observer(observer))
}

/// Five versions of a file with small edits, beside something new each time.
fn versions() -> Scene {
    let mut scene = Scene { migrate: false, ..Scene::new() };
    let mut edited = noise(1, 300_000);
    for version in 0..5u8 {
        edited[usize::from(version) * 50_000..][..4].copy_from_slice(b"edit");
        scene.sandbox.write("edited", &edited);
        scene.sandbox.write("new", &noise(10 + u64::from(version), 100_000));
        scene.backup();
    }
    scene
}

/// The bytes of all containers, by their names.
fn containers(disk: &SimulatedDisk) -> BTreeMap<ObjectName, u64> {
    let listed = disk.list(Listing::All).expect("a list").into_iter();
    listed.filter(|meta| meta.name.container().is_some()).map(|meta| (meta.name, meta.bytes)).collect()
}

#[test]
fn a_rewrite_stops_when_the_user_asks_and_the_repository_is_sound() {
    let scene = versions();
    maintain(&open(&scene.disk), &scene.sandbox.migrate_options(), &resources()).expect("settled");
    let options = scene.sandbox.forget_options(false).with_rewrite_threshold(0.0).with_take_over(true);
    let keys: Vec<_> = scene.sandbox.snapshots().iter().map(SnapshotView::key).collect();
    let (unhurried, all) = impatient(u64::MAX);
    let whole = forget(&open(&copy(&scene.disk)), &[keys[1], keys[3]], &options, &all).expect("forgetting");
    assert!(whole.containers_rewritten > 0, "{whole:?}");
    let asked = unhurried.asked.load(Ordering::Relaxed);
    assert!(asked >= 4, "a rewrite listens: {asked}");
    let mut stopped = 0;
    for patience in 0..asked.min(12) {
        let disk = copy(&scene.disk);
        let result = forget(&open(&disk), &[keys[1], keys[3]], &options, &impatient(patience).1);
        stopped += u64::from(matches!(result, Err(EngineError::Interrupted)));
        assert!(matches!(result, Ok(_) | Err(EngineError::Interrupted)), "{result:?}");
        scene.assert_sound(&disk, &format!("an interrupt after {patience} questions"));
        let again = forget(&open(&disk), &[keys[1], keys[3]], &options, &resources()).expect("the rest");
        assert_eq!(again.snapshots_removed, 0, "they went with the first commit");
        assert_eq!(scene.assert_sound(&disk, "the next run").len(), 3);
    }
    assert!(stopped > 3, "{stopped} times");
}

#[test]
fn settling_stops_when_the_user_asks_and_goes_on_later() {
    let scene = versions();
    let options = scene.sandbox.migrate_options().with_take_over(true);
    let (unhurried, all) = impatient(u64::MAX);
    let settled = copy(&scene.disk);
    maintain(&open(&settled), &options, &all).expect("settled");
    let asked = unhurried.asked.load(Ordering::Relaxed);
    for patience in [0, 1, asked / 4, asked / 3, asked / 2] {
        let disk = copy(&scene.disk);
        let stopped = maintain(&open(&disk), &options, &impatient(patience).1);
        assert!(matches!(stopped, Err(EngineError::Interrupted)), "{patience} of {asked}: {stopped:?}");
        scene.assert_sound(&disk, "an interrupt");
        maintain(&open(&disk), &options, &resources()).expect("the rest");
        assert_eq!(scene.assert_sound(&disk, "the rest").len(), 5);
    }
}

#[test]
fn what_is_settled_and_rewritten_does_not_hang_on_memory_or_threads() {
    let scene = versions();
    let options = scene.sandbox.migrate_options();
    let keys: Vec<_> = scene.sandbox.snapshots().iter().map(SnapshotView::key).collect();
    let made = |mib: u64, workers: usize| {
        let disk = copy(&scene.disk);
        let resources = resources().with_memory_bytes(mib << 20).with_workers(workers).with_fetches(workers);
        maintain(&open(&disk), &options, &resources).expect("settled");
        let rewriting = scene.sandbox.forget_options(false).with_rewrite_threshold(0.0);
        forget(&open(&disk), &[keys[0], keys[2]], &rewriting, &resources).expect("forgetting");
        maintain(&open(&disk), &options, &resources).expect("compacted");
        containers(&disk)
    };
    let expected = made(512, 2);
    assert!(expected.len() > 2);
    for (mib, workers) in [(160, 1), (160, 7), (4096, 3)] {
        assert_eq!(made(mib, workers), expected, "{mib} MiB, {workers} threads");
    }
}

#[test]
fn no_command_begins_with_too_little_memory() {
    let scene = Scene::with_two_snapshots();
    let session = |command: Command, less: u64| {
        let resources = resources().with_memory_bytes(command.memory_bytes_min(CONTAINER_BYTES_DEFAULT) - less);
        Session::new(scene.sandbox.repository(), resources)
    };
    let view = scene.sandbox.view(scene.ids[0]);
    let target = tempfile::tempdir().expect("a folder");
    let (sandbox, elsewhere) = (&scene.sandbox, Sandbox::new());
    let restoring = || RestoreOptions::new(target.path().join("new")).with_dry_run(true);
    let nothing = || SnapshotSelection::Given(Vec::new());
    let run = |command: Command, less: u64| -> Result<(), EngineError> {
        let session = session(command, less);
        match command {
            Command::Backup => {
                let source = siltstone_engine::backup::Source::Paths(vec![sandbox.source()]);
                session.backup(source, &sandbox.options().with_dry_run(true)).map(drop)
            }
            Command::Copy => {
                let source = Session::new(scene.sandbox.repository(), resources());
                let options = CopyOptions::default().with_backup(elsewhere.options());
                Session::new(elsewhere.repository(), session.resources().clone())
                    .copy_from(&source, std::slice::from_ref(&view), &options)
                    .map(drop)
            }
            Command::Restore => session.restore(&view, &restoring()).map(drop),
            Command::Dump => session.dump(&view, None, siltstone_engine::dump::Archive::Tar, &mut std::io::sink()),
            Command::Maintain => session.maintain(&sandbox.migrate_options()).map(drop),
            Command::Recompress => {
                let options = sandbox.migrate_options().with_recompression(Some(Recompression::all_at(1)));
                session.maintain(&options).map(drop)
            }
            Command::Forget => {
                let plan = session.plan_forget(nothing(), &sandbox.forget_options(true))?;
                session.execute(&plan).map(drop)
            }
            Command::Check => session.check(&siltstone_engine::check::CheckOptions::reading(ReadData::All)).map(drop),
            Command::Repair => session.plan_repair(&siltstone_engine::repair::RepairOptions::default()).map(drop),
            other => panic!("{other:?} is not tried"),
        }
    };
    for command in Command::ALL {
        let refused = run(command, 1).expect_err("too little");
        assert!(matches!(refused, EngineError::MemoryTooSmall { .. }), "{command:?}: {refused}");
        run(command, 0).unwrap_or_else(|error| panic!("{command:?} with the least: {error}"));
    }
}

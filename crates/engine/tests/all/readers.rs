//! Readers hold no lease: a forget or a migration beside them moves chunks to other containers, and none of them
//! notices.

use crate::common::log::Log;
use crate::common::{self, Sandbox, heard_by, noise, resources, tree};
use siltstone_engine::check::{self, CheckOptions, ReadData};
use siltstone_engine::dump::{self, Archive};
use siltstone_engine::snapshots::SnapshotFilter;
use siltstone_engine::{browse, maintain, restore, stats};
use siltstone_store::SnapshotId;
use siltstone_store::catalog::EntryPath;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Action, Call, Damage, Guarded, Listing, ObjectName, Outcome, SimulatedDisk, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something that happens meanwhile.
type Act = Box<dyn FnOnce() + Send>;

/// A disk each look at a container of which is a step towards the action.
fn before_each_look(disk: SimulatedDisk, action: &Arc<Action>) -> Arc<dyn Storage> {
    let action = Arc::clone(action);
    Arc::new(Guarded::new(disk, move |call| {
        if matches!(call, Call::Read(ObjectName::Container(..))) {
            action.step();
        }
        Outcome::Made
    }))
}

/// Three snapshots that share containers, none of them migrated; forgetting the first two rewrites what the last needs.
fn three_snapshots() -> (Sandbox, SimulatedDisk, Vec<SnapshotId>) {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    for number in 0..40 {
        sandbox.write(&format!("kept/{number}"), &noise(number, 30_000));
        sandbox.write(&format!("gone/{number}"), &noise(1000 + number, 30_000));
    }
    let options = sandbox.options().with_force(true).with_migrate(false);
    let backup = || sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
    let mut ids = vec![backup()];
    sandbox.remove("gone");
    for number in 0..10 {
        sandbox.write(&format!("added/{number}"), &noise(2000 + number, 30_000));
    }
    ids.push(backup());
    sandbox.remove("added");
    ids.push(backup());
    (sandbox, disk, ids)
}

/// Runs `reader` on a repository in which the first two snapshots are forgotten before each of its looks at a container
/// in turn, until it ends before the forget would have begun.
fn beside_a_forget(reader: impl Fn(&Repository, &Sandbox, SnapshotId)) {
    let (sandbox, sound, ids) = three_snapshots();
    let gone = ids[..2].to_vec();
    beside(
        &sound,
        &|disk| {
            let (forgetful, gone) = (sandbox.at(disk), gone.clone());
            Box::new(move || {
                let options = forgetful.forget_options(false).with_rewrite_threshold(0.0);
                assert!(forgetful.try_forget(&gone, &options).expect("forgetting").containers_rewritten > 0);
            })
        },
        |repository| reader(repository, &sandbox, ids[2]),
    );
}

/// Runs `reader` on a copy of the disk with what `act_on` it does done before each of its looks at a container in
/// turn, until it ends before that.
fn beside(sound: &SimulatedDisk, act_on: &dyn Fn(SimulatedDisk) -> Act, reader: impl Fn(&Repository)) {
    for nth in 0..1000 {
        let disk = sound.crash(SimulatedDisk::ALL_REACHED);
        let action = Action::at(nth, act_on(disk.clone()));
        let repository = Repository::open(before_each_look(disk, &action), common::PASSWORD).expect("it opens");
        reader(&repository);
        if !action.is_done() {
            assert!(nth > 0, "the reader looks at containers");
            return;
        }
    }
    panic!("the reader never ends");
}

#[test]
fn readers_beside_a_migration_see_everything() {
    let sound = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(sound.clone()));
    let options = sandbox.options().with_force(true).with_migrate(false);
    let (mut ids, mut trees) = (Vec::new(), Vec::new());
    for version in 0..3 {
        for number in 0..6 {
            let mut content = noise(number, 200_000);
            content[90_000..90_100].copy_from_slice(&noise(100 + version, 100));
            sandbox.write(&format!("file/{number}"), &content);
        }
        ids.push(sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot"));
        trees.push(tree::read(&sandbox.source()));
    }
    let migrated = |disk: SimulatedDisk| -> Act {
        let settling = sandbox.at(disk);
        Box::new(move || {
            let options = settling.migrate_options().with_threshold(0.0);
            let summary = maintain::maintain(&settling.repository(), &options, &resources()).expect("a migration");
            assert!(summary.settled > 0);
        })
    };
    beside(&sound, &migrated, |repository| {
        for (id, tree) in ids.iter().zip(&trees) {
            let target = tempfile::tempdir().expect("a folder");
            // Little memory: several batches, each planned before or after the migration.
            let options = sandbox.restore_options(target.path());
            let log = Log::default();
            let resources = heard_by(&log).with_memory_bytes(10_000);
            restore::restore(repository, &view(repository, *id), &options, &resources).expect("a restore");
            assert_eq!(log.problems(), [""; 0]);
            let root = target.path().join(sandbox.source().strip_prefix("/").expect("absolute"));
            assert!(tree::read(&root) == *tree, "snapshot {} differs", id.short());
        }
    });
    beside(&sound, &migrated, |repository| {
        let report = check::check(repository, &CheckOptions::reading(ReadData::All), &resources()).expect("a check");
        assert_eq!(report.findings, []);
    });
}

fn view(repository: &Repository, id: SnapshotId) -> siltstone_engine::snapshots::SnapshotView {
    let all = siltstone_engine::snapshots::list(repository, &SnapshotFilter::default()).expect("a list");
    all.into_iter().find(|view| view.snapshot.id == id).expect("the snapshot")
}

#[test]
fn a_restore_beside_a_forget_gives_everything() {
    beside_a_forget(|repository, sandbox, id| {
        let target = tempfile::tempdir().expect("a folder");
        let options = sandbox.restore_options(target.path());
        let summary = restore::restore(repository, &view(repository, id), &options, &resources()).expect("a restore");
        assert_eq!(summary.problems, 0);
        let root = target.path().join(sandbox.source().strip_prefix("/").expect("absolute"));
        assert_eq!(tree::read(&root), tree::read(&sandbox.source()));
    });
}

/// The story: folders kept the mode and the time they were made with, and nothing was said. The data was in place when
/// another writer removed the snapshot; folders got their metadata in a second walk of the catalog, which passed over
/// what it could not read.
#[test]
fn a_restore_of_a_snapshot_being_removed_is_right_or_says_so() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    // Names that do not compress and large content between them: the catalog has several regions, and too many to be
    // kept.
    for number in 0..12 {
        sandbox.write(&format!("folder {number}/file"), &noise(number, 20_000));
        for part in 0..60 {
            let name = [0, 1, 2].map(|third| blake3::hash(&noise(1000 * number + 3 * part + third, 8)).to_hex());
            sandbox.write(&format!("folder {number}/{}{}{}", name[0], name[1], name[2]), b"");
        }
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o711 + u32::try_from(number % 7).expect("small"));
        std::fs::set_permissions(sandbox.source().join(format!("folder {number}")), mode).expect("a mode");
    }
    let options = sandbox.options().with_force(true).with_migrate(false);
    let backup = || sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot");
    let id = backup();
    let wanted = tree::read(&sandbox.source());
    std::fs::remove_dir_all(sandbox.source()).expect("removed");
    sandbox.write("another", &noise(999, 30_000));
    backup();
    let removed = |disk: SimulatedDisk| -> Act {
        let forgetful = sandbox.at(disk);
        Box::new(move || {
            let options = forgetful.forget_options(false).with_rewrite_threshold(0.0);
            forgetful.try_forget(&[id], &options).expect("forgetting");
        })
    };
    let (right, said) = (AtomicU64::new(0), AtomicU64::new(0));
    beside(&disk, &removed, |repository| {
        let target = tempfile::tempdir().expect("a folder");
        let root = target.path().join("restored");
        let below = Some(common::entry_path(&sandbox.source()));
        let options = sandbox.restore_options(&root).with_below(below);
        let log = Log::default();
        let resources = heard_by(&log).with_memory_bytes(100_000);
        let found = siltstone_engine::snapshots::list(repository, &SnapshotFilter::default()).expect("a list");
        let Some(view) = found.into_iter().find(|view| view.snapshot.id == id) else { return };
        let outcome = restore::restore(repository, &view, &options, &resources);
        if outcome.is_ok_and(|summary| summary.problems == 0) {
            assert!(tree::differences(&tree::read(&root), &wanted).is_empty(), "it said nothing");
            right.fetch_add(1, Ordering::Relaxed);
        } else {
            said.fetch_add(1, Ordering::Relaxed);
        }
    });
    assert!(right.into_inner() > 0 && said.into_inner() > 0);
}

#[test]
fn looking_and_dumping_beside_a_forget_sees_everything() {
    beside_a_forget(|repository, sandbox, id| {
        let view = view(repository, id);
        let mut seen = 0;
        browse::ls(repository, &view, None, true, &mut |_| {
            seen += 1;
            Ok(())
        })
        .expect("a listing");
        assert!(seen > 40);
        let file = sandbox.source().join("kept/7");
        let path = EntryPath::new(file.to_str().expect("text").trim_start_matches('/')).expect("a path");
        let mut out = Vec::new();
        dump::dump(repository, &view, Some(&path), Archive::Tar, &mut out, &resources()).expect("a dump");
        assert_eq!(out, noise(7, 30_000));
    });
}

#[test]
fn a_check_beside_a_forget_raises_no_alarm() {
    beside_a_forget(|repository, _, _| {
        let report = check::check(repository, &CheckOptions::reading(ReadData::All), &resources()).expect("a check");
        assert_eq!(report.findings, []);
    });
}

#[test]
fn figures_beside_a_forget_are_gathered() {
    beside_a_forget(|repository, _, _| {
        let figures = stats::stats(repository, &|_| true).expect("figures").0;
        assert!(figures.data.chunks > 0);
    });
}

/// The story: the catalog was damaged, the names in the damaged part were taken for names the snapshot does not hold,
/// and the files that had them were deleted from the target.
#[test]
fn deleting_extra_files_stops_where_the_catalog_is_damaged() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    // Names that do not compress, so that the catalog has several regions.
    for number in 0..6000 {
        let [one, two] = [0, 1].map(|half| blake3::hash(&noise(2 * number + half, 8)).to_hex());
        let name = format!("{one}{two}{one}");
        sandbox.write(&format!("many/{name}"), b"");
    }
    let id = sandbox.backup();
    let target = tempfile::tempdir().expect("a folder");
    sandbox.restore(id, target.path()).expect("a restore");
    let root = target.path().join(sandbox.source().strip_prefix("/").expect("absolute"));
    std::fs::write(root.join("many/extra"), b"").expect("a file");
    let whole = tree::read(&root);

    let listed = disk.list(Listing::All).expect("a list");
    let containers: Vec<_> = listed.iter().filter(|meta| matches!(meta.name, ObjectName::Container(..))).collect();
    assert_eq!(containers.len(), 1, "only the catalog is stored");
    let bare = common::faults::without_parity(&disk);
    assert!(bare.damage(&containers[0].name, Damage::Flip { offset: 1000, mask: 1 }));
    let options = sandbox.restore_options(target.path()).with_delete(true);
    let repository = sandbox.at(bare).repository();
    let summary = restore::restore(&repository, &view(&repository, id), &options, &resources()).expect("a restore");
    assert!(summary.problems >= 1);
    assert_eq!(summary.deleted, 0);
    assert_eq!(tree::read(&root).keys().collect::<Vec<_>>(), whole.keys().collect::<Vec<_>>());
}

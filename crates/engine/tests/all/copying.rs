//! Snapshots copied from one repository into another: they restore alike, what is there already is not copied again,
//! only what differs is read, and neither damage in the source nor a fault of the destination makes a copy that is not
//! its original.

use crate::common::faults::{at_every_request, at_every_write, copy as copy_of};
use crate::common::log::Log;
use crate::common::scene::Scene;
use crate::common::{self, Sandbox, heard_by, noise, resources};
use siltstone_engine::backup::CheckpointRule;
use siltstone_engine::check::ReadData;
use siltstone_engine::copy::{CopyOptions, CopySummary, Originals, copy};
use siltstone_engine::snapshots::{SnapshotFilter, list};
use siltstone_engine::usage::Usage;
use siltstone_engine::{EngineError, Observer, Resources, browse};
use siltstone_store::SnapshotId;
use siltstone_store::catalog::{Content, Metadata};
use siltstone_store::container::ContainerKind;
use siltstone_store::recipe::{Piece, Recipe};
use siltstone_store::storage::{Damage, Recorder, SimulatedDisk, SimulatedRemote, Storage, Trouble};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A new repository on a disk of its own, which knows where the source lies.
fn beside(from: &Sandbox) -> Sandbox {
    beside_on(from, SimulatedDisk::new())
}

fn beside_on(from: &Sandbox, storage: impl Storage + 'static) -> Sandbox {
    let sandbox = from.at(storage);
    common::init(sandbox.storage.clone()).expect("a repository");
    sandbox
}

fn options(sandbox: &Sandbox) -> CopyOptions {
    CopyOptions::default().with_backup(sandbox.options().with_take_over(true))
}

fn try_copy(from: &Sandbox, into: &Sandbox, resources: &Resources) -> Result<CopySummary, EngineError> {
    try_copy_with(from, into, &options(into), resources)
}

fn try_copy_with(
    from: &Sandbox,
    into: &Sandbox,
    options: &CopyOptions,
    resources: &Resources,
) -> Result<CopySummary, EngineError> {
    let source = from.repository();
    let snapshots = list(&source, &SnapshotFilter::default())?;
    let originals = Originals { repository: &source, snapshots: &snapshots, fetches: 2 };
    let destination = siltstone_store::repository::Repository::open(into.storage.clone(), common::PASSWORD)?;
    copy(&originals, &destination, options, resources)
}

fn copied(from: &Sandbox, into: &Sandbox) -> CopySummary {
    let log = Log::default();
    let summary = try_copy(from, into, &heard_by(&log)).expect("a copy");
    assert_eq!(log.problems(), [""; 0]);
    summary
}

/// The copy of a snapshot.
fn copy_in(into: &Sandbox, original: SnapshotId) -> SnapshotId {
    let found = into.snapshots().into_iter().find(|view| view.snapshot.id.origin() == original.origin());
    found.expect("a copy").snapshot.id
}

/// Objects written or deleted since the last reset.
fn writes(recorder: &Recorder<SimulatedDisk>) -> u64 {
    let calls = recorder.reset().total();
    calls.puts + calls.creates + calls.deletes
}

/// All that a catalog says of a snapshot, but for the numbers of chunks: of files, their holes and whether they have
/// content.
fn entries(sandbox: &Sandbox, id: SnapshotId) -> Vec<(String, Metadata, String)> {
    let mut entries = Vec::new();
    let mut keep = |entry: &siltstone_store::catalog::Entry| {
        let content = match &entry.content {
            Content::File { size, recipe } => format!("{size} bytes, {}", holes(recipe)),
            other => format!("{other:?}"),
        };
        entries.push((entry.path.to_string(), entry.metadata.clone(), content));
        Ok(())
    };
    browse::ls(&sandbox.repository(), &sandbox.view(id), None, true, &mut keep).expect("a listing");
    entries
}

fn holes(recipe: &Recipe) -> String {
    let hole = |piece: &Piece| if let Piece::Hole(bytes) = piece { Some(*bytes) } else { None };
    match recipe {
        Recipe::Inline(pieces) => format!("holes {:?}", pieces.iter().filter_map(hole).collect::<Vec<_>>()),
        Recipe::Indirect(parts) => format!("a long recipe of {}", parts.iter().map(|part| part.bytes).sum::<u64>()),
    }
}

/// A file of blocks with a hole before each.
fn write_sparse(sandbox: &Sandbox, name: &str, blocks: u64) {
    let file = File::create(sandbox.source().join(name)).expect("a file");
    for at in 0..blocks {
        file.write_all_at(&noise(at, 4096), (2 * at + 1) * 65_536).expect("written");
    }
    file.set_len(2 * blocks * 65_536 + 1_000_000).expect("a length");
}

/// A source with every kind of entry that anybody can make.
fn write_everything(sandbox: &Sandbox) {
    sandbox.write("large", &noise(1, 6_000_000));
    sandbox.write("empty", b"");
    for at in 0..40 {
        sandbox.write(&format!("many/{at}"), &noise(100 + at, 3000));
    }
    sandbox.write("linked/one", &noise(2, 200_000));
    let (one, two) = (sandbox.source().join("linked/one"), sandbox.source().join("linked/two"));
    std::fs::hard_link(&one, &two).expect("a link");
    std::fs::hard_link(&one, sandbox.source().join("linked/three")).expect("a link");
    sandbox.symlink("link", "large");
    sandbox.write("strange/mode", b"x");
    let mode = std::fs::Permissions::from_mode(0o4751);
    std::fs::set_permissions(sandbox.source().join("strange/mode"), mode).expect("a mode");
    let pipe = sandbox.source().join("strange/pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).expect("a pipe");
    // Not every file system has them.
    let attribute = rustix::fs::XattrFlags::empty();
    let _ = rustix::fs::lsetxattr(sandbox.source().join("strange/mode"), "user.colour", b"blue", attribute);
    write_sparse(sandbox, "holes", 5);
    write_sparse(sandbox, "many-holes", 1200);
}

#[test]
fn a_copy_restores_to_what_its_original_does_and_says_the_same_of_every_entry() {
    let mut from = Scene::new();
    let into = beside(&from.sandbox);
    write_everything(&from.sandbox);
    from.backup();
    from.sandbox.write("large", &[noise(1, 3_000_000), noise(7, 2_000_000)].concat());
    from.sandbox.remove("many/7");
    from.sandbox.write("new/file", &noise(8, 100_000));
    from.backup();
    from.sandbox.write("many/9", b"shorter");
    from.backup();

    // Little is fetched ahead, so that the large files take several windows.
    let summary = try_copy(&from.sandbox, &into, &resources().with_workers(40)).expect("a copy");
    assert_eq!((summary.copied.len(), summary.skipped, summary.failed), (3, 0, 0));
    for original in &from.ids {
        let copy = copy_in(&into, *original);
        assert_ne!(copy, *original, "each repository has identities of its own");
        assert_eq!(copy.short(), original.short(), "and people see the same");
        assert_eq!(entries(&into, copy), entries(&from.sandbox, *original));
        assert!(into.restored(copy) == from.trees[original]);
        let (theirs, ours) = (from.sandbox.view(*original).snapshot, into.view(copy).snapshot);
        assert_eq!(
            (ours.time, ours.host, ours.user, ours.paths),
            (theirs.time, theirs.host, theirs.user, theirs.paths)
        );
        assert_eq!((ours.tags, ours.description, ours.partial), (theirs.tags, theirs.description, theirs.partial));
    }
    assert_eq!(into.check(ReadData::All).findings, []);
}

/// A copy without what is damaged says so in its statistics; the next one reads again what the one before lacks.
#[test]
fn what_is_damaged_can_be_left_out_of_a_copy() {
    let mut from = Scene::new();
    from.migrate = false;
    from.sandbox.write("kept", &noise(1, 50_000));
    from.backup();
    from.sandbox.write("hit", &noise(2, 50_000));
    let hit = from.backup();
    from.sandbox.write("later", &noise(3, 50_000));
    let later = from.backup();
    let whole = common::faults::copy(&from.disk);
    common::faults::forget_parity(&from.disk);
    let view = from.sandbox.view(hit);
    let manifest = from.sandbox.repository().manifest(view.series).expect("a manifest").expect("a manifest");
    let of_hit: Vec<_> = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data).collect();
    let name = of_hit[1].object_name(view.series);
    assert!(from.disk.damage(&name, Damage::Flip { offset: 20_000, mask: 8 }));

    let (into, log) = (beside(&from.sandbox), Log::default());
    let skipping = options(&into).with_skip_damaged(true);
    let summary = try_copy_with(&from.sandbox, &into, &skipping, &heard_by(&log)).expect("copies");
    assert_eq!((summary.copied.len(), summary.failed, summary.incomplete), (3, 0, 2));
    assert!(log.tells_of("source/hit: cannot be read"), "{:?}", log.problems());
    let problems = |id| into.view(copy_in(&into, id)).snapshot.statistics.problems;
    assert_eq!([from.ids[0], hit, later].map(problems), [0, 1, 1]);
    let restored = into.restored(copy_in(&into, later));
    let expected: BTreeMap<_, _> = from.trees[&later].iter().filter(|(path, _)| !path.ends_with(b"hit")).collect();
    assert_eq!(restored.keys().collect::<Vec<_>>(), expected.into_keys().collect::<Vec<_>>());

    // Once the source is whole, the next copy has what the one before lacks.
    let mended = from.sandbox.at(whole);
    mended.write("last", &noise(4, 50_000));
    let last = mended.backup();
    let tree = common::tree::read(&mended.source());
    let summary = copied(&mended, &into);
    assert_eq!((summary.copied.len(), summary.incomplete), (1, 0));
    assert!(into.restored(copy_in(&into, last)) == tree);
    assert_eq!(into.check(ReadData::All).findings, []);
}

#[test]
fn what_is_there_is_not_copied_again_also_as_the_copy_of_a_copy() {
    let from = Scene::with_two_snapshots().sandbox;
    let recorder = Arc::new(Recorder::new(SimulatedDisk::new()));
    let (into, third) = (Sandbox::on(recorder.clone()), Sandbox::new());
    copied(&from, &into);
    recorder.reset();
    let again = copied(&from, &into);
    assert_eq!((again.copied.len(), again.skipped), (0, 2));
    assert_eq!(writes(&recorder), 0);

    copied(&into, &third);
    assert_eq!(copied(&from, &third).skipped, 2, "they came by way of the second repository");
    assert_eq!(copied(&third, &from).skipped, 2, "and are in the first");
}

#[test]
fn what_the_destination_forgot_is_copied_again_and_what_it_marked_is_not() {
    let from = Scene::with_two_snapshots();
    let into = beside(&from.sandbox);
    copied(&from.sandbox, &into);
    let [first, second] = [copy_in(&into, from.ids[0]), copy_in(&into, from.ids[1])];
    into.forget(&[first], false);
    into.mark(&[second], 4_000_000_000, 1000);
    let again = copied(&from.sandbox, &into);
    assert_eq!((again.copied.len(), again.skipped), (1, 1));
    let back = copy_in(&into, from.ids[0]);
    assert_ne!(back, first, "an identity is never used twice");
    assert!(into.restored(back) == from.trees[&from.ids[0]]);
    assert_eq!(into.check(ReadData::All).findings, []);
}

#[test]
fn only_what_differs_from_the_snapshot_copied_before_is_read() {
    let mut from = Scene::new();
    let recorder = Arc::new(Recorder::new(from.disk.clone()));
    from.sandbox.storage = recorder.clone();
    for at in 0..20 {
        from.sandbox.write(&format!("{at}"), &noise(at, 400_000));
    }
    from.backup();
    let into = beside(&from.sandbox);
    copied(&from.sandbox, &into);
    from.sandbox.write("3", &noise(50, 300_000));
    // Times and inode of another file differ, its content does not.
    from.sandbox.remove("4");
    from.sandbox.write("4", &noise(4, 400_000));
    let id = from.backup();
    recorder.reset();
    let summary = copied(&from.sandbox, &into);
    assert_eq!(summary.read_bytes, 300_000);
    let calls = recorder.reset();
    let view = from.sandbox.view(id);
    let manifest = from.sandbox.repository().manifest(view.series).expect("a manifest").expect("a manifest");
    let data = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data);
    let read: u64 = data.map(|record| calls.of(&record.object_name(view.series)).bytes_read).sum();
    assert!(read < 700_000, "{read} bytes of 8 MB: the regions of one file, and indexes");
    assert!(into.restored(copy_in(&into, id)) == from.trees[&id]);
}

#[test]
fn snapshots_of_which_anything_is_damaged_are_named_and_left_out() {
    let mut from = Scene::new();
    from.migrate = false;
    from.sandbox.write("kept", &noise(1, 50_000));
    let good = from.backup();
    from.sandbox.write("hit", &noise(2, 50_000));
    let hit = from.backup();
    from.sandbox.remove("hit");
    from.sandbox.write("later", &noise(3, 50_000));
    let later = from.backup();
    common::faults::forget_parity(&from.disk);
    let manifests = from.sandbox.repository();
    let view = from.sandbox.view(hit);
    let manifest = manifests.manifest(view.series).expect("a manifest").expect("a manifest");
    let of_hit: Vec<_> = manifest.containers.iter().filter(|record| record.kind == ContainerKind::Data).collect();
    let name = of_hit[1].object_name(view.series);
    assert!(from.disk.damage(&name, Damage::Flip { offset: 20_000, mask: 8 }));

    let (into, log) = (beside(&from.sandbox), Log::default());
    let summary = try_copy(&from.sandbox, &into, &heard_by(&log)).expect("the others are copied");
    assert_eq!((summary.copied.len(), summary.failed), (2, 1));
    assert!(log.tells_of("source/hit: cannot be read"), "{:?}", log.problems());
    assert!(log.tells_of(&format!("snapshot {}", hit.short())), "{:?}", log.problems());
    let ids: Vec<_> = into.snapshots().iter().map(|view| view.snapshot.id.origin()).collect();
    assert_eq!(ids, [good.origin(), later.origin()]);
    for id in [good, later] {
        assert!(into.restored(copy_in(&into, id)) == from.trees[&id]);
    }
    let report = into.check(ReadData::All);
    assert_eq!((report.findings, report.orphans), (Vec::new(), 0));
}

/// Also where damage is left out: silence is none.
#[test]
fn a_source_that_does_not_answer_any_more_ends_the_copy() {
    let remote = SimulatedRemote::new();
    let mut from = Scene::new();
    from.sandbox = Sandbox::on(Arc::new(remote.clone()));
    for at in 0..300 {
        from.sandbox.write(&format!("{at}"), &noise(at, 30_000));
    }
    from.backup();
    from.sandbox.write("more", &noise(1000, 30_000));
    from.backup();
    let source = from.sandbox.repository();
    let snapshots = from.sandbox.snapshots();
    let originals = Originals { repository: &source, snapshots: &snapshots, fetches: 2 };
    let copied_until = |nth: u64| {
        let into = beside(&from.sandbox);
        remote.set_trouble(Trouble::Busy { nth, count: u64::MAX });
        let options = options(&into).with_skip_damaged(nth % 2 == 1);
        let result = copy(&originals, &into.repository(), &options, &resources());
        let requests = remote.requests().len() as u64;
        remote.set_trouble(Trouble::None);
        (result, requests, into.snapshots().len())
    };
    let (whole, needed, _) = copied_until(u64::MAX);
    assert_eq!(whole.expect("a copy").copied.len(), 2);
    let mut failed = 0;
    for nth in 0..needed {
        let (result, requests, made) = copied_until(nth);
        match result {
            Err(EngineError::Store(error)) => {
                failed += 1;
                assert!(!error.is_damage() && made < 2, "request {nth}: {error}");
                assert!(requests < needed + 20, "request {nth}: it went on for {requests} of {needed}");
            }
            // How many there are depends on which thread comes first.
            Ok(_) => assert!(requests <= nth, "request {nth} failed, and nothing was said"),
            Err(other) => panic!("request {nth}: {other}"),
        }
    }
    assert!(failed > 5, "{failed} of {needed}");
}

/// Asks to stop once so many bytes are done.
struct StopsAfter(AtomicU64);

impl Observer for StopsAfter {
    fn advance(&self, _: u64, bytes: u64) {
        let left = self.0.load(Ordering::Relaxed).saturating_sub(bytes);
        self.0.store(left, Ordering::Relaxed);
    }

    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn a_copy_that_was_stopped_goes_on_where_it_was() {
    let mut from = Scene::new();
    let into = beside(&from.sandbox);
    from.sandbox.write("a", &noise(1, 8_000_000));
    from.sandbox.write("b", &noise(2, 8_000_000));
    from.backup();
    from.sandbox.write("c", &noise(3, 1_000_000));
    from.backup();
    let every_piece = CheckpointRule::DEFAULT.with_every(Duration::ZERO).with_bytes(0).with_bytes_least(1);
    let options = options(&into);
    let backup = options.backup.clone().with_checkpoint(Some(every_piece));
    let stops = Arc::new(StopsAfter(AtomicU64::new(12_000_000)));
    let stopped = try_copy_with(&from.sandbox, &into, &options.with_backup(backup), &heard_by(stops as Arc<_>));
    assert!(matches!(stopped, Err(EngineError::Interrupted)), "{stopped:?}");
    assert!(into.snapshots().iter().all(|view| view.snapshot.partial));

    let summary = copied(&from.sandbox, &into);
    assert_eq!((summary.copied.len(), summary.skipped), (2, 0));
    assert!(summary.added_plain_bytes < 12_000_000, "what was stored is known: {}", summary.added_plain_bytes);
    for id in &from.ids {
        assert!(into.restored(copy_in(&into, *id)) == from.trees[id]);
    }
    assert_eq!(into.snapshots().len(), 2, "checkpoints are gone");
}

#[test]
fn partial_snapshots_are_left_to_the_backup_that_goes_on_from_them() {
    let mut from = Scene::new();
    let into = beside(&from.sandbox);
    from.sandbox.write("a", &noise(1, 8_000_000));
    from.backup();
    from.sandbox.write("b", &noise(2, 8_000_000));
    let every_piece = CheckpointRule::DEFAULT.with_every(Duration::ZERO).with_bytes(0).with_bytes_least(1);
    let stops = Arc::new(StopsAfter(AtomicU64::new(13_000_000)));
    let options = from.sandbox.options().with_force(true).with_checkpoint(Some(every_piece));
    let stopped = from.sandbox.try_backup_within(&options, &from.sandbox.heard_by(stops as Arc<_>));
    assert!(matches!(stopped, Err(EngineError::Interrupted)));
    let summary = copied(&from.sandbox, &into);
    assert_eq!((summary.copied.len(), summary.partial), (1, 1));
}

#[test]
fn a_dry_run_says_what_would_be_copied_and_writes_nothing() {
    let from = Scene::with_two_snapshots();
    let recorder = Arc::new(Recorder::new(SimulatedDisk::new()));
    let into = Sandbox::on(recorder.clone());
    recorder.reset();
    let options = options(&into).with_dry_run(true);
    let summary = try_copy_with(&from.sandbox, &into, &options, &resources()).expect("a dry run");
    let originals: Vec<_> = summary.copied.iter().map(|copied| (copied.original, copied.copy)).collect();
    assert_eq!(originals, from.ids.iter().map(|id| (*id, None)).collect::<Vec<_>>());
    assert_eq!((writes(&recorder), summary.usage), (0, Usage::default()));
}

/// Estimates lie within a quarter of what is then read and stored.
fn assert_near(expected: &CopySummary, done: &CopySummary) {
    let figures =
        |of: &CopySummary| [of.read_bytes, of.added_plain_bytes, of.added_stored_bytes].map(|bytes| bytes / 1000);
    for (expected, done) in figures(expected).into_iter().zip(figures(done)) {
        assert!(expected * 4 <= done * 5 + 40 && done * 4 <= expected * 5 + 40, "{expected} kB expected, {done} kB");
    }
}

#[test]
fn a_dry_run_estimates_what_is_new_to_the_destination() {
    let mut from = Scene::new();
    let remote = Sandbox::on(Arc::new(SimulatedRemote::new()));
    from.sandbox.write("kept", &noise(1, 900_000));
    from.backup();
    from.sandbox.write("added", &noise(2, 400_000));
    from.backup();
    let dry_run = || {
        let options = options(&remote).with_dry_run(true);
        try_copy_with(&from.sandbox, &remote, &options, &resources()).expect("a dry run")
    };
    let expected = dry_run();
    assert!(expected.usage.puts > 4 && expected.usage.bytes_sent > 1_300_000, "{:?}", expected.usage);
    assert_near(&expected, &copied(&from.sandbox, &remote));
    let nothing = dry_run();
    assert_eq!((nothing.skipped, nothing.read_bytes, nothing.usage), (2, 0, Usage::default()));
    from.sandbox.write("later", &noise(3, 500_000));
    from.backup();
    let expected = {
        let options = options(&remote).with_dry_run(true);
        try_copy_with(&from.sandbox, &remote, &options, &resources()).expect("a dry run")
    };
    assert!((450_000..600_000).contains(&expected.read_bytes), "{expected:?}");
    assert_near(&expected, &copied(&from.sandbox, &remote));
}

#[test]
fn a_repository_is_not_copied_into_itself() {
    let from = Scene::with_two_snapshots().sandbox;
    let refused = try_copy(&from, &from, &resources());
    assert!(matches!(refused, Err(EngineError::SameRepository { .. })), "{refused:?}");
}

#[test]
fn snapshots_copied_between_other_commits_of_the_series_restore_as_well() {
    let mut from = Scene::with_two_snapshots();
    let (into, elsewhere) = (beside(&from.sandbox), Scene::with_two_snapshots().sandbox);
    copied(&from.sandbox, &into);
    // The same series from another repository: the last snapshot is no copy of one of this source.
    copied(&elsewhere, &into);
    let id = from.backup();
    let summary = copied(&from.sandbox, &into);
    assert_eq!(summary.copied.len(), 1);
    assert!(into.restored(copy_in(&into, id)) == from.trees[&id]);
    assert_eq!(into.check(ReadData::All).findings, []);
}

#[test]
fn whatever_write_of_the_destination_fails_copies_are_whole_and_the_next_run_completes_them() {
    let from = Scene::with_two_snapshots();
    let into = SimulatedDisk::new();
    let sandbox = beside_on(&from.sandbox, into.clone());
    let run = |disk: &SimulatedDisk| copy_onto(&from, &sandbox, disk).map(|summary| summary.copied.len());
    at_every_write(&copy_of(&into), run, |found| {
        let there = assert_copies(&from, &sandbox.at(found.disk.clone()), &found.story);
        if let Ok(count) = found.result {
            assert_eq!((there, *count), (2, 2), "{}", found.story);
        }
        if found.recover {
            let summary =
                copy_onto(&from, &sandbox, &found.disk).unwrap_or_else(|error| panic!("{error}: {}", found.story));
            assert_eq!(summary.copied.len() + there, 2, "{}", found.story);
            assert_eq!(assert_copies(&from, &sandbox.at(found.disk.clone()), &found.story), 2);
        }
    });
}

#[test]
fn a_copy_with_trouble_at_any_request_of_the_destination_is_whole_or_not_there() {
    let from = Scene::with_two_snapshots();
    let disk = SimulatedDisk::new();
    let sandbox = beside_on(&from.sandbox, disk.clone());
    let into = SimulatedRemote::holding(&disk);
    let copy_there = |remote: &SimulatedRemote| {
        let options = CopyOptions::default().with_backup(sandbox.options().with_take_over(true));
        try_copy_with(&from.sandbox, &sandbox.at(remote.clone()), &options, &resources())
            .map(|summary| summary.copied.len())
    };
    at_every_request(&into, copy_there, |remote, result, story| {
        let found = sandbox.at(remote.to_disk());
        let there = assert_copies(&from, &found, story);
        if let Ok(count) = result {
            assert_eq!((there, *count), (2, 2), "{story}");
        }
        let count = copy_there(remote).unwrap_or_else(|error| panic!("{error}: {story}"));
        assert_eq!(count + there, 2, "{story}");
        assert_eq!(assert_copies(&from, &sandbox.at(remote.to_disk()), story), 2);
    });
}

fn copy_onto(from: &Scene, sandbox: &Sandbox, disk: &SimulatedDisk) -> Result<CopySummary, EngineError> {
    // Settling writes in commits of its own, which are hit where backups are.
    let options = CopyOptions::default();
    let options = options.with_backup(sandbox.options().with_take_over(true).with_migrate(false));
    try_copy_with(&from.sandbox, &sandbox.at(disk.clone()), &options, &resources())
}

/// Every snapshot found is what its original is; gives how many there are.
fn assert_copies(from: &Scene, found: &Sandbox, story: &str) -> usize {
    let views = found.snapshots();
    for view in &views {
        let original = from.ids.iter().find(|id| id.origin() == view.snapshot.id.origin()).expect("an original");
        assert!(found.restored(view.snapshot.id) == from.trees[original], "after {story}");
    }
    assert_eq!(found.check(ReadData::All).findings, [], "after {story}");
    views.len()
}

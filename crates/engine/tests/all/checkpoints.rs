//! Checkpoints: what a backup that was interrupted had done is not lost, is no whole snapshot, and is gone when the
//! whole stands.

use crate::common::policy::CHUNK_BY_CHUNK;
use crate::common::scene::assert_part;
use crate::common::{Sandbox, noise, tree};
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, CheckpointRule, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::delta::Deltas;
use siltstone_engine::forget::policy::{KeepPolicy, apply};
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_engine::{EngineError, Notice, Observer};
use siltstone_store::SnapshotId;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Enough for what these tests keep: no time, some bytes.
fn rule() -> CheckpointRule {
    CheckpointRule::DEFAULT.with_every(Duration::from_secs(9999)).with_bytes(1 << 40).with_bytes_least(1 << 16)
}

/// A checkpoint wherever there can be one.
pub(crate) fn every_piece() -> CheckpointRule {
    CheckpointRule::DEFAULT.with_every(Duration::ZERO).with_bytes(0).with_bytes_least(1)
}

const FILE_BYTES: usize = 300_000;

/// Asks to stop once so many bytes are done.
pub(crate) struct StopsAfter {
    bytes: u64,
    done: AtomicU64,
    checkpoints: Mutex<Vec<(SnapshotId, bool)>>,
}

impl StopsAfter {
    pub(crate) fn bytes(bytes: usize) -> Self {
        Self { bytes: bytes as u64, done: AtomicU64::new(0), checkpoints: Mutex::default() }
    }
}

impl Observer for StopsAfter {
    fn advance(&self, _: u64, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }

    fn notice(&self, notice: &Notice) {
        if let Notice::Checkpoint { snapshot, is_last } = notice {
            self.checkpoints.lock().expect("a lock").push((*snapshot, *is_last));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.done.load(Ordering::Relaxed) >= self.bytes
    }
}

/// Files of noise. They are left to age: what changed just before a backup is read again by the next.
fn sandbox_with(files: usize) -> Sandbox {
    let sandbox = Sandbox::new();
    for number in 0..files {
        sandbox.write(&format!("folder/{number:03}"), &noise(number as u64, FILE_BYTES));
    }
    std::thread::sleep(Duration::from_millis(60));
    sandbox
}

fn options(sandbox: &Sandbox) -> BackupOptions {
    sandbox.options().with_checkpoint(Some(rule()))
}

/// A backup that is interrupted after so many bytes; gives the partial snapshot it left.
fn interrupted(sandbox: &Sandbox, options: &BackupOptions, bytes: usize) -> SnapshotView {
    let observer = Arc::new(StopsAfter::bytes(bytes));
    let source = Source::Paths(vec![sandbox.source()]);
    let error =
        backup::backup(&sandbox.repository(), source, options, &sandbox.resources().with_observer(observer.clone()))
            .expect_err("interrupted");
    assert!(matches!(error, EngineError::Interrupted), "{error}");
    let made = observer.checkpoints.lock().expect("a lock");
    let (id, is_last) = *made.last().expect("a checkpoint");
    assert!(is_last);
    let view = sandbox.view(id);
    assert!(view.snapshot.partial);
    assert_part(&sandbox.restored(id), &tree::read(&sandbox.source()), "an interrupted backup");
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    assert_eq!(sandbox.check(ReadData::None).orphans, 0);
    view
}

/// A backup to its end: only one whole snapshot more, which restores, and no partial one.
fn whole(sandbox: &Sandbox, options: &BackupOptions) -> BackupSummary {
    let summary = sandbox.try_backup(options).expect("a backup");
    let id = summary.snapshot.expect("a snapshot");
    assert_eq!(sandbox.snapshots().iter().filter(|view| view.snapshot.partial).count(), 0);
    assert_eq!(sandbox.restored(id), tree::read(&sandbox.source()));
    let report = sandbox.check(ReadData::All);
    assert_eq!((report.findings, report.orphans), (Vec::new(), 0));
    summary
}

#[test]
fn an_interrupted_first_backup_is_continued() {
    let sandbox = sandbox_with(40);
    let partial = interrupted(&sandbox, &options(&sandbox), 20 * FILE_BYTES).snapshot;
    assert!(partial.statistics.files >= 15, "{:?}", partial.statistics);
    let summary = whole(&sandbox, &options(&sandbox));
    assert_eq!(summary.parent, Some(partial.id));
    assert_eq!(summary.statistics.files_unchanged, partial.statistics.files, "none is read again");
    let (before, after) = (partial.statistics.added_plain_bytes, summary.statistics.added_plain_bytes);
    assert_eq!(before + after, 40 * FILE_BYTES as u64, "nothing is sent twice");
}

#[test]
fn a_large_file_is_kept_as_far_as_it_came_under_another_name() {
    let sandbox = Sandbox::new();
    sandbox.write("large", &noise(1, 12 << 20));
    let partial = interrupted(&sandbox, &options(&sandbox), 6 << 20).snapshot;
    let restored = sandbox.restored(partial.id);
    assert!(!restored.contains_key(b"large".as_slice()), "its name is for the whole file");
    let half = &restored[b"large.silt-partial".as_slice()];
    assert!((5 << 20..12 << 20).contains(&half.content.len()), "{half:?}");
    let summary = whole(&sandbox, &options(&sandbox));
    let added = partial.statistics.added_plain_bytes + summary.statistics.added_plain_bytes;
    assert!(added < (12 << 20) + 200_000, "all but the chunk at which it was cut off is known: {added}");
}

#[test]
fn what_a_later_interrupted_backup_had_not_reached_is_taken_from_the_whole_one_before() {
    for cached in [true, false] {
        let sandbox = Sandbox { has_cache: cached, ..sandbox_with(30) };
        let options = options(&sandbox);
        let first = whole(&sandbox, &options).snapshot.expect("a snapshot");
        for number in 0..10 {
            sandbox.write(&format!("folder/{number:03}"), &noise(100 + number, FILE_BYTES));
        }
        std::thread::sleep(Duration::from_millis(60));
        let partial = interrupted(&sandbox, &options, 6 * FILE_BYTES).snapshot;
        let summary = whole(&sandbox, &options);
        assert_eq!(summary.statistics.files_unchanged, 20 + partial.statistics.files_changed, "cached: {cached}");
        assert_eq!(summary.statistics.read_bytes + partial.statistics.read_bytes, 10 * FILE_BYTES as u64);
        let ids: Vec<_> = sandbox.snapshots().iter().map(|view| view.snapshot.id).collect();
        assert_eq!(ids, [first, summary.snapshot.expect("a snapshot")]);
    }
}

#[test]
fn a_run_that_is_interrupted_earlier_than_the_one_before_costs_nothing_of_it() {
    let sandbox = sandbox_with(40);
    let far = interrupted(&sandbox, &options(&sandbox), 30 * FILE_BYTES).snapshot;
    for number in 0..4 {
        sandbox.write(&format!("folder/{number:03}"), &noise(100 + number, FILE_BYTES));
    }
    std::thread::sleep(Duration::from_millis(60));
    interrupted(&sandbox, &options(&sandbox), 2 * FILE_BYTES);
    assert_eq!(sandbox.snapshots().len(), 2, "both are needed");
    let summary = whole(&sandbox, &options(&sandbox));
    assert!(summary.statistics.files_unchanged >= far.statistics.files - 4, "{:?}", summary.statistics);
}

#[test]
fn checkpoints_at_every_piece_leave_what_none_would_leave() {
    let all = [Deltas::default(), Deltas::Forward { depth: 4 }, CHUNK_BY_CHUNK, Deltas::Off];
    for deltas in all {
        let sandbox = sandbox_with(12);
        let options = sandbox.options().with_deltas(deltas).with_checkpoint(Some(every_piece()));
        whole(&sandbox, &options);
        for number in 0..6 {
            let mut edited = noise(number, FILE_BYTES);
            edited[1000..1100].fill(7);
            sandbox.write(&format!("folder/{number:03}"), &edited);
        }
        sandbox.remove("folder/011");
        whole(&sandbox, &options);
        whole(&sandbox, &options);
        assert_eq!(sandbox.snapshots().len(), 3);
        let first = sandbox.snapshots()[0].snapshot.id;
        sandbox.forget(&[first], false);
        assert_eq!(sandbox.check(ReadData::All).findings, [], "{deltas:?}");
    }
}

#[test]
fn a_run_replaces_its_own_checkpoints() {
    let sandbox = sandbox_with(12);
    let options = sandbox.options().with_checkpoint(Some(every_piece()));
    interrupted(&sandbox, &options, 8 * FILE_BYTES);
    assert_eq!(sandbox.snapshots().len(), 1);
}

#[test]
fn a_stream_that_is_interrupted_is_known_as_far_as_it_came() {
    let sandbox = Sandbox::new();
    let bytes = noise(5, 12 << 20);
    let stream = || Source::Stream { name: "/dump".into(), reader: Box::new(std::io::Cursor::new(bytes.clone())) };
    let observer = Arc::new(StopsAfter::bytes(6 << 20));
    let repository = sandbox.repository();
    backup::backup(&repository, stream(), &options(&sandbox), &sandbox.resources().with_observer(observer))
        .expect_err("interrupted");
    let summary = backup::backup(&repository, stream(), &options(&sandbox), &sandbox.resources()).expect("a backup");
    assert!(summary.statistics.added_plain_bytes < 8 << 20, "{:?}", summary.statistics);
    assert_eq!(sandbox.snapshots().len(), 1);
}

#[test]
fn a_partial_snapshot_is_neither_the_latest_nor_counted() {
    let sandbox = sandbox_with(20);
    let resolve = || snapshots::resolve(&sandbox.repository(), "latest", &SnapshotFilter::default());
    let partial = interrupted(&sandbox, &options(&sandbox), 10 * FILE_BYTES).snapshot.id;
    assert_eq!(resolve().expect("it is all there is").0.snapshot.id, partial);
    let first = whole(&sandbox, &options(&sandbox)).snapshot.expect("a snapshot");
    for number in 0..10 {
        sandbox.write(&format!("folder/{number:03}"), &noise(100 + number, FILE_BYTES));
    }
    let partial = interrupted(&sandbox, &options(&sandbox), 5 * FILE_BYTES).snapshot.id;
    assert_eq!(resolve().expect("latest").0.snapshot.id, first);
    let views = sandbox.snapshots();
    let decisions = apply(&views, &KeepPolicy::default().with_last(Some(1)), &jiff::Zoned::now());
    assert!(decisions.iter().all(|decision| decision.keep), "the partial one takes no place");
    let of_partial = views.iter().position(|view| view.snapshot.id == partial).expect("it is listed");
    assert_eq!(decisions[of_partial].reasons, ["partial"]);
}

#[test]
fn too_little_is_not_worth_a_checkpoint() {
    let sandbox = sandbox_with(4);
    let rule = every_piece().with_bytes_least(1 << 30);
    for checkpoint in [Some(rule), None] {
        let options = sandbox.options().with_checkpoint(checkpoint);
        let observer = Arc::new(StopsAfter::bytes(2 * FILE_BYTES));
        let source = Source::Paths(vec![sandbox.source()]);
        backup::backup(&sandbox.repository(), source, &options, &sandbox.resources().with_observer(observer))
            .expect_err("interrupted");
        assert_eq!(sandbox.snapshots().len(), 0);
    }
}

#[test]
fn a_file_that_is_taken_out_is_gone_from_a_checkpoint_though_it_was_half_read() {
    let sandbox = Sandbox::new();
    sandbox.write("kept", &noise(2, FILE_BYTES));
    sandbox.write("large", &noise(1, 12 << 20));
    interrupted(&sandbox, &options(&sandbox), 6 << 20);
    let done = sandbox.try_rewrite("large", &sandbox.forget_options(false)).expect("a rewrite");
    assert_eq!(done.snapshots_rewritten, 1);
    let partial = sandbox.snapshots().remove(0).snapshot;
    assert!(partial.partial);
    let restored = sandbox.restored(partial.id);
    assert!(!restored.keys().any(|name| name.starts_with(b"large")), "{:?}", restored.keys());
    assert!(restored.contains_key(b"kept".as_slice()));
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    whole(&sandbox, &options(&sandbox));
}

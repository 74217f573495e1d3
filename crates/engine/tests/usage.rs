//! Usage that dry runs at a distance expect of the runs, against the requests that these then make.

mod common;

use common::{Sandbox, noise, resources};
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::forget;
use siltstone_engine::restore;
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_engine::usage::Usage;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Recorder, SimulatedRemote};
use std::sync::Arc;
use tempfile::TempDir;

/// Requests of each class by which an expectation may pass the run's: the lease, and manifests listed once more.
const SURPLUS_MAX: u64 = 8;

struct Place {
    recorder: Arc<Recorder<SimulatedRemote>>,
    sandbox: Sandbox,
}

impl Place {
    /// A place with a source whose files fit into a few containers.
    fn new() -> Self {
        let recorder = Arc::new(Recorder::new(SimulatedRemote::new()));
        let sandbox = Sandbox::on(recorder.clone());
        for number in 0..60 {
            sandbox.write(&format!("folder{}/file{number}", number % 6), &noise(number, 50_000));
        }
        Self { recorder, sandbox }
    }

    /// Does something with the open repository, and returns what it asked of the place.
    fn used<T>(&self, deed: impl FnOnce(&Repository) -> T) -> (T, Usage) {
        let repository = self.sandbox.repository();
        self.recorder.reset();
        let result = deed(&repository);
        (result, Usage::from(&self.recorder.calls()))
    }

    fn backup(&self, change: impl FnOnce(BackupOptions) -> BackupOptions) -> (backup::BackupSummary, Usage) {
        let options = self.sandbox.options().with_sample_bytes(Some(0)).with_verify_written(VerifyWritten::Never);
        let (options, source) = (change(options), Source::Paths(vec![self.sandbox.source()]));
        let deed = |repository: &Repository| backup::backup(repository, source, &options, &self.sandbox.resources());
        let (summary, usage) = self.used(deed);
        (summary.expect("a backup"), usage)
    }
}

fn newest(repository: &Repository) -> SnapshotView {
    let views = snapshots::list(repository, &SnapshotFilter::default()).expect("a list");
    views.into_iter().next_back().expect("a snapshot")
}

/// Holds that a run used what was expected, or a little less.
fn assert_bounds(expected: &Usage, used: &Usage) {
    let requests = |usage: &Usage| [usage.puts, usage.lists, usage.gets];
    for (most, made) in requests(expected).into_iter().zip(requests(used)) {
        assert!((made..=made + SURPLUS_MAX).contains(&most), "{expected:?}\n{used:?}");
    }
    assert!(expected.deletes >= used.deletes, "{expected:?}\n{used:?}");
    for (most, moved) in [(expected.bytes_sent, used.bytes_sent), (expected.bytes_received, used.bytes_received)] {
        assert!(most >= moved && most <= moved + moved / 10 + (256 << 10), "{expected:?}\n{used:?}");
    }
}

#[test]
fn a_restore_reads_what_its_dry_run_expects() {
    let place = Place::new();
    place.backup(|options| options);
    place.sandbox.write("folder1/file1", &noise(101, 60_000));
    place.backup(|options| options);
    let target = TempDir::new().expect("a folder");
    let one = common::entry_path(&place.sandbox.source().join("folder2/file2"));
    for (name, below) in [("one", Some(one)), ("all", None)] {
        let options = place.sandbox.restore_options(&target.path().join(name)).with_below(below).with_verify(false);
        let restored = |options: restore::RestoreOptions| {
            move |repository: &Repository| {
                restore::restore(repository, &newest(repository), &options, &resources()).expect("a restore")
            }
        };
        let (expected, looked) = place.used(restored(options.clone().with_dry_run(true)));
        let (done, used) = place.used(restored(options));
        assert_bounds(&expected.usage, &used);
        assert_eq!((expected.containers_needed, done.usage), (done.containers_needed, Usage::default()));
        assert!(looked.bytes_received < used.bytes_received, "content is not read to expect it");
    }
}

#[test]
fn forgetting_does_what_its_dry_run_expects() {
    let place = Place::new();
    for seed in 0..3 {
        for number in 0..20 {
            place.sandbox.write(&format!("folder1/changed{number}"), &noise(1000 + 100 * seed + number, 50_000));
        }
        place.backup(|options| options.with_migrate(false));
    }
    let forgotten = |dry_run: bool| {
        place.used(|repository| {
            let keys = [newest(repository).key()];
            let options = place.sandbox.forget_options(dry_run);
            forget::forget(repository, &keys, &options, &resources()).expect("forgetting")
        })
    };
    let (expected, _) = forgotten(true);
    let (done, used) = forgotten(false);
    assert_bounds(&expected.usage, &used);
    assert_eq!(expected.usage.bytes_kept, -expected.bytes_returned());
    assert!(done.containers_deleted + done.containers_rewritten > 0, "something was to be done");
}

#[test]
fn a_backup_without_settling_does_what_its_dry_run_expects() {
    let place = Place::new();
    for _ in 0..2 {
        let (expected, looked) = place.backup(|options| options.with_dry_run(true).with_migrate(false));
        assert_eq!((looked.puts, looked.deletes), (0, 0));
        let (_, used) = place.backup(|options| options.with_migrate(false));
        let Usage { puts, lists, gets, bytes_sent, .. } = expected.usage;
        assert!(puts >= used.puts && lists >= used.lists && gets >= used.gets, "{expected:?}\n{used:?}");
        assert!(bytes_sent >= used.bytes_sent, "{expected:?}\n{used:?}");
        for number in 0..20 {
            place.sandbox.write(&format!("folder1/new{number}"), &noise(1000 + number, 50_000));
        }
    }
}

#[test]
fn nothing_is_counted_in_a_folder() {
    let sandbox = Sandbox::new();
    sandbox.write("a", &noise(1, 50_000));
    let source = || Source::Paths(vec![sandbox.source()]);
    let dry = sandbox.options().with_dry_run(true);
    let expected = backup::backup(&sandbox.repository(), source(), &dry, &sandbox.resources()).expect("a dry run");
    assert_eq!(expected.usage, Usage::default());
}

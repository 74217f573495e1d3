//! Usage that dry runs at a distance expect of the runs, against the requests that these then make.

use crate::common::{self, Sandbox, noise, resources};
use siltstone_engine::VerifyWritten;
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::forget;
use siltstone_engine::maintain::{self, MaintainSummary};
use siltstone_engine::protect::{ProtectSummary, protect};
use siltstone_engine::restore;
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_engine::usage::Usage;
use siltstone_store::config::Config;
use siltstone_store::repository::Repository;
use siltstone_store::storage::{Listing, Recorder, SimulatedDisk, SimulatedRemote, Storage};
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

    /// A place with three snapshots, between which files changed; nothing is settled.
    fn with_edits() -> Self {
        let place = Self::new();
        for seed in 0..3 {
            for number in 0..20 {
                place.sandbox.write(&format!("folder1/changed{number}"), &noise(1000 + 100 * seed + number, 50_000));
            }
            place.backup(|options| options.with_migrate(false));
        }
        place
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
    let place = Place::with_edits();
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
fn rewriting_does_what_its_dry_run_expects() {
    let place = Place::with_edits();
    let plan = place.sandbox.plan_rewrite("folder1", &place.sandbox.forget_options(false)).expect("a plan");
    let (expected, _) = place.used(|repository| plan.forecast(repository, &resources()).expect("a forecast"));
    let (done, used) = place.used(|repository| plan.execute(repository, &resources()).expect("a rewrite"));
    assert_bounds(&expected.usage, &used);
    assert_eq!(expected.usage.bytes_kept, -expected.bytes_returned());
    assert_eq!((expected.snapshots_rewritten, done.snapshots_rewritten), (3, 3));
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

/// Maintenance and parity as `silt maintain` does them.
fn maintained(repository: &Repository, sandbox: &Sandbox, parity: u8) -> (MaintainSummary, ProtectSummary) {
    let change = |config: &mut Config| {
        config.parity.data_percent = parity;
        Ok(())
    };
    repository.amend(change).expect("a setting");
    let done = maintain::maintain(repository, &sandbox.migrate_options(), &resources()).expect("maintained");
    (done, protect(repository, "user", &resources()).expect("protected"))
}

#[test]
fn maintenance_does_what_its_dry_run_expects() {
    let place = Place::with_edits();
    let options = place.sandbox.migrate_options();
    let look = |repository: &Repository| maintain::forecast(repository, Some(20), &options, &resources());
    let (expected, looked) = place.used(look);
    let expected = expected.expect("a forecast");
    assert_eq!((looked.puts, looked.deletes), (0, 0));
    let ((done, parity), used) = place.used(|repository| maintained(repository, &place.sandbox, 20));
    assert_eq!((expected.maintenance, expected.parity), (done, parity));
    assert!(done.settled > 0 && parity.protected > 0, "something was to be done: {done:?} {parity:?}");
    let mut of_run = expected.usage;
    // What is kept is not known from requests.
    of_run.bytes_kept = 0;
    assert_eq!(of_run, used);
    let (again, _) = place.used(look);
    assert_eq!(again.expect("a forecast").maintenance, MaintainSummary::default());
}

/// Also where marks are over, ghosts are due, and manifests lie in parts.
#[test]
fn a_forecast_of_maintenance_is_true_to_the_byte() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    sandbox.cut_into_parts();
    let mut ids = Vec::new();
    for seed in 0..5 {
        sandbox.write("edited", &[noise(1, 300_000), noise(10 + seed, 20_000), noise(2, 300_000)].concat());
        sandbox.write("other", &noise(20 + seed, 100_000));
        let options = sandbox.options().with_migrate(seed < 3);
        ids.extend(sandbox.try_backup(&options).expect("a backup").snapshot);
    }
    sandbox.forget(&ids[1..2], false);
    sandbox.mark(&ids[2..3], 1000, 60);
    let bytes = || disk.list(Listing::All).expect("a list").iter().map(|meta| meta.bytes).sum::<u64>();
    let before = disk.list(Listing::All).expect("a list");
    let (repository, options) = (sandbox.repository(), sandbox.migrate_options());
    let bytes_before = bytes();
    let expected = maintain::forecast(&repository, Some(10), &options, &resources()).expect("a forecast");
    assert_eq!(disk.list(Listing::All).expect("a list"), before, "nothing is written");
    assert_eq!(expected.usage, Usage::default(), "requests to a folder are not counted");
    let (done, parity) = maintained(&repository, &sandbox, 10);
    assert_eq!((expected.maintenance, expected.parity), (done, parity));
    assert!(done.settled > 0 && done.ended > 0 && parity.protected > 0, "{done:?} {parity:?}");
    assert_eq!(bytes().cast_signed() - bytes_before.cast_signed(), expected.bytes_kept);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
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

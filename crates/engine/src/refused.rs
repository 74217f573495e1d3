//! Every command where the system gives too few threads: it does all of its work, or fails and says so.

#[path = "../tests/all/common/mod.rs"]
#[allow(dead_code, reason = "these tests use a part")]
mod common;

use crate::EngineError;
use crate::check::{CheckOptions, ReadData, check};
use crate::delta::Deltas;
use crate::parallel::tests::with_threads;
use common::{Sandbox, noise, resources};
use siltstone_store::StoreError;

/// No command starts more threads than this.
const THREADS_MAX: usize = 400;

fn write(sandbox: &Sandbox, generation: u8) {
    for file in 0..5u8 {
        let mut bytes = noise(u64::from(file), 60_000);
        bytes[1000] = generation;
        sandbox.write(&format!("file {file}"), &bytes);
    }
}

/// Gives a command ever more threads until it succeeds; how often it failed, and its result.
fn until_enough<R>(run: impl Fn() -> Result<R, EngineError>, after_failure: impl Fn()) -> (usize, R) {
    for threads in 0..THREADS_MAX {
        match with_threads(threads, &run) {
            Ok(result) => return (threads, result),
            Err(EngineError::Store(StoreError::Machine { operation: "starting a thread", .. })) => after_failure(),
            Err(other) => panic!("with {threads} threads: {other}"),
        }
    }
    panic!("{THREADS_MAX} threads are not enough");
}

#[test]
fn a_backup_with_too_few_threads_fails_and_leaves_no_snapshot_nor_lease() {
    for deltas in [Deltas::Reverse { depth: 16 }, Deltas::Forward { depth: 16 }] {
        let sandbox = Sandbox::new();
        let options = sandbox.options().with_deltas(deltas).with_force(true);
        for generation in 0..3 {
            write(&sandbox, generation);
            let before = sandbox.snapshots().len();
            let is_as_before = || assert_eq!(sandbox.snapshots().len(), before);
            let (failures, _) = until_enough(|| sandbox.try_backup(&options), is_as_before);
            assert!(failures > 0);
            assert_eq!(sandbox.snapshots().len(), before + 1);
        }
        assert_eq!(sandbox.check(ReadData::All).findings, []);
    }
}

#[test]
fn a_check_with_too_few_threads_never_says_that_all_is_sound() {
    let sandbox = Sandbox::new();
    write(&sandbox, 0);
    sandbox.backup();
    let repository = sandbox.repository();
    let (failures, report) =
        until_enough(|| check(&repository, &CheckOptions::reading(ReadData::All), &resources()), || {});
    assert!(failures > 0);
    assert!(report.findings.is_empty() && report.containers > 0);
    assert_eq!(report.containers_read, report.containers);
}

#[test]
fn restore_and_forget_with_too_few_threads_fail_or_do_all() {
    let sandbox = Sandbox::new();
    let ids = [0, 1, 2].map(|generation| {
        write(&sandbox, generation);
        sandbox.backup()
    });
    let forget_options = sandbox.forget_options(false);
    // A run that fails after its commit has removed the snapshot all the same.
    let (_, summary) = until_enough(|| sandbox.try_forget(&ids[1..2], &forget_options), || {});
    assert_eq!(summary.snapshots_failed, 0);
    assert_eq!(sandbox.snapshots().len(), 2);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    let target = tempfile::tempdir().expect("a folder");
    let (failures, summary) = until_enough(|| sandbox.restore(ids[2], target.path()), || {});
    assert!(failures > 0);
    assert_eq!((summary.files_restored, summary.problems), (5, 0));
}

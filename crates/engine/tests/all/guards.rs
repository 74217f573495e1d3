//! Refusals of what is probably a mistake: sources that are gone, and removals of everything.

use crate::common::{Sandbox, noise};
use siltstone_engine::EngineError;
use siltstone_engine::backup::{self, BackupOptions, SHRINK_SHARE_DEFAULT, Source};
use siltstone_store::SnapshotId;

fn guarded(sandbox: &Sandbox) -> BackupOptions {
    sandbox.options().with_shrink_share(Some(SHRINK_SHARE_DEFAULT))
}

fn with_files(count: u64) -> Sandbox {
    let sandbox = Sandbox::new();
    (0..count).for_each(|number| sandbox.write(&format!("{number}"), &noise(number, 1000)));
    sandbox.backup();
    sandbox
}

fn assert_refused(sandbox: &Sandbox, options: &BackupOptions) {
    let snapshots = sandbox.snapshots().len();
    for dry_run in [true, false] {
        let error = sandbox.try_backup(&options.clone().with_dry_run(dry_run)).expect_err("it shrunk");
        assert!(matches!(error, EngineError::SourceShrunk { .. }), "{error}");
    }
    assert_eq!(sandbox.snapshots().len(), snapshots);
}

#[test]
fn a_source_that_became_empty_or_lost_most_is_refused_and_nothing_is_committed() {
    let sandbox = with_files(10);
    (0..5).for_each(|number| sandbox.remove(&format!("{number}")));
    sandbox.try_backup(&guarded(&sandbox)).expect("half is not too much");
    (5..8).for_each(|number| sandbox.remove(&format!("{number}")));
    assert_refused(&sandbox, &guarded(&sandbox));
    (8..10).for_each(|number| sandbox.remove(&format!("{number}")));
    assert_refused(&sandbox, &guarded(&sandbox));
    sandbox.try_backup(&sandbox.options()).expect("without a guard it is taken as it is");
}

#[test]
fn bytes_count_as_well_as_files() {
    let sandbox = with_files(10);
    (0..10).for_each(|number| sandbox.write(&format!("{number}"), b"little"));
    assert_refused(&sandbox, &guarded(&sandbox));
    let lenient = sandbox.options().with_shrink_share(Some(1.0));
    sandbox.try_backup(&lenient).expect("all but all may go");
}

#[test]
fn a_stream_is_refused_only_when_it_is_empty() {
    let sandbox = Sandbox::new();
    let take = |bytes: usize| {
        let reader = Box::new(std::io::Cursor::new(noise(1, bytes)));
        let source = Source::Stream { name: "/dump".into(), reader };
        backup::backup(&sandbox.repository(), source, &guarded(&sandbox), &sandbox.resources())
    };
    take(100_000).expect("a backup");
    take(10).expect("streams differ in length");
    assert!(matches!(take(0), Err(EngineError::SourceShrunk { .. })));
}

#[test]
fn other_paths_in_the_same_series_are_not_compared() {
    let sandbox = with_files(10);
    sandbox.write("folder/one", b"one");
    let source = Source::Paths(vec![sandbox.source().join("folder")]);
    backup::backup(&sandbox.repository(), source, &guarded(&sandbox), &sandbox.resources())
        .expect("a backup of something else");
}

#[test]
fn the_last_snapshots_of_a_series_go_only_when_that_is_allowed() {
    let sandbox = Sandbox::new();
    let ids: Vec<SnapshotId> = (0..3).map(|_| sandbox.backup()).collect();
    for dry_run in [true, false] {
        let options = sandbox.forget_options(dry_run).with_allow_remove_all(false);
        let error = sandbox.try_forget(&ids, &options).expect_err("nothing would be left");
        assert!(matches!(&error, EngineError::RemovesAll { series } if series == "test"), "{error}");
        assert_eq!(sandbox.snapshots().len(), 3);
        sandbox.try_forget(&ids[..2], &options.with_dry_run(true)).expect("one is left");
    }
    assert_eq!(sandbox.forget(&ids, false).snapshots_removed, 3);
}

#[test]
fn nothing_is_removed_when_one_series_of_several_would_be_emptied() {
    let sandbox = Sandbox::new();
    let mut ids = vec![sandbox.backup(), sandbox.backup()];
    let other = sandbox.options().with_series(Some("other".into()));
    ids.extend(sandbox.try_backup(&other).expect("a backup").snapshot);
    let options = sandbox.forget_options(false).with_allow_remove_all(false);
    sandbox.try_forget(&ids[1..], &options).expect_err("the other series would be empty");
    assert_eq!(sandbox.snapshots().len(), 3);
}

//! Which snapshot is the latest: by time, whatever the order of the commits, and no forged time gains by it.

use crate::common::Sandbox;
use siltstone_engine::EngineError;
use siltstone_engine::forget::policy::{KeepPolicy, apply};
use siltstone_engine::snapshots::{self, SnapshotFilter};
use siltstone_store::{SnapshotId, Time};

const DAY: i64 = 24 * 60 * 60;

/// A backup that is given a time, in days from now.
fn backup_dated(sandbox: &Sandbox, days: i64) -> SnapshotId {
    let now = jiff::Timestamp::now().as_second();
    let time = Time { seconds: now + days * DAY, nanoseconds: 0 };
    sandbox.write("file", format!("as of {days}").as_bytes());
    let options = sandbox.options().with_time(Some(time));
    sandbox.try_backup(&options).expect("a backup").snapshot.expect("a snapshot")
}

fn resolve(sandbox: &Sandbox, wanted: &str) -> Result<SnapshotId, EngineError> {
    let (view, _) = snapshots::resolve(&sandbox.repository(), wanted, &SnapshotFilter::default())?;
    Ok(view.snapshot.id)
}

/// Snapshots that stay of those listed if the last one is to be kept.
fn kept_of_one(sandbox: &Sandbox) -> Vec<SnapshotId> {
    let views = sandbox.snapshots();
    let policy = KeepPolicy::default().with_last(Some(1));
    let decisions = apply(&views, &policy, &jiff::Zoned::now());
    views.iter().zip(decisions).filter(|(_, decision)| decision.keep).map(|(view, _)| view.snapshot.id).collect()
}

#[test]
fn a_backup_of_an_older_time_is_not_the_latest() {
    let sandbox = Sandbox::new();
    let (new, old, between) = (backup_dated(&sandbox, 0), backup_dated(&sandbox, -2000), backup_dated(&sandbox, -100));
    assert_eq!(resolve(&sandbox, "latest").expect("latest"), new);
    assert_eq!(resolve(&sandbox, "latest~1").expect("the one before"), between);
    assert_eq!(resolve(&sandbox, "latest~2").expect("the first"), old);
    assert!(resolve(&sandbox, "latest~3").is_err());
    let listed: Vec<_> = sandbox.snapshots().iter().map(|view| view.snapshot.id).collect();
    assert_eq!(listed, [old, between, new]);
    assert_eq!(kept_of_one(&sandbox), [new]);
}

#[test]
fn a_time_forged_ahead_makes_no_snapshot_later_than_it_is() {
    let sandbox = Sandbox::new();
    let (_, forged, real) = (backup_dated(&sandbox, 0), backup_dated(&sandbox, 4000), sandbox.backup());
    assert_eq!(resolve(&sandbox, "latest").expect("latest"), real);
    assert_eq!(kept_of_one(&sandbox), [real]);
    assert_eq!(resolve(&sandbox, "latest~1").expect("the forged one"), forged);
}

#[test]
fn a_backup_builds_on_the_last_commit_whatever_its_time() {
    let sandbox = Sandbox::new();
    backup_dated(&sandbox, 0);
    let old = backup_dated(&sandbox, -2000);
    let summary = sandbox.try_backup(&sandbox.options()).expect("a backup");
    assert_eq!(summary.parent, Some(old));
}

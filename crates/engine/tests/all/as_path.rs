//! A source recorded at another path: mounted snapshots of a file system make one series.

use crate::common::{Sandbox, resources};
use siltstone_engine::EngineError;
use siltstone_engine::backup::{BackupOptions, BackupSummary, Source, backup, series_name};
use siltstone_engine::fs::{Case, ExcludeRules};
use siltstone_store::catalog::Entry;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

fn options(as_path: &str) -> BackupOptions {
    BackupOptions::default().with_host("host".into()).with_as_path(Some(as_path.into()))
}

/// Backs up a mounted snapshot, which is a folder here.
fn back_up(sandbox: &Sandbox, folder: &str, options: &BackupOptions) -> BackupSummary {
    let source = Source::Paths(vec![sandbox.source().join(folder)]);
    backup(&sandbox.repository(), source, options, &resources()).expect("a backup")
}

fn paths(entries: &[Entry]) -> Vec<String> {
    entries.iter().map(|entry| entry.path.as_bytes().escape_ascii().to_string()).collect()
}

#[test]
fn mounted_snapshots_make_one_series_in_which_only_what_changed_is_read() {
    let sandbox = Sandbox::new();
    sandbox.write("snap-1/docs/same", b"same");
    sandbox.write("snap-1/file", b"one");
    // Hard links keep what tells an unchanged file, as a snapshot of a file system does.
    let source = sandbox.source();
    let copied = Command::new("cp").arg("-al").arg(source.join("snap-1")).arg(source.join("snap-2")).status();
    assert!(copied.expect("cp runs").success());
    std::fs::remove_file(source.join("snap-2/file")).expect("removed");
    sandbox.write("snap-2/file", b"another");
    // A file that changed just before it is read may change unnoticed, so it is read again.
    std::thread::sleep(Duration::from_millis(60));

    let first = back_up(&sandbox, "snap-1", &options("/data/me"));
    let second = back_up(&sandbox, "snap-2", &options("/data/me"));
    assert_eq!((first.series.as_str(), second.series.as_str()), ("host:/data/me", "host:/data/me"));
    assert_eq!(second.statistics.files_unchanged, 1);
    assert_eq!(second.statistics.read_bytes, 7);
    let found = sandbox.entries(second.snapshot.expect("a snapshot"));
    assert_eq!(paths(&found), ["data", "data/me", "data/me/docs", "data/me/docs/same", "data/me/file"]);
    assert!(found.iter().all(|entry| entry.metadata.device <= 2), "which device, and not its number: {found:?}");
    let views = sandbox.snapshots();
    assert_eq!(views[1].snapshot.paths, [b"/data/me".to_vec()]);
}

#[test]
fn a_snapshot_of_the_root_has_its_names_at_the_top() {
    let sandbox = Sandbox::new();
    sandbox.write("snap/etc/hosts", b"hosts");
    let made = back_up(&sandbox, "snap", &options("/"));
    assert_eq!(made.series, "host:/");
    assert_eq!(paths(&sandbox.entries(made.snapshot.expect("a snapshot"))), ["etc", "etc/hosts"]);
}

#[test]
fn a_single_file_may_be_recorded_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.write("snap/disk.img", b"image");
    let made = back_up(&sandbox, "snap/disk.img", &options("/disks/a.img"));
    assert_eq!(paths(&sandbox.entries(made.snapshot.expect("a snapshot"))), ["disks", "disks/a.img"]);
}

#[test]
fn patterns_see_the_path_that_is_recorded() {
    let sandbox = Sandbox::new();
    sandbox.write("snap/cache/much", b"much");
    sandbox.write("snap/keep", b"keep");
    let rules =
        ExcludeRules::builder().pattern("/data/cache", Case::Sensitive).expect("a pattern").build().expect("rules");
    let made = back_up(&sandbox, "snap", &options("/data").with_exclude(rules));
    assert_eq!(paths(&sandbox.entries(made.snapshot.expect("a snapshot"))), ["data", "data/keep"]);
}

#[test]
fn only_one_source_and_not_the_root_is_recorded_elsewhere() {
    let sandbox = Sandbox::new();
    sandbox.write("a/file", b"a");
    sandbox.write("b/file", b"b");
    let source = sandbox.source();
    for sources in [vec![source.join("a"), source.join("b")], vec![PathBuf::from("/")]] {
        let refused = backup(&sandbox.repository(), Source::Paths(sources.clone()), &options("/x"), &resources());
        assert!(matches!(refused, Err(EngineError::NotOneSource { .. })), "{sources:?}");
        assert!(series_name(&sources, &options("/x")).is_err());
    }
}

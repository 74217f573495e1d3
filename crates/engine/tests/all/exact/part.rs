//! Restoring part of a snapshot: patterns and paths.

use super::*;
use crate::common::{entry_path, resources, tree};
use siltstone_engine::EngineError;
use siltstone_engine::fs::{Case, PathFilter, PathFilterBuilder};
use siltstone_engine::restore::{self, RestoreOptions, RestoreSummary};

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    for name in ["photos/a.jpg", "photos/b.JPG", "photos/raw/c.raw", "notes/d.txt", "notes/e.tmp", "f"] {
        sandbox.write(name, name.as_bytes());
    }
    for folder in ["photos", "photos/raw", "notes"] {
        set_mode(sandbox.source().join(folder), 0o751);
    }
    sandbox
}

fn restore(sandbox: &Sandbox, options: &RestoreOptions) -> Result<RestoreSummary, EngineError> {
    let id = sandbox.snapshots()[0].snapshot.id;
    restore::restore(&sandbox.repository(), &sandbox.view(id), options, &resources())
}

/// The names found below what the source became, and the summary.
fn filtered(sandbox: &Sandbox, build: impl FnOnce(&mut PathFilterBuilder)) -> (Vec<String>, RestoreSummary) {
    let mut builder = PathFilter::builder();
    build(&mut builder);
    let target = folder();
    let below = Some(entry_path(&sandbox.source()));
    let filter = builder.build().expect("a filter");
    let options = sandbox.restore_options(target.path()).with_filter(filter).with_below(below);
    let summary = restore(sandbox, &options).expect("a restore");
    let wanted = tree::read(&sandbox.source());
    let found = tree::read(target.path());
    for (name, node) in found.iter().filter(|(name, _)| !name.is_empty()) {
        assert_eq!(Some(node), wanted.get(name), "{}", name.escape_ascii());
    }
    let names = found.keys().filter(|name| !name.is_empty());
    (names.map(|name| String::from_utf8_lossy(name).into_owned()).collect(), summary)
}

#[test]
fn patterns_choose_and_folders_on_the_way_come_with_their_metadata() {
    let sandbox = sandbox();
    sandbox.backup();
    let (names, summary) = filtered(&sandbox, |filter| {
        filter.include("*.jpg", Case::Insensitive).expect("a pattern");
    });
    assert_eq!(names, ["photos", "photos/a.jpg", "photos/b.JPG"]);
    assert_eq!((summary.files_restored, summary.problems), (2, 0));
    let (names, _) = filtered(&sandbox, |filter| {
        filter.include("photos/", Case::Sensitive).expect("a pattern");
        filter.exclude("*.raw", Case::Sensitive).expect("a pattern");
    });
    assert_eq!(names, ["photos", "photos/a.jpg", "photos/b.JPG", "photos/raw"]);
    let (names, _) = filtered(&sandbox, |filter| {
        filter.exclude("photos", Case::Sensitive).expect("a pattern");
        filter.exclude("*.tmp", Case::Sensitive).expect("a pattern");
    });
    assert_eq!(names, ["f", "notes", "notes/d.txt"]);
}

#[test]
fn patterns_that_all_match_nothing_are_an_error_that_names_them() {
    let sandbox = sandbox();
    sandbox.backup();
    let mut builder = PathFilter::builder();
    builder.include("nothing like this", Case::Sensitive).expect("a pattern");
    let options = sandbox.restore_options(folder().path()).with_filter(builder.build().expect("a filter"));
    for options in [options.clone(), options.with_dry_run(true)] {
        let refused = restore(&sandbox, &options);
        let Err(EngineError::NothingIncluded { patterns }) = refused else { panic!("{refused:?}") };
        assert_eq!(patterns, ["nothing like this"]);
    }
}

#[test]
fn delete_leaves_alone_what_the_patterns_leave_out() {
    let sandbox = sandbox();
    sandbox.backup();
    let target = folder();
    for name in ["mine.tmp", "extra", "notes/mine.tmp", "notes/extra"] {
        fs::create_dir_all(target.path().join("notes")).expect("made");
        fs::write(target.path().join(name), "of the user").expect("written");
    }
    let mut builder = PathFilter::builder();
    builder.exclude("*.tmp", Case::Sensitive).expect("a pattern");
    let below = Some(entry_path(&sandbox.source()));
    let filter = builder.build().expect("a filter");
    let options = sandbox.restore_options(target.path()).with_filter(filter).with_below(below).with_delete(true);
    let planned = restore(&sandbox, &options.clone().with_dry_run(true)).expect("a plan");
    let summary = restore(&sandbox, &options).expect("a restore");
    assert_eq!((planned.deleted, summary.deleted), (2, 2));
    assert_eq!(tree::listing(target.path()), ["f", "mine.tmp", "notes", "photos"]);
    assert_eq!(tree::listing(&target.path().join("notes")), ["d.txt", "mine.tmp"]);
}

#[test]
fn a_folder_of_the_snapshot_becomes_the_target_and_a_file_goes_into_it() {
    let sandbox = sandbox();
    sandbox.backup();
    let target = folder();
    let at = |name: &str| Some(entry_path(&sandbox.source().join(name)));
    let new = target.path().join("new");
    let summary = restore(&sandbox, &sandbox.restore_options(&new).with_below(at("photos"))).expect("a restore");
    assert_eq!((summary.entries, summary.files_restored, summary.files_verified), (4, 3, 3));
    let wanted = tree::read(&sandbox.source().join("photos"));
    assert_eq!(
        tree::differences(&tree::read(&new), &wanted),
        [""; 0],
        "the new target is the folder, metadata and all"
    );

    let other = target.path().join("other");
    restore(&sandbox, &sandbox.restore_options(&other).with_below(at("notes/d.txt"))).expect("a restore");
    assert_eq!(tree::listing(&other), ["d.txt"]);
    assert_eq!(fs::read(other.join("d.txt")).expect("read"), b"notes/d.txt");

    let missing = restore(&sandbox, &sandbox.restore_options(&other).with_below(at("photos/z")));
    assert!(matches!(missing, Err(EngineError::NoSuchPath { .. })), "{missing:?}");
}

#[test]
fn a_dry_run_counts_and_writes_nothing() {
    let sandbox = sandbox();
    sandbox.backup();
    let target = folder();
    let new = target.path().join("new");
    let options = sandbox.restore_options(&new);
    let planned = restore(&sandbox, &options.clone().with_dry_run(true)).expect("a plan");
    assert!(!new.exists());
    let done = restore(&sandbox, &options).expect("a restore");
    let counts = |summary: &RestoreSummary| {
        (summary.entries, summary.files_restored, summary.files_kept, summary.bytes_total, summary.bytes_restored)
    };
    assert_eq!(counts(&planned), counts(&done));
}

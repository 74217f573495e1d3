//! Differences of two snapshots are those of the trees they were made of.

use crate::common::tree::{self, Node, Tree};
use crate::common::{self, Sandbox, entry_path, noise, resources};
use crate::edit::{Edit, any_edits};
use proptest::test_runner::Config;
use rustix::fs::XattrFlags;
use siltstone_engine::EngineError;
use siltstone_engine::backup::{self, Borrow, Source};
use siltstone_engine::compare::{Change, Difference, Live, Side, compare, compare_live, path_changes};
use siltstone_engine::fs::{Case, ExcludeRules, Problem, ScanOptions, Subject};
use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::EntryPath;
use siltstone_store::storage::SimulatedDisk;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

const CASES: u32 = 60;

type Changes = BTreeMap<Vec<u8>, Change>;

fn back_up(sandbox: &Sandbox, series: &str) -> SnapshotView {
    let options = sandbox.options().with_series(Some(series.to_owned())).with_force(true).with_borrow(Borrow::Never);
    let source = Source::Paths(vec![sandbox.source()]);
    let summary = backup::backup(&sandbox.repository(), source, &options, &sandbox.resources()).expect("a backup");
    sandbox.view(summary.snapshot.expect("a snapshot"))
}

fn found(sandbox: &Sandbox, sides: [(&SnapshotView, Option<&EntryPath>); 2]) -> Result<Changes, EngineError> {
    let [first, second] = sides.map(|(view, below)| Side { snapshot: view.clone(), below: below.cloned() });
    let mut changes = Changes::new();
    let mut last = None;
    compare(&sandbox.repository(), &first, &second, &resources(), &mut |difference| {
        assert!(last.as_ref().is_none_or(|last| *last < difference.path), "in order");
        let sides = (difference.before.is_some(), difference.after.is_some());
        assert_eq!(sides, (difference.change != Change::Added, difference.change != Change::Removed));
        changes.insert(difference.path.as_bytes().to_vec(), difference.change);
        last = Some(difference.path);
        Ok(())
    })?;
    Ok(changes)
}

fn expected(before: &Tree, after: &Tree) -> Changes {
    let metadata = |node: &Node| (node.mode, node.owner, node.modified, node.xattrs.clone());
    let change = |name: &Vec<u8>| match (before.get(name), after.get(name)) {
        (None, _) => Some(Change::Added),
        (_, None) => Some(Change::Removed),
        (Some(old), Some(new)) if old.kind != new.kind => Some(Change::Kind),
        (Some(old), Some(new)) if (&old.content, old.device) != (&new.content, new.device) => Some(Change::Content),
        (Some(old), Some(new)) => (metadata(old) != metadata(new)).then_some(Change::Metadata),
    };
    let names = before.keys().chain(after.keys()).filter(|name| !name.is_empty());
    names.filter_map(|name| Some((name.clone(), change(name)?))).collect()
}

fn edit(sandbox: &Sandbox, edits: &[Edit]) -> Tree {
    for edit in edits {
        edit.apply(&sandbox.source());
    }
    tree::read(&sandbox.source())
}

#[test]
fn differences_are_those_of_the_trees() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    common::for_each_drawn(config, &(any_edits(), any_edits()), |(first, second)| {
        let sandbox = Sandbox::new();
        std::fs::create_dir_all(sandbox.source()).expect("a source");
        (0..4).for_each(|file| sandbox.write(&format!("d/{file}"), &noise(file, 3000)));
        let before = edit(&sandbox, &first);
        let old = back_up(&sandbox, "one");
        let elsewhere = back_up(&sandbox, "two");
        let after = edit(&sandbox, &second);
        let new = back_up(&sandbox, "one");
        let source = entry_path(&sandbox.source());
        let below = Some(&source);
        let changes = |sides| found(&sandbox, sides).expect("compared");
        assert_eq!(changes([(&old, below), (&new, below)]), expected(&before, &after));
        assert_eq!(changes([(&new, below), (&old, below)]), expected(&after, &before));
        assert_eq!(changes([(&elsewhere, below), (&new, below)]), expected(&before, &after));
        assert_eq!(changes([(&elsewhere, below), (&old, below)]), Changes::new());
        assert_eq!(changes([(&new, None), (&new, None)]), Changes::new());
    });
}

fn found_on_disk(sandbox: &Sandbox, view: &SnapshotView, trusts_status: bool, exclude: &[&str]) -> Changes {
    let (changes, problems) = looked_at(sandbox, view, trusts_status, exclude);
    assert_eq!(problems, []);
    changes
}

/// Changes on disk, and what could not be looked at.
fn looked_at(sandbox: &Sandbox, view: &SnapshotView, trusts_status: bool, exclude: &[&str]) -> (Changes, Vec<Problem>) {
    let mut rules = ExcludeRules::builder();
    for pattern in exclude {
        rules.pattern(pattern, Case::Sensitive).expect("a pattern");
    }
    looked_by(sandbox, view, trusts_status, rules.build().expect("rules"))
}

/// As [`looked_at`], by these rules.
fn looked_by(
    sandbox: &Sandbox,
    view: &SnapshotView,
    trusts_status: bool,
    exclude: ExcludeRules,
) -> (Changes, Vec<Problem>) {
    let source = entry_path(&sandbox.source());
    let scan = ScanOptions { exclude, ..ScanOptions::default() };
    let live = Live { sources: vec![sandbox.source()], scan, trusts_status };
    let mut changes = Changes::new();
    let mut visit = |difference: Difference| {
        if difference.path.is_beneath(&source) {
            let name = &difference.path.as_bytes()[source.as_bytes().len() + 1..];
            changes.insert(name.to_vec(), difference.change);
        }
        Ok(())
    };
    let problems = compare_live(&sandbox.repository(), view, &live, &resources(), &mut visit).expect("compared");
    (changes, problems)
}

#[test]
fn differences_from_the_disk_are_those_of_the_trees() {
    let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
    common::for_each_drawn(config, &(any_edits(), any_edits()), |(first, second)| {
        let sandbox = Sandbox::new();
        std::fs::create_dir_all(sandbox.source()).expect("a source");
        (0..4).for_each(|file| sandbox.write(&format!("d/{file}"), &noise(file, 3000)));
        let before = edit(&sandbox, &first);
        let view = back_up(&sandbox, "one");
        for trusts_status in [false, true] {
            assert_eq!(found_on_disk(&sandbox, &view, trusts_status, &[]), Changes::new());
        }
        let after = edit(&sandbox, &second);
        for trusts_status in [false, true] {
            assert_eq!(found_on_disk(&sandbox, &view, trusts_status, &[]), expected(&before, &after));
        }
    });
}

#[test]
fn what_is_left_out_on_disk_is_passed_over_and_what_is_gone_was_removed() {
    let sandbox = Sandbox::new();
    sandbox.write("kept/a", b"a");
    sandbox.write("out/b", b"b");
    let view = back_up(&sandbox, "one");
    sandbox.write("out/b", b"other");
    sandbox.write("out/c", b"new");
    sandbox.remove("kept/a");
    let mut changes = found_on_disk(&sandbox, &view, false, &["out"]);
    changes.retain(|_, change| *change != Change::Metadata);
    assert_eq!(changes, [(b"kept/a".to_vec(), Change::Removed)].into());
    std::fs::remove_dir_all(sandbox.source()).expect("removed");
    let all: Vec<Vec<u8>> = found_on_disk(&sandbox, &view, false, &[]).into_keys().collect();
    assert_eq!(all, [&b"kept"[..], b"kept/a", b"out", b"out/b"].map(<[u8]>::to_vec));
}

/// The story: a part of a folder was seen, and told as added, though the snapshot had it. A mark is such a part; so is
/// what is listed of a folder before that fails.
#[test]
fn what_is_seen_of_a_folder_that_is_left_out_is_compared() {
    let sandbox = Sandbox::new();
    for name in ["cache/a", "cache/mark", "cache/z", "gone", "same"] {
        sandbox.write(name, b"some content");
    }
    let view = back_up(&sandbox, "one");
    sandbox.write("cache/a", b"some other content");
    sandbox.write("cache/new", b"some content");
    for name in ["cache/z", "gone"] {
        sandbox.remove(name);
    }
    let rules = ExcludeRules::builder().if_present("mark").expect("a mark").build().expect("rules");
    let changes = || {
        let (mut changes, problems) = looked_by(&sandbox, &view, false, rules.clone());
        assert_eq!(problems, []);
        changes.retain(|_, change| *change != Change::Metadata);
        changes
    };
    assert_eq!(changes(), [(b"gone".to_vec(), Change::Removed)].into());
    sandbox.write("cache/mark", b"some other content");
    assert_eq!(changes(), [(b"cache/mark".to_vec(), Change::Content), (b"gone".to_vec(), Change::Removed)].into());
}

/// Gives a file more attributes than the kernel lists at once; `false` if it cannot have so many.
fn make_unlistable(path: &Path) -> bool {
    let space = if rustix::process::geteuid().is_root() { "trusted" } else { "user" };
    (0..300).all(|number| {
        let name = format!("{space}.{number:0230}");
        rustix::fs::lsetxattr(path, name.as_str(), b"", XattrFlags::empty()).is_ok()
    })
}

/// The story: the problem of its attributes took an entry's place, and so the entry was new, with all that a folder
/// holds.
#[test]
fn an_entry_whose_attributes_cannot_be_read_is_compared_without_them() {
    // A file system whose files can have so many attributes.
    let memory = Path::new("/dev/shm");
    if !memory.is_dir() {
        return;
    }
    let sandbox = Sandbox::below(memory, Arc::new(SimulatedDisk::new()));
    for name in ["file", "folder/changed", "folder/same"] {
        sandbox.write(name, b"some content");
    }
    let view = back_up(&sandbox, "one");
    if !["file", "folder"].iter().all(|name| make_unlistable(&sandbox.source().join(name))) {
        return;
    }
    sandbox.write("folder/changed", b"some other content");
    for trusts_status in [false, true] {
        let (changes, problems) = looked_at(&sandbox, &view, trusts_status, &[]);
        assert_eq!(changes, [(b"folder/changed".to_vec(), Change::Content)].into());
        let subjects: Vec<Subject> = problems.into_iter().map(|problem| problem.subject).collect();
        let path = |name: &str| Subject::Entry(entry_path(&sandbox.source().join(name)));
        assert_eq!(subjects, ["file", "folder"].map(path));
    }
}

#[test]
fn parts_are_compared_by_their_paths_below() {
    let sandbox = Sandbox::new();
    for folder in ["left", "right"] {
        sandbox.write(&format!("{folder}/same"), b"the same");
        sandbox.write(&format!("{folder}/content"), folder.as_bytes());
    }
    sandbox.write("right/more", b"more");
    let view = back_up(&sandbox, "one");
    let path = |name: &str| entry_path(&sandbox.source().join(name));
    let [left, right, file] = ["left", "right", "left/content"].map(path);
    let mut changes = found(&sandbox, [(&view, Some(&left)), (&view, Some(&right))]).expect("compared");
    changes.retain(|_, change| *change != Change::Metadata);
    let expected = [(b"content".to_vec(), Change::Content), (b"more".to_vec(), Change::Added)];
    assert_eq!(changes, expected.into());
    let same = found(&sandbox, [(&view, Some(&file)), (&view, Some(&file))]).expect("compared");
    assert_eq!(same, Changes::new());
    let gone = found(&sandbox, [(&view, Some(&path("nothing"))), (&view, None)]);
    assert!(matches!(gone, Err(EngineError::NoSuchPath { .. })), "{gone:?}");
}

#[test]
fn changes_of_a_path_are_those_between_the_trees() {
    let config = Config { cases: CASES / 2, failure_persistence: None, ..Config::default() };
    common::for_each_drawn(config, &proptest::collection::vec(any_edits(), 1..5), |rounds| {
        let sandbox = Sandbox::new();
        (0..4).for_each(|file| sandbox.write(&format!("d/{file}"), &noise(file, 3000)));
        let mut trees = vec![Tree::new()];
        for edits in &rounds {
            trees.push(edit(&sandbox, edits));
            back_up(&sandbox, "one");
            back_up(&sandbox, "two");
        }
        let (views, repository) = (sandbox.snapshots(), sandbox.repository());
        let names: BTreeSet<&Vec<u8>> = trees.iter().flat_map(BTreeMap::keys).filter(|name| !name.is_empty()).collect();
        for name in names {
            let path = entry_path(&sandbox.source().join(OsStr::from_bytes(name)));
            let mut found: BTreeMap<String, Vec<(usize, Change)>> = BTreeMap::new();
            let damage = path_changes(&repository, &views, &path, &resources(), &mut |at| {
                assert_eq!(at.entry.is_none(), at.change == Change::Removed);
                found.entry(at.snapshot.series_name.clone()).or_default().push((at.snapshot.position, at.change));
                Ok(())
            });
            assert!(damage.expect("found").is_empty());
            let change = |(at, pair): (usize, &[Tree])| Some((at, *expected(&pair[0], &pair[1]).get(name)?));
            let wanted: Vec<(usize, Change)> = trees.windows(2).enumerate().filter_map(change).collect();
            assert_eq!(found, [("one".to_owned(), wanted.clone()), ("two".to_owned(), wanted)].into());
        }
    });
}

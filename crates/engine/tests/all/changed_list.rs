//! Full snapshots made from lists of what changed: the same as those of a full backup, at the cost of what is listed.
//!
//! Where a list is compared with a full reading, the entries of both snapshots are, metadata and recipes: so the very
//! same chunks, with the very same cuts.
//!
//! `SILTSTONE_MODEL_CASES=500 cargo test -p siltstone-engine --test all changed_list::` runs for longer.

mod journal;

use crate::common::log::Log;
use crate::common::{self, Sandbox, noise, tree};
use crate::edit::{Edit, any_edits};
use journal::{Journal, Look};
use proptest::prelude::*;
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, ChangedList, Source};
use siltstone_engine::browse;
use siltstone_engine::fs::{Case, ExcludeRules};
use siltstone_engine::{EngineError, Notice, Resources};
use siltstone_store::catalog::Entry;
use siltstone_store::storage::{Listing, SimulatedDisk, Storage};
use siltstone_store::{ChunkNumber, Time};
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// As [`Sandbox::options`] has it.
const MEMORY: u64 = 256 << 20;
/// Cases of an ordinary run.
const CASES: u32 = 40;

/// Longer than the clock that stamps inodes takes for a tick.
fn let_a_tick_pass() {
    std::thread::sleep(Duration::from_millis(40));
}

fn try_listed(
    sandbox: &Sandbox,
    list: ChangedList,
    options: &BackupOptions,
    resources: &Resources,
) -> Result<BackupSummary, EngineError> {
    let source = Source::Changes { paths: vec![sandbox.source()], list: Arc::new(list) };
    backup::backup(&sandbox.repository(), source, options, resources)
}

fn list(text: impl AsRef<[u8]>) -> ChangedList {
    let mut list = ChangedList::new(MEMORY);
    list.add_lines("the list", text.as_ref()).expect("a list");
    list
}

/// Lists paths of the source, each as it is and with what follows it.
fn lines(sandbox: &Sandbox, entries: &[&str]) -> ChangedList {
    let line = |entry: &&str| [sandbox.source().as_os_str().as_bytes(), b"/", entry.as_bytes(), b"\n"].concat();
    list(entries.iter().flat_map(line).collect::<Vec<u8>>())
}

fn listed(sandbox: &Sandbox, entries: &[&str]) -> BackupSummary {
    let_a_tick_pass();
    let summary =
        try_listed(sandbox, lines(sandbox, entries), &sandbox.options(), &sandbox.resources()).expect("a backup");
    assert_eq!(summary.statistics.problems, 0);
    summary
}

fn full(sandbox: &Sandbox) -> BackupSummary {
    let_a_tick_pass();
    let options = sandbox.options().with_force(true);
    sandbox.try_backup(&options).expect("a backup")
}

fn root(sandbox: &Sandbox, summary: &BackupSummary) -> ChunkNumber {
    sandbox.view(summary.snapshot.expect("a snapshot")).snapshot.root
}

/// All entries at and below the source. Above it others are at work.
fn entries(sandbox: &Sandbox, summary: &BackupSummary) -> Vec<Entry> {
    let view = sandbox.view(summary.snapshot.expect("a snapshot"));
    let mut entries = Vec::new();
    let mut add = |entry: &Entry| {
        entries.push(entry.clone());
        Ok(())
    };
    let source = common::entry_path(&sandbox.source());
    browse::ls(&sandbox.repository(), &view, Some(&source), true, &mut add).expect("a listing");
    entries
}

fn assert_same_entries(sandbox: &Sandbox, found: &BackupSummary, wanted: &BackupSummary, story: &str) {
    let (found, wanted) = (entries(sandbox, found), entries(sandbox, wanted));
    let different = found.iter().zip(&wanted).find(|(found, wanted)| found != wanted);
    assert!(different.is_none(), "{story}: {different:#?}");
    assert_eq!(found.len(), wanted.len(), "{story}");
}

/// That the snapshot is the tree of now, and that reading everything makes no other.
fn assert_as_full(sandbox: &Sandbox, summary: &BackupSummary, story: &str) {
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0], "{story}");
    let read = full(sandbox);
    assert_eq!(read.statistics.chunks_new, 0, "{story}");
    assert_same_entries(sandbox, summary, &read, story);
    assert_eq!(summary.statistics.logical_bytes, read.statistics.logical_bytes, "{story}");
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    File::options().write(true).open(path).expect("opened").write_all_at(bytes, at).expect("written");
}

fn resize(path: &Path, bytes: u64) {
    File::options().write(true).open(path).expect("opened").set_len(bytes).expect("sized");
}

#[test]
fn of_a_file_with_ranges_only_what_lies_around_them_is_read() {
    let sandbox = Sandbox::new();
    sandbox.write("image", &noise(1, 6_000_000));
    sandbox.write("beside", &noise(2, 500_000));
    full(&sandbox);
    let image = sandbox.source().join("image");
    overwrite(&image, 3_000_000, b"changed");
    overwrite(&image, 5_000_000, &noise(3, 30_000));
    let summary = listed(&sandbox, &["image\t3000000\t7", "image\t5000000\t30000"]);
    let counts = summary.statistics;
    assert!(counts.read_bytes < 500_000, "{} bytes were read", counts.read_bytes);
    assert_eq!((counts.files, counts.files_changed, counts.files_unchanged), (2, 1, 1));
    assert_eq!(counts.logical_bytes, 6_500_000);
    assert_as_full(&sandbox, &summary, "two ranges");
}

/// Effect of one edit on a file, and how it is told.
type Trial = (&'static str, fn(&Path), &'static [&'static str]);

#[test]
fn cuts_around_ranges_are_those_of_a_full_reading() {
    const BYTES: u64 = 700_000;
    let cases: &[Trial] = &[
        ("the first byte", |path| overwrite(path, 0, b"x"), &["file\t0\t1"]),
        ("the last byte", |path| overwrite(path, BYTES - 1, b"x"), &["file\t699999\t1"]),
        ("everything", |path| overwrite(path, 0, &noise(9, 700_000)), &["file\t0\t700000"]),
        ("more than everything", |path| overwrite(path, 0, &noise(9, 700_000)), &["file\t0\t9000000"]),
        ("growth alone", |path| overwrite(path, BYTES, &noise(9, 100_000)), &["file\t0\t0"]),
        ("growth and a change", |path| overwrite(path, BYTES - 10, &noise(9, 100_000)), &["file\t699990\t10"]),
        ("growth by a hole", |path| resize(path, BYTES + 1_000_000), &["file\t0\t0"]),
        ("one byte less", |path| resize(path, BYTES - 1), &["file\t0\t0"]),
        ("half of it", |path| resize(path, BYTES / 2), &["file\t650000\t5"]),
        ("nothing left", |path| resize(path, 0), &["file\t5\t5"]),
        ("nothing changed", |_| (), &["file\t100000\t200000"]),
        (
            "many bytes, some next to each other",
            |path| (0..700).for_each(|i| overwrite(path, i * i, b"0123")),
            &["file\t0\t488605"],
        ),
        ("a stretch that repeats", |path| overwrite(path, 90_000, &vec![7; 300_000]), &["file\t90000\t300000"]),
        ("a chunk's worth of zeros", |path| overwrite(path, 300_000, &vec![0; 70_000]), &["file\t300000\t70000"]),
    ];
    for (story, change, entries) in cases {
        let sandbox = Sandbox::new();
        sandbox.write("file", &noise(1, 700_000));
        full(&sandbox);
        change(&sandbox.source().join("file"));
        let summary = listed(&sandbox, entries);
        assert_as_full(&sandbox, &summary, story);
    }
}

#[test]
fn every_byte_may_be_the_one_that_changed() {
    let sandbox = Sandbox::new();
    sandbox.write("file", &noise(1, 400_000));
    full(&sandbox);
    let path = sandbox.source().join("file");
    // Steps that meet chunks in all their parts, their borders among them as likely as not.
    for (round, at) in (0..400_000u64).step_by(13_331).enumerate() {
        overwrite(&path, at, &noise(round as u64, 3));
        let summary = listed(&sandbox, &[&format!("file\t{at}\t3")]);
        assert!(summary.statistics.read_bytes < 260_000, "{at}: {} bytes", summary.statistics.read_bytes);
        assert_as_full(&sandbox, &summary, &format!("at {at}"));
    }
}

#[test]
fn holes_stay_holes() {
    const MIB: u64 = 1 << 20;
    let cases: &[Trial] = &[
        ("data in a hole", |path| overwrite(path, 3 * MIB, &noise(5, 10_000)), &["file\t3145728\t10000"]),
        ("data right behind data", |path| overwrite(path, MIB, &noise(5, 10_000)), &["file\t1048576\t10000"]),
        ("data right before data", |path| overwrite(path, 4 * MIB - 4096, &noise(5, 4096)), &["file\t4190208\t4096"]),
        ("a hole filled", |path| overwrite(path, MIB, &noise(5, 3 << 20)), &["file\t1048576\t3145728"]),
        (
            "two places in one hole",
            |path| [2, 3].iter().for_each(|&at| overwrite(path, at * MIB, &noise(5, 5000))),
            &["file\t2097152\t5000", "file\t3145728\t5000"],
        ),
        ("a change in data before", |path| overwrite(path, MIB - 9, b"x"), &["file\t1048567\t1"]),
        ("a change in data behind", |path| overwrite(path, 4 * MIB, b"x"), &["file\t4194304\t1"]),
        ("cut off in the hole", |path| resize(path, 2 * MIB), &["file\t0\t0"]),
        ("cut off in the last hole", |path| resize(path, 6 * MIB), &["file\t0\t0"]),
        ("data at the end", |path| overwrite(path, 8 * MIB - 5, &noise(5, 5000)), &["file\t8388603\t5"]),
    ];
    for (story, change, entries) in cases {
        let sandbox = Sandbox::new();
        let path = sandbox.source().join("file");
        sandbox.write("file", &noise(1, 1 << 20));
        overwrite(&path, 4 * MIB, &noise(2, 1 << 20));
        resize(&path, 8 * MIB);
        full(&sandbox);
        change(&path);
        let summary = listed(&sandbox, entries);
        assert_as_full(&sandbox, &summary, story);
    }
}

#[test]
fn recipes_of_many_pieces_are_followed() {
    let sandbox = Sandbox::new();
    // Chunks taken from two files by turns: no two numbers follow each other, so the recipe outgrows its entry.
    let zeros = vec![0u8; 48 << 10];
    let mut content = Vec::new();
    for number in 0..700 {
        content.extend_from_slice(&noise(number, 20_000));
        content.extend_from_slice(&zeros);
    }
    sandbox.write("file", &content);
    let first = full(&sandbox);
    assert!(first.statistics.chunks_new > 700);
    let path = sandbox.source().join("file");
    for at in [5_000_000u64, 20_000_000, 45_000_000] {
        overwrite(&path, at, b"changed");
    }
    let summary = listed(&sandbox, &["file\t5000000\t7", "file\t20000000\t7", "file\t45000000\t7"]);
    assert!(summary.statistics.read_bytes < 1_500_000, "{} bytes", summary.statistics.read_bytes);
    assert_as_full(&sandbox, &summary, "many pieces");
}

#[test]
fn an_empty_list_makes_the_same_snapshot_and_looks_at_nothing() {
    let sandbox = Sandbox::new();
    sandbox.write("a/file", b"before");
    sandbox.write("link", b"");
    let first = full(&sandbox);
    let before = tree::read(&sandbox.source());
    sandbox.write("a/file", b"changed, but not listed");
    sandbox.remove("link");
    let second = listed(&sandbox, &[]);
    assert_eq!(root(&sandbox, &first), root(&sandbox, &second));
    assert_eq!((second.statistics.read_bytes, second.statistics.files_unchanged), (0, 2));
    let restored = sandbox.restored(second.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &before), [""; 0]);
    fs::remove_dir_all(sandbox.source()).expect("removed");
    let options = sandbox.options().with_skip_if_unchanged(true);
    let third = try_listed(&sandbox, list(""), &options, &sandbox.resources()).expect("a backup");
    assert!(third.snapshot.is_none());
}

#[test]
fn listed_paths_are_read_again_or_gone() {
    let sandbox = Sandbox::new();
    for name in ["kept/x", "gone", "gone folder/x", "changed", "d/a", "d/b/c", "d/e", "to file/x", "to link/x/y"] {
        sandbox.write(name, name.as_bytes());
    }
    full(&sandbox);
    sandbox.remove("gone");
    sandbox.remove("gone folder");
    sandbox.write("changed", b"other");
    sandbox.write("new folder/x/y", b"new");
    sandbox.write("d/b/new", b"new");
    sandbox.remove("d/a");
    sandbox.remove("to file");
    sandbox.write("to file", b"a file now");
    sandbox.remove("to link");
    fs::create_dir(sandbox.source().join("elsewhere")).expect("made");
    sandbox.write("elsewhere/x/y", b"not by this way");
    symlink("elsewhere", sandbox.source().join("to link")).expect("linked");
    // The last two are told by paths beneath what is no folder any more.
    let entries = ["gone", "gone folder", "changed", "new folder", "d", "elsewhere", "to file/x", "to link/x/y"];
    assert_as_full(&sandbox, &listed(&sandbox, &entries), "all kinds of changes");
}

#[test]
fn folders_above_what_changed_are_looked_at_again() {
    let sandbox = Sandbox::new();
    sandbox.write("a/b/c/file", b"before");
    sandbox.write("a/b/beside", b"beside");
    full(&sandbox);
    sandbox.remove("a/b/c/file");
    let_a_tick_pass();
    sandbox.write("a/b/beside", b"not listed");
    let summary = listed(&sandbox, &["a/b/c/file"]);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    let now = tree::read(&sandbox.source());
    assert_eq!(restored[&b"a/b/c"[..]], now[&b"a/b/c"[..]]);
    assert!(!restored.contains_key(&b"a/b/c/file"[..]));
    assert_eq!(restored[&b"a/b/beside"[..]].content, b"beside");
}

#[test]
fn what_is_left_out_of_a_full_backup_is_left_out_of_lists() {
    let sandbox = Sandbox::new();
    sandbox.write("cache/x", b"x");
    sandbox.write("kept/a.tmp", b"x");
    sandbox.write("marked/x", b"x");
    sandbox.write("kept/a", b"x");
    let mut rules = ExcludeRules::builder();
    rules.pattern("*.tmp", Case::Sensitive).expect("a pattern");
    rules.pattern("cache/", Case::Sensitive).expect("a pattern");
    rules.if_present(".mark").expect("a mark");
    let options = sandbox.options().with_exclude(rules.build().expect("rules"));
    let_a_tick_pass();
    sandbox.try_backup(&options).expect("a backup");
    sandbox.write("marked/.mark", b"");
    sandbox.write("marked/y", b"y");
    let_a_tick_pass();
    let entries = lines(&sandbox, &["cache/x", "kept/a.tmp", "kept/b.tmp", "marked/y", "marked/.mark"]);
    let listed = try_listed(&sandbox, entries, &options, &sandbox.resources()).expect("a backup");
    let again = sandbox.try_backup(&options.with_force(true)).expect("a backup");
    assert_same_entries(&sandbox, &listed, &again, "exclusions");
    assert_eq!(listed.statistics.files, 2);
}

#[test]
fn all_names_of_a_file_hold_its_new_content_or_it_is_an_error() {
    let sandbox = Sandbox::new();
    sandbox.write("b", b"before");
    for name in ["a", "c"] {
        fs::hard_link(sandbox.source().join("b"), sandbox.source().join(name)).expect("linked");
    }
    full(&sandbox);
    fs::write(sandbox.source().join("b"), b"changed!").expect("written");
    let_a_tick_pass();
    // "c" comes behind: it is another name of what was read. "a" came before, with the content of then.
    let error = try_listed(&sandbox, lines(&sandbox, &["b"]), &sandbox.options(), &sandbox.resources())
        .expect_err("half a list");
    let text = error.to_string();
    assert!(matches!(error, EngineError::UnlistedName { .. }), "{text}");
    assert!(text.contains("/b'") && text.contains("/a'"), "{text}");
    assert_as_full(&sandbox, &listed(&sandbox, &["a"]), "the first name");
    overwrite(&sandbox.source().join("c"), 2, b"CC");
    assert_as_full(&sandbox, &listed(&sandbox, &["a\t2\t2", "c\t2\t2"]), "ranges of two names");
    // Content that is the same needs no other name.
    fs::hard_link(sandbox.source().join("a"), sandbox.source().join("d")).expect("linked");
    let summary = listed(&sandbox, &["d"]);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(restored[&b"d"[..]].content, b"chCCged!");
}

#[test]
fn lists_that_cannot_be_built_on_are_refused_before_anything_is_written() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    sandbox.write("a", b"a");
    let objects = || disk.list(Listing::All).expect("a list").len();
    let (before, options) = (objects(), sandbox.options());
    let refused = |list, options: &BackupOptions| {
        let before = objects();
        let error = try_listed(&sandbox, list, options, &sandbox.resources()).expect_err("refused");
        assert_eq!(objects(), before, "{error}");
        error
    };
    for dry_run in [false, true] {
        let options = options.clone().with_dry_run(dry_run);
        let error = refused(list(""), &options);
        assert!(matches!(&error, EngineError::NoPreviousSnapshot { .. }), "{error}");
        assert!(error.to_string().contains("make a full backup first"), "{error}");
    }
    assert_eq!(objects(), before);
    full(&sandbox);
    let error = refused(list("/etc/passwd"), &options);
    assert!(error.to_string().contains("/etc/passwd") && error.to_string().contains("line 1"), "{error}");
    let other: PathBuf = sandbox.folder.path().join("other");
    let source = Source::Changes { paths: vec![other], list: Arc::new(list("")) };
    let error =
        backup::backup(&sandbox.repository(), source, &options, &sandbox.resources()).expect_err("other sources");
    assert!(matches!(&error, EngineError::OtherSources { .. }), "{error}");
}

#[test]
fn a_source_that_is_gone_is_no_deletion() {
    let sandbox = Sandbox::new();
    sandbox.write("a", b"a");
    full(&sandbox);
    fs::rename(sandbox.source(), sandbox.folder.path().join("unmounted")).expect("renamed");
    for entries in [&["a"][..], &[""]] {
        let error =
            try_listed(&sandbox, lines(&sandbox, entries), &sandbox.options(), &sandbox.resources()).expect_err("gone");
        assert!(matches!(&error, EngineError::SourceGone { .. }), "{error}");
        assert!(error.to_string().contains("/source"), "{error}");
    }
    assert_eq!(sandbox.snapshots().len(), 1);
}

#[test]
fn what_was_never_there_is_told() {
    let sandbox = Sandbox::new();
    sandbox.write("a", b"a");
    full(&sandbox);
    let log = Log::default();
    try_listed(&sandbox, lines(&sandbox, &["a\r", "a"]), &sandbox.options(), &sandbox.heard_by(&log))
        .expect("a backup");
    let unknown: Vec<_> = log.notices().into_iter().filter(|it| matches!(it, Notice::ListedUnknown { .. })).collect();
    assert_eq!(unknown.len(), 1, "{unknown:?}");
}

#[test]
fn lost_content_is_not_copied() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    sandbox.write("a", &noise(1, 100_000));
    sandbox.write("b", &noise(2, 100_000));
    full(&sandbox);
    let series = sandbox.repository().keys().series_id("test");
    let kind = siltstone_store::container::ContainerKind::Data;
    for container in common::ruin::containers_of(&sandbox.repository(), series, kind) {
        disk.delete(&container.object_name(series)).expect("deleted");
    }
    let error =
        try_listed(&sandbox, lines(&sandbox, &["b"]), &sandbox.options(), &sandbox.resources()).expect_err("lost");
    assert!(matches!(&error, EngineError::PreviousUnusable { .. }), "{error}");
    assert!(error.to_string().contains("source/a") && error.to_string().contains("full backup"), "{error}");
    // What is listed is read, ranges or not.
    let summary = listed(&sandbox, &["a", "b\t5\t5"]);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0]);
}

#[test]
fn hostile_lists_do_no_harm() {
    let sandbox = Sandbox::new();
    sandbox.write("file", &noise(1, 50_000));
    sandbox.write("d/file", b"x");
    full(&sandbox);
    let deep = "x/".repeat(400_000);
    let long = "n".repeat(900_000);
    let lists: &[&[&str]] = &[
        &[&deep, &long],
        &["file/beneath/a/file", "d/file/x"],
        &["d\t0\t5", "d/file\t0\t9223372036854775807"],
        &["file\t9223372036854775807\t0", "file\t40000\t9000000000000000000", "file\t0\t0"],
        &["file\t0\t1"; 1000],
        &["./d/./../d//file", "d/../file", "."],
    ];
    for entries in lists {
        assert_as_full(&sandbox, &listed(&sandbox, entries), &format!("{:.80}", entries.join(" ")));
    }
}

fn journal_list(journal: &Journal) -> ChangedList {
    let mut list = ChangedList::new(MEMORY);
    list.add_lines("the journal", &journal.lines[..]).expect("lines");
    list.add_raw("the journal", &journal.raw[..]).expect("names");
    list
}

fn any_rounds() -> impl Strategy<Value = Vec<(Vec<Edit>, bool)>> {
    prop::collection::vec((any_edits(), any::<bool>()), 1..6)
}

proptest! {
    #![proptest_config(common::random_steps(CASES))]

    #[test]
    fn a_list_of_all_changes_makes_the_snapshot_of_a_full_backup(rounds in any_rounds()) {
        let sandbox = Sandbox::new();
        full(&sandbox);
        let mut before = Look::at(&sandbox.source());
        for (edits, ranges) in &rounds {
            for edit in edits {
                edit.apply(&sandbox.source());
            }
            let now = Look::at(&sandbox.source());
            let journal = before.changes(&now, *ranges);
            let_a_tick_pass();
            let summary =
                try_listed(&sandbox, journal_list(&journal), &sandbox.options(), &sandbox.resources());
            let summary = summary.expect("a backup");
            prop_assert_eq!(summary.statistics.problems, 0);
            assert_as_full(&sandbox, &summary, &String::from_utf8_lossy(&journal.lines));
            before = now;
        }
    }
}

#[test]
fn what_a_list_builds_on_must_be_the_latest() {
    let sandbox = Sandbox::new();
    sandbox.write("a", b"old");
    sandbox.write("z", b"z");
    full(&sandbox);
    sandbox.write("a", b"new");
    full(&sandbox);
    // History that is brought along is stored last, and is older.
    sandbox.write("a", b"old");
    let long_ago = sandbox.options().with_force(true).with_time(Some(Time { seconds: 1_600_000_000, nanoseconds: 0 }));
    sandbox.try_backup(&long_ago).expect("a backup");
    sandbox.write("a", b"new");
    let error = try_listed(&sandbox, lines(&sandbox, &["z"]), &sandbox.options(), &sandbox.resources());
    let error = error.expect_err("the list says nothing of a");
    assert!(matches!(&error, EngineError::PreviousUnusable { .. }) && error.to_string().contains("older"), "{error}");
    full(&sandbox);
    listed(&sandbox, &["z"]);
}

//! Sources that change while they are read, streams, and what is not read at all.

use super::*;
use crate::common::{self, faults::forget_parity, log::Log, tree};
use siltstone_engine::backup::{self, BackupOptions, BackupSummary, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::{EngineError, EntryAction, Notice, Observer};
use siltstone_store::catalog::EntryPath;
use siltstone_store::storage::{ObjectName, SimulatedDisk, Storage};
use std::io::{self, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Longer than the clock that stamps inodes takes for a tick: only then an unchanged time says that nothing changed.
fn let_a_tick_pass() {
    std::thread::sleep(Duration::from_millis(40));
}

fn back_up(sandbox: &Sandbox, change: impl FnOnce(&mut BackupOptions)) -> BackupSummary {
    back_up_heard_by(sandbox, change, &Log::default())
}

fn back_up_heard_by(
    sandbox: &Sandbox,
    change: impl FnOnce(&mut BackupOptions),
    observer: impl Into<Arc<dyn Observer>>,
) -> BackupSummary {
    let mut options = sandbox.options();
    change(&mut options);
    backup::backup(&sandbox.repository(), Source::Paths(vec![sandbox.source()]), &options, &sandbox.heard_by(observer))
        .expect("a backup")
}

fn many_files() -> Sandbox {
    with_many_files(Sandbox::new())
}

fn with_many_files(sandbox: Sandbox) -> Sandbox {
    for number in 0..50 {
        sandbox
            .write(&format!("{number}/file"), &common::noise(number, 1000 * usize::try_from(number).expect("small")));
    }
    sandbox.write("large", &common::noise(99, 3_000_000));
    fs::hard_link(sandbox.source().join("large"), sandbox.source().join("larger")).expect("linked");
    let_a_tick_pass();
    sandbox
}

#[test]
fn unchanged_files_are_not_read() {
    let mut sandbox = many_files();
    let first = back_up(&sandbox, |_| ()).statistics;
    assert_eq!((first.files, first.files_new, first.files_unchanged), (52, 52, 0));
    for has_cache in [true, false] {
        sandbox.has_cache = has_cache;
        let again = back_up(&sandbox, |_| ()).statistics;
        assert_eq!((again.read_bytes, again.files_unchanged, again.chunks_new), (0, 52, 0), "cache: {has_cache}");
    }
    let forced = back_up(&sandbox, |options| options.force = true).statistics;
    assert_eq!((forced.read_bytes, forced.chunks_new), (first.read_bytes, 0));

    sandbox.write("7/file", b"changed");
    let_a_tick_pass();
    let changed = back_up(&sandbox, |_| ());
    assert_eq!((changed.statistics.read_bytes, changed.statistics.files_changed), (7, 1));
    let restored = sandbox.restored(changed.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0]);
}

#[test]
fn a_change_that_keeps_size_and_time_is_seen_unless_told_to_look_away() {
    let sandbox = Sandbox::new();
    sandbox.write("file", b"before");
    let_a_tick_pass();
    back_up(&sandbox, |_| ());
    let path = sandbox.source().join("file");
    let time = fs::metadata(&path).expect("status").modified().expect("a time");
    fs::write(&path, "after!").expect("written");
    fs::File::options().write(true).open(&path).expect("opened").set_modified(time).expect("a time");
    let_a_tick_pass();
    assert_eq!(back_up(&sandbox, |options| options.ignore_ctime = true).statistics.read_bytes, 0);
    // The blind snapshot has recorded the newer change time: only reading everything finds the change now.
    let forced = back_up(&sandbox, |options| options.force = true);
    assert_eq!(forced.statistics.read_bytes, 6);
    fs::write(&path, "again!").expect("written");
    fs::File::options().write(true).open(&path).expect("opened").set_modified(time).expect("a time");
    let_a_tick_pass();
    let seen = back_up(&sandbox, |_| ());
    assert_eq!(seen.statistics.read_bytes, 6);
    assert_eq!(sandbox.restored(seen.snapshot.expect("a snapshot"))[&b"file"[..]].content, b"again!");
}

/// A file written, backed up and written again within one tick of the clock has the same times both times.
#[test]
fn two_changes_within_a_tick_are_both_seen() {
    let sandbox = Sandbox::new();
    for round in 0..30u8 {
        sandbox.write("file", &[round; 100]);
        fs::hard_link(sandbox.source().join("file"), sandbox.source().join(format!("name {round}"))).expect("linked");
        let id = back_up(&sandbox, |_| ()).snapshot.expect("a snapshot");
        let restored = sandbox.restored(id);
        assert!(restored.values().all(|node| node.content.iter().all(|byte| *byte == round)), "round {round}");
    }
}

#[test]
fn what_a_lost_container_held_is_stored_again() {
    let disk = Arc::new(SimulatedDisk::new());
    let sandbox = Sandbox::on(disk.clone());
    sandbox.write("file", &common::noise(1, 500_000));
    sandbox.write("small", b"x");
    let_a_tick_pass();
    let wanted = tree::read(&sandbox.source());
    let first = back_up(&sandbox, |_| ()).snapshot.expect("a snapshot");
    let containers: Vec<_> =
        disk.names().into_iter().filter(|name| matches!(name, ObjectName::Container(..))).collect();
    let largest = containers.iter().max_by_key(|name| disk.read(name, u64::MAX).map_or(0, |bytes| bytes.len()));
    disk.delete(largest.expect("a container")).expect("deleted");
    assert!(!sandbox.check(ReadData::None).findings.is_empty());

    let log = Log::default();
    let second = back_up_heard_by(&sandbox, |_| (), &log);
    assert!(log.notices().iter().any(|notice| matches!(notice, Notice::ContainersLost { .. })), "{:?}", log.notices());
    assert_eq!(second.statistics.read_bytes, 500_001);
    assert_eq!(sandbox.restored(second.snapshot.expect("a snapshot")), wanted);
    // Once the snapshot that cannot be whole again is gone, nothing is wrong any more.
    sandbox.forget(&[first], false);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    assert_eq!(back_up(&sandbox, |_| ()).statistics.read_bytes, 0);
}

#[test]
fn a_lost_catalog_means_reading_everything_again() {
    let disk = Arc::new(SimulatedDisk::new());
    let sandbox = Sandbox::on(disk.clone());
    sandbox.write("file", &common::noise(1, 500_000));
    let_a_tick_pass();
    let first = back_up(&sandbox, |_| ()).snapshot.expect("a snapshot");
    let containers: Vec<_> =
        disk.names().into_iter().filter(|name| matches!(name, ObjectName::Container(..))).collect();
    let smallest = containers.iter().min_by_key(|name| disk.read(name, u64::MAX).map_or(0, |bytes| bytes.len()));
    disk.delete(smallest.expect("a container")).expect("deleted");
    forget_parity(&disk);
    let second = back_up_heard_by(&sandbox, |_| (), &Log::default());
    assert_eq!((second.statistics.read_bytes, second.statistics.chunks_new), (500_000, 0));
    let restored = sandbox.restored(second.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0]);
    sandbox.forget(&[first], false);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

/// Does something to the source the first time the backup tells of an entry or of progress.
struct Meanwhile<F: Fn() + Send + Sync> {
    log: Log,
    done: AtomicBool,
    act: F,
}

impl<F: Fn() + Send + Sync> Meanwhile<F> {
    fn new(act: F) -> Arc<Self> {
        Arc::new(Self { log: Log::default(), done: AtomicBool::new(false), act })
    }
}

impl<F: Fn() + Send + Sync> Observer for Meanwhile<F> {
    fn advance(&self, _: u64, bytes: u64) {
        if bytes > 0 && !self.done.swap(true, Ordering::SeqCst) {
            (self.act)();
        }
    }

    fn problem(&self, problem: &siltstone_engine::fs::Problem) {
        self.log.problem(problem);
    }

    fn entry(&self, _: &EntryPath, _: EntryAction, _: u64) {}
}

#[test]
fn a_file_that_changes_while_it_is_read_is_told_and_kept() {
    let sandbox = Sandbox::new();
    // Larger than all that is read ahead, so that its end is read after the change.
    sandbox.write("changing", &common::noise(1, 64 << 20));
    sandbox.write("other", b"x");
    let_a_tick_pass();
    let path = sandbox.source().join("changing");
    let observer = Meanwhile::new(move || {
        fs::File::options().append(true).open(&path).expect("opened").write_all(b"more").expect("written");
    });
    let summary = back_up_heard_by(&sandbox, |_| (), observer.clone() as Arc<dyn Observer>);
    assert!(observer.log.tells_of("changing: changed while it was read"), "{:?}", observer.log.problems());
    assert_eq!(summary.statistics.problems, 1);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(restored[&b"changing"[..]].content, common::noise(1, 64 << 20), "as long as it was when it was opened");
    assert_eq!(restored[&b"other"[..]].content, b"x");
    let_a_tick_pass();
    let again = back_up(&sandbox, |_| ());
    assert_eq!(again.statistics.files_changed, 1, "and it is read again next time");
    let restored = sandbox.restored(again.snapshot.expect("a snapshot"));
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0]);
}

#[test]
fn a_file_that_becomes_shorter_is_told_and_kept_as_far_as_it_goes() {
    let sandbox = Sandbox::new();
    sandbox.write("shrinking", &common::noise(1, 64 << 20));
    let path = sandbox.source().join("shrinking");
    let observer = Meanwhile::new(move || {
        fs::File::options().write(true).open(&path).expect("opened").set_len(63 << 20).expect("cut");
    });
    let summary = back_up_heard_by(&sandbox, |_| (), observer.clone() as Arc<dyn Observer>);
    assert!(observer.log.tells_of("changed while it was read"), "{:?}", observer.log.problems());
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(restored[&b"shrinking"[..]].content, common::noise(1, 63 << 20));
}

#[test]
fn what_vanishes_is_told_and_the_rest_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("a large one", &common::noise(1, 64 << 20));
    // 40 batches of a mebibyte. At the first byte read the walk is at most some 14 ahead, so it has not met the last.
    for number in 0..2000 {
        sandbox.write(&format!("folder/{number:04}"), &common::noise(number, 20_000));
    }
    sandbox.write("z", b"last");
    let last = sandbox.source().join("folder/1999");
    let observer = Meanwhile::new(move || fs::remove_file(&last).expect("removed"));
    let summary = back_up_heard_by(&sandbox, |_| (), observer.clone() as Arc<dyn Observer>);
    assert!(observer.log.tells_of("folder/1999: vanished during the backup"), "{:?}", observer.log.problems());
    assert_eq!(summary.statistics.problems, 1);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    assert_eq!(restored.len(), 2 + 1 + 1999 + 1);
    assert_eq!(restored[&b"z"[..]].content, b"last");
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

#[test]
fn a_source_that_is_missing_is_told_and_the_rest_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("file", b"x");
    let log = Log::default();
    let paths = || vec![sandbox.source().join("file"), sandbox.source().join("no such file")];
    let summary =
        backup::backup(&sandbox.repository(), Source::Paths(paths()), &sandbox.options(), &sandbox.heard_by(&log))
            .expect("a backup");
    assert_eq!((summary.missing_sources, summary.statistics.problems), (1, 1));
    assert!(log.tells_of("no such file"), "{:?}", log.problems());
    assert_eq!(sandbox.restored(summary.snapshot.expect("a snapshot")).len(), 2);
    let none = backup::backup(
        &sandbox.repository(),
        Source::Paths(paths().split_off(1)),
        &sandbox.options(),
        &sandbox.heard_by(&log),
    );
    assert!(matches!(none, Err(EngineError::NoSource { .. })), "{none:?}");
    assert_eq!(sandbox.snapshots().len(), 1, "nothing to back up makes no snapshot");
}

/// Gives some bytes in pieces of awkward sizes, then an end or an error.
struct Stream {
    bytes: Vec<u8>,
    given: usize,
    fails: bool,
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.bytes.len() - self.given).min(777 + self.given % 9000);
        if count == 0 && self.fails {
            return Err(io::Error::other("the command failed"));
        }
        buffer[..count].copy_from_slice(&self.bytes[self.given..self.given + count]);
        self.given += count;
        Ok(count)
    }
}

fn back_up_stream(sandbox: &Sandbox, bytes: Vec<u8>, fails: bool) -> Result<BackupSummary, EngineError> {
    let reader = Box::new(Stream { bytes, given: 0, fails });
    let source = Source::Stream { name: "/dumps/database.sql".into(), reader };
    backup::backup(&sandbox.repository(), source, &sandbox.options(), &sandbox.resources())
}

#[test]
fn a_stream_becomes_a_file() {
    let sandbox = Sandbox::new();
    for bytes in [0, 1, 100_000, 5_000_000] {
        let content = common::noise(1, bytes);
        let summary = back_up_stream(&sandbox, content.clone(), false).expect("a backup");
        assert_eq!(summary.statistics.read_bytes, bytes as u64);
        let target = folder();
        let restored = sandbox.restore(summary.snapshot.expect("a snapshot"), target.path()).expect("a restore");
        assert_eq!((restored.problems, restored.entries), (0, 2), "the folder of its name belongs to it");
        assert_eq!(fs::read(target.path().join("dumps/database.sql")).expect("read"), content);
    }
    let again = back_up_stream(&sandbox, common::noise(1, 5_000_000), false).expect("a backup");
    assert_eq!(again.statistics.chunks_new, 0);
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

/// The failure once could be noticed after the commit: many short streams make that likely.
#[test]
fn a_stream_that_fails_makes_no_snapshot() {
    let sandbox = Sandbox::new();
    let before = sandbox.bytes();
    for round in 0..40 {
        let bytes = [0, 1, 10_000, 3_000_000][round % 4];
        let failed = back_up_stream(&sandbox, common::noise(1, bytes), true);
        assert!(
            matches!(&failed, Err(EngineError::Stream { name, .. }) if name.ends_with("database.sql")),
            "{failed:?}"
        );
    }
    assert_eq!(sandbox.snapshots().len(), 0);
    assert!(sandbox.bytes() < before + 4096, "nothing of it is left but an empty manifest");
    assert_eq!(sandbox.check(ReadData::All).orphans, 0);
}

#[test]
fn a_dry_run_writes_nothing_and_an_unchanged_tree_can_be_skipped() {
    // The folders above the source belong to the snapshot, and that of temporary files changes all the time.
    let apart = env!("CARGO_TARGET_TMPDIR").as_ref();
    let sandbox = with_many_files(Sandbox::below(apart, Arc::new(SimulatedDisk::new())));
    let before = sandbox.bytes();
    let planned = back_up(&sandbox, |options| options.dry_run = true);
    assert_eq!((planned.snapshot, sandbox.bytes()), (None, before));
    let done = back_up(&sandbox, |_| ());
    // The record of the snapshot holds its time and its random id, which take a few bytes more or fewer.
    let difference = planned.statistics.added_stored_bytes.abs_diff(done.statistics.added_stored_bytes);
    assert!(difference <= 1024, "{difference}");
    // Here, too, another test makes a folder now and then.
    let mut parent = done.snapshot;
    let is_skipped = |_| {
        let summary = back_up(&sandbox, |options| options.skip_if_unchanged = true);
        assert_eq!((summary.parent, summary.statistics.read_bytes), (parent, 0));
        parent = summary.snapshot.or(parent);
        summary.snapshot.is_none()
    };
    assert!((0..10).any(is_skipped));
    sandbox.write("0/file", b"x");
    assert!(back_up(&sandbox, |options| options.skip_if_unchanged = true).snapshot.is_some());
}

/// Root may read everything: it runs this test as nobody, if nobody may run it.
#[test]
fn what_cannot_be_read_is_told_and_the_rest_goes_on() {
    const NOBODY: u32 = 65_534;
    if is_root() {
        use std::os::unix::process::CommandExt;
        let mut again = std::process::Command::new(std::env::current_exe().expect("this program"));
        again.args(["--exact", "source::what_cannot_be_read_is_told_and_the_rest_goes_on"]);
        if let Ok(output) = again.uid(NOBODY).gid(NOBODY).current_dir("/").output() {
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        }
        return;
    }
    let sandbox = Sandbox::new();
    for name in ["a", "closed file", "closed folder/file", "z"] {
        sandbox.write(name, name.as_bytes());
    }
    let closed = ["closed file", "closed folder"].map(|name| sandbox.source().join(name));
    for path in &closed {
        set_mode(path, 0o000);
    }
    let log = Log::default();
    let summary = back_up_heard_by(&sandbox, |_| (), &log);
    for path in &closed {
        set_mode(path, 0o700);
    }
    for name in ["closed file", "closed folder"] {
        assert!(log.tells_of(&format!("{name}: cannot be read")), "{:?}", log.problems());
    }
    assert_eq!(summary.statistics.problems, 2);
    let target = folder();
    let restored = restore_into(&sandbox, summary.snapshot.expect("a snapshot"), target.path());
    assert_eq!(tree::listing(&restored), ["a", "closed folder", "z"], "the folder itself is known");
    set_mode(restored.join("closed folder"), 0o700);
}

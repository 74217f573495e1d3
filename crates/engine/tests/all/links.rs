//! Sources that name a thing twice: files with several names, devices whose numbers change, sources inside others; and files
//! that another program holds, or that say they are empty and are not.
//!
//! Some of this needs mounts, which only root can make: as anybody else those tests pass over it.

use crate::common::log::Log;
use crate::common::{self, Sandbox};
use rustix::mount::{MountFlags, UnmountFlags};
use siltstone_engine::backup::{self, BackupSummary, ChangedList, Source};
use siltstone_engine::compare::{Change, Difference, Live, compare_live};
use siltstone_engine::fs::{Problem, ProblemKind, ScanItem, ScanOptions, Scanner};
use siltstone_engine::{EntryAction, Observer, restore};
use siltstone_store::catalog::EntryPath;
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, UNIX_EPOCH};

const MEMORY: u64 = 256 << 20;

fn link(sandbox: &Sandbox, name: &str, other: &str) {
    fs::hard_link(sandbox.source().join(name), sandbox.source().join(other)).expect("linked");
}

/// A file system in memory, gone with this.
struct Mount(PathBuf);

impl Mount {
    /// Mounts one; `None` for whoever may not.
    fn at(path: PathBuf) -> Option<Self> {
        fs::create_dir_all(&path).expect("a folder");
        let is_mounted = rustix::mount::mount(c"none", &path, c"tmpfs", MountFlags::empty(), c"size=1m").is_ok();
        is_mounted.then_some(Self(path))
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = rustix::mount::unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// Does something the first time the backup tells of progress.
struct Meanwhile<F: Fn() + Send + Sync> {
    log: Log,
    is_done: AtomicBool,
    act: F,
}

impl<F: Fn() + Send + Sync> Observer for Meanwhile<F> {
    fn advance(&self, _: u64, bytes: u64) {
        if bytes > 0 && !self.is_done.swap(true, Ordering::SeqCst) {
            (self.act)();
        }
    }

    fn problem(&self, problem: &Problem) {
        self.log.problem(problem);
    }

    fn entry(&self, _: &EntryPath, _: EntryAction, _: u64) {}
}

#[test]
fn a_name_that_a_file_gets_during_the_backup_is_read_as_well() {
    let sandbox = Sandbox::new();
    sandbox.write("1", b"of three names");
    link(&sandbox, "1", "2");
    sandbox.write("a large one", &common::noise(1, 64 << 20));
    // As long as the first byte is not read, the walk does not come to the end of these.
    for number in 0..2000 {
        sandbox.write(&format!("folder/{number:04}"), &common::noise(number, 20_000));
    }
    fs::create_dir(sandbox.source().join("z")).expect("a folder");
    let (first, third) = (sandbox.source().join("1"), sandbox.source().join("z/3"));
    let act = move || fs::hard_link(&first, &third).expect("linked");
    let observer = Arc::new(Meanwhile { log: Log::default(), is_done: AtomicBool::new(false), act });
    let resources = sandbox.heard_by(observer.clone() as Arc<dyn Observer>);
    let summary = sandbox.try_backup_within(&sandbox.options(), &resources).expect("a backup");
    assert_eq!(observer.log.problems(), [""; 0]);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    for name in ["1", "2", "z/3"] {
        assert_eq!(restored[name.as_bytes()].content, b"of three names", "{name}");
    }
    assert!(restored[&b"2"[..]].other_name.is_some(), "names that were there at once are of one file");
}

#[test]
fn a_file_mounted_at_two_places_is_read_at_both() {
    let sandbox = Sandbox::new();
    sandbox.write("a/1", b"of two names");
    link(&sandbox, "a/1", "a/2");
    let again = sandbox.source().join("b");
    fs::create_dir(&again).expect("a folder");
    if rustix::mount::mount_bind(sandbox.source().join("a"), &again).is_err() {
        return;
    }
    let _mount = Mount(again);
    let log = Log::default();
    let summary = sandbox.try_backup_within(&sandbox.options(), &sandbox.heard_by(&log)).expect("a backup");
    assert_eq!(log.problems(), [""; 0]);
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    for name in ["a/1", "a/2", "b/1", "b/2"] {
        assert_eq!(restored[name.as_bytes()].content, b"of two names", "{name}");
    }
}

/// A file with two names, in a folder of its own.
fn write_linked(folder: &Path, content: &str) -> fs::Metadata {
    fs::create_dir_all(folder).expect("a folder");
    let path = folder.join("file");
    fs::write(&path, content).expect("written");
    fs::hard_link(&path, folder.join("same")).expect("linked");
    let time = UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&path).expect("opened").set_modified(time).expect("a time");
    fs::metadata(&path).expect("a status")
}

fn listed(sandbox: &Sandbox, names: &[String]) -> BackupSummary {
    let mut list = ChangedList::new(MEMORY);
    for name in names {
        let line = [sandbox.source().join(name).as_os_str().as_bytes(), b"\n"].concat();
        list.add_lines("the list", line.as_slice()).expect("a line");
    }
    let source = Source::Changes { paths: vec![sandbox.source()], list: Arc::new(list) };
    backup::backup(&sandbox.repository(), source, &sandbox.options(), &sandbox.resources()).expect("a backup")
}

/// Two file systems whose devices exchange their numbers between two backups, with files of one inode's number.
#[test]
fn devices_that_exchange_their_numbers_do_not_exchange_content() {
    // What is listed comes before what is not, and behind it.
    for (changed, kept) in [("d1", "d2"), ("d2", "d1")] {
        let sandbox = Sandbox::new();
        let at = |name: &str| sandbox.source().join(name);
        let (Some(first), Some(second)) = (Mount::at(at("d1")), Mount::at(at("d2"))) else { return };
        let before = ["d1", "d2"].map(|name| write_linked(&at(name).join("in"), name));
        sandbox.backup();
        drop((first, second));
        let (Some(_second), Some(_first)) = (Mount::at(at("d2")), Mount::at(at("d1"))) else { return };
        let content = |name| if name == changed { "!!" } else { name };
        let now = ["d1", "d2"].map(|name| write_linked(&at(name).join("in"), content(name)));
        let is_exchanged = before[0].dev() == now[1].dev() && before[1].dev() == now[0].dev();
        let numbers = [&before, &now].map(|status| [status[0].ino(), status[1].ino()]);
        if !is_exchanged || numbers.as_flattened().iter().any(|number| *number != before[0].ino()) {
            // Another mount came between.
            continue;
        }
        let summary = listed(&sandbox, &["file", "same"].map(|name| format!("{changed}/in/{name}")));
        let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
        for name in ["file", "same"] {
            assert_eq!(restored[format!("{changed}/in/{name}").as_bytes()].content, b"!!", "{changed}: {name}");
            assert_eq!(restored[format!("{kept}/in/{name}").as_bytes()].content, kept.as_bytes(), "{kept}: {name}");
        }
    }
}

fn scan(sources: &[PathBuf], one_file_system: bool) -> (Vec<PathBuf>, Vec<Problem>) {
    let options = ScanOptions { one_file_system, ..ScanOptions::default() };
    let (mut entries, mut problems) = (Vec::new(), Vec::new());
    for item in Scanner::new(sources, options).expect("a scanner") {
        match item {
            ScanItem::Entry(entry) => {
                entries.push(Path::new("/").join(std::ffi::OsStr::from_bytes(entry.path.as_bytes())));
            }
            ScanItem::Problem(problem) => problems.push(problem),
            _ => {}
        }
    }
    (entries, problems)
}

#[test]
fn a_source_that_the_one_around_it_does_not_lead_to_is_missing() {
    let sandbox = Sandbox::new();
    let outside = sandbox.folder.path().join("outside");
    fs::create_dir_all(outside.join("inner")).expect("a folder");
    fs::write(outside.join("inner/file"), "x").expect("written");
    symlink(&outside, sandbox.source().join("link")).expect("linked");
    sandbox.write("inside/file", b"x");
    let sources = ["", "link/inner", "inside", "inside/file"].map(|name| sandbox.source().join(name));
    let (entries, problems) = scan(&sources, false);
    assert!(entries.contains(&sandbox.source().join("inside/file")), "{entries:?}");
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.kind == ProblemKind::SourceMissing), "{problems:?}");
    assert!(problems.iter().all(|problem| problem.to_string().contains("source/link/inner")), "{problems:?}");
    let source = Source::Paths(sources.to_vec());
    let summary = backup::backup(&sandbox.repository(), source, &sandbox.options(), &sandbox.resources());
    assert_eq!(summary.expect("a backup").missing_sources, 1);
}

#[test]
fn a_source_beyond_a_border_is_walked_and_nothing_beside_it() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.source().join(name);
    let Some(_mount) = Mount::at(at("m")) else { return };
    for name in ["m/beside", "m/data/beside", "m/data/photos/file", "m/folder/file"] {
        sandbox.write(name, b"x");
    }
    let (entries, problems) = scan(&[at(""), at("m/data/photos")], true);
    assert_eq!(problems, []);
    let inside: Vec<_> = entries.into_iter().filter(|path| path.starts_with(at(""))).collect();
    let wanted = ["", "m", "m/data", "m/data/photos", "m/data/photos/file"].map(at);
    assert_eq!(inside, wanted);
}

/// A program that lets go of a file only when it is asked to, as a file server does: the signal that asks ends it.
const HOLDER: &str = "
import fcntl, sys, time
file = open(sys.argv[1], 'r+')
fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
print('held', flush=True)
time.sleep(60)
";

#[test]
fn a_file_with_a_lease_is_waited_for() {
    let sandbox = Sandbox::new();
    // The small one is opened without a look at it first.
    for (name, bytes) in [("small", 10), ("large", 200_000)] {
        sandbox.write(name, &common::noise(1, bytes));
    }
    for name in ["small", "large"] {
        let mut holder = Command::new("python3");
        holder.args(["-c", HOLDER]).arg(sandbox.source().join(name)).stdout(Stdio::piped()).stderr(Stdio::null());
        let Ok(mut holder) = holder.spawn() else { return };
        let mut line = String::new();
        let out = holder.stdout.take().expect("its output");
        BufReader::new(out).read_line(&mut line).expect("a line");
        let log = Log::default();
        let options = sandbox.options().with_force(true);
        let summary = sandbox.try_backup_within(&options, &sandbox.heard_by(&log));
        let _ = holder.kill();
        let _ = holder.wait();
        let summary = summary.expect("a backup");
        if line != "held\n" {
            // Not every file system has leases.
            return;
        }
        assert_eq!((log.problems().len(), summary.statistics.files), (0, 2), "{name}: {:?}", log.problems());
    }
}

/// The story: such files were stored empty, and that was no problem.
#[test]
fn a_file_that_says_it_is_empty_is_read_to_its_end() {
    let path = Path::new("/proc/version");
    let content = fs::read(path).expect("read");
    assert!(fs::metadata(path).expect("a status").len() == 0 && !content.is_empty());
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let back_up = || {
        let source = Source::Paths(vec![path.to_owned()]);
        let resources = sandbox.heard_by(&log);
        backup::backup(&sandbox.repository(), source, &sandbox.options(), &resources).expect("a backup")
    };
    back_up();
    let summary = back_up();
    assert_eq!(log.problems(), [""; 0]);
    let bytes = u64::try_from(content.len()).expect("small");
    assert_eq!((summary.statistics.files, summary.statistics.logical_bytes), (1, bytes));
    assert_eq!(summary.statistics.files_unchanged, 0, "its status does not tell");
    let (repository, view) = (sandbox.repository(), sandbox.view(summary.snapshot.expect("a snapshot")));
    let target = tempfile::TempDir::new().expect("a folder");
    let options = sandbox.restore_options(target.path()).with_below(Some(common::entry_path(path)));
    restore::restore(&repository, &view, &options, &common::resources()).expect("a restore");
    assert_eq!(fs::read(target.path().join("version")).expect("read"), content);
    let live = Live { sources: vec![path.to_owned()], ..Live::default() };
    let mut changed = Vec::new();
    let mut visit = |difference: Difference| {
        if difference.change == Change::Content {
            changed.push(difference.path);
        }
        Ok(())
    };
    compare_live(&repository, &view, &live, &common::resources(), &mut visit).expect("compared");
    assert_eq!(changed, []);
}

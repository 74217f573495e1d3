//! All that an inode carries, and every kind of inode.

use super::*;
use crate::common::{self, entry_path, log::Log, resources, tree};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid};
use siltstone_engine::backup::{self, BackupOptions, Source};
use siltstone_engine::check::ReadData;
use siltstone_engine::fs::Ownership;
use siltstone_engine::restore::{self};
use siltstone_engine::{Notice, browse};
use siltstone_store::catalog::Entry;
use std::ffi::OsStr;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, symlink};
use std::os::unix::net::UnixListener;

fn set_modified(path: impl AsRef<Path>, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path.as_ref(), &times, AtFlags::SYMLINK_NOFOLLOW).expect("a time");
}

fn set_owner(path: impl AsRef<Path>, uid: u32, gid: u32) {
    let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
    rustix::fs::chownat(CWD, path.as_ref(), uid, gid, AtFlags::SYMLINK_NOFOLLOW).expect("an owner");
}

/// The snapshot restores to exactly what the source is now.
fn assert_exact(sandbox: &Sandbox) -> SnapshotId {
    let wanted = tree::read(&sandbox.source());
    let id = sandbox.backup();
    let differences = tree::differences(&sandbox.restored(id), &wanted);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    assert_eq!(sandbox.check(ReadData::All).findings, []);
    id
}

#[test]
fn permissions_with_all_their_bits_are_kept() {
    let sandbox = Sandbox::new();
    for mode in [0o600, 0o644, 0o755, 0o4755, 0o2755, 0o1644, 0o6711, 0o7777, 0o400] {
        sandbox.write(&format!("file {mode:o}"), b"x");
        set_mode(sandbox.source().join(format!("file {mode:o}")), mode);
        sandbox.write(&format!("folder {mode:o}/file"), b"x");
        set_mode(sandbox.source().join(format!("folder {mode:o}")), mode | 0o700);
    }
    if is_root() {
        sandbox.write("closed/file", b"nobody may read this");
        set_mode(sandbox.source().join("closed/file"), 0o000);
        set_mode(sandbox.source().join("closed"), 0o000);
    }
    assert_exact(&sandbox);
}

#[test]
fn times_are_kept_to_the_nanosecond() {
    let sandbox = Sandbox::new();
    let times = [(0, 0), (1, 1), (1_700_000_000, 123_456_789), (4_000_000_000, 999_999_999), (-86_400, 5), (-1, 0)];
    for (number, (seconds, nanoseconds)) in times.into_iter().enumerate() {
        sandbox.write(&format!("{number}/file"), b"x");
        sandbox.symlink(&format!("{number}/link"), "file");
        for name in ["file", "link", "."] {
            set_modified(sandbox.source().join(format!("{number}/{name}")), seconds, nanoseconds);
        }
    }
    set_modified(sandbox.source(), 1_000_000_000, 42);
    assert_exact(&sandbox);
}

#[test]
fn owners_are_kept_by_number_and_by_name() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    for (name, uid, gid) in [("daemons", 1, 1), ("nameless", 123_456, 654_321), ("roots", 0, 0)] {
        sandbox.write(name, b"x");
        set_owner(sandbox.source().join(name), uid, gid);
        set_mode(sandbox.source().join(name), 0o6755);
        sandbox.symlink(&format!("link of {name}"), "x");
        set_owner(sandbox.source().join(format!("link of {name}")), uid, gid);
    }
    set_owner(sandbox.source(), 33, 33);
    let id = assert_exact(&sandbox);

    let entry = find(&sandbox, id, "daemons");
    assert_eq!(entry.metadata.user, Some("daemon".into()));
    assert_eq!(find(&sandbox, id, "nameless").metadata.user, None);
    let owner_of = |ownership, name: &str| {
        let target = folder();
        let below = Some(entry_path(&sandbox.source()));
        let options = sandbox.restore_options(target.path()).with_ownership(ownership).with_below(below);
        restore::restore(&sandbox.repository(), &sandbox.view(id), &options, &resources()).expect("a restore");
        let found = fs::metadata(target.path().join(name)).expect("status");
        (found.uid(), found.gid(), found.mode() & 0o7777)
    };
    assert_eq!(owner_of(Ownership::ByName, "daemons"), (1, 1, 0o6755));
    assert_eq!(owner_of(Ownership::ByName, "nameless"), (123_456, 654_321, 0o6755));
    assert_eq!(owner_of(Ownership::None, "roots"), (0, 0, 0o6755));
    // Whoever restores lends nobody his rights.
    assert_eq!(owner_of(Ownership::None, "daemons"), (0, 0, 0o755));
}

fn find(sandbox: &Sandbox, id: SnapshotId, name: &str) -> Entry {
    let mut found = None;
    let path = entry_path(&sandbox.source().join(name));
    browse::ls(&sandbox.repository(), &sandbox.view(id), Some(&path), false, &mut |entry| {
        found = found.take().or_else(|| Some(entry.clone()));
        Ok(())
    })
    .expect("a listing");
    found.expect("an entry")
}

#[test]
fn links_of_both_kinds_are_kept() {
    let sandbox = Sandbox::new();
    let long_target = "x/".repeat(2000);
    for (name, target) in
        [("to nothing", "nowhere"), ("absolute", "/etc/passwd"), ("up", "../.."), ("long", &long_target)]
    {
        sandbox.symlink(name, target);
    }
    sandbox.write("a/first", &common::noise(1, 200_000));
    sandbox.write("a/other", &common::noise(1, 200_000));
    fs::create_dir(sandbox.source().join("b")).expect("made");
    for (from, to) in [("a/first", "a/again"), ("a/first", "b/far"), ("absolute", "b/name of a link")] {
        fs::hard_link(sandbox.source().join(from), sandbox.source().join(to)).expect("linked");
    }
    // A name outside what is backed up.
    fs::hard_link(sandbox.source().join("a/other"), sandbox.folder.path().join("outside")).expect("linked");
    sandbox.write("b/empty", b"");
    fs::hard_link(sandbox.source().join("b/empty"), sandbox.source().join("b/empty too")).expect("linked");
    assert_exact(&sandbox);
}

#[test]
fn attributes_and_access_control_lists_are_kept() {
    let sandbox = Sandbox::new();
    sandbox.write("folder/file", b"x");
    sandbox.symlink("folder/link", "file");
    let at = |name: &str| sandbox.source().join(name);
    set_mode(at("folder/file"), 0o640);
    set_xattr(at("folder/file"), "user.text", b"a value");
    set_xattr(at("folder/file"), "user.bytes", b"\0\xff\n");
    set_xattr(at("folder/file"), "user.empty", b"");
    set_xattr(at("folder/file"), "user.large", &common::noise(1, 2000));
    set_xattr(at("folder"), "user.on a folder", b"1");
    // user::rwx, user:1234:r-x, group::r--, mask::r-x, other::---
    let list =
        access_control_list(&[(1, 7, u32::MAX), (2, 5, 1234), (4, 4, u32::MAX), (16, 5, u32::MAX), (32, 0, u32::MAX)]);
    set_xattr(at("folder/file"), "system.posix_acl_access", &list);
    set_xattr(at("folder"), "system.posix_acl_access", &list);
    // What is made below inherits this one; a restored file must not have it all the same.
    set_xattr(at("folder"), "system.posix_acl_default", &list);
    if is_root() {
        set_xattr(at("folder/link"), "trusted.of the link", b"1");
        set_xattr(at("folder/file"), "trusted.of the file", b"1");
        // cap_net_bind_service, effective and permitted
        let capability = [0x0200_0001u32, 1 << 10, 0, 0, 0].map(u32::to_le_bytes).concat();
        set_xattr(at("folder/file"), "security.capability", &capability);
    }
    let id = assert_exact(&sandbox);
    let kept = tree::read(&restore_into(&sandbox, id, folder().path()));
    assert!(kept[&b"folder/file"[..]].xattrs.contains(&(b"system.posix_acl_access".to_vec(), list)));
}

#[test]
fn attributes_of_files_with_unchanged_content_are_kept_and_their_changes_seen() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.source().join(name);
    for name in ["changed", "cleared", "given", "same"] {
        sandbox.write(name, name.as_bytes());
    }
    for name in ["changed", "cleared", "same"] {
        set_xattr(at(name), "user.text", b"before");
    }
    let backup = |options: &BackupOptions, files_unchanged| {
        // Longer than the clock that stamps inodes takes for a tick.
        std::thread::sleep(std::time::Duration::from_millis(40));
        let wanted = tree::read(&sandbox.source());
        let summary = sandbox.try_backup(options).expect("a backup");
        assert_eq!(summary.statistics.files_unchanged, files_unchanged);
        let differences = tree::differences(&sandbox.restored(summary.snapshot.expect("a snapshot")), &wanted);
        assert!(differences.is_empty(), "{}", differences.join("\n"));
    };
    let (usual, without_ctime) = (sandbox.options(), sandbox.options().with_ignore_ctime(true));
    backup(&usual, 0);
    backup(&usual, 4);
    let change = |value: &[u8]| {
        set_xattr(at("changed"), "user.text", value);
        set_xattr(at("given"), "user.new", value);
    };
    change(b"after");
    rustix::fs::lremovexattr(at("cleared"), "user.text").expect("an attribute");
    backup(&usual, 1);
    backup(&usual, 4);
    // Content is taken for unchanged whatever the change time, attributes are not.
    change(b"in the end");
    backup(&without_ctime, 4);
    backup(&usual, 4);
}

fn access_control_list(entries: &[(u16, u16, u32)]) -> Vec<u8> {
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend(tag.to_le_bytes());
        list.extend(permissions.to_le_bytes());
        list.extend(id.to_le_bytes());
    }
    list
}

#[test]
fn special_files_are_kept_and_sockets_left_out_with_a_word() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.source().join(name);
    fs::create_dir(at("empty folder")).expect("made");
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o620), 0).expect("a pipe");
    fs::hard_link(at("fifo"), at("fifo too")).expect("linked");
    if is_root() {
        let mode = Mode::from_raw_mode(0o640);
        for (name, kind, major, minor) in
            [("zero", FileType::CharacterDevice, 1, 5), ("disk", FileType::BlockDevice, 259, 70_000)]
        {
            // A container may forbid it even to root.
            let _ = rustix::fs::mknodat(CWD, at(name), kind, mode, rustix::fs::makedev(major, minor));
        }
    }
    let mut wanted = tree::read(&sandbox.source());
    let listener = UnixListener::bind(at("socket")).expect("a socket");
    let log = Log::default();
    let paths = Source::Paths(vec![sandbox.source()]);
    let summary =
        backup::backup(&sandbox.repository(), paths, &sandbox.options(), &sandbox.heard_by(&log)).expect("a backup");
    drop(listener);
    assert_eq!(log.problems(), [""; 0]);
    let path = entry_path(&at("socket"));
    assert!(log.notices().contains(&Notice::LeftOut { path, why: "a socket" }), "{:?}", log.notices());
    let mut restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    // Making the socket changed the folder.
    for tree in [&mut wanted, &mut restored] {
        tree.remove(&b""[..]);
    }
    assert_eq!(tree::differences(&restored, &wanted), [""; 0]);
}

#[test]
fn names_may_be_any_bytes() {
    let sandbox = Sandbox::new();
    let names: [&[u8]; 9] =
        [b"line\nbreak", b"\xff\xfe", b" ", b"-n", b"\x1b[2J", b"*?[a]", "\u{1f30b}".as_bytes(), b"...", &[b'x'; 255]];
    for name in names {
        let folder = sandbox.source().join(OsStr::from_bytes(name));
        fs::create_dir(&folder).expect("made");
        fs::write(folder.join(OsStr::from_bytes(name)), name).expect("written");
    }
    assert_exact(&sandbox);
}

#[test]
fn paths_beyond_what_one_call_takes_are_kept() {
    let sandbox = Sandbox::new();
    // 30 names of 200 bytes; the system takes less than 4096 at once.
    let name = "d".repeat(200);
    let mut directory = rustix::fs::open(sandbox.source(), OFLAGS, Mode::empty()).expect("opened");
    for _ in 0..30 {
        rustix::fs::mkdirat(&directory, &name, Mode::RWXU).expect("made");
        directory = rustix::fs::openat(&directory, &name, OFLAGS, Mode::empty()).expect("opened");
    }
    let flags = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
    let file = rustix::fs::openat(&directory, "deep", flags, Mode::RUSR | Mode::WUSR).expect("made");
    fs::File::from(file).write_all(b"at the bottom").expect("written");
    rustix::fs::symlinkat("target", &directory, "link").expect("linked");

    let id = sandbox.backup();
    let target = folder();
    let mut found = rustix::fs::open(restore_into(&sandbox, id, target.path()), OFLAGS, Mode::empty()).expect("opened");
    for _ in 0..30 {
        found = rustix::fs::openat(&found, &name, OFLAGS, Mode::empty()).expect("opened");
    }
    let file = rustix::fs::openat(&found, "deep", rustix::fs::OFlags::RDONLY, Mode::empty()).expect("opened");
    assert_eq!(std::io::read_to_string(fs::File::from(file)).expect("read"), "at the bottom");
    assert_eq!(rustix::fs::readlinkat(&found, "link", Vec::new()).expect("read").as_bytes(), b"target");
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

const OFLAGS: rustix::fs::OFlags = rustix::fs::OFlags::DIRECTORY;

/// Bytes that the file system keeps for a file.
fn allotted(path: &Path) -> u64 {
    fs::metadata(path).expect("status").blocks() * 512
}

#[test]
fn holes_stay_holes() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.source().join(name);
    let sparse = fs::File::create(at("sparse")).expect("made");
    sparse.write_all_at(&common::noise(1, 300_000), 4 << 20).expect("written");
    sparse.write_all_at(&common::noise(2, 5), 16 << 20).expect("written");
    sparse.set_len(24 << 20).expect("sized");
    fs::File::create(at("only a hole")).expect("made").set_len(5 << 20).expect("sized");
    sandbox.write("no hole", &vec![0; 3 << 20]);
    sandbox.write("empty", b"");
    let id = assert_exact(&sandbox);

    let target = folder();
    let restored = restore_into(&sandbox, id, target.path());
    for name in ["sparse", "only a hole", "no hole"] {
        assert_eq!(allotted(&restored.join(name)), allotted(&at(name)), "{name}");
    }
    let statistics = sandbox.view(id).snapshot.statistics;
    assert!(statistics.read_bytes < (3 << 20) + 400_000, "holes are not read: {}", statistics.read_bytes);

    let sparser = folder();
    let options = sandbox.restore_options(sparser.path()).with_sparse(true);
    restore::restore(&sandbox.repository(), &sandbox.view(id), &options, &resources()).expect("a restore");
    let restored = sparser.path().join(sandbox.source().strip_prefix("/").expect("absolute"));
    assert_eq!(allotted(&restored.join("no hole")), 0, "asked for, zeros become holes");
    assert_eq!(tree::differences(&tree::read(&restored), &tree::read(&sandbox.source())), [""; 0]);
}

#[test]
fn a_file_of_ten_gigabytes_that_is_mostly_a_hole_takes_no_time() {
    const BYTES: u64 = 10_000_000_000;
    let sandbox = Sandbox::new();
    let huge = fs::File::create(sandbox.source().join("huge")).expect("made");
    let places = [0, 4_294_967_290, BYTES - 7];
    for place in places {
        huge.write_all_at(b"content", place).expect("written");
    }
    let id = sandbox.backup();
    let target = folder();
    let restored = fs::File::open(restore_into(&sandbox, id, target.path()).join("huge")).expect("opened");
    assert_eq!(restored.metadata().expect("status").len(), BYTES);
    assert!(restored.metadata().expect("status").blocks() * 512 < 1 << 20);
    for place in places {
        let mut found = [0; 7];
        restored.read_exact_at(&mut found, place).expect("read");
        assert_eq!(&found, b"content", "at {place}");
    }
    assert!(sandbox.view(id).snapshot.statistics.read_bytes < 1 << 20);
}

#[test]
fn sources_may_be_files_links_and_folders_one_inside_another() {
    let sandbox = Sandbox::new();
    sandbox.write("a/file", b"1");
    sandbox.write("b/file", b"2");
    symlink("a", sandbox.source().join("link")).expect("linked");
    let at = |name: &str| sandbox.source().join(name);
    let paths = vec![at("link"), at("a/file"), at("b"), at("b/file"), at("a/../b")];
    let summary = backup::backup(&sandbox.repository(), Source::Paths(paths), &sandbox.options(), &sandbox.resources())
        .expect("a backup");
    let restored = sandbox.restored(summary.snapshot.expect("a snapshot"));
    let names: Vec<_> = restored.keys().map(|name| String::from_utf8_lossy(name)).collect();
    assert_eq!(names, ["", "a", "a/file", "b", "b/file", "link"]);
    assert_eq!(tree::differences(&restored, &tree::read(&sandbox.source())), [""; 0]);
}

//! The scan and the reading of source files, on real folders.

mod round_trip;

use super::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use siltstone_store::catalog::EntryPath;
use std::{
    ffi::OsStr,
    fs,
    io::Read,
    os::unix::{ffi::OsStrExt, fs::FileExt, fs::PermissionsExt},
    path::{Path, PathBuf},
};
use tempfile::TempDir;

/// A folder with an absolute, link-free path.
fn folder() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().canonicalize().expect("its path");
    (folder, path)
}

fn write(path: impl AsRef<Path>, content: &str) {
    fs::create_dir_all(path.as_ref().parent().expect("a parent")).expect("made");
    fs::write(path, content).expect("written");
}

fn scan(sources: &[PathBuf], options: ScanOptions) -> Vec<ScanItem> {
    Scanner::new(sources, options).expect("a scanner").collect()
}

fn rules(build: impl FnOnce(&mut ExcludeRulesBuilder)) -> ScanOptions {
    let mut builder = ExcludeRules::builder();
    build(&mut builder);
    ScanOptions { exclude: builder.build().expect("rules"), ..ScanOptions::default() }
}

/// Paths of the entries at or below a folder, relative to it.
fn entries_below(items: &[ScanItem], base: &Path) -> Vec<String> {
    let base = base.as_os_str().as_bytes();
    let relative = |path: &EntryPath| {
        let absolute = [b"/", path.as_bytes()].concat();
        let rest = absolute.strip_prefix(base)?;
        Some(rest.strip_prefix(b"/").unwrap_or(rest).escape_ascii().to_string())
    };
    let path = |item: &ScanItem| match item {
        ScanItem::Entry(entry) => relative(&entry.path),
        _ => None,
    };
    items.iter().filter_map(path).filter(|path| !path.is_empty()).collect()
}

fn entry<'a>(items: &'a [ScanItem], path: &Path) -> &'a ScanEntry {
    let wanted = path.as_os_str().as_bytes().strip_prefix(b"/").expect("absolute");
    let found = items.iter().find_map(|item| match item {
        ScanItem::Entry(entry) if entry.path.as_bytes() == wanted => Some(entry),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("no entry {}", path.display()))
}

fn problems(items: &[ScanItem]) -> Vec<&Problem> {
    fn problem(item: &ScanItem) -> Option<&Problem> {
        if let ScanItem::Problem(problem) = item { Some(problem) } else { None }
    }
    items.iter().filter_map(problem).collect()
}

fn skipped(items: &[ScanItem]) -> Vec<SkipReason> {
    let why = |item: &ScanItem| match item {
        ScanItem::Skipped { why, .. } => Some(*why),
        _ => None,
    };
    items.iter().filter_map(why).collect()
}

fn handle(entry: &ScanEntry) -> &FileHandle {
    match &entry.kind {
        FileKind::File { handle, .. } => handle,
        other => panic!("no file: {other:?}"),
    }
}

fn open(entry: &ScanEntry) -> Result<SourceFile, Problem> {
    handle(entry).open(&entry.path)
}

#[test]
fn entries_come_in_catalog_order_with_the_directories_above() {
    let (_guard, base) = folder();
    for name in ["b/z", "b-c", "b/a/1", "B", "a b", "b.d/x"] {
        write(base.join("src").join(name), name);
    }
    fs::create_dir(base.join("src/empty")).expect("made");
    let items = scan(&[base.join("src/."), base.join("src/b/a")], ScanOptions::default());
    assert!(problems(&items).is_empty(), "{:?}", problems(&items));
    let below = entries_below(&items, &base);
    let wanted = [
        "src",
        "src/B",
        "src/a b",
        "src/b",
        "src/b/a",
        "src/b/a/1",
        "src/b/z",
        "src/b-c",
        "src/b.d",
        "src/b.d/x",
        "src/empty",
    ];
    let mut sorted = wanted.map(|path| EntryPath::new(path).expect("a path"));
    sorted.sort();
    assert_eq!(below, sorted.map(|path| path.to_string()), "in the order of catalog paths");
    for above in base.ancestors().skip(1).filter(|path| path.parent().is_some()) {
        assert!(matches!(entry(&items, above).kind, FileKind::Directory));
    }
    let siblings = fs::read_dir(base.parent().expect("a parent")).expect("read").count();
    let beside = entries_below(&items, base.parent().expect("a parent"));
    assert_eq!(beside.len(), below.len() + 1, "nothing beside the source, of {siblings}");
}

#[test]
fn attributes_of_files_can_be_left_to_whoever_opens_them() {
    let (_guard, base) = folder();
    write(base.join("file"), "x");
    let xattr = (b"user.text".to_vec(), b"a value".to_vec());
    for path in [base.clone(), base.join("file")] {
        rustix::fs::setxattr(&path, "user.text", &xattr.1, XattrFlags::empty()).expect("an attribute");
    }
    let directory = fs::File::open(&base).expect("a folder");
    let status = Status::at(&directory, c"file").expect("a status");
    let can_be_left = change_time::covers_xattrs(&directory, &status);
    for (detail, is_left) in [(ScanDetail::Full, false), (ScanDetail::XattrsLater, can_be_left)] {
        let items = scan(std::slice::from_ref(&base), ScanOptions { detail, ..ScanOptions::default() });
        let file = entry(&items, &base.join("file"));
        assert!(entry(&items, &base).metadata.xattrs.contains(&xattr), "those of folders are read at once");
        assert_eq!((file.metadata.xattrs.is_empty(), handle(file).xattrs_later()), (is_left, is_left));
        assert!(open(file).expect("a file").xattrs().expect("attributes").contains(&xattr));
    }
}

#[test]
fn a_file_opened_as_it_was_seen_tells_whether_it_is_still_so() {
    let (_guard, base) = folder();
    for name in ["same", "longer", "renamed", "touched"] {
        write(base.join(name), name);
    }
    // Longer than the clock that stamps inodes takes for a tick.
    std::thread::sleep(std::time::Duration::from_millis(40));
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    write(base.join("longer"), "longer than before");
    write(base.join("new"), "renamed");
    fs::rename(base.join("new"), base.join("renamed")).expect("renamed");
    fs::set_permissions(base.join("touched"), fs::Permissions::from_mode(0o600)).expect("permissions");
    for (name, is_same) in [("same", true), ("longer", false), ("renamed", false), ("touched", false)] {
        let file = handle(entry(&items, &base.join(name))).open_as_seen().expect("a file");
        assert_eq!(file.is_as_opened().expect("a status"), is_same, "{name}");
    }
}

#[test]
fn names_may_be_any_bytes() {
    let (_guard, base) = folder();
    let names: [&[u8]; 4] = [b"new\nline", b"no utf-8 \xff\xfe", b" ", b"\x1b[2J"];
    for name in names {
        write(base.join(OsStr::from_bytes(name)), "x");
    }
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    let mut wanted = names.map(|name| name.escape_ascii().to_string());
    wanted.sort();
    let mut found = entries_below(&items, &base);
    found.sort();
    assert_eq!(found, wanted);
    let mut content = String::new();
    let mut file = open(entry(&items, &base.join(OsStr::from_bytes(b"no utf-8 \xff\xfe")))).expect("opened");
    file.read_to_string(&mut content).expect("read");
    assert_eq!(content, "x");
}

/// A draft for a name that nothing has.
const NEW: Draft = Draft { serial: 0, on_conflict: ConflictPolicy::Keep };

#[test]
fn paths_beyond_the_kernels_limit_are_walked() {
    let (_guard, base) = folder();
    let target = TargetDir::open(&base, Ownership::None).expect("opened");
    // Deep by long names, and deeper than directories are kept open.
    for (name, levels) in [("n".repeat(200), 30), ("short-one".to_owned(), 700)] {
        let mut path = EntryPath::new(name.as_str()).expect("a path");
        target.make_directory(&path, ConflictPolicy::Keep).expect("made");
        for _ in 1..levels {
            path = path.join(name.as_bytes()).expect("a path");
            target.make_directory(&path, ConflictPolicy::Keep).expect("made");
            let file = path.join(b"zz").expect("a path");
            target.create_file(&file, NEW).expect("made");
            target.publish(&file, NEW).expect("published");
        }
        let deep = path.join(b"deep").expect("a path");
        target.create_file(&deep, NEW).expect("made").write_all_at(b"found", 0).expect("written");
        target.publish(&deep, NEW).expect("published");
        let items = scan(&[base.join(&name)], ScanOptions::default());
        assert!(problems(&items).is_empty(), "{:?}", problems(&items));
        assert_eq!(entries_below(&items, &base).len(), levels + (levels - 1) + 1);
        let mut file = items
            .iter()
            .find_map(|item| match item {
                ScanItem::Entry(entry) if entry.path.name() == b"deep" => Some(open(entry).expect("opened")),
                _ => None,
            })
            .expect("the deepest file");
        let mut content = String::new();
        file.read_to_string(&mut content).expect("read");
        assert_eq!(content, "found");
        let mut removed = 0;
        let found = target.remove_tree(&EntryPath::new(name.as_str()).expect("a path"), &mut |_| removed += 1);
        assert_eq!((found, removed), (Vec::new(), levels + levels));
        assert!(!base.join(&name).exists());
    }
}

#[test]
fn metadata_is_read_exactly() {
    let (_guard, base) = folder();
    let file = base.join("file");
    write(&file, "content");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4751)).expect("permissions");
    let time = std::time::UNIX_EPOCH - std::time::Duration::new(1000, 0) + std::time::Duration::from_nanos(123_456_789);
    fs::File::options().write(true).open(&file).expect("opened").set_modified(time).expect("time");
    fs::hard_link(&file, base.join("other name")).expect("linked");
    rustix::fs::setxattr(&file, "user.b", b"\0\xff", XattrFlags::empty()).expect("an attribute");
    rustix::fs::setxattr(&file, "user.a", &[7; 3000], XattrFlags::empty()).expect("an attribute");
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    let found = &entry(&items, &file).metadata;
    assert_eq!((found.mode, found.links), (0o4751, 2));
    assert_eq!((found.modified.seconds, found.modified.nanoseconds), (-1000, 123_456_789));
    assert_eq!(found.xattrs, [(b"user.a".to_vec(), vec![7; 3000]), (b"user.b".to_vec(), b"\0\xff".to_vec())]);
    let other = &entry(&items, &base.join("other name")).metadata;
    assert_eq!((found.device, found.inode), (other.device, other.inode));
    let own = std::os::unix::fs::MetadataExt::uid(&fs::metadata(&file).expect("status"));
    assert_eq!(found.uid, own);
    if own == 0 {
        assert_eq!(found.user, Some("root".into()));
    }
    assert!(entry(&items, &base).metadata.xattrs.is_empty());
    let estimate =
        scan(std::slice::from_ref(&base), ScanOptions { detail: ScanDetail::StatusOnly, ..ScanOptions::default() });
    assert_eq!(entries_below(&estimate, &base), entries_below(&items, &base));
    assert!(entry(&estimate, &file).metadata.xattrs.is_empty());
}

#[test]
fn every_kind_of_file_is_told_apart() {
    let (_guard, base) = folder();
    let outside = base.join("outside");
    write(outside.join("secret"), "x");
    let source = base.join("source");
    fs::create_dir(&source).expect("made");
    std::os::unix::fs::symlink(&outside, source.join("link")).expect("linked");
    std::os::unix::fs::symlink("nowhere\n", source.join("dangling")).expect("linked");
    rustix::fs::mknodat(CWD, source.join("fifo"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    let _socket = std::os::unix::net::UnixListener::bind(source.join("socket")).expect("a socket");
    let device = rustix::fs::makedev(1, 3);
    let may_make_devices =
        rustix::fs::mknodat(CWD, source.join("null"), FileType::CharacterDevice, Mode::RUSR, device).is_ok();
    let items = scan(std::slice::from_ref(&source), ScanOptions::default());
    let link = |name| match &entry(&items, &source.join(name)).kind {
        FileKind::Symlink { target } => target.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(link("link"), outside.as_os_str().as_bytes());
    assert_eq!(link("dangling"), b"nowhere\n");
    assert!(matches!(entry(&items, &source.join("fifo")).kind, FileKind::Fifo));
    if may_make_devices {
        assert!(matches!(entry(&items, &source.join("null")).kind, FileKind::CharDevice { major: 1, minor: 3 }));
    }
    assert_eq!(skipped(&items), [SkipReason::Socket]);
    assert!(!entries_below(&items, &source).iter().any(|path| path.contains("secret")), "links are not followed");
}

#[test]
fn links_above_a_source_are_followed() {
    let (_guard, base) = folder();
    write(base.join("real/sub/file"), "x");
    std::os::unix::fs::symlink("real", base.join("link")).expect("linked");
    let items = scan(&[base.join("link/sub")], ScanOptions::default());
    assert_eq!(entries_below(&items, &base), ["link", "link/sub", "link/sub/file"]);
    assert!(matches!(entry(&items, &base.join("link")).kind, FileKind::Directory));
    let items = scan(&[base.join("link")], ScanOptions::default());
    assert_eq!(entries_below(&items, &base), ["link"]);
    assert!(matches!(entry(&items, &base.join("link")).kind, FileKind::Symlink { .. }));
}

#[test]
fn what_is_excluded_is_left_out_with_all_below() {
    use SkipReason::{Excluded as Glob, TooLarge as Size};
    let (_guard, base) = folder();
    for name in ["keep/a.txt", "keep/a.o", "target/debug/x", "big", "sub/target"] {
        write(base.join(name), "0123456789");
    }
    write(base.join("small"), "0123");
    let options = rules(|rules| {
        rules.pattern("*.o", Case::Sensitive).expect("valid");
        rules.pattern("target/", Case::Sensitive).expect("valid");
        rules.pattern(&format!("{}/keep/a.t?t", base.display()), Case::Sensitive).expect("valid");
        rules.larger_than(9);
    });
    let items = scan(std::slice::from_ref(&base), options);
    assert_eq!(entries_below(&items, &base), ["keep", "small", "sub"]);
    assert_eq!(skipped(&items), [Size, Glob, Glob, Size, Glob]);
}

#[test]
fn a_marked_directory_is_kept_without_what_it_holds() {
    let (_guard, base) = folder();
    write(base.join("cache/CACHEDIR.TAG"), "Signature: 8a477f597d28d172789f06886806bc55\n# a cache");
    write(base.join("cache/content"), "x");
    write(base.join("fake/CACHEDIR.TAG"), "no signature");
    write(base.join("fake/content"), "x");
    write(base.join("plain/.nobackup"), "");
    write(base.join("plain/content"), "x");
    write(base.join("header/.skip"), "SKIP!");
    write(base.join("header/content"), "x");
    let options = rules(|rules| {
        rules.caches().if_present(".nobackup").expect("valid").if_present(".skip:SKIP").expect("valid");
    });
    let items = scan(std::slice::from_ref(&base), options);
    let wanted = ["cache", "cache/CACHEDIR.TAG", "fake", "fake/CACHEDIR.TAG", "fake/content", "header", "header/.skip"];
    assert_eq!(entries_below(&items, &base), [&wanted[..], &["plain", "plain/.nobackup"]].concat());
    assert_eq!(skipped(&items), [SkipReason::Marked; 3]);
}

#[test]
fn missing_sources_are_reported_and_the_rest_goes_on() {
    let (_guard, base) = folder();
    write(base.join("here/file"), "x");
    let sources = ["gone", "here", "here/gone too", "here/file/below", "also/gone"].map(|name| base.join(name));
    let items = scan(&sources, ScanOptions::default());
    assert_eq!(entries_below(&items, &base), ["here", "here/file"]);
    let found = problems(&items);
    assert_eq!(found.len(), 3 + 1, "{found:?}");
    assert!(found.iter().all(|problem| problem.kind == ProblemKind::SourceMissing));
    assert!(Scanner::new(&[PathBuf::new()], ScanOptions::default()).is_err());
}

#[test]
fn one_file_system_stops_at_mounts_but_not_at_sources() {
    let proc_exists = Path::new("/proc/self").exists();
    if !proc_exists {
        return;
    }
    // `/proc` is a mount everywhere; naming it beside the root tells whether borders hold.
    let options = || ScanOptions {
        one_file_system: true,
        detail: ScanDetail::StatusOnly,
        ..rules(|rules| {
            for pattern in ["/*", "!/proc", "/proc/[0-9]*"] {
                rules.pattern(pattern, Case::Sensitive).expect("valid");
            }
        })
    };
    let items = scan(&["/".into()], options());
    assert_eq!(entries_below(&items, Path::new("/")), ["proc"]);
    assert!(skipped(&items).contains(&SkipReason::OtherFilesystem));
    let mut scanner = Scanner::new(&["/".into(), "/proc".into()], options()).expect("a scanner");
    assert!(scanner.any(|item| matches!(item, ScanItem::Entry(entry) if entry.path.as_bytes() == b"proc/meminfo")));
}

#[test]
fn a_file_that_vanishes_or_is_replaced_is_reported() {
    let (_guard, base) = folder();
    for name in ["gone", "replaced", "linked", "same"] {
        write(base.join(name), "x");
    }
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    fs::remove_file(base.join("gone")).expect("removed");
    write(base.join("new"), "other content");
    fs::rename(base.join("new"), base.join("replaced")).expect("renamed");
    fs::remove_file(base.join("linked")).expect("removed");
    std::os::unix::fs::symlink("same", base.join("linked")).expect("linked");
    let kind = |name| open(entry(&items, &base.join(name))).err().map(|problem| problem.kind);
    assert_eq!(kind("gone"), Some(ProblemKind::Vanished));
    assert_eq!(kind("replaced"), Some(ProblemKind::Replaced));
    assert_eq!(kind("linked"), Some(ProblemKind::Replaced));
    assert_eq!(kind("same"), None);
}

#[test]
fn a_pipe_in_a_files_place_does_not_hold_us_up() {
    let (_guard, base) = folder();
    write(base.join("file"), "x");
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    fs::remove_file(base.join("file")).expect("removed");
    rustix::fs::mknodat(CWD, base.join("file"), FileType::Fifo, Mode::RUSR, 0).expect("a pipe");
    let problem = open(entry(&items, &base.join("file"))).expect_err("no file");
    assert_eq!(problem.kind, ProblemKind::Replaced);
}

#[test]
fn a_write_while_reading_is_noticed() {
    let (_guard, base) = folder();
    write(base.join("file"), "content");
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    let mut file = open(entry(&items, &base.join("file"))).expect("opened");
    assert!(!file.changed_since_open().expect("status"));
    file.read_exact(&mut [0; 3]).expect("read");
    assert!(!file.changed_since_open().expect("status"), "reading is no change");
    fs::File::options().append(true).open(base.join("file")).expect("opened").write_at(b"more", 7).expect("written");
    assert!(file.changed_since_open().expect("status"));
    assert_eq!(file.size(), 7, "as it was when opened");
}

#[test]
fn holes_are_found() {
    const MIB: u64 = 1 << 20;
    let (_guard, base) = folder();
    let sparse = fs::File::create(base.join("sparse")).expect("made");
    sparse.write_all_at(b"first", 2 * MIB).expect("written");
    sparse.write_all_at(b"second", 8 * MIB).expect("written");
    sparse.set_len(32 * MIB).expect("sized");
    fs::File::create(base.join("all hole")).expect("made").set_len(5 * MIB).expect("sized");
    write(base.join("dense"), "content");
    write(base.join("empty"), "");
    let items = scan(std::slice::from_ref(&base), ScanOptions::default());
    let extents = |name| -> Vec<Extent> {
        let file = open(entry(&items, &base.join(name))).expect("opened");
        file.data_extents().collect::<Result<_, _>>().expect("extents")
    };
    assert_eq!(extents("dense"), [Extent { offset: 0, bytes: 7 }]);
    assert_eq!(extents("empty"), []);
    assert_eq!(extents("all hole"), []);
    let found = extents("sparse");
    let holds = |offset: u64| found.iter().any(|extent| extent.offset <= offset && offset < extent.end());
    assert!(holds(2 * MIB) && holds(8 * MIB) && found.iter().all(|extent| extent.end() <= 32 * MIB), "{found:?}");
    let data: u64 = found.iter().map(|extent| extent.bytes).sum();
    assert!(data < MIB, "{found:?}");
}

#[test]
#[ignore = "a measurement: SILTSTONE_SCAN=folder cargo test --release -p siltstone-engine -- --ignored --nocapture entries_a_second"]
fn entries_a_second() {
    let Some(folder) = std::env::var_os("SILTSTONE_SCAN") else {
        return;
    };
    for detail in [ScanDetail::Full, ScanDetail::StatusOnly, ScanDetail::Full] {
        let begin = std::time::Instant::now();
        let options = ScanOptions { detail, ..ScanOptions::default() };
        let items = Scanner::new(&[PathBuf::from(&folder)], options).expect("a scanner").count();
        let nanoseconds = begin.elapsed().as_nanos().max(1);
        println!("{detail:?}: {items} items, {} a second", items as u128 * 1_000_000_000 / nanoseconds);
    }
}

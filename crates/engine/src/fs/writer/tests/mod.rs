//! The target of a restore, on real folders.

mod metadata;

use super::*;
use crate::fs::{NodeKind, Subject};
use siltstone_store::{Time, catalog::Metadata};
use std::{
    fs,
    os::unix::fs::{MetadataExt, PermissionsExt},
    path::PathBuf,
};
use tempfile::TempDir;

struct Fixture {
    _guard: TempDir,
    /// The target.
    base: PathBuf,
    /// A folder beside it that nothing may touch.
    outside: PathBuf,
    target: TargetDir,
}

fn fixture() -> Fixture {
    let guard = tempfile::tempdir().expect("a folder");
    let (base, outside) = (guard.path().join("target/below"), guard.path().join("outside"));
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("precious"), "untouched").expect("written");
    let target = TargetDir::create(&base, Ownership::Numeric).expect("a target");
    Fixture { _guard: guard, base, outside, target }
}

impl Fixture {
    fn assert_outside_untouched(&self) {
        assert_eq!(fs::read_dir(&self.outside).expect("read").count(), 1);
        assert_eq!(fs::read(self.outside.join("precious")).expect("read"), b"untouched");
        assert_eq!(fs::metadata(self.outside.join("precious")).expect("status").nlink(), 1);
    }
}

fn path(text: &str) -> EntryPath {
    EntryPath::new(text).expect("a valid path")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Metadata with the owner the test runs as.
fn metadata(mode: u32) -> Metadata {
    Metadata {
        mode,
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        modified: Time { seconds: 1_000_000_000, nanoseconds: 123_456_789 },
        ..Metadata::default()
    }
}

/// A draft for a name that nothing has.
const NEW: Draft = Draft { serial: u64::MAX, on_conflict: ConflictPolicy::Keep };

/// A draft that takes the place of what has its name.
fn over(serial: u64) -> Draft {
    Draft { serial, on_conflict: ConflictPolicy::Replace }
}

fn write(target: &TargetDir, name: &str, draft: Draft, content: &[u8]) {
    let file = target.create_file(&path(name), draft).expect("made");
    file.write_all_at(content, 0).expect("written");
    target.publish(&path(name), draft).expect("published");
}

#[test]
fn a_file_takes_its_name_when_it_is_complete() {
    let Fixture { base, target, _guard, .. } = &fixture();
    fs::write(base.join("file"), "old").expect("written");
    let draft = over(7);
    let file = target.create_file(&path("file"), draft).expect("made");
    file.write_all_at(b"new content", 0).expect("written");
    drop(file);
    assert_eq!(fs::read(base.join("file")).expect("read"), b"old");
    let again = target.open_draft(&path("file"), draft).expect("opened");
    again.write_all_at(b"NEW", 0).expect("written");
    again.set_size(100_000).expect("sized");
    target.publish(&path("file"), draft).expect("published");
    let content = fs::read(base.join("file")).expect("read");
    assert_eq!((&content[..12], content.len()), (&b"NEW content\0"[..], 100_000));
    assert_eq!(fs::metadata(base.join("file")).expect("status").mode() & 0o7777, 0o600);

    target.create_file(&path("other"), over(8)).expect("made");
    target.discard(&path("other"), over(8)).expect("discarded");
    assert_eq!(target.list(None).expect("listed"), [b"file"]);
    let existing = target.open_existing(&path("file")).expect("opened");
    let mut read = [0; 3];
    existing.read_exact_at(&mut read, 0).expect("read");
    assert_eq!((&read, existing.size().expect("size")), (b"NEW", 100_000));
}

#[test]
fn a_new_file_takes_no_others_place() {
    let fixture = fixture();
    let target = &fixture.target;
    write(target, "file", NEW, b"x");
    std::os::unix::fs::symlink(fixture.outside.join("new"), fixture.base.join("link")).expect("linked");
    for name in ["file", "link"] {
        target.create_file(&path(name), NEW).expect("made").write_all_at(b"y", 0).expect("written");
        assert_eq!(target.publish(&path(name), NEW).expect_err("taken").kind, ProblemKind::InTheWay);
        assert_eq!(target.list(None).expect("listed"), [&b"file"[..], b"link"], "the draft is gone");
    }
    assert_eq!(fs::read(fixture.base.join("file")).expect("read"), b"x");
    fixture.assert_outside_untouched();
}

#[test]
fn a_damaged_file_is_kept_aside_where_nothing_stands() {
    let fixture = fixture();
    let target = &fixture.target;
    let long = "n".repeat(255);
    for name in ["file", long.as_str()] {
        for _ in 0..2 {
            target.create_file(&path(name), NEW).expect("made");
            let kept = target.set_aside(&path(name), NEW);
            let found = target.list(None).expect("listed");
            assert_eq!(found.len(), 1, "the draft is gone");
            assert!(
                found[0].ends_with(b".silt-damaged") && found[0].len() <= 255 && found[0][..4] == name.as_bytes()[..4]
            );
            if let Err(problem) = kept {
                assert_eq!(problem.kind, ProblemKind::InTheWay);
                target.remove_tree(&EntryPath::new(found[0].as_slice()).expect("a path"), &mut |_| ());
            }
        }
    }
    assert_eq!(target.list(None).expect("listed"), [b""; 0]);
}

#[test]
fn only_the_names_of_drafts_are_swept() {
    let Fixture { base, target, _guard, .. } = &fixture();
    let number = "0123456789abcdef";
    let dead = [format!("{DRAFT_PREFIX}{number}-d1"), format!("{DRAFT_PREFIX}{number}-p{number}")];
    let others = ["", number, &format!("{number}-d"), &format!("{number}-x1"), &format!("{number}-d{number}1")];
    let others = others.map(|rest| format!("{DRAFT_PREFIX}{rest}"));
    for name in dead.iter().chain(&others) {
        fs::write(base.join(name), "x").expect("written");
    }
    let second = TargetDir::create(base, Ownership::Numeric).expect("a target");
    second.sweep(None, |_| false);
    assert_eq!(target.list(None).expect("listed").len(), 7, "another restore is at work");
    target.sweep(None, |name| dead.iter().any(|dead| dead.as_bytes() == name));
    assert_eq!(target.list(None).expect("listed").len(), 7, "they are wanted");
    target.sweep(None, |_| false);
    assert_eq!(target.list(None).expect("listed").len(), 5);
    assert!(others.iter().all(|name| base.join(name).exists()));
}

#[test]
fn what_is_in_the_way_is_replaced_only_when_told() {
    let fixture = fixture();
    let (target, base) = (&fixture.target, &fixture.base);
    for name in ["a", "b", "c", "d", "e"] {
        fs::write(base.join(name), "old").expect("written");
    }
    fs::create_dir(base.join("full")).expect("made");
    fs::write(base.join("full/x"), "old").expect("written");
    fs::create_dir(base.join("bare")).expect("made");

    assert_eq!(target.make_directory(&path("a"), ConflictPolicy::Keep).expect_err("taken").kind, ProblemKind::InTheWay);
    assert_eq!(
        target.make_symlink(&path("a"), b"t", ConflictPolicy::Keep).expect_err("taken").kind,
        ProblemKind::InTheWay
    );
    assert_eq!(fs::read(base.join("a")).expect("read"), b"old");

    assert_eq!(target.make_directory(&path("a"), ConflictPolicy::Replace).expect("made"), DirectoryOutcome::New);
    assert_eq!(target.make_directory(&path("a"), ConflictPolicy::Keep).expect("there"), DirectoryOutcome::Existing);
    target.make_symlink(&path("b"), b"to\xff", ConflictPolicy::Replace).expect("made");
    assert_eq!(target.read_link(&path("b")).expect("read"), b"to\xff");
    target.make_fifo(&path("c"), ConflictPolicy::Replace).expect("made");
    target.make_hard_link(&path("d"), &path("e"), ConflictPolicy::Replace).expect("made");
    target.make_hard_link(&path("d"), &path("e"), ConflictPolicy::Replace).expect("made again");
    let state = |name| target.state(&path(name)).expect("state").expect("there");
    assert_eq!(state("c").kind, NodeKind::Fifo);
    assert!(state("d").is_same_inode(&state("e")) && state("d").links == 2);

    target.make_symlink(&path("bare"), b"t", ConflictPolicy::Replace).expect("an empty directory goes");
    let problem = target.make_symlink(&path("full"), b"t", ConflictPolicy::Replace).expect_err("a full one stays");
    assert_eq!(problem.kind, ProblemKind::InTheWay);
    let draft = over(0);
    target.create_file(&path("full"), draft).expect("made");
    assert_eq!(target.publish(&path("full"), draft).expect_err("it stays").kind, ProblemKind::InTheWay);
    assert_eq!(target.list(None).expect("listed").len(), 7, "nothing passing is left behind");
    assert_eq!(target.state(&path("nothing")).expect("state"), None);
    assert_eq!(target.state(&path("d/below a file")).expect("state"), None);
}

#[test]
fn planted_links_lead_nowhere() {
    for has_openat2 in [true, false] {
        let mut fixture = fixture();
        if !has_openat2 {
            fixture.target.beneath.forgo_openat2();
        }
        let (target, base) = (&fixture.target, &fixture.base);
        std::os::unix::fs::symlink(&fixture.outside, base.join("way")).expect("linked");
        std::os::unix::fs::symlink("../../outside", base.join("relative")).expect("linked");
        std::os::unix::fs::symlink(fixture.outside.join("precious"), base.join("precious")).expect("linked");
        for way in ["way", "relative"] {
            let inside = path(&format!("{way}/precious"));
            let new = path(&format!("{way}/sub/new"));
            assert_eq!(target.state(&inside).expect("state"), None);
            assert!(target.open_existing(&inside).is_err());
            assert!(target.read_link(&inside).is_err() && target.list(Some(&path(way))).is_err());
            for (name, draft) in [(&inside, NEW), (&new, over(1))] {
                assert_eq!(target.create_file(name, draft).expect_err("a link").kind, ProblemKind::InTheWay);
                assert!(target.make_directory(name, ConflictPolicy::Replace).is_err());
                assert!(target.make_symlink(name, b"x", ConflictPolicy::Replace).is_err());
                assert!(target.make_fifo(name, ConflictPolicy::Replace).is_err());
            }
            assert!(target.make_hard_link(&inside, &path("stolen"), ConflictPolicy::Replace).is_err());
            assert!(!target.apply_metadata(Some(&inside), &metadata(0o777)).is_empty());
            target.remove_tree(&inside, &mut |_| panic!("nothing is removed"));
            target.remove_extra(Some(&path(way)), |_| false, &mut |_| panic!("nothing is removed"));
        }
        // What bears a link's name concerns the link itself.
        assert!(target.open_existing(&path("precious")).is_err());
        assert_eq!(target.apply_metadata(Some(&path("precious")), &metadata(0o777)), []);
        let outside = fs::metadata(fixture.outside.join("precious")).expect("status");
        assert!(outside.mtime() != 1_000_000_000 && outside.mode() & 0o777 != 0o777);
        let linked = fs::symlink_metadata(base.join("precious")).expect("status");
        assert_eq!((linked.mtime(), linked.mtime_nsec()), (1_000_000_000, 123_456_789));
        assert_eq!(target.make_directory(&path("way"), ConflictPolicy::Replace).expect("made"), DirectoryOutcome::New);
        write(target, "way/sub", over(2), b"inside");
        assert_eq!(target.remove_extra(None, |_| false, &mut |_| ()), []);
        fixture.assert_outside_untouched();
    }
}

#[test]
fn an_existing_directory_is_opened_to_its_owner() {
    let fixture = fixture();
    fs::create_dir(fixture.base.join("dir")).expect("made");
    fs::set_permissions(fixture.base.join("dir"), fs::Permissions::from_mode(0o555)).expect("permissions");
    assert_eq!(
        fixture.target.make_directory(&path("dir"), ConflictPolicy::Keep).expect("there"),
        DirectoryOutcome::Existing
    );
    assert_eq!(fs::metadata(fixture.base.join("dir")).expect("status").mode() & 0o777, 0o755);
}

#[test]
fn only_what_is_extra_is_removed() {
    let fixture = fixture();
    let (target, base) = (&fixture.target, &fixture.base);
    for name in ["keep/extra/deep/x", "keep/y", "extra/z", "w"] {
        fs::create_dir_all(base.join(name).parent().expect("a parent")).expect("made");
        fs::write(base.join(name), "x").expect("written");
    }
    std::os::unix::fs::symlink(&fixture.outside, base.join("extra/link")).expect("linked");
    let mut removed = Vec::new();
    let mut note = |path: &EntryPath| removed.push(path.to_string());
    assert_eq!(target.remove_extra(None, |name| name == b"keep", &mut note), []);
    assert_eq!(target.remove_extra(Some(&path("keep")), |name| name == b"y", &mut note), []);
    removed.sort();
    let wanted = ["extra", "extra/link", "extra/z", "keep/extra", "keep/extra/deep", "keep/extra/deep/x", "w"];
    assert_eq!(removed, wanted);
    assert_eq!(target.list(None).expect("listed"), [b"keep"]);
    assert_eq!(target.list(Some(&path("keep"))).expect("listed"), [b"y"]);
    fixture.assert_outside_untouched();
    assert_eq!(target.remove_tree(&path("no/such/thing"), &mut |_| ()), []);
}

#[test]
fn a_removed_parent_is_not_written_into() {
    let fixture = fixture();
    let target = &fixture.target;
    target.make_directory(&path("a"), ConflictPolicy::Keep).expect("made");
    write(target, "a/file", NEW, b"x");
    assert_eq!(target.remove_tree(&path("a"), &mut |_| ()), []);
    target.make_directory(&path("a"), ConflictPolicy::Keep).expect("made");
    write(target, "a/file", NEW, b"again");
    assert_eq!(fs::read(fixture.base.join("a/file")).expect("read"), b"again");
}

#[test]
fn a_mount_is_not_emptied() {
    let fixture = fixture();
    let mounted = fixture.base.join("extra/mounted");
    fs::create_dir_all(&mounted).expect("made");
    let options = c"size=1m";
    if rustix::mount::mount(c"none", &mounted, c"tmpfs", rustix::mount::MountFlags::empty(), options).is_err() {
        return;
    }
    fs::write(mounted.join("precious"), "x").expect("written");
    fs::write(fixture.base.join("extra/other"), "x").expect("written");
    let problems = fixture.target.remove_tree(&path("extra"), &mut |_| ());
    let is_kept = mounted.join("precious").exists();
    rustix::mount::unmount(&mounted, rustix::mount::UnmountFlags::DETACH).expect("unmounted");
    assert!(is_kept);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].subject, Subject::Entry(path("extra/mounted")));
    assert!(!fixture.base.join("extra/other").exists());
}

#[test]
fn without_openat2_long_paths_work_too() {
    let mut fixture = fixture();
    fixture.target.beneath.forgo_openat2();
    let target = &fixture.target;
    let mut deep = path("start");
    target.make_directory(&deep, ConflictPolicy::Keep).expect("made");
    while deep.as_bytes().len() < 5000 {
        deep = deep.join(&[b'n'; 250]).expect("a path");
        target.make_directory(&deep, ConflictPolicy::Keep).expect("made");
    }
    let file = deep.join(b"file").expect("a path");
    target.create_file(&file, over(0)).expect("made").write_all_at(b"x", 0).expect("written");
    target.publish(&file, over(0)).expect("published");
    assert_eq!(target.apply_metadata(Some(&file), &metadata(0o444)), []);
    assert_eq!(target.state(&file).expect("state").expect("there").mode, 0o444);
    target.make_symlink(&deep.join(b"link").expect("a path"), b"x", ConflictPolicy::Keep).expect("made");
    target.make_hard_link(&file, &path("near"), ConflictPolicy::Keep).expect("made");
    assert_eq!(target.remove_tree(&path("start"), &mut |_| ()), []);
    assert_eq!(target.list(None).expect("listed"), [b"near"]);
}

//! Owners, attributes, permissions and times as a restore applies them.

use super::*;
use crate::fs::xattrs;
use rustix::fs::XattrFlags;

#[test]
fn metadata_is_applied_exactly() {
    let fixture = fixture();
    let (target, base) = (&fixture.target, &fixture.base);
    // user::rwx, user:1234:r--, group::r-x, mask::r-x, other::---
    let acl = [
        &2u32.to_le_bytes()[..],
        &acl_entry(0x01, 7, u32::MAX),
        &acl_entry(0x02, 4, 1234),
        &acl_entry(0x04, 5, u32::MAX),
        &acl_entry(0x10, 5, u32::MAX),
        &acl_entry(0x20, 0, u32::MAX),
    ]
    .concat();
    let wanted = Metadata {
        xattrs: vec![
            (b"system.posix_acl_access".to_vec(), acl),
            (b"user.empty".to_vec(), Vec::new()),
            (b"user.name".to_vec(), b"\0value\xff".to_vec()),
        ],
        ..metadata(0o750)
    };
    fs::create_dir(base.join("dir")).expect("made");
    rustix::fs::setxattr(base.join("dir"), "user.stale", b"x", XattrFlags::empty()).expect("an attribute");
    let file = target.create_file(&path("dir/file"), NEW).expect("made");
    file.write_all_at(b"content", 0).expect("written");
    assert_eq!(target.apply_to_file(&file, &path("dir/file"), &wanted), []);
    target.publish(&path("dir/file"), NEW).expect("published");
    assert_eq!(target.apply_metadata(Some(&path("dir")), &wanted), []);
    for name in ["dir", "dir/file"] {
        let found = fs::metadata(base.join(name)).expect("status");
        assert_eq!(found.mode() & 0o7777, 0o750, "{name}");
        assert_eq!((found.mtime(), found.mtime_nsec()), (1_000_000_000, 123_456_789), "{name}");
        let opened = fs::File::open(base.join(name)).expect("opened");
        assert_eq!(xattrs::read_of(&opened).expect("attributes"), wanted.xattrs, "{name}");
    }
    assert_eq!(target.apply_metadata(Some(&path("dir/file")), &metadata(0o640)), []);
    let opened = fs::File::open(base.join("dir/file")).expect("opened");
    assert_eq!(xattrs::read_of(&opened).expect("attributes"), [], "attributes that are not wanted go");
    assert_eq!(opened.metadata().expect("status").mode() & 0o7777, 0o640);
    assert_eq!(target.apply_metadata(None, &metadata(0o711)), []);
    assert_eq!(fs::metadata(base).expect("status").mode() & 0o7777, 0o711);
    let missing = target.apply_metadata(Some(&path("nothing")), &metadata(0o711));
    assert_eq!(missing.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::NotWritten]);
}

/// The story: the group's bits show the mask, so without the list the owning group got what one user should have.
#[test]
fn a_file_that_cannot_have_its_access_list_is_open_to_nobody_more() {
    let (fixture, all) = (fixture(), u32::MAX);
    // Not in the order that the kernel takes, so that it refuses the list:
    // user::rw-, group::---, user:4321:rw-, mask::rw-, other::---
    let entries = [(0x01, 6, all), (0x04, 0, all), (0x02, 6, 4321), (0x10, 6, all), (0x20, 0, all)];
    let entries = entries.map(|(tag, permissions, id)| acl_entry(tag, permissions, id)).concat();
    let list = [&2u32.to_le_bytes()[..], &entries].concat();
    let wanted = Metadata { xattrs: vec![(b"system.posix_acl_access".to_vec(), list)], ..metadata(0o660) };
    write(&fixture.target, "file", NEW, b"x");
    fs::create_dir(fixture.base.join("dir")).expect("made");
    for name in ["file", "dir"] {
        let found = fixture.target.apply_metadata(Some(&path(name)), &wanted);
        assert_eq!(found.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::Attribute], "{name}");
        assert_eq!(fs::metadata(fixture.base.join(name)).expect("status").mode() & 0o7777, 0o600, "{name}");
    }
}

fn acl_entry(tag: u16, permissions: u16, id: u32) -> Vec<u8> {
    [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
}

#[test]
fn owners_set_id_bits_and_special_files_are_restored_by_root() {
    if !is_root() {
        return;
    }
    let fixture = fixture();
    let (target, base) = (&fixture.target, &fixture.base);
    let foreign = |mode| Metadata { uid: 4321, gid: 8765, ..metadata(mode) };
    write(target, "file", NEW, b"x");
    target.make_symlink(&path("link"), b"nowhere", ConflictPolicy::Keep).expect("made");
    target.make_fifo(&path("fifo"), ConflictPolicy::Keep).expect("made");
    for name in ["file", "link", "fifo"] {
        assert_eq!(target.apply_metadata(Some(&path(name)), &foreign(0o6751)), [], "{name}");
        let found = fs::symlink_metadata(base.join(name)).expect("status");
        assert_eq!((found.uid(), found.gid(), found.mtime_nsec()), (4321, 8765, 123_456_789), "{name}");
        assert!(name == "link" || found.mode() & 0o7777 == 0o6751, "{name}: {:o}", found.mode());
    }
    let trusted = Metadata { xattrs: vec![(b"trusted.x".to_vec(), b"1".to_vec())], ..foreign(0o777) };
    assert_eq!(target.apply_metadata(Some(&path("link")), &trusted), []);
    let mut value = [0; 8];
    assert_eq!(rustix::fs::lgetxattr(base.join("link"), "trusted.x", &mut value), Ok(1), "a link has its own");
    if target.make_char_device(&path("null"), (1, 3), ConflictPolicy::Keep).is_ok() {
        target.make_block_device(&path("loop"), (7, 300), ConflictPolicy::Keep).expect("made");
        let state = |name| target.state(&path(name)).expect("state").expect("there");
        let found = state("loop");
        assert_eq!((found.kind, found.special_major, found.special_minor), (NodeKind::BlockDevice, 7, 300));
        assert_eq!(target.apply_metadata(Some(&path("null")), &foreign(0o666)), []);
        assert_eq!((state("null").mode, state("null").uid), (0o666, 4321));
    }
    // A file that stays with whoever restores lends nobody his rights.
    let own = TargetDir::open(base, Ownership::None).expect("opened");
    write(&own, "mine", NEW, b"x");
    assert_eq!(own.apply_metadata(Some(&path("mine")), &foreign(0o6755)), []);
    assert_eq!(fs::metadata(base.join("mine")).expect("status").mode() & 0o7777, 0o755);
    let nobody = Metadata { uid: u32::MAX, ..metadata(0o644) };
    let found = target.apply_metadata(Some(&path("file")), &nobody);
    assert_eq!(found.iter().map(|problem| problem.kind).collect::<Vec<_>>(), [ProblemKind::Owner]);
}

#[test]
fn hostile_times_and_attribute_names_do_no_harm() {
    let fixture = fixture();
    write(&fixture.target, "file", NEW, b"x");
    let hostile = Metadata {
        // The kernel's "now".
        modified: Time { seconds: 5, nanoseconds: 0x3fff_ffff },
        xattrs: vec![(b"user.a\0b".to_vec(), vec![1]), (Vec::new(), vec![1]), (b"nonsense".to_vec(), vec![1])],
        ..metadata(u32::MAX)
    };
    let problems = fixture.target.apply_metadata(Some(&path("file")), &hostile);
    assert!(problems.iter().all(|problem| problem.kind == ProblemKind::Attribute), "{problems:?}");
    assert_eq!(problems.len(), 3);
    assert_eq!(fs::metadata(fixture.base.join("file")).expect("status").mtime(), 5);
}

#[test]
fn without_rights_owners_are_a_minor_problem() {
    if is_root() {
        return;
    }
    let fixture = fixture();
    write(&fixture.target, "file", NEW, b"x");
    let problems = fixture.target.apply_metadata(Some(&path("file")), &Metadata { uid: 0, gid: 0, ..metadata(0o4755) });
    assert!(!problems.is_empty() && problems.iter().all(|problem| problem.kind.is_minor()), "{problems:?}");
    let found = fs::metadata(fixture.base.join("file")).expect("status");
    assert_eq!((found.mode() & 0o7777, found.mtime()), (0o755, 1_000_000_000));
    let device = fixture.target.make_char_device(&path("null"), (1, 3), ConflictPolicy::Keep);
    assert_eq!(device.expect_err("for root only").kind, ProblemKind::NotWritten);
}

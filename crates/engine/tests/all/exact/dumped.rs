//! Archives of a folder, taken apart by GNU tar and by Python's zipfile: what comes out is what was backed up.

use super::*;
use crate::common::{entry_path, heard_by, log::Log, noise, resources, tree};
use rustix::fs::{AtFlags, CWD, FileType, Gid, Mode, Timespec, Timestamps, Uid};
use siltstone_engine::EngineError;
use siltstone_engine::dump::{Archive, dump};
use siltstone_store::storage::{Damage, Listing, ObjectName, SimulatedDisk, Storage};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;

fn set_modified(path: impl AsRef<Path>, seconds: i64, nanoseconds: i64) {
    let time = Timespec { tv_sec: seconds, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path.as_ref(), &times, AtFlags::SYMLINK_NOFOLLOW).expect("a time");
}

/// Dumps the source into a file and has a program take it apart in a folder; gives the folder and where the source is
/// in it.
fn taken_apart(sandbox: &Sandbox, id: SnapshotId, archive: Archive, command: &[&str]) -> (TempDir, PathBuf) {
    let target = folder();
    let file = target.path().join("archive");
    let mut output = fs::File::create(&file).expect("a file");
    let (log, path) = (Log::default(), entry_path(&sandbox.source()));
    dump(&sandbox.repository(), &sandbox.view(id), Some(&path), archive, &mut output, &heard_by(&log)).expect("a dump");
    assert_eq!(log.problems(), [""; 0]);
    let ran = Command::new(command[0]).args(&command[1..]).current_dir(target.path()).output().expect("it runs");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let found = target.path().join(sandbox.source().strip_prefix("/").expect("absolute"));
    (target, found)
}

const UNTAR: [&str; 8] = [
    "tar",
    "--extract",
    "--file=archive",
    "--preserve-permissions",
    "--xattrs",
    "--xattrs-include=*",
    "--acls",
    "--same-owner",
];

fn differences(found: &Path, sandbox: &Sandbox) -> Vec<String> {
    let [found, wanted] = [found, &sandbox.source()].map(tree::read);
    tree::differences(&found, &wanted)
}

#[test]
fn tar_keeps_everything() {
    let sandbox = Sandbox::new();
    let source = sandbox.source();
    let at = |name: &str| source.join(name);
    sandbox.write("plain", b"content");
    sandbox.write("empty", b"");
    sandbox.write("large", &noise(1, 3_000_001));
    sandbox.symlink("link", "plain");
    sandbox.symlink("long link", &format!("../{}", "t".repeat(300)));
    fs::hard_link(at("plain"), at("second name")).expect("linked");
    fs::hard_link(at("large"), at("a name before")).expect("linked");
    let long = format!("{}/{}/{}", "d".repeat(200), "e".repeat(200), "f".repeat(255));
    sandbox.write(&long, b"long");
    fs::hard_link(at(&long), at("short")).expect("linked");
    fs::write(source.join(std::ffi::OsStr::from_bytes(b"no text \xff\xfe")), "x").expect("written");
    for (number, (seconds, nanoseconds)) in
        [(0, 0), (1_700_000_000, 123_456_789), (-86_400, 5), (-1, 0), (-1, 1), (10_000_000_000, 1)]
            .into_iter()
            .enumerate()
    {
        sandbox.write(&format!("times/{number}"), b"x");
        set_modified(at(&format!("times/{number}")), seconds, nanoseconds);
    }
    for mode in [0o600, 0o4755, 0o2711, 0o1644, 0o444] {
        sandbox.write(&format!("mode {mode:o}"), b"x");
        set_mode(at(&format!("mode {mode:o}")), mode);
    }
    for (name, parts) in [("inside", &[1_000_000, 3_000_000][..]), ("nothing", &[]), ("at the start", &[0])] {
        let file = fs::File::create(at(name)).expect("made");
        for offset in parts {
            file.write_all_at(&noise(7, 70_000), *offset).expect("written");
        }
        file.set_len(5_000_000).expect("sized");
    }
    set_xattr(at("plain"), "user.name", b"\0value\n=\xff");
    set_xattr(at("plain"), "user.a=b%c", b"");
    let acl_entry = |tag: u16, permissions: u16, id: u32| {
        [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &id.to_le_bytes()].concat()
    };
    let entries = [(1, 7, u32::MAX), (2, 4, 1234), (4, 5, u32::MAX), (0x10, 5, u32::MAX), (0x20, 0, u32::MAX)];
    let entries = entries.into_iter().flat_map(|(tag, permissions, id)| acl_entry(tag, permissions, id));
    let acl: Vec<u8> = 2_u32.to_le_bytes().into_iter().chain(entries).collect();
    fs::create_dir(at("folder")).expect("made");
    set_xattr(at("folder"), "system.posix_acl_access", &acl);
    set_xattr(at("folder"), "system.posix_acl_default", &acl);
    if is_root() {
        sandbox.write("capable", b"x");
        let capability = [0x0200_0001_u32, 1 << 10, 0, 0, 0].map(u32::to_le_bytes).concat();
        set_xattr(at("capable"), "security.capability", &capability);
        for (name, id) in [("owned", 123_456), ("far", 4_000_000_000)] {
            sandbox.write(name, b"x");
            let (uid, gid) = (Some(Uid::from_raw(id)), Some(Gid::from_raw(id + 1)));
            rustix::fs::chownat(CWD, at(name), uid, gid, AtFlags::SYMLINK_NOFOLLOW).expect("an owner");
        }
        let mode = Mode::from_raw_mode(0o640);
        let device = rustix::fs::makedev(7, 300);
        rustix::fs::mknodat(CWD, at("device"), FileType::CharacterDevice, mode, device).expect("made");
    }
    rustix::fs::mknodat(CWD, at("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("made");
    set_modified(&source, 1_000_000_000, 42);
    let id = sandbox.backup();

    let (_guard, found) = taken_apart(&sandbox, id, Archive::Tar, &UNTAR);
    let differences = differences(&found, &sandbox);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let blocks = |name: &str| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(found.join(name)).expect("status"));
    assert!(blocks("inside") < 1000 && blocks("nothing") < 100, "holes stay holes");

    let python = "import tarfile; t = tarfile.open('archive'); t.extractall('python', filter='fully_trusted'); print(len(t.getnames()))";
    let (guard, _) = taken_apart(&sandbox, id, Archive::Tar, &["python3", "-c", python]);
    let found = guard.path().join("python").join(source.strip_prefix("/").expect("absolute"));
    for name in ["large", "inside", "nothing", &long, "second name"] {
        assert!(fs::read(found.join(name)).expect("read") == fs::read(at(name)).expect("read"), "{name}");
    }
}

#[test]
fn zip_keeps_names_content_permissions_and_seconds() {
    let sandbox = Sandbox::new();
    let at = |name: &str| sandbox.source().join(name);
    for (name, content) in [("a", b"content".to_vec()), ("empty", Vec::new()), ("folder/\u{e9}", noise(1, 3_000_001))] {
        sandbox.write(name, &content);
    }
    sandbox.write("zeros", &vec![0; 1_000_000]);
    fs::File::create(at("hole")).expect("made").set_len(1_000_000).expect("sized");
    fs::hard_link(at("a"), at("second name")).expect("linked");
    sandbox.symlink("link", "folder/\u{e9}");
    set_mode(at("a"), 0o751);
    set_modified(at("a"), 1_600_000_001, 0);
    let id = sandbox.backup();
    let python = "import zipfile
z = zipfile.ZipFile('archive')
assert z.testzip() is None
z.extractall()
for i in z.infolist(): print('%o' % (i.external_attr >> 16), i.date_time, i.filename)
open('listing', 'w').write(''.join('%o %s %s\\n' % (i.external_attr >> 16, i.date_time, i.filename) for i in z.infolist()))";
    let (guard, found) = taken_apart(&sandbox, id, Archive::Zip, &["python3", "-c", python]);
    for name in ["a", "empty", "folder/\u{e9}", "zeros", "hole", "second name"] {
        assert!(fs::read(found.join(name)).expect("read") == fs::read(at(name)).expect("read"), "{name}");
    }
    assert_eq!(
        fs::read_to_string(found.join("link")).expect("read"),
        "folder/\u{e9}",
        "a link is a file of its target"
    );
    let listing = fs::read_to_string(guard.path().join("listing")).expect("read");
    let line = |end: &str| listing.lines().find(|line| line.ends_with(end)).unwrap_or_default();
    assert!(line("source/a").starts_with("100751 (2020, 9, 13, 12, 26, 4"), "{listing}");
    assert!(line("source/link").starts_with("120"), "{listing}");
    assert!(line("source/folder/").starts_with("40"), "{listing}");
    assert!(fs::metadata(guard.path().join("archive")).expect("status").len() < 3_200_000, "zeros are compressed");
}

/// An archive that was cut short must not look whole.
#[test]
fn a_damaged_file_ends_the_archive_before_its_end() {
    let disk = SimulatedDisk::new();
    let sandbox = Sandbox::on(Arc::new(disk.clone()));
    for number in 0..20 {
        sandbox.write(&format!("{number:02}"), &noise(number, 300_000));
    }
    let id = sandbox.backup();
    let listed = disk.list(Listing::All).expect("a list");
    let containers = listed.iter().filter(|meta| matches!(meta.name, ObjectName::Container(..)));
    let largest = containers.max_by_key(|meta| meta.bytes).expect("a container");
    assert!(disk.damage(&largest.name, Damage::Flip { offset: largest.bytes / 2, mask: 1 }));
    for archive in [Archive::Tar, Archive::Zip] {
        let mut output = Vec::new();
        let outcome = dump(&sandbox.repository(), &sandbox.view(id), None, archive, &mut output, &resources());
        assert!(matches!(outcome, Err(EngineError::Store(_))), "{outcome:?}");
        assert!(output.len() > 500_000, "{} bytes", output.len());
        assert!(!output.ends_with(&[0; 1024]), "no end of a tar");
        assert!(!output[output.len() - 22..].starts_with(b"PK\x05\x06"), "no end of a zip");
    }
}

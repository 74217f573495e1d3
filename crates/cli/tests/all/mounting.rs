//! `silt mount` by the real program and the kernel: what is in the mounted folders is what was backed up.

use crate::common::{Sandbox, first_message, noise, ran, signal};
use rustix::fs::{XattrFlags, lgetxattr, llistxattr, lsetxattr};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// No file system takes longer to come or to go.
const LIMIT: Duration = Duration::from_mins(1);

/// `silt mount` on a folder of a sandbox; it is unmounted with the value.
struct Mounted {
    folder: PathBuf,
    process: Child,
}

impl Mounted {
    fn start(sandbox: &Sandbox, more: &[&str]) -> Self {
        assert!(Path::new("/dev/fuse").exists(), "these tests need /dev/fuse");
        let folder = sandbox.path("mounted");
        fs::create_dir_all(&folder).expect("made");
        let mut silt = sandbox.silt();
        silt.args(["mount", "--json"]).arg(&folder).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = silt.spawn().expect("silt runs");
        let told = first_message(&mut process);
        assert_eq!(told["message_type"], "mounted");
        Self { folder, process }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// A folder of the source, in the newest snapshot.
    fn latest(&self, path: &Path) -> PathBuf {
        self.folder.join("latest").join(path.strip_prefix("/").expect("an absolute path"))
    }

    /// Waits for its end; returns its exit status and what it wrote to standard error.
    fn end(&mut self) -> (i32, String) {
        let begin = Instant::now();
        let status = loop {
            if let Some(status) = self.process.try_wait().expect("it is ours") {
                break status;
            }
            assert!(begin.elapsed() < LIMIT, "it does not end");
            std::thread::sleep(Duration::from_millis(10));
        };
        let mut said = String::new();
        self.process.stderr.as_mut().expect("a pipe").read_to_string(&mut said).expect("text");
        (status.code().unwrap_or(-1), said)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.folder).stderr(Stdio::null()).status();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Properties of a file as a file system tells them.
#[derive(PartialEq, Eq, Debug)]
struct Seen {
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    bytes: u64,
    device: u64,
    links: u64,
    content: Vec<u8>,
    attributes: Vec<(Vec<u8>, Vec<u8>)>,
}

/// All that is in a folder, by the paths below it.
fn seen(folder: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(&next).expect("read") {
            let path = entry.expect("an entry").path();
            let metadata = path.symlink_metadata().expect("status");
            let kind = metadata.file_type();
            let content = if kind.is_file() {
                fs::read(&path).expect("read")
            } else if kind.is_symlink() {
                fs::read_link(&path).expect("read").into_os_string().as_bytes().to_vec()
            } else {
                Vec::new()
            };
            let is_folder = kind.is_dir();
            found.insert(
                path.strip_prefix(folder).expect("below").to_owned(),
                Seen {
                    mode: metadata.mode(),
                    owner: (metadata.uid(), metadata.gid()),
                    modified: (metadata.mtime(), metadata.mtime_nsec()),
                    bytes: if is_folder { 0 } else { metadata.size() },
                    device: metadata.rdev(),
                    links: if is_folder { 0 } else { metadata.nlink() },
                    content,
                    attributes: attributes(&path),
                },
            );
            if is_folder {
                folders.push(path);
            }
        }
    }
    found
}

fn attributes(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 4096];
    let count = llistxattr(path, &mut names[..]).expect("names");
    let names = names[..count].split(|byte| *byte == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let count = lgetxattr(path, OsStr::from_bytes(name), &mut value[..]).expect("a value");
        value.truncate(count);
        (name.to_vec(), value)
    };
    names.map(value).collect()
}

/// A source of all kinds of files.
fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    let large = sandbox.write("large", noise(1, 9_000_000));
    let text = sandbox.write("folder/text", b"some text");
    sandbox.write("folder/empty", b"");
    fs::create_dir(sandbox.path("source/no files")).expect("made");
    symlink("folder/text", sandbox.path("source/link")).expect("made");
    fs::hard_link(&text, sandbox.path("source/second name")).expect("made");
    fs::write(sandbox.path("source").join(OsStr::from_bytes(b"odd \xff\n name")), b"odd").expect("written");
    fs::set_permissions(&large, PermissionsExt::from_mode(0o4750)).expect("set");
    lsetxattr(&text, "user.note", b"a note", XattrFlags::empty()).expect("set");
    let made = Command::new("mkfifo").arg(sandbox.path("source/pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    let past = fs::FileTimes::new().set_modified(std::time::UNIX_EPOCH - Duration::from_millis(1500));
    File::options().write(true).open(&text).expect("opened").set_times(past).expect("set");
    // More names than are read at once.
    (0..1300).for_each(|number| drop(sandbox.write(&format!("many/{number}"), number.to_string())));
    sandbox
}

#[test]
fn a_mounted_snapshot_is_the_source() {
    let sandbox = sandbox();
    sandbox.backup(&["--tag", "a/b"]);
    let source = sandbox.path("source");
    let mut mounted = Mounted::start(&sandbox, &[]);
    let there = mounted.latest(&source);
    let (wanted, found) = (seen(&source), seen(&there));
    assert_eq!(found.keys().collect::<Vec<_>>(), wanted.keys().collect::<Vec<_>>());
    for (path, wanted) in &wanted {
        assert!(found[path] == *wanted, "{}: {:?}, not {wanted:?}", path.display(), found[path]);
    }
    let number = |name: &str| there.join(name).symlink_metadata().expect("status").ino();
    assert_eq!(number("folder/text"), number("second name"));
    assert_ne!(number("folder/text"), number("folder/empty"));

    let refused = fs::write(there.join("new"), b"new").expect_err("it is read-only");
    assert_eq!(refused.kind(), io::ErrorKind::ReadOnlyFilesystem);
    let unknown = fs::metadata(there.join("nothing")).expect_err("nothing is there");
    assert_eq!(unknown.kind(), io::ErrorKind::NotFound);

    let names = |folder: &str| {
        let read = fs::read_dir(mounted.path(folder)).expect("read");
        let mut names: Vec<String> =
            read.map(|entry| entry.expect("a name").file_name().into_string().expect("text")).collect();
        names.sort();
        names
    };
    assert_eq!(names(""), ["hosts", "ids", "latest", "series", "snapshots", "tags"]);
    assert_eq!(names("tags"), ["a_b"]);
    assert_eq!(names("ids").len(), 1);
    let by_host = fs::read_dir(mounted.path("hosts")).expect("read").next().expect("a host").expect("a name").path();
    assert_eq!(seen(&by_host.join("latest").join(source.strip_prefix("/").expect("absolute"))), wanted);

    assert!(Command::new("umount").arg(&mounted.folder).status().expect("umount runs").success());
    assert_eq!(mounted.end(), (0, String::new()));
}

#[test]
fn files_are_read_at_any_place_by_several_readers() {
    let sandbox = sandbox();
    sandbox.backup(&[]);
    let mounted = Mounted::start(&sandbox, &[]);
    let source = sandbox.path("source");
    let wanted = fs::read(source.join("large")).expect("read");
    let path = mounted.latest(&source).join("large");
    std::thread::scope(|scope| {
        for reader in 0..4_u64 {
            let (path, wanted) = (&path, &wanted);
            scope.spawn(move || {
                let file = File::open(path).expect("opened");
                let mut place = reader;
                for _ in 0..200 {
                    place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let offset = (place >> 20) % wanted.len() as u64;
                    let mut buffer = vec![0; (place >> 8) as usize % 30_000];
                    let count = file.read_at(&mut buffer, offset).expect("read");
                    let offset = usize::try_from(offset).expect("small");
                    assert_eq!(buffer[..count], wanted[offset..offset + count]);
                    assert!(count == buffer.len() || offset + count == wanted.len());
                }
            });
        }
    });
}

#[test]
fn small_files_read_one_after_the_other_are_mostly_read_without_a_request() {
    const FILES: usize = 400;
    let sandbox = Sandbox::new();
    let page = 4096;
    for number in 0..FILES {
        // Around whole pages, and now and then too long to be given to the kernel.
        let bytes = if number % 100 == 99 { (1 << 20) + 1 } else { number % 3 * page + number % 5 - 2 * (number % 3) };
        sandbox.write(&format!("file{number:03}"), noise(number as u64, bytes));
    }
    sandbox.backup(&[]);
    let mounted = Mounted::start(&sandbox, &[]);
    let source = sandbox.path("source");
    let there = mounted.latest(&source);
    // The kernel learns of all files of the folder before it reads the first.
    let mut names: Vec<_> =
        fs::read_dir(&there).expect("read").map(|entry| entry.expect("a name").file_name()).collect();
    names.sort();
    let requests = || {
        let told = fs::read_to_string(format!("/proc/{}/io", mounted.process.id())).expect("read");
        let count = told.lines().find_map(|line| line.strip_prefix("syscr: ")).expect("counted");
        count.parse::<usize>().expect("a number")
    };
    let before = requests();
    let mut told = before;
    for name in &names {
        assert!(fs::read(there.join(name)).expect("read") == fs::read(source.join(name)).expect("read"), "{name:?}");
        // Whoever gives files to the kernel is given time to, however busy the machine is.
        if told != requests() {
            std::thread::sleep(Duration::from_millis(20));
            told = requests();
        }
    }
    let asked = requests() - before;
    assert!(names.len() == FILES && asked < FILES / 2, "{asked} reads for {FILES} files");
}

#[test]
fn a_signal_unmounts_and_what_is_open_can_be_read_on() {
    let sandbox = sandbox();
    sandbox.backup(&[]);
    let mut mounted = Mounted::start(&sandbox, &[]);
    let source = sandbox.path("source");
    let mut open = File::open(mounted.latest(&source).join("large")).expect("opened");
    signal(&mounted.process, "-INT");
    let begin = Instant::now();
    while mounted.path("latest").symlink_metadata().is_ok() {
        assert!(begin.elapsed() < LIMIT, "it is still mounted");
        std::thread::sleep(Duration::from_millis(10));
    }
    let mut read = Vec::new();
    open.read_to_end(&mut read).expect("read");
    assert!(read == fs::read(source.join("large")).expect("read"));
    assert!(mounted.process.try_wait().expect("it is ours").is_none(), "a file is open");
    drop(open);
    assert_eq!(mounted.end(), (0, String::new()));
}

#[test]
fn damage_is_an_error_of_the_file_and_told_once() {
    let sandbox = Sandbox::of_files(4);
    let hit = sandbox.largest_container();
    let mut bytes = fs::read(&hit).expect("read");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&hit, bytes).expect("written");
    let mut mounted = Mounted::start(&sandbox, &[]);
    let there = mounted.latest(&sandbox.path("source"));
    let read = (0..4).map(|number| fs::read(there.join(format!("{number:03}"))));
    let failed: Vec<io::Error> = read.filter_map(Result::err).collect();
    assert!(!failed.is_empty(), "one is damaged");
    assert!(failed.iter().all(|error| error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())));
    let _ = (0..4).map(|number| fs::read(there.join(format!("{number:03}")))).count();
    signal(&mounted.process, "-TERM");
    let (status, said) = mounted.end();
    assert_eq!(status, 0, "{said}");
    assert!(said.contains("source/00") && said.contains("damaged"), "{said}");
    assert_eq!(said.lines().count(), failed.len(), "{said}");
}

/// The story: the kernel took what was read before the damage for the whole file, and a copy of it succeeded.
#[test]
fn damage_of_a_large_file_is_not_the_end_of_it() {
    let sandbox = Sandbox::new();
    let wanted = noise(1, 8_000_000);
    let bytes = fs::metadata(sandbox.write("large", &wanted)).expect("status").len();
    sandbox.backup(&[]);
    let hit = sandbox.largest_container();
    let mut container = fs::read(&hit).expect("read");
    let middle = container.len() / 2;
    container[middle] ^= 1;
    fs::write(&hit, container).expect("written");
    let mounted = Mounted::start(&sandbox, &[]);
    let path = mounted.latest(&sandbox.path("source")).join("large");
    for _ in 0..2 {
        let failed = io::copy(&mut File::open(&path).expect("opened"), &mut io::sink()).expect_err("it is damaged");
        assert_eq!(failed.raw_os_error(), Some(rustix::io::Errno::IO.raw_os_error()));
        assert_eq!(fs::metadata(&path).expect("status").len(), bytes);
    }
    // What is not hit can be read.
    let file = File::open(&path).expect("opened");
    let mut piece = vec![0; 100_000];
    for offset in [0, wanted.len() - piece.len()] {
        file.read_exact_at(&mut piece, u64::try_from(offset).expect("small")).expect("read");
        assert!(piece[..] == wanted[offset..][..piece.len()], "at {offset}");
    }
}

/// The group's bits of such a file are the mask of its list, which the kernel does not know.
#[test]
fn to_others_a_file_is_as_open_as_its_access_list_makes_it() {
    if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
        return;
    }
    let sandbox = Sandbox::new();
    let file = sandbox.write("file", b"for one user more");
    // user::rw-, user:4321:rw-, group::---, mask::rw-, other::---
    let entries = [(1, 6, u32::MAX), (2, 6, 4321), (4, 0, u32::MAX), (16, 6, u32::MAX), (32, 0, u32::MAX)];
    let mut list = 2_u32.to_le_bytes().to_vec();
    for (tag, permissions, id) in entries {
        list.extend([tag, 0, permissions, 0]);
        list.extend(u32::to_le_bytes(id));
    }
    lsetxattr(&file, "system.posix_acl_access", &list, XattrFlags::empty()).expect("set");
    sandbox.backup(&[]);
    for (more, mode) in [(&[][..], 0o660), (&["--allow-other"], 0o600)] {
        let mounted = Mounted::start(&sandbox, more);
        let there = mounted.latest(&sandbox.path("source")).join("file");
        assert_eq!(fs::metadata(there).expect("status").mode() & 0o7777, mode, "{more:?}");
    }
}

#[test]
fn what_cannot_be_mounted_on_is_named() {
    let sandbox = Sandbox::of_files(1);
    let refused = ran(sandbox.silt().args(["mount", "nowhere"]));
    assert_eq!(refused.status, 1);
    assert!(refused.stderr.contains("nowhere is not a folder"), "{}", refused.stderr);
}

//! Repositories of every version of the format, as the program of that version wrote them: this one must read them
//! exactly, for ever.
//!
//! See `golden/README.md`. The generator, [`makes_the_golden_repository`], only ever runs for a version that has not
//! been released.

use crate::common::{self, Sandbox, entry_path, heard_by, log::Log, resources, tree};
use rustix::fs::{AtFlags, CWD, FileType, Mode, Timespec, Timestamps, XattrFlags};
use siltstone_engine::backup::{self, Source};
use siltstone_engine::browse;
use siltstone_engine::check::{self, CheckOptions, ReadData};
use siltstone_engine::dump::{self, Archive};
use siltstone_engine::fs::Ownership;
use siltstone_engine::restore::{self};
use siltstone_engine::snapshots::{self, SnapshotFilter, SnapshotView};
use siltstone_engine::write_only::add_write_only_key;
use siltstone_store::catalog::{Content, Entry, EntryPath, Name};
use siltstone_store::config::Config;
use siltstone_store::keys::{Argon2Cost, KeyLabel};
use siltstone_store::recipe::Recipe;
use siltstone_store::repository::Repository;
use siltstone_store::sealed::{FORMAT_VERSION, KeyMode};
use siltstone_store::storage::{Disk, Recorder, Storage};
use siltstone_store::{SnapshotId, Time};
use std::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A second password, behind the password hashing of ordinary repositories.
const SECOND_PASSWORD: &[u8] = "z\u{fc}rich\n\0".as_bytes();
/// The password of a client that can add backups and read none.
const CLIENT_PASSWORD: &[u8] = b"a client's";
/// When the first snapshot was taken, and all that is in the sources last changed.
const BEGINNING: i64 = 1_700_000_000;

fn golden(version: u16) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/v{version}"))
}

fn versions() -> std::ops::RangeInclusive<u16> {
    1..=FORMAT_VERSION
}

#[test]
fn every_version_of_the_format_has_a_golden_repository() {
    for version in versions() {
        for name in ["repository/config", "listing.txt", "digest"] {
            let path = golden(version).join(name);
            assert!(path.exists(), "{}: missing; see tests/golden/README.md", path.display());
        }
    }
    assert!(!golden(FORMAT_VERSION + 1).exists(), "a version that this program does not know");
}

#[test]
fn golden_repositories_are_never_edited() {
    for version in versions() {
        let recorded = fs::read_to_string(golden(version).join("digest")).expect("a digest");
        assert_eq!(digest(&golden(version)), recorded.trim(), "version {version}: see tests/golden/README.md");
    }
}

#[test]
fn golden_repositories_hold_what_they_always_held() {
    for version in versions() {
        let disk = Disk::open(golden(version).join("repository")).expect("a folder");
        let recorder = Arc::new(Recorder::new(disk));
        for password in [common::PASSWORD, SECOND_PASSWORD] {
            let repository = Repository::open(recorder.clone(), password).expect("the repository opens");
            assert_eq!(repository.key_slots().expect("slots").0.len(), 3);
        }
        let client = Repository::open(recorder.clone(), CLIENT_PASSWORD).expect("the client's key opens");
        let of_client = snapshots::list(&client, &SnapshotFilter::default()).expect("a list");
        assert_eq!(of_client.iter().map(|view| view.series_name.as_str()).collect::<Vec<_>>(), ["third"]);
        let repository = Repository::open(recorder.clone(), common::PASSWORD).expect("the repository opens");
        let views = snapshots::list(&repository, &SnapshotFilter::default()).expect("a list");
        let mut listing = String::new();
        for view in &views {
            list_snapshot(&repository, view, &mut listing);
            restore_and_compare(&repository, view);
        }
        let wanted = fs::read_to_string(golden(version).join("listing.txt")).expect("a listing");
        assert_eq!(listing, wanted, "version {version}");
        let report = check::check(&repository, &CheckOptions::reading(ReadData::All), &resources()).expect("a check");
        assert_eq!((report.findings, report.orphans), (Vec::new(), 0), "version {version}");
        let calls = recorder.calls().total();
        assert_eq!((calls.puts, calls.creates, calls.deletes), (0, 0, 0), "reading writes nothing");
    }
}

/// Adds a line per entry, read through the engine.
fn list_snapshot(repository: &Repository, view: &SnapshotView, listing: &mut String) {
    heading(view.snapshot.time, &view.series_name, &view.snapshot.tags, listing);
    let root = view.snapshot.paths[0].clone();
    let below = EntryPath::new(&root[1..]).expect("a path");
    let mut entries: Vec<Entry> = Vec::new();
    browse::ls(repository, view, Some(&below), true, &mut |entry| {
        entries.push(entry.clone());
        Ok(())
    })
    .expect("a listing");
    for entry in &entries {
        let mut content = Vec::new();
        let mut device = 0;
        match &entry.content {
            Content::File { .. } => {
                dump::dump(repository, view, Some(&entry.path), Archive::Tar, &mut content, &resources())
                    .expect("content");
            }
            Content::Symlink { target } => content.clone_from(target),
            Content::CharDevice { major, minor } => device = rustix::fs::makedev(*major, *minor),
            _ => {}
        }
        let name = entry.path.as_bytes().strip_prefix(&root[1..]).expect("below the root");
        let metadata = &entry.metadata;
        assert_eq!(metadata.user.as_ref().map(Name::as_bytes), (metadata.uid == 0).then_some(&b"root"[..]));
        let line = Line {
            name: name.strip_prefix(b"/").unwrap_or(name),
            kind: kind(&entry.content),
            mode: metadata.mode,
            owner: (metadata.uid, metadata.gid),
            modified: (metadata.modified.seconds, metadata.modified.nanoseconds.into()),
            device,
            xattrs: &metadata.xattrs,
            content: &content,
        };
        line.add_to(listing);
    }
}

fn kind(content: &Content) -> u32 {
    match content {
        Content::Directory => 0o040_000,
        Content::File { .. } => 0o100_000,
        Content::Symlink { .. } => 0o120_000,
        Content::Fifo => 0o010_000,
        Content::CharDevice { .. } => 0o020_000,
        Content::BlockDevice { .. } => 0o060_000,
    }
}

/// Restores with the rights there are and compares content, kinds and times.
fn restore_and_compare(repository: &Repository, view: &SnapshotView) {
    let target = tempfile::tempdir().expect("a temporary folder");
    let below = EntryPath::new(&view.snapshot.paths[0][1..]).expect("a path");
    let sandbox_options = Sandbox::new().restore_options(&target.path().join("new"));
    let options = sandbox_options.with_ownership(Ownership::None).with_below(Some(below));
    let log = Log::default();
    restore::restore(repository, view, &options, &heard_by(&log)).expect("a restore");
    let is_about_rights = |problem: &String| problem.contains("zero") || problem.contains("trusted.");
    let problems: Vec<_> = log.problems().into_iter().filter(|problem| !is_about_rights(problem)).collect();
    assert_eq!(problems, [""; 0]);
    let found = tree::read(&target.path().join("new"));
    browse::ls(repository, view, options.below.as_ref(), true, &mut |entry| {
        let name = entry.path.as_bytes().strip_prefix(&view.snapshot.paths[0][1..]).expect("below the root");
        let name = name.strip_prefix(b"/").unwrap_or(name);
        let Some(node) = found.get(name) else {
            assert_eq!(name, b"zero", "{} is missing", name.escape_ascii());
            return Ok(());
        };
        let modified = entry.metadata.modified;
        assert_eq!(node.kind, kind(&entry.content), "{}", name.escape_ascii());
        assert_eq!(node.modified, (modified.seconds, modified.nanoseconds.into()), "{}", name.escape_ascii());
        if let Content::File { .. } = entry.content {
            let mut content = Vec::new();
            dump::dump(repository, view, Some(&entry.path), Archive::Tar, &mut content, &resources()).expect("content");
            assert!(node.content == content, "{}", name.escape_ascii());
        }
        Ok(())
    })
    .expect("a listing");
}

/// One line of a listing, the same whether made of the source or of a snapshot.
struct Line<'l> {
    name: &'l [u8],
    kind: u32,
    mode: u32,
    owner: (u32, u32),
    modified: (i64, i64),
    device: u64,
    xattrs: &'l [(Vec<u8>, Vec<u8>)],
    content: &'l [u8],
}

impl Line<'_> {
    fn add_to(&self, listing: &mut String) {
        let Self { kind, mode, owner, modified, device, content, .. } = self;
        let hash = blake3::hash(content).to_hex();
        let name = self.name.escape_ascii();
        write!(listing, "{kind:06o} {mode:04o} {}:{} {}.{:09} ", owner.0, owner.1, modified.0, modified.1)
            .expect("text");
        write!(listing, "{device} {} {} /{name}", content.len(), &hash[..16]).expect("text");
        for (name, value) in self.xattrs {
            write!(listing, " {}={}", name.escape_ascii(), value.escape_ascii()).expect("text");
        }
        listing.push('\n');
    }
}

fn heading(time: Time, series: &str, tags: &[String], listing: &mut String) {
    writeln!(listing, "snapshot {time} of {series} [{}]", tags.join(" ")).expect("text");
}

/// BLAKE3 over names and bytes of the listing and of all files of the repository, sorted by name.
fn digest(folder: &Path) -> String {
    let mut files = vec![folder.join("listing.txt")];
    let mut folders = vec![folder.join("repository")];
    while let Some(next) = folders.pop() {
        for name in tree::listing(&next) {
            let path = next.join(name);
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let name = path.strip_prefix(folder).expect("inside").to_str().expect("text").to_owned();
        let bytes = fs::read(&path).expect("read");
        hasher.update(format!("{name}\n{}\n", bytes.len()).as_bytes()).update(&bytes);
    }
    hasher.finalize().to_hex().to_string()
}

/// A hand at the golden repository.
struct Maker {
    folder: tempfile::TempDir,
    storage: Arc<dyn Storage>,
    /// The listing of each snapshot that stays.
    listings: Vec<(SnapshotId, String)>,
}

impl Maker {
    fn source(&self) -> PathBuf {
        self.folder.path().join("source")
    }

    fn at(&self, name: &str) -> PathBuf {
        self.source().join(name)
    }

    fn repository(&self) -> Repository {
        Repository::open(self.storage.clone(), common::PASSWORD).expect("the repository opens")
    }

    /// Sets all times, backs up, and writes down what the source holds.
    fn back_up(&mut self, series: &str, days: i64, tags: &[&str]) -> SnapshotId {
        self.back_up_to(&self.repository(), series, days, tags)
    }

    fn back_up_to(&mut self, repository: &Repository, series: &str, days: i64, tags: &[&str]) -> SnapshotId {
        set_times(&self.source());
        let time = Time { seconds: BEGINNING + days * 86_400, nanoseconds: 0 };
        let sandbox = Sandbox::new();
        let options = sandbox
            .options()
            .with_migrate_threshold(1.0)
            .with_series(Some(series.to_owned()))
            .with_tags(tags.iter().map(ToString::to_string).collect())
            .with_description(Some("a golden snapshot".to_owned()))
            .with_time(Some(time))
            .with_compression_level(19)
            .with_force(true);
        let source = Source::Paths(vec![self.source()]);
        let summary = backup::backup(repository, source, &options, &resources()).expect("a backup");
        let id = summary.snapshot.expect("a snapshot");
        let mut listing = String::new();
        heading(time, series, &options.tags, &mut listing);
        for (name, node) in in_catalog_order(tree::read(&self.source())) {
            let (mode, owner, modified, device) = (node.mode, node.owner, node.modified, node.device);
            let (xattrs, content) = (&node.xattrs, &node.content);
            Line { name: &name, kind: node.kind, mode, owner, modified, device, xattrs, content }.add_to(&mut listing);
        }
        self.listings.push((id, listing));
        id
    }
}

/// A folder comes before what it holds, and that before its next neighbour: as if `/` were the smallest byte.
fn in_catalog_order(tree: tree::Tree) -> Vec<(Vec<u8>, tree::Node)> {
    let mut entries: Vec<_> = tree.into_iter().collect();
    entries.sort_by(|(a, _), (b, _)| a.split(|byte| *byte == b'/').cmp(b.split(|byte| *byte == b'/')));
    entries
}

fn set_times(path: &Path) {
    let status = fs::symlink_metadata(path).expect("status");
    if status.is_dir() {
        for name in tree::listing(path) {
            set_times(&path.join(name));
        }
    }
    let time = Timespec { tv_sec: BEGINNING, tv_nsec: 123_456_789 };
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW).expect("times");
}

/// Every kind of entry, content and recipe.
fn plant(maker: &Maker) {
    let at = |name: &str| maker.at(name);
    for folder in ["", "folder", "folder/below", "empty folder", "names"] {
        fs::create_dir(at(folder)).expect("made");
    }
    fs::write(at("empty"), "").expect("written");
    fs::write(at("folder/text"), "Silt settles in layers.\n".repeat(500)).expect("written");
    fs::write(at("folder/noise"), common::noise(1, 150_000)).expect("written");
    fs::write(at("folder/noise again"), common::noise(1, 150_000)).expect("written");
    fs::write(at("folder/zeros"), vec![0; 300_000]).expect("written");
    fs::write(at("names/line\nbreak"), "1").expect("written");
    let no_text = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(b"names/\xff\xfe");
    fs::write(maker.source().join(no_text), "2").expect("written");
    symlink("../text", at("folder/below/link")).expect("linked");
    fs::hard_link(at("folder/text"), at("folder/below/name")).expect("linked");
    rustix::fs::mknodat(CWD, at("fifo"), FileType::Fifo, Mode::from_raw_mode(0o620), 0).expect("a pipe");
    let zero = rustix::fs::makedev(1, 5);
    rustix::fs::mknodat(CWD, at("zero"), FileType::CharacterDevice, Mode::RUSR, zero).expect("a device");
    rustix::fs::setxattr(at("folder/text"), "user.colour", b"ochre\xff", XattrFlags::empty()).expect("an attribute");
    rustix::fs::setxattr(at("folder"), "trusted.by", b"root", XattrFlags::empty()).expect("an attribute");
    for number in 0..300 {
        fs::write(at(&format!("folder/below/{number:03}")), format!("file {number}\n")).expect("written");
    }
    std::os::unix::fs::chown(at("folder/noise"), Some(1234), Some(5678)).expect("an owner");
    for (name, mode) in [("folder/noise", 0o6755), ("folder", 0o2750), ("empty folder", 0o1777), ("folder/text", 0o600)]
    {
        fs::set_permissions(at(name), Permissions::from_mode(mode)).expect("permissions");
    }
    // A hole after every block: a recipe too long to stand in its entry.
    let sparse = File::create(at("sparse")).expect("made");
    for block in 0..3000u64 {
        sparse.write_all_at(&common::noise(100 + block % 7, 4096), block * 8192).expect("written");
    }
    sparse.set_len(3000 * 8192 + 5).expect("sized");
}

/// Makes the golden repository of the format's current version; for root, who may make devices.
#[test]
#[ignore = "golden repositories are made once"]
fn makes_the_golden_repository() {
    let place = golden(FORMAT_VERSION);
    assert!(!place.exists(), "golden repositories are never made anew");
    fs::create_dir_all(&place).expect("made");
    let disk = Disk::create(place.join("repository")).expect("a folder");
    let storage: Arc<dyn Storage> = Arc::new(disk);
    let repository = common::init(storage.clone()).expect("a repository");
    let label = KeyLabel { created: Time { seconds: BEGINNING, nanoseconds: 0 }, host: "h".into(), user: "u".into() };
    repository.add_key(SECOND_PASSWORD, &label, Argon2Cost::DEFAULT).expect("a key");

    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut maker = Maker { folder, storage, listings: Vec::new() };
    plant(&maker);
    maker.back_up("first", 0, &[]);
    fs::write(maker.at("folder/noise"), [common::noise(2, 5000), common::noise(1, 150_000)].concat()).expect("written");
    fs::remove_file(maker.at("folder/text")).expect("removed");
    fs::write(maker.at("folder/short-lived"), common::noise(3, 200_000)).expect("written");
    let gone = maker.back_up("first", 1, &["gone"]);
    // This series borrows of the other, also what that one is going to forget.
    maker.back_up("second", 2, &[]);
    fs::remove_file(maker.at("folder/short-lived")).expect("removed");
    fs::write(maker.at("folder/new"), common::noise(4, 50_000)).expect("written");
    maker.back_up("first", 3, &["one", "two words"]);
    // Forgetting leaves containers that were written again.
    forget(&maker, gone);
    maker.listings.retain(|(id, _)| *id != gone);
    let mut noise = [common::noise(2, 5000), common::noise(1, 150_000)].concat();
    noise[70_000..70_004].copy_from_slice(b"edit");
    fs::write(maker.at("folder/noise"), noise).expect("written");
    // The last manifest of this series lies in parts, that of the other in one piece.
    let in_parts = |config: &mut Config| {
        config.set_part_bytes(256);
        Ok(())
    };
    maker.repository().amend(in_parts).expect("a setting");
    maker.back_up("first", 4, &[]);
    let sealed = (&label, Argon2Cost::DEFAULT);
    add_write_only_key(&maker.repository(), "third", CLIENT_PASSWORD, sealed, &resources()).expect("a client's key");
    let client = Repository::open(maker.storage.clone(), CLIENT_PASSWORD).expect("the client's key opens");
    maker.back_up_to(&client, "third", 5, &[]);
    assert!(place.join("repository/parts").exists() && place.join("repository/copies/parts").exists());
    has_long_recipe(&maker);
    let repository = Repository::open(maker.storage.clone(), common::PASSWORD).expect("the repository opens");
    let manifests = repository.manifests().expect("manifests");
    assert!(manifests.iter().any(|manifest| !manifest.imports.is_empty()), "there are borrowed chunks");
    assert!(manifests.iter().any(|manifest| !manifest.lent.is_empty()), "there are chunks for others alone");
    let containers: Vec<_> = manifests.into_iter().flat_map(|manifest| manifest.containers).collect();
    assert!(containers.iter().any(|record| record.has_deltas), "there are deltas");
    assert!(containers.iter().any(|record| record.mode == KeyMode::Recipient), "there are a client's");
    assert!(containers.iter().any(|record| record.held > record.chunk_count()), "there are superseded chunks");

    let listing: String = maker.listings.iter().map(|(_, listing)| listing.as_str()).collect();
    fs::write(place.join("listing.txt"), listing).expect("written");
    fs::remove_file(place.join("repository/reserve")).expect("removed");
    let _ = fs::remove_dir(place.join("repository/tmp"));
    fs::write(place.join("digest"), digest(&place) + "\n").expect("written");
}

fn forget(maker: &Maker, id: SnapshotId) {
    let sandbox = Sandbox {
        folder: Arc::new(tempfile::tempdir().expect("a folder")),
        storage: maker.storage.clone(),
        has_cache: true,
    };
    let options = sandbox.forget_options(false).with_rewrite_threshold(0.0).with_compression_level(19);
    let summary = sandbox.try_forget(&[id], &options).expect("forgetting");
    assert!(summary.containers_rewritten + summary.containers_deleted > 0);
}

fn has_long_recipe(maker: &Maker) {
    let repository = maker.repository();
    let views = snapshots::list(&repository, &SnapshotFilter::default()).expect("a list");
    let path = entry_path(&maker.at("sparse"));
    browse::ls(&repository, &views[0], Some(&path), false, &mut |entry| {
        assert!(matches!(entry.content, Content::File { recipe: Recipe::Indirect(_), .. }));
        Ok(())
    })
    .expect("a listing");
}

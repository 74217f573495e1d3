//! Archives as snapshots: what comes out of one snapshot as tar goes into another as it was, and an archive means what
//! `tar --extract` would make of it.

use crate::common::log::Log;
use crate::common::{Sandbox, noise, tree};
use siltstone_engine::EngineError;
use siltstone_engine::backup::BackupSummary;
use siltstone_engine::check::ReadData;
use siltstone_engine::dump::{Archive, dump};
use siltstone_engine::import::{ImportOptions, TarArchive, TarBytes, import_tar};
use siltstone_store::SnapshotId;
use siltstone_store::catalog::{Content, Entry, EntryPath};
use std::fs::File;
use std::io::{Cursor, Write};
use std::os::unix::fs::MetadataExt;
use tar::{Builder, EntryType, Header};

const BLOCK: usize = 512;
/// Blocks of the headers in the archive that is damaged.
const HEADERS: [usize; 3] = [0, 7, 8];

/// A member to be written: name, kind, target of a link, content.
type Member<'m> = (&'m str, EntryType, &'m str, &'m [u8]);

fn file<'m>(name: &'m str, content: &'m [u8]) -> Member<'m> {
    (name, EntryType::Regular, "", content)
}

fn link<'m>(name: &'m str, target: &'m str) -> Member<'m> {
    (name, EntryType::Link, target, b"")
}

fn folder(name: &str) -> Member<'_> {
    (name, EntryType::Directory, "", b"")
}

/// An archive of these members, with the names exactly as they are.
fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    for (name, kind, target, content) in members {
        let mut header = Header::new_ustar();
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.as_old_mut().linkname[..target.len()].copy_from_slice(target.as_bytes());
        header.set_entry_type(*kind);
        header.set_mode(0o640);
        header.set_mtime(1_000_000);
        header.set_size(content.len() as u64);
        header.set_cksum();
        builder.append(&header, *content).expect("a member");
    }
    builder.into_inner().expect("an archive")
}

fn import(sandbox: &Sandbox, bytes: &[u8], log: &Log) -> Result<BackupSummary, EngineError> {
    import_below(sandbox, bytes, None, log)
}

fn import_below(sandbox: &Sandbox, bytes: &[u8], below: Option<&str>, log: &Log) -> Result<BackupSummary, EngineError> {
    let (repository, resources) = (sandbox.repository(), sandbox.heard_by(log));
    let stream = TarBytes::Stream(Box::new(Cursor::new(bytes.to_vec())));
    let archive = TarArchive::open("the archive", stream, &repository, &resources)?;
    let below = below.map(|below| EntryPath::new(below).expect("a path"));
    let options = ImportOptions::default().with_backup(sandbox.options()).with_below(below);
    import_tar(&repository, &archive, &options, &resources)
}

/// Path, kind, and content of a file.
fn listing(sandbox: &Sandbox, id: SnapshotId) -> Vec<String> {
    let line = |entry: &Entry| {
        let path = entry.path.as_bytes().escape_ascii().to_string();
        match &entry.content {
            Content::Directory => format!("{path}/"),
            Content::File { .. } => format!("{path}={}", content(sandbox, id, &entry.path).escape_ascii()),
            Content::Symlink { target } => format!("{path}->{}", target.escape_ascii()),
            _ => format!("{path}?"),
        }
    };
    sandbox.entries(id).iter().map(line).collect()
}

fn content(sandbox: &Sandbox, id: SnapshotId, path: &EntryPath) -> Vec<u8> {
    let mut bytes = Vec::new();
    let (repository, view) = (sandbox.repository(), sandbox.view(id));
    dump(&repository, &view, Some(path), Archive::Tar, &mut bytes, &sandbox.resources()).expect("its content");
    bytes
}

/// The listing of a snapshot made of these members, and the problems told.
fn imported(members: &[Member<'_>]) -> (Vec<String>, Vec<String>) {
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let summary = import(&sandbox, &archive(members), &log).expect("an import");
    assert_eq!(summary.statistics.problems, log.problems().len() as u64);
    (listing(&sandbox, summary.snapshot.expect("a snapshot")), log.problems())
}

#[test]
fn what_a_snapshot_gives_as_tar_comes_back_as_it_was() {
    let sandbox = Sandbox::new();
    sandbox.write("a/one", b"one");
    sandbox.write("a/two", &noise(1, 300_000));
    sandbox.write("empty", b"");
    sandbox.write(&format!("{}/{}", "d".repeat(200), "f".repeat(200)), b"long names");
    sandbox.symlink("a/link", &"t".repeat(300));
    let source = sandbox.source();
    std::fs::hard_link(source.join("a/two"), source.join("another name")).expect("a hard link");
    std::fs::hard_link(source.join("a/one"), source.join("a/0")).expect("a hard link");
    let holes = File::create(source.join("holes")).expect("a file");
    holes.set_len(40 << 20).expect("a hole");
    std::os::unix::fs::FileExt::write_all_at(&holes, b"in between", 17 << 20).expect("data");
    let nothing = File::create(source.join("nothing")).expect("a file");
    nothing.set_len(3 << 20).expect("a hole");
    rustix::fs::setxattr(source.join("a/one"), "user.one", b"a\nb=c", rustix::fs::XattrFlags::CREATE).expect("set");
    let id = sandbox.backup();

    let mut tar = Vec::new();
    let (repository, view, resources) = (sandbox.repository(), sandbox.view(id), sandbox.resources());
    dump(&repository, &view, None, Archive::Tar, &mut tar, &resources).expect("an archive");
    let log = Log::default();
    let again = import(&sandbox, &tar, &log).expect("an import");
    assert_eq!(log.problems(), [""; 0]);
    assert_eq!(again.statistics.added_plain_bytes, 0, "all content is there already");
    assert_eq!(again.statistics.files_changed + again.statistics.files_new, again.statistics.files);
    let again = again.snapshot.expect("a snapshot");
    let differences = tree::differences(&sandbox.restored(again), &sandbox.restored(id));
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    let blocks = |id| {
        let target = tempfile::tempdir().expect("a folder");
        sandbox.restore(id, target.path()).expect("a restore");
        let path = target.path().join(source.strip_prefix("/").expect("absolute")).join("holes");
        path.metadata().expect("restored").blocks()
    };
    assert_eq!(blocks(again), blocks(id), "holes stay holes");
    assert_eq!(sandbox.check(ReadData::All).findings, []);
}

#[test]
fn compressed_archives_are_the_same() {
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let plain = archive(&[file("a", &noise(7, 10_000)), folder("b/")]);
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(&plain).expect("compressed");
    let gzip = gzip.finish().expect("compressed");
    let zstd = zstd::encode_all(&*plain, 1).expect("compressed");
    // Several parts one after the other are one archive.
    let (begin, end) = plain.split_at(5000);
    let parts =
        [zstd::encode_all(begin, 1).expect("compressed"), zstd::encode_all(end, 1).expect("compressed")].concat();
    let snapshots = [&plain, &gzip, &zstd, &parts].map(|bytes| import(&sandbox, bytes, &log).expect("an import"));
    let listings = snapshots.map(|summary| listing(&sandbox, summary.snapshot.expect("a snapshot")));
    assert!(listings.iter().all(|listing| *listing == listings[0] && listing.len() == 2), "{listings:?}");
    for (program, magic) in [("xz", &b"\xfd7zXZ\0........"[..]), ("bzip2", b"BZh91AY&SY")] {
        let error = import(&sandbox, magic, &log).expect_err("another compression").to_string();
        assert!(error.contains(&format!("{program} -dc FILE")), "{error}");
    }
}

#[test]
fn names_are_relative_to_the_root_or_to_a_folder() {
    let members = [folder("./"), file("./a//b", b"1"), file("/etc/x", b"2"), (".", EntryType::Directory, "", b"")];
    let (listing, problems) = imported(&members);
    assert_eq!(listing, ["a/", "a/b=1", "etc/", "etc/x=2"]);
    assert_eq!(problems, [""; 0]);

    let (sandbox, log) = (Sandbox::new(), Log::default());
    let summary = import_below(&sandbox, &archive(&members), Some("home/me"), &log).expect("an import");
    let id = summary.snapshot.expect("a snapshot");
    let expected = ["home/", "home/me/", "home/me/a/", "home/me/a/b=1", "home/me/etc/", "home/me/etc/x=2"];
    assert_eq!(self::listing(&sandbox, id), expected);
    assert_eq!(sandbox.view(id).snapshot.paths, [b"/home/me"]);
    let modes: Vec<_> = sandbox.entries(id).iter().map(|entry| entry.metadata.mode).collect();
    assert_eq!(modes[..3], [0o755, 0o640, 0o755], "the archive tells of its own root, and of no other folder");
}

#[test]
fn the_last_member_of_a_name_holds() {
    let (listing, _) = imported(&[file("a", b"1"), file("b", b"2"), file("./a", b"3"), file("b", b"")]);
    assert_eq!(listing, ["a=3", "b="]);
}

#[test]
fn a_hard_link_is_bound_to_what_its_target_was() {
    let members =
        [file("z", b"old"), link("a", "z"), link("b", "./a"), file("z", b"new"), link("c", "z"), file("b/", b"no")];
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let id = import(&sandbox, &archive(&members[..5]), &log).expect("an import").snapshot.expect("a snapshot");
    assert_eq!(listing(&sandbox, id), ["a=old", "b=old", "c=new", "z=new"]);
    let links: Vec<_> = sandbox.entries(id).iter().map(|entry| (entry.metadata.inode, entry.metadata.links)).collect();
    assert!(links.iter().all(|(_, links)| *links == 2), "{links:?}");
    assert!(links[0].0 == links[1].0 && links[2].0 == links[3].0 && links[0].0 != links[2].0, "{links:?}");
    // The same files in another order have the same numbers, so that the catalog does not change.
    let again = [file("z", b"new"), link("c", "z"), file("b", b"old"), link("a", "b")];
    let again = import(&sandbox, &archive(&again), &log).expect("an import").snapshot.expect("a snapshot");
    assert_eq!(sandbox.view(again).snapshot.root, sandbox.view(id).snapshot.root);
}

#[test]
fn what_cannot_be_kept_is_told_and_the_rest_goes_on() {
    let members = [
        file("good", b"1"),
        file("../evil", b"2"),
        file("a/../../evil", b"3"),
        link("dangling", "nowhere"),
        link("early", "later"),
        file("later", b"4"),
        link("itself", "itself"),
        ("odd", EntryType::new(b'Q'), "", b"content"),
        file("both", b"5"),
        file("both/below", b"6"),
    ];
    let (listing, problems) = imported(&members);
    assert_eq!(listing, ["both/", "both/below=6", "good=1", "later=4"]);
    for words in ["../evil", "a/../../evil", "dangling", "early", "itself", "odd", "both"] {
        assert!(problems.iter().any(|problem| problem.contains(words)), "{words}: {problems:?}");
    }
    assert_eq!(problems.len(), 7, "{problems:?}");
}

#[test]
fn a_second_archive_behind_the_first_is_told() {
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let two = [archive(&[file("a", b"1")]), archive(&[file("b", b"2")])].concat();
    import(&sandbox, &two, &log).expect("an import");
    assert!(log.tells_of("a second archive follows at byte 2048"), "{:?}", log.problems());
}

#[test]
fn a_damaged_archive_makes_no_snapshot() {
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let whole = archive(&[file("a", &noise(3, 3000)), folder("b/"), file("b/c", b"x")]);
    let end = whole.len() - 2 * BLOCK;
    for bytes in (0..end).step_by(128) {
        // Cut where a member ends it is an archive without its end, as some programs write them.
        let is_between = HEADERS.iter().any(|block| bytes == block * BLOCK) && bytes > 0;
        let result = import(&sandbox, &whole[..bytes], &log);
        assert_eq!(result.is_ok(), is_between, "cut at {bytes}: {result:?}");
    }
    for at in HEADERS.iter().flat_map(|block| (0..148).chain(156..500).map(move |at| block * BLOCK + at)) {
        let mut flipped = whole.clone();
        flipped[at] ^= 0x10;
        let error = import(&sandbox, &flipped, &log).expect_err("a damaged header");
        assert!(matches!(error, EngineError::BadArchive { .. }), "{at}: {error}");
    }
    let error = import(&sandbox, &noise(4, 5000), &log).expect_err("noise").to_string();
    assert!(error.starts_with("the archive, byte 0: no tar header stands here"), "{error}");
    assert_eq!(sandbox.snapshots().len(), 2, "of the two that were cut between members");
}

#[test]
fn maps_that_lie_are_problems_of_their_files() {
    let (size, data) = (10_000, [b'x'; 1024]);
    let maps = [
        ("beyond", "1\n9900\n512\n"),
        ("backwards", "2\n5000\n512\n1000\n0\n"),
        ("short", "1\n0\n100\n"),
        ("many", "99999999\n"),
        ("huge", "1\n18446744073709551615\n512\n"),
        ("text", "one\n0\n512\n"),
        ("good", "1\n512\n512\n"),
    ];
    let mut builder = Builder::new(Vec::new());
    for (name, map) in maps {
        let records = [
            ("GNU.sparse.major", "1"),
            ("GNU.sparse.minor", "0"),
            ("GNU.sparse.name", name),
            ("GNU.sparse.realsize", &size.to_string()),
        ];
        builder.append_pax_extensions(records.map(|(key, value)| (key, value.as_bytes()))).expect("records");
        let mut content = data;
        content[..512].fill(0);
        content[..map.len()].copy_from_slice(map.as_bytes());
        let mut header = Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        builder.append(&header, &content[..]).expect("a member");
    }
    let (sandbox, log) = (Sandbox::new(), Log::default());
    let summary = import(&sandbox, &builder.into_inner().expect("an archive"), &log).expect("an import");
    let problems = log.problems();
    assert_eq!(problems.len(), maps.len() - 1, "{problems:?}");
    assert!(problems.iter().all(|problem| problem.contains("the map of a file") || problem.contains("holes")));
    let path = EntryPath::new("good").expect("a path");
    let mut expected = vec![0; size];
    expected[512..1024].fill(b'x');
    assert_eq!(content(&sandbox, summary.snapshot.expect("a snapshot"), &path), expected);
}

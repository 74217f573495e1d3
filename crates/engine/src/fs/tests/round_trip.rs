//! A tree that the target makes of what a scan found must look the same to another scan.

use super::*;
use siltstone_store::catalog::Metadata;
use std::collections::HashMap;

/// All that a restore gives back of an entry: inode, device and change time are new.
#[derive(PartialEq, Debug)]
struct Seen {
    path: String,
    metadata: Metadata,
    kind: String,
    content: Vec<u8>,
}

fn see(items: &[ScanItem], base: &Path) -> Vec<Seen> {
    let prefix = base.as_os_str().as_bytes().strip_prefix(b"/").expect("absolute");
    let seen = |item: &ScanItem| {
        let ScanItem::Entry(entry) = item else { return None };
        let path = entry.path.as_bytes().strip_prefix(prefix)?.escape_ascii().to_string();
        let metadata =
            Metadata { inode: 0, device: 0, changed: siltstone_store::Time::default(), ..entry.metadata.clone() };
        let (kind, content) = match &entry.kind {
            FileKind::File { size, .. } => (format!("file of {size}"), content(entry)),
            other => (format!("{other:?}"), Vec::new()),
        };
        Some(Seen { path, metadata, kind, content })
    };
    items.iter().filter_map(seen).collect()
}

fn content(entry: &ScanEntry) -> Vec<u8> {
    let mut content = Vec::new();
    open(entry).expect("opened").read_to_end(&mut content).expect("read");
    content
}

/// Restores a scan as simply as the rules allow: all but metadata, then metadata from the last to the first.
fn restore(items: &[ScanItem], base: &Path, target: &TargetDir) {
    let prefix = base.as_os_str().as_bytes().strip_prefix(b"/").expect("absolute");
    let mut made = Vec::new();
    let mut first_names: HashMap<(u64, u64), EntryPath> = HashMap::new();
    for item in items {
        let ScanItem::Entry(entry) = item else { continue };
        let Some(relative) = entry.path.as_bytes().strip_prefix(prefix).and_then(|rest| rest.strip_prefix(b"/")) else {
            continue;
        };
        let path = EntryPath::new(relative).expect("a path");
        make(target, entry, &path, &mut first_names);
        made.push((path, &entry.metadata));
    }
    for (path, metadata) in made.iter().rev() {
        assert_eq!(target.apply_metadata(Some(path), metadata), []);
    }
}

fn make(target: &TargetDir, entry: &ScanEntry, path: &EntryPath, first_names: &mut HashMap<(u64, u64), EntryPath>) {
    let keep = ConflictPolicy::Keep;
    let inode = (entry.metadata.device, entry.metadata.inode);
    if !matches!(entry.kind, FileKind::Directory) && entry.metadata.links > 1 {
        if let Some(first) = first_names.get(&inode) {
            return target.make_hard_link(first, path, keep).expect("linked");
        }
        first_names.insert(inode, path.clone());
    }
    match &entry.kind {
        FileKind::Directory => drop(target.make_directory(path, keep).expect("made")),
        FileKind::Symlink { target: to } => target.make_symlink(path, to, keep).expect("made"),
        FileKind::Fifo => target.make_fifo(path, keep).expect("made"),
        FileKind::CharDevice { major, minor } => target.make_char_device(path, (*major, *minor), keep).expect("made"),
        FileKind::BlockDevice { major, minor } => target.make_block_device(path, (*major, *minor), keep).expect("made"),
        FileKind::File { size, .. } => {
            let source = open(entry).expect("opened");
            let draft = Draft { serial: entry.metadata.inode, on_conflict: keep };
            let file = target.create_file(path, draft).expect("made");
            file.set_size(*size).expect("sized");
            for extent in source.data_extents() {
                let extent = extent.expect("an extent");
                let mut bytes = vec![0; usize::try_from(extent.bytes).expect("small")];
                assert_eq!(source.read_at(&mut bytes, extent.offset).expect("read"), bytes.len());
                file.write_all_at(&bytes, extent.offset).expect("written");
            }
            target.publish(path, draft).expect("published");
        }
    }
}

fn plant(base: &Path) {
    for (name, content) in [("a/one", "1"), ("a/b/two", "22"), ("empty file", ""), ("z\n", "newline")] {
        write(base.join(name), content);
    }
    write(base.join(OsStr::from_bytes(b"bytes\xff\xfe")), "not UTF-8");
    fs::create_dir(base.join("empty folder")).expect("made");
    fs::create_dir(base.join("read only")).expect("made");
    write(base.join("read only/inside"), "x");
    fs::hard_link(base.join("a/one"), base.join("read only/one again")).expect("linked");
    std::os::unix::fs::symlink("../loop", base.join("a/link")).expect("linked");
    rustix::fs::mknodat(CWD, base.join("fifo"), FileType::Fifo, Mode::from_raw_mode(0o620), 0).expect("a pipe");
    // May be refused to a user without rights.
    let device = rustix::fs::makedev(1, 5);
    let _ = rustix::fs::mknodat(CWD, base.join("zero"), FileType::CharacterDevice, Mode::RUSR, device);
    let sparse = fs::File::create(base.join("sparse")).expect("made");
    sparse.write_all_at(b"data", 3 << 20).expect("written");
    sparse.set_len(9 << 20).expect("sized");
    rustix::fs::setxattr(base.join("a"), "user.on a folder", b"1", XattrFlags::empty()).expect("an attribute");
    rustix::fs::setxattr(base.join("a/one"), "user.on a file", b"2", XattrFlags::empty()).expect("an attribute");
    for (name, mode) in [("a/one", 0o4711), ("a/b/two", 0o000), ("read only", 0o2555), ("empty folder", 0o1777)] {
        fs::set_permissions(base.join(name), fs::Permissions::from_mode(mode)).expect("permissions");
    }
}

#[test]
fn what_is_restored_looks_as_it_was_scanned() {
    let (_guard, base) = folder();
    let (source, copy) = (base.join("source"), base.join("copy"));
    fs::create_dir(&source).expect("made");
    plant(&source);
    if !rustix::process::geteuid().is_root() {
        // Nobody else may read a file without permissions.
        fs::set_permissions(source.join("a/b/two"), fs::Permissions::from_mode(0o400)).expect("permissions");
    }
    let items = scan(std::slice::from_ref(&source), ScanOptions::default());
    let target = TargetDir::create(&copy, Ownership::ByName).expect("a target");
    restore(&items, &source, &target);
    let own = items.iter().find_map(|item| match item {
        ScanItem::Entry(entry) if entry.path.name() == b"source" => Some(&entry.metadata),
        _ => None,
    });
    assert_eq!(target.apply_metadata(None, own.expect("the source")), []);
    let again = scan(std::slice::from_ref(&copy), ScanOptions::default());
    assert_eq!(see(&again, &copy), see(&items, &source));
    let blocks =
        |folder: &Path| std::os::unix::fs::MetadataExt::blocks(&fs::metadata(folder.join("sparse")).expect("status"));
    assert_eq!(blocks(&copy), blocks(&source), "holes stay holes");
}

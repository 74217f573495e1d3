//! A stand-in for a file system's journal: what changed in a tree between two looks at it, as lines of a list.

use rustix::fs::{AtFlags, StatxFlags};
use siltstone_store::catalog::EntryPath;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::ops::Range;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Ranges closer than this are told as one.
const GAP_BYTES: usize = 40;

/// A tree at one moment, the folder itself included. In catalog order, so that a folder stands before what it holds.
pub(crate) struct Look(BTreeMap<EntryPath, Seen>);

#[derive(Clone)]
struct Seen {
    is_folder: bool,
    is_file: bool,
    /// Ranges that the file system keeps for it. Bytes that did not change may still have come out of a hole.
    blocks: u64,
    /// Properties that only a change of the entry itself changes.
    own: (u32, u32, u32, u64, u64),
    /// Times, sizes, links: what a folder has of its children.
    rest: ((i64, u32), (i64, u32), u64, u64),
    xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    content: Vec<u8>,
}

impl Seen {
    fn has_other_holes(&self, now: &Self) -> bool {
        let has_holes = |seen: &Self| seen.blocks * 512 < seen.content.len() as u64;
        (has_holes(self) || has_holes(now)) && self.blocks != now.blocks
    }
}

impl Look {
    pub(crate) fn at(root: &Path) -> Self {
        let mut look = Self(BTreeMap::new());
        look.add(root);
        look
    }

    fn add(&mut self, path: &Path) {
        let status = rustix::fs::statx(rustix::fs::CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)
            .expect("a status");
        let metadata = fs::symlink_metadata(path).expect("metadata");
        let time = |time: rustix::fs::StatxTimestamp| (time.tv_sec, time.tv_nsec);
        let content = if metadata.is_file() {
            fs::read(path).expect("content")
        } else if metadata.is_symlink() {
            fs::read_link(path).expect("a target").as_os_str().as_bytes().to_vec()
        } else {
            Vec::new()
        };
        let seen = Seen {
            is_folder: metadata.is_dir(),
            is_file: metadata.is_file(),
            blocks: metadata.blocks(),
            own: (metadata.mode(), metadata.uid(), metadata.gid(), metadata.ino(), metadata.rdev()),
            rest: (time(status.stx_mtime), time(status.stx_ctime), status.stx_size, metadata.nlink()),
            xattrs: super::tree::xattrs(path),
            content,
        };
        let is_folder = seen.is_folder;
        self.0.insert(super::common::entry_path(path), seen);
        for name in is_folder.then(|| super::tree::listing(path)).into_iter().flatten() {
            self.add(&path.join(name));
        }
    }

    /// Lists what changed until a later look. With `ranges`, files that were and are there are told by ranges.
    pub(crate) fn changes(&self, later: &Self, ranges: bool) -> Journal {
        let mut journal = Journal::default();
        for path in self.0.keys().filter(|path| !later.0.contains_key(path)) {
            journal.path(path);
        }
        for (path, now) in &later.0 {
            match self.0.get(path) {
                Some(before) if before.own != now.own || before.xattrs != now.xattrs => journal.path(path),
                Some(before) if before.is_folder || before.rest == now.rest => {}
                Some(before) if ranges && before.is_file && !before.has_other_holes(now) => {
                    for range in differences(&before.content, &now.content) {
                        journal.range(path, range);
                    }
                }
                _ => journal.path(path),
            }
        }
        // Folders are looked at because of what changed in them. Where that came and went again, they must be listed.
        for (path, now) in &later.0 {
            let is_touched = self.0.get(path).is_some_and(|before| before.rest != now.rest);
            if now.is_folder && is_touched && !journal.mentions(path) {
                journal.path(path);
            }
        }
        journal
    }
}

/// Ranges in which two versions differ, as far as both reach; an empty one if in none, so that the file is mentioned.
fn differences(before: &[u8], now: &[u8]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for at in (0..before.len().min(now.len())).filter(|&at| before[at] != now[at]) {
        match ranges.last_mut() {
            Some(last) if at < last.end + GAP_BYTES => last.end = at + 1,
            _ => ranges.push(at..at + 1),
        }
    }
    if ranges.is_empty() {
        ranges.push(0..0);
    }
    ranges
}

/// Lines of a list; names that a line cannot hold go to a raw one.
#[derive(Default)]
pub(crate) struct Journal {
    pub(crate) lines: Vec<u8>,
    pub(crate) raw: Vec<u8>,
    mentioned: Vec<EntryPath>,
}

impl Journal {
    fn path(&mut self, path: &EntryPath) {
        let bytes = path.as_bytes();
        let is_plain = !bytes.contains(&b'\n') && !bytes.contains(&b'\t');
        let (list, end) = if is_plain { (&mut self.lines, b"\n") } else { (&mut self.raw, b"\0") };
        list.extend_from_slice(&[b"/", bytes, end].concat());
        self.mentioned.push(path.clone());
    }

    fn range(&mut self, path: &EntryPath, range: Range<usize>) {
        if path.as_bytes().contains(&b'\n') {
            return self.path(path);
        }
        self.lines.extend_from_slice(&[b"/", path.as_bytes()].concat());
        writeln!(self.lines, "\t{}\t{}", range.start, range.len()).expect("written");
        self.mentioned.push(path.clone());
    }

    fn mentions(&self, folder: &EntryPath) -> bool {
        self.mentioned.iter().any(|path| path == folder || path.is_beneath(folder) || folder.is_beneath(path))
    }
}

//! A tree as a value: path -> kind, content and metadata, to compare what was with what came back.

use rustix::io::Errno;
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub type Tree = BTreeMap<Vec<u8>, Node>;

/// All that a backup keeps of an entry and a restore gives back.
#[derive(Clone, PartialEq, Eq)]
pub struct Node {
    pub kind: u32,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: (i64, i64),
    /// Device that a node stands for.
    pub device: u64,
    pub content: Vec<u8>,
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The first path of the same file, if it has an earlier one in the tree.
    pub other_name: Option<Vec<u8>>,
}

impl std::fmt::Debug for Node {
    /// Long content as its length and hash, so that a failed comparison can be read.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let content = match self.content.len() {
            0..=64 => self.content.escape_ascii().to_string(),
            bytes => format!("{bytes} bytes {}", &blake3::hash(&self.content).to_hex()[..8]),
        };
        write!(f, "{:o} {:04o} {:?} {:?} {content}", self.kind, self.mode, self.owner, self.modified)?;
        for (name, value) in &self.xattrs {
            write!(f, " {}={}", name.escape_ascii(), value.escape_ascii())?;
        }
        match &self.other_name {
            Some(name) => write!(f, " is {}", name.escape_ascii()),
            None => Ok(()),
        }
    }
}

/// Reads the tree below a folder, the folder itself included under the empty name.
pub fn read(root: &Path) -> Tree {
    let mut reader = Reader { tree: Tree::new(), names: HashMap::new() };
    reader.add(root, Vec::new());
    reader.tree
}

struct Reader {
    tree: Tree,
    names: HashMap<(u64, u64), Vec<u8>>,
}

impl Reader {
    fn add(&mut self, path: &Path, name: Vec<u8>) {
        let metadata = std::fs::symlink_metadata(path).expect("metadata");
        let content = if metadata.is_file() {
            std::fs::read(path).expect("content")
        } else if metadata.is_symlink() {
            std::fs::read_link(path).expect("a target").into_os_string().into_vec()
        } else {
            Vec::new()
        };
        let mut other_name = None;
        if metadata.nlink() > 1 && !metadata.is_dir() {
            other_name = self.names.get(&(metadata.dev(), metadata.ino())).cloned();
            self.names.entry((metadata.dev(), metadata.ino())).or_insert_with(|| name.clone());
        }
        let node = Node {
            kind: metadata.mode() & 0o170_000,
            mode: metadata.mode() & 0o7777,
            owner: (metadata.uid(), metadata.gid()),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            device: metadata.rdev(),
            content,
            xattrs: xattrs(path),
            other_name,
        };
        self.tree.insert(name.clone(), node);
        if metadata.is_dir() {
            for child in listing(path) {
                let child_path = path.join(&child);
                let child = child.into_vec();
                let joined = if name.is_empty() { child } else { [name.as_slice(), b"/", &child].concat() };
                self.add(&child_path, joined);
            }
        }
    }
}

/// The names in a folder, sorted.
pub fn listing(path: &Path) -> Vec<OsString> {
    let mut names: Vec<OsString> =
        std::fs::read_dir(path).expect("a listing").map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}

/// Extended attributes of a path, not following a link, sorted by name.
pub fn xattrs(path: &Path) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 1 << 16];
    let length = match rustix::fs::llistxattr(path, &mut names[..]) {
        Err(Errno::OPNOTSUPP) => 0,
        other => other.expect("a list of attributes"),
    };
    let mut found = Vec::new();
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 1 << 16];
        let length = rustix::fs::lgetxattr(path, name, &mut value[..]).expect("an attribute");
        value.truncate(length);
        found.push((name.to_vec(), value));
    }
    found.sort();
    found
}

/// Lists what differs between two trees, one line each: a whole tree is too long to read.
pub fn differences(found: &Tree, wanted: &Tree) -> Vec<String> {
    let mut lines = Vec::new();
    for (name, node) in wanted {
        match found.get(name) {
            None => lines.push(format!("{}: missing, wanted {node:?}", name.escape_ascii())),
            Some(other) if other != node => {
                lines.push(format!("{}: found {other:?}, wanted {node:?}", name.escape_ascii()));
            }
            Some(_) => {}
        }
    }
    for (name, node) in found.iter().filter(|(name, _)| !wanted.contains_key(*name)) {
        lines.push(format!("{}: should not be there: {node:?}", name.escape_ascii()));
    }
    lines
}

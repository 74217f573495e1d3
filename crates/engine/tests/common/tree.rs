//! A tree as a value: path -> kind, content and metadata, to compare what was with what came back.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

pub type Tree = BTreeMap<Vec<u8>, Node>;

/// All that a backup keeps of an entry and a restore gives back.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Node {
    pub kind: u32,
    pub mode: u32,
    pub owner: (u32, u32),
    pub modified: (i64, i64),
    pub content: Vec<u8>,
}

/// Reads the tree below a folder, the folder itself included under the empty name.
pub fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    add(root, Vec::new(), &mut tree);
    tree
}

fn add(path: &Path, name: Vec<u8>, tree: &mut Tree) {
    let metadata = std::fs::symlink_metadata(path).expect("metadata");
    let content = if metadata.is_file() {
        std::fs::read(path).expect("content")
    } else if metadata.is_symlink() {
        std::fs::read_link(path).expect("a target").into_os_string().into_vec()
    } else {
        Vec::new()
    };
    let node = Node {
        kind: metadata.mode() & 0o170_000,
        mode: metadata.mode() & 0o7777,
        owner: (metadata.uid(), metadata.gid()),
        modified: (metadata.mtime(), metadata.mtime_nsec()),
        content,
    };
    tree.insert(name.clone(), node);
    if metadata.is_dir() {
        let mut names: Vec<OsString> =
            std::fs::read_dir(path).expect("a listing").map(|entry| entry.expect("an entry").file_name()).collect();
        names.sort();
        for child in names {
            let child_path = path.join(&child);
            let child = child.into_vec();
            let joined = if name.is_empty() { child } else { [name.as_slice(), b"/", &child].concat() };
            add(&child_path, joined, tree);
        }
    }
}

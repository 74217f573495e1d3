//! The trees of a snapshot as entries in catalog order, beside those of the snapshot that was imported before it.

use crate::file::BlobFile;
use crate::node::metadata;
use crate::restic::{Indexed, said};
use rustic_core::repofile::{Node, NodeType};
use rustic_core::{DataId, TreeId};
use siltstone_engine::EngineError;
use siltstone_engine::backup::source::{Described, EntrySource, SourceEntry, SourceItem, SourceKind, Unread};
use siltstone_engine::fs::{Problem, ProblemKind, ScanItem, SkipReason};
use siltstone_store::catalog::{Content, EntryPath, Metadata};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Depth-first walk through the trees of a snapshot.
pub(crate) struct Walk {
    repository: Arc<Indexed>,
    /// Folders that the walk is in, the innermost last.
    open: Vec<Level>,
    links: Links,
}

/// Folder that the walk is in.
struct Level {
    /// Its path; `None` for the root.
    path: Option<EntryPath>,
    /// Nodes still to come, the last first.
    nodes: Vec<Node>,
    before: Before,
}

/// Nodes that the snapshot before has in a folder.
enum Before {
    /// The same, with all beneath.
    Same,
    /// These nodes, by name as it is written.
    Nodes(HashMap<String, Node>),
}

impl Before {
    fn nothing() -> Self {
        Self::Nodes(HashMap::new())
    }

    /// The tree that it has at a folder, of which `tree` is the one now.
    fn tree(&self, name: &str, tree: TreeId) -> Option<TreeId> {
        match self {
            Self::Same => Some(tree),
            Self::Nodes(nodes) => nodes.get(name).filter(|node| node.is_dir()).and_then(|node| node.subtree),
        }
    }

    fn has_content_of(&self, node: &Node) -> bool {
        match self {
            Self::Same => true,
            Self::Nodes(nodes) => nodes.get(&node.name).is_some_and(|before| {
                before.is_file() && before.content == node.content && before.meta.size == node.meta.size
            }),
        }
    }
}

impl Walk {
    /// Begins at the root tree of a snapshot; `base` is that of the snapshot before.
    ///
    /// # Errors
    /// The root tree cannot be read: why.
    pub(crate) fn new(repository: Arc<Indexed>, root: TreeId, base: Option<TreeId>) -> Result<Self, String> {
        let mut walk = Self { repository, open: Vec::new(), links: Links::default() };
        let level = walk.level(None, root, base)?;
        walk.open.push(level);
        Ok(walk)
    }

    /// Reads the tree of a folder, and that of the snapshot before if it is another one.
    fn level(&self, path: Option<EntryPath>, tree: TreeId, base: Option<TreeId>) -> Result<Level, String> {
        let read = |id: &TreeId| self.repository.get_tree(id).map(|tree| tree.nodes);
        let mut nodes = read(&tree).map_err(|error| said(&*error))?;
        // They are in order as restic writes them; a catalog takes them no other way.
        nodes.sort_by(|left, right| right.name().cmp(&left.name()));
        let before = match base {
            Some(base) if base == tree => Before::Same,
            // What cannot be read of the snapshot before is only read again.
            Some(base) => Before::Nodes(
                read(&base).unwrap_or_default().into_iter().map(|node| (node.name.clone(), node)).collect(),
            ),
            None => Before::nothing(),
        };
        Ok(Level { path, nodes, before })
    }

    /// The item that a node of the innermost folder is; a folder is entered.
    fn item(&mut self, mut node: Node) -> SourceItem {
        let Some(level) = self.open.last() else { return aside(&node, None, "it stands nowhere") };
        let name = node.name();
        let path = match &level.path {
            Some(folder) => folder.join(name.as_bytes()),
            None if name.as_bytes().contains(&b'/') => return aside(&node, None, "its name holds a slash"),
            None => EntryPath::new(name.as_bytes()),
        };
        let path = match path {
            Ok(path) => path,
            Err(error) => return aside(&node, level.path.as_ref(), &error.to_string()),
        };
        if level.nodes.last().is_some_and(|next| next.name() == node.name()) {
            return aside(&node, Some(&path), "another entry has the same name");
        }
        let metadata = metadata(&node);
        let other = |content| {
            SourceItem::Entry(SourceEntry {
                path: path.clone(),
                metadata: metadata.clone(),
                kind: SourceKind::Other(content),
            })
        };
        match &node.node_type {
            NodeType::Dir => {
                let entry = other(Content::Directory);
                self.enter(&node, &path, entry)
            }
            NodeType::File => {
                let is_unchanged = level.before.has_content_of(&node);
                let (blobs, size) = (node.content.take().unwrap_or_default(), node.meta.size);
                let is_link = self.links.is_link(&blobs, size, &metadata);
                let content = Box::new(BlobFile { repository: self.repository.clone(), blobs, size });
                let unread = Unread::Described(Described { content, is_unchanged, is_link });
                SourceItem::Entry(SourceEntry { path, metadata, kind: SourceKind::File { size, unread } })
            }
            NodeType::Symlink { .. } => {
                other(Content::Symlink { target: node.node_type.to_link().as_os_str().as_bytes().to_vec() })
            }
            NodeType::Fifo => other(Content::Fifo),
            NodeType::Dev { device } => {
                let (major, minor) = numbers(*device);
                other(Content::BlockDevice { major, minor })
            }
            NodeType::Chardev { device } => {
                let (major, minor) = numbers(*device);
                other(Content::CharDevice { major, minor })
            }
            NodeType::Socket => SourceItem::Aside(ScanItem::Skipped { path, why: SkipReason::Socket }),
        }
    }

    /// Goes into a folder; if its tree cannot be read, that takes the place of its entry.
    fn enter(&mut self, node: &Node, path: &EntryPath, entry: SourceItem) -> SourceItem {
        let Some(tree) = node.subtree else { return aside(node, Some(path), "restic could not read the folder") };
        let base = self.open.last().and_then(|level| level.before.tree(&node.name, tree));
        match self.level(Some(path.clone()), tree, base) {
            Ok(level) => {
                self.open.push(level);
                entry
            }
            Err(reason) => aside(node, Some(path), &reason),
        }
    }
}

impl EntrySource for Walk {
    fn next_item(&mut self) -> Result<Option<SourceItem>, EngineError> {
        while let Some(level) = self.open.last_mut() {
            if let Some(node) = level.nodes.pop() {
                return Ok(Some(self.item(node)));
            }
            self.open.pop();
        }
        Ok(None)
    }
}

/// A node that cannot be imported, at its path, or below the folder that holds it.
fn aside(node: &Node, path: Option<&EntryPath>, reason: &str) -> SourceItem {
    let reason = format!("{:?}: {reason}", node.name);
    SourceItem::Aside(ScanItem::Problem(Problem::at(path, ProblemKind::NotImported, reason)))
}

fn numbers(device: u64) -> (u32, u32) {
    (rustix::fs::major(device), rustix::fs::minor(device))
}

/// Files with several names, by device and inode: what came last, and how many names are to come.
#[derive(Default)]
struct Links(HashMap<(u64, u64), Linked>);

struct Linked {
    blobs: Vec<DataId>,
    size: u64,
    metadata: Metadata,
    /// How many names are to come.
    names: u64,
}

impl Links {
    /// Tells whether this is a further name of the file of this inode that came last.
    fn is_link(&mut self, blobs: &[DataId], size: u64, metadata: &Metadata) -> bool {
        if metadata.links < 2 {
            return false;
        }
        let inode = (metadata.device, metadata.inode);
        if let Some(last) = self.0.get_mut(&inode)
            && (last.blobs.as_slice(), last.size, &last.metadata) == (blobs, size, metadata)
        {
            last.names -= 1;
            if last.names == 0 {
                self.0.remove(&inode);
            }
            return true;
        }
        let names = metadata.links - 1;
        self.0.insert(inode, Linked { blobs: blobs.to_vec(), size, metadata: metadata.clone(), names });
        false
    }
}

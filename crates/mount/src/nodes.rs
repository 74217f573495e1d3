//! What the kernel's inode numbers stand for.
//!
//! A number is the beginning of a hash of what it stands for, so it is the same in every mount and costs memory only
//! while the kernel has it. All names of a hard link have one number.

use siltstone_engine::snapshots::SnapshotView;
use siltstone_store::catalog::{Entry, EntryPath};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Number of the topmost folder.
pub(crate) const ROOT: u64 = 1;

/// A snapshot in one of the folders that show it. Each shows it as a tree of its own: a directory has one parent.
#[derive(Debug)]
pub(crate) struct Top {
    /// Number of the folder that is the snapshot.
    pub(crate) number: u64,
    pub(crate) snapshot: Arc<SnapshotView>,
}

/// What a number stands for.
#[derive(Clone, Debug)]
pub(crate) enum Node {
    /// Something above the snapshots, by the names that lead to it.
    Above(Vec<Vec<u8>>),
    /// The topmost folder of a snapshot.
    Top(Arc<Top>),
    /// An entry of a snapshot.
    Entry {
        top: Arc<Top>,
        path: EntryPath,
        /// Device and inode of a file that has several names.
        link: Option<(u64, u64)>,
    },
}

impl Node {
    pub(crate) fn entry(top: &Arc<Top>, entry: &Entry) -> Self {
        let metadata = &entry.metadata;
        let has_links = metadata.links > 1 && !entry.is_directory();
        let link = has_links.then_some((metadata.device, metadata.inode));
        Self::Entry { top: top.clone(), path: entry.path.clone(), link }
    }

    /// The number wanted for it.
    fn number(&self) -> u64 {
        let mut hasher = blake3::Hasher::new();
        match self {
            Self::Above(names) if names.is_empty() => return ROOT,
            Self::Above(names) => {
                for name in names {
                    hasher.update(b"/").update(name);
                }
            }
            Self::Top(top) => return top.number,
            Self::Entry { top, link: Some((device, inode)), .. } => {
                hasher.update(&top.number.to_le_bytes()).update(&[1]);
                hasher.update(&device.to_le_bytes()).update(&inode.to_le_bytes());
            }
            Self::Entry { top, path, link: None } => {
                hasher.update(&top.number.to_le_bytes()).update(&[0]).update(path.as_bytes());
            }
        }
        first_bytes(&hasher)
    }

    fn is(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Above(names), Self::Above(others)) => names == others,
            (Self::Top(top), Self::Top(other)) => top.number == other.number,
            (Self::Entry { top, path, link }, Self::Entry { top: other_top, path: other_path, link: other_link }) => {
                top.number == other_top.number
                    && if link.is_some() { link == other_link } else { other_link.is_none() && path == other_path }
            }
            _ => false,
        }
    }
}

/// The number of a snapshot in a folder, which these names lead to.
pub(crate) fn number_of_top(names: &[Vec<u8>], snapshot: &SnapshotView) -> u64 {
    let mut hasher = blake3::Hasher::new();
    hasher.update(snapshot.snapshot.id.to_string().as_bytes());
    for name in names {
        hasher.update(b"/").update(name);
    }
    first_bytes(&hasher)
}

fn first_bytes(hasher: &blake3::Hasher) -> u64 {
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    // 0 and 1 are taken.
    u64::from_le_bytes(bytes).max(ROOT + 1)
}

/// The numbers that the kernel has.
#[derive(Debug, Default)]
pub(crate) struct Nodes(Mutex<HashMap<u64, Held>>);

#[derive(Debug)]
struct Held {
    node: Node,
    /// How often the kernel was told the number and has not forgotten it.
    lookups: u64,
}

impl Nodes {
    /// Returns what a number stands for, if the kernel has it.
    pub(crate) fn get(&self, number: u64) -> Option<Node> {
        if number == ROOT {
            return Some(Node::Above(Vec::new()));
        }
        self.with(|held| held.get(&number).map(|held| held.node.clone()))
    }

    /// The number of a node, which the kernel is not told to keep.
    pub(crate) fn number(&self, node: &Node) -> u64 {
        self.with(|held| free_or_own(held, node))
    }

    /// The number of a node, which the kernel is told and forgets later.
    pub(crate) fn hand_out(&self, node: Node) -> u64 {
        self.with(|held| {
            let number = free_or_own(held, &node);
            held.entry(number).or_insert(Held { node, lookups: 0 }).lookups += 1;
            number
        })
    }

    /// The kernel has forgotten a number this often.
    pub(crate) fn forget(&self, number: u64, count: u64) {
        self.with(|held| {
            let Some(here) = held.get_mut(&number) else { return };
            here.lookups = here.lookups.saturating_sub(count);
            if here.lookups == 0 {
                held.remove(&number);
            }
        });
    }

    fn with<R>(&self, work: impl FnOnce(&mut HashMap<u64, Held>) -> R) -> R {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The number of a node, or the next that nothing else has.
fn free_or_own(held: &HashMap<u64, Held>, node: &Node) -> u64 {
    let mut number = node.number();
    while held.get(&number).is_some_and(|held| !held.node.is(node)) {
        number = number.wrapping_add(1).max(ROOT + 1);
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;

    fn above(name: &str) -> Node {
        Node::Above(vec![name.as_bytes().to_vec()])
    }

    #[test]
    fn a_number_lives_until_the_kernel_has_forgotten_it_as_often_as_it_was_told() {
        let nodes = Nodes::default();
        let number = nodes.hand_out(above("a"));
        assert_eq!(nodes.hand_out(above("a")), number);
        assert_ne!(nodes.hand_out(above("b")), number);
        nodes.forget(number, 1);
        assert!(nodes.get(number).is_some());
        nodes.forget(number, 1);
        assert!(nodes.get(number).is_none());
        assert_eq!(nodes.number(&above("a")), number, "it is the same again");
        assert!(nodes.get(number).is_none(), "asking for it does not keep it");
    }

    #[test]
    fn what_has_the_same_hash_gets_another_number() {
        let nodes = Nodes::default();
        let number = above("a").number();
        nodes.with(|held| held.insert(number, Held { node: above("b"), lookups: 1 }));
        assert_eq!(nodes.hand_out(above("a")), number + 1);
        assert_eq!(nodes.number(&above("a")), number + 1);
    }

    #[test]
    fn the_root_is_always_there() {
        assert!(matches!(Nodes::default().get(ROOT), Some(Node::Above(names)) if names.is_empty()));
        assert_eq!(Nodes::default().number(&Node::Above(Vec::new())), ROOT);
    }
}

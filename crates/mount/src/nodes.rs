//! Nodes that the kernel's inode numbers stand for.
//!
//! A number is the beginning of a hash of what it stands for, so it is the same in every mount and costs memory only
//! while the kernel has it. All names of a hard link have one number.
//!
//! The kernel forgets when it needs memory itself. Beyond a number of nodes it is asked to, for any of them.

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

/// Node that a number stands for.
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

    /// Tells whether the kernel has this number.
    pub(crate) fn has(&self, number: u64) -> bool {
        self.with(|held| held.contains_key(&number))
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

    /// The names of some nodes, each with the number of the folder it is in, if there are more than `most`: as many as
    /// there should be fewer.
    pub(crate) fn surplus(&self, most: usize) -> Vec<(u64, Vec<u8>)> {
        self.with(|held| {
            if held.len() <= most {
                return Vec::new();
            }
            let count = held.len() - most + most / 8;
            let entries = held.values().filter_map(|here| match &here.node {
                Node::Entry { top, path, .. } => {
                    let parent = path.parent();
                    let parent = parent.map(|path| Node::Entry { top: top.clone(), path, link: None });
                    let number = parent.map_or(top.number, |parent| free_or_own(held, &parent));
                    Some((number, path.name().to_vec()))
                }
                Node::Above(_) | Node::Top(_) => None,
            });
            entries.take(count).collect()
        })
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
#[allow(clippy::expect_used)]
mod tests {
    use super::*;
    use siltstone_store::manifest::{Snapshot, SnapshotStatistics};
    use siltstone_store::{ChunkNumber, SeriesId, SnapshotId, Time};

    fn snapshot() -> SnapshotView {
        let time = Time { seconds: 0, nanoseconds: 0 };
        let snapshot = Snapshot {
            id: SnapshotId([0; 32]),
            time,
            made: time,
            host: String::new(),
            user: String::new(),
            paths: Vec::new(),
            tags: Vec::new(),
            description: None,
            program: String::new(),
            root: ChunkNumber(0),
            record: ChunkNumber(1),
            statistics: SnapshotStatistics::default(),
            partial: false,
            deleted: None,
        };
        let (series, series_name) = (SeriesId([0; 16]), String::new());
        SnapshotView { series, series_name, position: 0, borrows_of: Vec::new(), snapshot }
    }

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
    fn of_too_many_some_are_named_with_their_folders() {
        let nodes = Nodes::default();
        let top = Arc::new(Top { number: 77, snapshot: Arc::new(snapshot()) });
        let entry =
            |path: &str| Node::Entry { top: top.clone(), path: EntryPath::new(path).expect("a path"), link: None };
        let folder = nodes.hand_out(entry("folder"));
        for number in 0..20 {
            nodes.hand_out(entry(&format!("folder/{number}")));
        }
        assert!(nodes.surplus(21).is_empty());
        let surplus = nodes.surplus(16);
        assert_eq!(surplus.len(), 21 - 16 + 2);
        for (parent, name) in surplus {
            assert_eq!(parent, if name == b"folder" { 77 } else { folder });
        }
    }

    #[test]
    fn names_of_a_hard_link_have_one_number() {
        let top = Arc::new(Top { number: 77, snapshot: Arc::new(snapshot()) });
        let name = |path: &str, inode| {
            let path = EntryPath::new(path).expect("a path");
            Node::Entry { top: top.clone(), path, link: Some((1, inode)) }
        };
        let nodes = Nodes::default();
        assert_eq!(nodes.hand_out(name("a", 5)), nodes.hand_out(name("b", 5)));
        assert_ne!(nodes.number(&name("a", 5)), nodes.number(&name("a", 6)));
    }

    #[test]
    fn the_root_is_always_there() {
        assert!(matches!(Nodes::default().get(ROOT), Some(Node::Above(names)) if names.is_empty()));
        assert_eq!(Nodes::default().number(&Node::Above(Vec::new())), ROOT);
    }
}
